/* Elementwise ops. An op is a row of a table: the map of its forward pass, and for each operand the map of its gradient
 * and what that map reads beside dy. The maps themselves, one formula a line, are in src/tensor/kernels/maps.def. */
#include "tape.h"

typedef struct rule {
    gr_map_name forward;
    struct {
        gr_map_name map;
        const char *reads; /* after dy: a letter for each, a and b the op's operands, y its output; NULL: nothing */
    } gradient[3];
} rule;

static void elementwise_backward(gr_node *n) {
    const rule *r = n->op->rule;
    const double *t = n->saved;
    for (int i = 0; i < n->count; i++) {
        gr_tensor *operand[3] = {n->out->grad};
        int count = 1;
        for (const char *c = r->gradient[i].reads; c && *c; c++)
            operand[count++] = *c == 'y' ? n->out : n->in[*c - 'a'];
        gr_add_gradient(n, i, r->gradient[i].map, t ? *t : 0, count, operand);
    }
}

static gr_tensor *elementwise(const gr_op *op, gr_shape shape, int count, gr_tensor *const *in, const double *t) {
    const rule *r = op->rule;
    gr_context *ctx = in[0]->ctx;
    gr_tensor *y = gr_new(ctx, op->name, false, shape);
    if (gr_is_inert(y)) return y;
    gr_run_map(r->forward, t ? *t : 0, y, count, in);
    return gr_record(op, y, count, in, t, t ? sizeof *t : 0);
}

static gr_tensor *broadcasting(const gr_op *op, int count, gr_tensor *const *in) {
    gr_tensor *bad = gr_check(op, count, in);
    if (bad) return bad;
    gr_shape shape = in[0]->shape;
    for (int i = 1; i < count; i++)
        if (!gr_shape_broadcast(shape, in[i]->shape, &shape))
            return gr_refuse(op, count, in, "shapes do not broadcast");
    return elementwise(op, shape, count, in, NULL);
}

static gr_tensor *unary(const gr_op *op, gr_tensor *x, const double *t) {
    gr_tensor *bad = gr_check(op, 1, &x);
    return bad ? bad : elementwise(op, x->shape, 1, &x, t);
}

/* An op's gradients: the map that adds to each, and what it reads after dy. */
#define BINARY(op, map_a, reads_a, map_b, reads_b)              \
    const gr_op gr_op_##op = {.name = #op,                      \
                              .operands = 2,                    \
                              .label = {"a", "b"},              \
                              .backward = elementwise_backward, \
                              .rule = &(rule){GR_MAP_##op, {{GR_MAP_##map_a, reads_a}, {GR_MAP_##map_b, reads_b}}}};
#define UNARY(op, map, reads)                                   \
    const gr_op gr_op_##op = {.name = #op,                      \
                              .operands = 1,                    \
                              .label = {"x"},                   \
                              .backward = elementwise_backward, \
                              .rule = &(rule){GR_MAP_##op, {{GR_MAP_##map, reads}}}};

/* clang-format off */
BINARY(add,     plus, NULL,        plus, NULL)
BINARY(sub,     plus, NULL,        minus, NULL)
BINARY(mul,     plus_product, "b", plus_product, "a")
BINARY(div,     div_da, "b",       div_db, "yb")
BINARY(minimum, minimum_da, "ab",  minimum_db, "ab")
BINARY(maximum, maximum_da, "ab",  maximum_db, "ab")
UNARY(neg,        minus, NULL)
UNARY(scale,      plus_scaled, NULL)
UNARY(add_scalar, plus, NULL)
UNARY(pow,        pow_dx, "a")
UNARY(square,     square_dx, "a")
UNARY(sqrt,       sqrt_dx, "y")
UNARY(exp,        plus_product, "y")
UNARY(log,        div_da, "a")
UNARY(abs,        abs_dx, "a")
UNARY(relu,       relu_dx, "a")
UNARY(sigmoid,    sigmoid_dx, "y")
UNARY(tanh,       tanh_dx, "y")
UNARY(gelu,       gelu_dx, "a")
UNARY(gelu_erf,   gelu_erf_dx, "a")
UNARY(silu,       silu_dx, "a")
/* clang-format on */

const gr_op gr_op_where = {
    .name = "where",
    .operands = 3,
    .label = {"condition", "a", "b"},
    .backward = elementwise_backward,
    .constant = 1 << 0,
    .rule = &(rule){GR_MAP_where, {{GR_MAP_COUNT, NULL}, {GR_MAP_where_da, "a"}, {GR_MAP_where_db, "a"}}}};
const gr_op gr_op_mask_scores = {.name = "mask_scores",
                                 .operands = 2,
                                 .label = {"scores", "mask"},
                                 .backward = elementwise_backward,
                                 .constant = 1 << 1,
                                 .rule = &(rule){GR_MAP_mask_scores, {{GR_MAP_where_da, "b"}}}};

gr_tensor *gr_add(gr_tensor *a, gr_tensor *b) { return broadcasting(&gr_op_add, 2, (gr_tensor *[]){a, b}); }
gr_tensor *gr_sub(gr_tensor *a, gr_tensor *b) { return broadcasting(&gr_op_sub, 2, (gr_tensor *[]){a, b}); }
gr_tensor *gr_mul(gr_tensor *a, gr_tensor *b) { return broadcasting(&gr_op_mul, 2, (gr_tensor *[]){a, b}); }
gr_tensor *gr_div(gr_tensor *a, gr_tensor *b) { return broadcasting(&gr_op_div, 2, (gr_tensor *[]){a, b}); }
gr_tensor *gr_minimum(gr_tensor *a, gr_tensor *b) { return broadcasting(&gr_op_minimum, 2, (gr_tensor *[]){a, b}); }
gr_tensor *gr_maximum(gr_tensor *a, gr_tensor *b) { return broadcasting(&gr_op_maximum, 2, (gr_tensor *[]){a, b}); }

gr_tensor *gr_where(gr_tensor *condition, gr_tensor *a, gr_tensor *b) {
    return broadcasting(&gr_op_where, 3, (gr_tensor *[]){condition, a, b});
}

gr_tensor *gr_mask_scores(gr_tensor *scores, gr_tensor *mask) {
    return broadcasting(&gr_op_mask_scores, 2, (gr_tensor *[]){scores, mask});
}

gr_tensor *gr_neg(gr_tensor *x) { return unary(&gr_op_neg, x, NULL); }
gr_tensor *gr_scale(gr_tensor *x, double factor) { return unary(&gr_op_scale, x, &factor); }
gr_tensor *gr_add_scalar(gr_tensor *x, double term) { return unary(&gr_op_add_scalar, x, &term); }
gr_tensor *gr_pow(gr_tensor *x, double exponent) { return unary(&gr_op_pow, x, &exponent); }
gr_tensor *gr_square(gr_tensor *x) { return unary(&gr_op_square, x, NULL); }
gr_tensor *gr_sqrt(gr_tensor *x) { return unary(&gr_op_sqrt, x, NULL); }
gr_tensor *gr_exp(gr_tensor *x) { return unary(&gr_op_exp, x, NULL); }
gr_tensor *gr_log(gr_tensor *x) { return unary(&gr_op_log, x, NULL); }
gr_tensor *gr_abs(gr_tensor *x) { return unary(&gr_op_abs, x, NULL); }
gr_tensor *gr_relu(gr_tensor *x) { return unary(&gr_op_relu, x, NULL); }
gr_tensor *gr_sigmoid(gr_tensor *x) { return unary(&gr_op_sigmoid, x, NULL); }
gr_tensor *gr_tanh(gr_tensor *x) { return unary(&gr_op_tanh, x, NULL); }
gr_tensor *gr_gelu(gr_tensor *x) { return unary(&gr_op_gelu, x, NULL); }
gr_tensor *gr_gelu_erf(gr_tensor *x) { return unary(&gr_op_gelu_erf, x, NULL); }
gr_tensor *gr_silu(gr_tensor *x) { return unary(&gr_op_silu, x, NULL); }
