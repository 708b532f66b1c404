/* Reductions over a set of axes. Forward brings the axes to the end, so that each result is made of one contiguous row;
 * backward is a map over x in which the results are broadcast back. */
#include "tape.h"

#include "../tensor/parallel.h"

#include <math.h>

/* What backward needs: the results under the shape with the reduced axes kept as 1, so that they broadcast against x.
 */
typedef struct reduced {
    gr_shape kept;
    unsigned set;
    double t;             /* 1/n, 2/n */
    gr_tensor *mean;      /* of variance, shape kept */
    const size_t *argmax; /* of max, the place in each row */
} reduced;

static gr_tensor *under(gr_tensor *x, gr_shape shape) {
    int64_t stride[GR_MAX_DIMS];
    gr_shape_strides(shape, stride);
    return gr_view(x, shape, stride, 0); /* dy and y are contiguous */
}

static void add_back(gr_node *n, gr_map_name map, double t, gr_tensor *c) {
    const reduced *r = n->saved;
    if (!gr_wants(n, 0)) return;
    gr_tensor *dx = gr_gradient(n->in[0]), *dy = under(n->out->grad, r->kept);
    if (gr_ok(n->out->ctx)) gr_run_map(map, t, dx, c ? 3 : 1, (gr_tensor *[]){dy, n->in[0], c});
}

static void sum_backward(gr_node *n) { add_back(n, GR_MAP_plus, 0, NULL); }
static void mean_backward(gr_node *n) { add_back(n, GR_MAP_plus_scaled, ((const reduced *)n->saved)->t, NULL); }
static void variance_backward(gr_node *n) {
    const reduced *r = n->saved;
    add_back(n, GR_MAP_variance_dx, r->t, r->mean);
}
static void logsumexp_backward(gr_node *n) {
    add_back(n, GR_MAP_logsumexp_dx, 0, under(n->out, ((const reduced *)n->saved)->kept));
}
static void norm_backward(gr_node *n) {
    add_back(n, GR_MAP_norm_dx, 0, under(n->out, ((const reduced *)n->saved)->kept));
}

/* dx at the first maximum of each row. Row and place are numbers in the mixed radix of the kept and of the reduced
 * axes. */
static void max_backward(gr_node *n) {
    const reduced *r = n->saved;
    if (!gr_wants(n, 0)) return;
    gr_tensor *dx = gr_gradient(n->in[0]);
    if (gr_is_inert(dx)) return;
    for (int64_t row = 0; row < gr_numel(n->out); row++) {
        int64_t rest[2] = {row, (int64_t)r->argmax[row]}, offset = 0;
        for (int i = dx->shape.ndim - 1; i >= 0; i--) {
            int64_t *part = &rest[r->set >> i & 1];
            offset += *part % dx->shape.dim[i] * dx->stride[i];
            *part /= dx->shape.dim[i];
        }
        dx->data[offset] += n->out->grad->data[row];
    }
}

const gr_op gr_op_sum = {.name = "sum", .operands = 1, .label = {"x"}, .backward = sum_backward};
const gr_op gr_op_mean = {.name = "mean", .operands = 1, .label = {"x"}, .backward = mean_backward};
const gr_op gr_op_max = {.name = "max", .operands = 1, .label = {"x"}, .backward = max_backward};
const gr_op gr_op_variance = {.name = "variance", .operands = 1, .label = {"x"}, .backward = variance_backward};
const gr_op gr_op_logsumexp = {.name = "logsumexp", .operands = 1, .label = {"x"}, .backward = logsumexp_backward};
const gr_op gr_op_norm = {.name = "norm", .operands = 1, .label = {"x"}, .backward = norm_backward};

/* One number from each row; side takes the mean, or the place of the maximum. */
typedef gr_real row_function(const gr_kernels *k, size_t n, const gr_real *x, gr_real *mean, size_t *argmax);

static gr_real max_of(const gr_kernels *k, size_t n, const gr_real *x, gr_real *mean, size_t *argmax) {
    (void)mean;
    return k->max(n, x, argmax);
}

static gr_real mean_of(const gr_kernels *k, size_t n, const gr_real *x, gr_real *mean, size_t *argmax) {
    (void)mean, (void)argmax;
    return k->sum(n, x, 0) / (gr_real)n;
}

/* Around the first element, so that the mean of equal numbers is that number, and their variance 0, to the last bit. */
static gr_real variance_of(const gr_kernels *k, size_t n, const gr_real *x, gr_real *mean, size_t *argmax) {
    (void)argmax;
    *mean = x[0] + k->sum(n, x, x[0]) / (gr_real)n;
    return k->sum_squares(n, x, *mean, 1) / (gr_real)n;
}

static gr_real logsumexp_of(const gr_kernels *k, size_t n, const gr_real *x, gr_real *mean, size_t *argmax) {
    (void)mean, (void)argmax;
    return k->logsumexp(n, x);
}

/* Of 1 / x: that of a denormal x may be infinite. */
#ifdef GR_DOUBLE
static const gr_real most_scale = 0x1p1022;
#else
static const gr_real most_scale = 0x1p126f;
#endif

/* Squares that overflow or vanish are avoided by dividing by the largest number first. */
static gr_real norm_of(const gr_kernels *k, size_t n, const gr_real *x, gr_real *mean, size_t *argmax) {
    (void)mean, (void)argmax;
    const gr_real tiny = GR_R(1e-30), huge = GR_R(1e30); /* well inside the range of float */
    gr_real square = k->sum_squares(n, x, 0, 1), largest = 0;
    if (square != square || (square > tiny && square < huge)) return (gr_real)sqrt((double)square);
    for (size_t i = 0; i < n; i++)
        largest = (gr_real)fabs((double)x[i]) > largest ? (gr_real)fabs((double)x[i]) : largest;
    if (largest == 0 || largest - largest != 0) return largest; /* 0 or infinite */
    gr_real scale = 1 / largest < most_scale ? 1 / largest : most_scale;
    return (gr_real)sqrt((double)k->sum_squares(n, x, 0, scale)) / scale;
}

typedef struct row_task {
    const gr_kernels *kernels;
    row_function *of;
    const gr_real *x;
    gr_real *y, *mean;
    size_t n, *argmax;
} row_task;

static void run_rows(size_t begin, size_t end, int thread, void *arg) {
    (void)thread;
    const row_task *t = arg;
    for (size_t i = begin; i < end; i++)
        t->y[i] =
            t->of(t->kernels, t->n, t->x + i * t->n, t->mean ? &t->mean[i] : NULL, t->argmax ? &t->argmax[i] : NULL);
}

enum { COST_OF_A_TERM = 8 };

/* The result of op over rows of x; false after an error. Results for no elements are refused unless empty_is_fine. */
static gr_tensor *reduce(const gr_op *op, row_function *of, gr_tensor *x, gr_axes axes, double weight,
                         bool empty_is_fine) {
    gr_tensor *bad = gr_check(op, 1, &x);
    if (bad) return bad;
    reduced r = {0};
    if (!gr_shape_axes(x->shape, axes, &r.set)) return gr_refuse(op, 1, &x, "an axis is out of range or named twice");
    r.kept = gr_shape_reduced(x->shape, r.set, true);
    gr_tensor *y = gr_new(x->ctx, op->name, false, gr_shape_reduced(x->shape, r.set, axes.keep));
    if (gr_is_inert(y)) return y;
    int64_t n = 1;
    for (int i = 0; i < x->shape.ndim; i++) n *= r.set >> i & 1 ? x->shape.dim[i] : 1;
    if (n == 0 && !empty_is_fine) return gr_refuse(op, 1, &x, "nothing to take the %s of", op->name);
    r.t = n > 0 ? weight / (double)n : 0;
    if (!of) { /* the sum has a way of its own, which does not move the axes */
        gr_tensor *kept = under(y, r.kept);
        if (!gr_is_inert(kept)) gr_sum_to(kept, x, false);
        return gr_record(op, y, 1, &x, &r, sizeof r);
    }
    gr_tensor *rows = gr_as_rows(x, r.set);
    if (gr_is_inert(rows)) return rows;
    row_task t = {x->ctx->kernels, of, rows->data, y->data, NULL, (size_t)n, NULL};
    if (of == variance_of) r.mean = gr_new(x->ctx, op->name, false, r.kept), t.mean = r.mean->data;
    if (of == max_of) r.argmax = t.argmax = gr_alloc(x->ctx, false, (size_t)gr_numel(y) * sizeof *t.argmax);
    if (!gr_ok(x->ctx)) return gr_inert(x->ctx);
    gr_parallel_for((size_t)gr_numel(y), COST_OF_A_TERM * t.n, run_rows, &t);
    return gr_record(op, y, 1, &x, &r, sizeof r);
}

gr_tensor *gr_sum(gr_tensor *x, gr_axes axes) { return reduce(&gr_op_sum, NULL, x, axes, 1, true); }
gr_tensor *gr_mean(gr_tensor *x, gr_axes axes) { return reduce(&gr_op_mean, mean_of, x, axes, 1, false); }
gr_tensor *gr_max(gr_tensor *x, gr_axes axes) { return reduce(&gr_op_max, max_of, x, axes, 1, false); }
gr_tensor *gr_variance(gr_tensor *x, gr_axes axes) { return reduce(&gr_op_variance, variance_of, x, axes, 2, false); }
gr_tensor *gr_logsumexp(gr_tensor *x, gr_axes axes) { return reduce(&gr_op_logsumexp, logsumexp_of, x, axes, 1, true); }
gr_tensor *gr_norm(gr_tensor *x, gr_axes axes) { return reduce(&gr_op_norm, norm_of, x, axes, 1, true); }
