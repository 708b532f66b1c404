/* The answers on which frameworks differ: masks, ties, zeros, NaN, and numbers near the ends of the range. */
#include "support.h"

#include <float.h>

/* -- Masked attention ---------------------------------------------------------------------------------------------- */

enum { QUERIES = 5, KEYS = 7, SIZE = 4 };

typedef struct attended {
    gr_tensor *q, *k, *v, *weights, *output;
} attended;

/* The loss weighs every output with another number. Queries after `loss_rows` do not count in it. */
static attended attend(const attended *from, gr_tensor *mask, int64_t loss_rows) {
    attended a = {.q = gr_requires_grad(gr_keep(from->q)),
                  .k = gr_requires_grad(gr_keep(from->k)),
                  .v = gr_requires_grad(gr_keep(from->v))};
    a.weights = gr_retain_grad(gr_masked_softmax(gr_attention_scores(a.q, a.k), mask, 0.5));
    a.output = gr_attention_output(a.weights, a.v);
    gr_tensor *counted = gr_slice(a.output, -2, 0, loss_rows, 1);
    gr_rng seed = gr_rng_seed(99);
    ck_assert(gr_backward_from(counted, gr_normal(ctx, gr_shape_of(counted), 0, 1, &seed)));
    return a;
}

static attended draw_attention(void) {
    return (attended){.q = drawn(GR_SHAPE(2, QUERIES, SIZE), -1, 1),
                      .k = drawn(GR_SHAPE(2, KEYS, SIZE), -1, 1),
                      .v = drawn(GR_SHAPE(2, KEYS, SIZE), -1, 1)};
}

static void spoil(gr_tensor *x, int64_t row, double with) {
    for (int64_t i = 0; i < SIZE; i++) gr_data(x)[row * SIZE + i] = (gr_real)(i % 2 ? with : -with);
}

static bool same_rows(gr_tensor *x, gr_tensor *y, int64_t begin, int64_t end) {
    return same_tensors(gr_slice(x, -2, begin, end, 1), gr_slice(y, -2, begin, end, 1));
}

static const double garbage[] = {NAN, INFINITY, 1e38, -1e30};
enum { GARBAGE = sizeof garbage / sizeof garbage[0] };

TEST(garbage_in_a_hidden_slot_changes_no_bit) {
    enum { HIDDEN = 2 };
    gr_tensor *mask = gr_full(ctx, GR_SHAPE(QUERIES, KEYS), 1);
    for (int64_t i = 0; i < QUERIES; i++) gr_data(mask)[i * KEYS + HIDDEN] = 0;
    attended clean = draw_attention(), a = attend(&clean, mask, QUERIES);
    for (int of_k = 0; of_k < 2; of_k++) {
        attended dirty = {gr_keep(clean.q), gr_keep(clean.k), gr_keep(clean.v), NULL, NULL};
        spoil(of_k ? dirty.k : dirty.v, HIDDEN, garbage[_i]);
        attended b = attend(&dirty, mask, QUERIES);
        ck_assert(same_tensors(a.weights, b.weights) && same_tensors(a.output, b.output));
        ck_assert(same_tensors(gr_grad(a.q), gr_grad(b.q)));
        ck_assert(same_tensors(gr_grad(a.k), gr_grad(b.k)));
        ck_assert(same_tensors(gr_grad(a.v), gr_grad(b.v)));
        EXPECT(gr_select(gr_select(gr_grad(b.k), 0, 0), 0, HIDDEN), 0, 0, 0, 0);
        EXPECT(gr_select(gr_select(gr_grad(b.v), 0, 0), 0, HIDDEN), 0, 0, 0, 0);
    }
}

static gr_tensor *causal(void) { /* aligned bottom-right: the last query sees every key */
    gr_tensor *mask = gr_zeros(ctx, GR_SHAPE(QUERIES, KEYS));
    for (int64_t i = 0; i < QUERIES; i++)
        for (int64_t j = 0; j <= i + KEYS - QUERIES; j++) gr_data(mask)[i * KEYS + j] = 1;
    return mask;
}

/* The slot is the last that query 2 sees, so queries 0 and 1 must not notice. */
TEST(garbage_in_the_future_changes_no_bit_of_the_past) {
    enum { FIRST_SEEN_BY = 2, SLOT = FIRST_SEEN_BY + KEYS - QUERIES };
    gr_tensor *mask = causal();
    attended clean = draw_attention();
    for (int of_k = 0; of_k < 2; of_k++) {
        attended dirty = {gr_keep(clean.q), gr_keep(clean.k), gr_keep(clean.v), NULL, NULL};
        spoil(of_k ? dirty.k : dirty.v, SLOT, garbage[_i]);
        attended a = attend(&clean, mask, QUERIES), b = attend(&dirty, mask, QUERIES);
        ck_assert(same_rows(a.output, b.output, 0, FIRST_SEEN_BY));
        ck_assert(same_rows(a.weights, b.weights, 0, FIRST_SEEN_BY));
        ck_assert(same_rows(gr_grad(a.q), gr_grad(b.q), 0, FIRST_SEEN_BY));
    }
}

TEST(a_query_that_sees_nothing_is_0_with_zero_gradients) {
    enum { BLIND = 3 };
    gr_tensor *mask = gr_full(ctx, GR_SHAPE(QUERIES, KEYS), 1);
    for (int64_t j = 0; j < KEYS; j++) gr_data(mask)[BLIND * KEYS + j] = 0;
    attended drawing = draw_attention(), a = attend(&drawing, mask, QUERIES);
    EXPECT(gr_select(gr_select(a.weights, 0, 1), 0, BLIND), 0, 0, 0, 0, 0, 0, 0);
    EXPECT(gr_select(gr_select(a.output, 0, 1), 0, BLIND), 0, 0, 0, 0);
    EXPECT(gr_select(gr_select(gr_grad(a.q), 0, 1), 0, BLIND), 0, 0, 0, 0);
    ck_assert(gr_item(gr_norm(gr_grad(a.k), GR_ALL)) > 0);
}

TEST(garbage_in_a_query_that_sees_nothing_changes_no_bit) {
    enum { BLIND = 3 };
    gr_tensor *mask = gr_full(ctx, GR_SHAPE(QUERIES, KEYS), 1);
    for (int64_t j = 0; j < KEYS; j++) gr_data(mask)[BLIND * KEYS + j] = 0;
    attended clean = draw_attention(), dirty = {gr_keep(clean.q), clean.k, clean.v, NULL, NULL};
    spoil(dirty.q, BLIND, garbage[_i]);
    attended a = attend(&clean, mask, QUERIES), b = attend(&dirty, mask, QUERIES);
    ck_assert(same_tensors(a.output, b.output) && same_tensors(gr_grad(a.q), gr_grad(b.q)));
    ck_assert(same_tensors(gr_grad(a.k), gr_grad(b.k)) && same_tensors(gr_grad(a.v), gr_grad(b.v)));
}

TEST(garbage_in_the_gradient_of_a_query_that_sees_nothing_changes_no_bit) {
    enum { BLIND = 1 };
    gr_tensor *weights = drawn(GR_SHAPE(2, QUERIES, KEYS), 0.5, 1),
              *v = gr_requires_grad(drawn(GR_SHAPE(2, KEYS, SIZE), -1, 1));
    for (int64_t j = 0; j < KEYS; j++) gr_data(weights)[BLIND * KEYS + j] = 0;
    gr_tensor *seed = drawn(GR_SHAPE(2, QUERIES, SIZE), -1, 1), *dirty = gr_keep(seed),
              *w = gr_requires_grad(gr_keep(v));
    spoil(dirty, BLIND, garbage[_i]);
    ck_assert(gr_backward_from(gr_attention_output(weights, v), seed));
    ck_assert(gr_backward_from(gr_attention_output(weights, w), dirty));
    ck_assert(same_tensors(gr_grad(v), gr_grad(w)));
}

TEST(when_no_query_sees_anything_all_is_0_even_beside_garbage) {
    attended drawing = draw_attention();
    spoil(drawing.k, 1, garbage[_i]), spoil(drawing.v, 4, garbage[_i]);
    attended a = attend(&drawing, gr_scalar(ctx, 0), QUERIES);
    gr_tensor *all[] = {a.output, a.weights, gr_grad(a.q), gr_grad(a.k), gr_grad(a.v)};
    for (int i = 0; i < 5; i++) ck_assert(same_tensors(all[i], gr_zeros(ctx, gr_shape_of(all[i]))));
}

TEST(the_textbook_way_of_masking_gives_the_same_weights) {
    gr_tensor *scores = drawn(GR_SHAPE(2, QUERIES, KEYS), -3, 3), *mask = causal();
    ck_assert(same_tensors(gr_masked_softmax(scores, mask, 1), gr_softmax(gr_mask_scores(scores, mask))));
    gr_tensor *x = gr_requires_grad(gr_full(ctx, GR_SHAPE(2, 3), NAN)); /* a row that is hidden altogether */
    ck_assert(gr_backward(gr_sum(gr_softmax(gr_mask_scores(x, gr_scalar(ctx, 0))), GR_ALL)));
    EXPECT(gr_grad(x), 0, 0, 0, 0, 0, 0);
}

/* -- Softmax and its relatives ------------------------------------------------------------------------------------- */

TEST(a_softmax_row_with_nan_stays_nan_and_the_next_does_not) {
    gr_tensor *x = tensor(GR_SHAPE(2, 3), NUMBERS(1, NAN, 2, 1, 1, 1));
    EXPECT_NEAR(gr_softmax(x), 1e-7, NAN, NAN, NAN, 1. / 3, 1. / 3, 1. / 3);
    EXPECT_NEAR(gr_log_softmax(x), 1e-7, NAN, NAN, NAN, -log(3), -log(3), -log(3));
}

TEST(a_softmax_row_of_minus_infinity_is_0) {
    EXPECT(gr_softmax(gr_full(ctx, GR_SHAPE(1, 3), -INFINITY)), 0, 0, 0);
    EXPECT(gr_softmax(tensor(GR_SHAPE(3), NUMBERS(-INFINITY, 5, -INFINITY))), 0, 1, 0);
    EXPECT(gr_log_softmax(tensor(GR_SHAPE(2), NUMBERS(-INFINITY, 5))), -INFINITY, 0);
    EXPECT(gr_logsumexp(gr_full(ctx, GR_SHAPE(3), -INFINITY), GR_ALL), -INFINITY);
}

TEST(softmax_and_logsumexp_of_large_numbers_do_not_overflow) {
    const double large = 1e30, sign[] = {1, -1};
    for (int s = 0; s < 2; s++) {
        gr_tensor *x = gr_full(ctx, GR_SHAPE(4), sign[s] * large);
        EXPECT(gr_softmax(x), 0.25, 0.25, 0.25, 0.25);
        EXPECT_NEAR(gr_log_softmax(x), 1e-6, -log(4), -log(4), -log(4), -log(4));
        EXPECT(gr_logsumexp(x, GR_ALL), sign[s] * large);
    }
    EXPECT(gr_softmax(tensor(GR_SHAPE(2), NUMBERS(large, -large))), 1, 0);
    gr_tensor *x = variable(GR_SHAPE(2), NUMBERS(large, -large));
    ck_assert(gr_backward(gr_logsumexp(x, GR_ALL)));
    EXPECT(gr_grad(x), 1, 0);
}

TEST(logsumexp_lets_infinity_and_nan_through) {
    EXPECT(gr_logsumexp(tensor(GR_SHAPE(2), NUMBERS(INFINITY, 1)), GR_ALL), INFINITY);
    EXPECT(gr_logsumexp(tensor(GR_SHAPE(2), NUMBERS(NAN, 1)), GR_ALL), NAN);
    EXPECT(gr_logsumexp(tensor(GR_SHAPE(2), NUMBERS(NAN, -INFINITY)), GR_ALL), NAN);
    EXPECT(gr_logsumexp(tensor(GR_SHAPE(2), NUMBERS(NAN, INFINITY)), GR_ALL), NAN);
    EXPECT(gr_logsumexp(tensor(GR_SHAPE(2), NUMBERS(-INFINITY, INFINITY)), GR_ALL), INFINITY);
}

/* -- Losses -------------------------------------------------------------------------------------------------------- */

TEST(cross_entropy_with_all_targets_ignored_is_0_with_zero_gradient) {
    const int32_t none[] = {GR_IGNORE, GR_IGNORE};
    gr_tensor *x = variable(GR_SHAPE(2, 3), NUMBERS(1, NAN, 3, INFINITY, 5, 6));
    gr_tensor *loss = gr_cross_entropy(x, (gr_tokens){none, 2, 1});
    EXPECT(loss, 0);
    ck_assert(gr_backward(loss));
    EXPECT(gr_grad(x), 0, 0, 0, 0, 0, 0);
    EXPECT(gr_cross_entropy(gr_zeros(ctx, GR_SHAPE(0, 3)), (gr_tokens){NULL, 0, 1}), 0);
}

TEST(an_ignored_row_is_not_read) {
    const int32_t targets[] = {0, GR_IGNORE};
    gr_tensor *x = variable(GR_SHAPE(2, 2), NUMBERS(0, 0, NAN, INFINITY)),
              *loss = gr_cross_entropy(x, (gr_tokens){targets, 1, 2});
    EXPECT_NEAR(loss, 1e-7, log(2));
    ck_assert(gr_backward(loss));
    EXPECT_NEAR(gr_grad(x), 1e-7, -0.5, 0.5, 0, 0);
}

TEST(cross_entropy_of_large_logits_does_not_overflow) {
    const int32_t targets[] = {0, 1};
    gr_tensor *x = variable(GR_SHAPE(2, 2), NUMBERS(1e4, -1e4, 1e4, -1e4)),
              *loss = gr_cross_entropy(x, (gr_tokens){targets, 1, 2});
    EXPECT(loss, 1e4);
    ck_assert(gr_backward(loss));
    EXPECT(gr_grad(x), 0, 0, 0.5, -0.5);
}

/* -- Slopes at kinks, ties and NaN --------------------------------------------------------------------------------- */

static gr_tensor *slope(gr_tensor *(*op)(gr_tensor *), gr_tensor *x) {
    ck_assert(gr_backward(gr_sum(op(x), GR_ALL)));
    return gr_grad(x);
}

TEST(the_slopes_of_relu_and_abs_at_0_are_0) {
    EXPECT(slope(gr_relu, variable(GR_SHAPE(4), NUMBERS(0, -0.0, 1, -1))), 0, 0, 1, 0);
    EXPECT(slope(gr_abs, variable(GR_SHAPE(4), NUMBERS(0, -0.0, 1, -1))), 0, 0, 1, -1);
    EXPECT(gr_relu(tensor(GR_SHAPE(3), NUMBERS(-0.0, -2, 2))), 0, 0, 2);
    EXPECT(slope(gr_relu, variable(GR_SHAPE(1), NUMBERS(NAN))), 1);
    EXPECT(slope(gr_abs, variable(GR_SHAPE(1), NUMBERS(NAN))), NAN);
}

TEST(nan_passes_through_relu_minimum_maximum_and_max) {
    gr_tensor *x = tensor(GR_SHAPE(3), NUMBERS(NAN, -1, 1)), *y = tensor(GR_SHAPE(3), NUMBERS(1, NAN, 0));
    EXPECT(gr_relu(x), NAN, 0, 1);
    EXPECT(gr_abs(x), NAN, 1, 1);
    EXPECT(gr_minimum(x, y), NAN, NAN, 0);
    EXPECT(gr_maximum(x, y), NAN, NAN, 1);
    EXPECT(gr_minimum(y, x), NAN, NAN, 0);
    EXPECT(gr_maximum(y, x), NAN, NAN, 1);
    EXPECT(gr_max(gr_stack((gr_tensor *[]){x, y}, 2, 0), GR_AXES(1)), NAN, NAN);
    EXPECT(gr_max(gr_stack((gr_tensor *[]){x, y}, 2, 0), GR_AXES(0)), NAN, NAN, 1);
}

TEST(max_gives_its_gradient_to_the_first_of_equals) {
    gr_tensor *x = variable(GR_SHAPE(2, 4), NUMBERS(1, 3, 3, 2, 5, 5, 5, 5));
    ck_assert(gr_backward(gr_sum(gr_max(x, GR_AXES(1)), GR_ALL)));
    EXPECT(gr_grad(x), 0, 1, 0, 0, 1, 0, 0, 0);
    gr_tensor *y = variable(GR_SHAPE(2, 2, 2), NUMBERS(1, 4, 4, 2, 4, 3, 0, 4)); /* row-major order over axes 0 and 2 */
    ck_assert(gr_backward(gr_sum(gr_max(y, GR_AXES(0, 2)), GR_ALL)));
    EXPECT(gr_grad(y), 0, 1, 1, 0, 0, 0, 0, 0);
    gr_tensor *z = variable(GR_SHAPE(3), NUMBERS(-INFINITY, -INFINITY, -INFINITY));
    ck_assert(gr_backward(gr_max(z, GR_ALL)));
    EXPECT(gr_grad(z), 1, 0, 0);
}

TEST(a_tie_of_two_is_the_first_operands) {
    gr_tensor *a = variable(GR_SHAPE(2), NUMBERS(1, 2)), *b = variable(GR_SHAPE(2), NUMBERS(1, 1));
    ck_assert(gr_backward(gr_sum(gr_add(gr_minimum(a, b), gr_scale(gr_maximum(a, b), 10)), GR_ALL)));
    EXPECT(gr_grad(a), 11, 10);
    EXPECT(gr_grad(b), 0, 1);
    gr_tensor *zero = gr_scalar(ctx, 0), *minus_zero = gr_scalar(ctx, -0.0); /* equal, and can be told apart */
    ck_assert(!signbit(gr_item(gr_minimum(zero, minus_zero))) && signbit(gr_item(gr_minimum(minus_zero, zero))));
    ck_assert(!signbit(gr_item(gr_maximum(zero, minus_zero))) && signbit(gr_item(gr_maximum(minus_zero, zero))));
}

TEST(where_keeps_garbage_of_the_other_side_out_of_the_gradient) {
    gr_tensor *x = variable(GR_SHAPE(3), NUMBERS(-1, 0, 4)), *shown = tensor(GR_SHAPE(3), NUMBERS(0, 0, 1));
    gr_tensor *y = gr_where(shown, x, gr_full(ctx, GR_SHAPE(3), NAN));
    ck_assert(gr_backward_from(y, tensor(GR_SHAPE(3), NUMBERS(NAN, INFINITY, 2))));
    EXPECT(gr_grad(x), 0, 0, 2);
    EXPECT(gr_where(gr_scalar(ctx, NAN), gr_scalar(ctx, 1), gr_scalar(ctx, 2)), 1); /* NaN is not 0 */
}

/* -- The ends of the range ----------------------------------------------------------------------------------------- */

TEST(norms_neither_overflow_nor_vanish) {
#ifdef GR_DOUBLE
    const double size[] = {1e300, 1e154, 1e-150, 1e-300, 1e-310, DBL_MAX / 4};
#else
    const double size[] = {1e30, 1e19, 1e-15, 1e-30, 1e-40, FLT_MAX / 4};
#endif
    for (size_t i = 0; i < sizeof size / sizeof size[0]; i++) {
        gr_tensor *x = gr_requires_grad(tensor(GR_SHAPE(2), NUMBERS(3 * (size[i] / 4), -size[i])));
        gr_tensor *norm = gr_norm(x, GR_ALL);
        const double near = size[i] < (sizeof(gr_real) == 4 ? 1e-38 : 1e-307) ? 1e-3 : TOLERANCE; /* denormals */
        ck_assert_double_eq_tol(gr_item(norm) / size[i], 1.25, near);
        ck_assert(gr_backward(norm));
        EXPECT_NEAR(gr_grad(x), near, 0.6, -0.8);
        gr_context_reset(ctx);
    }
}

TEST(the_norm_of_0_has_gradient_0_and_infinity_and_nan_pass) {
    gr_tensor *x = variable(GR_SHAPE(3), NUMBERS(0, 0, 0));
    ck_assert(gr_backward(gr_norm(x, GR_ALL)));
    EXPECT(gr_grad(x), 0, 0, 0);
    EXPECT(gr_norm(tensor(GR_SHAPE(2), NUMBERS(-INFINITY, 1)), GR_ALL), INFINITY);
    EXPECT(gr_norm(tensor(GR_SHAPE(2), NUMBERS(NAN, 1)), GR_ALL), NAN);
}

TEST(powers_of_0_and_of_negative_numbers) {
    gr_tensor *x = tensor(GR_SHAPE(4), NUMBERS(0, -2, -0.5, 1));
    EXPECT(gr_pow(x, 0), 1, 1, 1, 1);
    EXPECT(gr_pow(x, 3), 0, -8, -0.125, 1);
    EXPECT(gr_pow(x, -1), INFINITY, -0.5, -2, 1);
    EXPECT(gr_pow(x, 0.5), 0, NAN, NAN, 1);
    gr_tensor *z = variable(GR_SHAPE(2), NUMBERS(0, 2));
    ck_assert(gr_backward(gr_sum(gr_add(gr_pow(z, 0), gr_add(gr_pow(z, 1), gr_pow(z, 2))), GR_ALL)));
    EXPECT(gr_grad(z), 1, 5);
}

/* -- Normalisation ------------------------------------------------------------------------------------------------- */

TEST(layernorm_of_a_constant_row_is_exactly_beta) {
    const double constant[] = {0, 1, 0.1, -1e-3, 12345.678, 1e10};
    gr_tensor *w = tensor(GR_SHAPE(3), NUMBERS(1e3, -2, 5)), *b = tensor(GR_SHAPE(3), NUMBERS(0.1, -2, 3));
    for (int i = 0; i < 6; i++) {
        EXPECT(gr_layernorm(gr_full(ctx, GR_SHAPE(1, 3), constant[i]), w, b, 0), 0.1, -2, 3);
        EXPECT(gr_layernorm(gr_full(ctx, GR_SHAPE(3), constant[i]), w, NULL, 0), 0, 0, 0);
        gr_tensor *same = gr_requires_grad(gr_full(ctx, GR_SHAPE(1000), constant[i])),
                  *variance = gr_variance(same, GR_ALL);
        EXPECT(variance, 0);
        ck_assert(gr_backward(variance));
        EXPECT(gr_max(gr_abs(gr_grad(same)), GR_ALL), 0);
    }
}

TEST(variance_far_from_0_keeps_its_digits) {
    const double shift = 4096; /* exact in both precisions; sum x^2 - mean^2 would lose the digits */
    gr_tensor *x = tensor(GR_SHAPE(4), NUMBERS(shift - 1, shift + 1, shift - 1, shift + 1));
    EXPECT(gr_variance(x, GR_ALL), 1);
    EXPECT_NEAR(gr_layernorm(x, NULL, NULL, 0), 1e-6, -sqrt(1 / (1 + 1e-5)), sqrt(1 / (1 + 1e-5)),
                -sqrt(1 / (1 + 1e-5)), sqrt(1 / (1 + 1e-5)));
}

Suite *conventions_suite(void) {
    Suite *suite = suite_create("conventions");
    add_rows(suite, "hidden slots", garbage_in_a_hidden_slot_changes_no_bit, GARBAGE);
    add_rows(suite, "the future", garbage_in_the_future_changes_no_bit_of_the_past, GARBAGE);
    add_rows(suite, "a blind query", garbage_in_a_query_that_sees_nothing_changes_no_bit, GARBAGE);
    add_rows(suite, "its gradient", garbage_in_the_gradient_of_a_query_that_sees_nothing_changes_no_bit, GARBAGE);
    add_rows(suite, "nothing seen", when_no_query_sees_anything_all_is_0_even_beside_garbage, GARBAGE);
    GROUP(suite, "masks", a_query_that_sees_nothing_is_0_with_zero_gradients,
          the_textbook_way_of_masking_gives_the_same_weights);
    GROUP(suite, "softmax", a_softmax_row_with_nan_stays_nan_and_the_next_does_not,
          a_softmax_row_of_minus_infinity_is_0, softmax_and_logsumexp_of_large_numbers_do_not_overflow,
          logsumexp_lets_infinity_and_nan_through);
    GROUP(suite, "losses", cross_entropy_with_all_targets_ignored_is_0_with_zero_gradient, an_ignored_row_is_not_read,
          cross_entropy_of_large_logits_does_not_overflow);
    GROUP(suite, "kinks", the_slopes_of_relu_and_abs_at_0_are_0, nan_passes_through_relu_minimum_maximum_and_max,
          max_gives_its_gradient_to_the_first_of_equals, a_tie_of_two_is_the_first_operands,
          where_keeps_garbage_of_the_other_side_out_of_the_gradient);
    GROUP(suite, "range", norms_neither_overflow_nor_vanish, the_norm_of_0_has_gradient_0_and_infinity_and_nan_pass,
          powers_of_0_and_of_negative_numbers);
    GROUP(suite, "normalisation", layernorm_of_a_constant_row_is_exactly_beta, variance_far_from_0_keeps_its_digits);
    return suite;
}
