/* Ops along the last axis, losses and picking rows, against the formula in double. */
#include "reference.h"

static array in[3], out;

static gr_tensor *under(int variant, gr_tensor *x) {
    if (variant == 1) return strided(x);
    return variant == 2 ? gr_transpose(gr_keep(gr_transpose(x, 0, 1)), 0, 1) : x;
}
enum { VARIANTS = 3 };

static const gr_shape shapes[] = {{2, {4, 7}}, {2, {3, 1}}, {3, {2, 3, 40}}, {2, {2, 1000}}, {4, {2, 2, 3, 5}}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* -- Softmax ------------------------------------------------------------------------------------------------------- */

/* log softmax of scale x at place i of a row, over the places that the mask shows. */
static double ref_log_softmax(int64_t n, const double *x, const double *mask, double scale, int64_t i) {
    double max = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; j++)
        if (!mask || mask[j] != 0) max = fmax(max, scale * x[j]);
    for (int64_t j = 0; j < n; j++)
        if (!mask || mask[j] != 0) sum += exp(scale * x[j] - max);
    return scale * x[i] - max - log(sum);
}

static void compare_softmax(gr_tensor *x) {
    read_array(x, &in[0]), read_array(gr_softmax(x), &out);
    int64_t n = gr_dim(x, -1);
    for (int64_t i = 0; i < size_of(out.shape); i++)
        demand_near("softmax", i, out.v[i], exp(ref_log_softmax(n, in[0].v + i / n * n, NULL, 1, i % n)), 0);
    read_array(gr_log_softmax(x), &out);
    for (int64_t i = 0; i < size_of(out.shape); i++)
        demand_near("log_softmax", i, out.v[i], ref_log_softmax(n, in[0].v + i / n * n, NULL, 1, i % n), 10);
}

TEST(softmax_and_its_logarithm_give_their_formulas) {
    for (int s = 0; s < SHAPES; s++)
        for (int variant = 0; variant < VARIANTS; variant++) compare_softmax(under(variant, drawn(shapes[s], -5, 5)));
    compare_softmax(drawn(GR_SHAPE(9), -5, 5));
}

TEST(softmax_of_a_scalar_is_1) {
    EXPECT(gr_softmax(gr_scalar(ctx, 3)), 1);
    EXPECT(gr_log_softmax(gr_scalar(ctx, 3)), 0);
}

static void compare_masked(gr_tensor *scores, gr_tensor *mask) {
    const double factor = 0.6;
    read_array(scores, &in[0]), read_array(gr_masked_softmax(scores, mask, factor), &out);
    int64_t n = gr_dim(scores, -1);
    read_array(gr_expand(mask ? mask : gr_scalar(ctx, 1), gr_shape_of(scores)), &in[1]);
    for (int64_t i = 0; i < size_of(out.shape); i++) {
        const double *row = in[0].v + i / n * n, *shown = in[1].v + i / n * n;
        double wanted = shown[i % n] != 0 ? exp(ref_log_softmax(n, row, shown, factor, i % n)) : 0;
        demand_near("masked_softmax", i, out.v[i], wanted, 0);
        if (shown[i % n] == 0) DEMAND(out.v[i] == 0);
    }
}

static gr_tensor *random_mask(gr_shape shape) {
    gr_tensor *mask = drawn(shape, -1, 1);
    for (int64_t i = 0; i < gr_numel(mask); i++) gr_data(mask)[i] = gr_data(mask)[i] > 0 ? 1 : 0;
    return mask;
}

TEST(masked_softmax_is_softmax_of_what_the_mask_shows) {
    const gr_shape masks[] = {GR_SHAPE(2, 3, 4, 6), GR_SHAPE(4, 6), GR_SHAPE(6), GR_SHAPE(2, 1, 1, 6), GR_SHAPE(4, 1)};
    for (int m = 0; m < 5; m++)
        for (int variant = 0; variant < 4; variant++) {
            gr_tensor *mask = random_mask(masks[m]), *scores = drawn(GR_SHAPE(2, 3, 4, 6), -4, 4);
            compare_masked(variant & 1 ? strided(scores) : scores, variant & 2 ? strided(mask) : mask);
        }
    compare_masked(drawn(GR_SHAPE(2, 9), -4, 4), NULL);
}

/* -- Normalisation ------------------------------------------------------------------------------------------------- */

static void compare_norm(gr_tensor *x, gr_tensor *w, gr_tensor *b, double eps, bool center) {
    read_array(x, &in[0]), read_array(center ? gr_layernorm(x, w, b, eps) : gr_rmsnorm(x, w, eps), &out);
    if (w) read_array(w, &in[1]);
    if (b) read_array(b, &in[2]);
    int64_t n = gr_dim(x, -1);
    if (eps == 0) eps = 1e-5;
    for (int64_t i = 0; i < size_of(out.shape); i++) {
        const double *row = in[0].v + i / n * n;
        double mean = 0, square = 0;
        for (int64_t j = 0; center && j < n; j++) mean += row[j] / (double)n;
        for (int64_t j = 0; j < n; j++) square += (row[j] - mean) * (row[j] - mean) / (double)n;
        double h = (row[i % n] - mean) / sqrt(square + eps), scale = w ? in[1].v[i % n] : 1;
        demand_near(center ? "layernorm" : "rmsnorm", i, out.v[i], h * scale + (b ? in[2].v[i % n] : 0), 5);
    }
}

TEST(normalisations_give_their_formulas) {
    const double eps[] = {0, 1e-5, 0.1};
    for (int s = 0; s < SHAPES; s++)
        for (int variant = 0; variant < VARIANTS; variant++) {
            int64_t n = shapes[s].dim[shapes[s].ndim - 1];
            gr_tensor *x = under(variant, drawn(shapes[s], -1, 2)), *w = drawn(GR_SHAPE(n), -2, 2);
            gr_tensor *b = drawn(GR_SHAPE(n), -2, 2);
            if (variant == 1) w = strided(w), b = strided(b);
            compare_norm(x, w, b, eps[variant], true);
            compare_norm(x, w, NULL, eps[variant], true);
            compare_norm(x, NULL, b, eps[variant], true);
            compare_norm(x, w, NULL, eps[variant], false);
            compare_norm(x, NULL, NULL, eps[variant], false);
        }
}

/* Of two numbers c and c + d, v = (d / 2)^2: dx_0 = -dx_1 = rstd (g_0 - g_1) / 2 eps / (v + eps), what is left where
 * terms 1 + v / eps times as large cancel. */
TEST(close_numbers_keep_the_digits_in_which_they_differ) {
    const double eps = 1e-5, tolerance = sizeof(gr_real) == sizeof(float) ? 3e-5 : 1e-13;
    for (int i = 0; i < 1000; i++) {
        gr_tensor *x = gr_requires_grad(gr_uniform(ctx, GR_SHAPE(2), 0.5, 1.5, &rng)), *g = drawn(GR_SHAPE(2), -2, 2);
        gr_data(x)[1] = gr_data(x)[0] + (gr_real)(0.02 * gr_rng_uniform(&rng));
        ck_assert(gr_backward_from(gr_layernorm(x, NULL, NULL, eps), g));
        const double half = ((double)gr_data(x)[1] - (double)gr_data(x)[0]) / 2, v = half * half;
        const double wanted = ((double)gr_data(g)[0] - (double)gr_data(g)[1]) / 2 * eps / (sqrt(v + eps) * (v + eps));
        const double found = (double)gr_data(gr_grad(x))[0];
        ck_assert_double_le(fabs(found - wanted), tolerance * fmax(1, fabs(wanted)));
        gr_context_reset(ctx);
    }
}

/* y = (x - mean) / sqrt(var + 1e-5), of numbers four million times smaller than the first. */
TEST(a_large_first_number_costs_the_others_no_digits) {
    enum { N = 768 };
    const double tolerance = sizeof(gr_real) == sizeof(float) ? 2e-7 : 1e-15;
    gr_tensor *x = gr_normal(ctx, GR_SHAPE(N), 0, 2.5e-3, &rng);
    double mean = 0, square = 0;
    gr_data(x)[0] = 1e4;
    for (int i = 0; i < N; i++) mean += (double)gr_data(x)[i] / N;
    for (int i = 0; i < N; i++) square += ((double)gr_data(x)[i] - mean) * ((double)gr_data(x)[i] - mean) / N;
    gr_tensor *y = gr_layernorm(x, NULL, NULL, 1e-5);
    for (int i = 1; i < N; i++) {
        const double wanted = ((double)gr_data(x)[i] - mean) / sqrt(square + 1e-5);
        ck_assert_double_eq_tol((double)gr_data(y)[i], wanted, tolerance);
    }
}

/* -- Losses -------------------------------------------------------------------------------------------------------- */

static void compare_cross_entropy(gr_tensor *logits, int64_t batch, int64_t time) {
    static int32_t target[MOST];
    int64_t n = gr_dim(logits, -1), rows = batch * time, counted = 0;
    double wanted = 0;
    read_array(logits, &in[0]);
    for (int64_t i = 0; i < rows; i++) {
        target[i] = i % 4 == 3 ? GR_IGNORE : (int32_t)gr_rng_below(&rng, (uint64_t)n);
        if (target[i] == GR_IGNORE) continue;
        wanted -= ref_log_softmax(n, in[0].v + i * n, NULL, 1, target[i]);
        counted++;
    }
    double found = gr_item(gr_cross_entropy(logits, (gr_tokens){target, batch, time}));
    demand_near("cross_entropy", 0, found, wanted / (double)counted, 10);
}

TEST(cross_entropy_is_the_mean_of_minus_log_softmax) {
    for (int variant = 0; variant < VARIANTS; variant++) {
        compare_cross_entropy(under(variant, drawn(GR_SHAPE(3, 11), -5, 5)), 1, 3);
        compare_cross_entropy(under(variant, drawn(GR_SHAPE(4, 5, 50), -5, 5)), 4, 5);
        compare_cross_entropy(under(variant, drawn(GR_SHAPE(6, 1), -5, 5)), 2, 3);
    }
    compare_cross_entropy(drawn(GR_SHAPE(4), -5, 5), 1, 1);
}

TEST(mse_is_the_mean_of_squares) {
    for (int s = 0; s < SHAPES; s++)
        for (int variant = 0; variant < VARIANTS; variant++) {
            gr_tensor *x = under(variant, drawn(shapes[s], -2, 2)), *y = under(2 - variant, drawn(shapes[s], -2, 2));
            double sum = 0;
            read_array(x, &in[0]), read_array(y, &in[1]);
            for (int64_t i = 0; i < gr_numel(x); i++) sum += pow(in[0].v[i] - in[1].v[i], 2);
            demand_near("mse", 0, gr_item(gr_mse(x, y)), sum / (double)gr_numel(x), 0);
        }
}

/* -- Picking ------------------------------------------------------------------------------------------------------- */

TEST(gather_rows_copies_rows) {
    const int32_t ids[] = {3, 0, 3, 2, 1, 3};
    for (int variant = 0; variant < VARIANTS; variant++) {
        gr_tensor *table = under(variant, drawn(GR_SHAPE(4, 5), -1, 1));
        gr_tensor *y = gr_gather_rows(table, (gr_tokens){ids, 2, 3});
        EXPECT_SHAPE(y, GR_SHAPE(2, 3, 5));
        for (int64_t i = 0; i < 6; i++)
            ck_assert(same_tensors(gr_select(gr_select(y, 0, i / 3), 0, i % 3), gr_select(table, 0, ids[i])));
    }
    EXPECT_SHAPE(gr_gather_rows(gr_zeros(ctx, GR_SHAPE(4, 5)), (gr_tokens){NULL, 0, 3}), GR_SHAPE(0, 3, 5));
}

TEST(a_row_gathered_twice_gets_both_gradients) {
    const int32_t ids[] = {1, 0, 1};
    gr_tensor *table = variable(GR_SHAPE(3, 2), NUMBERS(0, 0, 0, 0, 0, 0)), *seed = counting(GR_SHAPE(1, 3, 2));
    ck_assert(gr_backward_from(gr_gather_rows(table, (gr_tokens){ids, 1, 3}), seed));
    EXPECT(gr_grad(table), 2, 3, 4, 6, 0, 0);
}

TEST(ids_are_copied) {
    int32_t ids[] = {1, 0}, targets[] = {1, 0};
    gr_tensor *table = variable(GR_SHAPE(2, 2), NUMBERS(0, 0, 0, 0));
    gr_tensor *loss = gr_cross_entropy(gr_gather_rows(table, (gr_tokens){ids, 1, 2}), (gr_tokens){targets, 1, 2});
    ids[0] = 77, targets[0] = 77;
    ck_assert(gr_backward(loss));
    EXPECT(gr_grad(table), -0.25, 0.25, 0.25, -0.25);
}

Suite *rows_suite(void) {
    Suite *suite = suite_create("rows");
    GROUP(suite, "softmax", softmax_and_its_logarithm_give_their_formulas, softmax_of_a_scalar_is_1,
          masked_softmax_is_softmax_of_what_the_mask_shows);
    GROUP(suite, "normalisation", normalisations_give_their_formulas,
          close_numbers_keep_the_digits_in_which_they_differ, a_large_first_number_costs_the_others_no_digits);
    GROUP(suite, "losses", cross_entropy_is_the_mean_of_minus_log_softmax, mse_is_the_mean_of_squares);
    GROUP(suite, "picking", gather_rows_copies_rows, a_row_gathered_twice_gets_both_gradients, ids_are_copied);
    return suite;
}
