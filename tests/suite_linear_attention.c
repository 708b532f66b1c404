/* Linear attention: against its quadratic form, and what must not be seen is not seen. */
#include "nn_support.h"

#include "tensor/kernels/kernels.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64 }; /* of src/autograd/linear_attention.c: sizes here lie around its edge */

static gr_tensor *rows(gr_tensor *x, int64_t begin, int64_t end) { return gr_slice(x, -2, begin, end, 1); }
static bool is_zero(gr_tensor *x) { return gr_item(gr_max(gr_abs(x), GR_ALL)) == 0; }

typedef gr_tensor *form(gr_tensor *q, gr_tensor *k, gr_tensor *v, bool causal);

/* What a form made of variables with these values, and their gradients after a random seed over the first queries. */
typedef struct attended {
    gr_tensor *y, *gradient[3];
} attended;
enum { DQ, DK, DV };

static attended attend(form *f, gr_tensor *q, gr_tensor *k, gr_tensor *v, bool causal, int64_t queries) {
    gr_tensor *in[] = {gr_requires_grad(gr_detach(q)), gr_requires_grad(gr_detach(k)), gr_requires_grad(gr_detach(v))};
    attended a = {.y = f(in[0], in[1], in[2], causal)};
    backward_at_random(rows(a.y, 0, queries));
    for (int i = 0; i < 3; i++) a.gradient[i] = gr_grad(in[i]);
    return a;
}

/* -- The quadratic form -------------------------------------------------------------------------------------------- */

static gr_tensor *feature(gr_tensor *x) { return gr_where(gr_relu(x), gr_add_scalar(x, 1), gr_exp(x)); }

/* A = mask(f(q) f(k)^T), y = A v / sum_j A. Where nothing is seen, `blind` makes the denominator 1. */
static gr_tensor *quadratic(gr_tensor *q, gr_tensor *k, gr_tensor *v, bool causal) {
    int64_t queries = gr_dim(q, -2), keys = gr_dim(k, -2);
    gr_tensor *mask = gr_zeros(ctx, GR_SHAPE(queries, keys)), *blind = gr_zeros(ctx, GR_SHAPE(queries, 1));
    for (int64_t i = 0; i < queries; i++) {
        int64_t seen = causal ? i + keys - queries + 1 : keys;
        for (int64_t j = 0; j < seen; j++) gr_data(mask)[i * keys + j] = 1;
        gr_data(blind)[i] = seen <= 0;
    }
    gr_tensor *weights = gr_mul(gr_matmul(feature(q), gr_transpose(feature(k), -2, -1)), mask);
    return gr_div(gr_matmul(weights, v), gr_add(gr_sum(weights, GR_KEEP(-1)), blind));
}

static void expect_near(const char *what, gr_tensor *found, gr_tensor *wanted) {
    gr_tensor *off = gr_abs(gr_sub(found, wanted)), *size = gr_maximum(gr_abs(wanted), gr_scalar(ctx, 1));
    double error = gr_numel(found) ? gr_item(gr_max(gr_div(off, size), GR_ALL)) : 0;
    ck_assert_msg(error <= TOLERANCE, "%s: an error of %g", what, error);
}

static int64_t below(uint64_t n) { return (int64_t)gr_rng_below(&rng, n); }

static int64_t drawn_time(void) {
    const int64_t edges[] = {1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 1};
    enum { EDGES = sizeof edges / sizeof edges[0] };
    return below(2) ? edges[below(EDGES)] : 1 + below(3 * CHUNK);
}

/* Of 2 to 5 axes: the last of these sizes. */
static gr_tensor *drawn_rows(int axes, int64_t times, int64_t width, bool views) {
    gr_shape shape = {axes, {0}}, all = GR_SHAPE(2, 1, 3, times, width);
    for (int i = 0; i < axes; i++) shape.dim[i] = all.dim[5 - axes + i];
    gr_tensor *x = drawn(shape, -2, 2);
    return views ? strided(x) : x;
}

enum { SHAPES = 40 };
TEST(it_equals_its_quadratic_form) {
    rng = gr_rng_stream(gr_rng_seed((uint64_t)_i), GR_STREAM_USER);
    const bool causal = _i % 2, views = _i % 4 > 1;
    int axes = 2 + (int)below(4);
    int64_t queries = drawn_time(), keys = below(3) ? drawn_time() : queries, d = 1 + below(9), e = 1 + below(9);
    gr_tensor *q = drawn_rows(axes, queries, d, views), *k = drawn_rows(axes, keys, d, views);
    gr_tensor *v = drawn_rows(axes, keys, e, views);
    attended a = attend(gr_linear_attention, q, k, v, causal, queries), b = attend(quadratic, q, k, v, causal, queries);
    ck_assert_msg(gr_ok(ctx), "%s", gr_error_message(ctx));
    expect_near("output", a.y, b.y);
    for (int i = 0; i < 3; i++) expect_near("gradient", a.gradient[i], b.gradient[i]);
}

TEST(heads_may_be_views_of_one_projection) { /* (B, T, 3 C) -> three of (B, H, T, D) */
    enum { B = 2, T = CHUNK + 3, H = 2, D = 3, C = H * D };
    gr_tensor *x = gr_requires_grad(drawn(GR_SHAPE(B, T, 3 * C), -1, 1)), *part[3], *gradient[2];
    form *const forms[] = {gr_linear_attention, quadratic};
    for (int f = 0; f < 2; f++) {
        gr_tensor *seen = gr_requires_grad(gr_detach(x));
        gr_split(seen, -1, 3, part);
        for (int i = 0; i < 3; i++) part[i] = gr_transpose(gr_reshape(part[i], GR_SHAPE(B, T, H, D)), 1, 2);
        backward_at_random(forms[f](part[0], part[1], part[2], true));
        gradient[f] = gr_grad(seen);
    }
    expect_near("gradient", gradient[0], gradient[1]);
}

TEST(memory_grows_like_the_length) {
    double taken[2];
    for (int twice = 0; twice < 2; twice++) {
        int64_t n = 512 * (1 + twice);
        attend(gr_linear_attention, drawn(GR_SHAPE(n, 4), -1, 1), drawn(GR_SHAPE(n, 4), -1, 1),
               drawn(GR_SHAPE(n, 4), -1, 1), true, n); /* the scratch of products is there from now on */
        gr_context_reset(ctx);
        double before = (double)gr_context_bytes(ctx);
        gr_tensor *x = gr_requires_grad(drawn(GR_SHAPE(n, 4), -1, 1));
        backward_at_random(gr_linear_attention(x, x, x, true));
        taken[twice] = (double)gr_context_bytes(ctx) - before;
        gr_context_reset(ctx);
    }
    ck_assert_double_le(taken[1], 2 * taken[0]);
}

/* -- What is not seen ---------------------------------------------------------------------------------------------- */

static const double garbage[] = {3, -1e3, NAN, INFINITY, -INFINITY};
enum { GARBAGE = sizeof garbage / sizeof *garbage };

/* x with other rows from t on. */
static gr_tensor *spoiled(gr_tensor *x, int64_t t, double by) {
    int64_t width = gr_dim(x, -1), rest = gr_dim(x, -2) - t;
    return gr_concat((gr_tensor *[]){rows(x, 0, t), gr_full(ctx, GR_SHAPE(rest, width), by)}, 2, -2);
}

TEST(what_comes_later_changes_no_bit) {
    enum { T = 2 * CHUNK + 20, D = 5, E = 3 };
    const int64_t times[] = {1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 7, T - 1};
    const double by = garbage[_i];
    gr_tensor *q = drawn(GR_SHAPE(T, D), -1, 1), *k = drawn(GR_SHAPE(T, D), -1, 1), *v = drawn(GR_SHAPE(T, E), -1, 1);
    for (size_t n = 0; n < sizeof times / sizeof *times; n++) {
        int64_t t = times[n];
        attended a = attend(gr_linear_attention, q, k, v, true, t);
        attended b = attend(gr_linear_attention, spoiled(q, t, by), spoiled(k, t, by), spoiled(v, t, by), true, t);
        ck_assert(same_tensors(rows(a.y, 0, t), rows(b.y, 0, t)));
        ck_assert(same_tensors(rows(a.gradient[DQ], 0, t), rows(b.gradient[DQ], 0, t)));
        for (int i = 0; i < 3; i++) {
            ck_assert(is_zero(rows(a.gradient[i], t, T)));
            if (t > 1) ck_assert(!is_zero(rows(a.gradient[i], t - 1, t))); /* of one key alone y is v */
            /* beyond those, a later query whose output is NaN hands NaN to every key that it sees */
            if (isfinite(by)) ck_assert(same_tensors(rows(a.gradient[i], 0, t), rows(b.gradient[i], 0, t)));
        }
    }
}

/* Query i is the last that sees nothing of this; no key from it on gets any of it. */
TEST(a_query_that_is_not_a_number_spoils_no_later_key) {
    enum { T = CHUNK + 20, D = 4 };
    const int64_t t = _i * 13;
    gr_tensor *q = drawn(GR_SHAPE(T, D), -1, 1), *k = drawn(GR_SHAPE(T, D), -1, 1), *v = drawn(GR_SHAPE(T, D), -1, 1);
    gr_tensor *other =
        gr_concat((gr_tensor *[]){rows(q, 0, t), gr_full(ctx, GR_SHAPE(1, D), NAN), rows(q, t + 1, T)}, 3, 0);
    attended a = attend(gr_linear_attention, q, k, v, true, T), b = attend(gr_linear_attention, other, k, v, true, T);
    for (int i = 0; i < 3; i++) ck_assert(same_tensors(rows(a.gradient[i], t + 1, T), rows(b.gradient[i], t + 1, T)));
    ck_assert(isnan(gr_item(gr_sum(rows(b.gradient[DV], t, t + 1), GR_ALL))));
}

TEST(a_query_that_sees_nothing_is_0_with_zero_gradients) {
    enum { TQ = CHUNK + 9, TK = 4, BLIND = TQ - TK, D = 3 };
    gr_tensor *q = drawn(GR_SHAPE(TQ, D), -1, 1), *k = drawn(GR_SHAPE(TK, D), -1, 1),
              *v = drawn(GR_SHAPE(TK, D), -1, 1);
    attended a = attend(gr_linear_attention, q, k, v, true, TQ);
    gr_tensor *other = gr_concat((gr_tensor *[]){gr_full(ctx, GR_SHAPE(BLIND, D), NAN), rows(q, BLIND, TQ)}, 2, 0);
    attended b = attend(gr_linear_attention, other, k, v, true, TQ);
    ck_assert(is_zero(rows(a.y, 0, BLIND)) && is_zero(rows(a.gradient[DQ], 0, BLIND)));
    ck_assert(!is_zero(rows(a.y, BLIND, BLIND + 1)));
    ck_assert(same_tensors(a.y, b.y));
    for (int i = 0; i < 3; i++) ck_assert(same_tensors(a.gradient[i], b.gradient[i]));
}

TEST(where_all_weights_are_0_the_output_is_0_with_zero_gradients) {
    gr_tensor *q = drawn(GR_SHAPE(3, 2), -1, 1), *k = gr_full(ctx, GR_SHAPE(4, 2), -800); /* e^-800 is 0 */
    gr_tensor *v = drawn(GR_SHAPE(4, 2), -1, 1);
    for (int causal = 0; causal < 2; causal++) {
        attended a = attend(gr_linear_attention, q, k, v, causal, 3);
        ck_assert(is_zero(a.y));
        for (int i = 0; i < 3; i++) ck_assert(is_zero(a.gradient[i]));
    }
    ck_assert(is_zero(gr_linear_attention(q, gr_zeros(ctx, GR_SHAPE(0, 2)), gr_zeros(ctx, GR_SHAPE(0, 2)), false)));
}

/* -- Bits ---------------------------------------------------------------------------------------------------------- */

enum { HEADS = 5, TQ = 2 * CHUNK + 1, TK = CHUNK + 6, D = 16, ROOM = 2 * HEADS * D * (2 * TQ + 2 * TK) };

/* Output and gradients, causal and not, in a context of its own. */
static void run(gr_real *out) {
    gr_context_free(ctx);
    ctx = gr_context_new();
    rng = gr_rng_seed(3);
    for (int causal = 0; causal < 2; causal++) {
        gr_tensor *q = drawn(GR_SHAPE(HEADS, TQ, D), -2, 2), *k = drawn(GR_SHAPE(HEADS, TK, D), -2, 2);
        attended a = attend(gr_linear_attention, q, k, drawn(GR_SHAPE(HEADS, TK, D), -1, 1), causal, TQ);
        gr_tensor *all[] = {a.y, a.gradient[DQ], a.gradient[DK], a.gradient[DV]};
        for (int i = 0; i < 4; out += gr_numel(all[i++])) ck_assert(gr_to_array(all[i], out));
    }
}

static gr_real first[ROOM], again[ROOM];

TEST(the_number_of_threads_changes_no_bit) {
    size_t at;
    use_threads(1);
    run(first);
    for (int threads = 2; threads <= 3; threads++) {
        use_threads(threads);
        run(again);
        ck_assert_msg(same_bits(ROOM, again, first, &at), "%d threads: number %zu differs", threads, at);
    }
}

TEST(the_instruction_set_changes_no_bit) {
    size_t at;
    unsetenv("GRADUS_ISA");
    run(first);
    if (!gr_kernels_select(NULL)->exact) return;
    setenv("GRADUS_ISA", "reference", 1);
    run(again);
    ck_assert_msg(same_bits(ROOM, again, first, &at), "number %zu differs", at);
}

TEST(values_without_columns_give_outputs_without_columns_and_no_gradient) {
    gr_tensor *x = gr_requires_grad(drawn(GR_SHAPE(3, 4), -1, 1)), *v = gr_zeros(ctx, GR_SHAPE(3, 0));
    gr_profile_begin(ctx); /* counts the work, too */
    gr_tensor *y = gr_linear_attention(x, x, v, true);
    EXPECT_SHAPE(y, GR_SHAPE(3, 0));
    ck_assert(gr_backward(gr_sum(y, GR_ALL)));
    for (int i = 0; i < 12; i++) ck_assert(gr_data(gr_grad(x))[i] == 0);
}

/* -- Refusals ------------------------------------------------------------------------------------------------------ */

TEST(shapes_that_do_not_fit_are_refused) {
    gr_tensor *x = gr_zeros(ctx, GR_SHAPE(3, 2)), *wide = gr_zeros(ctx, GR_SHAPE(3, 4)),
              *v3 = gr_zeros(ctx, GR_SHAPE(3));
    gr_tensor *tall = gr_named(gr_zeros(ctx, GR_SHAPE(5, 2)), "tall"), *batch = gr_zeros(ctx, GR_SHAPE(2, 3, 2));
    gr_tensor *other = gr_zeros(ctx, GR_SHAPE(4, 3, 2));
    ck_assert(gr_is_inert(gr_linear_attention(x, wide, x, true)));
    EXPECT_ERROR("linear_attention: q (3, 2), k (3, 4), v (3, 2): sizes 2 of q and 4 of k differ");
    ck_assert(gr_is_inert(gr_linear_attention(x, tall, x, true)));
    EXPECT_ERROR("linear_attention: q (3, 2), tall (5, 2), v (3, 2): 5 keys, 3 values");
    ck_assert(gr_is_inert(gr_linear_attention(batch, batch, other, false)));
    EXPECT_ERROR("linear_attention: q (2, 3, 2), k (2, 3, 2), v (4, 3, 2): all need two axes or more, and the same "
                 "leading ones");
    ck_assert(gr_is_inert(gr_linear_attention(x, batch, x, false)));
    EXPECT_ERROR(
        "linear_attention: q (3, 2), k (2, 3, 2), v (3, 2): all need two axes or more, and the same leading ones");
    ck_assert(gr_is_inert(gr_linear_attention(v3, v3, v3, false)));
    EXPECT_ERROR("linear_attention: q (3,), k (3,), v (3,): all need two axes or more, and the same leading ones");
    ck_assert(gr_is_inert(gr_linear_attention(x, NULL, x, false)));
    EXPECT_ERROR("linear_attention: k (operand 1) is NULL");
    ck_assert(gr_is_inert(gr_linear_attention(batch, x, x, false)) &&
              gr_is_inert(gr_linear_attention(x, x, batch, false)));
    EXPECT_ERROR("the same leading ones");
    ck_assert(gr_is_inert(gr_linear_attention(NULL, NULL, NULL, false)));
}

Suite *linear_attention_suite(void) {
    Suite *suite = suite_create("linear_attention");
    add_rows(suite, "the quadratic form", it_equals_its_quadratic_form, SHAPES);
    add_rows(suite, "later tokens", what_comes_later_changes_no_bit, GARBAGE);
    add_rows(suite, "earlier queries", a_query_that_is_not_a_number_spoils_no_later_key, 6);
    GROUP(suite, "other", heads_may_be_views_of_one_projection, memory_grows_like_the_length,
          a_query_that_sees_nothing_is_0_with_zero_gradients,
          where_all_weights_are_0_the_output_is_0_with_zero_gradients, the_number_of_threads_changes_no_bit,
          the_instruction_set_changes_no_bit, shapes_that_do_not_fit_are_refused,
          values_without_columns_give_outputs_without_columns_and_no_gradient);
    return suite;
}
