/* Fused attention: it is the textbook's, sees what the mask shows and nothing else, and no bit hangs on the machine. */
#include "autograd/attention_tiles.h"
#include "nn_support.h"
#include "tensor/kernels/kernels.h"

enum { TILE = ATTENTION_TILE, BAND = ATTENTION_BAND }; /* sizes here lie around their edges */
enum { Q, K, V, INPUTS };

static int64_t below(int64_t n) { return (int64_t)gr_rng_below(&rng, (uint64_t)n); }
static void begin_at(int seed) { rng = gr_rng_stream(gr_rng_seed((uint64_t)seed), GR_STREAM_USER); }
static gr_tensor *rows(gr_tensor *x, int64_t begin, int64_t end) { return gr_slice(x, -2, begin, end, 1); }
static bool is_zero(gr_tensor *x) { return gr_numel(x) == 0 || gr_item(gr_max(gr_abs(x), GR_ALL)) == 0; }
static bool same_rows(gr_tensor *a, gr_tensor *b, int64_t begin, int64_t end) {
    return same_tensors(rows(a, begin, end), rows(b, begin, end));
}

/* -- A run --------------------------------------------------------------------------------------------------------- */

typedef gr_tensor *view(gr_tensor *x);
typedef struct attended {
    gr_tensor *y, *gradient[INPUTS];
} attended;

static view *const plain[INPUTS];

/* Variables with these values, seen through the views, and their gradients after this seed (NULL: a random one). */
static attended attend(gr_tensor *const in[INPUTS], view *const through[INPUTS], gr_attention_options options,
                       gr_tensor *seed) {
    gr_tensor *x[INPUTS], *seen[INPUTS];
    gr_rng same = options.rng ? *options.rng : (gr_rng){0};
    if (options.rng) options.rng = &same;
    for (int n = 0; n < INPUTS; n++) x[n] = gr_requires_grad(gr_detach(in[n]));
    for (int n = 0; n < INPUTS; n++) seen[n] = through[n] ? through[n](x[n]) : x[n];
    attended a = {.y = gr_attention(seen[Q], seen[K], seen[V], options)};
    ck_assert_msg(gr_ok(ctx), "%s", gr_error_message(ctx));
    if (seed)
        ck_assert(gr_backward_from(a.y, seed));
    else
        backward_at_random(a.y);
    for (int n = 0; n < INPUTS; n++) a.gradient[n] = gr_grad(x[n]);
    return a;
}

/* The error beside the largest number, or beside unit: what rounding makes of terms that cancel. Without fused
 * multiply-add a term is rounded twice. */
static void expect_near(const char *what, gr_tensor *found, gr_tensor *wanted, double unit) {
    const double size = gr_numel(wanted) ? gr_item(gr_max(gr_abs(wanted), GR_ALL)) : 0;
    const double error = gr_numel(wanted) ? gr_item(gr_max(gr_abs(gr_sub(found, wanted)), GR_ALL)) : 0;
    const double roundings = gr_kernels_select(gr_context_isa(ctx))->exact ? 1 : 2;
    ck_assert_msg(error <= roundings * TOLERANCE * fmax(unit, size), "%s: an error of %g beside %g", what, error, size);
}

static void expect_close(attended a, attended b, double unit) {
    const char *const name[] = {"dq", "dk", "dv"};
    expect_near("output", a.y, b.y, 1);
    for (int n = 0; n < INPUTS; n++) expect_near(name[n], a.gradient[n], b.gradient[n], unit);
}

static bool same(attended a, attended b) {
    bool gradients = true;
    for (int n = 0; n < INPUTS; n++) gradients = gradients && same_tensors(a.gradient[n], b.gradient[n]);
    return gradients && same_tensors(a.y, b.y);
}

static attended textbook(gr_tensor *const in[INPUTS], view *const through[INPUTS], gr_attention_options options) {
    gr_tensor *weights;
    options.weights = &weights;
    return attend(in, through, options, NULL);
}

/* -- Random problems ----------------------------------------------------------------------------------------------- */

static gr_tensor *sparse(gr_shape shape, int64_t odds) {
    gr_tensor *x = gr_zeros(ctx, shape);
    for (int64_t i = 0; i < gr_numel(x); i++) gr_data(x)[i] = below(10) < odds;
    return x;
}

enum { WORDS = 7 };
static gr_mask draw_word(gr_shape scores, int word) {
    const int64_t queries = scores.dim[scores.ndim - 2], keys = scores.dim[scores.ndim - 1], block = 1 + below(70);
    const int64_t blocks = (queries > keys ? queries : keys) / block + 1;
    gr_tensor *len = gr_zeros(ctx, GR_SHAPE(scores.ndim > 2 ? scores.dim[0] : 1));
    for (int64_t b = 0; b < gr_numel(len); b++) gr_data(len)[b] = (gr_real)below(keys + 1);
    switch (word) {
    case 0:
        return gr_mask_all();
    case 1:
        return gr_mask_causal();
    case 2:
        return gr_mask_window(1 + below(below(2) ? 9 : keys));
    case 3:
        return gr_mask_global(below(4));
    case 4:
        return gr_mask_padding(len);
    case 5:
        return gr_mask_blocks(sparse(GR_SHAPE(blocks, blocks), 1 + below(9)), block);
    default:
        return gr_mask_tensor(sparse(below(2) ? scores : GR_SHAPE(queries, keys), 1 + below(9)));
    }
}

static gr_mask draw_mask(gr_shape scores) {
    gr_mask mask = draw_word(scores, (int)below(WORDS));
    for (int64_t more = below(3); more > 0; more--)
        mask = (below(2) ? gr_mask_and : gr_mask_or)(draw_word(scores, (int)below(WORDS)), mask);
    return mask;
}

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

typedef struct problem {
    gr_tensor *in[INPUTS];
    view *through[INPUTS];
    gr_shape scores;
    gr_attention_options options;
} problem;

static int64_t draw_time(void) {
    const int64_t edges[] = {1, BAND - 1, BAND, BAND + 1, TILE - 1, TILE, TILE + 1, 2 * TILE - 1, 2 * TILE + 1};
    return below(3) ? edges[below(9)] : 1 + below(140);
}

static problem draw_problem(bool with_views) {
    const int axes = 2 + (int)below(3);
    const int64_t queries = draw_time(), keys = below(3) ? draw_time() : queries;
    const int64_t d = below(4) ? 1 + below(24) : 1, d_v = below(2) ? d : 1 + below(24), heads = 1 + below(3);
    const int64_t time[] = {queries, keys, keys}, width[] = {d, d, d_v};
    problem p = {.options = {.dropout = below(3) ? 0 : 0.3, .rng = &rng, .scale = below(3) ? 0 : -0.7}};
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

enum { PROBLEMS = 15, EACH = 5 };
TEST(it_is_the_textbooks) {
    for (int n = 0; n < EACH; n++) {
        begin_at(EACH * _i + n);
        problem p = draw_problem(true);
        expect_close(attend(p.in, p.through, p.options, NULL), textbook(p.in, p.through, p.options), 1);
        gr_context_reset(ctx);
    }
}

TEST(large_scores_lose_no_more_than_the_textbooks) {
    for (int n = 0; n < EACH; n++) {
        begin_at(n);
        problem p = draw_problem(false);
        p.options.scale = 1e4 / (40. * 40 * (double)gr_dim(p.in[Q], -1)); /* q and k in [-40, 40] */
        for (int i = 0; i < V; i++) p.in[i] = gr_scale(p.in[i], 20);
        expect_close(attend(p.in, plain, p.options, NULL), textbook(p.in, plain, p.options), 40 * p.options.scale);
        gr_context_reset(ctx);
    }
}

/* A first tile that is hidden; nothing but the last key. */
TEST(what_is_seen_last_counts_in_full) {
    enum { T = 2 * TILE + 2, D = 4 };
    gr_tensor *in[] = {drawn(GR_SHAPE(T, D), -2, 2), drawn(GR_SHAPE(T, D), -2, 2), drawn(GR_SHAPE(T, D), -2, 2)};
    gr_tensor *tail = gr_zeros(ctx, GR_SHAPE(1, T)), *last = gr_zeros(ctx, GR_SHAPE(1, T));
    for (int64_t j = TILE; j < T; j++) gr_data(tail)[j] = 1;
    gr_data(last)[T - 1] = 1;
    gr_attention_options options = {.mask = gr_mask_tensor(tail)};
    expect_close(attend(in, plain, options, NULL), textbook(in, plain, options), 1);
    options.mask = gr_mask_tensor(last);
    attended a = attend(in, plain, options, NULL);
    ck_assert(same_tensors(a.y, gr_keep(gr_expand(rows(in[V], T - 1, T), GR_SHAPE(T, D)))));
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

/* -- What is hidden ------------------------------------------------------------------------------------------------ */

static const double garbage[] = {1e3, NAN, INFINITY, -INFINITY, 1e38};
enum { GARBAGE = sizeof garbage / sizeof *garbage };

enum { TQ = TILE + 37, TK = TILE + 70, D = 5, HEADS = 2 };
static double sees[TQ * TK];

/* Of the last head alone. */
static gr_tensor *spoiled(gr_tensor *x, int64_t row, double by) {
    const int64_t width = gr_dim(x, -1);
    gr_tensor *y = gr_keep(x);
    gr_real *to = gr_data(y) + gr_numel(y) - (gr_dim(x, -2) - row) * width;
    for (int64_t c = 0; c < width; c++) to[c] = (gr_real)(c % 2 && fabs(by) > 1e30 ? -by : by);
    return y;
}

static problem draw_hiding(int seed) {
    begin_at(seed);
    const gr_shape scores = GR_SHAPE(TQ, TK);
    problem p = {.options = {.dropout = seed % 2 ? 0.2 : 0, .rng = &rng}, .scores = scores};
    for (int n = 0; n < INPUTS; n++) p.in[n] = drawn(GR_SHAPE(1, HEADS, n == Q ? TQ : TK, D), -2, 2);
    gr_tensor *blind = sparse(GR_SHAPE(TQ, 1), 8), *absent = sparse(GR_SHAPE(1, TK), 8);
    p.options.mask = gr_mask_and(gr_mask_tensor(blind), gr_mask_and(draw_mask(scores), gr_mask_tensor(absent)));
    read_values(gr_mask_matrix(ctx, p.options.mask, scores), sees);
    return p;
}

static bool row_sees_any(int64_t i) {
    for (int64_t j = 0; j < TK; j++)
        if (sees[i * TK + j] != 0) return true;
    return false;
}
static bool is_seen(int64_t j) {
    for (int64_t i = 0; i < TQ; i++)
        if (sees[i * TK + j] != 0) return true;
    return false;
}

/* Keys that nobody sees, queries that see nothing, and the gradients that come down to those, may be anything, all at
 * once or one alone. */
TEST(what_nobody_sees_may_be_anything) {
    enum { DY = INPUTS, SPOILED };
    for (int seed = 0; seed <= SPOILED; seed++) {
        problem p = draw_hiding(seed);
        gr_tensor *dy = drawn(gr_shape_of(p.in[Q]), -1, 1), *in[] = {p.in[Q], p.in[K], p.in[V], dy};
        int64_t hidden = 0;
        for (int n = 0; n < SPOILED; n++)
            for (int64_t at = 0; at < gr_dim(in[n], -2); at++) {
                const bool of_key = n == K || n == V, free = of_key ? !is_seen(at) : !row_sees_any(at);
                if (free && (seed == n || seed == SPOILED)) in[n] = spoiled(in[n], at, garbage[_i]), hidden++;
            }
        attended clean = attend(p.in, plain, p.options, dy), dirty = attend(in, plain, p.options, in[DY]);
        DEMAND(hidden > 0 && same(clean, dirty));
        for (int64_t i = 0; i < TQ; i++)
            if (!row_sees_any(i))
                DEMAND(is_zero(rows(dirty.y, i, i + 1)) && is_zero(rows(dirty.gradient[Q], i, i + 1)));
        for (int64_t j = 0; j < TK; j++)
            for (int n = K; n < INPUTS && !is_seen(j); n++) DEMAND(is_zero(rows(dirty.gradient[n], j, j + 1)));
    }
}

/* A key reaches the queries that see it, their gradients, and the gradients of the other keys that these see. */
TEST(a_key_reaches_only_those_that_see_it) {
    for (int seed = 10; seed < 12; seed++) {
        problem p = draw_hiding(seed);
        const int64_t key = below(TK);
        gr_tensor *in[] = {p.in[Q], spoiled(p.in[K], key, garbage[_i]), spoiled(p.in[V], key, garbage[_i])};
        attended clean = attend(p.in, plain, p.options, NULL), dirty = attend(in, plain, p.options, NULL);
        for (int64_t i = 0; i < TQ; i++)
            if (sees[i * TK + key] == 0)
                DEMAND(same_rows(clean.y, dirty.y, i, i + 1) &&
                       same_rows(clean.gradient[Q], dirty.gradient[Q], i, i + 1));
        for (int64_t j = 0; j < TK; j++) {
            bool reached = false;
            for (int64_t i = 0; i < TQ; i++) reached = reached || (sees[i * TK + key] != 0 && sees[i * TK + j] != 0);
            for (int n = K; n < INPUTS && !reached; n++)
                DEMAND(same_rows(clean.gradient[n], dirty.gradient[n], j, j + 1));
        }
    }
}

/* A padded query, if its gradient is 0 and its scores are numbers, reaches nothing but its own row; if not, also the
 * gradients of the keys that it sees. */
TEST(a_query_reaches_only_the_keys_that_it_sees) {
    for (int seed = 20; seed < 22; seed++) {
        problem p = draw_hiding(seed);
        const int64_t query = below(TQ);
        gr_tensor *in[] = {spoiled(p.in[Q], query, garbage[_i]), p.in[K], p.in[V]};
        gr_tensor *dy = spoiled(drawn(gr_shape_of(p.in[Q]), -1, 1), query, 0);
        attended clean = attend(p.in, plain, p.options, dy), dirty = attend(in, plain, p.options, dy);
        for (int64_t i = 0; i < TQ; i++)
            if (i != query)
                DEMAND(same_rows(clean.y, dirty.y, i, i + 1) &&
                       same_rows(clean.gradient[Q], dirty.gradient[Q], i, i + 1));
        const bool wild = !(fabs(garbage[_i]) <= 1e3);
        for (int64_t j = 0; j < TK; j++)
            for (int n = K; n < INPUTS && !(wild && sees[query * TK + j] != 0); n++)
                DEMAND(same_rows(clean.gradient[n], dirty.gradient[n], j, j + 1));
    }
}

/* -- The rest of the header ---------------------------------------------------------------------------------------- */

TEST(logsumexp_is_that_of_the_masked_scores) {
    for (int seed = 30; seed < 32; seed++) {
        problem p = draw_hiding(seed);
        gr_tensor *found, *k = gr_transpose(p.in[K], -1, -2);
        p.options.logsumexp = &found, p.options.scale = 0.5;
        gr_attention(p.in[Q], p.in[K], p.in[V], p.options);
        gr_tensor *scores =
            gr_mask_scores(gr_scale(gr_matmul(p.in[Q], k), 0.5), gr_mask_matrix(ctx, p.options.mask, p.scores));
        static double wanted[HEADS * TQ];
        read_values(gr_logsumexp(scores, GR_AXES(-1)), wanted);
        expect_elements(__LINE__, found, TOLERANCE, HEADS * TQ, wanted);
        for (int64_t i = 0; i < TQ; i++)
            if (!row_sees_any(i)) DEMAND(gr_data(found)[i] == (gr_real)-INFINITY);
    }
}

TEST(the_output_lies_as_q_does) {
    enum { B = 2, T = 5, H = 3, C = H * D };
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

Suite *fused_suite(void);
Suite *fused_suite(void) {
    Suite *suite = suite_create("fused");
    add_rows(suite, "the textbook", it_is_the_textbooks, PROBLEMS);
    GROUP(suite, "ends", large_scores_lose_no_more_than_the_textbooks, what_is_seen_last_counts_in_full,
          what_sees_nothing_is_0_with_zero_gradients, logsumexp_is_that_of_the_masked_scores,
          the_output_lies_as_q_does);
    add_rows(suite, "nobody sees it", what_nobody_sees_may_be_anything, GARBAGE);
    add_rows(suite, "a key", a_key_reaches_only_those_that_see_it, GARBAGE);
    add_rows(suite, "a query", a_query_reaches_only_the_keys_that_it_sees, GARBAGE);
    return suite;
}
