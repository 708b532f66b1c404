/* Matrix products against sums in double. */
#include "reference.h"

static array a, b, c;

/* Element [..., row, column] of an operand whose leading axes are broadcast; a vector is a row on the left, a column
 * on the right. */
static double element(const array *x, bool left, int lead, const int64_t *batch, int64_t row, int64_t column) {
    int64_t index[GR_MAX_DIMS + 2];
    for (int i = 0; i < lead; i++) index[i] = batch[i];
    if (x->shape.ndim == 1) return x->v[left ? column : row];
    index[lead] = row, index[lead + 1] = column;
    return seen(x, lead + 2, index);
}

/* The result with the axes that a vector operand has dropped. */
static gr_shape full_shape(void) {
    gr_shape shape = c.shape;
    if (a.shape.ndim == 1 && b.shape.ndim > 1) {
        shape.ndim++;
        shape.dim[shape.ndim - 1] = shape.dim[shape.ndim - 2];
        shape.dim[shape.ndim - 2] = 1;
    } else if (a.shape.ndim == 1) {
        shape.dim[shape.ndim++] = 1;
    }
    if (b.shape.ndim == 1) shape.dim[shape.ndim++] = 1;
    return shape;
}

/* c = a b, or a b^T; bias may be NULL. */
static void compare(const char *what, bool transposed, const double *bias) {
    gr_shape shape = full_shape();
    const int lead = shape.ndim - 2;
    const int64_t inner = a.shape.dim[a.shape.ndim - 1];
    int64_t index[GR_MAX_DIMS + 2];
    ck_assert_int_eq(size_of(shape), size_of(c.shape));
    for (int64_t i = 0; i < size_of(shape); i++) {
        index_of(shape, i, index);
        int64_t row = index[lead], column = index[lead + 1];
        double sum = bias ? bias[column] : 0, size = fabs(sum);
        for (int64_t p = 0; p < inner; p++) {
            double y =
                transposed ? element(&b, false, lead, index, column, p) : element(&b, false, lead, index, p, column);
            double term = element(&a, true, lead, index, row, p) * y;
            sum += term, size += fabs(term);
        }
        demand_near(what, i, c.v[i], sum, size);
    }
}

static void compare_matmul(gr_tensor *x, gr_tensor *y) {
    read_array(x, &a), read_array(y, &b), read_array(gr_matmul(x, y), &c);
    compare("matmul", false, NULL);
}

static gr_tensor *operand(gr_shape shape, bool under_strides) {
    gr_tensor *x = drawn(shape, -1, 1);
    return under_strides && shape.ndim < GR_MAX_DIMS ? strided(x) : x;
}

static const gr_shape pairs[][2] = {{{1, {5}}, {1, {5}}},
                                    {{1, {3}}, {2, {3, 4}}},
                                    {{2, {2, 3}}, {1, {3}}},
                                    {{2, {2, 3}}, {2, {3, 4}}},
                                    {{2, {1, 1}}, {2, {1, 1}}},
                                    {{2, {40, 50}}, {2, {50, 60}}},
                                    {{2, {3, 700}}, {2, {700, 5}}},
                                    {{2, {3, 7}}, {2, {7, 700}}},
                                    {{3, {2, 3, 4}}, {2, {4, 5}}},
                                    {{2, {3, 4}}, {3, {2, 4, 5}}},
                                    {{3, {6, 3, 4}}, {3, {6, 4, 5}}},
                                    {{3, {1, 3, 4}}, {3, {6, 4, 5}}},
                                    {{4, {2, 1, 3, 4}}, {4, {1, 5, 4, 2}}},
                                    {{4, {2, 3, 3, 4}}, {3, {3, 4, 2}}},
                                    {{6, {2, 1, 2, 1, 3, 4}}, {5, {3, 1, 2, 4, 2}}},
                                    {{1, {4}}, {3, {2, 4, 3}}},
                                    {{3, {2, 3, 4}}, {1, {4}}},
                                    {{4, {2, 2, 3, 4}}, {1, {4}}},
                                    {{3, {0, 3, 4}}, {3, {0, 4, 5}}},
                                    {{4, {2, 1, 3, 4}}, {4, {1, 0, 4, 2}}}};
enum { PAIRS = sizeof pairs / sizeof pairs[0] };

TEST(matmul_is_a_sum_of_products) {
    for (int strides = 0; strides < 4; strides++)
        compare_matmul(operand(pairs[_i][0], strides & 1), operand(pairs[_i][1], strides & 2));
}

TEST(a_transposed_operand_gives_the_same_product) {
    gr_tensor *x = drawn(GR_SHAPE(3, 17, 29), -1, 1), *y = drawn(GR_SHAPE(3, 29, 13), -1, 1);
    gr_tensor *xt = gr_keep(gr_transpose(x, 1, 2)), *yt = gr_keep(gr_transpose(y, 1, 2)), *z = gr_matmul(x, y);
    ck_assert(same_tensors(z, gr_matmul(gr_transpose(xt, 1, 2), y)));
    ck_assert(same_tensors(z, gr_matmul(x, gr_transpose(yt, 1, 2))));
    ck_assert(same_tensors(z, gr_matmul(gr_transpose(xt, 1, 2), gr_transpose(yt, 1, 2))));
}

TEST(a_row_does_not_depend_on_the_other_rows) {
    gr_tensor *x = drawn(GR_SHAPE(37, 65), -1, 1), *y = drawn(GR_SHAPE(65, 43), -1, 1), *z = gr_matmul(x, y);
    for (int64_t i = 0; i < 37; i++) ck_assert(same_tensors(gr_matmul(gr_select(x, 0, i), y), gr_select(z, 0, i)));
    ck_assert(same_tensors(gr_matmul(x, gr_slice(y, 1, 3, 40, 4)), gr_slice(z, 1, 3, 40, 4)));
}

TEST(the_gradient_of_a_matrix_used_by_a_batch_is_a_sum_over_the_batch) {
    gr_tensor *x = drawn(GR_SHAPE(3, 2, 5, 4), -1, 1), *matrix = drawn(GR_SHAPE(4, 6), -1, 1);
    gr_tensor *seed = drawn(GR_SHAPE(3, 2, 5, 6), -1, 1), *alone = gr_requires_grad(gr_keep(matrix));
    for (int64_t i = 0; i < 6; i++) {
        gr_tensor *y = gr_matmul(gr_select(gr_select(x, 0, i / 2), 0, i % 2), alone);
        ck_assert(gr_backward_from(y, gr_select(gr_select(seed, 0, i / 2), 0, i % 2)));
    }
    const gr_shape broadcast[] = {GR_SHAPE(4, 6), GR_SHAPE(1, 4, 6), GR_SHAPE(1, 1, 4, 6)};
    for (int i = 0; i < 3; i++) {
        gr_tensor *leaf = gr_requires_grad(gr_reshape(gr_keep(matrix), broadcast[i]));
        gr_tensor *used = gr_retain_grad(gr_scale(leaf, 1)); /* whose gradient begins as unwritten memory */
        ck_assert(gr_backward_from(gr_matmul(x, used), seed));
        double found[24], wanted[24];
        read_values(gr_grad(used), found), read_values(gr_grad(alone), wanted);
        for (int e = 0; e < 24; e++) demand_near("db", e, found[e], wanted[e], 30);
    }
}

TEST(linear_is_x_times_the_transposed_weight_plus_bias) {
    const gr_shape inputs[] = {GR_SHAPE(7), GR_SHAPE(5, 7), GR_SHAPE(2, 3, 7), GR_SHAPE(2, 1, 3, 2, 7)};
    for (int i = 0; i < 4; i++)
        for (int variant = 0; variant < 8; variant++) {
            gr_tensor *x = operand(inputs[i], variant & 1), *w = operand(GR_SHAPE(11, 7), variant & 2);
            gr_tensor *bias = variant & 4 ? operand(GR_SHAPE(11), variant & 1) : NULL;
            double of_bias[11];
            if (bias) read_values(bias, of_bias);
            read_array(x, &a), read_array(w, &b), read_array(gr_linear(x, w, bias), &c);
            if (a.shape.ndim == 1) { /* as a row, like its result */
                a.shape = GR_SHAPE(1, 7), c.shape = GR_SHAPE(1, 11);
            }
            compare("linear", true, bias ? of_bias : NULL);
        }
}

TEST(attention_products_are_products) {
    for (int variant = 0; variant < 4; variant++) {
        gr_tensor *q = operand(GR_SHAPE(2, 3, 5, 4), variant & 1), *k = operand(GR_SHAPE(3, 7, 4), variant & 2);
        gr_tensor *scores = gr_attention_scores(q, k), *v = operand(GR_SHAPE(2, 1, 7, 6), variant & 2);
        read_array(q, &a), read_array(k, &b), read_array(scores, &c);
        compare("attention_scores", true, NULL);
        read_array(scores, &a), read_array(v, &b), read_array(gr_attention_output(scores, v), &c);
        compare("attention_output", false, NULL);
        ck_assert(same_tensors(scores, gr_matmul(q, gr_transpose(k, -2, -1))));
    }
}

Suite *products_suite(void) {
    Suite *suite = suite_create("products");
    add_rows(suite, "matmul", matmul_is_a_sum_of_products, PAIRS);
    GROUP(suite, "products", a_transposed_operand_gives_the_same_product, a_row_does_not_depend_on_the_other_rows,
          the_gradient_of_a_matrix_used_by_a_batch_is_a_sum_over_the_batch,
          linear_is_x_times_the_transposed_weight_plus_bias, attention_products_are_products);
    return suite;
}
