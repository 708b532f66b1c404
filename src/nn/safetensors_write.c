#include "files.h"
#include "safetensors.h"

#include <inttypes.h>
#include <string.h>

enum {
    LENGTH = 8, /* bytes of the header's length, which is a multiple of them: a reader may map the first tensor */
    CHUNK = 512 /* values at a time */
};

#ifdef GR_DOUBLE
#    define TYPE "F64"
#else
#    define TYPE "F32"
#endif

static void write_string(gr_replacing *out, const char *text) {
    gr_replace_text(out, "\"");
    for (; *text; text++) {
        if ((unsigned char)*text < ' ')
            gr_replace_print(out, "\\u%04x", (unsigned)*text);
        else {
            if (*text == '"' || *text == '\\') gr_replace_text(out, "\\");
            gr_replace_write(out, text, 1);
        }
    }
    gr_replace_text(out, "\"");
}

static void write_header(gr_replacing *out, gr_safetensors_content c) {
    uint64_t at = 0;
    gr_replace_text(out, "{\"__metadata__\":{");
    for (size_t i = 0; i < c.notes; i++) {
        if (i > 0) gr_replace_text(out, ",");
        write_string(out, c.note[i].key);
        gr_replace_text(out, ":");
        write_string(out, c.note[i].value);
    }
    gr_replace_text(out, "}");
    for (size_t i = 0; i < c.tensors; i++) {
        const gr_shape shape = gr_shape_of(c.tensor[i].x);
        const uint64_t end = at + (uint64_t)gr_numel(c.tensor[i].x) * sizeof(gr_real);
        gr_replace_text(out, ",");
        write_string(out, c.tensor[i].name);
        gr_replace_text(out, ":{\"dtype\":\"" TYPE "\",\"shape\":[");
        for (int d = 0; d < shape.ndim; d++) gr_replace_print(out, "%s%" PRId64, d > 0 ? "," : "", shape.dim[d]);
        gr_replace_print(out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", at, end);
        at = end;
    }
    gr_replace_text(out, "}");
    while (out->size % LENGTH != 0) gr_replace_text(out, " ");
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

bool gr_safetensors_write(gr_context *ctx, const char *path, gr_safetensors_content content) {
    if (!gr_ok(ctx)) return false;
    gr_replacing header = {.counts = true}; /* its length stands before it */
    write_header(&header, content);
    uint8_t raw[LENGTH];
    uint64_t size = sizeof raw + header.size;
    gr_store_little(header.size, sizeof raw, raw);
    for (size_t i = 0; i < content.tensors; i++) size += (uint64_t)gr_numel(content.tensor[i].x) * sizeof(gr_real);
    gr_replacing out = gr_replace_begin(ctx, path, size);
    gr_replace_write(&out, raw, sizeof raw);
    write_header(&out, content);
    for (size_t i = 0; i < content.tensors; i++) write_values(&out, content.tensor[i].x);
    return gr_replace_end(&out);
}
