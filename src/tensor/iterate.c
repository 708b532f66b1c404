#include "iterate.h"
#include "parallel.h"

#include <assert.h>

typedef struct walk {
    gr_map *map;
    gr_real t;
    int operands; /* with y */
    gr_real *base[GR_ROW_OPERANDS];
    gr_shape shape;
    int64_t stride[GR_ROW_OPERANDS][GR_MAX_DIMS];
    int64_t row; /* length of the innermost axis */
} walk;

void gr_broadcast_strides(const gr_tensor *x, gr_shape shape, int64_t stride[GR_MAX_DIMS]) {
    int front = shape.ndim - x->shape.ndim;
    for (int i = 0; i < shape.ndim; i++) {
        bool own = i >= front && x->shape.dim[i - front] == shape.dim[i];
        stride[i] = own ? x->stride[i - front] : 0;
    }
}

/* Can axis i be walked as a part of axis i + 1? */
static bool mergeable(const walk *w, int i) {
    for (int k = 0; k < w->operands; k++)
        if (w->stride[k][i] != w->stride[k][i + 1] * w->shape.dim[i + 1]) return false;
    return true;
}

/* Merges neighbouring axes and drops those of size 1, so that contiguous tensors become one long row. */
static void simplify(walk *w) {
    int last = -1;
    for (int i = 0; i < w->shape.ndim; i++) {
        if (w->shape.dim[i] == 1) continue;
        last++;
        w->shape.dim[last] = w->shape.dim[i];
        for (int k = 0; k < w->operands; k++) w->stride[k][last] = w->stride[k][i];
    }
    w->shape.ndim = last + 1;
    for (int i = w->shape.ndim - 2; i >= 0; i--) {
        if (!mergeable(w, i)) continue;
        w->shape.dim[i] *= w->shape.dim[i + 1];
        for (int k = 0; k < w->operands; k++) w->stride[k][i] = w->stride[k][i + 1];
        for (int j = i + 1; j < w->shape.ndim - 1; j++) {
            w->shape.dim[j] = w->shape.dim[j + 1];
            for (int k = 0; k < w->operands; k++) w->stride[k][j] = w->stride[k][j + 1];
        }
        w->shape.ndim--;
    }
    if (w->shape.ndim == 0) w->shape = GR_SHAPE(1);
    w->row = w->shape.dim[w->shape.ndim - 1];
}

/* Elements [begin, end) in row-major order: whole rows, and parts of rows at the two ends. */
static void run_elements(size_t begin, size_t end, int thread, void *arg) {
    (void)thread;
    const walk *w = arg;
    int inner = w->shape.ndim - 1;
    for (int64_t at = (int64_t)begin; at < (int64_t)end;) {
        int64_t rest = at, offset[GR_ROW_OPERANDS] = {0}, column = at % w->row;
        for (int i = inner; i >= 0; i--) {
            for (int k = 0; k < w->operands; k++) offset[k] += rest % w->shape.dim[i] * w->stride[k][i];
            rest /= w->shape.dim[i];
        }
        int64_t n = w->row - column < (int64_t)end - at ? w->row - column : (int64_t)end - at;
        gr_row row = {.n = (size_t)n, .t = w->t};
        for (int k = 0; k < w->operands; k++) {
            row.p[k] = w->base[k] + offset[k];
            row.s[k] = (ptrdiff_t)w->stride[k][inner];
        }
        w->map(&row);
        at += n;
    }
}

void gr_run_map(gr_map_name map, double t, gr_tensor *y, int count, gr_tensor *const *operands) {
    assert(count < GR_ROW_OPERANDS);
    int64_t n = gr_shape_numel(y->shape);
    if (n == 0 || !gr_ok(y->ctx)) return;
    walk w = {.map = y->ctx->kernels->map[map], .t = (gr_real)t, .operands = count + 1, .shape = y->shape};
    w.base[0] = y->data;
    gr_broadcast_strides(y, y->shape, w.stride[0]);
    for (int k = 0; k < count; k++) {
        w.base[k + 1] = operands[k]->data;
        gr_broadcast_strides(operands[k], y->shape, w.stride[k + 1]);
    }
    simplify(&w);
    gr_parallel_for((size_t)n, GR_COST_OF_EXP, run_elements, &w);
}
