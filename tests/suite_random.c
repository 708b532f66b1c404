/* Random numbers: the published vectors of the generator, distributions, and dropout. */
#include "support.h"

#include <string.h>

/* -- The generator ------------------------------------------------------------------------------------------------- */

/* From the Random123 distribution (kat_vectors, philox4x32 10): counter and key all 0, all 1, digits of pi. */
TEST(philox_gives_the_published_numbers) {
    const struct {
        uint64_t seed, stream, counter;
        uint32_t wanted[4];
    } known[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint32_t out[4];
        gr_philox(known[i].seed, known[i].stream, known[i].counter, out);
        for (int word = 0; word < 4; word++) ck_assert_uint_eq(out[word], known[i].wanted[word]);
    }
}

/* Worked out by another program, from the definition in random.h. */
TEST(the_first_numbers_of_a_seed_are_fixed) {
    gr_rng a = gr_rng_seed(42), b = gr_rng_seed(42);
    const double normal[] = {-0.5731687557425522, -0.4372943468876853, -0.15980016048347095, -0.6455842265584287};
    for (int i = 0; i < 4; i++) ck_assert_double_eq_tol(gr_rng_normal(&a), normal[i], 1e-15);
    uint32_t word[4];
    for (uint64_t i = 0; i < 4; i++) {
        gr_philox(42, GR_STREAM_DEFAULT, i, word);
        ck_assert(gr_rng_next(&b) == ((uint64_t)word[1] << 32 | word[0]));
    }
}

TEST(a_generator_is_a_value) {
    gr_rng a = gr_rng_seed(7);
    gr_rng_next(&a);
    gr_rng b = a;
    for (int i = 0; i < 10; i++) ck_assert(gr_rng_next(&a) == gr_rng_next(&b));
    ck_assert_int_eq((int)a.counter, 11);
}

/* Correlation of n pairs of uniform numbers; its standard deviation is 1 / sqrt(n) when they are independent. */
static double correlation(gr_rng a, gr_rng b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (gr_rng_uniform(&a) - 0.5) * (gr_rng_uniform(&b) - 0.5) * 12;
    return sum / n;
}

TEST(streams_and_seeds_are_independent) {
    enum { PAIRS = 20000 };
    const double most = 4.5 / sqrt(PAIRS);
    gr_rng seed = gr_rng_seed(3), late = seed;
    late.counter = 1;
    ck_assert_double_lt(fabs(correlation(seed, gr_rng_stream(seed, GR_STREAM_INIT), PAIRS)), most);
    ck_assert_double_lt(fabs(correlation(seed, gr_rng_stream(seed, GR_STREAM_DROPOUT), PAIRS)), most);
    ck_assert_double_lt(fabs(correlation(seed, gr_rng_stream(seed, 1ULL << 32), PAIRS)), most);
    ck_assert_double_lt(fabs(correlation(seed, gr_rng_seed(4), PAIRS)), most);
    ck_assert_double_lt(fabs(correlation(seed, gr_rng_seed(3 + (1ULL << 32)), PAIRS)), most);
    ck_assert_double_lt(fabs(correlation(seed, late, PAIRS)), most);
    ck_assert_double_gt(correlation(seed, seed, PAIRS), 0.9);
}

TEST(a_new_stream_begins_at_its_beginning) {
    gr_rng a = gr_rng_seed(5), b = a;
    gr_rng_next(&a);
    gr_rng one = gr_rng_stream(a, 9), other = gr_rng_stream(b, 9);
    ck_assert(gr_rng_next(&one) == gr_rng_next(&other));
}

/* -- Distributions ------------------------------------------------------------------------------------------------- */

enum { DRAWS = 1000000 };

TEST(uniform_is_in_0_1_with_the_moments_of_the_uniform_distribution) {
    double sum = 0, squares = 0;
    for (int i = 0; i < DRAWS; i++) {
        double u = gr_rng_uniform(&rng);
        DEMAND(u >= 0 && u < 1 && u * 0x1p53 == floor(u * 0x1p53));
        sum += u, squares += u * u;
    }
    ck_assert_double_eq_tol(sum / DRAWS, 0.5, 5 * sqrt(1. / 12 / DRAWS));
    ck_assert_double_eq_tol(squares / DRAWS, 1. / 3, 5 * sqrt(4. / 45 / DRAWS));
}

TEST(normal_has_the_mean_the_spread_and_the_tails_of_the_normal_distribution) {
    const double edge[] = {1, 2, 3, 4};
    double sum = 0, squares = 0, beyond[4] = {0};
    for (int i = 0; i < DRAWS; i++) {
        double x = gr_rng_normal(&rng);
        sum += x, squares += x * x;
        for (int e = 0; e < 4; e++) beyond[e] += x > edge[e];
    }
    ck_assert_double_eq_tol(sum / DRAWS, 0, 5 / sqrt(DRAWS));
    ck_assert_double_eq_tol(squares / DRAWS, 1, 5 * sqrt(2. / DRAWS));
    for (int e = 0; e < 4; e++) {
        double share = erfc(edge[e] / sqrt(2)) / 2;
        ck_assert_double_eq_tol(beyond[e] / DRAWS, share, 5 * sqrt(share / DRAWS));
    }
}

/* The shares of the remainders of x / 3 when x is below a multiple of 3: a bias towards some numbers shows in them. */
static void expect_equal_thirds(uint64_t n, bool by_size) {
    enum { THROWS = 30000 };
    double count[3] = {0};
    for (int i = 0; i < THROWS; i++) {
        uint64_t x = gr_rng_below(&rng, n);
        DEMAND(x < n);
        count[by_size ? x / (n / 3) : x % 3]++;
    }
    for (int r = 0; r < 3; r++) ck_assert_double_eq_tol(count[r] / THROWS, 1. / 3, 5 * sqrt(2. / 9 / THROWS));
}

/* At 3 2^30 the product method without rejection would draw every third number twice as often, and at 3 2^62 the
 * remainder method the lowest third. */
TEST(below_is_in_range_and_without_bias) {
    const uint64_t n[] = {3, 3000000000, 3ULL << 30, 3ULL << 31, 3ULL << 40, 3ULL << 62};
    for (size_t i = 0; i < sizeof n / sizeof n[0]; i++) {
        expect_equal_thirds(n[i], false);
        expect_equal_thirds(n[i], true);
    }
}

TEST(below_reaches_every_number_and_its_edges) {
    bool seen[7] = {false};
    for (int i = 0; i < 1000; i++) seen[gr_rng_below(&rng, 7)] = true;
    for (int i = 0; i < 7; i++) ck_assert(seen[i]);
    ck_assert(gr_rng_below(&rng, 0) == 0);
    ck_assert(gr_rng_below(&rng, 1) == 0);
    for (int i = 0; i < 100; i++) ck_assert(gr_rng_below(&rng, UINT64_MAX) != UINT64_MAX);
}

TEST(random_tensors_follow_the_generator) {
    gr_rng a = gr_rng_seed(1), b = a, c = a, d = a;
    gr_tensor *x = gr_normal(ctx, GR_SHAPE(2, 3), 5, 2, &a), *y = gr_uniform(ctx, GR_SHAPE(2, 3), -1, 3, &b);
    for (int i = 0; i < 6; i++) {
        ck_assert(gr_data(x)[i] == (gr_real)(5 + 2 * gr_rng_normal(&c)));
        ck_assert(gr_data(y)[i] == (gr_real)(-1 + 4 * gr_rng_uniform(&d)));
    }
    ck_assert(a.counter == c.counter && b.counter == d.counter);
}

TEST(uniform_tensors_never_reach_the_upper_end) {
    gr_tensor *x = gr_uniform(ctx, GR_SHAPE(20000), 0.999999, 1, &rng);
    for (int i = 0; i < 20000; i++) DEMAND(gr_data(x)[i] < 1 && gr_data(x)[i] >= (gr_real)0.999999);
}

TEST(a_range_of_one_number_draws_it) {
    EXPECT(gr_uniform(ctx, GR_SHAPE(3), 2, 2, &rng), 2, 2, 2);
    gr_tensor *x = gr_uniform(ctx, GR_SHAPE(100), 1, 1 + (double)GR_REAL_EPSILON, &rng); /* 1 is all there is below */
    for (int64_t i = 0; i < gr_numel(x); i++) DEMAND(gr_data(x)[i] == 1);
}

/* -- Dropout ------------------------------------------------------------------------------------------------------- */

TEST(dropout_keeps_a_share_and_scales_it) {
    enum { N = 50000 };
    const double drop[] = {0, 0.1, 0.5, 0.9};
    for (int k = 0; k < 4; k++) {
        gr_tensor *y = gr_dropout(gr_full(ctx, GR_SHAPE(N), 3), drop[k], &rng);
        const gr_real kept = (gr_real)3 * (gr_real)(1 / (1 - drop[k]));
        int count = 0;
        for (int i = 0; i < N; i++) {
            DEMAND(gr_data(y)[i] == 0 || gr_data(y)[i] == kept);
            count += gr_data(y)[i] != 0;
        }
        ck_assert_double_eq_tol((double)count / N, 1 - drop[k], 5 * sqrt(drop[k] * (1 - drop[k]) / N) + 1e-15);
    }
}

TEST(the_gradient_of_dropout_is_dropped_where_the_number_was) {
    gr_tensor *x = gr_requires_grad(gr_full(ctx, GR_SHAPE(30, 11), 1)), *y = gr_dropout(x, 0.4, &rng);
    ck_assert(gr_backward(gr_sum(y, GR_ALL)));
    ck_assert(same_tensors(gr_grad(x), y));
}

TEST(dropout_depends_on_the_generator_and_the_place_alone) {
    gr_tensor *x = drawn(GR_SHAPE(40, 25), 1, 2);
    gr_rng a = gr_rng_seed(8), b = a, c = a;
    gr_tensor *y = gr_dropout(x, 0.5, &a), *other = gr_dropout(x, 0.5, &a);
    ck_assert(same_tensors(y, gr_dropout(strided(x), 0.5, &b)));
    ck_assert(!same_tensors(y, other));
    ck_assert_int_eq((int)(b.counter - c.counter), 1);
    gr_tensor *part = gr_dropout(gr_slice(x, 0, 0, 7, 1), 0.5, &c);
    ck_assert(same_tensors(part, gr_slice(y, 0, 0, 7, 1)));
}

TEST(what_dropout_drops_is_not_read) {
    gr_tensor *y = gr_dropout(gr_full(ctx, GR_SHAPE(1000), NAN), 0.5, &rng);
    int zeros = 0;
    for (int i = 0; i < 1000; i++) zeros += gr_data(y)[i] == 0;
    ck_assert_int_gt(zeros, 400);
}

TEST(dropout_refuses_a_share_outside_0_1) {
    const double bad[] = {1, -0.1, 1.5, NAN, INFINITY};
    for (int i = 0; i < 5; i++) {
        gr_rng before = rng;
        ck_assert(gr_is_inert(gr_dropout(gr_scalar(ctx, 1), bad[i], &rng)));
        ck_assert(before.counter == rng.counter);
        EXPECT_ERROR("must be in [0, 1)");
    }
}

Suite *random_suite(void) {
    Suite *suite = suite_create("random");
    GROUP(suite, "generator", philox_gives_the_published_numbers, the_first_numbers_of_a_seed_are_fixed,
          a_generator_is_a_value, streams_and_seeds_are_independent, a_new_stream_begins_at_its_beginning);
    GROUP(suite, "distributions", uniform_is_in_0_1_with_the_moments_of_the_uniform_distribution,
          normal_has_the_mean_the_spread_and_the_tails_of_the_normal_distribution, below_is_in_range_and_without_bias,
          below_reaches_every_number_and_its_edges, random_tensors_follow_the_generator,
          uniform_tensors_never_reach_the_upper_end, a_range_of_one_number_draws_it);
    GROUP(suite, "dropout", dropout_keeps_a_share_and_scales_it,
          the_gradient_of_dropout_is_dropped_where_the_number_was, dropout_depends_on_the_generator_and_the_place_alone,
          what_dropout_drops_is_not_read, dropout_refuses_a_share_outside_0_1);
    return suite;
}
