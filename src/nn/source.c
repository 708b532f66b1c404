#include "source.h"
#include "files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* -- Opening ------------------------------------------------------------------------------------------------------- */

static void close_segment(void *arg) {
    gr_segment *s = arg;
    if (s->file >= 0) close(s->file);
    s->file = -1;
}

static void open_file(gr_context *ctx, gr_segment *s) {
    s->file = gr_open_regular(ctx, s->name, &s->size);
    if (s->file >= 0) gr_on_free(ctx, close_segment, s);
}

/* All of standard input, in memory that doubles as it fills; NULL with errno set. */
static uint8_t *read_input(uint64_t *size) {
    enum { FIRST_ROOM = 1 << 16 }; /* bytes: a pipe's */
    size_t room = 0, have = 0;
    uint8_t *text = NULL;
    for (;;) {
        if (have == room) {
            room = room ? 2 * room : FIRST_ROOM;
            uint8_t *larger = room < SIZE_MAX / 4 ? realloc(text, room) : NULL;
            if (!larger) {
                errno = ENOMEM;
                break;
            }
            text = larger;
        }
        const ssize_t n = read(STDIN_FILENO, text + have, room - have);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) break;
        have += (size_t)n;
        *size = have;
        if (n == 0) return text;
    }
    free(text);
    return NULL;
}

static void open_input(gr_context *ctx, gr_segment *s) {
    s->name = "standard input";
    uint8_t *text = read_input(&s->size);
    if (!text) {
        gr_fail_errno(ctx, s->name, "read");
        return;
    }
    s->memory = text;
    gr_on_free(ctx, free, text);
}

/* The place of each segment, behind the one before. */
static bool place(gr_source *source) {
    for (int i = 0; source->segment && i < source->count && gr_ok(source->ctx); i++) {
        gr_segment *s = &source->segment[i];
        s->begin = source->size;
        if (s->size > SIZE_MAX / 2 - source->size)
            gr_fail(source->ctx, s->name, "too large for this machine");
        else
            source->size += s->size;
    }
    return gr_ok(source->ctx);
}

bool gr_source_open(gr_context *ctx, const char *const *paths, int count, gr_source *out) {
    *out = (gr_source){.ctx = ctx};
    gr_segment *segment = count > 0 ? gr_alloc_array(ctx, true, count, sizeof *segment) : NULL;
    out->segment = segment;
    for (int i = 0; segment && i < count && gr_ok(ctx); i++) {
        const size_t length = strlen(paths[i]) + 1;
        char *name = gr_alloc(ctx, true, length);
        if (!name) break;
        memcpy(name, paths[i], length);
        segment[i] = (gr_segment){.name = name, .file = -1};
        out->count = i + 1;
        if (strcmp(name, "-") == 0)
            open_input(ctx, &segment[i]);
        else
            open_file(ctx, &segment[i]);
    }
    return gr_ok(ctx) && place(out);
}

void gr_source_close(gr_source *source) {
    for (int i = 0; i < source->count; i++) close_segment(&source->segment[i]);
    source->size = 0;
}

bool gr_source_from(gr_context *ctx, const char *name, const uint8_t *text, size_t size, gr_source *out) {
    *out = (gr_source){.ctx = ctx};
    gr_segment *segment = gr_alloc(ctx, true, sizeof *segment);
    uint8_t *copy = gr_alloc(ctx, true, size);
    if (!segment || !copy) return false;
    memcpy(copy, text, size);
    *segment = (gr_segment){.name = name, .file = -1, .memory = copy, .size = size};
    out->segment = segment;
    out->count = 1;
    return place(out);
}

/* -- Reading ------------------------------------------------------------------------------------------------------- */

const gr_segment *gr_source_find(const gr_source *source, uint64_t offset) {
    int low = 0, high = source->count - 1;
    while (low < high) { /* the last that begins at or before offset: those without a byte are passed over */
        const int middle = low + (high - low + 1) / 2;
        if (source->segment[middle].begin <= offset)
            low = middle;
        else
            high = middle - 1;
    }
    return &source->segment[low];
}

static bool read_segment(gr_context *ctx, const gr_segment *s, uint64_t offset, size_t n, uint8_t *out) {
    if (s->file >= 0) return gr_read_at(ctx, s->name, s->file, offset, n, out);
    memcpy(out, s->memory + offset, n);
    return true;
}

bool gr_source_read(const gr_source *source, uint64_t offset, size_t n, uint8_t *out) {
    if (n == 0) return gr_ok(source->ctx);
    for (const gr_segment *s = gr_source_find(source, offset); n > 0; s++) {
        const uint64_t inside = offset - s->begin, left = s->size - inside;
        const size_t some = left < n ? (size_t)left : n;
        if (!read_segment(source->ctx, s, inside, some, out)) return false;
        offset += some, out += some, n -= some;
    }
    return gr_ok(source->ctx);
}
