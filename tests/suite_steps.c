/* A tensor of an earlier step is refused wherever it is used, and what was kept is not. */
#include "support.h"

#include "tensor/internal.h"

static gr_tensor *old, *kept, *x;

static void two_steps(void) {
    kept = gr_keep(counting(GR_SHAPE(2, 3)));
    old = gr_named(counting(GR_SHAPE(2, 3)), "old");
    gr_context_reset(ctx);
    for (int i = 0; i < 10; i++) x = counting(GR_SHAPE(2, 3)); /* more than there were */
}

#define OF_AN_EARLIER_STEP " is of an earlier step; gr_keep holds what is used in more than one"

TEST(an_op_names_the_operand) {
    two_steps();
    ck_assert(gr_is_inert(gr_add(old, x)));
    EXPECT_ERROR("add: a (operand 0)" OF_AN_EARLIER_STEP);
    ck_assert(gr_is_inert(gr_matmul(x, old)));
    EXPECT_ERROR("matmul: b (operand 1)" OF_AN_EARLIER_STEP);
    ck_assert(gr_is_inert(gr_concat((gr_tensor *[]){x, x, old}, 3, 0)));
    EXPECT_ERROR("concat: tensor 2" OF_AN_EARLIER_STEP);
    ck_assert(gr_is_inert(gr_mask_matrix(ctx, gr_mask_tensor(old), GR_SHAPE(2, 3))));
    EXPECT_ERROR("mask: a tensor of the mask" OF_AN_EARLIER_STEP);
}

TEST(so_does_all_that_reads_one) {
    gr_real out[6];
    two_steps();
    ck_assert(isnan(gr_item(old)));
    EXPECT_ERROR("item: x" OF_AN_EARLIER_STEP);
    ck_assert(!gr_to_array(old, out));
    EXPECT_ERROR("to_array: x" OF_AN_EARLIER_STEP);
    ck_assert(gr_is_inert(gr_keep(old)));
    EXPECT_ERROR("keep: x" OF_AN_EARLIER_STEP);
    ck_assert(gr_is_inert(gr_parameter(old, "w")));
    EXPECT_ERROR("keep: x" OF_AN_EARLIER_STEP);
    ck_assert(gr_is_inert(gr_named(old, "new")) && gr_named(old, "new") != old);
    EXPECT_ERROR("named: x" OF_AN_EARLIER_STEP);
    ck_assert(!gr_backward(old));
    EXPECT_ERROR("backward: the loss" OF_AN_EARLIER_STEP);
    ck_assert(!gr_backward_from(old, x));
    EXPECT_ERROR("backward: y" OF_AN_EARLIER_STEP);
    ck_assert(!gr_backward_from(x, old));
    EXPECT_ERROR("backward: the seed" OF_AN_EARLIER_STEP);
    gr_requires_grad(old);
    EXPECT_ERROR("requires_grad: x" OF_AN_EARLIER_STEP);
    gr_retain_grad(old);
    EXPECT_ERROR("retain_grad: x" OF_AN_EARLIER_STEP);
    gr_grad(old);
    EXPECT_ERROR("grad: x" OF_AN_EARLIER_STEP);
    gr_detach(old);
    EXPECT_ERROR("detach: x" OF_AN_EARLIER_STEP);
}

static gr_tensor *square(gr_context *c, gr_tensor **in, void *arg) {
    (void)c, (void)arg;
    return gr_square(in[0]);
}

TEST(so_does_all_that_shows_one) {
    two_steps();
    gr_print(old);
    EXPECT_ERROR("print: x" OF_AN_EARLIER_STEP);
    gr_explain(old, stdout);
    EXPECT_ERROR("explain: y" OF_AN_EARLIER_STEP);
    gr_graph_mermaid(old, stdout);
    EXPECT_ERROR("explain: y" OF_AN_EARLIER_STEP);
    ck_assert(!gr_gradcheck(ctx, square, NULL, 1, &old, NULL, (gr_gradcheck_config){0}).ok);
    EXPECT_ERROR("gradcheck: input 0" OF_AN_EARLIER_STEP);
}

/* One call before the differences, then four for each of 3 elements of 2 operands. */
static gr_tensor *ends_the_step(gr_context *c, gr_tensor **in, void *arg) {
    int *calls = arg;
    gr_tensor *y = gr_square(in[0]);
    if (--*calls == 0) gr_context_reset(c), gr_context_reset(c);
    return y;
}

TEST(a_function_that_ends_the_step_fails_its_check) {
    for (int call = 1; call <= 1 + 4 * 3 * 2; call++) {
        int calls = call;
        x = gr_named(counting(GR_SHAPE(3)), "x");
        const gr_gradcheck_result r =
            gr_gradcheck(ctx, ends_the_step, &calls, 2, (gr_tensor *[]){x, x}, NULL, (gr_gradcheck_config){0});
        ck_assert(!r.ok && isnan(r.error) && strcmp(r.input_name, "") == 0);
        EXPECT_ERROR("gradcheck: the function has ended the step");
        gr_context_reset(ctx);
        x = counting(GR_SHAPE(3));
        ck_assert(gr_gradcheck(ctx, square, NULL, 1, &x, NULL, (gr_gradcheck_config){0}).ok);
    }
}

TEST(it_has_neither_shape_nor_numbers_nor_name) {
    two_steps();
    ck_assert(gr_is_inert(old) && !gr_data(old) && gr_ndim(old) == 0 && gr_numel(old) == 0);
    ck_assert_str_eq(gr_name(old), "");
}

/* In a loop the mistake shows in the second step, and no weight has learnt from it. */
TEST(a_loop_stops_at_its_second_step) {
    gr_tensor *w = gr_parameter(gr_full(ctx, GR_SHAPE(3), 1), "w"), *data = counting(GR_SHAPE(2, 3));
    gr_adamw *adamw = gr_adamw_new(ctx, (gr_adamw_config){0});
    int steps = 0;
    gr_real first[3];
    for (int step = 0; step < 2; step++, gr_zero_grad(ctx), gr_context_reset(ctx)) {
        if (!gr_backward(gr_mean(gr_square(gr_mul(data, w)), GR_ALL))) continue;
        gr_adamw_step(adamw, 0.1);
        ck_assert(gr_to_array(w, first));
        steps++;
    }
    ck_assert_int_eq(steps, 1);
    EXPECT_ERROR("mul: a (operand 0)" OF_AN_EARLIER_STEP);
    EXPECT(w, (double)first[0], (double)first[1], (double)first[2]);
}

TEST(steps_without_tensors_do_not_count) {
    two_steps();
    for (int i = 0; i < 3; i++) gr_context_reset(ctx);
    counting(GR_SHAPE(2, 3));
    ck_assert(gr_is_inert(gr_neg(x)));
    EXPECT_ERROR("neg: x (operand 0)" OF_AN_EARLIER_STEP);
}

TEST(the_kept_and_the_views_of_a_step_are_as_they_were) {
    two_steps();
    gr_tensor *view = gr_transpose(kept, 0, 1);
    EXPECT(kept, 0, 1, 2, 3, 4, 5);
    gr_context_reset(ctx);
    EXPECT(kept, 0, 1, 2, 3, 4, 5);
    gr_neg(view); /* the numbers are there, the view is not */
    EXPECT_ERROR("neg: x (operand 0)" OF_AN_EARLIER_STEP);
}

static size_t held(void) { return ctx->forever.held + ctx->step.held + ctx->tensors[0].held + ctx->tensors[1].held; }

/* Two steps' tensors have memory of their own, and no more. */
TEST(many_steps_take_no_more_memory_than_two) {
    enum { STEPS = 50, TENSORS = 100000 }; /* more than a block has room for */
    size_t two = 0;
    for (int step = 0; step < STEPS; step++, gr_context_reset(ctx)) {
        for (int i = 0; i < TENSORS; i++) gr_scalar(ctx, i);
        if (step == 1) two = held();
    }
    ck_assert_uint_eq(held(), two);
    ck_assert_uint_ge(ctx->tensors[1].held, TENSORS * sizeof(gr_tensor));
}

Suite *steps_suite(void) {
    Suite *suite = suite_create("steps");
    GROUP(suite, "of an earlier step", an_op_names_the_operand, so_does_all_that_reads_one, so_does_all_that_shows_one,
          a_function_that_ends_the_step_fails_its_check, it_has_neither_shape_nor_numbers_nor_name,
          a_loop_stops_at_its_second_step, steps_without_tensors_do_not_count,
          the_kept_and_the_views_of_a_step_are_as_they_were, many_steps_take_no_more_memory_than_two);
    return suite;
}
