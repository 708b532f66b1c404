/* Fused attention: it is the textbook's, with any strides, and its options are those of the header. */
#include "fused_support.h"

/* -- Random problems ----------------------------------------------------------------------------------------------- */

static gr_tensor *swapped(gr_tensor *x) { return gr_transpose(x, -1, -2); }
static gr_tensor *head(gr_tensor *x) { return gr_ndim(x) > 2 ? gr_transpose(x, -3, -2) : x; }
static gr_tensor *sliced(gr_tensor *x) { return gr_slice(x, -1, 1, GR_END, 2); }
static gr_tensor *later(gr_tensor *x) { return rows(x, 3, GR_END); }
static gr_tensor *expanded(gr_tensor *x) {
    gr_shape shape = gr_shape_of(x);
    return shape.ndim > 2 ? shape.dim[0] = 2, gr_expand(x, shape) : x;
}
static view *const views[] = {NULL, swapped, head, sliced, later, expanded};

/* Numbers of such a shape that the view shows under this one. */
static gr_tensor *draw_under(view *through, gr_shape shape) {
    const int n = shape.ndim, a = through == head ? n - 3 : n - 2, b = through == head ? n - 2 : n - 1;
    const int64_t at_a = a >= 0 ? shape.dim[a] : 0;
    if ((through == swapped || through == head) && a >= 0) shape.dim[a] = shape.dim[b], shape.dim[b] = at_a;
    if (through == sliced) shape.dim[n - 1] = 2 * shape.dim[n - 1] + 1;
    if (through == later) shape.dim[n - 2] += 3;
    if (through == expanded && n > 2) shape.dim[0] = 1;
    return drawn(shape, -2, 2);
}

static int64_t draw_time(void) {
    const int64_t edges[] = {1, BAND - 1, BAND, BAND + 1, TILE - 1, TILE, TILE + 1, 2 * TILE - 1, 2 * TILE + 1};
    return below(3) ? edges[below(9)] : 1 + below(140);
}

static problem draw_problem(bool with_views) {
    const int axes = 2 + (int)below(3);
    const int64_t queries = draw_time(), keys = below(3) ? draw_time() : queries;
    const int64_t d = below(4) ? 1 + below(24) : 1, d_v = below(2) ? d : 1 + below(24), heads = 1 + below(3);
    const int64_t time[] = {queries, keys, keys}, width[] = {d, d, d_v};
    problem p = {.width = d, .options = {.dropout = below(3) ? 0 : 0.3, .rng = &rng, .scale = below(3) ? 0 : -0.7}};
    for (int n = 0; n < INPUTS; n++) {
        gr_shape shape = axes == 2   ? GR_SHAPE(time[n], width[n])
                         : axes == 3 ? GR_SHAPE(2, time[n], width[n])
                                     : GR_SHAPE(2, heads, time[n], width[n]);
        if (with_views) p.through[n] = views[below(6)];
        p.in[n] = draw_under(p.through[n], shape);
        if (n == K) p.scores = shape, p.scores.dim[axes - 1] = keys, p.scores.dim[axes - 2] = queries;
    }
    p.options.mask = draw_mask(p.scores);
    return p;
}

/* -- The textbook -------------------------------------------------------------------------------------------------- */

static attended textbook(gr_tensor *const in[INPUTS], view *const through[INPUTS], gr_attention_options options) {
    gr_tensor *weights;
    options.weights = &weights;
    return attend(in, through, options, NULL);
}

/* A number is right to so many units of its last place, or of what has cancelled in it. A score's gradient is the
 * difference P (dy . v - dy . y) of two sums over the columns of v, 0 where one key is seen; that of a key adds one for
 * each query, and these roundings are independent. 14 is the most in a thousand problems, with fused multiply-add and
 * without, in float and in double. */
enum { ROUNDINGS = 16 };
static void expect_near(const char *what, gr_tensor *found, gr_tensor *wanted, double cancelled) {
    const double size = gr_numel(wanted) ? gr_item(gr_max(gr_abs(wanted), GR_ALL)) : 0;
    const double error = gr_numel(wanted) ? gr_item(gr_max(gr_abs(gr_sub(found, wanted)), GR_ALL)) : 0;
    ck_assert_msg(error <= ROUNDINGS * (double)GR_REAL_EPSILON * fmax(size, cancelled),
                  "%s: an error of %g beside %g, %g", what, error, size, cancelled);
}

/* q and k: so many times numbers in [-2, 2]. */
static void expect_textbook(const problem *p, double times) {
    const attended a = attend(p->in, p->through, p->options, NULL), b = textbook(p->in, p->through, p->options);
    const double scale = p->options.scale != 0 ? fabs(p->options.scale) : 1 / sqrt((double)p->width);
    const double slope = times * scale * (double)gr_dim(a.y, -1), queries = sqrt((double)gr_dim(a.y, -2));
    expect_near("output", a.y, b.y, 1);
    expect_near("dq", a.gradient[Q], b.gradient[Q], slope);
    expect_near("dk", a.gradient[K], b.gradient[K], slope * queries);
    expect_near("dv", a.gradient[V], b.gradient[V], queries);
}

enum { PROBLEMS = 15, EACH = 5 };
TEST(it_is_the_textbooks) {
    for (int n = 0; n < EACH; n++) {
        begin_at(EACH * _i + n);
        const problem p = draw_problem(true);
        expect_textbook(&p, 1);
        gr_context_reset(ctx);
    }
}

TEST(large_scores_lose_no_more_than_the_textbooks) {
    for (int n = 0; n < EACH; n++) {
        begin_at(n);
        problem p = draw_problem(false);
        p.options.scale = 1e4 / (40. * 40 * (double)p.width); /* q and k in [-40, 40] */
        for (int i = 0; i < V; i++) p.in[i] = gr_scale(p.in[i], 20);
        expect_textbook(&p, 20);
        gr_context_reset(ctx);
    }
}

/* A first tile that is hidden; nothing but the last key. */
TEST(what_is_seen_last_counts_in_full) {
    enum { T = 2 * TILE + 2, D = 4 };
    problem p = {.width = D};
    for (int n = 0; n < INPUTS; n++) p.in[n] = drawn(GR_SHAPE(T, D), -2, 2);
    gr_tensor *tail = gr_zeros(ctx, GR_SHAPE(1, T)), *last = gr_zeros(ctx, GR_SHAPE(1, T));
    for (int64_t j = TILE; j < T; j++) gr_data(tail)[j] = 1;
    gr_data(last)[T - 1] = 1;
    p.options.mask = gr_mask_tensor(tail);
    expect_textbook(&p, 1);
    p.options.mask = gr_mask_tensor(last);
    attended a = attend(p.in, plain, p.options, NULL);
    ck_assert(same_tensors(a.y, gr_keep(gr_expand(rows(p.in[V], T - 1, T), GR_SHAPE(T, D)))));
    ck_assert(is_zero(rows(a.gradient[V], 0, T - 1)) && is_zero(rows(a.gradient[K], 0, T - 1)));
}

TEST(what_sees_nothing_is_0_with_zero_gradients) {
    enum { TQ = TILE + 40, TK = 30, BLIND = TQ - TK, D = 3 };
    gr_tensor *in[] = {drawn(GR_SHAPE(TQ, D), -2, 2), drawn(GR_SHAPE(TK, D), -2, 2), drawn(GR_SHAPE(TK, D), -2, 2)};
    attended a = attend(in, plain, (gr_attention_options){.mask = gr_mask_causal()}, NULL);
    ck_assert(is_zero(rows(a.y, 0, BLIND)) && is_zero(rows(a.gradient[Q], 0, BLIND)));
    ck_assert(!is_zero(rows(a.y, BLIND, BLIND + 1)));
    a = attend(in, plain, (gr_attention_options){.mask = gr_mask_tensor(gr_scalar(ctx, 0))}, NULL);
    ck_assert(is_zero(a.y));
    for (int n = 0; n < INPUTS; n++) ck_assert(is_zero(a.gradient[n]));
    in[Q] = gr_full(ctx, GR_SHAPE(TQ, D), 1), in[K] = gr_full(ctx, GR_SHAPE(TK, D), -INFINITY); /* all scores -inf */
    a = attend(in, plain, (gr_attention_options){0}, NULL);
    ck_assert(is_zero(a.y));
    for (int n = 0; n < INPUTS; n++) ck_assert(is_zero(a.gradient[n]));
    for (int n = K; n < INPUTS; n++) in[n] = gr_zeros(ctx, GR_SHAPE(0, D)); /* there are no keys */
    a = attend(in, plain, (gr_attention_options){0}, NULL);
    ck_assert(is_zero(a.y) && is_zero(a.gradient[Q]));
}

/* -- The rest of the header ---------------------------------------------------------------------------------------- */

TEST(the_output_lies_as_q_does) {
    enum { B = 2, T = 5, H = 3, D = 5, C = H * D };
    gr_tensor *part[INPUTS], *all = drawn(GR_SHAPE(B, T, 3 * C), -1, 1);
    gr_split(all, -1, INPUTS, part);
    for (int n = 0; n < INPUTS; n++) part[n] = gr_transpose(gr_reshape(part[n], GR_SHAPE(B, T, H, D)), 1, 2);
    gr_tensor *y = gr_attention(part[Q], part[K], part[V], (gr_attention_options){.mask = gr_mask_causal()});
    const int64_t lies[] = {T * C, D, C, 1};
    for (int n = 0; n < 4; n++) ck_assert_int_eq(gr_stride(y, n), lies[n]);
    gr_tensor *joined = gr_reshape(gr_transpose(y, 1, 2), GR_SHAPE(B, T, C));
    ck_assert_ptr_eq(gr_data(joined), gr_data(y)); /* a view */
    y = gr_attention(gr_keep(part[Q]), part[K], part[V], (gr_attention_options){0});
    ck_assert_int_eq(gr_stride(y, 1), T * D);
}

TEST(after_an_error_weights_and_logsumexp_are_inert_too) {
    gr_tensor *x = drawn(GR_SHAPE(3, 4), -1, 1), *weights = NULL, *logsumexp = NULL;
    gr_fail(ctx, "fused", "on purpose");
    gr_tensor *y = gr_attention(x, x, x, (gr_attention_options){.weights = &weights});
    ck_assert(gr_is_inert(y) && weights && gr_is_inert(weights));
    y = gr_attention(x, x, x, (gr_attention_options){.logsumexp = &logsumexp});
    ck_assert(gr_is_inert(y) && logsumexp && gr_is_inert(logsumexp));
    EXPECT_ERROR("fused: on purpose");
}

TEST(operands_without_as_many_axes_two_or_more_are_refused) {
    gr_tensor *x = drawn(GR_SHAPE(3, 4), -1, 1), *more = drawn(GR_SHAPE(1, 3, 4), -1, 1), *row = gr_select(x, 0, 0);
    gr_tensor *const wrong[][INPUTS] = {{x, x, more}, {x, more, x}, {more, x, x}, {row, row, row}};
    for (int i = 0; i < 4; i++) {
        ck_assert(gr_is_inert(gr_attention(wrong[i][Q], wrong[i][K], wrong[i][V], (gr_attention_options){0})));
        EXPECT_ERROR("attention: ");
    }
}

TEST(values_without_columns_give_outputs_without_columns_and_no_gradient) {
    gr_tensor *in[] = {drawn(GR_SHAPE(3, 4), -1, 1), drawn(GR_SHAPE(3, 4), -1, 1), gr_zeros(ctx, GR_SHAPE(3, 0))};
    gr_profile_begin(ctx); /* counts the work, too */
    attended a = attend(in, plain, (gr_attention_options){0}, NULL);
    EXPECT_SHAPE(a.y, GR_SHAPE(3, 0));
    ck_assert(is_zero(a.gradient[Q]) && is_zero(a.gradient[K]));
}

Suite *fused_suite(void) {
    Suite *suite = suite_create("fused");
    add_rows(suite, "the textbook", it_is_the_textbooks, PROBLEMS);
    GROUP(suite, "ends", large_scores_lose_no_more_than_the_textbooks, what_is_seen_last_counts_in_full,
          what_sees_nothing_is_0_with_zero_gradients, the_output_lies_as_q_does,
          after_an_error_weights_and_logsumexp_are_inert_too, operands_without_as_many_axes_two_or_more_are_refused,
          values_without_columns_give_outputs_without_columns_and_no_gradient);
    return suite;
}
