/* Softmax along the last axis, plain, logarithmic, and scaled and masked in one pass.
 *
 * y_i = e^(x_i - m) / sum_j e^(x_j - m), m = max x. From dy_i / dx_j = y_i ([i = j] - y_j) follows
 * dx = y (dy - sum_j y_j dy_j): the whole Jacobian is never needed. */
#include "tape.h"

#include "../tensor/parallel.h"

#include <math.h>

typedef struct rows_task {
    const gr_kernels *kernels;
    size_t n;
    gr_real *out;
    const gr_real *x, *dy;
    const gr_tensor *mask; /* NULL, or of x's shape with contiguous rows; leading axes may have stride 0 */
    gr_real scale;
} rows_task;

/* y = softmax(scale x where mask != 0) */
static void softmax_row(size_t row, void *arg) {
    const rows_task *t = arg;
    size_t i = row * t->n;
    const gr_real *mask = t->mask ? t->mask->data + gr_shape_offset(t->mask->shape, t->mask->stride, (int64_t)i) : NULL;
    t->kernels->softmax(t->n, t->out + i, t->x + i, mask, t->scale);
}

/* dx += scale y (dy - sum y dy) */
static void softmax_dx_row(size_t row, void *arg) {
    const rows_task *t = arg;
    size_t i = row * t->n;
    t->kernels->softmax_dx(t->n, t->out + i, t->x + i, t->dy + i, t->scale);
}

/* y = x - logsumexp(x) */
static void log_softmax_row(size_t row, void *arg) {
    const rows_task *t = arg;
    size_t i = row * t->n;
    t->kernels->log_softmax(t->n, t->out + i, t->x + i);
}

/* dx += dy - e^y sum dy */
static void log_softmax_dx_row(size_t row, void *arg) {
    const rows_task *t = arg;
    size_t i = row * t->n;
    t->kernels->log_softmax_dx(t->n, t->out + i, t->x + i, t->dy + i);
}

static void for_rows(gr_row_function *run, rows_task *t, const gr_tensor *x) {
    t->n = x->shape.ndim ? (size_t)gr_dim(x, -1) : 1;
    if (t->n > 0) gr_parallel_rows((size_t)gr_numel(x) / t->n, GR_COST_OF_EXP * t->n, run, t);
}

static void rows_backward(gr_node *n, gr_row_function *run, double scale) {
    gr_tensor *dx = gr_wanted_gradient(n, 0);
    if (gr_is_inert(dx)) return;
    rows_task t = {.kernels = dx->ctx->kernels,
                   .out = dx->data,
                   .x = n->out->data,
                   .dy = n->out->grad->data,
                   .scale = (gr_real)scale};
    for_rows(run, &t, dx);
}

static void softmax_backward(gr_node *n) { rows_backward(n, softmax_dx_row, 1); }
static void log_softmax_backward(gr_node *n) { rows_backward(n, log_softmax_dx_row, 1); }
static void masked_softmax_backward(gr_node *n) { rows_backward(n, softmax_dx_row, *(const double *)n->saved); }

const gr_op gr_op_softmax = {.name = "softmax", .operands = 1, .label = {"x"}, .backward = softmax_backward};
const gr_op gr_op_log_softmax = {
    .name = "log_softmax", .operands = 1, .label = {"x"}, .backward = log_softmax_backward};
const gr_op gr_op_masked_softmax = {.name = "masked_softmax",
                                    .operands = 2,
                                    .label = {"scores", "mask"},
                                    .backward = masked_softmax_backward,
                                    .constant = 1 << 1,
                                    .optional = 1 << 1};

static gr_tensor *along_rows(const gr_op *op, gr_row_function *run, gr_tensor *x, const gr_tensor *mask, double scale) {
    gr_tensor *y = gr_new(x->ctx, op->name, false, x->shape), *rows = gr_contiguous(x);
    if (gr_is_inert(y) || gr_is_inert(rows)) return gr_inert(x->ctx);
    rows_task t = {.kernels = x->ctx->kernels, .out = y->data, .x = rows->data, .mask = mask, .scale = (gr_real)scale};
    for_rows(run, &t, x);
    return y;
}

gr_tensor *gr_softmax(gr_tensor *x) {
    const gr_op *op = &gr_op_softmax;
    gr_tensor *bad = gr_check(op, 1, &x);
    return bad ? bad : gr_record(op, along_rows(op, softmax_row, x, NULL, 1), 1, &x, NULL, 0);
}

gr_tensor *gr_log_softmax(gr_tensor *x) {
    const gr_op *op = &gr_op_log_softmax;
    gr_tensor *bad = gr_check(op, 1, &x);
    return bad ? bad : gr_record(op, along_rows(op, log_softmax_row, x, NULL, 1), 1, &x, NULL, 0);
}

gr_tensor *gr_masked_softmax(gr_tensor *scores, gr_tensor *mask, double scale) {
    const gr_op *op = &gr_op_masked_softmax;
    gr_tensor *in[] = {scores, mask}, *bad = gr_check(op, 2, in);
    if (bad) return bad;
    if (!(fabs(scale) <= (double)GR_REAL_MAX)) return gr_refuse(op, 2, in, "scale is %g", scale);
    gr_shape common = scores->shape;
    if (mask && (!gr_shape_broadcast(scores->shape, mask->shape, &common) || !gr_shape_equal(common, scores->shape)))
        return gr_refuse(op, 2, in, "the mask does not broadcast to the scores");
    gr_tensor *seen = mask ? gr_expand(gr_detach(mask), scores->shape) : NULL;
    if (mask && gr_dim(seen, -1) > 1 && gr_stride(seen, -1) != 1) seen = gr_contiguous(seen);
    if (mask && gr_is_inert(seen)) return seen;
    gr_tensor *y = along_rows(op, softmax_row, scores, seen, scale);
    return gr_record(op, y, 2, in, &scale, sizeof scale);
}
