/* Fused attention sees what the mask shows and nothing else. */
#include "fused_support.h"

static bool same(attended a, attended b) {
    bool gradients = true;
    for (int n = 0; n < INPUTS; n++) gradients = gradients && same_tensors(a.gradient[n], b.gradient[n]);
    return gradients && same_tensors(a.y, b.y);
}

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

Suite *fused_hidden_suite(void) {
    Suite *suite = suite_create("fused_hidden");
    add_rows(suite, "nobody sees it", what_nobody_sees_may_be_anything, GARBAGE);
    add_rows(suite, "a key", a_key_reaches_only_those_that_see_it, GARBAGE);
    add_rows(suite, "a query", a_query_reaches_only_the_keys_that_it_sees, GARBAGE);
    GROUP(suite, "logsumexp", logsumexp_is_that_of_the_masked_scores);
    return suite;
}
