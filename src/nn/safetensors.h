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

/* The types that can be read as numbers come first. */
typedef enum gr_stored_type { GR_F16, GR_BF16, GR_F32, GR_F64, GR_OTHER_TYPE } gr_stored_type;

typedef struct gr_stored {
    const char *name;
    const char *type_name;
    gr_stored_type type;
    unsigned value_size; /* bytes */
    gr_shape shape;
    uint64_t begin, end; /* bytes from the first tensor's first */
    bool used;           /* for the reader, who says so of what belongs to his model */
} gr_stored;

/* An open file, whose every length has been checked; header and lists live until gr_context_reset. */
typedef struct gr_safetensors {
    gr_context *ctx;
    const char *path;
    int file;
    uint64_t start;    /* where the first tensor begins */
    gr_note *note;     /* in the order of their keys */
    gr_stored *tensor; /* in the order of their names */
    size_t notes, tensors, note_room, tensor_room;
} gr_safetensors;

/* False after an error, which names the file; then there is nothing to close. A file whose lists would take more than
 * its own size and a MiB is refused. */
bool gr_safetensors_open(gr_context *ctx, const char *path, gr_safetensors *out);
void gr_safetensors_close(gr_safetensors *in);

/* What a note says, or the tensor of a name; NULL: not there. */
const char *gr_safetensors_note(const gr_safetensors *in, const char *key);
gr_stored *gr_safetensors_find(const gr_safetensors *in, const char *name);

/* A name from the file, for a message: at most 80 characters, what cannot be printed as '?'. */
const char *gr_safetensors_show(const gr_safetensors *in, const char *name);

/* Reads the notes and the tensors of a header, which it changes in place. */
bool gr_safetensors_scan(gr_safetensors *in, char *text, size_t length);

/* n bytes of the values, from a place on. */
bool gr_safetensors_bytes(const gr_safetensors *in, uint64_t at, size_t n, uint8_t *out);

/* Copies the values into x, contiguous and of the same shape. F64 is rounded to gr_real, the others are exact. */
bool gr_safetensors_read(const gr_safetensors *in, const gr_stored *stored, gr_tensor *x);

typedef struct gr_safetensors_entry {
    const char *name;
    gr_tensor *x; /* contiguous */
} gr_safetensors_entry;

typedef struct gr_safetensors_content {
    const gr_note *note;
    size_t notes;
    const gr_safetensors_entry *tensor;
    size_t tensors;
} gr_safetensors_content;

/* Replaces the file at once or not at all: written beside it, flushed to the disk, renamed. */
bool gr_safetensors_write(gr_context *ctx, const char *path, gr_safetensors_content content);

#endif
