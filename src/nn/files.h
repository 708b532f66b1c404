/* Files to read from. */
#ifndef GR_FILES_H
#define GR_FILES_H

#include "internal.h"

/* Keeps "where: cannot open: No such file or directory", by errno. */
void gr_fail_errno(gr_context *ctx, const char *where, const char *what);

/* A regular file, open for reading, and its bytes; -1 after an error that names it. */
int gr_open_regular(gr_context *ctx, const char *path, uint64_t *size);

#endif
