/* Layer and RMS normalisation along the last axis.
 *
 * h = (x - mean) rstd, rstd = 1 / sqrt(var + eps), y = h w + b. With g = dy w:
 * dx = rstd (g - mean(g) - h mean(g h)), dw = sum over rows of dy h, db = sum over rows of dy.
 * RMSNorm is the same with mean 0 and var = mean x^2, and mean(g) left out. */
#include "tape.h"

#include "../tensor/parallel.h"

#include <math.h>

typedef struct statistics {
    gr_center mean;
    gr_real rstd;
} statistics;

typedef struct norm_task {
    const gr_kernels *kernels;
    size_t n;
    bool center;
    double eps;
    const gr_real *x, *w, *b, *dy;
    gr_real *out; /* y, dx or the terms of dw */
    statistics *of_row;
} norm_task;

/* y = (x - mean) rstd w + b */
static void norm_row(size_t row, void *arg) {
    const norm_task *t = arg;
    const gr_real *x = t->x + row * t->n;
    gr_center mean = t->center ? gr_center_of(t->kernels, t->n, x) : gr_origin;
    gr_real variance = t->kernels->sum_squares(t->n, x, mean, 1) / (gr_real)t->n;
    gr_real rstd = (gr_real)(1 / sqrt((double)variance + t->eps));
    t->of_row[row] = (statistics){mean, rstd};
    t->kernels->normalize(t->n, t->out + row * t->n, x, mean, rstd, t->w, t->b);
}

/* dx += rstd (g - mean(g) - h mean(g h)) */
static void norm_dx_row(size_t row, void *arg) {
    const norm_task *t = arg;
    const statistics *s = &t->of_row[row];
    size_t i = row * t->n;
    t->kernels->normalize_dx(t->n, t->out + i, t->dy + i, t->x + i, s->mean, s->rstd, t->w, t->center);
}

/* The terms of dw: dy h */
static void norm_dw_row(size_t row, void *arg) {
    const norm_task *t = arg;
    const statistics *s = &t->of_row[row];
    size_t i = row * t->n;
    t->kernels->normalize_dw(t->n, t->out + i, t->dy + i, t->x + i, s->mean, s->rstd);
}

static void norm_backward(gr_node *n) {
    norm_task t = *(const norm_task *)n->saved;
    t.dy = n->out->grad->data;
    size_t rows = (size_t)gr_numel(n->out) / t.n;
    gr_tensor *dx = gr_wanted_gradient(n, 0);
    if (!gr_is_inert(dx)) {
        t.out = dx->data;
        gr_parallel_rows(rows, GR_COST_OF_TERM * t.n, norm_dx_row, &t);
    }
    gr_tensor *dw = gr_wanted_gradient(n, 1), *db = gr_wanted_gradient(n, 2);
    if (!gr_is_inert(dw)) {
        gr_tensor *terms = gr_pool_take(dw->ctx, n->out->shape);
        if (gr_is_inert(terms)) return;
        t.out = terms->data;
        gr_parallel_rows(rows, GR_COST_OF_TERM * t.n, norm_dw_row, &t);
        gr_sum_to(dw, terms, true);
        gr_pool_give(terms);
    }
    if (!gr_is_inert(db)) gr_sum_to(db, n->out->grad, true);
}

const gr_op gr_op_layernorm = {.name = "layernorm",
                               .operands = 3,
                               .label = {"x", "weight", "bias"},
                               .backward = norm_backward,
                               .optional = 1 << 1 | 1 << 2};
const gr_op gr_op_rmsnorm = {
    .name = "rmsnorm", .operands = 2, .label = {"x", "weight"}, .backward = norm_backward, .optional = 1 << 1};

static const double default_eps = 1e-5; /* PyTorch's, for both */

static gr_tensor *normalize(const gr_op *op, int count, gr_tensor *const *in, double eps) {
    gr_tensor *bad = gr_check(op, count, in);
    if (bad) return bad;
    gr_tensor *x = in[0];
    gr_context *ctx = x->ctx;
    int64_t n = gr_dim(x, -1);
    if (n == 0) return gr_refuse(op, count, in, "the last axis has no elements to normalise");
    if (!(eps >= 0)) return gr_refuse(op, count, in, "eps is %g; it must not be negative", eps);
    if (eps > 0 && 1 / sqrt(eps) > (double)GR_REAL_MAX) /* times 0 it would be NaN */
        return gr_refuse(op, count, in, "eps is %g; 1 / sqrt(eps) must be finite", eps);
    for (int i = 1; i < count; i++)
        if (in[i] && (in[i]->shape.ndim != 1 || in[i]->shape.dim[0] != n))
            return gr_refuse(op, count, in, "%s must have the size of the last axis", op->label[i]);
    norm_task t = {
        .kernels = ctx->kernels, .n = (size_t)n, .center = op == &gr_op_layernorm, .eps = eps > 0 ? eps : default_eps};
    gr_tensor *y = gr_new(ctx, op->name, false, x->shape), *rows = gr_contiguous(x);
    const int64_t row_count = gr_numel(x) / n;
    t.of_row = gr_alloc_array(ctx, false, row_count, sizeof *t.of_row);
    gr_tensor *weight = in[1] ? gr_contiguous(in[1]) : NULL;
    gr_tensor *bias = count > 2 && in[2] ? gr_contiguous(in[2]) : NULL;
    if (!gr_ok(ctx)) return gr_inert(ctx);
    t.x = rows->data, t.out = y->data;
    t.w = weight ? weight->data : NULL, t.b = bias ? bias->data : NULL;
    gr_parallel_rows((size_t)row_count, GR_COST_OF_TERM * t.n, norm_row, &t);
    return gr_record(op, y, count, in, &t, sizeof t);
}

gr_tensor *gr_layernorm(gr_tensor *x, gr_tensor *weight, gr_tensor *bias, double eps) {
    return normalize(&gr_op_layernorm, 3, (gr_tensor *[]){x, weight, bias}, eps);
}

gr_tensor *gr_rmsnorm(gr_tensor *x, gr_tensor *weight, double eps) {
    return normalize(&gr_op_rmsnorm, 2, (gr_tensor *[]){x, weight}, eps);
}
