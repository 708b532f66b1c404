#include "internal.h"

#include <string.h>

/* numpy's defaults: more than 1000 elements are shortened to the first and last three along each axis. */
enum { SHORTEN_ABOVE = 1000, EDGE = 3, CELL_TEXT = 32 };

typedef struct printer {
    FILE *out;
    const gr_tensor *x;
    bool shorten;
    int width;
} printer;

static void format_cell(char cell[CELL_TEXT], gr_real value) {
    if (value != value)
        snprintf(cell, CELL_TEXT, "nan"); /* without the sign that printf shows */
    else
        snprintf(cell, CELL_TEXT, "%.4g", (double)value);
}

/* Positions along an axis: i -> the index shown at place i; shortened axes show 2 * EDGE of them. */
static int64_t places(const printer *p, int axis) {
    int64_t n = p->x->shape.dim[axis];
    return p->shorten && n > 2 * EDGE ? 2 * EDGE : n;
}

static int64_t index_at(const printer *p, int axis, int64_t place) {
    int64_t n = p->x->shape.dim[axis];
    return p->shorten && n > 2 * EDGE && place >= EDGE ? n - 2 * EDGE + place : place;
}

/* An odometer over the places: advances the last axis first; returns the number of axes that are at their start again.
 */
static int advance(const printer *p, int64_t place[GR_MAX_DIMS]) {
    int turned = 0;
    for (int axis = p->x->shape.ndim - 1; axis >= 0; axis--, turned++) {
        if (++place[axis] < places(p, axis)) return turned;
        place[axis] = 0;
    }
    return turned;
}

static gr_real value_at(const printer *p, const int64_t place[GR_MAX_DIMS]) {
    int64_t offset = 0;
    for (int axis = 0; axis < p->x->shape.ndim; axis++) offset += index_at(p, axis, place[axis]) * p->x->stride[axis];
    return p->x->data[offset];
}

static void measure(printer *p) {
    int64_t place[GR_MAX_DIMS] = {0};
    char cell[CELL_TEXT];
    do {
        format_cell(cell, value_at(p, place));
        int width = (int)strlen(cell);
        if (width > p->width) p->width = width;
    } while (advance(p, place) < p->x->shape.ndim);
}

static void repeat(FILE *out, char c, int times) {
    for (int i = 0; i < times; i++) fputc(c, out);
}

/* After `turned` axes have come round: a comma and a space, or as many brackets and line breaks as rows have ended. */
static void separate(const printer *p, const int64_t place[GR_MAX_DIMS], int turned) {
    int ndim = p->x->shape.ndim, axis = ndim - 1 - turned;
    bool gap = p->shorten && p->x->shape.dim[axis] > 2 * EDGE && place[axis] == EDGE;
    if (turned == 0) {
        fputs(gap ? " ... " : " ", p->out);
        return;
    }
    repeat(p->out, ']', turned);
    repeat(p->out, '\n', turned);
    if (gap) {
        repeat(p->out, ' ', axis + 1);
        fputs("...", p->out);
        repeat(p->out, '\n', turned);
    }
    repeat(p->out, ' ', axis + 1);
    repeat(p->out, '[', turned);
}

void gr_fprint(FILE *out, gr_tensor *x) {
    if (!out) return;
    if (!gr_check_alive(x, "print", "x")) {
        fprintf(out, "(inert) %s\n", x ? x->ctx->error : "");
        return;
    }
    char shape[GR_SHOW_TEXT], cell[CELL_TEXT];
    fprintf(out, "%s%s%s\n", x->name ? x->name : "", x->name ? " " : "", gr_shape_text(x->shape, shape, sizeof shape));
    printer p = {out, x, gr_numel(x) > SHORTEN_ABOVE, 0};
    int ndim = x->shape.ndim;
    if (gr_numel(x) == 0) {
        fputs("[]\n", out);
        return;
    }
    measure(&p);
    int64_t place[GR_MAX_DIMS] = {0};
    repeat(out, '[', ndim);
    for (;;) {
        format_cell(cell, value_at(&p, place));
        fprintf(out, "%*s", p.width, cell);
        int turned = advance(&p, place);
        if (turned == ndim) break;
        separate(&p, place, turned);
    }
    repeat(out, ']', ndim);
    fputc('\n', out);
}

void gr_print(gr_tensor *x) { gr_fprint(stdout, x); }
