#include "safetensors.h"
#include "files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGNMENT = 8 }; /* the first tensor begins at a multiple of it: a reader may map the file */

static void write_string(FILE *out, const char *text) {
    putc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') putc('\\', out);
        putc(*text, out);
    }
    putc('"', out);
}

static void write_little_endian(FILE *out, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) putc((int)(value >> 8 * i & 0xff), out);
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
        const gr_shape shape = gr_shape_of(c.tensor[i]);
        const uint64_t end = at + (uint64_t)gr_numel(c.tensor[i]) * sizeof(float);
        putc(',', out);
        write_string(out, gr_name(c.tensor[i]));
        fputs(":{\"dtype\":\"F32\",\"shape\":[", out);
        for (int d = 0; d < shape.ndim; d++) fprintf(out, "%s%" PRId64, d > 0 ? "," : "", shape.dim[d]);
        fprintf(out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", at, end);
        at = end;
    }
    putc('}', out);
}

static void write_values(FILE *out, gr_tensor *x) {
    const gr_real *value = gr_data(x);
    for (int64_t i = 0; i < gr_numel(x); i++) {
        const float rounded = (float)value[i];
        uint32_t bits;
        memcpy(&bits, &rounded, sizeof bits);
        write_little_endian(out, bits, sizeof bits);
    }
}

/* False with errno set. */
static bool write_file(FILE *out, gr_safetensors_content content) {
    char *header = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&header, &length);
    if (!memory) return false;
    write_header(memory, content);
    while (ftello(memory) % ALIGNMENT != 0) putc(' ', memory);
    bool ok = !ferror(memory);
    if (fclose(memory) != 0) ok = false;
    if (ok) {
        write_little_endian(out, length, ALIGNMENT);
        fwrite(header, 1, length, out);
        for (size_t i = 0; i < content.tensors; i++) write_values(out, content.tensor[i]);
        ok = !ferror(out) && fflush(out) == 0 && fsync(fileno(out)) == 0;
    }
    free(header);
    return ok;
}

bool gr_safetensors_write(gr_context *ctx, const char *path, gr_safetensors_content content) {
    const size_t room = strlen(path) + sizeof ".tmp";
    char *beside = gr_ok(ctx) ? gr_alloc(ctx, false, room) : NULL;
    if (!beside) return false;
    snprintf(beside, room, "%s.tmp", path);
    FILE *out = fopen(beside, "wb");
    bool ok = out && write_file(out, content);
    if (!ok && out) {
        const int cause = errno;
        fclose(out);
        errno = cause;
    }
    if (ok) ok = fclose(out) == 0 && rename(beside, path) == 0;
    if (ok) return true;
    gr_fail_errno(ctx, path, "write");
    if (out) remove(beside);
    return false;
}
