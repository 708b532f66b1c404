/* Every gradient holds, and the check that says so is itself checked: with wrong backwards and wrong functions. */
#include "cases.h"

#include "support.h"

/* -- The table of cases: each test runs once for each op of the registry ------------------------------------------ */

TEST(every_op_has_a_case_for_every_operand) {
    survey s = {0};
    survey_gradients(gr_ops[_i], &s);
    ck_assert_msg(s.cases > 0 && !s.unreached, "%s", s.complaint);
}

TEST(every_gradient_holds) {
    survey s = {0};
    survey_gradients(gr_ops[_i], &s);
    ck_assert_msg(!s.complaint[0], "%s", s.complaint);
}

TEST(every_mutant_is_caught) {
    survey s = {0};
    survey_mutants(gr_ops[_i], &s);
    ck_assert_msg(s.made > 0 && s.caught == s.made, "%s", s.complaint);
}

/* Else a mutant might be caught for what its wrapping does. */
TEST(a_mutant_without_a_fault_is_sound) {
    const gradient_case *c;
    for (int place = 0; place < MOST_OPERANDS; place++) {
        mutant m = mutant_of(gr_ops[_i], place, SOUND);
        for (int i = 0; (c = case_at(i)); i++)
            if (c->op == gr_ops[_i]) ck_assert_msg(check_case(ctx, c, &m, NULL).ok, "%s, %s", c->op->name, c->name);
    }
}

/* -- What gr_gradcheck says --------------------------------------------------------------------------------------- */

static const gr_gradcheck_config usual = {0};

/* f by a mutant in the gradient of its second operand. */
static gr_tensor *wrong_product(gr_context *in, gr_tensor **x, void *arg) {
    const gr_node *before = in->tape;
    gr_tensor *y = gr_mul(x[0], x[1]);
    infect(arg, in->tape, before);
    return y;
}

TEST(the_wrong_input_and_index_are_named) {
    mutant m = mutant_of(&gr_op_mul, 1, TAILLESS);
    gr_tensor *x[] = {gr_named(drawn(GR_SHAPE(2, 3), 1, 2), "left"), gr_named(drawn(GR_SHAPE(2, 3), 1, 2), "right")};
    gr_gradcheck_result r = gr_gradcheck(ctx, wrong_product, &m, 2, x, NULL, usual);
    ck_assert(!r.ok && gr_ok(ctx));
    ck_assert_int_eq(r.input, 1);
    ck_assert_int_eq(r.index, 5);
    ck_assert_str_eq(r.input_name, "right");
    ck_assert_double_eq(r.analytic, 0);
    ck_assert_double_ge(fabs(r.numeric), 0.5); /* |r x| with |r| >= 1/2, x >= 1 */
    ck_assert_double_ge(r.error, 0.5 / 3);
}

static gr_tensor *nothing_of(gr_context *in, gr_tensor **x, void *arg) {
    (void)in, (void)arg;
    return gr_scale(x[0], 0);
}

TEST(a_place_without_any_error_is_named_too) {
    gr_tensor *x = gr_named(counting(GR_SHAPE(2)), "x");
    const gr_gradcheck_result r = gr_gradcheck(ctx, nothing_of, NULL, 1, &x, NULL, usual);
    ck_assert(r.ok && r.error == 0);
    ck_assert_str_eq(r.input_name, "x");
}

TEST(an_input_that_is_not_wanted_is_not_checked) {
    mutant m = mutant_of(&gr_op_mul, 1, ZEROED);
    gr_tensor *x[] = {drawn(GR_SHAPE(2, 3), 1, 2), drawn(GR_SHAPE(2, 3), 1, 2)};
    ck_assert(gr_gradcheck(ctx, wrong_product, &m, 2, x, (const bool[]){true, false}, usual).ok);
    ck_assert(!gr_gradcheck(ctx, wrong_product, &m, 2, x, (const bool[]){false, true}, usual).ok);
}

static gr_tensor *detached_square(gr_context *in, gr_tensor **x, void *arg) {
    (void)in, (void)arg;
    return gr_mul(x[0], gr_detach(x[0]));
}

TEST(a_path_that_was_cut_is_found) {
    gr_tensor *x = tensor(GR_SHAPE(3), NUMBERS(1, 1, 2));
    gr_gradcheck_result r = gr_gradcheck(ctx, detached_square, NULL, 1, &x, NULL, usual);
    ck_assert(!r.ok);
    ck_assert_double_eq_tol(r.numeric, 2 * r.analytic, 1e-3); /* x for 2 x */
}

static gr_tensor *reciprocal(gr_context *in, gr_tensor **x, void *arg) {
    (void)in, (void)arg;
    return gr_pow(x[0], -1);
}

TEST(a_difference_quotient_that_is_infinite_is_wrong) {
    gr_tensor *x = tensor(GR_SHAPE(2), NUMBERS(1, 0x1p-4)); /* the second is a step away from the pole */
    gr_gradcheck_result r = gr_gradcheck(ctx, reciprocal, NULL, 1, &x, NULL, (gr_gradcheck_config){.step = 0x1p-4});
    ck_assert(!r.ok);
    ck_assert_int_eq(r.index, 1);
}

TEST(a_loss_with_a_gradient_wrong_by_a_percent_is_found_whatever_the_cotangent) {
    mutant m = mutant_of(&gr_op_mul, 1, SCALED);
    gr_tensor *x[] = {tensor(GR_SCALAR, NUMBERS(1)), tensor(GR_SCALAR, NUMBERS(1))};
    for (uint64_t seed = 0; seed < 100; seed++)
        ck_assert(!gr_gradcheck(ctx, wrong_product, &m, 2, x, NULL, (gr_gradcheck_config){.seed = seed}).ok);
}

static gr_tensor *refused(gr_context *in, gr_tensor **x, void *arg) {
    (void)in, (void)arg;
    return gr_matmul(x[0], x[0]);
}

static gr_tensor *times(gr_context *c, gr_tensor **in, void *arg) {
    (void)c;
    return gr_mul(in[0], arg);
}

TEST(a_check_leaves_the_step_and_the_parameters_as_they_were) {
    gr_tensor *w = gr_parameter(tensor(GR_SHAPE(2), NUMBERS(2, 3)), "w"), *h = gr_square(w);
    gr_tensor *x = tensor(GR_SHAPE(2), NUMBERS(5, 7));
    ck_assert(gr_gradcheck(ctx, times, w, 1, &x, NULL, (gr_gradcheck_config){0}).ok);
    ck_assert(gr_gradcheck(ctx, times, h, 1, &x, NULL, (gr_gradcheck_config){0}).ok);
    ck_assert(gr_data(gr_grad(w))[0] == 0 && gr_data(gr_grad(w))[1] == 0);
    ck_assert_msg(gr_backward(gr_sum(h, GR_ALL)), "%s", gr_error_message(ctx));
    ck_assert(gr_data(gr_grad(w))[0] == 4 && gr_data(gr_grad(w))[1] == 6);
}

static gr_tensor *nothing_at_all(gr_context *c, gr_tensor **in, void *arg) {
    (void)c, (void)in, (void)arg;
    return NULL;
}

TEST(a_function_that_gives_nothing_is_an_error) {
    gr_tensor *x = tensor(GR_SHAPE(1), NUMBERS(1));
    ck_assert(!gr_gradcheck(ctx, nothing_at_all, NULL, 1, &x, NULL, (gr_gradcheck_config){0}).ok);
    ck_assert_str_eq(gr_error_message(ctx), "gradcheck: the function gave NULL");
    gr_error_clear(ctx);
    ck_assert(!gr_gradcheck(ctx, NULL, NULL, 1, &x, NULL, (gr_gradcheck_config){0}).ok);
    ck_assert_str_eq(gr_error_message(ctx), "gradcheck: the function is NULL");
}

TEST(a_function_that_fails_is_not_ok_and_its_error_is_kept) {
    gr_tensor *x = drawn(GR_SHAPE(2, 3), 1, 2);
    ck_assert(!gr_gradcheck(ctx, refused, NULL, 1, &x, NULL, usual).ok);
    EXPECT_ERROR("matmul");
}

static gr_tensor *strange; /* of another context */
static gr_tensor *give_strange(gr_context *in, gr_tensor **x, void *arg) {
    (void)in, (void)x, (void)arg;
    return strange;
}
static gr_tensor *own_square(gr_context *in, gr_tensor **x, void *arg) {
    (void)in, (void)arg;
    return gr_square(x[0]);
}

TEST(a_check_of_no_input_of_one_elsewhere_or_of_one_without_number_fails) {
    gr_context *other = gr_context_new();
    gr_tensor *x = tensor(GR_SHAPE(1), NUMBERS(3));
    strange = gr_scalar(other, 1);
    ck_assert(!gr_gradcheck(ctx, give_strange, NULL, 1, &x, NULL, usual).ok);
    EXPECT_ERROR("gradcheck: the function gave a tensor of another context");
    ck_assert(!gr_gradcheck(ctx, own_square, NULL, 1, NULL, NULL, usual).ok);
    EXPECT_ERROR("gradcheck: input 0 is NULL or of another context");
    ck_assert(!gr_gradcheck(ctx, own_square, NULL, 1, &strange, NULL, usual).ok);
    EXPECT_ERROR("gradcheck: input 0 is NULL");
    ck_assert(!gr_gradcheck(ctx, own_square, NULL, -1, &x, NULL, usual).ok);
    EXPECT_ERROR("gradcheck: the number of inputs is negative");
    ck_assert(
        !gr_gradcheck(ctx, own_square, NULL, 1, &x, NULL, (gr_gradcheck_config){.tolerance = 1e-30, .step = 0.3}).ok);
    ck_assert(gr_gradcheck(ctx, own_square, NULL, 1, &x, NULL, (gr_gradcheck_config){.tolerance = 1}).ok && gr_ok(ctx));
    gr_tensor *none = gr_full(ctx, GR_SHAPE(1), (double)NAN); /* its quotient is no number, its gradient neither */
    const gr_gradcheck_config any = {.tolerance = (double)INFINITY};
    const gr_gradcheck_result r = gr_gradcheck(ctx, own_square, NULL, 1, &none, NULL, any);
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

TEST(a_parameter_as_the_result_or_its_only_operand_gets_no_gradient) {
    gr_tensor *w = gr_parameter(counting(GR_SHAPE(3)), "w"), *x = gr_scalar(ctx, 1);
    for (int i = 0; i < 2; i++)
        ck_assert(gr_gradcheck(ctx, of_the_parameter, i ? w : NULL, 1, &x, NULL, (gr_gradcheck_config){0}).ok);
    EXPECT(gr_grad(w), 0, 0, 0);
}

/* -- Functions of a user's own ------------------------------------------------------------------------------------ */

/* A perceptron: L = mean (tanh(x W1^T + b1) W2^T - t)^2. */
static gr_tensor *perceptron(gr_context *in, gr_tensor **p, void *arg) {
    (void)in;
    gr_tensor **data = arg;
    gr_tensor *hidden = gr_tanh(gr_linear(data[0], p[0], p[1])); /* (7, 5) */
    return gr_mse(gr_linear(hidden, p[2], NULL), data[1]);
}

TEST(a_composed_function_is_checked_as_a_whole) {
    gr_tensor *data[] = {drawn(GR_SHAPE(7, 3), -1, 1), drawn(GR_SHAPE(7, 2), -1, 1)};
    gr_tensor *weights[] = {drawn(GR_SHAPE(5, 3), -1, 1), drawn(GR_SHAPE(5), -1, 1), drawn(GR_SHAPE(2, 5), -1, 1)};
    gr_gradcheck_result r = gr_gradcheck(ctx, perceptron, data, 3, weights, NULL, usual);
    ck_assert_msg(r.ok, "input %d at %lld: %g and %g", r.input, (long long)r.index, r.analytic, r.numeric);
}

/* One intermediate with three uses, one of them in place of two operands. */
static gr_tensor *woven(gr_context *in, gr_tensor **x, void *arg) {
    (void)in, (void)arg;
    gr_tensor *y = gr_exp(gr_scale(x[0], 0.5));
    return gr_add(gr_matmul(y, gr_transpose(y, 0, 1)), gr_sum(gr_mul(y, x[0]), GR_KEEP(-1)));
}

TEST(a_function_with_shared_parts_is_checked_as_a_whole) {
    gr_tensor *x = drawn(GR_SHAPE(4, 3), -1, 1);
    ck_assert(gr_gradcheck(ctx, woven, NULL, 1, &x, NULL, usual).ok);
}

TEST(the_user_s_tensors_and_gradients_stay_as_they_are) {
    gr_tensor *x = variable(GR_SHAPE(2, 2), NUMBERS(1, 2, 3, 4)), *y = gr_sum(gr_square(x), GR_ALL);
    ck_assert(gr_gradcheck(ctx, woven, NULL, 1, &x, NULL, usual).ok);
    EXPECT(x, 1, 2, 3, 4);
    EXPECT(gr_grad(x), 0, 0, 0, 0);
    ck_assert(gr_backward(y));
    EXPECT(gr_grad(x), 2, 4, 6, 8);
}

Suite *gradients_suite(void) {
    Suite *suite = suite_create("gradients");
    add_rows(suite, "every op has a case", every_op_has_a_case_for_every_operand, gr_op_count);
    add_rows(suite, "every gradient", every_gradient_holds, gr_op_count);
    add_rows(suite, "every mutant", every_mutant_is_caught, gr_op_count);
    add_rows(suite, "mutants without a fault", a_mutant_without_a_fault_is_sound, gr_op_count);
    GROUP(suite, "gr_gradcheck", the_wrong_input_and_index_are_named, a_place_without_any_error_is_named_too,
          an_input_that_is_not_wanted_is_not_checked, a_path_that_was_cut_is_found,
          a_difference_quotient_that_is_infinite_is_wrong,
          a_loss_with_a_gradient_wrong_by_a_percent_is_found_whatever_the_cotangent,
          a_function_that_fails_is_not_ok_and_its_error_is_kept, a_function_that_gives_nothing_is_an_error,
          a_check_leaves_the_step_and_the_parameters_as_they_were,
          a_check_of_no_input_of_one_elsewhere_or_of_one_without_number_fails,
          a_parameter_as_the_result_or_its_only_operand_gets_no_gradient);
    GROUP(suite, "functions of a user's own", a_composed_function_is_checked_as_a_whole,
          a_function_with_shared_parts_is_checked_as_a_whole, the_user_s_tensors_and_gradients_stay_as_they_are);
    return suite;
}
