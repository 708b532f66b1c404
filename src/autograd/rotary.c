/* Rotary positions (Su et al., 2021): the pairs of a row are turned by angles that grow with its position, so that the
 * product of a query and a key depends on the difference of their positions alone.
 *
 * Pairs are (a_i, b_i), a and b the halves of a row, as GPT-NeoX and LLaMA have it (the paper pairs neighbours).
 * y_a = a cos - b sin, y_b = b cos + a sin; dx is dy turned back: da += dy_a cos + dy_b sin, db += dy_b cos - dy_a sin.
 */
#include "tape.h"

#include "../tensor/parallel.h"
#include "../tensor/scalar.h"

#include <math.h>

static const double usual_base = 10000; /* the paper's */

gr_tensor *gr_rotary_table(gr_context *ctx, int64_t first, int64_t count, int64_t size, double base) {
    if (base == 0) base = usual_base;
    if (size <= 0 || size % 2 != 0)
        gr_fail(ctx, "rotary_table", "size is %lld; it must be even and positive", (long long)size);
    else if (first < 0 || count < 0 || first > INT64_MAX - count)
        gr_fail(ctx, "rotary_table", "first is %lld, count is %lld; neither may be negative, nor their sum too large",
                (long long)first, (long long)count);
    else if (!(base > 0 && base < (double)INFINITY))
        gr_fail(ctx, "rotary_table", "base is %g; it must be positive and finite", base);
    gr_tensor *table = gr_new(ctx, "rotary_table", false, GR_SHAPE(count, size));
    if (gr_is_inert(table)) return table;
    int64_t half = size / 2;
    for (int64_t i = 0; i < half; i++) {
        double theta = gr_double_exp(-2 * (double)i / (double)size * gr_double_log(base));
        for (int64_t t = 0; t < count; t++) {
            double angle = (double)(first + t) * theta;
            table->data[t * size + i] = (gr_real)gr_double_cos(angle);
            table->data[t * size + half + i] = (gr_real)gr_double_sin(angle);
        }
    }
    return table;
}

typedef struct turn {
    const gr_kernels *kernels;
    const gr_tensor *x, *table;
    gr_real *out; /* contiguous, of x's shape */
    bool back;
} turn;

/* Half a row: where it begins, and how far apart its elements are. */
typedef struct half {
    gr_real *x;
    ptrdiff_t step;
} half;

static half half_of(const gr_tensor *x, int64_t row, int which) {
    int last = x->shape.ndim - 1;
    int64_t size = x->shape.dim[last];
    return (half){x->data + gr_shape_offset(x->shape, x->stride, row * size) + which * (size / 2) * x->stride[last],
                  (ptrdiff_t)x->stride[last]};
}

static void turn_row(size_t row, void *arg) {
    const turn *r = arg;
    const int64_t times = r->table->shape.dim[0], size = r->table->shape.dim[1], at = (int64_t)row % times;
    const half a = half_of(r->x, (int64_t)row, 0), b = half_of(r->x, (int64_t)row, 1);
    const half cosine = half_of(r->table, at, 0), sine = half_of(r->table, at, 1);
    const half y_a = {r->out + (int64_t)row * size, 1}, y_b = {y_a.x + size / 2, 1};
    const struct {
        gr_map_name map;
        half y, x, factor;
    } terms[] = {{r->back ? GR_MAP_plus_product : GR_MAP_mul, y_a, a, cosine},
                 {r->back ? GR_MAP_plus_product : GR_MAP_minus_product, y_a, b, sine},
                 {r->back ? GR_MAP_plus_product : GR_MAP_mul, y_b, b, cosine},
                 {r->back ? GR_MAP_minus_product : GR_MAP_plus_product, y_b, a, sine}};
    for (size_t i = 0; i < sizeof terms / sizeof terms[0]; i++)
        r->kernels->map[terms[i].map](&(gr_row){.n = (size_t)size / 2,
                                                .p = {terms[i].y.x, terms[i].x.x, terms[i].factor.x},
                                                .s = {terms[i].y.step, terms[i].x.step, terms[i].factor.step}});
}

static void turn_rows(turn *r) {
    size_t size = (size_t)r->table->shape.dim[1];
    size_t rows = size > 0 ? (size_t)gr_shape_numel(r->x->shape) / size : 0;
    gr_parallel_rows(rows, 2 * GR_COST_OF_TERM * size, turn_row, r);
}

static void rotary_backward(gr_node *n) {
    gr_tensor *dx = gr_wanted_gradient(n, 0);
    if (gr_is_inert(dx)) return;
    turn_rows(&(turn){dx->ctx->kernels, n->out->grad, n->in[1], dx->data, true});
}

const gr_op gr_op_rotary = {
    .name = "rotary", .operands = 2, .label = {"x", "table"}, .backward = rotary_backward, .constant = 1 << 1};

gr_tensor *gr_rotary(gr_tensor *x, gr_tensor *table) {
    const gr_op *op = &gr_op_rotary;
    gr_tensor *in[] = {x, table}, *bad = gr_check(op, 2, in);
    if (bad) return bad;
    if (x->shape.ndim < 2 || gr_dim(x, -1) % 2 != 0)
        return gr_refuse(op, 2, in, "x must be (..., T, D) with an even D");
    if (table->shape.ndim != 2 || gr_dim(table, 0) != gr_dim(x, -2) || gr_dim(table, 1) != gr_dim(x, -1))
        return gr_refuse(op, 2, in, "the table must be (T, D), the last two sizes of x");
    gr_tensor *y = gr_new(x->ctx, op->name, false, x->shape);
    if (gr_is_inert(y)) return y;
    turn_rows(&(turn){x->ctx->kernels, x, table, y->data, false});
    return gr_record(op, y, 2, in, NULL, 0);
}
