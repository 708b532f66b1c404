/* Bad calls of every public function: each is refused with a message that names what was wrong, and nothing else
 * happens. */
#include "support.h"

#include <float.h>
#include <string.h>

/* The operands of the calls, new for each. */
static gr_context *elsewhere;
static gr_tensor *apples, *pears, *plums, *v3, *v4, *number, *empty, *six, *huge, *vast, *foreign, *w, *loss;
static const int32_t ids[] = {0, 1, 7, -2, GR_IGNORE, 1}, first_beyond = 3;

static void make_operands(void) {
    apples = gr_named(counting(GR_SHAPE(2, 3)), "apples");
    pears = gr_named(counting(GR_SHAPE(4, 5)), "pears");
    plums = gr_named(counting(GR_SHAPE(3, 2, 3)), "plums");
    v3 = counting(GR_SHAPE(3)), v4 = counting(GR_SHAPE(4)), number = gr_scalar(ctx, 2);
    empty = gr_zeros(ctx, GR_SHAPE(2, 0)), six = gr_zeros(ctx, GR_SHAPE(1, 1, 1, 1, 1, 2));
    huge = gr_expand(gr_full(ctx, GR_SHAPE(1, 1), 1), GR_SHAPE(MOST_IN_A_TENSOR, 1)); /* of one number */
    vast = gr_expand(number, GR_SHAPE(PTRDIFF_MAX / 2 + 1));
    foreign = gr_named(gr_zeros(elsewhere, GR_SHAPE(2, 3)), "foreign");
    w = gr_parameter(counting(GR_SHAPE(2)), "w");
    loss = gr_sum(gr_square(w), GR_ALL);
}

/* What a call gave, and what its message must contain. */
enum { PARTS = 4 };
typedef struct refusal {
    const char *call;
    gr_tensor *result;
    const char *part[PARTS];
} refusal;

/* CALL(an expression, parts of the message); `at` counts them. A list ends with END. */
#define CALL(expression, ...) \
    if (at-- == 0) return (refusal){#expression, expression, {__VA_ARGS__}};
#define END return (refusal){NULL, NULL, {NULL}};

static refusal elementwise(int at) {
    CALL(gr_add(apples, pears), "add: ", "apples (2, 3)", "pears (4, 5)", "do not broadcast")
    CALL(gr_add(apples, v4), "add: apples (2, 3), b (4,)")
    CALL(gr_sub(v3, v4), "sub: a (3,), b (4,)")
    CALL(gr_mul(plums, pears), "mul: plums (3, 2, 3), pears (4, 5)")
    CALL(gr_div(empty, v3), "div: a (2, 0), b (3,)")
    CALL(gr_minimum(v3, v4), "minimum: ")
    CALL(gr_maximum(v3, v4), "maximum: ")
    CALL(gr_where(v3, v3, v4), "where: condition (3,), a (3,), b (4,)")
    CALL(gr_where(v4, v3, v3), "where: condition (4,), a (3,), b (3,)")
    CALL(gr_mask_scores(apples, pears), "mask_scores: apples (2, 3), pears (4, 5)")
    CALL(gr_exp(huge), "out of memory")
    CALL(gr_mul(huge, gr_transpose(huge, 0, 1)), "mul: ", "too many elements")
    END
}

static refusal null_operands(int at) {
    CALL(gr_add(apples, NULL), "add: b (operand 1) is NULL")
    CALL(gr_add(NULL, apples), "add: a (operand 0) is NULL")
    CALL(gr_div(apples, NULL), "div: b")
    CALL(gr_where(apples, apples, NULL), "where: b (operand 2) is NULL")
    CALL(gr_where(NULL, apples, apples), "where: condition")
    CALL(gr_mask_scores(apples, NULL), "mask_scores: mask")
    CALL(gr_matmul(NULL, apples), "matmul: a")
    CALL(gr_matmul(apples, NULL), "matmul: b")
    CALL(gr_linear(apples, NULL, NULL), "linear: weight (operand 1) is NULL")
    CALL(gr_linear(NULL, apples, NULL), "linear: x")
    CALL(gr_attention_scores(apples, NULL), "attention_scores: k")
    CALL(gr_attention_output(NULL, apples), "attention_output: weights")
    CALL(gr_masked_softmax(NULL, apples, 1), "masked_softmax: scores")
    CALL(gr_mse(apples, NULL), "mse: target")
    CALL(gr_layernorm(NULL, v3, v3, 0), "layernorm: x")
    CALL(gr_rmsnorm(NULL, v3, 0), "rmsnorm: x")
    CALL(gr_concat((gr_tensor *[]){apples, NULL}, 2, 0), "concat: tensor 1 is NULL")
    CALL(gr_stack((gr_tensor *[]){NULL, apples}, 2, 0), "stack: tensor 0 is NULL")
    CALL(gr_gather_rows(pears, (gr_tokens){NULL, 1, 2}), "gather_rows", "ids are NULL")
    CALL(gr_cross_entropy(pears, (gr_tokens){NULL, 4, 1}), "cross_entropy", "targets are NULL")
    CALL(gr_dropout(apples, 0.5, NULL), "dropout: apples (2, 3)", "rng is NULL")
    CALL(gr_from(ctx, GR_SHAPE(2), NULL), "from: values is NULL")
    CALL(gr_normal(ctx, GR_SHAPE(2), 0, 1, NULL), "normal: rng is NULL")
    CALL(gr_uniform(ctx, GR_SHAPE(2), 0, 1, NULL), "uniform: rng is NULL")
    END
}

static refusal other_contexts(int at) {
    CALL(gr_add(apples, foreign), "add: foreign (2, 3) belongs to another context than a")
    CALL(gr_where(apples, apples, foreign), "where: foreign")
    CALL(gr_matmul(apples, foreign), "matmul: foreign")
    CALL(gr_linear(apples, apples, foreign), "linear: foreign")
    CALL(gr_masked_softmax(apples, foreign, 1), "masked_softmax: foreign")
    CALL(gr_layernorm(apples, v3, foreign, 0), "layernorm: foreign")
    CALL(gr_mse(apples, foreign), "mse: foreign")
    CALL(gr_concat((gr_tensor *[]){apples, apples, foreign}, 3, 0), "concat: foreign")
    CALL(gr_stack((gr_tensor *[]){apples, foreign}, 2, 0), "stack: foreign")
    CALL(gr_backward_from(loss, foreign) ? loss : gr_exp(loss), "backward: the seed belongs to another context")
    END
}

static refusal reductions(int at) {
    const gr_axes seven = {7, false, {0, 1, 2, 3, 4, 5}};
    CALL(gr_sum(apples, GR_AXES(2)), "sum: apples (2, 3): axis 2 is out of range; number of axes: 2")
    CALL(gr_sum(number, GR_AXES(0)), "sum: x ()")
    CALL(gr_sum(six, seven), "sum: ", "7 axes")
    CALL(gr_mean(apples, GR_AXES(-3)), "mean: ")
    CALL(gr_mean(empty, GR_AXES(1)), "mean: x (2, 0)", "nothing to take the mean of")
    CALL(gr_max(apples, GR_AXES(0, 0)), "max: apples (2, 3): axis 0 is named twice")
    CALL(gr_max(apples, GR_KEEP(1, -1)), "max: ", "named twice")
    CALL(gr_max(empty, GR_ALL), "max: ", "nothing to take")
    CALL(gr_variance(apples, GR_AXES(5)), "variance: ")
    CALL(gr_variance(empty, GR_ALL), "variance: ", "nothing to take")
    CALL(gr_logsumexp(apples, GR_AXES(9)), "logsumexp: ")
    CALL(gr_norm(apples, GR_AXES(9)), "norm: ")
    END
}

static refusal products(int at) {
    CALL(gr_matmul(apples, pears), "matmul: apples (2, 3), pears (4, 5): inner sizes 3 and 4 differ")
    CALL(gr_matmul(v3, v4), "matmul: a (3,), b (4,): inner sizes 3 and 4 differ")
    CALL(gr_matmul(v4, apples), "matmul: a (4,), apples (2, 3)")
    CALL(gr_matmul(apples, v4), "matmul: apples (2, 3), b (4,)")
    CALL(gr_matmul(number, apples), "matmul: ", "scalar")
    CALL(gr_matmul(apples, number), "matmul: ", "scalar")
    CALL(gr_matmul(plums, gr_zeros(ctx, GR_SHAPE(2, 3, 1))),
         "matmul: plums (3, 2, 3), b (2, 3, 1): ", "leading axes do not broadcast")
    CALL(gr_matmul(gr_reshape(number, GR_SHAPE(1)), gr_transpose(huge, 0, 1)), "out of memory")
    CALL(gr_linear(apples, pears, NULL), "linear: apples (2, 3), pears (4, 5)",
         "the last size 3 of x and the in 5 of weight")
    CALL(gr_linear(apples, v3, NULL), "linear: ", "x must be (..., in), weight (out, in)")
    CALL(gr_linear(apples, apples, v3), "linear: apples (2, 3), apples (2, 3), bias (3,)", "bias must be (out)")
    CALL(gr_linear(apples, apples, apples), "linear: ", "bias must be (out)")
    CALL(gr_linear(number, apples, NULL), "linear: x ()")
    CALL(gr_attention_scores(apples, pears), "attention_scores: apples (2, 3), pears (4, 5)", "sizes 3 and 5")
    CALL(gr_attention_scores(v3, apples), "attention_scores: ", "two axes")
    CALL(gr_attention_output(apples, pears), "attention_output: apples (2, 3), pears (4, 5)")
    CALL(gr_attention_output(apples, v3), "attention_output: ")
    END
}

static refusal views(int at) {
    const gr_shape seven = {7, {1, 1, 1, 1, 1, 1}};
    CALL(gr_reshape(apples, GR_SHAPE(4)), "reshape: apples (2, 3): 6 elements cannot take the shape (4,) of 4")
    CALL(gr_reshape(apples, GR_SHAPE(-1, -1)), "reshape: ", "(-1, -1)")
    CALL(gr_reshape(apples, GR_SHAPE(4, -1)), "reshape: ")
    CALL(gr_reshape(apples, GR_SHAPE(-2, -3)), "reshape: ")
    CALL(gr_reshape(apples, GR_SHAPE(INT64_MAX, INT64_MAX, 2)), "reshape: ")
    CALL(gr_reshape(empty, GR_SHAPE(0, -1)), "reshape: ")
    CALL(gr_reshape(number, seven), "reshape: ", "more than 6 axes")
    CALL(gr_transpose(apples, 0, 2), "transpose: apples (2, 3)", "no axis 2")
    CALL(gr_transpose(apples, -3, 2), "transpose: apples (2, 3)", "no axis -3")
    CALL(gr_transpose(number, 0, 0), "transpose: x ()")
    CALL(gr_permute(apples, GR_AXES(0)), "permute: apples (2, 3)", "each of its 2 axes once")
    CALL(gr_permute(apples, GR_AXES(0, 0)), "permute: ")
    CALL(gr_permute(apples, GR_AXES(0, -2)), "permute: ")
    CALL(gr_permute(apples, GR_ALL), "permute: ")
    CALL(gr_expand(apples, GR_SHAPE(2, 4)), "expand: apples (2, 3)", "(2, 4)")
    CALL(gr_expand(apples, GR_SHAPE(3)), "expand: ", "(3,)")
    CALL(gr_expand(v3, GR_SHAPE(-1, 3)), "expand: ", "(-1, 3)")
    CALL(gr_expand(huge, GR_SHAPE(MOST_IN_A_TENSOR, 99)), "expand: ")
    CALL(gr_expand(number, seven), "expand: ", "more than 6 axes")
    END
}

static gr_tensor *split(gr_tensor *x, int axis, int parts) {
    gr_tensor *out[4] = {x, x, x, x};
    gr_split(x, axis, parts, out);
    for (int i = 1; i < parts; i++) ck_assert(gr_is_inert(out[i]));
    return parts > 0 ? out[0] : gr_exp(x);
}

static gr_tensor *split_into_nothing(gr_tensor *x) {
    gr_split(x, 0, 2, NULL);
    return gr_exp(x);
}

static refusal parts(int at) {
    CALL(gr_slice(apples, 2, 0, 1, 1), "slice: apples (2, 3)", "axis 2")
    CALL(gr_slice(apples, 1, 0, 4, 1), "slice: apples (2, 3)", "axis 1 from 0 to 4 by 1", "its size is 3")
    CALL(gr_slice(apples, 1, -4, 2, 1), "slice: ", "from -4")
    CALL(gr_slice(apples, 1, 2, 1, 1), "slice: ", "from 2 to 1")
    CALL(gr_slice(apples, 1, 0, 3, 0), "slice: ", "by 0")
    CALL(gr_slice(apples, 1, 2, 0, -1), "slice: ", "by -1")
    CALL(gr_slice(apples, 1, INT64_MIN, GR_END, 1), "slice: ")
    CALL(gr_slice(apples, 1, 0, INT64_MIN, 1), "slice: ")
    CALL(gr_slice(apples, 1, GR_END, GR_END, 1), "slice: ")
    CALL(gr_select(apples, 0, 2), "select: apples (2, 3)", "index 2", "axis 0")
    CALL(gr_select(apples, 0, -4), "select: ", "index -4")
    CALL(gr_select(apples, 2, 0), "select: ", "axis 2")
    CALL(split(apples, 1, 2), "split: apples (2, 3)", "axis 1 of size 3", "2 equal parts")
    CALL(split(apples, 1, 0), "split: ", "0 equal parts")
    CALL(split(apples, 1, -1), "split: ", "-1 equal parts")
    CALL(split(apples, 5, 2), "split: ", "axis 5")
    CALL(split_into_nothing(apples), "split: apples (2, 3)", "NULL")
    END
}

static gr_tensor *concat(gr_tensor *a, gr_tensor *b, int axis) { return gr_concat((gr_tensor *[]){a, b}, 2, axis); }
static gr_tensor *stack(gr_tensor *a, gr_tensor *b, int axis) { return gr_stack((gr_tensor *[]){a, b}, 2, axis); }

/* The 41st of many is missing: further on than there are bits to mark optional operands. */
static gr_tensor *concat_many(void) {
    gr_tensor *many[50];
    for (int i = 0; i < 50; i++) many[i] = i == 40 ? NULL : v3;
    return gr_concat(many, 50, 0);
}

static refusal joining(int at) {
    CALL(concat(apples, pears, 0), "concat: apples (2, 3), pears (4, 5)", "another axis than 0")
    CALL(concat(apples, v3, 0), "concat: apples (2, 3), tensor (3,)", "numbers of axes differ")
    CALL(concat(apples, apples, 2), "concat: apples (2, 3)", "no axis 2")
    CALL(concat(number, number, 0), "concat: ", "no axis 0")
    CALL(concat(vast, vast, 0), "concat: ")
    CALL(concat_many(), "concat: tensor 40 is NULL")
    CALL(stack(apples, pears, 0), "stack: apples (2, 3), pears (4, 5)", "shapes differ")
    CALL(stack(apples, apples, 3), "stack: apples (2, 3)", "axis 3")
    CALL(stack(apples, apples, -4), "stack: ", "axis -4")
    CALL(stack(six, six, 0), "stack: ")
    CALL(gr_gather_rows(plums, (gr_tokens){ids, 1, 2}), "gather_rows: plums (3, 2, 3)", "(rows, width)")
    CALL(gr_gather_rows(pears, (gr_tokens){ids, 1, 3}), "gather_rows: pears (4, 5)", "id 7 at position 2", "0 to 3")
    CALL(gr_gather_rows(pears, (gr_tokens){ids + 3, 1, 1}), "gather_rows: pears (4, 5): id -2 at position 0", "0 to 3")
    CALL(gr_gather_rows(pears, (gr_tokens){ids + 4, 1, 1}), "gather_rows: pears (4, 5): id -100 at position 0")
    CALL(gr_gather_rows(pears, (gr_tokens){ids, -1, 2}), "gather_rows: ", "negative")
    CALL(gr_gather_rows(pears, (gr_tokens){ids, INT64_MAX, 2}), "gather_rows: ", "too many")
    END
}

static refusal rows(int at) {
    CALL(gr_masked_softmax(apples, v4, 1), "masked_softmax: apples (2, 3), mask (4,)", "does not broadcast")
    CALL(gr_masked_softmax(apples, plums, 1), "masked_softmax: apples (2, 3), plums (3, 2, 3)")
    CALL(gr_layernorm(apples, v4, NULL, 0), "layernorm: apples (2, 3), weight (4,)", "weight must have the size")
    CALL(gr_layernorm(apples, v3, v4, 0), "layernorm: ", "bias (4,)", "bias must have the size")
    CALL(gr_layernorm(apples, apples, NULL, 0), "layernorm: ", "weight must have the size")
    CALL(gr_layernorm(apples, v3, NULL, -1), "layernorm: ", "eps is -1")
    CALL(gr_layernorm(apples, v3, NULL, NAN), "layernorm: ", "eps is ")
#ifndef GR_DOUBLE /* there it always is */
    CALL(gr_layernorm(apples, v3, NULL, 1e-90), "layernorm: ", "1 / sqrt(eps) must be finite")
    CALL(gr_rmsnorm(apples, v3, 1e-90), "rmsnorm: ", "1 / sqrt(eps) must be finite")
#endif
    CALL(gr_masked_softmax(apples, NULL, NAN), "masked_softmax: ", "scale is nan")
    CALL(gr_masked_softmax(apples, NULL, -INFINITY), "masked_softmax: ", "scale is -inf")
    CALL(gr_layernorm(empty, NULL, NULL, 0), "layernorm: ", "no elements")
    CALL(gr_layernorm(number, NULL, NULL, 0), "layernorm: ")
    CALL(gr_rmsnorm(apples, v4, 0), "rmsnorm: apples (2, 3), weight (4,)")
    CALL(gr_rmsnorm(empty, NULL, 0), "rmsnorm: ")
    CALL(gr_softmax(gr_expand(number, GR_SHAPE(MOST_IN_A_TENSOR))), "out of memory")
    CALL(gr_dropout(apples, 1, &rng), "dropout: apples (2, 3)", "p is 1", "[0, 1)")
    END
}

static refusal losses(int at) {
    CALL(gr_mse(apples, pears), "mse: apples (2, 3), pears (4, 5)", "shapes differ")
    CALL(gr_mse(empty, empty), "mse: ", "nothing to take the mean of")
    CALL(gr_cross_entropy(pears, (gr_tokens){ids, 1, 3}), "cross_entropy: pears (4, 5)", "4 rows", "(1, 3)")
    CALL(gr_cross_entropy(pears, (gr_tokens){ids, 2, 2}), "cross_entropy: ", "target 7 at position 2", "0 to 4",
         "-100 to ignore")
    CALL(gr_cross_entropy(v3, (gr_tokens){&first_beyond, 1, 1}), "cross_entropy: ", "target 3 at position 0", "0 to 2")
    CALL(gr_cross_entropy(v3, (gr_tokens){ids + 3, 1, 1}), "cross_entropy: ", "target -2 at position 0", "0 to 2")
    CALL(gr_cross_entropy(pears, (gr_tokens){ids, -2, -2}), "cross_entropy: ", "(-2, -2)")
    CALL(gr_cross_entropy(pears, (gr_tokens){ids, 2, -1}), "cross_entropy: ", "(2, -1)")
    CALL(gr_cross_entropy(pears, (gr_tokens){ids, INT64_MAX, 4}), "cross_entropy: ")
    CALL(gr_cross_entropy(number, (gr_tokens){ids, 1, 1}), "cross_entropy: logits ()")
    CALL(gr_cross_entropy(empty, (gr_tokens){ids, 2, 1}), "cross_entropy: logits (2, 0)")
    END
}

static gr_tensor *end_of_no_region(void) {
    gr_no_grad_end(ctx);
    return gr_exp(v3);
}

static gr_tensor *check_gradient(gr_tensor *x) {
    ck_assert(!gr_gradcheck(ctx, NULL, NULL, 1, &x, NULL, (gr_gradcheck_config){0}).ok);
    return gr_exp(v3);
}

static refusal others(int at) {
    const gr_shape seven = {7, {1, 1, 1, 1, 1, 1}};
    CALL(gr_zeros(ctx, GR_SHAPE(2, -1)), "zeros: shape (2, -1) has a negative size")
    CALL(gr_full(ctx, seven, 1), "full: 7 dimensions; a tensor has 0 to 6")
    CALL(gr_from(ctx, seven, gr_data(v3)), "from: 7 dimensions")
    CALL(gr_normal(ctx, GR_SHAPE(-1), 0, 1, &rng), "normal: ")
    CALL(gr_uniform(ctx, GR_SHAPE(-1), 0, 1, &rng), "uniform: ")
    CALL(gr_normal(ctx, GR_SHAPE(2), 0, -1, &rng), "normal: mean 0, std -1; both must be finite, and std not negative")
    CALL(gr_normal(ctx, GR_SHAPE(2), INFINITY, 1, &rng), "normal: mean inf, std 1")
    CALL(gr_normal(ctx, GR_SHAPE(2), 0, NAN, &rng), "normal: mean 0, std ")
    CALL(gr_uniform(ctx, GR_SHAPE(2), 3, 1, &rng),
         "uniform: from 3 to 1; both must be finite, and the first not the larger")
    CALL(gr_uniform(ctx, GR_SHAPE(2), 0, NAN, &rng), "uniform: from 0 to ")
    CALL(gr_uniform(ctx, GR_SHAPE(2), INFINITY, INFINITY, &rng), "uniform: from inf to inf")
    CALL(gr_uniform(ctx, GR_SHAPE(2), -DBL_MAX, DBL_MAX, &rng), "uniform: from -1.79769e+308")
    CALL(gr_keep(huge), "out of memory")
    CALL(gr_parameter(huge, "w"), "out of memory")
    CALL(gr_requires_grad(gr_square(w)), "requires_grad: x (2,) was made by square")
    CALL(gr_grad(apples), "grad: apples (2, 3) has no gradient")
    CALL(gr_parameter_at(ctx, -1), "parameter_at: index -1; there are ")
    CALL(gr_parameter_at(ctx, 1 << 20), "parameter_at: index 1048576")
    CALL(end_of_no_region(), "no_grad_end: ")
    CALL(check_gradient(NULL), "gradcheck: input 0 is NULL")
    CALL(check_gradient(foreign), "gradcheck: input 0 is NULL or of another context")
    CALL(gr_backward(apples) ? apples : gr_exp(apples), "backward: apples (2, 3) has more than one element")
    CALL(gr_backward(number) ? apples : gr_exp(apples), "backward: y () depends on no parameter")
    CALL(gr_backward_from(loss, v3) ? apples : gr_exp(apples),
         "backward: y () needs a seed of its own shape, not seed (3,)")
    CALL(gr_backward_from(NULL, v3) ? apples : gr_exp(apples), "backward: y is NULL")
    CALL(isnan(gr_item(apples)) ? gr_exp(apples) : apples, "item: apples (2, 3) has 6 elements")
    END
}

static refusal (*const lists[])(int at) = {elementwise, null_operands, other_contexts, reductions, products, views,
                                           parts,       joining,       rows,           losses,     others};
enum { LISTS = sizeof lists / sizeof lists[0] };

/* -- What must hold after each call -------------------------------------------------------------------------------- */

static void expect_message(const refusal *r) {
    const char *message = gr_error_message(ctx);
    ck_assert_msg(!gr_ok(ctx), "%s: no error", r->call);
    for (int i = 0; i < PARTS && r->part[i]; i++)
        ck_assert_msg(contains(message, r->part[i]), "%s: \"%s\" does not say \"%s\"", r->call, message, r->part[i]);
    ck_assert_msg(strncmp(message, r->part[0], strlen(r->part[0])) == 0, "%s: \"%s\" does not begin with \"%s\"",
                  r->call, message, r->part[0]);
    ck_assert_msg(r->result != NULL && gr_is_inert(r->result), "%s: the result is not inert", r->call);
    ck_assert_msg(gr_ok(elsewhere), "%s: the other context has an error", r->call);
}

static void expect_inert_context(const char *call) {
    char message[512];
    snprintf(message, sizeof message, "%s", gr_error_message(ctx));
    ck_assert_msg(gr_is_inert(gr_add(v3, v3)) && gr_is_inert(gr_mul(v3, v4)), "%s: a later op is not inert", call);
    ck_assert_msg(!gr_backward(loss), "%s: backward after it", call);
    ck_assert_str_eq(gr_error_message(ctx), message);
}

static void expect_nothing_changed(const char *call) {
    gr_error_clear(ctx);
    ck_assert_msg(same_tensors(apples, counting(GR_SHAPE(2, 3))), "%s: an operand has changed", call);
    ck_assert_msg(same_tensors(w, counting(GR_SHAPE(2))), "%s: a parameter has changed", call);
    ck_assert_msg(same_tensors(gr_grad(w), gr_zeros(ctx, GR_SHAPE(2))), "%s: a gradient has changed", call);
    ck_assert_msg(gr_backward(loss), "%s: no backward after clearing: %s", call, gr_error_message(ctx));
    EXPECT(gr_grad(w), 0, 2);
}

TEST(a_bad_call_is_refused_and_spoils_nothing) {
    elsewhere = gr_context_new();
    for (int at = 0;; at++) {
        make_operands();
        refusal r = lists[_i](at);
        if (!r.call) break;
        expect_message(&r);
        expect_inert_context(r.call);
        expect_nothing_changed(r.call);
        gr_context_reset(ctx);
        gr_context_reset(elsewhere);
    }
    gr_context_free(elsewhere);
}

/* -- Unary ops, all alike ------------------------------------------------------------------------------------------ */

TEST(an_op_of_one_operand_hands_an_error_on) {
    gr_tensor *(*const ops[])(gr_tensor *) = {gr_neg,      gr_square, gr_sqrt,    gr_exp,        gr_log,
                                              gr_abs,      gr_relu,   gr_sigmoid, gr_tanh,       gr_gelu,
                                              gr_gelu_erf, gr_silu,   gr_softmax, gr_log_softmax};
    gr_tensor *inert = gr_reshape(gr_scalar(ctx, 1), GR_SHAPE(2));
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        ck_assert_ptr_eq(ops[i](inert), inert);
        ck_assert(gr_is_inert(ops[i](NULL)));
    }
    EXPECT_ERROR("reshape");
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        ck_assert(gr_is_inert(ops[i](inert)));
        EXPECT_ERROR("x (operand 0) was made after an error");
    }
}

Suite *refusals_suite(void) {
    Suite *suite = suite_create("refusals");
    add_rows(suite, "bad calls", a_bad_call_is_refused_and_spoils_nothing, LISTS);
    GROUP(suite, "one operand", an_op_of_one_operand_hands_an_error_on);
    return suite;
}
