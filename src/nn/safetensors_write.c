#include "files.h"
#include "safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 8, CHUNK = 512 }; /* bytes: a reader may map the first tensor; values at a time */

#ifdef GR_DOUBLE
#    define TYPE "F64"
#else
#    define TYPE "F32"
#endif

static void write_string(FILE *out, const char *text) {
    putc('"', out);
    for (; *text; text++) {
        if ((unsigned char)*text < ' ')
            fprintf(out, "\\u%04x", (unsigned)*text);
        else {
            if (*text == '"' || *text == '\\') putc('\\', out);
            putc(*text, out);
        }
    }
    putc('"', out);
}

static void write_header(FILE *out, gr_safetensors_content c) {
    uint64_t at = 0;
    fputs("{\"__metadata__\":{", out);
    for (size_t i = 0; i < c.notes; i++) {
        if (i > 0) putc(',', out);
        write_string(out, c.note[i].key);
        putc(':', out);
        write_string(out, c.note[i].value);
    }
    putc('}', out);
    for (size_t i = 0; i < c.tensors; i++) {
        const gr_shape shape = gr_shape_of(c.tensor[i].x);
        const uint64_t end = at + (uint64_t)gr_numel(c.tensor[i].x) * sizeof(gr_real);
        putc(',', out);
        write_string(out, c.tensor[i].name);
        fputs(":{\"dtype\":\"" TYPE "\",\"shape\":[", out);
        for (int d = 0; d < shape.ndim; d++) fprintf(out, "%s%" PRId64, d > 0 ? "," : "", shape.dim[d]);
        fprintf(out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", at, end);
        at = end;
    }
    putc('}', out);
    while (ftello(out) % ALIGNMENT != 0) putc(' ', out);
}

static void encode_real(gr_real value, uint8_t *out) {
#ifdef GR_DOUBLE
    uint64_t bits;
#else
    uint32_t bits;
#endif
    memcpy(&bits, &value, sizeof bits);
    gr_store_little(bits, sizeof bits, out);
}

static void write_values(gr_replacing *out, gr_tensor *x) {
    const gr_real *value = gr_data(x);
    uint8_t raw[CHUNK * sizeof *value];
    for (int64_t left = gr_numel(x); left > 0;) {
        const int64_t n = left < CHUNK ? left : CHUNK;
        for (int64_t i = 0; i < n; i++) encode_real(*value++, raw + (size_t)i * sizeof *value);
        gr_replace_write(out, raw, (size_t)n * sizeof *value);
        left -= n;
    }
}

/* The header as text, to be freed; NULL without memory. */
static char *header_of(gr_safetensors_content content, size_t *length) {
    char *text = NULL;
    FILE *memory = open_memstream(&text, length);
    if (!memory) return NULL;
    write_header(memory, content);
    const bool ok = !ferror(memory);
    if (fclose(memory) == 0 && ok) return text;
    free(text);
    return NULL;
}

bool gr_safetensors_write(gr_context *ctx, const char *path, gr_safetensors_content content) {
    size_t length = 0;
    if (!gr_ok(ctx)) return false;
    char *header = header_of(content, &length);
    if (!header) {
        gr_fail(ctx, path, "cannot write: no memory for the header");
        return false;
    }
    uint8_t raw[ALIGNMENT];
    uint64_t size = sizeof raw + length;
    gr_store_little(length, sizeof raw, raw);
    for (size_t i = 0; i < content.tensors; i++) size += (uint64_t)gr_numel(content.tensor[i].x) * sizeof(gr_real);
    gr_replacing out = gr_replace_begin(ctx, path, size);
    gr_replace_write(&out, raw, sizeof raw);
    gr_replace_write(&out, header, length);
    for (size_t i = 0; i < content.tensors; i++) write_values(&out, content.tensor[i].x);
    free(header);
    return gr_replace_end(&out);
}
