/* Views and broadcasting: which numbers are seen, and which memory is shared. */
#include "support.h"

/* Does writing to x show in y? */
static bool share(gr_tensor *x, gr_tensor *y) {
    gr_real *first = gr_data(x);
    return gr_data(y) >= first && gr_data(y) < first + gr_numel(x);
}

/* -- Views --------------------------------------------------------------------------------------------------------- */

TEST(transpose_swaps_two_axes_without_a_copy) {
    gr_tensor *x = counting(GR_SHAPE(2, 3)), *y = gr_transpose(x, 0, 1);
    EXPECT(y, 0, 3, 1, 4, 2, 5);
    EXPECT_SHAPE(y, GR_SHAPE(3, 2));
    ck_assert_ptr_eq(gr_data(y), gr_data(x));
    gr_data(x)[1] = 9;
    EXPECT(y, 0, 3, 9, 4, 2, 5);
}

TEST(negative_axes_count_from_the_end) {
    gr_tensor *x = counting(GR_SHAPE(2, 3, 4));
    ck_assert(same_tensors(gr_transpose(x, -2, -1), gr_transpose(x, 1, 2)));
    ck_assert(same_tensors(gr_transpose(x, -3, 2), gr_transpose(x, 2, 0)));
    ck_assert(same_tensors(gr_sum(x, GR_AXES(-1)), gr_sum(x, GR_AXES(2))));
    ck_assert(same_tensors(gr_slice(x, -1, 1, 3, 1), gr_slice(x, 2, 1, 3, 1)));
    ck_assert(same_tensors(gr_select(x, -3, -1), gr_select(x, 0, 1)));
    ck_assert(same_tensors(gr_permute(x, GR_AXES(-1, 0, -2)), gr_permute(x, GR_AXES(2, 0, 1))));
    ck_assert(same_tensors(gr_concat((gr_tensor *[]){x, x}, 2, -1), gr_concat((gr_tensor *[]){x, x}, 2, 2)));
    ck_assert(same_tensors(gr_stack((gr_tensor *[]){x, x}, 2, -1), gr_stack((gr_tensor *[]){x, x}, 2, 3)));
}

TEST(permute_puts_axis_order_i_at_place_i) {
    gr_tensor *x = counting(GR_SHAPE(2, 3, 4)), *y = gr_permute(x, GR_AXES(2, 0, 1));
    EXPECT_SHAPE(y, GR_SHAPE(4, 2, 3));
    ck_assert_ptr_eq(gr_data(y), gr_data(x));
    EXPECT(gr_select(y, 0, 1), 1, 5, 9, 13, 17, 21);
}

TEST(a_slice_takes_every_step_th_index) {
    gr_tensor *x = counting(GR_SHAPE(10));
    EXPECT(gr_slice(x, 0, 2, 5, 1), 2, 3, 4);
    EXPECT(gr_slice(x, 0, 1, GR_END, 3), 1, 4, 7);
    EXPECT(gr_slice(x, 0, 0, 10, 9), 0, 9);
    EXPECT(gr_slice(x, 0, -3, GR_END, 1), 7, 8, 9);
    EXPECT(gr_slice(x, 0, -4, -1, 2), 6, 8);
    EXPECT(gr_slice(x, 0, 3, 4, INT64_MAX), 3);
    ck_assert(share(x, gr_slice(x, 0, 1, GR_END, 3)));
}

TEST(a_slice_of_a_slice_is_a_slice) {
    gr_tensor *x = counting(GR_SHAPE(4, 9)), *y = gr_slice(gr_slice(x, 1, 1, GR_END, 2), 1, 1, GR_END, 2);
    EXPECT(gr_slice(y, 0, 1, 4, 2), 12, 16, 30, 34);
    ck_assert(share(x, y));
}

TEST(a_slice_may_be_empty) {
    gr_tensor *x = counting(GR_SHAPE(3, 2));
    EXPECT_SHAPE(gr_slice(x, 0, 1, 1, 1), GR_SHAPE(0, 2));
    EXPECT_SHAPE(gr_slice(x, 0, 3, GR_END, 1), GR_SHAPE(0, 2));
    EXPECT(gr_sum(gr_slice(x, 0, 3, 3, 1), GR_ALL), 0);
}

TEST(a_huge_step_takes_the_first_index_only) {
    gr_tensor *x = counting(GR_SHAPE(4, 3));
    EXPECT(gr_slice(x, 0, 1, GR_END, INT64_MAX), 3, 4, 5);
    EXPECT(gr_slice(x, 0, 1, GR_END, INT64_MAX / 2), 3, 4, 5);
}

TEST(select_drops_its_axis) {
    gr_tensor *x = counting(GR_SHAPE(3, 2));
    EXPECT(gr_select(x, 0, 1), 2, 3);
    EXPECT_SHAPE(gr_select(x, 0, 1), GR_SHAPE(2));
    EXPECT(gr_select(x, 1, -1), 1, 3, 5);
    EXPECT(gr_select(gr_select(x, 0, 2), 0, 0), 4);
    ck_assert(share(x, gr_select(x, 0, 1)));
}

TEST(an_index_outside_the_axis_is_an_error) {
    const int64_t outside[] = {3, 4, 1000, -4, -5, -6, -7, INT64_MAX, INT64_MAX - 1, INT64_MIN, INT64_MIN + 1};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        gr_tensor *x = counting(GR_SHAPE(3, 2));
        ck_assert_msg(gr_is_inert(gr_select(x, 0, outside[i])), "index %lld of 3", (long long)outside[i]);
        EXPECT_ERROR("axis 0");
        gr_context_reset(ctx);
    }
}

TEST(split_gives_equal_parts_that_share_memory) {
    gr_tensor *x = counting(GR_SHAPE(2, 6)), *part[3];
    gr_split(x, -1, 3, part);
    EXPECT(part[0], 0, 1, 6, 7);
    EXPECT(part[2], 4, 5, 10, 11);
    for (int i = 0; i < 3; i++) ck_assert(share(x, part[i]));
    ck_assert(same_tensors(gr_concat(part, 3, 1), x));
}

TEST(expand_repeats_without_a_copy) {
    gr_tensor *x = tensor(GR_SHAPE(2, 1), NUMBERS(1, 2)), *y = gr_expand(x, GR_SHAPE(3, 2, 2));
    EXPECT(y, 1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2);
    ck_assert_ptr_eq(gr_data(y), gr_data(x));
    ck_assert_int_eq(gr_stride(y, 0), 0);
    EXPECT_SHAPE(gr_expand(x, GR_SHAPE(0, 2, 1)), GR_SHAPE(0, 2, 1));
}

TEST(reshape_of_a_contiguous_tensor_shares_memory) {
    gr_tensor *x = counting(GR_SHAPE(2, 6));
    ck_assert_ptr_eq(gr_data(gr_reshape(x, GR_SHAPE(3, 4))), gr_data(x));
    ck_assert_ptr_eq(gr_data(gr_reshape(x, GR_SHAPE(12))), gr_data(x));
    ck_assert(share(x, gr_reshape(gr_slice(x, 0, 1, 2, 1), GR_SHAPE(2, 3))));
    EXPECT(gr_reshape(gr_select(x, 0, 1), GR_SHAPE(2, 3)), 6, 7, 8, 9, 10, 11);
}

TEST(reshape_copies_nothing_that_strides_can_show) {
    gr_tensor *x = counting(GR_SHAPE(4, 6)), *columns = gr_slice(x, 1, 0, GR_END, 2);          /* (4, 3) */
    gr_tensor *y = gr_reshape(columns, GR_SHAPE(2, 2, 1, 3)), *turned = gr_transpose(x, 0, 1); /* (6, 4) */
    ck_assert(share(x, y) && same_tensors(gr_reshape(y, GR_SHAPE(4, 3)), columns));
    EXPECT(gr_select(y, 1, 0), 0, 2, 4, 12, 14, 16);
    ck_assert(share(x, gr_select(x, 1, 3)) && share(x, gr_reshape(columns, GR_SHAPE(12))));
    EXPECT(gr_reshape(columns, GR_SHAPE(12)), 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22);
    ck_assert(share(x, gr_reshape(turned, GR_SHAPE(2, 3, 4))) && !share(x, gr_reshape(turned, GR_SHAPE(3, 8))));
    EXPECT(gr_select(gr_reshape(turned, GR_SHAPE(2, 3, 4)), 2, 1), 6, 7, 8, 9, 10, 11);
    EXPECT(gr_select(gr_reshape(turned, GR_SHAPE(3, 8)), 0, 1), 2, 8, 14, 20, 3, 9, 15, 21);
    gr_tensor *repeated = gr_reshape(gr_expand(counting(GR_SHAPE(2, 1)), GR_SHAPE(3, 2, 4)), GR_SHAPE(3, 8));
    EXPECT(gr_select(repeated, 0, 2), 0, 0, 0, 0, 1, 1, 1, 1);
}

TEST(reshape_copies_when_the_strides_force_it) {
    gr_tensor *x = counting(GR_SHAPE(2, 3)), *y = gr_reshape(gr_transpose(x, 0, 1), GR_SHAPE(6));
    EXPECT(y, 0, 3, 1, 4, 2, 5);
    ck_assert(!share(x, y));
    gr_data(x)[0] = 9;
    EXPECT(y, 0, 3, 1, 4, 2, 5);
}

TEST(reshape_infers_one_size) {
    gr_tensor *x = counting(GR_SHAPE(2, 6));
    EXPECT_SHAPE(gr_reshape(x, GR_SHAPE(-1)), GR_SHAPE(12));
    EXPECT_SHAPE(gr_reshape(x, GR_SHAPE(4, -1)), GR_SHAPE(4, 3));
    EXPECT_SHAPE(gr_reshape(x, GR_SHAPE(2, -1, 6)), GR_SHAPE(2, 1, 6));
    EXPECT_SHAPE(gr_reshape(gr_scalar(ctx, 1), GR_SHAPE(1, -1)), GR_SHAPE(1, 1));
    EXPECT_SHAPE(gr_reshape(gr_full(ctx, GR_SHAPE(1, 1), 2), GR_SCALAR), GR_SCALAR);
    EXPECT_SHAPE(gr_reshape(gr_zeros(ctx, GR_SHAPE(0, 3)), GR_SHAPE(-1, 3)), GR_SHAPE(0, 3));
}

TEST(detach_is_a_view) {
    gr_tensor *w = gr_parameter(counting(GR_SHAPE(3)), "w");
    ck_assert_ptr_eq(gr_data(gr_detach(w)), gr_data(w));
    ck_assert_str_eq(gr_name(gr_detach(w)), "w");
}

TEST(joining_copies) {
    gr_tensor *x = counting(GR_SHAPE(2, 2)), *pair[] = {x, gr_transpose(x, 0, 1)};
    gr_tensor *rows = gr_concat(pair, 2, 0), *stack = gr_stack(pair, 2, 0);
    EXPECT(rows, 0, 1, 2, 3, 0, 2, 1, 3);
    EXPECT_SHAPE(stack, GR_SHAPE(2, 2, 2));
    EXPECT(gr_stack(pair, 2, 2), 0, 0, 1, 2, 2, 1, 3, 3);
    ck_assert(!share(x, rows) && !share(x, stack));
    EXPECT(gr_stack((gr_tensor *[]){gr_scalar(ctx, 1), gr_scalar(ctx, 2)}, 2, 0), 1, 2);
}

/* -- Broadcasting -------------------------------------------------------------------------------------------------- */

TEST(sizes_of_1_and_missing_axes_are_repeated) {
    gr_tensor *column = tensor(GR_SHAPE(2, 1), NUMBERS(10, 20)), *row = tensor(GR_SHAPE(3), NUMBERS(1, 2, 3));
    EXPECT(gr_add(column, row), 11, 12, 13, 21, 22, 23);
    EXPECT(gr_sub(row, column), -9, -8, -7, -19, -18, -17);
    EXPECT(gr_mul(gr_scalar(ctx, 2), row), 2, 4, 6);
    EXPECT_SHAPE(gr_add(gr_zeros(ctx, GR_SHAPE(4, 1, 3)), gr_zeros(ctx, GR_SHAPE(2, 1))), GR_SHAPE(4, 2, 3));
    EXPECT_SHAPE(gr_add(gr_zeros(ctx, GR_SHAPE(0, 1)), gr_zeros(ctx, GR_SHAPE(1, 3))), GR_SHAPE(0, 3));
    EXPECT_SHAPE(gr_where(gr_zeros(ctx, GR_SHAPE(2, 1)), row, gr_scalar(ctx, 1)), GR_SHAPE(2, 3));
}

TEST(the_gradient_of_a_broadcast_is_summed) {
    gr_tensor *column = variable(GR_SHAPE(2, 1), NUMBERS(10, 20)), *row = variable(GR_SHAPE(3), NUMBERS(1, 2, 3));
    gr_tensor *number = variable(GR_SCALAR, NUMBERS(2));
    ck_assert(gr_backward(gr_sum(gr_mul(gr_mul(column, row), number), GR_ALL)));
    EXPECT(gr_grad(column), 12, 12);
    EXPECT(gr_grad(row), 60, 60, 60);
    EXPECT(gr_grad(number), 180);
}

TEST(the_gradient_of_what_was_repeated_no_times_is_0) {
    gr_tensor *x = variable(GR_SHAPE(1), NUMBERS(5));
    ck_assert(gr_backward(gr_sum(gr_mul(x, gr_zeros(ctx, GR_SHAPE(0))), GR_ALL)));
    EXPECT(gr_grad(x), 0);
}

TEST(sizes_that_differ_do_not_broadcast) {
    const gr_shape pair[][2] = {{GR_SHAPE(2), GR_SHAPE(3)},
                                {GR_SHAPE(2, 3), GR_SHAPE(2)},
                                {GR_SHAPE(0), GR_SHAPE(2)},
                                {GR_SHAPE(4, 1, 2), GR_SHAPE(3, 3, 1)}};
    for (size_t i = 0; i < sizeof pair / sizeof pair[0]; i++) {
        ck_assert(gr_is_inert(gr_mul(gr_zeros(ctx, pair[i][0]), gr_zeros(ctx, pair[i][1]))));
        EXPECT_ERROR("mul: a (");
        gr_context_reset(ctx);
    }
}

TEST(an_operand_under_any_strides_gives_the_same_result) {
    gr_tensor *a = drawn(GR_SHAPE(3, 4, 5), 1, 2), *b = drawn(GR_SHAPE(4, 1), 1, 2), *sa = strided(a), *sb = strided(b);
    ck_assert_int_ne(gr_stride(sa, 2), 1);
    ck_assert(same_tensors(a, sa) && same_tensors(b, sb));
    ck_assert(same_tensors(gr_div(a, b), gr_div(sa, sb)));
    ck_assert(same_tensors(gr_softmax(a), gr_softmax(sa)));
    ck_assert(same_tensors(gr_mean(a, GR_AXES(0, 2)), gr_mean(sa, GR_AXES(0, 2))));
    ck_assert(same_tensors(gr_matmul(a, gr_transpose(a, 1, 2)), gr_matmul(sa, gr_transpose(sa, 1, 2))));
}

Suite *views_suite(void) {
    Suite *suite = suite_create("views");
    GROUP(suite, "views", transpose_swaps_two_axes_without_a_copy, negative_axes_count_from_the_end,
          permute_puts_axis_order_i_at_place_i, a_slice_takes_every_step_th_index, a_slice_of_a_slice_is_a_slice,
          a_slice_may_be_empty, a_huge_step_takes_the_first_index_only, select_drops_its_axis,
          an_index_outside_the_axis_is_an_error, split_gives_equal_parts_that_share_memory,
          expand_repeats_without_a_copy, reshape_of_a_contiguous_tensor_shares_memory,
          reshape_copies_nothing_that_strides_can_show, reshape_copies_when_the_strides_force_it,
          reshape_infers_one_size, detach_is_a_view, joining_copies);
    GROUP(suite, "broadcasting", sizes_of_1_and_missing_axes_are_repeated, the_gradient_of_a_broadcast_is_summed,
          the_gradient_of_what_was_repeated_no_times_is_0, sizes_that_differ_do_not_broadcast,
          an_operand_under_any_strides_gives_the_same_result);
    return suite;
}
