/* Optimisers against PyTorch, and the norm of gradients near the ends of the range. */
#include "nn_support.h"

#include <string.h>

/* One matrix, which decays, and one vector, which does not. */
static gr_tensor *w, *b;

static void make_parameters(void) {
    w = gr_parameter(sequence(GR_SHAPE(3, 4), 2), "w");
    b = gr_parameter(sequence(GR_SHAPE(4), 3), "b");
}

static void set_gradients(int step) {
    ck_assert(gr_to_array(sequence(GR_SHAPE(3, 4), step), gr_data(gr_grad(w))));
    ck_assert(gr_to_array(sequence(GR_SHAPE(4), step + 5), gr_data(gr_grad(b))));
}

/* -- Against PyTorch ----------------------------------------------------------------------------------------------- */

/* w, b = seq((3, 4), 2), seq((4,), 3)
 * o = torch.optim.X([{"params": [w], "weight_decay": 0.1}, {"params": [b], "weight_decay": 0.0}], ...)
 * for t, lr in enumerate([0.1, 0.05, 0.2, 0.01, 0.1]):
 *     for g in o.param_groups: g["lr"] = lr
 *     w.grad, b.grad = seq((3, 4), t), seq((4,), t + 5); o.step() */
static const double rates[] = {0.1, 0.05, 0.2, 0.01, 0.1};
enum { STEPS = sizeof rates / sizeof *rates };

typedef enum kind { SGD, ADAM, ADAMW } kind;
static const struct {
    const char *call; /* of torch.optim */
    kind kind;
    struct {
        double momentum, beta1, beta2, eps;
    } with;
    digest w, b;
} known[] = {
    {"SGD(lr=1)",
     SGD,
     {0, 0, 0, 0},
     {0.0039297775249999955, 0.0039297775249999955, 0.80400990955781237},
     {-0.0062500000000000125, -0.087500000000000022, 0.92031249999999987}},
    {"SGD(lr=1, momentum=0.9)",
     SGD,
     {0.9, 0, 0, 0},
     {0.092247849650000019, 0.092247849650000019, -0.34815750443437521},
     {-0.24171250000000005, -0.35660000000000003, 1.8685749999999999}},
    {"Adam()",
     ADAM,
     {0, 0, 0, 0},
     {0.25984809480002752, 0.25984809480002752, -0.59418606805452712},
     {-0.23002174567310513, -0.39518531354458641, 1.7530527373106437}},
    {"AdamW()",
     ADAMW,
     {0, 0, 0, 0},
     {0.27229748772089463, 0.27229748772089463, -0.85594445279488329},
     {-0.23002174567310513, -0.39518531354458641, 1.7530527373106437}},
    {"AdamW(betas=(0.8, 0.95), eps=1e-3)",
     ADAMW,
     {0, 0.8, 0.95, 1e-3},
     {0.24411945731272797, 0.24411945731272797, -0.70918422494026745},
     {-0.21773081431735608, -0.38796048167694275, 1.7220387116290394}},
};
enum { KNOWN = sizeof known / sizeof *known };

TEST(five_steps_agree_with_pytorch) {
    make_parameters();
    gr_sgd *sgd = gr_sgd_new(ctx, (gr_sgd_config){.momentum = known[_i].with.momentum, .weight_decay = 0.1});
    gr_adamw_config config = {known[_i].with.beta1, known[_i].with.beta2, known[_i].with.eps, 0.1, false};
    gr_adamw *adam = known[_i].kind == ADAM ? gr_adam_new(ctx, config) : gr_adamw_new(ctx, config);
    for (int t = 0; t < STEPS; t++) {
        set_gradients(t);
        ck_assert(known[_i].kind == SGD ? gr_sgd_step(sgd, rates[t]) : gr_adamw_step(adam, rates[t]));
    }
    EXPECT_DIGEST(w, known[_i].w);
    EXPECT_DIGEST(b, known[_i].b);
}

/* -- What a step does ---------------------------------------------------------------------------------------------- */

TEST(matrices_decay_and_vectors_do_not_unless_all_shall) {
    make_parameters();
    const double lr = 0.5, decay = 0.25, kept = 1 - lr * decay; /* exact */
    for (int all = 0; all < 2; all++) { /* gradients are 0: nothing but the decay moves a weight */
        gr_tensor *w0 = gr_keep(w), *b0 = gr_keep(b);
        gr_adamw *adamw = gr_adamw_new(ctx, (gr_adamw_config){.weight_decay = decay, .decay_all = all});
        ck_assert(gr_adamw_step(adamw, lr));
        ck_assert(same_tensors(w, gr_scale(w0, kept)) && same_tensors(b, all ? gr_scale(b0, kept) : b0));
        gr_sgd *sgd = gr_sgd_new(ctx, (gr_sgd_config){.weight_decay = decay, .decay_all = all});
        ck_assert(gr_sgd_step(sgd, lr));
        ck_assert(same_tensors(w, gr_scale(w0, kept * kept)));
        ck_assert(same_tensors(b, all ? gr_scale(b0, kept * kept) : b0));
    }
}

TEST(the_first_step_of_adam_is_the_rate_against_the_sign_of_the_gradient) {
    make_parameters();
    set_gradients(0);
    gr_tensor *w0 = gr_keep(w), *g = gr_grad(w);
    ck_assert(gr_adamw_step(gr_adamw_new(ctx, (gr_adamw_config){0}), 0.5));
    for (int64_t i = 0; i < gr_numel(w); i++) {
        const double sign = (gr_data(g)[i] > 0) - (gr_data(g)[i] < 0);
        ck_assert_double_eq_tol((double)(gr_data(w)[i] - gr_data(w0)[i]), -0.5 * sign, 1e-6);
    }
}

TEST(gradients_stay_as_they_are) {
    make_parameters();
    set_gradients(1);
    gr_tensor *before = gr_keep(gr_grad(w));
    ck_assert(gr_adamw_step(gr_adamw_new(ctx, (gr_adamw_config){.weight_decay = 1}), 0.1));
    ck_assert(gr_adamw_step(gr_adam_new(ctx, (gr_adamw_config){.weight_decay = 1}), 0.1));
    ck_assert(gr_sgd_step(gr_sgd_new(ctx, (gr_sgd_config){.momentum = 0.9, .weight_decay = 1}), 0.1));
    ck_assert(same_tensors(before, gr_grad(w)));
}

/* Five steps in a context of their own, before one of which an error happens and is cleared, or none. */
static gr_tensor *after_steps(bool with_sgd, int error_before) {
    gr_context_free(ctx);
    ctx = gr_context_new();
    make_parameters();
    gr_sgd *sgd = gr_sgd_new(ctx, (gr_sgd_config){.momentum = 0.9, .weight_decay = 0.1});
    gr_adamw *adamw = gr_adamw_new(ctx, (gr_adamw_config){.weight_decay = 0.1});
    for (int t = 0; t < STEPS; t++) {
        set_gradients(t);
        gr_tensor *before = snapshot(ctx);
        if (t == error_before) {
            gr_fail(ctx, "test", "an error");
            ck_assert(!gr_sgd_step(sgd, 0.1) && !gr_adamw_step(adamw, 0.1));
            gr_error_clear(ctx);
            ck_assert(same_tensors(before, snapshot(ctx)));
        }
        ck_assert(with_sgd ? gr_sgd_step(sgd, rates[t]) : gr_adamw_step(adamw, rates[t]));
    }
    return snapshot(ctx);
}

TEST(a_rate_that_no_weight_survives_is_refused) {
    gr_tensor *weight = gr_parameter(gr_full(ctx, GR_SHAPE(2), 1), "w");
    gr_adamw *adamw = gr_adamw_new(ctx, (gr_adamw_config){0});
    ck_assert(!gr_adamw_step(adamw, 1e300));
    ck_assert_ptr_nonnull(strstr(gr_error_message(ctx), "adamw: the learning rate is 1e+300"));
    ck_assert(gr_data(weight)[0] == 1 && gr_data(weight)[1] == 1);
}

TEST(after_an_error_a_step_is_refused_and_leaves_no_trace) {
    static gr_real wanted[64], found[64];
    size_t at, count = 2 * (12 + 4);
    for (int with_sgd = 0; with_sgd < 2; with_sgd++) {
        ck_assert(gr_to_array(after_steps(with_sgd, -1), wanted));
        for (int t = 0; t < STEPS; t++) {
            ck_assert(gr_to_array(after_steps(with_sgd, t), found));
            ck_assert_msg(same_bits(count, wanted, found, &at), "an error before step %d changed number %zu", t, at);
        }
    }
}

static const char *bad_step(int at) {
    gr_sgd *sgd = gr_sgd_new(ctx, (gr_sgd_config){0});
    gr_adamw *adamw = gr_adamw_new(ctx, (gr_adamw_config){0}), *adam = gr_adam_new(ctx, (gr_adamw_config){0});
    bool stepped = true;
    const char *message = NULL;
    if (at == 0) stepped = gr_sgd_step(sgd, -1), message = "sgd: the learning rate is -1";
    if (at == 1) stepped = gr_sgd_step(sgd, NAN), message = "sgd: the learning rate is nan";
    if (at == 2) stepped = gr_adamw_step(adamw, INFINITY), message = "adamw: the learning rate is inf";
    if (at == 3) stepped = gr_adamw_step(adam, -0.1), message = "adam: the learning rate is -0.1";
    if (at == 4) adamw = gr_adamw_new(ctx, (gr_adamw_config){.beta1 = 1}), message = "adamw: beta1 1, beta2 0.999";
    if (at == 5) adamw = gr_adam_new(ctx, (gr_adamw_config){.beta2 = -0.5}), message = "adam: beta1 0.9, beta2 -0.5";
    if (at == 6) adamw = gr_adamw_new(ctx, (gr_adamw_config){.eps = -1}), message = "adamw: eps is -1";
    if (at == 7)
        adamw = gr_adamw_new(ctx, (gr_adamw_config){.weight_decay = NAN}), message = "adamw: weight_decay is nan";
    if (at == 8) sgd = gr_sgd_new(ctx, (gr_sgd_config){.momentum = -1}), message = "sgd: momentum is -1";
    if (at == 9) sgd = gr_sgd_new(ctx, (gr_sgd_config){.weight_decay = -1}), message = "sgd: weight_decay is -1";
    const double beta[][2] = {{-1, 0.5}, {0.5, 1}, {NAN, 0.5}};
    if (10 <= at && at < 13) {
        adamw = gr_adamw_new(ctx, (gr_adamw_config){.beta1 = beta[at - 10][0], .beta2 = beta[at - 10][1]});
        message = "both must be in (0, 1)";
    }
    if (at >= 4 && message) stepped = gr_sgd_step(sgd, 0.1) || gr_adamw_step(adamw, 0.1);
    ck_assert(!message || !stepped);
    return message;
}

TEST(bad_rates_and_configurations_are_refused) {
    make_parameters();
    set_gradients(0);
    gr_tensor *before = snapshot(ctx);
    const char *message;
    for (int at = 0; (message = bad_step(at)); at++) {
        EXPECT_ERROR(message);
        ck_assert(same_tensors(before, snapshot(ctx)));
    }
}

TEST(a_parameter_made_later_is_an_error) {
    make_parameters();
    set_gradients(0);
    gr_adamw *adamw = gr_adamw_new(ctx, (gr_adamw_config){0});
    gr_parameter(gr_zeros(ctx, GR_SHAPE(2)), "late");
    gr_tensor *before = snapshot(ctx);
    ck_assert(!gr_adamw_step(adamw, 0.1));
    EXPECT_ERROR("adamw: made for 2 parameters, there are 3 now; make the model first");
    ck_assert(same_tensors(before, snapshot(ctx)));
}

TEST(an_optimiser_that_was_refused_or_made_after_an_error_never_steps) {
    make_parameters();
    gr_fail(ctx, "test", "an error");
    gr_sgd *sgd = gr_sgd_new(ctx, (gr_sgd_config){0});
    gr_adamw *adamw = gr_adamw_new(ctx, (gr_adamw_config){0});
    gr_error_clear(ctx);
    ck_assert(!gr_sgd_step(NULL, 1) && !gr_adamw_step(NULL, 1));
    ck_assert(!gr_sgd_step(gr_sgd_new(NULL, (gr_sgd_config){0}), 1) && gr_ok(ctx));
    ck_assert(!gr_sgd_step(sgd, 0.1));
    EXPECT_ERROR("sgd: the optimiser could not be made, after an error that has been cleared since");
    ck_assert(!gr_adamw_step(adamw, 0.1));
    EXPECT_ERROR("adamw: the optimiser could not be made, after an error that has been cleared since");
    sgd = gr_sgd_new(ctx, (gr_sgd_config){.momentum = -1});
    gr_error_clear(ctx);
    ck_assert(!gr_sgd_step(sgd, 0.1));
    EXPECT_ERROR("sgd: the optimiser could not be made, after an error that has been cleared since");
    adamw = gr_adamw_new(ctx, (gr_adamw_config){.beta1 = -1});
    gr_error_clear(ctx);
    ck_assert(!gr_adamw_step(adamw, 0.1));
    EXPECT_ERROR("adamw: the optimiser could not be made");
}

/* -- The norm of the gradients ------------------------------------------------------------------------------------- */

/* 3 in w and -4 in b, times the scale: norm 5 times the scale. */
static void set_3_4(double scale) {
    gr_zero_grad(ctx);
    gr_data(gr_grad(w))[7] = (gr_real)(3 * scale);
    gr_data(gr_grad(b))[2] = (gr_real)(-4 * scale);
}

TEST(gradients_are_scaled_to_the_largest_norm) {
    make_parameters();
    ck_assert_double_eq(gr_clip_grad_norm(ctx, 1), 0);
    set_3_4(1);
    gr_tensor *before = snapshot(ctx);
    ck_assert_double_eq(gr_clip_grad_norm(ctx, 5), 5);
    ck_assert_double_eq(gr_clip_grad_norm(ctx, 7), 5);
    ck_assert_double_eq(gr_clip_grad_norm(ctx, INFINITY), 5);
    ck_assert(same_tensors(before, snapshot(ctx)));
    ck_assert_double_eq(gr_clip_grad_norm(ctx, 2), 5);
    ck_assert_double_eq_tol((double)gr_data(gr_grad(w))[7], 3 * 2 / 5., TOLERANCE);
    ck_assert_double_eq_tol((double)gr_data(gr_grad(b))[2], -4 * 2 / 5., TOLERANCE);
    ck_assert_double_eq_tol(gr_clip_grad_norm(ctx, 2), 2, TOLERANCE);
}

TEST(the_norm_neither_overflows_nor_vanishes) {
    const double scale[] = {
        1e30,  1e19,   1e-15, 1e-30, 5e37,   1e-38,
#ifdef GR_DOUBLE
        1e300, 1e-300, 2e307, 1e154, 1e-160,
#endif
    };
    make_parameters();
    for (size_t i = 0; i < sizeof scale / sizeof *scale; i++) {
        set_3_4(scale[i]);
        ck_assert_double_eq_tol(gr_clip_grad_norm(ctx, INFINITY) / scale[i], 5, 1e-5);
        ck_assert_double_eq_tol(gr_clip_grad_norm(ctx, 2 * scale[i]) / scale[i], 5, 1e-5);
        ck_assert_double_eq_tol((double)gr_data(gr_grad(w))[7] / scale[i], 1.2, 1e-5);
        ck_assert_double_eq_tol(gr_clip_grad_norm(ctx, INFINITY) / scale[i], 2, 1e-5);
    }
}

TEST(the_smallest_gradients_have_a_norm_and_the_largest_unless_no_double_holds_it) {
    ck_assert(gr_clip_grad_norm(ctx, 1) == 0);
    gr_real *g = gr_data(gr_grad(gr_parameter(gr_zeros(ctx, GR_SHAPE(2)), "w")));
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

TEST(a_gradient_that_is_not_finite_is_named_and_nothing_is_scaled) {
    const double bad[] = {NAN, INFINITY, -INFINITY};
    const char *const message[] = {"nan", "inf", "-inf"};
    make_parameters();
    for (int i = 0; i < 3; i++) {
        set_3_4(1);
        gr_data(gr_grad(b))[2] = (gr_real)bad[i];
        gr_tensor *before = snapshot(ctx);
        char wanted[80];
        snprintf(wanted, sizeof wanted, "clip_grad_norm: the gradient of b (4,) is %s at element 2", message[i]);
        ck_assert(isnan(gr_clip_grad_norm(ctx, 1)));
        ck_assert(isnan(gr_clip_grad_norm(ctx, 1))); /* the error stays */
        EXPECT_ERROR(wanted);
        ck_assert(same_tensors(before, snapshot(ctx)));
    }
}

TEST(a_largest_norm_must_be_above_0) {
    const double bad[] = {0, -1, NAN};
    make_parameters();
    set_3_4(1);
    gr_tensor *before = snapshot(ctx);
    for (int i = 0; i < 3; i++) {
        ck_assert(isnan(gr_clip_grad_norm(ctx, bad[i])));
        EXPECT_ERROR("it must be above 0");
    }
    ck_assert(isnan(gr_clip_grad_norm(NULL, 1)));
    ck_assert(same_tensors(before, snapshot(ctx)));
}

Suite *optim_suite(void) {
    Suite *suite = suite_create("optim");
    add_rows(suite, "PyTorch", five_steps_agree_with_pytorch, KNOWN);
    GROUP(suite, "steps", matrices_decay_and_vectors_do_not_unless_all_shall,
          the_first_step_of_adam_is_the_rate_against_the_sign_of_the_gradient, gradients_stay_as_they_are);
    GROUP(suite, "errors", a_rate_that_no_weight_survives_is_refused,
          after_an_error_a_step_is_refused_and_leaves_no_trace, bad_rates_and_configurations_are_refused,
          a_parameter_made_later_is_an_error, an_optimiser_that_was_refused_or_made_after_an_error_never_steps);
    GROUP(suite, "norm", gradients_are_scaled_to_the_largest_norm, the_norm_neither_overflows_nor_vanishes,
          the_smallest_gradients_have_a_norm_and_the_largest_unless_no_double_holds_it,
          a_gradient_that_is_not_finite_is_named_and_nothing_is_scaled, a_largest_norm_must_be_above_0);
    return suite;
}
