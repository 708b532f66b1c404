#include "safetensors.h"
#include "files.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LENGTH_SIZE = 8 };                     /* bytes */
static const uint64_t MAX_HEADER = 100000000; /* bytes; the limit of the format's own reader */

/* Entries that the lists have room for: as many as a header of this length may have, but no more than so many in any
 * file, and what takes a quarter of its values' room. Sorting may copy a list; all of it stays below the file's size
 * and a MiB. */
enum { NOTES = 1024, TENSORS = 2048 };
static const size_t MIN_NOTE = sizeof "'':''"; /* characters that one takes in a header */
static const size_t MIN_TENSOR = sizeof "'':{'dtype':'U8','shape':[],'data_offsets':[0,0]}";

/* -- Opening ------------------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b) {
    return strcmp(((const gr_stored *)a)->name, ((const gr_stored *)b)->name);
}

static int by_key(const void *a, const void *b) { return strcmp(((const gr_note *)a)->key, ((const gr_note *)b)->key); }

static int by_begin(const void *a, const void *b) {
    const gr_stored *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* As long as its shape says? */
static bool check_length(gr_safetensors *in, const gr_stored *t) {
    const int64_t numel = gr_shape_numel(t->shape);
    const uint64_t most = UINT64_MAX / t->value_size;
    if (numel >= 0 && (uint64_t)numel <= most && t->end >= t->begin &&
        t->end - t->begin == (uint64_t)numel * t->value_size)
        return true;
    gr_fail(in->ctx, in->path, "%s: offsets %llu to %llu do not fit %s values of the shape %s",
            gr_safetensors_show(in, t->name), (unsigned long long)t->begin, (unsigned long long)t->end, t->type_name,
            gr_show_shape(in->ctx, t->shape));
    return false;
}

/* All tensors side by side from the first byte to the last. */
static bool check_layout(gr_safetensors *in, uint64_t size) {
    uint64_t at = 0;
    qsort(in->tensor, in->tensors, sizeof *in->tensor, by_begin);
    for (size_t i = 0; i < in->tensors && gr_ok(in->ctx); i++) {
        const gr_stored *t = &in->tensor[i];
        if (!check_length(in, t)) return false;
        if (t->begin != at)
            gr_fail(in->ctx, in->path, "%s %s: begins at byte %llu, the tensor before it ends at %llu",
                    gr_safetensors_show(in, t->name), gr_show_shape(in->ctx, t->shape), (unsigned long long)t->begin,
                    (unsigned long long)at);
        else if (t->end > size)
            gr_fail(in->ctx, in->path, "%s %s: cut off; it ends at byte %llu of the values, the file has %llu",
                    gr_safetensors_show(in, t->name), gr_show_shape(in->ctx, t->shape), (unsigned long long)t->end,
                    (unsigned long long)size);
        at = t->end;
    }
    if (at != size)
        gr_fail(in->ctx, in->path, "%llu bytes of values, by the header %llu", (unsigned long long)size,
                (unsigned long long)at);
    return gr_ok(in->ctx);
}

/* Puts both lists in the order of their names; none may be there twice. */
static bool check_names(gr_safetensors *in) {
    if (in->notes > 0) qsort(in->note, in->notes, sizeof *in->note, by_key);
    for (size_t i = 1; i < in->notes; i++)
        if (by_key(&in->note[i - 1], &in->note[i]) == 0)
            gr_fail(in->ctx, in->path, "metadata: \"%s\" is there twice", gr_safetensors_show(in, in->note[i].key));
    qsort(in->tensor, in->tensors, sizeof *in->tensor, by_name);
    for (size_t i = 1; i < in->tensors && gr_ok(in->ctx); i++)
        if (by_name(&in->tensor[i - 1], &in->tensor[i]) == 0)
            gr_fail(in->ctx, in->path, "%s is there twice: %s and %s", gr_safetensors_show(in, in->tensor[i].name),
                    gr_show_shape(in->ctx, in->tensor[i - 1].shape), gr_show_shape(in->ctx, in->tensor[i].shape));
    return gr_ok(in->ctx);
}

static size_t smaller(uint64_t a, uint64_t b) { return (size_t)(a < b ? a : b); }

static bool read_header(gr_safetensors *in, uint64_t size) {
    uint8_t raw[LENGTH_SIZE] = {0};
    if (size < LENGTH_SIZE)
        gr_fail(in->ctx, in->path, "not a safetensors file: shorter than %d bytes", LENGTH_SIZE);
    else if (!gr_read_at(in->ctx, in->path, in->file, 0, sizeof raw, raw))
        return false;
    const uint64_t length = gr_load_little(raw, sizeof raw);
    if (gr_ok(in->ctx) && (length > MAX_HEADER || length > size - LENGTH_SIZE))
        gr_fail(in->ctx, in->path, "not a safetensors file, or cut off: a header of %llu bytes in a file of %llu",
                (unsigned long long)length, (unsigned long long)size);
    char *text = gr_alloc(in->ctx, false, (size_t)length + 1);
    if (!text || !gr_read_at(in->ctx, in->path, in->file, LENGTH_SIZE, (size_t)length, (uint8_t *)text)) return false;
    in->start = LENGTH_SIZE + length;
    const uint64_t quarter = (size - in->start) / 4;
    in->note_room = smaller(length / MIN_NOTE + 1, NOTES + quarter / sizeof *in->note);
    in->tensor_room = smaller(length / MIN_TENSOR + 1, TENSORS + quarter / sizeof *in->tensor);
    in->tensor = gr_alloc(in->ctx, false, in->tensor_room * sizeof *in->tensor);
    return in->tensor && gr_safetensors_scan(in, text, (size_t)length) && check_layout(in, size - in->start) &&
           check_names(in);
}

bool gr_safetensors_open(gr_context *ctx, const char *path, gr_safetensors *out) {
    uint64_t size = 0;
    *out = (gr_safetensors){.ctx = ctx, .path = path, .file = -1};
    if (!gr_ok(ctx)) return false;
    out->file = gr_open_regular(ctx, path, &size);
    if (out->file >= 0 && read_header(out, size)) return true;
    gr_safetensors_close(out);
    return false;
}

void gr_safetensors_close(gr_safetensors *in) {
    if (in->file >= 0) close(in->file);
    in->file = -1;
}

/* -- Looking up ---------------------------------------------------------------------------------------------------- */

const char *gr_safetensors_note(const gr_safetensors *in, const char *key) {
    const gr_note wanted = {.key = key};
    const gr_note *found = in->notes > 0 ? bsearch(&wanted, in->note, in->notes, sizeof wanted, by_key) : NULL;
    return found ? found->value : NULL;
}

gr_stored *gr_safetensors_find(const gr_safetensors *in, const char *name) {
    const gr_stored wanted = {.name = name};
    return in->tensors > 0 ? bsearch(&wanted, in->tensor, in->tensors, sizeof wanted, by_name) : NULL;
}

const char *gr_safetensors_show(const gr_safetensors *in, const char *name) {
    enum { MOST = 80 };
    char *text = gr_alloc(in->ctx, false, MOST + 1);
    if (!text) return "";
    size_t n = 0;
    for (; n < MOST && name[n]; n++) text[n] = name[n] >= ' ' && name[n] <= '~' ? name[n] : '?';
    text[n] = '\0';
    return text;
}

/* -- Values -------------------------------------------------------------------------------------------------------- */

static double of_float_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static double of_double_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* IEEE 754 binary16: sign, 5 bits of exponent with bias 15, 10 bits of fraction; a denormal is fraction 2^-24. */
static double of_half_bits(uint32_t bits) {
    const uint32_t exponent = bits >> 10 & 0x1F, fraction = bits & 0x3FF, sign = bits >> 15;
    if (exponent == 0) return (sign ? -1.0 : 1.0) * (double)fraction * 0x1p-24;
    const uint32_t widened = exponent == 0x1F ? 0xFF : exponent + 127 - 15;
    return of_float_bits(sign << 31 | widened << 23 | fraction << 13);
}

static double decode(gr_stored_type type, const uint8_t *raw, unsigned size) {
    const uint64_t bits = gr_load_little(raw, size);
    switch (type) {
    case GR_F16:
        return of_half_bits((uint32_t)bits);
    case GR_BF16:
        return of_float_bits((uint32_t)bits << 16); /* the upper half of a binary32 */
    case GR_F32:
        return of_float_bits((uint32_t)bits);
    default:
        return of_double_bits(bits);
    }
}

bool gr_safetensors_bytes(const gr_safetensors *in, uint64_t at, size_t n, uint8_t *out) {
    return gr_read_at(in->ctx, in->path, in->file, in->start + at, n, out);
}

bool gr_safetensors_read(const gr_safetensors *in, const gr_stored *stored, gr_tensor *x) {
    enum { CHUNK = 8192 }; /* bytes */
    uint8_t raw[CHUNK];
    gr_real *to = gr_data(x);
    if (!gr_ok(in->ctx)) return false;
    if (!to || !gr_is_contiguous(x) || !gr_shape_equal(stored->shape, gr_shape_of(x)))
        gr_fail(in->ctx, in->path, "%s: the file has the shape %s, the model %s", gr_safetensors_show(in, stored->name),
                gr_show_shape(in->ctx, stored->shape), gr_show_shape(in->ctx, gr_shape_of(x)));
    else if (stored->type == GR_OTHER_TYPE)
        gr_fail(in->ctx, in->path, "%s %s: values of type %s; they can be F16, BF16, F32 or F64",
                gr_safetensors_show(in, stored->name), gr_show_shape(in->ctx, stored->shape), stored->type_name);
    for (uint64_t at = stored->begin; to && at < stored->end && gr_ok(in->ctx);) {
        const size_t n = stored->end - at < CHUNK ? (size_t)(stored->end - at) : CHUNK;
        if (!gr_safetensors_bytes(in, at, n, raw)) return false;
        for (size_t i = 0; i < n; i += stored->value_size)
            *to++ = (gr_real)decode(stored->type, raw + i, stored->value_size);
        at += n;
    }
    return gr_ok(in->ctx);
}
