/* Tensors: making them, what they say of themselves, how long they live, which sizes are refused. */
#include "support.h"

#include "tensor/shape.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* -- Making and reading -------------------------------------------------------------------------------------------- */

TEST(a_shape_gives_row_major_strides) {
    gr_tensor *x = gr_zeros(ctx, GR_SHAPE(2, 3, 4));
    EXPECT_SHAPE(x, GR_SHAPE(2, 3, 4));
    ck_assert_int_eq(gr_numel(x), 24);
    const int64_t wanted[] = {12, 4, 1};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(gr_stride(x, i), wanted[i]);
        ck_assert_int_eq(gr_stride(x, i - 3), wanted[i]);
        ck_assert_int_eq(gr_dim(x, i - 3), gr_dim(x, i));
    }
}

TEST(an_axis_that_is_not_there_has_size_0) {
    gr_tensor *x = gr_zeros(ctx, GR_SHAPE(2, 3));
    ck_assert_int_eq(gr_dim(x, 2), 0);
    ck_assert_int_eq(gr_dim(x, -3), 0);
    ck_assert_int_eq(gr_stride(x, 2), 0);
    ck_assert(gr_ok(ctx));
}

TEST(creation_sets_every_element) {
    gr_zeros(ctx, GR_SHAPE(1)); /* other numbers in reused memory must not show */
    gr_full(ctx, GR_SHAPE(100), 7);
    gr_context_reset(ctx);
    EXPECT(gr_zeros(ctx, GR_SHAPE(2, 2)), 0, 0, 0, 0);
    EXPECT(gr_full(ctx, GR_SHAPE(3), -2.5), -2.5, -2.5, -2.5);
    EXPECT(gr_scalar(ctx, 4), 4);
    ck_assert_int_eq(gr_ndim(gr_scalar(ctx, 4)), 0);
    const gr_real values[] = {1, 2, 3, 4, 5, 6};
    EXPECT(gr_from(ctx, GR_SHAPE(2, 3), values), 1, 2, 3, 4, 5, 6);
}

TEST(from_copies_its_values) {
    gr_real values[] = {1, 2};
    gr_tensor *x = gr_from(ctx, GR_SHAPE(2), values);
    values[0] = 9;
    EXPECT(x, 1, 2);
}

TEST(a_tensor_may_have_6_axes) {
    gr_tensor *x = counting(GR_SHAPE(2, 1, 3, 1, 2, 2));
    EXPECT_SHAPE(gr_permute(x, GR_AXES(5, 4, 3, 2, 1, 0)), GR_SHAPE(2, 2, 1, 3, 1, 2));
    EXPECT(gr_sum(x, GR_AXES(0, 2, 4, 5)), 276);
    EXPECT(gr_sum(gr_select(gr_select(x, 0, 1), -1, 1), GR_ALL), 13 + 15 + 17 + 19 + 21 + 23);
}

TEST(data_is_walked_with_the_strides) {
    gr_tensor *x = gr_transpose(counting(GR_SHAPE(3, 4)), 0, 1);
    for (int64_t i = 0; i < 4; i++)
        for (int64_t j = 0; j < 3; j++) {
            gr_real found = gr_data(x)[i * gr_stride(x, 0) + j * gr_stride(x, 1)];
            ck_assert_double_eq((double)found, (double)(4 * j + i));
        }
}

TEST(to_array_writes_strided_elements_in_row_major_order) {
    gr_real out[6];
    gr_tensor *x = gr_transpose(counting(GR_SHAPE(3, 4)), 0, 1); /* (4, 3) */
    ck_assert(gr_to_array(gr_slice(x, 0, 1, GR_END, 2), out));   /* (2, 3) */
    const gr_real wanted[] = {1, 5, 9, 3, 7, 11};
    ck_assert_mem_eq(out, wanted, sizeof wanted);
    ck_assert(gr_to_array(gr_expand(tensor(GR_SHAPE(3), NUMBERS(1, 2, 3)), GR_SHAPE(2, 3)), out));
    const gr_real repeated[] = {1, 2, 3, 1, 2, 3};
    ck_assert_mem_eq(out, repeated, sizeof repeated);
}

TEST(to_array_refuses_an_inert_tensor_no_room_and_a_failed_context) {
    gr_real out[1] = {5};
    gr_tensor *x = gr_scalar(ctx, 1);
    ck_assert(!gr_to_array(NULL, out) && gr_ok(ctx));
    ck_assert(!gr_to_array(x, NULL));
    EXPECT_ERROR("to_array: out is NULL");
    gr_tensor *inert = gr_reshape(x, GR_SHAPE(2));
    ck_assert(!gr_to_array(inert, out) && !gr_to_array(x, out));
    EXPECT_ERROR("reshape");
    ck_assert(!gr_to_array(inert, out) && out[0] == 5);
    EXPECT_ERROR("to_array: x was made after an error that has been cleared since");
    ck_assert(gr_to_array(x, out) && out[0] == 1);
}

TEST(item_reads_one_element_of_any_shape) {
    ck_assert_double_eq(gr_item(gr_full(ctx, GR_SHAPE(1, 1, 1), 3)), 3);
    ck_assert_double_eq(gr_item(gr_slice(counting(GR_SHAPE(9)), 0, 4, 5, 1)), 4);
}

TEST(item_of_many_elements_is_an_error) {
    ck_assert(isnan(gr_item(gr_named(counting(GR_SHAPE(2)), "pair"))));
    EXPECT_ERROR("item: pair (2,) has 2 elements");
    ck_assert(isnan(gr_item(gr_zeros(ctx, GR_SHAPE(0)))));
    EXPECT_ERROR("0 elements");
}

TEST(a_name_is_copied_and_seen_through_views) {
    char name[] = "weights";
    gr_tensor *x = gr_named(gr_zeros(ctx, GR_SHAPE(2, 3)), name);
    name[0] = 'X';
    ck_assert_str_eq(gr_name(x), "weights");
    ck_assert_str_eq(gr_name(gr_transpose(x, 0, 1)), "weights");
    ck_assert_str_eq(gr_name(gr_zeros(ctx, GR_SCALAR)), "");
    ck_assert_str_eq(gr_name(NULL), "");
    ck_assert_ptr_eq(gr_named(x, NULL), x);
}

TEST(questions_about_nothing_have_harmless_answers) {
    ck_assert(gr_is_inert(NULL));
    ck_assert_int_eq(gr_numel(NULL), 0);
    ck_assert_int_eq(gr_ndim(NULL), 0);
    ck_assert_int_eq(gr_shape_of(NULL).ndim, 0);
    ck_assert_int_eq(gr_dim(NULL, 0), 0);
    ck_assert_int_eq(gr_stride(NULL, -1), 0);
    ck_assert_ptr_null(gr_data(NULL));
    ck_assert_ptr_nonnull(gr_context_of(NULL));
    ck_assert(!gr_ok(gr_context_of(NULL)));
    ck_assert_ptr_eq(gr_context_of(gr_scalar(ctx, 1)), ctx);
}

/* -- Tensors without elements -------------------------------------------------------------------------------------- */

TEST(a_tensor_without_elements_is_legal) {
    gr_tensor *x = gr_zeros(ctx, GR_SHAPE(2, 0, 3));
    ck_assert(!gr_is_inert(x));
    ck_assert_int_eq(gr_numel(x), 0);
    EXPECT_SHAPE(gr_exp(gr_add(x, gr_scalar(ctx, 1))), GR_SHAPE(2, 0, 3));
    EXPECT_SHAPE(gr_transpose(x, 0, 1), GR_SHAPE(0, 2, 3));
    EXPECT_SHAPE(gr_softmax(x), GR_SHAPE(2, 0, 3));
    EXPECT_SHAPE(gr_softmax(gr_transpose(x, 1, 2)), GR_SHAPE(2, 3, 0));
    EXPECT_SHAPE(gr_layernorm(x, NULL, NULL, 0), GR_SHAPE(2, 0, 3));
    EXPECT_SHAPE(gr_reshape(x, GR_SHAPE(0, 5)), GR_SHAPE(0, 5));
    EXPECT_SHAPE(gr_concat((gr_tensor *[]){x, gr_zeros(ctx, GR_SHAPE(2, 1, 3))}, 2, 1), GR_SHAPE(2, 1, 3));
    ck_assert(gr_ok(ctx));
}

TEST(the_sum_of_nothing_is_0) {
    gr_tensor *x = gr_zeros(ctx, GR_SHAPE(2, 0));
    EXPECT(gr_sum(x, GR_ALL), 0);
    EXPECT(gr_sum(x, GR_AXES(1)), 0, 0);
    EXPECT_SHAPE(gr_sum(x, GR_AXES(0)), GR_SHAPE(0));
    EXPECT(gr_norm(x, GR_ALL), 0);
    EXPECT(gr_logsumexp(x, GR_ALL), -INFINITY);
}

TEST(mean_max_and_variance_of_nothing_are_errors) {
    gr_tensor *x = gr_zeros(ctx, GR_SHAPE(2, 0));
    ck_assert(gr_is_inert(gr_mean(x, GR_ALL)));
    EXPECT_ERROR("nothing to take the mean of");
    ck_assert(gr_is_inert(gr_max(x, GR_AXES(-1))));
    EXPECT_ERROR("nothing to take the max of");
    ck_assert(gr_is_inert(gr_variance(x, GR_AXES(1))));
    EXPECT_ERROR("variance");
    EXPECT_SHAPE(gr_max(x, GR_AXES(0)), GR_SHAPE(0)); /* of two numbers, for none of the columns */
}

TEST(a_product_over_an_inner_size_of_0_is_0) {
    gr_full(ctx, GR_SHAPE(1000), 7); /* what memory held before must not show */
    gr_context_reset(ctx);
    gr_tensor *a = gr_requires_grad(gr_zeros(ctx, GR_SHAPE(2, 0))),
              *b = gr_requires_grad(gr_zeros(ctx, GR_SHAPE(0, 3)));
    gr_tensor *c = gr_matmul(a, b);
    EXPECT(c, 0, 0, 0, 0, 0, 0);
    ck_assert(gr_backward_from(c, gr_full(ctx, GR_SHAPE(2, 3), 1)));
    EXPECT_SHAPE(gr_grad(b), GR_SHAPE(0, 3));
    EXPECT_SHAPE(gr_matmul(gr_zeros(ctx, GR_SHAPE(0, 4)), gr_zeros(ctx, GR_SHAPE(4, 3))), GR_SHAPE(0, 3));
    EXPECT_SHAPE(gr_matmul(gr_zeros(ctx, GR_SHAPE(0, 2, 4)), gr_zeros(ctx, GR_SHAPE(4, 3))), GR_SHAPE(0, 2, 3));
}

/* Of no element, in no axis, where the others say; to divide by 0 traps on some machines and gives 0 on others. */
TEST(an_offset_passes_over_an_axis_of_size_0) {
    const int64_t stride[] = {7, 11, 1};
    ck_assert_int_eq(gr_shape_offset(GR_SHAPE(2, 5, 3), stride, (1 * 5 + 4) * 3 + 2), 7 + 4 * 11 + 2);
    ck_assert_int_eq(gr_shape_offset(GR_SHAPE(2, 0, 3), stride, 1 * 3 + 2), 7 + 2);
    ck_assert_int_eq(gr_shape_offset(GR_SHAPE(0, 0, 0), stride, 0), 0);
}

/* -- Lifetimes ----------------------------------------------------------------------------------------------------- */

TEST(parameters_and_kept_tensors_survive_a_reset) {
    gr_tensor *w = gr_parameter(tensor(GR_SHAPE(2), NUMBERS(1, 2)), "w");
    gr_tensor *table = gr_keep(gr_named(gr_transpose(counting(GR_SHAPE(2, 2)), 0, 1), "table"));
    gr_context_reset(ctx);
    gr_full(ctx, GR_SHAPE(1000), 9); /* takes the memory of what is gone */
    EXPECT(w, 1, 2);
    EXPECT(gr_grad(w), 0, 0);
    EXPECT(table, 0, 2, 1, 3);
    ck_assert_str_eq(gr_name(w), "w");
    ck_assert_str_eq(gr_name(table), "table");
}

TEST(a_kept_tensor_is_a_copy) {
    gr_tensor *x = tensor(GR_SHAPE(2), NUMBERS(1, 2)), *kept = gr_keep(x);
    gr_data(x)[0] = 9;
    EXPECT(kept, 1, 2);
}

static void small_step(gr_tensor *w) {
    gr_tensor *x = counting(GR_SHAPE(8, 16));
    gr_tensor *y = gr_softmax(gr_layernorm(gr_matmul(x, w), NULL, NULL, 0));
    ck_assert(gr_backward(gr_mean(gr_square(gr_reshape(gr_transpose(y, 0, 1), GR_SHAPE(-1))), GR_ALL)));
}

TEST(from_the_second_step_on_no_memory_is_taken) {
    gr_tensor *w = gr_parameter(drawn(GR_SHAPE(16, 32), -1, 1), "w");
    size_t bytes = 0;
    for (int step = 0; step < 5; step++) {
        small_step(w);
        if (step == 1) bytes = gr_context_bytes(ctx);
        if (step > 1) ck_assert_uint_eq(gr_context_bytes(ctx), bytes);
        gr_context_reset(ctx);
        if (step > 1) ck_assert_uint_lt(gr_context_bytes(ctx), bytes);
    }
}

/* -- Sizes --------------------------------------------------------------------------------------------------------- */

static void expect_refused(gr_shape shape, const char *why) {
    gr_tensor *w = gr_parameter(gr_scalar(ctx, 1), "w");
    ck_assert(gr_is_inert(gr_zeros(ctx, shape)));
    ck_assert(!gr_backward(w));
    EXPECT_ERROR(why);
    gr_context_reset(ctx);
    EXPECT(gr_full(ctx, GR_SHAPE(2), 1), 1, 1);
}

TEST(more_than_the_memory_of_the_machine_is_an_error) {
    const double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    int64_t n = MOST_IN_A_TENSOR;
    while (sizeof(size_t) > 4 && (double)sizeof(gr_real) * (double)(n / 2) > memory) n /= 2; /* as few as may be */
    expect_refused(GR_SHAPE(n), "out of memory");
}

TEST(a_number_of_elements_that_does_not_fit_is_an_error) {
    expect_refused(GR_SHAPE(INT64_MAX, 2), "too many elements");
    expect_refused(GR_SHAPE(INT64_MAX), "too many elements");
    expect_refused(GR_SHAPE(INT64_MAX, 0, 2), "too many elements");
    expect_refused(GR_SHAPE(1LL << 32, 1LL << 31), "too many elements");
    expect_refused(GR_SHAPE(1LL << 21, 1LL << 21, 1LL << 21), "too many elements");
}

TEST(a_negative_size_is_an_error) {
    expect_refused(GR_SHAPE(-1), "negative");
    expect_refused(GR_SHAPE(2, -3), "zeros: shape (2, -3) has a negative size");
    expect_refused(GR_SHAPE(0, -3), "negative");
    expect_refused(GR_SHAPE(INT64_MIN), "negative");
}

TEST(more_than_6_axes_are_an_error) {
    expect_refused((gr_shape){7, {1, 1, 1, 1, 1, 1}}, "7 dimensions");
    expect_refused((gr_shape){-1, {1}}, "-1 dimensions");
}

/* -- Two threads --------------------------------------------------------------------------------------------------- */

enum { STEPS = 3, WIDTH = 24 };
typedef struct training {
    double seed;
    gr_real gradient[WIDTH * WIDTH];
    bool fine;
} training;

static void *train(void *arg) {
    training *t = arg;
    gr_context *own = gr_context_new();
    gr_rng drawing = gr_rng_seed((uint64_t)t->seed);
    gr_tensor *w = gr_parameter(gr_normal(own, GR_SHAPE(WIDTH, WIDTH), 0, 1, &drawing), "w");
    t->fine = true;
    for (int step = 0; step < STEPS; step++) {
        gr_tensor *x = gr_normal(own, GR_SHAPE(40, WIDTH), 0, 1, &drawing);
        gr_tensor *y = gr_softmax(gr_matmul(gr_dropout(x, 0.5, &drawing), gr_matmul(w, w)));
        t->fine = gr_backward(gr_mean(gr_square(y), GR_ALL)) && t->fine;
        gr_context_reset(own);
    }
    gr_add(w, gr_zeros(own, GR_SHAPE(5))); /* messages must not mix either */
    t->fine = t->fine && contains(gr_error_message(own), "w (24, 24)");
    gr_error_clear(own);
    gr_context_reset(own);
    t->fine = gr_to_array(gr_grad(w), t->gradient) && t->fine;
    gr_context_free(own);
    return NULL;
}

TEST(two_contexts_in_two_threads_give_what_they_give_one_after_another) {
    static training together[2] = {{.seed = 1}, {.seed = 2}}, alone[2] = {{.seed = 1}, {.seed = 2}};
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) ck_assert_int_eq(pthread_create(&thread[i], NULL, train, &together[i]), 0);
    for (int i = 0; i < 2; i++) ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < 2; i++) {
        train(&alone[i]);
        ck_assert(alone[i].fine && together[i].fine);
        ck_assert_mem_eq(alone[i].gradient, together[i].gradient, sizeof alone[i].gradient);
    }
    ck_assert(memcmp(alone[0].gradient, alone[1].gradient, sizeof alone[0].gradient) != 0);
}

Suite *tensor_suite(void) {
    Suite *suite = suite_create("tensor");
    GROUP(suite, "making and reading", a_shape_gives_row_major_strides, an_axis_that_is_not_there_has_size_0,
          creation_sets_every_element, from_copies_its_values, a_tensor_may_have_6_axes,
          data_is_walked_with_the_strides, to_array_writes_strided_elements_in_row_major_order,
          to_array_refuses_an_inert_tensor_no_room_and_a_failed_context, item_reads_one_element_of_any_shape,
          item_of_many_elements_is_an_error, a_name_is_copied_and_seen_through_views,
          questions_about_nothing_have_harmless_answers);
    GROUP(suite, "no elements", a_tensor_without_elements_is_legal, the_sum_of_nothing_is_0,
          mean_max_and_variance_of_nothing_are_errors, a_product_over_an_inner_size_of_0_is_0,
          an_offset_passes_over_an_axis_of_size_0);
    GROUP(suite, "lifetimes", parameters_and_kept_tensors_survive_a_reset, a_kept_tensor_is_a_copy,
          from_the_second_step_on_no_memory_is_taken);
    GROUP(suite, "sizes", more_than_the_memory_of_the_machine_is_an_error,
          a_number_of_elements_that_does_not_fit_is_an_error, a_negative_size_is_an_error,
          more_than_6_axes_are_an_error);
    GROUP(suite, "threads", two_contexts_in_two_threads_give_what_they_give_one_after_another);
    return suite;
}
