/* Layer and RMS normalisation along the last axis.
 *
 * h = (x - mean) rstd, rstd = 1 / sqrt(var + eps), y = h w + b. With g = dy w:
 * dx = rstd (g - mean(g) - h mean(g h)), dw = sum over rows of dy h, db = sum over rows of dy.
 * RMSNorm is the same with mean 0 and var = mean x^2, and mean(g) left out. */
#include "tape.h"

#include "../tensor/parallel.h"

#include <math.h>

typedef struct statistics {
    gr_real mean, rstd;
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

enum { COST_OF_A_TERM = 16 };

static void norm_rows(size_t begin, size_t end, int thread, void *arg) {
    (void)thread;
    const norm_task *t = arg;
    const gr_kernels *k = t->kernels;
    for (size_t row = begin; row < end; row++) {
        const gr_real *x = t->x + row * t->n;
        /* around the first element: the mean of equal numbers is that number, and y exactly b */
        gr_real mean = t->center ? x[0] + k->sum(t->n, x, x[0]) / (gr_real)t->n : 0;
        gr_real variance = k->sum_squares(t->n, x, mean, 1) / (gr_real)t->n;
        statistics *s = &t->of_row[row];
        *s = (statistics){mean, (gr_real)(1 / sqrt((double)variance + t->eps))};
        k->normalize(t->n, t->out + row * t->n, x, s->mean, s->rstd, t->w, t->b);
    }
}

static void norm_dx_rows(size_t begin, size_t end, int thread, void *arg) {
    (void)thread;
    const norm_task *t = arg;
    for (size_t row = begin, i = begin * t->n; row < end; row++, i += t->n)
        t->kernels->normalize_dx(t->n, t->out + i, t->dy + i, t->x + i, t->of_row[row].mean, t->of_row[row].rstd, t->w,
                                 t->center);
}

static void norm_dw_rows(size_t begin, size_t end, int thread, void *arg) {
    (void)thread;
    const norm_task *t = arg;
    for (size_t row = begin, i = begin * t->n; row < end; row++, i += t->n)
        t->kernels->normalize_dw(t->n, t->out + i, t->dy + i, t->x + i, t->of_row[row].mean, t->of_row[row].rstd);
}

static void norm_backward(gr_node *n) {
    norm_task t = *(const norm_task *)n->saved;
    t.dy = n->out->grad->data;
    size_t rows = (size_t)gr_numel(n->out) / t.n;
    gr_tensor *dx = gr_wants(n, 0) ? gr_gradient(n->in[0]) : NULL;
    if (!gr_is_inert(dx)) {
        t.out = dx->data;
        gr_parallel_for(rows, COST_OF_A_TERM * t.n, norm_dx_rows, &t);
    }
    gr_tensor *dw = gr_wants(n, 1) ? gr_gradient(n->in[1]) : NULL, *db = gr_wants(n, 2) ? gr_gradient(n->in[2]) : NULL;
    if (!gr_is_inert(dw)) {
        gr_tensor *terms = gr_pool_take(dw->ctx, n->out->shape);
        if (gr_is_inert(terms)) return;
        t.out = terms->data;
        gr_parallel_for(rows, COST_OF_A_TERM * t.n, norm_dw_rows, &t);
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
    for (int i = 1; i < count; i++)
        if (in[i] && (in[i]->shape.ndim != 1 || in[i]->shape.dim[0] != n))
            return gr_refuse(op, count, in, "%s must have the size of the last axis", op->label[i]);
    norm_task t = {
        .kernels = ctx->kernels, .n = (size_t)n, .center = op == &gr_op_layernorm, .eps = eps > 0 ? eps : default_eps};
    gr_tensor *y = gr_new(ctx, op->name, false, x->shape), *rows = gr_contiguous(x);
    size_t count_rows = (size_t)gr_numel(x) / t.n;
    t.of_row = gr_alloc(ctx, false, count_rows * sizeof *t.of_row);
    const gr_real **vector[] = {&t.w, &t.b};
    for (int i = 1; i < count && gr_ok(ctx); i++)
        if (in[i]) *vector[i - 1] = gr_contiguous(in[i])->data;
    if (!gr_ok(ctx)) return gr_inert(ctx);
    t.x = rows->data, t.out = y->data;
    gr_parallel_for(count_rows, COST_OF_A_TERM * t.n, norm_rows, &t);
    return gr_record(op, y, count, in, &t, sizeof t);
}

gr_tensor *gr_layernorm(gr_tensor *x, gr_tensor *weight, gr_tensor *bias, double eps) {
    return normalize(&gr_op_layernorm, 3, (gr_tensor *[]){x, weight, bias}, eps);
}

gr_tensor *gr_rmsnorm(gr_tensor *x, gr_tensor *weight, double eps) {
    return normalize(&gr_op_rmsnorm, 2, (gr_tensor *[]){x, weight}, eps);
}
