#include "mask_tile.h"
#include "internal.h"

#include <string.h>

gr_mask_view gr_mask_view_at(const gr_mask *mask, gr_shape scores, int64_t matrix) {
    int64_t each = 1; /* matrices of one batch */
    for (int k = 1; k < scores.ndim - 2; k++) each *= scores.dim[k];
    return (gr_mask_view){mask,         scores, matrix, scores.dim[scores.ndim - 2], scores.dim[scores.ndim - 1],
                          matrix / each};
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t position(const gr_mask_view *m, int64_t i) { return i + (m->keys - m->queries); }

/* -- Words that show one stretch of keys --------------------------------------------------------------------------- */

/* Keys [from, to) of a query; the ends move one way as its position grows from 0. */
typedef struct stretch {
    int64_t from, to;
} stretch;

static stretch stretch_of(const struct gr_mask_word *w, const gr_mask_view *m, int64_t i) {
    const int64_t t = position(m, i), n = w->number, end = m->keys;
    if (w->kind == GR_MASK_CAUSAL) return (stretch){0, t + 1};
    if (w->kind == GR_MASK_WINDOW) return (stretch){larger(t, 0) - n + 1, n < end - t ? t + n : end};
    if (w->kind == GR_MASK_GLOBAL) return (stretch){0, 0 <= t && t < n ? end : n};
    gr_real length = w->tensor->data[m->batch * w->tensor->stride[0]]; /* padding; NaN shows nothing */
    int64_t whole = length > 0 ? length < (gr_real)end ? (int64_t)length : end : 0;
    return (stretch){0, whole < end && (gr_real)whole < length ? whole + 1 : whole};
}

/* -- Words that look into a tensor --------------------------------------------------------------------------------- */

static bool has_tensor(const struct gr_mask_word *w) { return w->kind == GR_MASK_BLOCKS || w->kind == GR_MASK_TENSOR; }

/* A row of numbers, 0 where hidden: number j / block is of key j. NULL: before the first block, all hidden. */
typedef struct tensor_row {
    const gr_real *x;
    int64_t step, block;
} tensor_row;

static tensor_row row_of_tensor(const struct gr_mask_word *w, const gr_mask_view *m, int64_t i) {
    const gr_tensor *x = w->tensor;
    if (w->kind == GR_MASK_BLOCKS) {
        const int64_t t = position(m, i);
        return (tensor_row){t < 0 ? NULL : x->data + t / w->number * x->stride[0], x->stride[1], w->number};
    }
    gr_shape rows = m->scores; /* without the last axis */
    int64_t stride[GR_MAX_DIMS] = {0};
    const int front = rows.ndim - x->shape.ndim;
    for (int k = 0; k < rows.ndim; k++)
        stride[k] = k < front || x->shape.dim[k - front] == 1 ? 0 : x->stride[k - front];
    const int64_t step = stride[--rows.ndim];
    return (tensor_row){x->data + gr_shape_offset(rows, stride, m->matrix * m->queries + i), step, 1};
}

static gr_seen seen_of_tensor(const struct gr_mask_word *w, const gr_mask_view *m, int64_t i0, int64_t i1, int64_t j0,
                              int64_t j1) {
    bool some = false, all = true;
    for (int64_t i = i0; i < i1; i++) {
        const tensor_row row = row_of_tensor(w, m, i);
        all = all && row.x;
        for (int64_t j = j0 / row.block; row.x && j <= (j1 - 1) / row.block; j++) {
            const bool visible = row.x[j * row.step] != 0;
            some = some || visible, all = all && visible;
        }
        if (row.x) i += smaller(i1 - i, row.block - position(m, i) % row.block) - 1; /* the rest of it is the same */
        if (some && !all) return GR_SEEN_SOME;
    }
    return all ? GR_SEEN_ALL : some ? GR_SEEN_SOME : GR_SEEN_NONE;
}

/* -- The whole expression ------------------------------------------------------------------------------------------ */

static gr_mask_range part_of_word(const struct gr_mask_word *w, const gr_mask_view *m, int64_t i0, int64_t i1,
                                  int64_t j0, int64_t j1) {
    if (has_tensor(w)) return (gr_mask_range){seen_of_tensor(w, m, i0, i1, j0, j1), j0, j1};
    const stretch a = stretch_of(w, m, i0), b = i1 - i0 > 1 ? stretch_of(w, m, i1 - 1) : a;
    int64_t from = larger(j0, smaller(a.from, b.from)), to = smaller(j1, larger(a.to, b.to));
    if (w->kind == GR_MASK_GLOBAL && w->number > 0 && position(m, i0) < 0 && position(m, i1 - 1) >= 0)
        to = j1; /* position 0 sees all */
    const bool all = larger(a.from, b.from) <= from && smaller(a.to, b.to) >= to;
    return (gr_mask_range){from >= to ? GR_SEEN_NONE : all ? GR_SEEN_ALL : GR_SEEN_SOME, from, to};
}

static gr_mask_range both(gr_mask_range a, gr_mask_range b) { /* NONE < SOME < ALL */
    gr_mask_range part = {a.seen < b.seen ? a.seen : b.seen, larger(a.from, b.from), smaller(a.to, b.to)};
    if (part.from >= part.to) part.seen = GR_SEEN_NONE;
    return part;
}

static bool covers(gr_mask_range a, gr_mask_range b) {
    return a.seen == GR_SEEN_ALL && a.from <= b.from && a.to >= b.to;
}

static gr_mask_range either(gr_mask_range a, gr_mask_range b) {
    if (a.seen == GR_SEEN_NONE || covers(b, a)) return b;
    if (b.seen == GR_SEEN_NONE || covers(a, b)) return a;
    const bool joined = a.seen == GR_SEEN_ALL && b.seen == GR_SEEN_ALL && a.from <= b.to && b.from <= a.to;
    return (gr_mask_range){joined ? GR_SEEN_ALL : GR_SEEN_SOME, smaller(a.from, b.from), larger(a.to, b.to)};
}

/* A joint needs both its sides at hand: the deepest expression keeps so many waiting. */
enum { DEEPEST = (GR_MASK_WORDS + 1) / 2 };

gr_mask_range gr_mask_range_of(const gr_mask_view *m, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    if (i0 >= i1 || j0 >= j1) return (gr_mask_range){GR_SEEN_NONE, j0, j0};
    gr_mask_range stack[DEEPEST];
    int depth = 0;
    stack[0] = (gr_mask_range){GR_SEEN_ALL, j0, j1};
    for (const struct gr_mask_word *w = m->mask->word; w < m->mask->word + m->mask->count; w++) {
        if (w->kind != GR_MASK_AND && w->kind != GR_MASK_OR) {
            stack[depth++] = part_of_word(w, m, i0, i1, j0, j1);
        } else {
            depth--;
            stack[depth - 1] = (w->kind == GR_MASK_AND ? both : either)(stack[depth - 1], stack[depth]);
        }
    }
    if (stack[0].seen == GR_SEEN_NONE) stack[0].from = stack[0].to = j0;
    return stack[0];
}

static void row_of_word(const struct gr_mask_word *w, const gr_mask_view *m, int64_t i, int64_t j0, int64_t j1,
                        gr_real *allow) {
    if (has_tensor(w)) {
        const tensor_row row = row_of_tensor(w, m, i);
        for (int64_t j = j0; j < j1; j++) allow[j - j0] = row.x && row.x[j / row.block * row.step] != 0;
        return;
    }
    const stretch s = stretch_of(w, m, i);
    for (int64_t j = j0; j < j1; j++) allow[j - j0] = s.from <= j && j < s.to;
}

void gr_mask_row(const gr_mask_view *m, int64_t i, int64_t j0, int64_t j1, gr_real *allow) {
    gr_real stack[DEEPEST][GR_MASK_ROW];
    const int64_t n = j1 - j0;
    int depth = 0;
    for (int64_t j = 0; j < n; j++) stack[0][j] = 1;
    for (const struct gr_mask_word *w = m->mask->word; w < m->mask->word + m->mask->count; w++) {
        if (w->kind != GR_MASK_AND && w->kind != GR_MASK_OR) {
            row_of_word(w, m, i, j0, j1, stack[depth++]);
            continue;
        }
        const gr_real *b = stack[--depth];
        gr_real *a = stack[depth - 1];
        /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): before a joint stand its two sides */
        for (int64_t j = 0; j < n; j++) a[j] = w->kind == GR_MASK_AND ? a[j] * b[j] : a[j] + b[j] - a[j] * b[j];
    }
    memcpy(allow, stack[0], (size_t)n * sizeof *allow);
}
