#include "safetensors.h"
#include "files.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LENGTH_SIZE = 8, VALUE_SIZE = 4 };      /* bytes */
static const uint64_t MAX_HEADER = 100000000;  /* bytes; the limit of the format's own reader */
static const size_t MIN_NOTE = sizeof "'':''"; /* characters that one takes in a header */
static const size_t MIN_TENSOR = sizeof "'':{'dtype':'F32','shape':[],'data_offsets':[0,0]}";

/* -- JSON, as much of it as a header has --------------------------------------------------------------------------- */

typedef struct scanner {
    gr_safetensors *out;
    const char *begin, *end;
    char *at;
} scanner;

static bool fail_at(scanner *s, const char *expected) {
    gr_fail(s->out->ctx, s->out->path, "header, character %zu: expected %s", (size_t)(s->at - s->begin), expected);
    return false;
}

static void skip_space(scanner *s) {
    while (s->at < s->end && strchr(" \t\r\n", *s->at) && *s->at) s->at++;
}

static bool accept(scanner *s, char c) {
    skip_space(s);
    if (s->at == s->end || *s->at != c) return false;
    s->at++;
    return true;
}

static bool expect(scanner *s, char c) {
    const char expected[] = {'\'', c, '\'', '\0'};
    return accept(s, c) || fail_at(s, expected);
}

/* A string, decoded in place and ended with NUL. Of the escapes only those of one character: names and numbers need no
 * other. */
static bool scan_string(scanner *s, const char **out) {
    static const char escape[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
    if (!expect(s, '"')) return false;
    char *to = s->at;
    *out = to;
    while (s->at < s->end && *s->at != '"') {
        char c = *s->at++;
        if ((unsigned char)c < ' ') return fail_at(s, "a string without control characters");
        if (c == '\\') {
            const char *which = s->at < s->end && *s->at ? strchr(escape, *s->at) : NULL;
            if (!which) return fail_at(s, "one of \"\\/bfnrt after a backslash");
            c = meaning[which - escape];
            s->at++;
        }
        *to++ = c;
    }
    if (s->at == s->end) return fail_at(s, "the end of a string");
    s->at++;
    *to = '\0';
    return true;
}

static bool scan_whole(scanner *s, uint64_t *out) {
    skip_space(s);
    const char *first = s->at;
    for (*out = 0; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++) {
        const uint64_t digit = (uint64_t)(*s->at - '0');
        if (*out > (INT64_MAX - digit) / 10) return fail_at(s, "a number below 2^63");
        *out = 10 * *out + digit;
    }
    return s->at > first || fail_at(s, "a whole number");
}

/* [1, 2, 3], at most `most` of them. */
static bool scan_wholes(scanner *s, uint64_t *out, int most, int *count) {
    *count = 0;
    if (!expect(s, '[')) return false;
    if (accept(s, ']')) return true;
    do {
        if (*count == most) return fail_at(s, "a shorter list");
        if (!scan_whole(s, &out[(*count)++])) return false;
    } while (accept(s, ','));
    return expect(s, ']');
}

/* -- The header ---------------------------------------------------------------------------------------------------- */

static bool scan_field(scanner *s, gr_stored *t, const char *field) {
    const char *dtype;
    uint64_t number[GR_MAX_DIMS];
    int count;
    if (strcmp(field, "dtype") == 0) {
        if (!scan_string(s, &dtype)) return false;
        if (strcmp(dtype, "F32") == 0) return true;
        gr_fail(s->out->ctx, s->out->path, "%.80s: values of type %.16s, not F32", t->name, dtype);
        return false;
    }
    if (strcmp(field, "shape") == 0) {
        if (!scan_wholes(s, number, GR_MAX_DIMS, &t->shape.ndim)) return false;
        for (int i = 0; i < t->shape.ndim; i++) t->shape.dim[i] = (int64_t)number[i];
        return true;
    }
    if (strcmp(field, "data_offsets") != 0) return fail_at(s, "dtype, shape or data_offsets before this");
    if (!scan_wholes(s, number, 2, &count)) return false;
    if (count != 2) return fail_at(s, "two offsets before this");
    t->begin = number[0];
    t->end = number[1];
    return true;
}

static bool scan_tensor(scanner *s, const char *name) {
    gr_stored *t = &s->out->tensor[s->out->tensors++];
    *t = (gr_stored){.name = name};
    const char *seen[3] = {"", "", ""};
    if (!expect(s, '{')) return false;
    for (int i = 0; i < 3; i++) {
        if (i > 0 && !expect(s, ',')) return false;
        if (!scan_string(s, &seen[i]) || !expect(s, ':')) return false;
        for (int j = 0; j < i; j++)
            if (strcmp(seen[i], seen[j]) == 0) return fail_at(s, "another field than before");
        if (!scan_field(s, t, seen[i])) return false;
    }
    return expect(s, '}');
}

static bool scan_notes(scanner *s) {
    if (!expect(s, '{')) return false;
    if (accept(s, '}')) return true;
    do {
        gr_note *note = &s->out->note[s->out->notes++];
        if (!scan_string(s, &note->key) || !expect(s, ':') || !scan_string(s, &note->value)) return false;
    } while (accept(s, ','));
    return expect(s, '}');
}

static bool scan_header(scanner *s) {
    const char *name;
    if (!expect(s, '{')) return false;
    if (!accept(s, '}')) {
        do {
            if (!scan_string(s, &name) || !expect(s, ':')) return false;
            if (strcmp(name, "__metadata__") == 0 ? !scan_notes(s) : !scan_tensor(s, name)) return false;
        } while (accept(s, ','));
        if (!expect(s, '}')) return false;
    }
    skip_space(s);
    return s->at == s->end || fail_at(s, "nothing after the last }");
}

/* -- Reading ------------------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b) {
    return strcmp(((const gr_stored *)a)->name, ((const gr_stored *)b)->name);
}

static int by_begin(const void *a, const void *b) {
    const gr_stored *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* Each tensor as long as its shape says, all of them side by side from the first byte to the last, no name twice. */
static bool check_layout(gr_safetensors *in, uint64_t size) {
    uint64_t at = 0;
    qsort(in->tensor, in->tensors, sizeof *in->tensor, by_name);
    for (size_t i = 1; i < in->tensors; i++)
        if (by_name(&in->tensor[i - 1], &in->tensor[i]) == 0)
            gr_fail(in->ctx, in->path, "%.80s: is there twice", in->tensor[i].name);
    qsort(in->tensor, in->tensors, sizeof *in->tensor, by_begin);
    for (size_t i = 0; i < in->tensors && gr_ok(in->ctx); i++) {
        const gr_stored *t = &in->tensor[i];
        const int64_t numel = gr_shape_numel(t->shape);
        if (numel < 0 || (uint64_t)numel > UINT64_MAX / VALUE_SIZE || t->end < t->begin ||
            t->end - t->begin != (uint64_t)numel * VALUE_SIZE)
            gr_fail(in->ctx, in->path, "%.80s: offsets %llu to %llu do not fit the shape %s", t->name,
                    (unsigned long long)t->begin, (unsigned long long)t->end, gr_show_shape(in->ctx, t->shape));
        else if (t->begin != at)
            gr_fail(in->ctx, in->path, "%.80s: begins at byte %llu, the tensor before it ends at %llu", t->name,
                    (unsigned long long)t->begin, (unsigned long long)at);
        else if (t->end > size)
            gr_fail(in->ctx, in->path, "%.80s: cut off; it ends at byte %llu of the values, the file has %llu", t->name,
                    (unsigned long long)t->end, (unsigned long long)size);
        at = t->end;
    }
    if (at != size)
        gr_fail(in->ctx, in->path, "%llu bytes of values, by the header %llu", (unsigned long long)size,
                (unsigned long long)at);
    return gr_ok(in->ctx);
}

static bool read_header(gr_safetensors *in, uint64_t size) {
    uint8_t raw[LENGTH_SIZE];
    uint64_t length = 0;
    if (fread(raw, 1, sizeof raw, in->file) != sizeof raw) size = 0;
    for (int i = 0; i < LENGTH_SIZE; i++) length |= (uint64_t)raw[i] << 8 * i;
    if (size < LENGTH_SIZE)
        gr_fail(in->ctx, in->path, "not a safetensors file: shorter than %d bytes", LENGTH_SIZE);
    else if (length > MAX_HEADER || length > size - LENGTH_SIZE)
        gr_fail(in->ctx, in->path, "not a safetensors file, or cut off: a header of %llu bytes in a file of %llu",
                (unsigned long long)length, (unsigned long long)size);
    char *text = gr_alloc(in->ctx, false, (size_t)length + 1);
    if (!text) return false;
    if (fread(text, 1, (size_t)length, in->file) != length) gr_fail(in->ctx, in->path, "cannot read the header");
    in->note = gr_alloc(in->ctx, false, ((size_t)length / MIN_NOTE + 1) * sizeof *in->note);
    in->tensor = gr_alloc(in->ctx, false, ((size_t)length / MIN_TENSOR + 1) * sizeof *in->tensor);
    in->start = LENGTH_SIZE + length;
    scanner s = {in, text, text + length, text};
    return gr_ok(in->ctx) && scan_header(&s) && check_layout(in, size - in->start);
}

bool gr_safetensors_open(gr_context *ctx, const char *path, gr_safetensors *out) {
    *out = (gr_safetensors){.ctx = ctx, .path = path};
    if (!gr_ok(ctx)) return false;
    uint64_t size;
    const int file = gr_open_regular(ctx, path, &size);
    if (file < 0) return false;
    out->file = fdopen(file, "rb");
    if (!out->file) {
        gr_fail_errno(ctx, path, "open");
        close(file);
    } else if (read_header(out, size))
        return true;
    gr_safetensors_close(out);
    return false;
}

void gr_safetensors_close(gr_safetensors *in) {
    if (in->file) fclose(in->file);
    in->file = NULL;
}

const char *gr_safetensors_note(const gr_safetensors *in, const char *key) {
    for (size_t i = 0; i < in->notes; i++)
        if (strcmp(in->note[i].key, key) == 0) return in->note[i].value;
    return NULL;
}

const gr_stored *gr_safetensors_find(const gr_safetensors *in, const char *name) {
    for (size_t i = 0; i < in->tensors; i++)
        if (strcmp(in->tensor[i].name, name) == 0) return &in->tensor[i];
    return NULL;
}

static float decode(const uint8_t raw[VALUE_SIZE]) {
    const uint32_t bits = (uint32_t)raw[0] | (uint32_t)raw[1] << 8 | (uint32_t)raw[2] << 16 | (uint32_t)raw[3] << 24;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

bool gr_safetensors_read(gr_safetensors *in, const gr_stored *stored, gr_tensor *x) {
    enum { CHUNK = 2048 }; /* values */
    uint8_t raw[CHUNK * VALUE_SIZE];
    gr_real *to = gr_data(x);
    if (!gr_ok(in->ctx)) return false;
    if (!to || !gr_is_contiguous(x) || !gr_shape_equal(stored->shape, gr_shape_of(x)))
        gr_fail(in->ctx, in->path, "%.80s: the file has the shape %s, the model %s", stored->name,
                gr_show_shape(in->ctx, stored->shape), gr_show_shape(in->ctx, gr_shape_of(x)));
    if (fseeko(in->file, (off_t)(in->start + stored->begin), SEEK_SET) != 0) gr_fail_errno(in->ctx, in->path, "seek");
    for (size_t left = (size_t)(stored->end - stored->begin) / VALUE_SIZE; left > 0 && gr_ok(in->ctx);) {
        const size_t n = left < CHUNK ? left : CHUNK;
        if (fread(raw, VALUE_SIZE, n, in->file) != n)
            gr_fail(in->ctx, in->path, "%.80s: cannot read the values", stored->name);
        for (size_t i = 0; i < n; i++) *to++ = (gr_real)decode(raw + i * VALUE_SIZE);
        left -= n;
    }
    return gr_ok(in->ctx);
}
