/* Rotary positions: the table, what turning keeps, and what is refused. */
#include "nn_support.h"

#include "tensor/scalar.h"

enum { T = 6, D = 8 };

static gr_tensor *table_at(int64_t first, int64_t count) { return gr_rotary_table(ctx, first, count, D, 0); }

/* -- The table ----------------------------------------------------------------------------------------------------- */

TEST(the_table_holds_cosines_and_sines) {
    const struct {
        int64_t first, count, size;
        double base;
    } tables[] = {{0, 9, 8, 0}, {5, 3, 2, 0}, {1000, 2, 64, 1e6}, {1 << 20, 4, 16, 10}, {3, 1, 6, 0.5}};
    for (size_t n = 0; n < sizeof tables / sizeof *tables; n++) {
        const int64_t size = tables[n].size, half = size / 2;
        gr_tensor *table = gr_rotary_table(ctx, tables[n].first, tables[n].count, size, tables[n].base);
        EXPECT_SHAPE(table, GR_SHAPE(tables[n].count, size));
        for (int64_t t = 0; t < tables[n].count; t++)
            for (int64_t i = 0; i < half; i++) {
                double p = (double)(tables[n].first + t), base = tables[n].base > 0 ? tables[n].base : 10000;
                double theta = pow(base, -2 * (double)i / (double)size), allowed = TOLERANCE + 1e-15 * p * theta;
                DEMAND(fabs((double)gr_data(table)[t * size + i] - cos(p * theta)) <= allowed);
                DEMAND(fabs((double)gr_data(table)[t * size + half + i] - sin(p * theta)) <= allowed);
            }
    }
}

TEST(a_table_begun_later_has_the_same_bits) {
    gr_tensor *whole = table_at(0, 5000);
    for (int64_t first = 0; first < 5000; first += 997)
        ck_assert(same_tensors(table_at(first, 3), gr_slice(whole, 0, first, first + 3, 1)));
    EXPECT_SHAPE(table_at(7, 0), GR_SHAPE(0, D));
}

/* Where an angle has no digit of the turn left, too. */
TEST(a_table_far_out_stays_between_the_bounds_of_sine_and_cosine) {
    static const double far[] = {1e6, -1e7, 3e8, 1e15, -1e30};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++)
        DEMAND(fabs(gr_double_cos(far[i])) <= 1 && fabs(gr_double_sin(far[i])) <= 1);
    gr_tensor *table = gr_rotary_table(ctx, INT64_C(1) << 50, 64, 4, 10000);
    EXPECT_SHAPE(table, GR_SHAPE(64, 4));
    for (int64_t i = 0; i < gr_numel(table); i++) DEMAND(fabs((double)gr_data(table)[i]) <= 1);
}

/* -- The rotation -------------------------------------------------------------------------------------------------- */

TEST(pairs_are_the_two_halves) {
    gr_tensor *x = tensor(GR_SHAPE(2, 4), NUMBERS(1, 2, 3, 4, 1, 2, 3, 4));
    gr_tensor *table = tensor(GR_SHAPE(2, 4), NUMBERS(0, 1, 1, 0, 2, 3, 5, 7)); /* cos cos sin sin */
    EXPECT(gr_rotary(x, table), -3, 2, 1, 4, 2 - 15, 6 - 28, 6 + 5, 12 + 14);
}

TEST(position_0_stays_as_it_is) {
    gr_tensor *x = drawn(GR_SHAPE(3, 1, D), -1, 1);
    ck_assert(same_tensors(gr_rotary(x, table_at(0, 1)), x));
}

TEST(norms_are_kept) {
    gr_tensor *x = drawn(GR_SHAPE(2, 3, T, D), -1, 1), *y = gr_rotary(x, table_at(100, T));
    gr_tensor *off = gr_sub(gr_norm(x, GR_AXES(-1)), gr_norm(y, GR_AXES(-1)));
    ck_assert_double_le(gr_item(gr_max(gr_abs(off), GR_ALL)), TOLERANCE);
    ck_assert_double_ge(gr_item(gr_max(gr_abs(gr_sub(x, y)), GR_ALL)), 0.1);
}

/* q at position i + s and k at j + s, for all i, j: the scores are the same for every s. */
TEST(scores_depend_on_the_difference_of_positions) {
    gr_tensor *q = gr_expand(drawn(GR_SHAPE(1, D), -1, 1), GR_SHAPE(T, D));
    gr_tensor *k = gr_expand(drawn(GR_SHAPE(1, D), -1, 1), GR_SHAPE(T, D));
    gr_tensor *scores = gr_attention_scores(gr_rotary(q, table_at(0, T)), gr_rotary(k, table_at(0, T)));
    gr_tensor *later = gr_attention_scores(gr_rotary(q, table_at(777, T)), gr_rotary(k, table_at(777, T)));
    ck_assert_double_le(gr_item(gr_max(gr_abs(gr_sub(scores, later)), GR_ALL)), TOLERANCE);
    for (int64_t i = 1; i < T; i++)
        DEMAND(fabs((double)(gr_data(scores)[i * T + i] - gr_data(scores)[0])) <= TOLERANCE);
    ck_assert_double_ge(fabs((double)(gr_data(scores)[1] - gr_data(scores)[0])), 1e-3);
}

TEST(backward_is_the_opposite_rotation) {
    gr_tensor *x = gr_requires_grad(drawn(GR_SHAPE(2, T, D), -1, 1)), *dy = drawn(GR_SHAPE(2, T, D), -1, 1);
    gr_tensor *table = table_at(3, T), *half[2];
    ck_assert(gr_backward_from(gr_rotary(x, table), dy));
    gr_split(table, 1, 2, half);
    half[1] = gr_neg(half[1]);
    ck_assert(same_tensors(gr_grad(x), gr_rotary(dy, gr_concat(half, 2, 1))));
}

TEST(heads_may_be_views) { /* (B, T, 3 C) -> (B, H, T, D), the middle third */
    enum { B = 2, H = 3, C = H * D };
    gr_tensor *x = drawn(GR_SHAPE(B, T, 3 * C), -1, 1), *table = table_at(0, T);
    gr_tensor *heads = gr_transpose(gr_reshape(gr_slice(x, -1, C, 2 * C, 1), GR_SHAPE(B, T, H, D)), 1, 2);
    gr_tensor *y = gr_rotary(heads, table);
    ck_assert(same_tensors(y, gr_rotary(gr_keep(heads), table)));
    ck_assert(same_tensors(y, gr_rotary(strided(heads), strided(table))));
    ck_assert(gr_stride(y, 3) == 1 && gr_stride(y, 2) == D && gr_stride(y, 1) == T * D);
}

TEST(rows_without_numbers_are_turned_to_such) {
    gr_tensor *x = gr_requires_grad(gr_zeros(ctx, GR_SHAPE(3, 0)));
    gr_tensor *y = gr_rotary(x, gr_zeros(ctx, GR_SHAPE(3, 0)));
    EXPECT_SHAPE(y, GR_SHAPE(3, 0));
    ck_assert(gr_backward(gr_sum(y, GR_ALL)));
    EXPECT_SHAPE(gr_grad(x), GR_SHAPE(3, 0));
}

/* -- Refusals ------------------------------------------------------------------------------------------------------ */

TEST(what_does_not_fit_is_refused) {
    gr_tensor *x = gr_zeros(ctx, GR_SHAPE(2, T, D)), *odd = gr_named(gr_zeros(ctx, GR_SHAPE(T, 3)), "odd");
    gr_tensor *table = table_at(0, T), *longer = table_at(0, T + 1), *row = gr_zeros(ctx, GR_SHAPE(D));
    ck_assert(gr_is_inert(gr_rotary(odd, table)));
    EXPECT_ERROR("rotary: odd (6, 3), table (6, 8): x must be (..., T, D) with an even D");
    ck_assert(gr_is_inert(gr_rotary(row, table)));
    EXPECT_ERROR("rotary: x (8,), table (6, 8): x must be");
    ck_assert(gr_is_inert(gr_rotary(x, longer)));
    EXPECT_ERROR("rotary: x (2, 6, 8), table (7, 8): the table must be (T, D)");
    ck_assert(gr_is_inert(gr_rotary(x, x)));
    EXPECT_ERROR("rotary: x (2, 6, 8), table (2, 6, 8): the table must be");
    ck_assert(gr_is_inert(gr_rotary(x, NULL)));
    EXPECT_ERROR("rotary: table (operand 1) is NULL");
    ck_assert(gr_is_inert(gr_rotary(NULL, NULL)));
}

TEST(a_table_that_cannot_be_is_refused) {
    const double bases[] = {-1, NAN, INFINITY};
    const int64_t sizes[] = {7, 0, -2};
    for (int i = 0; i < 3; i++) {
        ck_assert(gr_is_inert(gr_rotary_table(ctx, 0, 1, sizes[i], 0)));
        EXPECT_ERROR("rotary_table: size is");
        ck_assert(gr_is_inert(gr_rotary_table(ctx, 0, 1, 2, bases[i])));
        EXPECT_ERROR("rotary_table: base is");
    }
    ck_assert(gr_is_inert(gr_rotary_table(ctx, -1, 1, 2, 0)));
    EXPECT_ERROR("rotary_table: first is -1");
    ck_assert(gr_is_inert(gr_rotary_table(ctx, 0, -1, 2, 0)));
    EXPECT_ERROR("count is -1");
    ck_assert(gr_is_inert(gr_rotary_table(ctx, INT64_MAX, 1, 2, 0)));
    EXPECT_ERROR("rotary_table: first is 9223372036854775807");
    ck_assert(gr_is_inert(gr_rotary_table(ctx, 0, INT64_MAX, 2, 0)));
    EXPECT_ERROR("rotary_table: ");
    ck_assert(gr_is_inert(gr_rotary_table(NULL, 0, 1, 2, 0)));
}

Suite *rotary_suite(void) {
    Suite *suite = suite_create("rotary");
    GROUP(suite, "the table", the_table_holds_cosines_and_sines, a_table_begun_later_has_the_same_bits,
          a_table_far_out_stays_between_the_bounds_of_sine_and_cosine);
    GROUP(suite, "the rotation", pairs_are_the_two_halves, position_0_stays_as_it_is, norms_are_kept,
          scores_depend_on_the_difference_of_positions, backward_is_the_opposite_rotation, heads_may_be_views,
          rows_without_numbers_are_turned_to_such);
    GROUP(suite, "refusals", what_does_not_fit_is_refused, a_table_that_cannot_be_is_refused);
    return suite;
}
