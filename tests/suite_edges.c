/* Calls on nothing, on an inert tensor, in a failed context and without one: harmless answers. And formulas at the ends
 * of their ranges. */
#include "support.h"

#include "tensor/scalar.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char failure[] = "edges: on purpose";
static void fail_now(void) { gr_fail(ctx, "edges", "on purpose"); }

/* A tensor of ctx that was made after an error, which has been cleared since. */
static gr_tensor *made_after_an_error(void) {
    fail_now();
    gr_tensor *x = gr_scalar(ctx, 1);
    gr_error_clear(ctx);
    ck_assert(gr_is_inert(x) && gr_ok(ctx));
    return x;
}

/* -- Tensors ------------------------------------------------------------------------------------------------------- */

TEST(nothing_can_be_asked_for_its_shape_or_values) {
    gr_real value = 7;
    ck_assert_int_eq(gr_dim(NULL, 0), 0);
    ck_assert_int_eq(gr_stride(NULL, -1), 0);
    gr_error_clear(ctx);
    ck_assert(gr_is_inert(gr_named(NULL, "x")));
    ck_assert(!gr_to_array(NULL, &value) && !gr_to_array(made_after_an_error(), &value));
    gr_tensor *x = gr_scalar(ctx, 1);
    ck_assert(!gr_to_array(x, NULL));
    fail_now();
    ck_assert(!gr_to_array(x, &value) && value == 7);
    EXPECT_ERROR(failure);
    ck_assert(gr_to_array(x, &value) && value == 1);
}

TEST(printing_to_nowhere_and_to_the_screen) {
    gr_fprint(NULL, gr_scalar(ctx, 1));
    ck_assert(gr_ok(ctx));
    FILE *screen = tmpfile();
    ck_assert(screen && dup2(fileno(screen), STDOUT_FILENO) == STDOUT_FILENO);
    gr_print(gr_scalar(ctx, 2.5));
    fflush(stdout);
    char text[32] = "";
    rewind(screen);
    ck_assert_uint_eq(fread(text, 1, sizeof text - 1, screen), strlen("()\n2.5\n"));
    ck_assert_str_eq(text, "()\n2.5\n");
    fclose(screen);
}

TEST(a_range_of_one_number_draws_it) {
    EXPECT(gr_uniform(ctx, GR_SHAPE(3), 2, 2, &rng), 2, 2, 2);
    gr_tensor *x = gr_uniform(ctx, GR_SHAPE(100), 1, 1 + (double)GR_REAL_EPSILON, &rng); /* 1 is all there is below */
    for (int64_t i = 0; i < gr_numel(x); i++) DEMAND(gr_data(x)[i] == 1);
}

TEST(a_power_beyond_what_is_squared_is_that_of_libm) {
    const double x[] = {1.001, 0.5, 0, 1, 3}, t[] = {1025, -1025, 2000.5};
    for (int k = 0; k < 3; k++) {
        gr_tensor *y = gr_pow(tensor(GR_SHAPE(5), x), t[k]);
        for (int i = 0; i < 5; i++) {
            const double found = (double)gr_data(y)[i], wanted = (double)(gr_real)pow((double)(gr_real)x[i], t[k]);
            /* e^(t log x): the error of the logarithm times t */
            DEMAND(found == wanted || fabs(found - wanted) <= 4 * fabs(t[k]) * TOLERANCE * wanted);
        }
    }
    ck_assert(isnan(gr_item(gr_pow(gr_scalar(ctx, 2), (double)NAN))));
}

TEST(a_sine_far_out_stays_between_its_bounds) {
    static const double far[] = {1e6, -1e7, 3e8, 1e15, -1e30};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++)
        DEMAND(fabs(gr_double_cos(far[i])) <= 1 && fabs(gr_double_sin(far[i])) <= 1);
    gr_tensor *table = gr_rotary_table(ctx, INT64_C(1) << 50, 64, 4, 10000);
    for (int64_t i = 0; i < gr_numel(table); i++) DEMAND(fabs((double)gr_data(table)[i]) <= 1);
    if (!gr_ok(ctx)) EXPECT_ERROR("rotary_table: ");
}

/* -- Gradients ----------------------------------------------------------------------------------------------------- */

TEST(gradients_of_nothing_are_refused_or_ignored) {
    gr_tensor *x = gr_parameter(gr_scalar(ctx, 3), "x"), *inert = made_after_an_error();
    ck_assert(!gr_backward(NULL) && !gr_backward_from(NULL, NULL));
    ck_assert(!gr_backward_from(NULL, x));
    EXPECT_ERROR("backward: y is NULL");
    ck_assert(!gr_backward_from(x, NULL));
    EXPECT_ERROR("backward: seed is NULL");
    ck_assert(!gr_backward_from(inert, x));
    EXPECT_ERROR("backward: y was made after an error that has been cleared since");
    ck_assert(gr_is_inert(gr_requires_grad(inert)) && gr_is_inert(gr_grad(inert)) && gr_is_inert(gr_detach(inert)));
    ck_assert_ptr_eq(gr_retain_grad(inert), inert);
    fail_now();
    ck_assert(!gr_backward_from(x, x) && !gr_backward(x));
    ck_assert(gr_is_inert(gr_requires_grad(x)) && gr_is_inert(gr_grad(x)) && gr_is_inert(gr_detach(x)));
    EXPECT_ERROR(failure);
    ck_assert(gr_backward(x));
    EXPECT(gr_grad(x), 1);
}

TEST(the_list_of_parameters_has_ends) {
    gr_tensor *w = gr_parameter(gr_scalar(ctx, 3), "w");
    ck_assert_ptr_eq(gr_parameter_at(ctx, 0), w);
    ck_assert(gr_is_inert(gr_parameter_at(ctx, -1)));
    EXPECT_ERROR("parameter_at: index -1; there are 1 parameters");
    ck_assert(gr_is_inert(gr_parameter_at(ctx, 1)));
    EXPECT_ERROR("parameter_at: index 1; there are 1 parameters");
    ck_assert(gr_is_inert(gr_parameter_at(NULL, 0)));
    ck_assert_int_eq(gr_parameter_count(NULL), 0);
    ck_assert_int_eq(gr_parameter_numel(NULL), 0);
    ck_assert(isnan(gr_clip_grad_norm(NULL, 1)));
}

TEST(without_a_context_no_region_begins_or_ends) {
    gr_context *none = gr_context_of(NULL); /* constant: writing to it would be a fault */
    gr_no_grad_begin(NULL), gr_no_grad_begin(none);
    gr_no_grad_end(NULL), gr_no_grad_end(none);
    gr_zero_grad(NULL), gr_zero_grad(none);
    gr_context_reset(NULL), gr_context_reset(none);
    gr_error_clear(NULL), gr_error_clear(none);
    gr_context_free(none);
    gr_profile_begin(NULL), gr_profile_begin(none);
    ck_assert(gr_profile_seconds(NULL) == 0 && gr_profile_seconds(none) == 0);
    ck_assert_uint_eq(gr_context_bytes(NULL), 0);
    ck_assert_str_eq(gr_context_isa(NULL), "");
    ck_assert_str_eq(gr_context_isa(none), "");
    ck_assert(!gr_ok(none));
}

static gr_tensor *strange; /* of another context */
static gr_tensor *give_strange(gr_context *in, gr_tensor **x, void *arg) {
    (void)in, (void)x, (void)arg;
    return strange;
}
static gr_tensor *square(gr_context *in, gr_tensor **x, void *arg) {
    (void)in, (void)arg;
    return gr_square(x[0]);
}

TEST(a_gradient_check_of_nothing_or_elsewhere_is_an_error) {
    const gr_gradcheck_config usual = {0};
    gr_context *other = gr_context_new();
    gr_tensor *x = tensor(GR_SHAPE(1), NUMBERS(3));
    strange = gr_scalar(other, 1);
    ck_assert(!gr_gradcheck(ctx, give_strange, NULL, 1, &x, NULL, usual).ok);
    EXPECT_ERROR("gradcheck: the function gave a tensor of another context");
    ck_assert(!gr_gradcheck(ctx, square, NULL, 1, NULL, NULL, usual).ok);
    EXPECT_ERROR("gradcheck: input 0 is NULL, inert or of another context");
    ck_assert(!gr_gradcheck(ctx, square, NULL, 1, &strange, NULL, usual).ok);
    EXPECT_ERROR("gradcheck: input 0 is NULL");
    ck_assert(!gr_gradcheck(ctx, square, NULL, -1, &x, NULL, usual).ok);
    EXPECT_ERROR("gradcheck: the number of inputs is negative");
    ck_assert(!gr_gradcheck(ctx, square, NULL, 1, &x, NULL, (gr_gradcheck_config){.tolerance = 1e-30, .step = 0.3}).ok);
    ck_assert(gr_gradcheck(ctx, square, NULL, 1, &x, NULL, (gr_gradcheck_config){.tolerance = 1}).ok && gr_ok(ctx));
    gr_tensor *none = gr_full(ctx, GR_SHAPE(1), (double)NAN); /* its quotient is no number, its gradient neither */
    const gr_gradcheck_result r = gr_gradcheck(ctx, square, NULL, 1, &none, NULL, usual);
    ck_assert(!r.ok && isinf(r.error));
    strange = gr_scalar(ctx, 1);
    ck_assert(gr_gradcheck(ctx, give_strange, NULL, 0, NULL, NULL, usual).error != 0); /* no variable to check */
    gr_error_clear(ctx);
    gr_context_free(other);
}

static gr_tensor *of_the_parameter(gr_context *in, gr_tensor **x, void *arg) {
    (void)x;
    gr_tensor *w = gr_parameter_at(in, 0);
    return arg ? gr_max(w, GR_ALL) : gr_sum(w, GR_ALL);
}

TEST(a_gradient_check_gives_a_parameter_at_its_end_no_gradient) {
    gr_tensor *w = gr_parameter(counting(GR_SHAPE(3)), "w"), *x = gr_scalar(ctx, 1);
    for (int i = 0; i < 2; i++)
        ck_assert(gr_gradcheck(ctx, of_the_parameter, i ? w : NULL, 1, &x, NULL, (gr_gradcheck_config){0}).ok);
    EXPECT(gr_grad(w), 0, 0, 0);
}

TEST(norms_of_no_of_tiny_and_of_huge_gradients) {
    ck_assert(gr_clip_grad_norm(ctx, 1) == 0);
    gr_tensor *w = gr_parameter(gr_zeros(ctx, GR_SHAPE(2)), "w");
    gr_real *g = gr_data(gr_grad(w));
    const double tiny = (double)(GR_REAL_MIN * GR_REAL_EPSILON); /* 1 / it overflows gr_real */
    g[0] = (gr_real)tiny;
    ck_assert(fabs(gr_clip_grad_norm(ctx, 1) / tiny - 1) < 1e-6 && (double)g[0] == tiny);
    g[0] = g[1] = GR_REAL_MAX;
    const double norm = gr_clip_grad_norm(ctx, 1);
    if (sizeof(gr_real) == sizeof(double)) {
        ck_assert(isnan(norm) && g[0] == GR_REAL_MAX);
        EXPECT_ERROR("the norm of the gradients is too large for a double");
    } else
        ck_assert(fabs(norm / (double)GR_REAL_MAX - sqrt(2.)) < 1e-6 && fabs((double)g[0] - sqrt(0.5)) < 1e-6);
}

TEST(an_optimiser_with_bad_settings_never_steps) {
    gr_tensor *w = gr_parameter(gr_scalar(ctx, 3), "w");
    gr_sgd *sgd = gr_sgd_new(ctx, (gr_sgd_config){.momentum = -1});
    EXPECT_ERROR("sgd: momentum is -1");
    ck_assert(!gr_sgd_step(sgd, 0.1) && !gr_sgd_step(NULL, 0.1));
    EXPECT_ERROR("sgd: the optimiser could not be made, after an error that has been cleared since");
    const double beta[][2] = {{-1, 0.5}, {1, 0.5}, {0.5, -1}, {0.5, 1}, {(double)NAN, 0.5}};
    for (int i = 0; i < 5; i++) {
        gr_adamw *adamw = gr_adamw_new(ctx, (gr_adamw_config){.beta1 = beta[i][0], .beta2 = beta[i][1]});
        EXPECT_ERROR("both must be in (0, 1)");
        ck_assert(!gr_adamw_step(adamw, 0.1) && !gr_adamw_step(NULL, 0.1));
        EXPECT_ERROR("adamw: the optimiser could not be made");
    }
    EXPECT(w, 3);
    const gr_schedule_config c = {.peak = 1, .min = 0.5, .warmup = -3, .total = 10};
    ck_assert(gr_linear_decay(0, c) == 1 && gr_linear_decay(-7, c) == 1 && gr_linear_decay(5, c) == 0.75);
}

/* -- What is shown ------------------------------------------------------------------------------------------------- */

TEST(a_table_of_huge_and_of_many_tensors_keeps_its_form) {
    static char text[16384], name[80];
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    const bool wide = sizeof(size_t) > 4; /* else there are no such tensors: of 2^62 or 2^63 bytes */
    if (wide) gr_explain(gr_expand(gr_scalar(ctx, 1), GR_SHAPE(INT64_C(1) << 60)), file);
    memset(name, 'n', 60);
    gr_tensor *part[2];
    for (int i = 0; i < 2; i++) part[i] = gr_named(gr_requires_grad(counting(GR_SHAPE(3))), name);
    gr_tensor *both = gr_concat(part, 2, 0); /* the second fills the cell to its end: there are no more */
    gr_explain(both, file);
    gr_graph_mermaid(gr_linear(counting(GR_SHAPE(1, 3)), gr_requires_grad(counting(GR_SHAPE(2, 3))), NULL), file);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    ck_assert_msg(!wide || contains(text, sizeof(gr_real) == 8 ? "9.22e+03P" : "4.61e+03P"), "%s", text);
    ck_assert_msg(contains(text, "n (3,), nnn") && !contains(text, "..."), "%s", text);
    ck_assert_msg(contains(text, "linear<br/>(1, 2)"), "%s", text);
    gr_profile_begin(ctx);
    gr_profile_print(ctx, NULL), gr_profile_print(NULL, stderr);
    fail_now();
    gr_profile_begin(ctx);
    EXPECT_ERROR(failure);
    int major, minor;
    ck_assert_int_eq(sscanf(gr_version(), "%d.%d", &major, &minor), 2);
}

TEST(a_random_layout_needs_a_generator_and_blocks_a_row_each) {
    ck_assert(gr_is_inert(gr_layout_bigbird(ctx, (gr_bigbird_config){.blocks = 4, .window = 1})));
    EXPECT_ERROR("layout_bigbird: rng is NULL");
    fail_now();
    gr_mask_matrix(ctx, gr_mask_causal(), GR_SHAPE(3));
    EXPECT_ERROR(failure);
    gr_mask_matrix(ctx, gr_mask_blocks(gr_zeros(ctx, GR_SHAPE(3, 2)), 2), GR_SHAPE(6, 6));
    EXPECT_ERROR("layout (3, 2) has not a block of 2 for each");
    gr_mask_matrix(ctx, gr_mask_causal(), (gr_shape){GR_MAX_DIMS + 1, {1, 1, 1, 1, 1, 1}});
    EXPECT_ERROR("mask: a mask is for scores of 2 to 6 axes, not 7");
}

TEST(a_message_of_an_endless_place_is_cut_off) {
    char where[2000];
    memset(where, 'w', sizeof where - 1);
    where[sizeof where - 1] = '\0';
    gr_fail(ctx, where, "%s", "why");
    ck_assert(strlen(gr_error_message(ctx)) > 100 && strlen(gr_error_message(ctx)) < 512);
}

/* -- Attention ----------------------------------------------------------------------------------------------------- */

TEST(after_an_error_attention_gives_inert_tensors_alone) {
    gr_tensor *x = drawn(GR_SHAPE(3, 4), -1, 1), *weights = NULL, *logsumexp = NULL;
    fail_now();
    gr_tensor *y = gr_attention(x, x, x, (gr_attention_options){.weights = &weights});
    ck_assert(gr_is_inert(y) && weights && gr_is_inert(weights));
    y = gr_attention(x, x, x, (gr_attention_options){.logsumexp = &logsumexp});
    ck_assert(gr_is_inert(y) && logsumexp && gr_is_inert(logsumexp));
    EXPECT_ERROR(failure);
}

TEST(operands_of_attention_have_as_many_axes) {
    gr_tensor *x = drawn(GR_SHAPE(3, 4), -1, 1), *more = drawn(GR_SHAPE(1, 3, 4), -1, 1), *row = gr_select(x, 0, 0);
    gr_tensor *const wrong[][3] = {{x, x, more}, {x, more, x}, {more, x, x}, {row, row, row}};
    for (int i = 0; i < 4; i++) {
        ck_assert(gr_is_inert(gr_attention(wrong[i][0], wrong[i][1], wrong[i][2], (gr_attention_options){0})));
        EXPECT_ERROR("attention: ");
        ck_assert(gr_is_inert(gr_linear_attention(wrong[i][0], wrong[i][1], wrong[i][2], false)));
        EXPECT_ERROR("linear_attention: ");
    }
}

TEST(targets_and_tables_have_sizes_that_fit) {
    static const int32_t ids[] = {0, 0};
    gr_tensor *logits = gr_zeros(ctx, GR_SHAPE(2, 3));
    const gr_tokens wrong[] = {{ids, -1, -2}, {ids, 2, -1}, {ids, INT64_MAX, 2}, {ids, 1, 1}};
    for (int i = 0; i < 4; i++) {
        ck_assert(gr_is_inert(gr_cross_entropy(logits, wrong[i])));
        EXPECT_ERROR("cross_entropy: ");
    }
    gr_tensor *x = gr_requires_grad(gr_zeros(ctx, GR_SHAPE(3, 0)));
    gr_tensor *y = gr_rotary(x, gr_zeros(ctx, GR_SHAPE(3, 0)));
    EXPECT_SHAPE(y, GR_SHAPE(3, 0));
    ck_assert(gr_backward(gr_sum(y, GR_ALL)));
}

TEST(values_without_columns_give_outputs_without_columns) {
    gr_tensor *x = gr_requires_grad(drawn(GR_SHAPE(3, 4), -1, 1)), *v = gr_zeros(ctx, GR_SHAPE(3, 0));
    gr_profile_begin(ctx);
    gr_tensor *y = gr_attention(x, x, v, (gr_attention_options){0}), *z = gr_linear_attention(x, x, v, true);
    EXPECT_SHAPE(y, GR_SHAPE(3, 0));
    EXPECT_SHAPE(z, GR_SHAPE(3, 0));
    ck_assert(gr_backward(gr_add(gr_sum(y, GR_ALL), gr_sum(z, GR_ALL))));
    for (int i = 0; i < 12; i++) ck_assert(gr_data(gr_grad(x))[i] == 0);
}

Suite *edges_suite(void) {
    Suite *suite = suite_create("edges");
    GROUP(suite, "tensors", nothing_can_be_asked_for_its_shape_or_values, printing_to_nowhere_and_to_the_screen,
          a_range_of_one_number_draws_it, a_power_beyond_what_is_squared_is_that_of_libm,
          a_sine_far_out_stays_between_its_bounds);
    GROUP(suite, "gradients", gradients_of_nothing_are_refused_or_ignored, the_list_of_parameters_has_ends,
          without_a_context_no_region_begins_or_ends, a_gradient_check_of_nothing_or_elsewhere_is_an_error,
          a_gradient_check_gives_a_parameter_at_its_end_no_gradient, norms_of_no_of_tiny_and_of_huge_gradients,
          an_optimiser_with_bad_settings_never_steps);
    GROUP(suite, "shown", a_table_of_huge_and_of_many_tensors_keeps_its_form,
          a_random_layout_needs_a_generator_and_blocks_a_row_each, a_message_of_an_endless_place_is_cut_off);
    GROUP(suite, "attention", after_an_error_attention_gives_inert_tensors_alone,
          operands_of_attention_have_as_many_axes, targets_and_tables_have_sizes_that_fit,
          values_without_columns_give_outputs_without_columns);
    return suite;
}
