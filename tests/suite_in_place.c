/* The gradient of a view is a view of the gradient: where that is allowed, and where it is not. */
#include "support.h"

#include <stdlib.h>

#ifdef _OPENMP
#    include <omp.h>
#endif

TEST(a_retained_view_has_its_own_gradient) {
    gr_tensor *x = gr_requires_grad(gr_normal(ctx, GR_SHAPE(3, 4), 0, 1, &rng));
    gr_tensor *t = gr_retain_grad(gr_transpose(gr_scale(x, 1), 0, 1));
    ck_assert(gr_backward(gr_sum(gr_square(t), GR_ALL)));
    ck_assert(same_tensors(gr_grad(t), gr_scale(t, 2)));
    ck_assert(same_tensors(gr_grad(x), gr_scale(x, 2)));
}

static gr_tensor *times_a_parameter(gr_context *c, gr_tensor **in, void *arg) {
    (void)c;
    return gr_mul(in[0], gr_transpose(arg, 0, 1));
}

TEST(a_gradient_check_leaves_a_parameter_under_a_view_alone) {
    gr_tensor *p = gr_parameter(gr_normal(ctx, GR_SHAPE(3, 2), 0, 1, &rng), "p");
    gr_tensor *x = gr_normal(ctx, GR_SHAPE(2, 3), 0, 1, &rng);
    ck_assert(gr_gradcheck(ctx, times_a_parameter, p, 1, &x, NULL, (gr_gradcheck_config){0}).ok);
    ck_assert(gr_item(gr_max(gr_abs(gr_grad(p)), GR_ALL)) == 0);
}

TEST(a_view_of_what_is_not_contiguous_gets_its_gradient) {
    gr_tensor *x = gr_requires_grad(gr_normal(ctx, GR_SHAPE(1, 4), 0, 1, &rng));
    gr_tensor *wide = gr_expand(x, GR_SHAPE(3, 4)), *turned = gr_transpose(wide, 0, 1); /* (4, 3) */
    ck_assert(gr_backward(gr_sum(gr_square(turned), GR_ALL)));
    ck_assert(same_tensors(gr_grad(x), gr_scale(x, 6)));
}

TEST(a_part_of_a_leaf_that_is_not_contiguous_gets_its_gradient_in_its_place) {
    gr_tensor *leaf = gr_requires_grad(gr_detach(gr_transpose(gr_normal(ctx, GR_SHAPE(3, 4), 0, 1, &rng), 0, 1)));
    gr_tensor *part = gr_slice(leaf, 0, 1, 4, 1); /* rows 1 to 3 of 4 */
    ck_assert(gr_backward(gr_sum(gr_square(part), GR_ALL)));
    ck_assert(same_tensors(gr_slice(gr_grad(leaf), 0, 1, 4, 1), gr_scale(part, 2)));
    EXPECT(gr_slice(gr_grad(leaf), 0, 0, 1, 1), 0, 0, 0);
}

/* Pairs of slices of x (2, TIMES, 8), which attention takes as queries and as keys: 4 wide, as many rows. */
enum { TIMES = 300, PAIRS = 7, REPEATS = 5 };
static void take_pair(int pair, gr_tensor *x, gr_tensor **q, gr_tensor **k) {
    gr_tensor *low = gr_slice(x, 2, 0, 4, 1), *half = gr_slice(x, 2, 0, 8, 2);
    *q = low, *k = low;
    switch (pair) {
    case 0:
        *k = gr_slice(x, 2, 4, 8, 1);
        break; /* apart */
    case 1:
        *k = gr_slice(x, 2, 2, 6, 1);
        break; /* overlapping */
    case 2:
        *q = half, *k = gr_slice(x, 2, 1, 8, 2);
        break; /* interleaved */
    case 3:
        *q = gr_slice(low, 1, 0, 200, 1), *k = gr_slice(low, 1, 100, TIMES, 1);
        break; /* along time */
    case 4:
        *q = gr_slice(low, 0, 0, 1, 1), *k = gr_slice(low, 0, 0, 2, INT64_MAX);
        break; /* the same, a huge step */
    case 5:
        *q = gr_slice(low, 0, 0, 1, 1), *k = gr_slice(gr_slice(x, 0, 0, 1, 1), 2, 0, 4, 1);
        break; /* two ways */
    default:
        break; /* the same tensor */
    }
}

static gr_tensor *gradient_of(gr_tensor *values, int pair, bool copied) {
    gr_tensor *x = gr_requires_grad(gr_keep(values)), *q, *k;
    take_pair(pair, gr_scale(x, 1), &q, &k);
    if (copied) q = gr_scale(q, 1), k = gr_scale(k, 1);
    gr_tensor *y = gr_attention(q, k, k, (gr_attention_options){.mask = gr_mask_causal()});
    ck_assert_msg(gr_backward(gr_sum(gr_square(y), GR_ALL)), "%s", gr_error_message(ctx));
    return gr_grad(x);
}

TEST(slices_that_share_elements_get_the_gradients_of_copies_on_any_threads) {
    gr_tensor *values = gr_normal(ctx, GR_SHAPE(2, TIMES, 8), 0, 1, &rng);
    gr_tensor *wanted = gradient_of(values, _i, true), *first = NULL;
    for (int threads = 1; threads <= 4; threads++)
        for (int repeat = 0; repeat < REPEATS; repeat++) {
#ifdef _OPENMP
            omp_set_num_threads(threads);
#endif
            gr_tensor *found = gradient_of(values, _i, false);
            if (!first) first = found;
            ck_assert(same_tensors(found, first));
        }
    ck_assert_double_le(gr_item(gr_max(gr_abs(gr_sub(first, wanted)), GR_ALL)), 10 * TOLERANCE);
}

Suite *in_place_suite(void) {
    Suite *suite = suite_create("in_place");
    GROUP(suite, "views", a_retained_view_has_its_own_gradient, a_gradient_check_leaves_a_parameter_under_a_view_alone,
          a_view_of_what_is_not_contiguous_gets_its_gradient,
          a_part_of_a_leaf_that_is_not_contiguous_gets_its_gradient_in_its_place);
    add_rows(suite, "attention", slices_that_share_elements_get_the_gradients_of_copies_on_any_threads, PAIRS);
    return suite;
}
