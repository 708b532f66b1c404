/* Matrix products. With C = A B: dA = dC B^T, dB = A^T dC; transposing is a change of strides, and an operand that was
 * broadcast over leading axes gathers its gradient over them. */
#include "tape.h"

typedef struct product_rule {
    bool transpose_b;     /* C = A B^T: linear and attention scores */
    bool zeros_of_a_hide; /* what meets a 0 of A, or of dC, is not read: in attention ... */
    bool zeros_of_c_hide; /* ... the factor shaped like the scores hides, forward and backward */
} product_rule;

static void add_product(gr_tensor *x, gr_tensor *a, gr_tensor *b, bool zeros_hide) {
    bool fresh;
    bool rows = x->stride[x->shape.ndim - 1] == 1; /* as gr_product writes them */
    gr_tensor *dx = rows ? gr_gradient_in_place(x, &fresh) : gr_gradient_fresh(x, &fresh);
    if (!gr_is_inert(dx)) gr_product(dx, a, b, (gr_product_how){.accumulate = !fresh, .zeros_hide = zeros_hide});
}

static void product_backward(gr_node *n) {
    const product_rule *r = n->op->rule;
    gr_tensor *a = n->in[0], *b = n->in[1], *dy = n->out->grad;
    if (gr_wants(n, 0)) add_product(a, dy, r->transpose_b ? b : gr_swapped(b), r->zeros_of_c_hide);
    if (!gr_wants(n, 1)) return;
    if (b->shape.ndim == 2 && a->shape.ndim > 2) a = gr_as_matrix(a), dy = gr_as_matrix(dy); /* one long sum */
    if (gr_is_inert(a) || gr_is_inert(dy)) return;
    if (r->transpose_b)
        add_product(b, gr_swapped(dy), a, r->zeros_of_c_hide);
    else
        add_product(b, gr_swapped(a), dy, r->zeros_of_a_hide);
}

static void linear_backward(gr_node *n) {
    product_backward(n);
    gr_tensor *db = gr_wanted_gradient(n, 2);
    if (!gr_is_inert(db)) gr_sum_to(db, n->out->grad, true);
}

/* A multiplication and an addition for each element of the result and each k. */
static double product_flops(const gr_tensor *out, gr_tensor *const *in) {
    return 2 * (double)gr_shape_numel(out->shape) * (double)in[0]->shape.dim[in[0]->shape.ndim - 1];
}

const gr_op gr_op_matmul = {.name = "matmul",
                            .operands = 2,
                            .label = {"a", "b"},
                            .backward = product_backward,
                            .flops = product_flops,
                            .rule = &(product_rule){0}};
const gr_op gr_op_linear = {.name = "linear",
                            .operands = 3,
                            .label = {"x", "weight", "bias"},
                            .backward = linear_backward,
                            .flops = product_flops,
                            .optional = 1 << 2,
                            .rule = &(product_rule){.transpose_b = true}};
const gr_op gr_op_attention_scores = {.name = "attention_scores",
                                      .operands = 2,
                                      .label = {"q", "k"},
                                      .backward = product_backward,
                                      .flops = product_flops,
                                      .rule = &(product_rule){.transpose_b = true, .zeros_of_c_hide = true}};
const gr_op gr_op_attention_output = {.name = "attention_output",
                                      .operands = 2,
                                      .label = {"weights", "v"},
                                      .backward = product_backward,
                                      .flops = product_flops,
                                      .rule = &(product_rule){.zeros_of_a_hide = true}};

static gr_tensor *refuse_inner(const gr_op *op, int count, gr_tensor *const *in, int64_t a, int64_t b) {
    return gr_refuse(op, count, in, "inner sizes %lld and %lld differ", (long long)a, (long long)b);
}

static gr_tensor *product(const gr_op *op, gr_tensor *a, gr_tensor *b) {
    gr_tensor *in[] = {a, b}, *bad = gr_check(op, 2, in);
    if (bad) return bad;
    const product_rule *r = op->rule;
    if (a->shape.ndim < 2 || b->shape.ndim < 2) return gr_refuse(op, 2, in, "both need two axes or more");
    gr_tensor *right = r->transpose_b ? gr_swapped(b) : b;
    if (gr_is_inert(right)) return right;
    int64_t rows = gr_dim(a, -2), inner_a = gr_dim(a, -1), inner_b = gr_dim(right, -2), columns = gr_dim(right, -1);
    gr_shape lead_a = a->shape, lead_b = b->shape, shape;
    lead_a.ndim -= 2, lead_b.ndim -= 2;
    if (inner_a != inner_b) return refuse_inner(op, 2, in, inner_a, inner_b);
    if (!gr_shape_broadcast(lead_a, lead_b, &shape)) return gr_refuse(op, 2, in, "leading axes do not broadcast");
    shape.dim[shape.ndim++] = rows, shape.dim[shape.ndim++] = columns;
    gr_tensor *y = gr_new(a->ctx, op->name, false, shape);
    if (gr_is_inert(y)) return y;
    gr_product(y, a, right, (gr_product_how){.zeros_hide = r->zeros_of_a_hide});
    return gr_record(op, y, 2, in, NULL, 0);
}

/* A vector on the left is a row, on the right a column; the axis it was given is dropped from the result. */
gr_tensor *gr_matmul(gr_tensor *a, gr_tensor *b) {
    gr_tensor *in[] = {a, b}, *bad = gr_check(&gr_op_matmul, 2, in);
    if (bad) return bad;
    if (a->shape.ndim == 0 || b->shape.ndim == 0)
        return gr_refuse(&gr_op_matmul, 2, in, "a scalar has no axis to multiply along");
    bool row = a->shape.ndim == 1, column = b->shape.ndim == 1;
    if (row || column) {
        int64_t inner_a = gr_dim(a, -1), inner_b = gr_dim(b, column ? 0 : -2);
        if (inner_a != inner_b) return refuse_inner(&gr_op_matmul, 2, in, inner_a, inner_b);
        gr_tensor *wide_a = row ? gr_reshape(a, GR_SHAPE(1, a->shape.dim[0])) : a;
        gr_tensor *wide_b = column ? gr_reshape(b, GR_SHAPE(b->shape.dim[0], 1)) : b;
        gr_tensor *y = product(&gr_op_matmul, wide_a, wide_b);
        if (gr_is_inert(y)) return y;
        unsigned drop = (unsigned)row << (y->shape.ndim - 2) | (unsigned)column << (y->shape.ndim - 1);
        return gr_reshape(y, gr_shape_reduced(y->shape, drop, false));
    }
    return product(&gr_op_matmul, a, b);
}

gr_tensor *gr_attention_scores(gr_tensor *q, gr_tensor *k) { return product(&gr_op_attention_scores, q, k); }
gr_tensor *gr_attention_output(gr_tensor *weights, gr_tensor *v) {
    return product(&gr_op_attention_output, weights, v);
}

/* NOLINTNEXTLINE(misc-no-recursion): once, with x as a matrix */
gr_tensor *gr_linear(gr_tensor *x, gr_tensor *weight, gr_tensor *bias) {
    gr_tensor *in[] = {x, weight, bias}, *bad = gr_check(&gr_op_linear, 3, in);
    if (bad) return bad;
    if (x->shape.ndim == 0 || weight->shape.ndim != 2)
        return gr_refuse(&gr_op_linear, 3, in, "x must be (..., in), weight (out, in)");
    if (gr_dim(x, -1) != gr_dim(weight, 1))
        return gr_refuse(&gr_op_linear, 3, in, "the last size %lld of x and the in %lld of weight (out, in) differ",
                         (long long)gr_dim(x, -1), (long long)gr_dim(weight, 1));
    if (bias && (bias->shape.ndim != 1 || bias->shape.dim[0] != weight->shape.dim[0]))
        return gr_refuse(&gr_op_linear, 3, in, "bias must be (out)");
    if (x->shape.ndim == 1) {
        gr_tensor *y = gr_linear(gr_reshape(x, GR_SHAPE(1, x->shape.dim[0])), weight, bias);
        return gr_is_inert(y) ? y : gr_reshape(y, GR_SHAPE(weight->shape.dim[0]));
    }
    gr_shape shape = x->shape;
    shape.dim[shape.ndim - 1] = weight->shape.dim[0];
    gr_tensor *y = gr_new(x->ctx, "linear", false, shape);
    if (gr_is_inert(y)) return y;
    if (bias) gr_run_map(GR_MAP_copy, 0, y, 1, &bias);
    gr_product(y, x, gr_swapped(weight), (gr_product_how){.accumulate = bias != NULL});
    return gr_record(&gr_op_linear, y, 3, in, NULL, 0);
}
