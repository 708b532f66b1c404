/* Every sum is one fixed tree, here defined once more by recursion, and its error stays small. */
#include "kernels.h"

enum { MOST = 70000, COLUMNS = 37 };
static gr_real x[MOST], term[MOST], columns[MOST];

/* -- The tree, defined by recursion -------------------------------------------------------------------------------- */

enum { LANES = 16, BLOCK = 256 };

/* Terms lane, lane + step, ... of a block. With 16 steps it is one running sum, else the sum of two halves. */
static gr_real block_sum(size_t n, const gr_real *terms, size_t lane, size_t step) {
    if (step < LANES) {
        gr_real first = block_sum(n, terms, lane, 2 * step);
        return first + block_sum(n, terms, lane + step, 2 * step);
    }
    gr_real sum = 0;
    for (size_t i = lane; i < n; i += LANES) sum += terms[i];
    return sum;
}

/* The left part is the largest power of two of blocks that leaves something for the right. */
static gr_real tree_sum(size_t n, const gr_real *terms) {
    if (n == 0) return 0;
    if (n <= BLOCK) return block_sum(n, terms, 0, 1);
    size_t left = BLOCK;
    while (2 * left < n) left *= 2;
    gr_real first = tree_sum(left, terms);
    return first + tree_sum(n - left, terms + left);
}

static const size_t sizes[] = {0,   1,   2,   15,  16,   17,   31,   255,  256,   257,   511, 512,
                               513, 768, 769, 800, 1000, 1793, 4096, 5000, 16384, 33333, MOST};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void expect_number(const gr_kernels *k, const char *what, size_t n, gr_real found, gr_real wanted) {
    if (memcmp(&found, &wanted, sizeof found) != 0)
        ck_abort_msg("%s, %s of %zu: %.17g, not %.17g", k->name, what, n, (double)found, (double)wanted);
}

TEST(a_row_is_summed_by_the_tree) {
    const gr_kernels *k = table(_i);
    draw_numbers(MOST, x, TAME);
    for (size_t s = 0; s < SIZES; s++) {
        size_t n = sizes[s];
        expect_number(k, "sum", n, k->sum(n, x, 0), tree_sum(n, x));
        for (size_t i = 0; i < n; i++) term[i] = x[i] - 2;
        expect_number(k, "centered sum", n, k->sum(n, x, 2), tree_sum(n, term));
        for (size_t i = 0; i < n; i++) term[i] = ((x[i] - 2) * 3) * ((x[i] - 2) * 3);
        expect_number(k, "squares", n, k->sum_squares(n, x, (gr_center){2, 0}, 3), tree_sum(n, term));
    }
}

static void compare_columns(const gr_kernels *k, size_t rows, size_t width) {
    gr_real found[COLUMNS + 1], before[COLUMNS + 1];
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        draw_numbers(COLUMNS + 1, before, TAME);
        memcpy(found, before, sizeof found);
        k->sum_rows(rows, width, x, COLUMNS, found, accumulate);
        for (size_t j = 0; j < width; j++) {
            for (size_t i = 0; i < rows; i++) columns[i] = x[i * COLUMNS + j];
            expect_number(k, "column", rows, found[j], (accumulate ? before[j] : 0) + tree_sum(rows, columns));
        }
        expect_number(k, "what follows the columns", rows, found[width], before[width]);
    }
}

TEST(a_column_is_summed_by_the_tree) {
    const gr_kernels *k = table(_i);
    const size_t widths[] = {0, 1, 2, 15, 16, 17, 32, COLUMNS};
    draw_numbers(MOST, x, TAME);
    for (size_t s = 0; s < SIZES; s++)
        for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++)
            if (sizes[s] * COLUMNS <= MOST) compare_columns(k, sizes[s], widths[w]);
}

/* Terms in row-major order of the reduced axes, whichever they are and whatever the strides. */
TEST(a_sum_over_axes_is_the_tree_of_its_terms) {
    enum { A = 7, B = 300, C = 5 };
    gr_tensor *t = drawn(GR_SHAPE(A, B, C), -1, 1), *views[] = {t, strided(t)};
    const gr_real *of = gr_data(t);
    for (int v = 0; v < 2; v++) {
        gr_tensor *middle = gr_sum(views[v], GR_AXES(1)), *outer = gr_sum(views[v], GR_AXES(0, -1));
        for (size_t a = 0; a < A; a++)
            for (size_t c = 0; c < C; c++) {
                for (size_t b = 0; b < B; b++) term[b] = of[(a * B + b) * C + c];
                DEMAND(gr_data(middle)[a * C + c] == tree_sum(B, term));
            }
        for (size_t b = 0; b < B; b++) {
            for (size_t i = 0; i < A * C; i++) term[i] = of[(i / C * B + b) * C + i % C];
            DEMAND(gr_data(outer)[b] == tree_sum(A * C, term));
        }
        DEMAND(gr_item(gr_sum(views[v], GR_ALL)) == (double)tree_sum(A * B * C, of));
    }
}

/* -- How large the error is ---------------------------------------------------------------------------------------- */

/* One running sum of floats gives 100958.34 here. */
TEST(a_million_tenths_are_100000) {
    const double near = 0.05 * TOLERANCE / 1e-5; /* in double as many digits more */
    gr_tensor *t = gr_full(ctx, GR_SHAPE(1000000), 0.1), *matrix = gr_reshape(t, GR_SHAPE(-1, 2));
    ck_assert_double_eq_tol(gr_item(gr_sum(t, GR_ALL)), 100000, near);
    ck_assert_double_eq_tol(gr_item(gr_sum(gr_slice(t, 0, 0, GR_END, 2), GR_ALL)), 50000, near);
    ck_assert_double_eq_tol(gr_item(gr_select(gr_sum(matrix, GR_AXES(0)), 0, 1)), 50000, near);
    ck_assert_double_eq_tol(gr_item(gr_mean(t, GR_ALL)), 0.1, near * 1e-6);
    ck_assert_double_eq_tol(gr_item(gr_norm(t, GR_ALL)), 100, near * 1e-3);
    ck_assert_double_eq_tol(gr_item(gr_mse(t, gr_full(ctx, GR_SHAPE(1000000), 0))), 0.01, near * 1e-6);
    ck_assert_double_eq_tol(gr_item(gr_logsumexp(t, GR_ALL)), 0.1 + log(1e6), near * 1e-4);
}

TEST(the_gradient_of_a_broadcast_is_summed_without_loss) {
    gr_tensor *b = gr_requires_grad(gr_zeros(ctx, GR_SHAPE(1))), *seed = gr_full(ctx, GR_SHAPE(1000000), 0.1);
    ck_assert(gr_backward_from(gr_add(b, seed), seed));
    ck_assert_double_eq_tol(gr_item(gr_grad(b)), 100000, 0.05 * TOLERANCE / 1e-5);
}

TEST(a_mean_loss_over_many_rows_is_accurate) {
    enum { N = 200000 };
    static int32_t target[N];
    gr_tensor *logits = gr_zeros(ctx, GR_SHAPE(N, 3));
    double loss = gr_item(gr_cross_entropy(logits, (gr_tokens){target, 1, N}));
    ck_assert_double_eq_tol(loss, log(3), TOLERANCE / 10);
}

Suite *sums_suite(void) {
    Suite *suite = suite_create("sums");
    add_rows(suite, "rows", a_row_is_summed_by_the_tree, tables());
    add_rows(suite, "columns", a_column_is_summed_by_the_tree, tables());
    GROUP(suite, "axes", a_sum_over_axes_is_the_tree_of_its_terms);
    GROUP(suite, "error", a_million_tenths_are_100000, the_gradient_of_a_broadcast_is_summed_without_loss,
          a_mean_loss_over_many_rows_is_accurate);
    return suite;
}
