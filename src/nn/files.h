/* Files to read from, and files to replace. */
#ifndef GR_FILES_H
#define GR_FILES_H

#include "internal.h"

struct stat;

/* Keeps "where: cannot open: No such file or directory", by errno. */
void gr_fail_errno(gr_context *ctx, const char *where, const char *what);

/* A regular file, open for reading, and its bytes; -1 after an error that names it. */
int gr_open_regular(gr_context *ctx, const char *path, uint64_t *size);

/* Reads the n bytes of an open file from a place on. False after an error, which gives the file this name. */
bool gr_read_at(gr_context *ctx, const char *name, int file, uint64_t at, size_t n, uint8_t *out);

/* Whole numbers in files: so many bytes (8 at most), the lowest first on every machine. */
static inline uint64_t gr_load_little(const uint8_t *from, size_t bytes) {
    uint64_t bits = 0;
    for (size_t i = 0; i < bytes; i++) bits |= (uint64_t)from[i] << 8 * i;
    return bits;
}
static inline void gr_store_little(uint64_t bits, size_t bytes, uint8_t *to) {
    for (size_t i = 0; i < bytes; i++) to[i] = (uint8_t)(bits >> 8 * i);
}

/* A file that will take another's place: "path.XXXXXXXX.tmp" in the same directory until it is whole, a name of its own
 * (hexadecimal), so that of several that replace one file the last wins and none is torn, and what has such a name
 * already is left alone. A failure is remembered, and what comes after does nothing. */
typedef struct gr_replacing {
    gr_context *ctx;
    const char *path;
    char *beside;        /* "path.XXXXXXXX.tmp" */
    int file, directory; /* -1: not open */
    int cause;           /* errno of the first failure; 0: none */
    bool counts;         /* it only counts, has no file, and does not end: {.counts = true} */
    uint64_t size;       /* bytes taken */
    size_t used;
    uint8_t *buffer;
} gr_replacing;

/* Only a new name, or a regular file, is replaced: root could rename a file over /dev/null. False after an error. */
bool gr_can_replace(gr_context *ctx, const char *path);

/* Gives a new file, which its owner alone may use yet, the group and the permissions of an older one. Where the group
 * cannot be had, no other may use it in its stead, and its members, now among the others, no more than they could. */
void gr_permit_like(int file, const struct stat *old);

/* For so many bytes (0: not known); a file that would be larger than the process may write is refused before it is
 * begun. The new file has the older one's permissions. */
gr_replacing gr_replace_begin(gr_context *ctx, const char *path, uint64_t size);
void gr_replace_write(gr_replacing *r, const void *bytes, size_t n);
/* A text without its NUL; and printf, which fails if it makes more than 4095 bytes. */
void gr_replace_text(gr_replacing *r, const char *text);
void gr_replace_print(gr_replacing *r, const char *format, ...) GR_PRINTF(2, 3);
/* Flushes to the disk, renames, flushes the directory. False after an error; then the old file is as it was, and
 * nothing is beside it (unless the directory alone could not be flushed: then the new one is whole). */
bool gr_replace_end(gr_replacing *r);

/* Is this what a process that was killed has left of a file that it replaced, "name.XXXXXXXX.tmp"? */
bool gr_is_beside(const char *entry, const char *name);

#endif
