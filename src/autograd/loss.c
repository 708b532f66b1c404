/* Losses.
 *
 * Cross-entropy of a row of logits x with target t: -log softmax(x)_t = logsumexp(x) - x_t, averaged over the N rows
 * whose target is not ignored; dx = (softmax(x) - [i = t]) / N. Mean squared error: mean (x - target)^2; dx = 2 (x -
 * target) / n, d target = -dx. */
#include "tape.h"

#include "../tensor/parallel.h"

#include <string.h>

typedef struct entropy_task {
    const gr_kernels *kernels;
    size_t classes;
    const gr_real *logits;
    const int32_t *targets;
    gr_real *lse, *loss, *dx; /* a number per row; a row per row */
    int64_t counted;          /* rows that are not ignored */
    gr_real factor;
} entropy_task;

/* logsumexp(x) - x_t */
static void entropy_row(size_t row, void *arg) {
    const entropy_task *t = arg;
    const gr_real *x = t->logits + row * t->classes;
    bool ignored = t->targets[row] == GR_IGNORE;
    t->lse[row] = ignored ? 0 : t->kernels->logsumexp(t->classes, x);
    t->loss[row] = ignored ? 0 : t->lse[row] - x[t->targets[row]];
}

/* dx += factor (e^(x - lse) - [i = t]) */
static void entropy_dx_row(size_t row, void *arg) {
    const entropy_task *t = arg;
    size_t i = row * t->classes;
    if (t->targets[row] != GR_IGNORE)
        t->kernels->cross_entropy_dx(t->classes, t->dx + i, t->logits + i, t->lse[row], t->factor,
                                     (size_t)t->targets[row]);
}

static void cross_entropy_backward(gr_node *n) {
    entropy_task t = *(const entropy_task *)n->saved;
    if (t.counted == 0) return;
    gr_tensor *dx = gr_wanted_gradient(n, 0);
    if (gr_is_inert(dx)) return;
    t.dx = dx->data;
    t.factor = (gr_real)((double)n->out->grad->data[0] / (double)t.counted);
    gr_parallel_rows((size_t)gr_numel(dx) / t.classes, GR_COST_OF_EXP * t.classes, entropy_dx_row, &t);
}

static void mse_backward(gr_node *n) {
    double t = 2 / (double)gr_numel(n->in[0]);
    for (int i = 0; i < 2; i++) {
        if (!gr_wants(n, i)) continue;
        gr_tensor *dx = gr_gradient(n->in[i]); /* dy is one number, broadcast */
        if (!gr_is_inert(dx))
            gr_run_map(GR_MAP_variance_dx, t, dx, 3, (gr_tensor *[]){n->out->grad, n->in[i], n->in[1 - i]});
    }
}

const gr_op gr_op_cross_entropy = {
    .name = "cross_entropy", .operands = 1, .label = {"logits"}, .backward = cross_entropy_backward};
const gr_op gr_op_mse = {.name = "mse", .operands = 2, .label = {"x", "target"}, .backward = mse_backward};

gr_tensor *gr_cross_entropy(gr_tensor *logits, gr_tokens targets) {
    const gr_op *op = &gr_op_cross_entropy;
    gr_tensor *bad = gr_check(op, 1, &logits);
    if (bad) return bad;
    gr_context *ctx = logits->ctx;
    int64_t classes = gr_dim(logits, -1), rows = classes > 0 ? gr_numel(logits) / classes : 0;
    if (classes == 0) return gr_refuse(op, 1, &logits, "the last axis must hold the classes");
    if (!targets.ids && rows > 0) return gr_refuse(op, 1, &logits, "targets are NULL");
    if (targets.batch < 0 || targets.time < 0 || (targets.time > 0 && targets.batch > INT64_MAX / targets.time) ||
        targets.batch * targets.time != rows)
        return gr_refuse(op, 1, &logits, "%lld rows need as many targets, not (%lld, %lld)", (long long)rows,
                         (long long)targets.batch, (long long)targets.time);
    entropy_task t = {.kernels = ctx->kernels, .classes = (size_t)classes};
    for (int64_t i = 0; i < rows; i++) {
        int32_t id = targets.ids[i];
        if (id != GR_IGNORE && (id < 0 || id >= classes))
            return gr_refuse(op, 1, &logits, "target %d at position %lld; valid are 0 to %lld, or %d to ignore",
                             (int)id, (long long)i, (long long)classes - 1, GR_IGNORE);
        t.counted += id != GR_IGNORE;
    }
    gr_tensor *x = gr_contiguous(logits), *y = gr_new(ctx, op->name, false, GR_SCALAR);
    int32_t *ids = gr_alloc_array(ctx, false, rows, sizeof *ids);
    t.lse = gr_alloc_array(ctx, false, rows, sizeof *t.lse);
    t.loss = gr_alloc_array(ctx, false, rows, sizeof *t.loss);
    if (!gr_ok(ctx)) return gr_inert(ctx);
    if (rows > 0) memcpy(ids, targets.ids, (size_t)rows * sizeof *ids);
    t.targets = ids, t.logits = x->data;
    gr_parallel_rows((size_t)rows, GR_COST_OF_EXP * t.classes, entropy_row, &t);
    y->data[0] = t.counted > 0 ? ctx->kernels->sum((size_t)rows, t.loss, 0) / (gr_real)t.counted : 0;
    return gr_record(op, y, 1, &logits, &t, sizeof t);
}

gr_tensor *gr_mse(gr_tensor *x, gr_tensor *target) {
    gr_tensor *in[] = {x, target}, *bad = gr_check(&gr_op_mse, 2, in);
    if (bad) return bad;
    if (!gr_shape_equal(x->shape, target->shape)) return gr_refuse(&gr_op_mse, 2, in, "shapes differ");
    int64_t n = gr_numel(x);
    if (n == 0) return gr_refuse(&gr_op_mse, 2, in, "nothing to take the mean of");
    gr_tensor *difference = gr_new(x->ctx, "mse", false, x->shape), *y = gr_new(x->ctx, "mse", false, GR_SCALAR);
    if (gr_is_inert(difference) || gr_is_inert(y)) return gr_inert(x->ctx);
    gr_run_map(GR_MAP_sub, 0, difference, 2, in);
    y->data[0] = x->ctx->kernels->sum_squares((size_t)n, difference->data, gr_origin, 1) / (gr_real)n;
    return gr_record(&gr_op_mse, y, 2, in, NULL, 0);
}
