/* The tape: which gradients are there, what they add up to, and what backward costs. */
#include "support.h"

#include <stdio.h>

/* -- What is added where ------------------------------------------------------------------------------------------- */

TEST(a_tensor_used_twice_gets_both_gradients) {
    gr_tensor *a = variable(GR_SCALAR, NUMBERS(1)), *b = gr_add(a, a), *c = gr_add(b, b);
    ck_assert_double_eq(gr_item(c), 4);
    ck_assert(gr_backward(c));
    EXPECT(gr_grad(a), 4);
}

TEST(the_two_ways_of_a_diamond_are_added) {
    gr_tensor *x = variable(GR_SHAPE(2), NUMBERS(3, 5)), *y = gr_square(x); /* L = y^2 + 2 y, y = x^2 */
    ck_assert(gr_backward(gr_sum(gr_add(gr_square(y), gr_scale(y, 2)), GR_ALL)));
    EXPECT(gr_grad(x), (2 * 9 + 2) * 6, (2 * 25 + 2) * 10);
}

TEST(an_op_may_have_one_tensor_as_all_its_operands) {
    gr_tensor *x = variable(GR_SHAPE(2, 2), NUMBERS(1, 2, 3, 4));
    ck_assert(gr_backward(gr_sum(gr_matmul(x, x), GR_ALL)));
    EXPECT(gr_grad(x), 3 + 4, 7 + 4, 3 + 6, 7 + 6);
    gr_context_reset(ctx);
    x = variable(GR_SHAPE(2), NUMBERS(1, 2));
    ck_assert(gr_backward(gr_sum(gr_concat((gr_tensor *[]){x, x, x}, 3, 0), GR_ALL)));
    EXPECT(gr_grad(x), 3, 3);
}

TEST(gradients_accumulate_over_backward_passes) {
    gr_tensor *w = gr_parameter(tensor(GR_SHAPE(2), NUMBERS(1, 2)), "w");
    for (int pass = 1; pass <= 3; pass++) {
        ck_assert(gr_backward(gr_sum(gr_square(w), GR_ALL)));
        EXPECT(gr_grad(w), 2 * pass, 4 * pass);
        if (pass == 2) gr_context_reset(ctx); /* also over steps */
    }
}

TEST(two_losses_of_one_step_add_up) {
    gr_tensor *w = gr_parameter(tensor(GR_SHAPE(2), NUMBERS(1, 2)), "w");
    gr_tensor *first = gr_sum(w, GR_ALL), *second = gr_sum(gr_square(w), GR_ALL);
    ck_assert(gr_backward(first) && gr_backward(second));
    EXPECT(gr_grad(w), 1 + 2, 1 + 4);
}

TEST(zero_grad_zeroes_every_parameter) {
    gr_tensor *w = gr_parameter(gr_full(ctx, GR_SHAPE(3), 1), "w"), *b = gr_parameter(gr_scalar(ctx, 1), "b");
    ck_assert(gr_backward(gr_sum(gr_mul(w, b), GR_ALL)));
    EXPECT(gr_grad(b), 3);
    gr_zero_grad(ctx);
    EXPECT(gr_grad(w), 0, 0, 0);
    EXPECT(gr_grad(b), 0);
}

TEST(a_parameter_is_a_loss_of_itself) {
    gr_tensor *w = gr_parameter(gr_scalar(ctx, 5), "w");
    ck_assert(gr_backward(w));
    EXPECT(gr_grad(w), 1);
}

TEST(backward_from_weighs_the_outputs) {
    gr_tensor *x = variable(GR_SHAPE(3), NUMBERS(1, 2, 3));
    ck_assert(gr_backward_from(gr_square(x), tensor(GR_SHAPE(3), NUMBERS(1, 10, 100))));
    EXPECT(gr_grad(x), 2, 40, 600);
}

TEST(the_seed_may_have_any_strides) {
    gr_tensor *x = gr_requires_grad(counting(GR_SHAPE(2, 2))), *seed = counting(GR_SHAPE(2, 2));
    ck_assert(gr_backward_from(gr_scale(x, 1), gr_transpose(seed, 0, 1)));
    EXPECT(gr_grad(x), 0, 2, 1, 3);
    EXPECT(seed, 0, 1, 2, 3);
}

/* -- What has a gradient ------------------------------------------------------------------------------------------- */

TEST(parameters_are_listed_in_the_order_of_their_making) {
    enum { MANY = 200 };
    char name[16];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "w%d", i);
        gr_parameter(gr_full(ctx, GR_SHAPE(2), i), name);
    }
    ck_assert_int_eq(gr_parameter_count(ctx), MANY);
    ck_assert_int_eq(gr_parameter_numel(ctx), 2 * MANY);
    for (int i = 0; i < MANY; i++) ck_assert_double_eq((double)gr_data(gr_parameter_at(ctx, i))[1], i);
    ck_assert_str_eq(gr_name(gr_parameter_at(ctx, 137)), "w137");
}

TEST(the_list_of_parameters_has_ends) {
    gr_tensor *w = gr_parameter(gr_scalar(ctx, 3), "w");
    ck_assert_ptr_eq(gr_parameter_at(ctx, 0), w);
    ck_assert(gr_is_inert(gr_parameter_at(ctx, -1)));
    EXPECT_ERROR("parameter_at: index -1; there are 1 parameters");
    ck_assert(gr_is_inert(gr_parameter_at(ctx, 1)));
    EXPECT_ERROR("parameter_at: index 1; there are 1 parameters");
}

TEST(a_parameter_is_a_copy) {
    gr_tensor *x = gr_full(ctx, GR_SHAPE(2), 1), *w = gr_parameter(x, "w");
    gr_data(x)[0] = 9;
    EXPECT(w, 1, 1);
}

TEST(a_variable_lives_for_a_step_and_is_no_parameter) {
    gr_tensor *x = variable(GR_SHAPE(2), NUMBERS(1, 2));
    EXPECT(gr_grad(x), 0, 0);
    ck_assert_int_eq(gr_parameter_count(ctx), 0);
    ck_assert_ptr_eq(gr_requires_grad(x), x);
    gr_tensor *kept = gr_requires_grad(gr_keep(x));
    ck_assert(gr_backward(gr_sum(kept, GR_ALL)));
    gr_context_reset(ctx);
    EXPECT(gr_grad(kept), 1, 1);
}

TEST(constants_get_no_gradient) {
    gr_tensor *x = variable(GR_SHAPE(2), NUMBERS(1, 2)), *c = tensor(GR_SHAPE(2), NUMBERS(3, 4));
    ck_assert(gr_backward(gr_sum(gr_mul(x, c), GR_ALL)));
    EXPECT(gr_grad(x), 3, 4);
    ck_assert(gr_is_inert(gr_grad(c)));
    EXPECT_ERROR("depends on no parameter or variable");
}

TEST(a_retained_gradient_stays_and_others_do_not) {
    gr_tensor *x = variable(GR_SHAPE(2), NUMBERS(1, 2)), *y = gr_retain_grad(gr_square(x)), *z = gr_square(y);
    gr_tensor *loss = gr_retain_grad(gr_sum(z, GR_ALL));
    ck_assert(gr_backward(loss));
    EXPECT(gr_grad(y), 2, 8);
    EXPECT(gr_grad(loss), 1);
    ck_assert(gr_is_inert(gr_grad(gr_named(z, "z"))));
    EXPECT_ERROR("grad: z (2,) has no gradient: that of an intermediate is kept only by gr_retain_grad");
}

TEST(a_retained_gradient_is_not_overwritten_by_recycled_buffers) {
    gr_tensor *x = variable(GR_SHAPE(4), NUMBERS(1, 2, 3, 4)), *y = x, *kept = NULL;
    for (int i = 0; i < 20; i++) {
        y = gr_scale(y, 2);
        if (i == 9) kept = gr_retain_grad(y);
    }
    ck_assert(gr_backward(gr_sum(y, GR_ALL)));
    EXPECT(gr_grad(kept), 1024, 1024, 1024, 1024);
    EXPECT(gr_grad(x), 1048576, 1048576, 1048576, 1048576);
}

TEST(detach_stops_the_gradient) {
    gr_tensor *x = variable(GR_SCALAR, NUMBERS(3));
    ck_assert(gr_backward(gr_mul(x, gr_detach(gr_square(x)))));
    EXPECT(gr_grad(x), 9);
    ck_assert(!gr_backward(gr_detach(x)));
    EXPECT_ERROR("depends on no parameter or variable");
}

TEST(a_detached_tensor_may_become_a_variable) {
    gr_tensor *x = variable(GR_SHAPE(2), NUMBERS(1, 2)), *y = gr_requires_grad(gr_detach(gr_square(x)));
    ck_assert(gr_backward(gr_sum(gr_square(y), GR_ALL)));
    EXPECT(gr_grad(y), 2, 8);
    EXPECT(gr_grad(x), 0, 0);
}

/* -- No-grad regions ----------------------------------------------------------------------------------------------- */

TEST(nothing_is_recorded_in_a_no_grad_region) {
    gr_tensor *w = gr_parameter(gr_scalar(ctx, 2), "w");
    gr_no_grad_begin(ctx);
    gr_tensor *y = gr_square(w);
    gr_no_grad_end(ctx);
    EXPECT(y, 4);
    ck_assert(gr_backward(gr_mul(w, y)));
    EXPECT(gr_grad(w), 4);
}

TEST(no_grad_regions_nest_and_survive_a_reset) {
    gr_tensor *w = gr_parameter(gr_scalar(ctx, 2), "w");
    gr_no_grad_begin(ctx);
    gr_no_grad_begin(ctx);
    gr_no_grad_end(ctx);
    gr_context_reset(ctx);
    ck_assert(!gr_backward(gr_square(w)));
    EXPECT_ERROR("depends on no parameter");
    gr_no_grad_end(ctx);
    ck_assert(gr_backward(gr_square(w)));
    EXPECT(gr_grad(w), 4);
}

TEST(an_end_without_a_beginning_is_an_error) {
    gr_no_grad_end(ctx);
    EXPECT_ERROR("no_grad_end: there was no gr_no_grad_begin");
    ck_assert(gr_backward(gr_square(gr_parameter(gr_scalar(ctx, 2), "w"))));
}

TEST(a_no_grad_region_saves_memory) {
    gr_tensor *w = gr_parameter(gr_scalar(ctx, 2), "w");
    size_t before = gr_context_bytes(ctx);
    gr_square(w);
    size_t recorded = gr_context_bytes(ctx) - before;
    gr_no_grad_begin(ctx);
    gr_square(w);
    gr_no_grad_end(ctx);
    ck_assert_uint_lt(gr_context_bytes(ctx) - before - recorded, recorded);
}

/* -- Refusals ------------------------------------------------------------------------------------------------------ */

TEST(backward_twice_on_one_graph_is_an_error) {
    gr_tensor *w = gr_parameter(gr_scalar(ctx, 3), "w"), *y = gr_square(w), *loss = gr_scale(y, 2);
    ck_assert(gr_backward(loss));
    ck_assert(!gr_backward(loss));
    EXPECT_ERROR("which backward has gone through before");
    EXPECT(gr_grad(w), 12);
    ck_assert(!gr_backward(gr_exp(y))); /* also when only a part of it is the same */
    EXPECT_ERROR("the output () of square, which backward has gone through before");
    EXPECT(gr_grad(w), 12);
    ck_assert(gr_backward(gr_scale(gr_square(w), 2)));
    EXPECT(gr_grad(w), 24);
}

TEST(backward_from_many_elements_needs_a_seed) {
    gr_tensor *w = gr_parameter(gr_full(ctx, GR_SHAPE(2), 1), "w"), *y = gr_named(gr_square(w), "y");
    ck_assert(!gr_backward(y));
    EXPECT_ERROR("backward: y (2,) has more than one element");
    ck_assert(!gr_backward_from(y, gr_scalar(ctx, 1)));
    EXPECT_ERROR("y (2,) needs a seed of its own shape, not seed ()");
    ck_assert(!gr_backward_from(y, NULL));
    EXPECT_ERROR("seed is NULL");
    EXPECT(gr_grad(w), 0, 0);
    ck_assert(gr_backward_from(y, gr_full(ctx, GR_SHAPE(2), 1)));
    EXPECT(gr_grad(w), 2, 2);
}

TEST(an_inert_seed_is_refused) {
    gr_tensor *w = gr_parameter(gr_scalar(ctx, 2), "w"), *y = gr_square(w);
    gr_tensor *inert = gr_reshape(y, GR_SHAPE(2));
    gr_error_clear(ctx);
    ck_assert(!gr_backward_from(y, inert));
    EXPECT_ERROR("the seed was made after an error");
    EXPECT(gr_grad(w), 0);
    ck_assert(!gr_backward(inert));
}

TEST(grad_says_why_there_is_none) {
    gr_tensor *x = variable(GR_SHAPE(2), NUMBERS(1, 2)), *y = gr_retain_grad(gr_square(x));
    gr_grad(y);
    EXPECT_ERROR("gr_backward has not come to it");
    gr_grad(gr_square(x));
    EXPECT_ERROR("gr_retain_grad");
    ck_assert(gr_is_inert(gr_grad(NULL)));
    ck_assert(gr_ok(ctx));
}

TEST(what_becomes_a_variable_after_its_use_gets_no_gradient_from_it) {
    gr_tensor *a = gr_requires_grad(gr_scalar(ctx, 3)), *b = gr_scalar(ctx, 5);
    gr_tensor *sum = gr_add(gr_mul(a, b), gr_square(b));
    gr_requires_grad(b);
    ck_assert(gr_backward(sum));
    ck_assert_double_eq(gr_item(gr_grad(a)), 5);
    ck_assert_double_eq(gr_item(gr_grad(b)), 0); /* all or nothing, not a part */
}

TEST(an_intermediate_cannot_become_a_variable) {
    gr_tensor *y = gr_square(variable(GR_SCALAR, NUMBERS(1)));
    ck_assert(gr_is_inert(gr_requires_grad(y)));
    EXPECT_ERROR("requires_grad: x () was made by square");
}

TEST(backward_refuses_no_tensor_no_seed_and_what_an_error_left) {
    gr_tensor *x = gr_parameter(gr_scalar(ctx, 3), "x"), *inert = gr_reshape(x, GR_SHAPE(2));
    gr_error_clear(ctx);
    ck_assert(!gr_backward(NULL) && !gr_backward_from(NULL, NULL));
    ck_assert(!gr_backward_from(NULL, x));
    EXPECT_ERROR("backward: y is NULL");
    ck_assert(!gr_backward_from(x, NULL));
    EXPECT_ERROR("backward: seed is NULL");
    ck_assert(!gr_backward_from(inert, x));
    EXPECT_ERROR("backward: y was made after an error that has been cleared since");
    ck_assert(gr_is_inert(gr_requires_grad(inert)) && gr_is_inert(gr_grad(inert)) && gr_is_inert(gr_detach(inert)));
    ck_assert_ptr_eq(gr_retain_grad(inert), inert);
    EXPECT_ERROR("requires_grad: x was made after an error that has been cleared since");
    gr_fail(ctx, "autograd", "on purpose");
    ck_assert(!gr_backward_from(x, x) && !gr_backward(x));
    ck_assert(gr_is_inert(gr_requires_grad(x)) && gr_is_inert(gr_grad(x)) && gr_is_inert(gr_detach(x)));
    EXPECT_ERROR("autograd: on purpose");
    ck_assert(gr_backward(x));
    EXPECT(gr_grad(x), 1);
}

/* -- Cost ---------------------------------------------------------------------------------------------------------- */

TEST(gradient_buffers_are_recycled) {
    enum { NODES = 500, ELEMENTS = 1024 };
    gr_tensor *x = gr_requires_grad(gr_full(ctx, GR_SHAPE(ELEMENTS), 1)), *y = x;
    for (int i = 0; i < NODES; i++) y = gr_scale(y, 1);
    gr_tensor *loss = gr_sum(y, GR_ALL);
    size_t before = gr_context_bytes(ctx);
    ck_assert(gr_backward(loss));
    ck_assert_uint_lt((gr_context_bytes(ctx) - before) / NODES, ELEMENTS * sizeof(gr_real) / 4);
}

TEST(backward_leaves_alone_what_the_loss_does_not_depend_on) {
    gr_tensor *x = variable(GR_SCALAR, NUMBERS(2)), *other = variable(GR_SCALAR, NUMBERS(3));
    gr_tensor *loss = gr_square(x), *unused = gr_mul(gr_square(other), x);
    ck_assert(gr_backward(loss));
    EXPECT(gr_grad(other), 0);
    ck_assert(gr_backward(unused)); /* and it can still be gone through */
    EXPECT(gr_grad(other), 12);
    EXPECT(gr_grad(x), 4 + 9);
}

Suite *autograd_suite(void) {
    Suite *suite = suite_create("autograd");
    GROUP(suite, "sums", a_tensor_used_twice_gets_both_gradients, the_two_ways_of_a_diamond_are_added,
          an_op_may_have_one_tensor_as_all_its_operands, gradients_accumulate_over_backward_passes,
          two_losses_of_one_step_add_up, zero_grad_zeroes_every_parameter, a_parameter_is_a_loss_of_itself,
          backward_from_weighs_the_outputs, the_seed_may_have_any_strides,
          backward_leaves_alone_what_the_loss_does_not_depend_on);
    GROUP(suite, "gradients", parameters_are_listed_in_the_order_of_their_making, the_list_of_parameters_has_ends,
          a_parameter_is_a_copy, a_variable_lives_for_a_step_and_is_no_parameter,
          what_becomes_a_variable_after_its_use_gets_no_gradient_from_it, constants_get_no_gradient,
          a_retained_gradient_stays_and_others_do_not, a_retained_gradient_is_not_overwritten_by_recycled_buffers,
          detach_stops_the_gradient, a_detached_tensor_may_become_a_variable);
    GROUP(suite, "no grad", nothing_is_recorded_in_a_no_grad_region, no_grad_regions_nest_and_survive_a_reset,
          an_end_without_a_beginning_is_an_error, a_no_grad_region_saves_memory);
    GROUP(suite, "refusals", backward_twice_on_one_graph_is_an_error, backward_from_many_elements_needs_a_seed,
          an_inert_seed_is_refused, backward_refuses_no_tensor_no_seed_and_what_an_error_left,
          grad_says_why_there_is_none, an_intermediate_cannot_become_a_variable);
    GROUP(suite, "cost", gradient_buffers_are_recycled);
    return suite;
}
