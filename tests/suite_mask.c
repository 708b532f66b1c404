/* Masks: every word against its definition in a double loop over queries i and keys j, at the moment t = i + Tk - Tq.
 */
#include "support.h"

#include "tensor/mask_tile.h"
#include "tensor/shape.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 17, LEAVES = (GR_MASK_WORDS + 1) / 2 };

static int64_t below(int64_t n) { return (int64_t)gr_rng_below(&rng, (uint64_t)n); }
static void begin_at(int seed) { rng = gr_rng_stream(gr_rng_seed((uint64_t)seed), GR_STREAM_USER); }

/* -- Definitions --------------------------------------------------------------------------------------------------- */

/* A mask and what it shows by definition, element by element of the scores. */
typedef struct known {
    gr_mask mask;
    unsigned char see[MOST];
} known;

enum { ALL, CAUSAL, WINDOW, GLOBAL, PADDING, BLOCKS, TENSOR, WORDS };

/* x: the lengths, the layout, or allow in the shape of the scores. Before the first block there is none. */
static void define(known *k, gr_shape scores, int word, int64_t n, gr_tensor *x) {
    static gr_real values[MOST];
    const int64_t queries = scores.dim[scores.ndim - 2], keys = scores.dim[scores.ndim - 1];
    const int64_t count = gr_shape_numel(scores), batches = scores.ndim > 2 ? scores.dim[0] : 1;
    ck_assert_int_le(count, MOST);
    if (x) ck_assert(gr_to_array(x, values));
    for (int64_t at = 0; at < count; at++) {
        const int64_t i = at / keys % queries, j = at % keys, t = i + keys - queries;
        const bool sees[WORDS] = {
            [ALL] = true,
            [CAUSAL] = j <= t,
            [WINDOW] = llabs(t - j) < n,
            [GLOBAL] = j < n || (0 <= t && t < n),
            [PADDING] = word == PADDING && (double)j < (double)values[at / (count / batches)],
            [BLOCKS] = word == BLOCKS && t >= 0 && values[t / n * gr_dim(x, -1) + j / n] != 0,
            [TENSOR] = word == TENSOR && values[at] != 0,
        };
        k->see[at] = sees[word];
    }
}

/* -- Random words and expressions ---------------------------------------------------------------------------------- */

/* 0 or something that is not, NaN among it; rows contiguous, or spread out among NaN. */
static gr_tensor *flags(gr_shape shape) {
    const double shown[] = {1, 1, -2, NAN, 0.25};
    gr_tensor *x = gr_zeros(ctx, shape);
    const int64_t odds = 1 + below(9);
    for (int64_t i = 0; i < gr_numel(x); i++) gr_data(x)[i] = below(10) < odds ? 0 : (gr_real)shown[below(5)];
    return below(2) ? strided(x) : x;
}

/* Of the shape of the scores, of fewer axes, or with some of size 1; may be a transposed view. */
static gr_tensor *draw_allow(gr_shape scores) {
    gr_shape shape = scores;
    const int front = (int)below(scores.ndim + 1);
    shape.ndim -= front;
    for (int i = 0; i < shape.ndim; i++) shape.dim[i] = below(3) ? scores.dim[i + front] : 1;
    if (shape.ndim < 2 || below(2)) return flags(shape);
    int64_t last = shape.dim[shape.ndim - 1];
    shape.dim[shape.ndim - 1] = shape.dim[shape.ndim - 2], shape.dim[shape.ndim - 2] = last;
    return gr_transpose(flags(shape), -1, -2);
}

static gr_tensor *draw_layout(int64_t block, int64_t queries, int64_t keys) {
    const int64_t moments = queries > keys ? queries : keys;
    const int64_t m = (moments + block - 1) / block + below(2), n = (keys + block - 1) / block + below(2);
    return below(2) ? flags(GR_SHAPE(m, n)) : gr_transpose(flags(GR_SHAPE(n, m)), 0, 1);
}

static gr_tensor *draw_lengths(gr_shape scores) {
    gr_tensor *len = gr_zeros(ctx, GR_SHAPE(scores.ndim > 2 ? scores.dim[0] : 1));
    const int64_t keys = scores.dim[scores.ndim - 1];
    for (int64_t b = 0; b < gr_numel(len); b++) gr_data(len)[b] = (gr_real)(below(4 * keys + 4) - 2) / 2;
    return below(2) ? strided(len) : len;
}

static void draw_word(known *k, gr_shape scores, int word) {
    const int64_t queries = scores.dim[scores.ndim - 2], keys = scores.dim[scores.ndim - 1];
    int64_t n = below(8) ? below(keys + 2) : INT64_MAX - below(2);
    gr_tensor *x = NULL, *given = NULL;
    if (word == WINDOW) n += n == 0;
    if (word == BLOCKS) n = 1 + below(9), given = x = draw_layout(n, queries, keys);
    if (word == PADDING) given = x = draw_lengths(scores);
    if (word == TENSOR) given = draw_allow(scores), x = gr_expand(given, scores);
    const gr_mask mask[WORDS] = {gr_mask_all(),        gr_mask_causal(),       gr_mask_window(n),
                                 gr_mask_global(n),    gr_mask_padding(given), gr_mask_blocks(given, n),
                                 gr_mask_tensor(given)};
    k->mask = mask[word];
    define(k, scores, word, n, x);
}

/* One to LEAVES words in a tree of any form. */
static known *draw_expression(gr_shape scores, int64_t leaves) {
    static known part[LEAVES];
    for (int64_t i = 0; i < leaves; i++) draw_word(&part[i], scores, (int)below(WORDS));
    for (; leaves > 1; leaves--) {
        known *a = &part[below(leaves - 1)], *b = &part[leaves - 1];
        const bool first = below(2) == 0, both = below(2) == 0;
        a->mask = (both ? gr_mask_and : gr_mask_or)(first ? a->mask : b->mask, first ? b->mask : a->mask);
        for (int64_t at = 0; at < gr_shape_numel(scores); at++)
            a->see[at] = both ? a->see[at] && b->see[at] : a->see[at] || b->see[at];
    }
    return part;
}

static gr_shape draw_scores(void) {
    const int64_t edge[] = {1, 2, 5, 31, 32, 33, 127, 128, 129, 200, 257};
    if (below(2)) return GR_SHAPE(edge[below(11)], edge[below(11)]);
    const int64_t b = 1 + below(3), h = 1 + below(3), queries = 1 + below(40),
                  keys = below(2) ? queries : 1 + below(150);
    return below(2) ? GR_SHAPE(b, queries, keys) : GR_SHAPE(b, h, queries, keys);
}

static void expect_seen(const known *k, gr_shape scores) {
    static gr_real found[MOST];
    gr_tensor *m = gr_mask_matrix(ctx, k->mask, scores);
    EXPECT_SHAPE(m, scores);
    ck_assert(gr_to_array(m, found));
    for (int64_t at = 0; at < gr_numel(m); at++)
        if (found[at] != k->see[at]) ck_abort_msg("element %lld is %g", (long long)at, (double)found[at]);
}

enum { ROUNDS = 40 };
TEST(a_word_is_its_definition) {
    for (int round = 0; round < ROUNDS; round++) {
        static known k;
        const gr_shape scores = draw_scores();
        draw_word(&k, scores, _i);
        expect_seen(&k, scores);
        gr_context_reset(ctx);
    }
}

TEST(an_expression_joins_element_by_element) {
    for (int round = 0; round < ROUNDS; round++) {
        begin_at(ROUNDS * _i + round);
        const gr_shape scores = draw_scores();
        expect_seen(draw_expression(scores, 2 + below(LEAVES - 1)), scores);
        gr_context_reset(ctx);
    }
}

/* -- By hand ------------------------------------------------------------------------------------------------------- */

static gr_tensor *matrix(gr_mask mask, int64_t queries, int64_t keys) {
    return gr_mask_matrix(ctx, mask, GR_SHAPE(queries, keys));
}

TEST(words_by_hand) {
    EXPECT(matrix(gr_mask_window(1), 3, 3), 1, 0, 0, 0, 1, 0, 0, 0, 1);
    EXPECT(matrix(gr_mask_window(2), 2, 4), 0, 1, 1, 1, 0, 0, 1, 1);
    EXPECT(matrix(gr_mask_and(gr_mask_window(2), gr_mask_causal()), 3, 3), 1, 0, 0, 1, 1, 0, 0, 1, 1);
    EXPECT(matrix(gr_mask_global(1), 3, 3), 1, 1, 1, 1, 0, 0, 1, 0, 0); /* each seen once: 1, not 2 */
    EXPECT(matrix(gr_mask_or(gr_mask_global(1), gr_mask_window(1)), 3, 3), 1, 1, 1, 1, 1, 0, 1, 0, 1);
    EXPECT(matrix(gr_mask_global(0), 2, 3), 0, 0, 0, 0, 0, 0);
    EXPECT(gr_mask_matrix(ctx, gr_mask_padding(tensor(GR_SHAPE(2), NUMBERS(1, NAN))), GR_SHAPE(2, 1, 2)), 1, 0, 0, 0);
    gr_tensor *layout = tensor(GR_SHAPE(2, 2), NUMBERS(1, 0, 1, 1));
    EXPECT(matrix(gr_mask_blocks(layout, 2), 3, 3), 1, 1, 0, 1, 1, 0, 1, 1, 1);
    EXPECT(matrix(gr_mask_blocks(layout, 2), 2, 3), 1, 1, 0, 1, 1, 1);
    EXPECT(matrix(gr_mask_blocks(layout, INT64_MAX), 3, 2), 0, 0, 1, 1, 1, 1);
    gr_shape none = GR_SHAPE(2, 0, 2, 2);
    EXPECT_SHAPE(gr_mask_matrix(ctx, gr_mask_padding(tensor(GR_SHAPE(2), NUMBERS(1, 2))), none), none);
}

TEST(everything_joined_is_simple) {
    ck_assert_int_eq(gr_mask_and(gr_mask_all(), gr_mask_causal()).count, 1);
    ck_assert_int_eq(gr_mask_and(gr_mask_causal(), gr_mask_all()).count, 1);
    ck_assert_int_eq(gr_mask_or(gr_mask_causal(), gr_mask_all()).count, 0);
    ck_assert_int_eq(gr_mask_or((gr_mask){0}, gr_mask_causal()).count, 0);
}

TEST(layouts_are_their_definitions) {
    enum { N = 13 };
    for (int64_t stride = 1; stride <= N + 1; stride++) {
        gr_tensor *strides = gr_layout_strided(ctx, N, stride), *fixed = gr_layout_fixed(ctx, N, stride);
        for (int64_t i = 0; i < N; i++)
            for (int64_t j = 0; j < N; j++) {
                DEMAND(gr_data(strides)[i * N + j] == (llabs(i - j) < stride || (i - j) % stride == 0));
                DEMAND(gr_data(fixed)[i * N + j] == (i / stride == j / stride || (j + 1) % stride == 0));
            }
    }
}

TEST(bigbird_is_window_and_global_and_random) {
    enum { N = 60, W = 5, G = 2, R = 4 };
    gr_rng before = rng, same = rng;
    gr_tensor *x = gr_layout_bigbird(ctx, (gr_bigbird_config){N, W, G, R, &rng}),
              *plain = gr_layout_bigbird(ctx, (gr_bigbird_config){N, W, G, 0, &same});
    int64_t most = 0, more = 0;
    for (int64_t i = 0; i < N; i++, more = 0) {
        for (int64_t j = 0; j < N; j++) {
            const bool fixed = llabs(i - j) <= W / 2 || i < G || j < G;
            DEMAND(gr_data(plain)[i * N + j] == fixed && gr_data(plain)[j * N + i] == fixed);
            DEMAND(gr_data(x)[i * N + j] == 1 || (!fixed && gr_data(x)[i * N + j] == 0));
            more += !fixed && gr_data(x)[i * N + j] == 1;
        }
        DEMAND(more <= R);
        if (more > most) most = more;
    }
    ck_assert_int_eq(most, R);
    ck_assert(same_tensors(x, gr_layout_bigbird(ctx, (gr_bigbird_config){N, W, G, R, &before})));
    ck_assert(!same_tensors(x, gr_layout_bigbird(ctx, (gr_bigbird_config){N, W, G, R, &rng})));
}

static const char *printed(gr_mask mask, int64_t queries, int64_t keys) {
    static char text[8192];
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    gr_mask_print(ctx, mask, queries, keys, file);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

TEST(a_mask_is_drawn) {
    ck_assert_str_eq(printed(gr_mask_causal(), 3, 5), "###..\n####.\n#####\n");
    ck_assert_str_eq(printed(gr_mask_causal(), 4, 2), "..\n..\n#.\n##\n");
    ck_assert_str_eq(printed(gr_mask_window(2), 4, 4), "##..\n###.\n.###\n..##\n");
    ck_assert_str_eq(printed(gr_mask_or(gr_mask_window(1), gr_mask_global(1)), 3, 3), "###\n##.\n#.#\n");
    ck_assert_str_eq(printed(gr_mask_all(), 1, 3), "###\n");
    ck_assert_str_eq(printed(gr_mask_all(), 0, 3), "");
    const int64_t size[] = {1, 80, INT64_MAX / 2, INT64_MAX};
    for (int k = 0; k < 4 * 4 * 4; k++) { /* windows and texts of any size */
        const int64_t queries = size[k / 4 % 4], keys = size[k / 16];
        const gr_mask any = gr_mask_or(gr_mask_window(size[k % 4]), gr_mask_global(size[k % 4]));
        const char *drawn = printed(gr_mask_and(gr_mask_causal(), any), queries, keys);
        ck_assert_int_eq((int)strlen(drawn), (queries > 1 ? 40 : 1) * (keys > 1 ? 81 : 2));
        ck_assert(queries > keys || *drawn == '#'); /* the first key is global */
    }
    enum { ROWS = 40, COLUMNS = 80, TIMES = 5 };
    const char *large = printed(gr_mask_causal(), TIMES * ROWS, TIMES * COLUMNS);
    ck_assert_uint_eq(strlen(large), ROWS * (COLUMNS + 1));
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++)
            DEMAND(large[r * (COLUMNS + 1) + c] == (TIMES * c <= TIMES * (r + COLUMNS - ROWS) ? '#' : '.'));
}

/* -- Parts --------------------------------------------------------------------------------------------------------- */

/* A part of one matrix against every element of it; exact: it also says no less than is so. */
static void expect_part(const known *k, gr_shape scores, bool exact, int64_t most_rows) {
    const int64_t queries = scores.dim[scores.ndim - 2], keys = scores.dim[scores.ndim - 1];
    const int64_t which = below(gr_shape_numel(scores) / (queries * keys));
    const int64_t i0 = below(queries), j0 = below(keys), i1 = i0 + 1 + below(most_rows),
                  j1 = j0 + 1 + below(GR_MASK_ROW);
    const gr_mask_view at = gr_mask_view_at(&k->mask, scores, which);
    const int64_t i_end = i1 < queries ? i1 : queries, j_end = j1 < keys ? j1 : keys;
    const gr_mask_range part = gr_mask_range_of(&at, i0, i_end, j0, j_end);
    int64_t seen = 0, inside = 0, first = j_end, last = j0;
    DEMAND(part.from >= j0 && part.to <= j_end && part.from <= part.to);
    for (int64_t i = i0; i < i_end; i++)
        for (int64_t j = j0; j < j_end; j++) {
            if (!k->see[(which * queries + i) * keys + j]) continue;
            seen++, inside += part.from <= j && j < part.to;
            if (j < first) first = j;
            if (j >= last) last = j + 1;
        }
    DEMAND(inside == seen);
    const bool whole = seen == (i_end - i0) * (part.to - part.from);
    DEMAND(part.seen != GR_SEEN_ALL || whole);
    DEMAND(part.seen != GR_SEEN_NONE || (seen == 0 && part.from == part.to));
    if (!exact) return;
    DEMAND((part.seen == GR_SEEN_NONE) == (seen == 0));
    DEMAND(seen == 0 || (part.seen == GR_SEEN_ALL) == whole);
    const int kind = k->mask.count > 0 ? k->mask.word[0].kind : 0;
    if (seen > 0 && kind != GR_MASK_BLOCKS && kind != GR_MASK_TENSOR) DEMAND(part.from == first && part.to == last);
}

enum { PARTS = 60 };
TEST(a_part_of_a_word_is_exact) {
    static known k;
    for (int n = 0; n < PARTS * ROUNDS; n++) {
        static gr_shape scores;
        if (n % PARTS == 0) gr_context_reset(ctx), scores = draw_scores(), draw_word(&k, scores, _i);
        expect_part(&k, scores, true, 1 + below(130));
    }
}

TEST(a_row_of_causal_and_window_is_exact) {
    static known a, b;
    for (int n = 0; n < PARTS * ROUNDS; n++) {
        static gr_shape scores;
        if (n % PARTS == 0) {
            scores = draw_scores(), draw_word(&a, scores, CAUSAL), draw_word(&b, scores, WINDOW);
            a.mask = gr_mask_and(a.mask, b.mask);
            for (int64_t at = 0; at < gr_shape_numel(scores); at++) a.see[at] = a.see[at] && b.see[at];
        }
        expect_part(&a, scores, true, 1);
    }
}

TEST(a_part_of_an_expression_hides_nothing_that_is_seen) {
    begin_at(1000 + _i);
    for (int round = 0; round < ROUNDS; round++) {
        const gr_shape scores = draw_scores();
        const known *k = draw_expression(scores, 1 + below(LEAVES));
        for (int n = 0; n < PARTS; n++) expect_part(k, scores, false, 1 + below(130));
        gr_context_reset(ctx);
    }
}

TEST(a_part_of_nothing_is_nothing) {
    const gr_mask mask = gr_mask_all();
    const gr_mask_view at = gr_mask_view_at(&mask, GR_SHAPE(4, 4), 0);
    ck_assert_int_eq(gr_mask_range_of(&at, 2, 2, 0, 4).seen, GR_SEEN_NONE);
    ck_assert_int_eq(gr_mask_range_of(&at, 0, 4, 3, 3).seen, GR_SEEN_NONE);
    ck_assert_int_eq(gr_mask_range_of(&at, 0, 4, 1, 4).seen, GR_SEEN_ALL);
}

Suite *mask_suite(void) {
    Suite *suite = suite_create("mask");
    add_rows(suite, "words", a_word_is_its_definition, WORDS);
    add_rows(suite, "expressions", an_expression_joins_element_by_element, 5);
    add_rows(suite, "parts of words", a_part_of_a_word_is_exact, WORDS);
    add_rows(suite, "parts of expressions", a_part_of_an_expression_hides_nothing_that_is_seen, 5);
    GROUP(suite, "by hand", words_by_hand, everything_joined_is_simple, layouts_are_their_definitions,
          bigbird_is_window_and_global_and_random, a_mask_is_drawn, a_row_of_causal_and_window_is_exact,
          a_part_of_nothing_is_nothing);
    return suite;
}
