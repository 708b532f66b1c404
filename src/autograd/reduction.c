/* Reductions over a set of axes. Forward brings the axes to the end, so that each result is made of one contiguous row;
 * backward is a map over x against which dy is broadcast back. */
#include "tape.h"

#include "../tensor/parallel.h"

#include <math.h>

/* One number from a row of n. */
typedef gr_real row_function(const gr_kernels *k, size_t n, const gr_real *x);

typedef struct rule {
    row_function *of_row; /* NULL: the sum */
    gr_map_name gradient; /* the map that adds to dx */
    const char *reads;    /* by it, after dy, a letter for each: x, y, m the mean of x; NULL: nothing */
    double weight;        /* its parameter t is weight / n */
    bool empty_is_fine;   /* of no numbers: 0, or -inf; else an error */
} rule;

typedef struct reduced {
    unsigned set;  /* the axes */
    gr_shape kept; /* of the result with those axes as 1, so that it broadcasts against x */
    double t;
} reduced;

/* -- A row --------------------------------------------------------------------------------------------------------- */

static gr_real max_of(const gr_kernels *k, size_t n, const gr_real *x) {
    size_t first;
    return k->max(n, x, &first);
}

static gr_real mean_of(const gr_kernels *k, size_t n, const gr_real *x) { return k->sum(n, x, 0) / (gr_real)n; }

/* sum (x - mean)^2 / n */
static gr_real variance_of(const gr_kernels *k, size_t n, const gr_real *x) {
    return k->sum_squares(n, x, gr_center_of(k, n, x), 1) / (gr_real)n;
}

static gr_real logsumexp_of(const gr_kernels *k, size_t n, const gr_real *x) { return k->logsumexp(n, x); }

/* sqrt(sum x^2). Where squares would overflow or lose their digits, x is divided by its largest number first. */
static gr_real norm_of(const gr_kernels *k, size_t n, const gr_real *x) {
    const gr_real least = GR_REAL_MIN / GR_REAL_EPSILON; /* what denormal squares lose is nothing beside it */
    gr_real square = k->sum_squares(n, x, gr_origin, 1), largest = 0;
    if (square != square || (square >= least && square <= GR_REAL_MAX)) return (gr_real)sqrt((double)square);
    for (size_t i = 0; i < n; i++) {
        gr_real size = (gr_real)fabs((double)x[i]);
        largest = size > largest ? size : largest;
    }
    if (largest == 0 || largest > GR_REAL_MAX) return largest;
    gr_real scale = 1 / (largest > GR_REAL_MIN ? largest : GR_REAL_MIN); /* 1 / a denormal may be infinite */
    return (gr_real)sqrt((double)k->sum_squares(n, x, gr_origin, scale)) / scale;
}

typedef struct row_task {
    const gr_kernels *kernels;
    row_function *of_row;
    size_t n;
    const gr_real *x;
    gr_real *y;
} row_task;

static void reduce_row(size_t row, void *arg) {
    const row_task *t = arg;
    t->y[row] = t->of_row(t->kernels, t->n, t->x + row * t->n);
}

/* y, contiguous, from the rows that the axes of the set make of x. */
static void reduce_rows(row_function *of_row, gr_tensor *y, gr_tensor *x, unsigned set) {
    gr_tensor *rows = gr_as_rows(x, set);
    if (gr_is_inert(rows) || gr_is_inert(y)) return;
    row_task t = {x->ctx->kernels, of_row, (size_t)rows->shape.dim[1], rows->data, y->data};
    gr_parallel_rows((size_t)rows->shape.dim[0], GR_COST_OF_TERM * t.n, reduce_row, &t);
}

/* -- Backward ------------------------------------------------------------------------------------------------------ */

static gr_tensor *means(gr_tensor *x, const reduced *r) {
    gr_tensor *mean = gr_new(x->ctx, "mean", false, r->kept);
    reduce_rows(gr_mean_of, mean, x, r->set);
    return mean;
}

static void reduce_backward(gr_node *n) {
    const rule *how = n->op->rule;
    const reduced *r = n->saved;
    if (!gr_wants(n, 0)) return;
    gr_tensor *x = n->in[0], *dx = gr_gradient(x), *operand[3] = {gr_view_as(n->out->grad, r->kept)};
    int count = 1;
    for (const char *c = how->reads; c && *c; c++)
        operand[count++] = *c == 'x' ? x : *c == 'y' ? gr_view_as(n->out, r->kept) : means(x, r);
    if (gr_ok(x->ctx)) gr_run_map(how->gradient, r->t, dx, count, operand);
}

/* dx += dy at the first maximum of each row. */
static void max_backward(gr_node *n) {
    const reduced *r = n->saved;
    if (!gr_wants(n, 0)) return;
    gr_tensor *dx = gr_gradient(n->in[0]), *rows = gr_as_rows(n->in[0], r->set);
    if (gr_is_inert(dx) || gr_is_inert(rows)) return;
    gr_shape row_shape = gr_shape_reduced(dx->shape, ~r->set, true);
    int64_t width = rows->shape.dim[1];
    for (int64_t row = 0; row < rows->shape.dim[0]; row++) {
        size_t first;
        dx->ctx->kernels->max((size_t)width, rows->data + row * width, &first);
        int64_t begin = gr_shape_offset(r->kept, dx->stride, row);
        dx->data[begin + gr_shape_offset(row_shape, dx->stride, (int64_t)first)] += n->out->grad->data[row];
    }
}

/* -- The ops ------------------------------------------------------------------------------------------------------- */

/* One for each term. */
static double terms(const gr_tensor *out, gr_tensor *const *in) {
    (void)out;
    return (double)gr_shape_numel(in[0]->shape);
}

const gr_op gr_op_sum = {.name = "sum",
                         .flops = terms,
                         .operands = 1,
                         .label = {"x"},
                         .backward = reduce_backward,
                         .rule = &(rule){NULL, GR_MAP_plus, NULL, 1, true}};
const gr_op gr_op_mean = {.name = "mean",
                          .flops = terms,
                          .operands = 1,
                          .label = {"x"},
                          .backward = reduce_backward,
                          .rule = &(rule){mean_of, GR_MAP_plus_scaled, NULL, 1, false}};
const gr_op gr_op_max = {.name = "max",
                         .flops = terms,
                         .operands = 1,
                         .label = {"x"},
                         .backward = max_backward,
                         .rule = &(rule){.of_row = max_of}};
const gr_op gr_op_variance = {.name = "variance",
                              .flops = terms,
                              .operands = 1,
                              .label = {"x"},
                              .backward = reduce_backward,
                              .rule = &(rule){variance_of, GR_MAP_variance_dx, "xm", 2, false}};
const gr_op gr_op_logsumexp = {.name = "logsumexp",
                               .flops = terms,
                               .operands = 1,
                               .label = {"x"},
                               .backward = reduce_backward,
                               .rule = &(rule){logsumexp_of, GR_MAP_logsumexp_dx, "xy", 1, true}};
const gr_op gr_op_norm = {.name = "norm",
                          .flops = terms,
                          .operands = 1,
                          .label = {"x"},
                          .backward = reduce_backward,
                          .rule = &(rule){norm_of, GR_MAP_norm_dx, "xy", 1, true}};

static gr_tensor *refuse_axes(const gr_op *op, gr_tensor *x, gr_axes axes) {
    unsigned seen = 0;
    for (int i = 0; i < axes.count && i < GR_MAX_DIMS; i++) {
        int axis = gr_shape_axis(x->shape, axes.axis[i]);
        if (axis < 0)
            return gr_refuse(op, 1, &x, "axis %d is out of range; number of axes: %d", axes.axis[i], x->shape.ndim);
        if (seen >> axis & 1) return gr_refuse(op, 1, &x, "axis %d is named twice", axis);
        seen |= 1u << axis;
    }
    return gr_refuse(op, 1, &x, "%d axes to reduce over; a tensor has at most %d", axes.count, GR_MAX_DIMS);
}

static gr_tensor *reduce(const gr_op *op, gr_tensor *x, gr_axes axes) {
    gr_tensor *bad = gr_check(op, 1, &x);
    if (bad) return bad;
    const rule *how = op->rule;
    reduced r = {0};
    if (!gr_shape_axes(x->shape, axes, &r.set)) return refuse_axes(op, x, axes);
    r.kept = gr_shape_reduced(x->shape, r.set, true);
    gr_tensor *y = gr_new(x->ctx, op->name, false, gr_shape_reduced(x->shape, r.set, axes.keep));
    if (gr_is_inert(y)) return y;
    int64_t n = gr_shape_numel(gr_shape_reduced(x->shape, ~r.set, false));
    if (n == 0 && !how->empty_is_fine) return gr_refuse(op, 1, &x, "nothing to take the %s of", op->name);
    r.t = n > 0 ? how->weight / (double)n : 0;
    if (how->of_row)
        reduce_rows(how->of_row, y, x, r.set);
    else
        gr_sum_to(gr_view_as(y, r.kept), x, false); /* the same tree, without moving the axes */
    return gr_record(op, y, 1, &x, &r, sizeof r);
}

gr_tensor *gr_sum(gr_tensor *x, gr_axes axes) { return reduce(&gr_op_sum, x, axes); }
gr_tensor *gr_mean(gr_tensor *x, gr_axes axes) { return reduce(&gr_op_mean, x, axes); }
gr_tensor *gr_max(gr_tensor *x, gr_axes axes) { return reduce(&gr_op_max, x, axes); }
gr_tensor *gr_variance(gr_tensor *x, gr_axes axes) { return reduce(&gr_op_variance, x, axes); }
gr_tensor *gr_logsumexp(gr_tensor *x, gr_axes axes) { return reduce(&gr_op_logsumexp, x, axes); }
gr_tensor *gr_norm(gr_tensor *x, gr_axes axes) { return reduce(&gr_op_norm, x, axes); }
