/* Text that need not be in memory: files, or bytes, one after the other. */
#ifndef GR_SOURCE_H
#define GR_SOURCE_H

#include "internal.h"

typedef struct gr_segment {
    const char *name;      /* for messages: the path, or "standard input" */
    int file;              /* open for reading; -1: */
    const uint8_t *memory; /* the bytes themselves */
    uint64_t begin, size;  /* its place in the text */
} gr_segment;

typedef struct gr_source {
    gr_context *ctx;
    gr_segment *segment;
    int count;
    uint64_t size;
} gr_source;

/* Opens files for as long as the context lives; "-" is standard input, read to its end here. False after an error. */
bool gr_source_open(gr_context *ctx, const char *const *paths, int count, gr_source *out);
void gr_source_close(gr_source *source); /* its files, before the context does; then it has no byte */
bool gr_source_from(gr_context *ctx, const char *name, const uint8_t *text, size_t size, gr_source *out);

/* Copies the bytes [offset, offset + n), which must lie in the text. False after an error, which names the file. */
bool gr_source_read(const gr_source *source, uint64_t offset, size_t n, uint8_t *out);

/* The segment that has this byte of the text. */
const gr_segment *gr_source_find(const gr_source *source, uint64_t offset);

#endif
