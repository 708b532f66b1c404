#include "reduce.h"
#include "parallel.h"

gr_tensor *gr_as_rows(gr_tensor *x, unsigned set) {
    gr_shape order = {0, {0}};
    int64_t stride[GR_MAX_DIMS];
    for (int reduced = 0; reduced < 2; reduced++)
        for (int i = 0; i < x->shape.ndim; i++) {
            if ((int)(set >> i & 1) != reduced) continue;
            stride[order.ndim] = x->stride[i];
            order.dim[order.ndim++] = x->shape.dim[i];
        }
    gr_tensor *moved = gr_contiguous(gr_view(x, order, stride, 0));
    if (gr_is_inert(moved)) return moved;
    int64_t rows = gr_shape_numel(gr_shape_reduced(x->shape, set, false));
    int64_t n = gr_shape_numel(gr_shape_reduced(x->shape, ~set, false));
    return gr_view_as(moved, GR_SHAPE(rows, n));
}

/* A contiguous x as (outer, m, inner), summed over the middle. */
typedef struct sum_task {
    const gr_kernels *kernels;
    const gr_real *x;
    gr_real *y;
    size_t m, inner, strips;
    bool accumulate;
} sum_task;

enum { STRIP_COLUMNS = 64 }; /* a cache line or more of every row */

static void sum_items(size_t begin, size_t end, int thread, void *arg) {
    (void)thread;
    const sum_task *s = arg;
    for (size_t item = begin; item < end; item++) {
        size_t outer = item / s->strips, first = item % s->strips * STRIP_COLUMNS;
        const gr_real *x = s->x + outer * s->m * s->inner + first;
        gr_real *y = s->y + outer * s->inner + first;
        size_t width = s->inner - first < STRIP_COLUMNS ? s->inner - first : STRIP_COLUMNS;
        if (s->inner > 1)
            s->kernels->sum_rows(s->m, width, x, (ptrdiff_t)s->inner, y, s->accumulate);
        else
            *y = (s->accumulate ? *y : 0) + s->kernels->sum(s->m, x, 0);
    }
}

static void sum_middle(gr_tensor *y, const gr_tensor *x, int64_t outer, int64_t m, int64_t inner, bool accumulate) {
    sum_task s = {x->ctx->kernels, x->data, y->data, (size_t)m, (size_t)inner, 0, accumulate};
    s.strips = (s.inner + STRIP_COLUMNS - 1) / STRIP_COLUMNS;
    size_t per_item = s.m * (s.inner < STRIP_COLUMNS ? s.inner : STRIP_COLUMNS);
    gr_parallel_for((size_t)outer * s.strips, per_item, sum_items, &s);
}

void gr_sum_to(gr_tensor *y, gr_tensor *x, bool accumulate) {
    if (gr_is_inert(x) || gr_is_inert(y) || !gr_ok(x->ctx)) return;
    unsigned set = 0;
    int front = x->shape.ndim - y->shape.ndim, first = -1, last = -1;
    for (int i = 0; i < x->shape.ndim; i++) {
        if (x->shape.dim[i] == 1 || (i >= front && y->shape.dim[i - front] == x->shape.dim[i])) continue;
        set |= 1u << i;
        if (first < 0) first = i;
        last = i;
    }
    int64_t outer = 1, m = 1, inner = 1;
    bool together = gr_is_contiguous(x);
    for (int i = 0; i < x->shape.ndim; i++) {
        if (set >> i & 1)
            m *= x->shape.dim[i];
        else if (first < 0 || i > last)
            inner *= x->shape.dim[i];
        else if (i < first)
            outer *= x->shape.dim[i];
        else if (x->shape.dim[i] != 1)
            together = false; /* a kept axis between reduced ones */
    }
    if (!set) { /* nothing to sum: a copy, or an addition */
        gr_run_map(accumulate ? GR_MAP_plus : GR_MAP_copy, 0, y, 1, &x);
    } else if (together) {
        sum_middle(y, x, outer, m, inner, accumulate);
    } else {
        gr_tensor *rows = gr_as_rows(x, set);
        if (!gr_is_inert(rows)) sum_middle(y, rows, rows->shape.dim[0], rows->shape.dim[1], 1, accumulate);
    }
}
