/* What an error does: it sticks, it spoils nothing, it is told. */
#include "support.h"

#include "autograd/tape.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void fail_on_purpose(void) { gr_add(counting(GR_SHAPE(2)), counting(GR_SHAPE(3))); }
static const char failure[] = "add: a (2,), b (3,): shapes do not broadcast";

/* -- Sticking ------------------------------------------------------------------------------------------------------ */

TEST(the_first_error_is_kept) {
    fail_on_purpose();
    gr_matmul(counting(GR_SHAPE(2, 3)), counting(GR_SHAPE(2, 3)));
    gr_zeros(ctx, GR_SHAPE(-1));
    ck_assert_str_eq(gr_error_message(ctx), failure);
    gr_fail(ctx, "mine", "another");
    ck_assert_str_eq(gr_error_message(ctx), failure);
}

TEST(after_an_error_every_result_is_inert_and_never_null) {
    gr_tensor *x = counting(GR_SHAPE(2, 2));
    fail_on_purpose();
    const size_t bytes = gr_context_bytes(ctx);
    gr_tensor *results[] = {gr_neg(x),
                            gr_mul(x, x),
                            gr_sum(x, GR_ALL),
                            gr_softmax(x),
                            gr_matmul(x, x),
                            gr_transpose(x, 0, 1),
                            gr_reshape(x, GR_SHAPE(4)),
                            gr_select(x, 0, 0),
                            gr_zeros(ctx, GR_SHAPE(2)),
                            gr_keep(x),
                            gr_parameter(x, "w"),
                            gr_detach(x)};
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        ck_assert_ptr_nonnull(results[i]);
        ck_assert(gr_is_inert(results[i]));
        ck_assert_int_eq(gr_numel(results[i]), 0);
        ck_assert_int_eq(gr_ndim(results[i]), 0);
        ck_assert_ptr_null(gr_data(results[i]));
        ck_assert_ptr_eq(gr_context_of(results[i]), ctx);
    }
    ck_assert_uint_eq(gr_context_bytes(ctx), bytes);
    ck_assert_int_eq(gr_parameter_count(ctx), 0);
    ck_assert(isnan(gr_item(results[0])));
}

TEST(an_error_stays_in_its_context) {
    gr_context *other = gr_context_new();
    fail_on_purpose();
    ck_assert(!gr_ok(ctx) && gr_ok(other));
    ck_assert_str_eq(gr_error_message(other), "");
    ck_assert(gr_item(gr_exp(gr_scalar(other, 0))) == 1);
    gr_context_free(other);
}

TEST(a_reset_alone_forgets_no_error) {
    fail_on_purpose();
    gr_context_reset(ctx);
    ck_assert(!gr_ok(ctx));
    ck_assert_str_eq(gr_error_message(ctx), failure);
}

TEST(what_was_made_after_an_error_stays_inert) {
    gr_tensor *x = gr_reshape(gr_scalar(ctx, 1), GR_SHAPE(2));
    gr_error_clear(ctx);
    ck_assert(gr_ok(ctx) && gr_is_inert(x));
    ck_assert(gr_is_inert(gr_mul(gr_scalar(ctx, 1), x)));
    EXPECT_ERROR("mul: b (operand 1) was made after an error that has been cleared since");
}

/* -- Spoiling nothing ---------------------------------------------------------------------------------------------- */

TEST(backward_after_an_error_changes_no_gradient) {
    gr_tensor *w = gr_parameter(tensor(GR_SHAPE(2), NUMBERS(1, 2)), "w"), *loss = gr_sum(gr_square(w), GR_ALL);
    ck_assert(gr_backward(gr_sum(w, GR_ALL)));
    fail_on_purpose();
    ck_assert(!gr_backward(loss));
    ck_assert(!gr_backward_from(loss, loss));
    gr_error_clear(ctx);
    EXPECT(gr_grad(w), 1, 1);
}

TEST(an_optimiser_does_not_step_after_an_error) {
    gr_tensor *w = gr_parameter(tensor(GR_SHAPE(2), NUMBERS(1, 2)), "w");
    gr_sgd *sgd = gr_sgd_new(ctx, (gr_sgd_config){0});
    ck_assert(gr_backward(gr_sum(w, GR_ALL)));
    fail_on_purpose();
    ck_assert(!gr_sgd_step(sgd, 0.5));
    ck_assert(gr_data(w)[0] == 1 && gr_data(w)[1] == 2);
    gr_error_clear(ctx);
    ck_assert(gr_sgd_step(sgd, 0.5));
    EXPECT(w, 0.5, 1.5);
}

static void run_out(gr_node *n) { gr_fail(n->out->ctx, "out of memory", "on purpose"); }
static const gr_op giving_up = {.name = "giving_up", .operands = 1, .backward = run_out};

TEST(gradients_of_a_backward_that_stopped_half_way_are_refused_until_they_are_zero) {
    gr_tensor *w = gr_parameter(tensor(GR_SHAPE(2), NUMBERS(1, 2)), "w");
    gr_sgd *sgd = gr_sgd_new(ctx, (gr_sgd_config){0});
    gr_tensor *spoiled = gr_record(&giving_up, gr_neg(w), 1, &w, NULL, 0);
    ck_assert(!gr_backward(gr_sum(gr_add(w, spoiled), GR_ALL)));
    EXPECT_ERROR("out of memory: on purpose");
    ck_assert(!gr_sgd_step(sgd, 0.5));
    EXPECT_ERROR("sgd: the backward before it stopped half-way; gr_zero_grad first");
    ck_assert(!gr_backward(gr_sum(w, GR_ALL)));
    EXPECT_ERROR("backward: one before it stopped half-way; gr_zero_grad first");
    gr_zero_grad(ctx);
    ck_assert(gr_backward(gr_sum(w, GR_ALL)) && gr_sgd_step(sgd, 0.5));
    EXPECT(w, 0.5, 1.5);
}

/* h = 2 (w + v), gone through once more after a backward that gave up between h and w. */
TEST(nothing_of_a_backward_that_stopped_half_way_comes_back) {
    gr_tensor *w = gr_parameter(tensor(GR_SHAPE(1), NUMBERS(1)), "w"), *v = variable(GR_SHAPE(1), NUMBERS(1));
    gr_tensor *h = gr_retain_grad(gr_scale(gr_add(w, v), 2)),
              *spoiled = gr_record(&giving_up, gr_neg(h), 1, &h, NULL, 0);
    ck_assert(gr_backward(gr_sum(v, GR_ALL)));
    ck_assert(!gr_backward(gr_add(gr_sum(spoiled, GR_ALL), gr_sum(h, GR_ALL))));
    EXPECT_ERROR("out of memory: on purpose");
    gr_grad(h);
    EXPECT_ERROR("gr_backward has not come to it");
    EXPECT(gr_grad(v), 0);
    gr_zero_grad(ctx);
    ck_assert(!gr_backward(gr_sum(gr_scale(h, 3), GR_ALL)));
    EXPECT_ERROR("which backward has gone through before");
    ck_assert(gr_backward(gr_sum(gr_scale(gr_add(w, v), 6), GR_ALL)));
    EXPECT(gr_grad(w), 6);
    EXPECT(gr_grad(v), 6);
}

enum { WIDTH = 6, STEPS = 5 };

static bool try_step(gr_tensor *w, gr_sgd *sgd, int step, bool spoiled) {
    gr_rng batch = gr_rng_stream(gr_rng_seed(5), GR_STREAM_USER + (uint64_t)step);
    gr_tensor *x = gr_normal(ctx, GR_SHAPE(4, WIDTH), 0, 1, &batch), *y = gr_tanh(gr_matmul(x, w));
    if (spoiled) y = gr_add(y, gr_zeros(ctx, GR_SHAPE(WIDTH + 1)));
    bool done = gr_backward(gr_mse(y, x)) && gr_sgd_step(sgd, 0.1);
    if (done) gr_zero_grad(ctx);
    return done;
}

static void train(gr_real out[WIDTH * WIDTH], int bad_step) {
    gr_rng drawing = gr_rng_seed(6);
    gr_context_free(ctx);
    ctx = gr_context_new();
    gr_tensor *w = gr_parameter(gr_normal(ctx, GR_SHAPE(WIDTH, WIDTH), 0, 1, &drawing), "w");
    gr_sgd *sgd = gr_sgd_new(ctx, (gr_sgd_config){.momentum = 0.9});
    for (int step = 0; step < STEPS; step++) {
        if (step == bad_step) {
            ck_assert(!try_step(w, sgd, step, true));
            gr_error_clear(ctx);
            gr_context_reset(ctx);
        }
        ck_assert(try_step(w, sgd, step, false));
        gr_context_reset(ctx);
    }
    ck_assert(gr_to_array(w, out));
}

TEST(a_run_that_recovered_gives_the_bits_of_one_without_error) {
    gr_real untouched[WIDTH * WIDTH], recovered[WIDTH * WIDTH];
    train(untouched, -1);
    train(recovered, _i);
    ck_assert_mem_eq(untouched, recovered, sizeof untouched);
}

/* -- Telling ------------------------------------------------------------------------------------------------------- */

static void free_context(void) {
    gr_context_free(ctx);
    ctx = NULL;
}

TEST(an_error_that_nobody_read_is_printed_when_the_context_is_freed) {
    fail_on_purpose();
    const char *printed = captured_stderr(free_context);
    ck_assert_str_eq(printed, "gradus: add: a (2,), b (3,): shapes do not broadcast\n");
}

TEST(an_error_that_was_read_is_not_printed) {
    fail_on_purpose();
    gr_error_message(ctx);
    ck_assert_str_eq(captured_stderr(free_context), "");
}

TEST(an_error_that_was_cleared_is_not_printed) {
    fail_on_purpose();
    gr_error_clear(ctx);
    ck_assert_str_eq(captured_stderr(free_context), "");
}

TEST(nothing_is_printed_when_the_error_happens) {
    ck_assert_str_eq(captured_stderr(fail_on_purpose), "");
    ck_assert(!gr_ok(ctx));
}

static int status;
static void report(void) { status = gr_context_report(ctx); }

TEST(a_report_is_0_or_the_printed_error) {
    ck_assert_str_eq(captured_stderr(report), "");
    ck_assert_int_eq(status, 0);
    fail_on_purpose();
    ck_assert(contains(captured_stderr(report), failure));
    ck_assert_int_eq(status, 1);
    ck_assert_str_eq(captured_stderr(free_context), ""); /* not twice */
}

TEST(an_op_of_your_own_may_fail) {
    gr_fail(ctx, "rotate", "%d degrees are too many", 400);
    ck_assert_str_eq(gr_error_message(ctx), "rotate: 400 degrees are too many");
}

TEST(a_message_of_long_names_or_places_is_cut_off) {
    char name[2000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    gr_tensor *x = gr_named(gr_zeros(ctx, GR_SHAPE(INT_MAX, 0, INT_MAX, 1, 1, 1)), name);
    gr_add(x, gr_named(gr_zeros(ctx, GR_SHAPE(1, 2, 1, 1, 1, 1)), name));
    const char *message = gr_error_message(ctx);
    ck_assert(contains(message, "add: nnn") && contains(message, "(2147483647, 0, 2147483647, 1, 1, 1)"));
    ck_assert_uint_lt(strlen(message), 512);
    gr_error_clear(ctx);
    gr_fail(ctx, name, "%s", "why");
    message = gr_error_message(ctx);
    ck_assert(strncmp(message, "...nnn", 6) == 0 && contains(message, "n: why") && strlen(message) < 512);
}

/* -- The environment ----------------------------------------------------------------------------------------------- */

TEST(with_gradus_abort_the_program_stops_at_the_error) {
    setenv("GRADUS_ABORT", "1", 1);
    ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr)); /* where the error is printed */
    fail_on_purpose();
}

TEST(with_another_value_of_gradus_abort_it_does_not) {
    setenv("GRADUS_ABORT", "0", 1);
    fail_on_purpose();
    EXPECT_ERROR("add");
}

TEST(an_unknown_instruction_set_is_an_error_that_lists_the_choices) {
    const char *const wrong[] = {"sse9", "", "AVX2", "reference "};
    for (int i = 0; i < 4; i++) {
        setenv("GRADUS_ISA", wrong[i], 1);
        gr_context *other = gr_context_new();
        ck_assert(!gr_ok(other));
        ck_assert(gr_is_inert(gr_scalar(other, 1)));
        const char *message = gr_error_message(other);
        ck_assert(contains(message, "GRADUS_ISA") && contains(message, wrong[i]) && contains(message, "reference"));
        gr_error_clear(other);
        ck_assert(gr_item(gr_exp(gr_scalar(other, 0))) == 1);
        gr_context_free(other);
    }
}

TEST(the_environment_chooses_the_instruction_set) {
    ck_assert_str_ne(gr_context_isa(ctx), "");
    setenv("GRADUS_ISA", "reference", 1);
    gr_context *other = gr_context_new();
    ck_assert_str_eq(gr_context_isa(other), "reference");
    gr_context_free(other);
}

/* -- No context ---------------------------------------------------------------------------------------------------- */

TEST(no_context_is_harmless) {
    gr_context *const nothing[] = {NULL, gr_context_of(NULL)};
    for (int i = 0; i < 2; i++) {
        gr_context *none = nothing[i];
        ck_assert(!gr_ok(none));
        ck_assert(strlen(gr_error_message(none)) > 0);
        ck_assert_str_eq(gr_context_isa(none), "");
        ck_assert_uint_eq(gr_context_bytes(none), 0);
        ck_assert(gr_is_inert(gr_zeros(none, GR_SHAPE(2))) && gr_is_inert(gr_parameter_at(none, 0)));
        ck_assert_int_eq(gr_parameter_count(none), 0);
        ck_assert_int_eq(gr_parameter_numel(none), 0);
        gr_fail(none, "nowhere", "nothing");
        gr_zero_grad(none);
        gr_no_grad_begin(none), gr_no_grad_end(none), gr_no_grad_end(none);
        gr_profile_begin(none);
        ck_assert(gr_profile_seconds(none) == 0 && isnan(gr_clip_grad_norm(none, 1)));
        gr_context_reset(none), gr_error_clear(none), gr_context_free(none);
        ck_assert(!gr_ok(none));
    }
}

TEST(null_tensors_give_inert_ones) {
    gr_tensor *results[] = {gr_neg(NULL),          gr_add(NULL, NULL),        gr_matmul(NULL, NULL),
                            gr_sum(NULL, GR_ALL),  gr_softmax(NULL),          gr_select(NULL, 0, 0),
                            gr_concat(NULL, 2, 0), gr_stack(NULL, 2, 0),      gr_keep(NULL),
                            gr_named(NULL, "x"),   gr_detach(NULL),           gr_grad(NULL),
                            gr_retain_grad(NULL),  gr_requires_grad(NULL),    gr_parameter(NULL, "w"),
                            gr_mse(NULL, NULL),    gr_dropout(NULL, 0, &rng), gr_layernorm(NULL, NULL, NULL, 0)};
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        ck_assert_ptr_nonnull(results[i]);
        ck_assert(gr_is_inert(results[i]));
    }
    ck_assert(!gr_backward(NULL) && !gr_backward_from(NULL, NULL));
    ck_assert(isnan(gr_item(NULL)));
    ck_assert(gr_ok(ctx));
}

TEST(what_was_made_of_null_is_an_error_where_it_is_used) {
    ck_assert(gr_is_inert(gr_add(gr_neg(NULL), counting(GR_SHAPE(2)))));
    EXPECT_ERROR("add: a (operand 0) was made by an operation on NULL");
    ck_assert(gr_is_inert(gr_add(counting(GR_SHAPE(2)), gr_neg(NULL))));
    EXPECT_ERROR("add: b (operand 1) was made by an operation on NULL");
}

Suite *errors_suite(void) {
    Suite *suite = suite_create("errors");
    GROUP(suite, "sticking", the_first_error_is_kept, after_an_error_every_result_is_inert_and_never_null,
          an_error_stays_in_its_context, a_reset_alone_forgets_no_error, what_was_made_after_an_error_stays_inert);
    GROUP(suite, "spoiling nothing", backward_after_an_error_changes_no_gradient,
          an_optimiser_does_not_step_after_an_error,
          gradients_of_a_backward_that_stopped_half_way_are_refused_until_they_are_zero,
          nothing_of_a_backward_that_stopped_half_way_comes_back);
    add_rows(suite, "recovery", a_run_that_recovered_gives_the_bits_of_one_without_error, STEPS);
    GROUP(suite, "telling", an_error_that_nobody_read_is_printed_when_the_context_is_freed,
          an_error_that_was_read_is_not_printed, an_error_that_was_cleared_is_not_printed,
          nothing_is_printed_when_the_error_happens, a_report_is_0_or_the_printed_error, an_op_of_your_own_may_fail,
          a_message_of_long_names_or_places_is_cut_off);
    GROUP(suite, "environment", with_another_value_of_gradus_abort_it_does_not,
          an_unknown_instruction_set_is_an_error_that_lists_the_choices, the_environment_chooses_the_instruction_set);
    add_signal(suite, "abort", with_gradus_abort_the_program_stops_at_the_error, SIGABRT);
    GROUP(suite, "no context", no_context_is_harmless, null_tensors_give_inert_ones,
          what_was_made_of_null_is_an_error_where_it_is_used);
    return suite;
}
