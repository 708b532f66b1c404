/* The safetensors file: the length of a header (8 bytes, little-endian), the header in JSON, then the tensors' values,
 * little-endian and row-major, one after the other without a gap:
 *
 * {"__metadata__": {"layers": "4"}, "wte.weight": {"dtype": "F32", "shape": [65, 128], "data_offsets": [0, 33280]}} */
#ifndef GR_SAFETENSORS_H
#define GR_SAFETENSORS_H

#include "internal.h"

typedef struct gr_note { /* of "__metadata__" */
    const char *key, *value;
} gr_note;

typedef struct gr_stored {
    const char *name;
    gr_shape shape;
    uint64_t begin, end; /* bytes from the first tensor's first */
} gr_stored;

/* An open file, whose every length has been checked; header and lists live until gr_context_reset. */
typedef struct gr_safetensors {
    gr_context *ctx;
    const char *path;
    FILE *file;
    uint64_t start; /* where the first tensor begins */
    gr_note *note;
    gr_stored *tensor; /* in the order of their bytes */
    size_t notes, tensors;
} gr_safetensors;

/* False after an error, which names the file; then there is nothing to close. */
bool gr_safetensors_open(gr_context *ctx, const char *path, gr_safetensors *out);
void gr_safetensors_close(gr_safetensors *in);

/* What a note says, or the tensor of a name; NULL: not there. */
const char *gr_safetensors_note(const gr_safetensors *in, const char *key);
const gr_stored *gr_safetensors_find(const gr_safetensors *in, const char *name);

/* Copies the values into x, contiguous and of the same shape. */
bool gr_safetensors_read(gr_safetensors *in, const gr_stored *stored, gr_tensor *x);

typedef struct gr_safetensors_content {
    const gr_note *note;
    size_t notes;
    gr_tensor *const *tensor; /* contiguous, each with its name */
    size_t tensors;
} gr_safetensors_content;

/* Replaces the file at once or not at all: written beside it, flushed to the disk, renamed. */
bool gr_safetensors_write(gr_context *ctx, const char *path, gr_safetensors_content content);

#endif
