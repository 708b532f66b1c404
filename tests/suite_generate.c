/* Ids drawn from logits, and texts continued by a model. */
#include "nn/internal.h"
#include "nn_support.h"

#include <string.h>

/* -- One id from logits -------------------------------------------------------------------------------------------- */

enum { IDS = 5 };
#define LOGITS(...) tensor(GR_SHAPE(IDS), NUMBERS(__VA_ARGS__))

/* How often each id is drawn. */
static void draw(gr_tensor *logits, gr_sampling how, int draws, int count[IDS]) {
    memset(count, 0, IDS * sizeof *count);
    for (int i = 0; i < draws; i++) {
        const int64_t id = gr_sample(logits, how, &rng);
        ck_assert_msg(id >= 0 && id < IDS, "%s", gr_error_message(ctx));
        count[id]++;
        if (i % 1000 == 999) logits = gr_keep(logits), gr_context_reset(ctx);
    }
}

TEST(temperature_0_is_the_first_of_the_largest) {
    const gr_rng before = rng;
    ck_assert_int_eq((int)gr_sample(LOGITS(0, 2, 2, -INFINITY, 1), (gr_sampling){0}, NULL), 1);
    ck_assert_int_eq((int)gr_sample(LOGITS(5, 5, 5, 5, 5), (gr_sampling){0}, &rng), 0);
    ck_assert_int_eq((int)gr_sample(LOGITS(-INFINITY, -3, -2, -1, -1), (gr_sampling){.top_k = 2}, NULL), 3);
    gr_tensor *column =
        gr_select(gr_transpose(sequence(GR_SHAPE(3, IDS), 0), 0, 1), 1, 0); /* -2, 5, 1, -3, 4, in 8ths */
    ck_assert_int_eq((int)gr_sample(column, (gr_sampling){0}, NULL), 1);
    ck_assert(rng.counter == before.counter);
}

#define E1 2.718281828459045 /* e */
#define E2 7.38905609893065  /* e^2 */
static const struct {
    gr_sampling how;
    double shares[IDS]; /* of what e^(x / temperature) weighs for x = 0, 2, 2, -inf, 1 */
} drawn_by[] = {
    {{.temperature = 1}, {1, E2, E2, 0, E1}},
    {{.temperature = 2}, {1, E1, E1, 0, 1.6487212707001282}},
    {{.temperature = 1e300}, {1, 1, 1, 0, 1}},
    {{.temperature = 1e-300}, {0, 1, 1, 0, 0}},
    {{.temperature = 1, .top_k = 1}, {0, 1, 0, 0, 0}}, /* of equals the first */
    {{.temperature = 1e300, .top_k = 3}, {0, 1, 1, 0, 1}},
    {{.temperature = 1e300, .top_k = 5}, {1, 1, 1, 0, 1}},
    {{.temperature = 1e300, .top_k = 1000}, {1, 1, 1, 0, 1}},
    {{.temperature = 1, .top_p = 0.39}, {0, 1, 0, 0, 0}}, /* e^2 is 0.399 of the whole */
    {{.temperature = 1, .top_p = 0.5}, {0, 1, 1, 0, 0}},  /* two e^2: 0.799 */
    {{.temperature = 1, .top_p = 0.9}, {0, E2, E2, 0, E1}},
    {{.temperature = 1, .top_p = 1e-9}, {0, 1, 0, 0, 0}},
    {{.temperature = 1, .top_p = 1}, {1, E2, E2, 0, E1}},
    {{.temperature = 1, .top_k = 2, .top_p = 0.6}, {0, 1, 1, 0, 0}}, /* 0.6 of what top_k has left */
    {{.temperature = 1, .top_k = 2, .top_p = 0.5}, {0, 1, 0, 0, 0}},
};
enum { WAYS = sizeof drawn_by / sizeof *drawn_by };

TEST(ids_are_drawn_by_their_shares_and_those_of_none_never) {
    enum { DRAWS = 20000 };
    int count[IDS];
    double whole = 0;
    for (int i = 0; i < IDS; i++) whole += drawn_by[_i].shares[i];
    draw(LOGITS(0, 2, 2, -INFINITY, 1), drawn_by[_i].how, DRAWS, count);
    for (int i = 0; i < IDS; i++) {
        const double p = drawn_by[_i].shares[i] / whole, sigma = sqrt(p * (1 - p) * DRAWS);
        ck_assert_msg(fabs(count[i] - p * DRAWS) <= 4.5 * sigma, "id %d: %d of %d, expected %g", i, count[i], DRAWS,
                      p * DRAWS);
    }
}

TEST(a_share_that_rounds_to_0_is_never_drawn) {
    int count[IDS];
    draw(LOGITS(-1e4, 0, -1e4, -INFINITY, -1e30), (gr_sampling){.temperature = 1}, 20000, count);
    ck_assert_int_eq(count[1], 20000);
}

static const char *bad_sample(int at, int64_t *id) {
    gr_tensor *x = LOGITS(0, 1, 2, 3, 4);
    const struct {
        gr_tensor *logits;
        gr_sampling how;
        gr_rng *rng;
        const char *message;
    } bad[] = {
        {LOGITS(0, NAN, 1, 1, 1), {.temperature = 0}, NULL, "sample: logit 1 is nan"},
        {LOGITS(0, 1, 1, INFINITY, 1), {.temperature = 1}, &rng, "sample: logit 3 is inf"},
        {gr_full(ctx, GR_SHAPE(3), -INFINITY), {.temperature = 1}, &rng, "sample: none of 3 logits is above -inf"},
        {gr_zeros(ctx, GR_SHAPE(0)), {.temperature = 0}, NULL, "sample: none of 0 logits is above -inf"},
        {gr_zeros(ctx, GR_SHAPE(2, 2)), {.temperature = 0}, NULL, "sample: logits (2, 2) is not (V)"},
        {gr_scalar(ctx, 1), {.temperature = 0}, NULL, "sample: logits () is not (V)"},
        {x, {.temperature = -1}, &rng, "sample: temperature -1; it must be finite and not negative"},
        {x, {.temperature = NAN}, &rng, "sample: temperature nan"},
        {x, {.temperature = INFINITY}, &rng, "sample: temperature inf"},
        {x, {.temperature = 1, .top_k = -1}, &rng, "sample: top_k -1 is negative"},
        {x, {.temperature = 1, .top_p = 1.5}, &rng, "sample: top_p 1.5 is not in [0, 1]"},
        {x, {.temperature = 1, .top_p = NAN}, &rng, "sample: top_p nan is not in [0, 1]"},
        {x, {.temperature = 1}, NULL, "sample: rng is NULL"},
        {gr_expand(gr_full(ctx, GR_SHAPE(1), 1), GR_SHAPE(MOST_IN_A_TENSOR)), {.temperature = 1}, &rng, "are too many"},
    };
    if (at >= (int)(sizeof bad / sizeof *bad)) return NULL;
    *id = gr_sample(bad[at].logits, bad[at].how, bad[at].rng);
    return bad[at].message;
}

TEST(bad_logits_and_bad_ways_are_refused) {
    int64_t id = 0;
    const gr_rng before = rng;
    const char *message;
    for (int at = 0; (message = bad_sample(at, &id)); at++) {
        ck_assert_int_eq((int)id, -1);
        EXPECT_ERROR(message);
    }
    ck_assert_int_eq((int)gr_sample(NULL, (gr_sampling){0}, NULL), -1);
    gr_tensor *inert = gr_reshape(gr_scalar(ctx, 1), GR_SHAPE(2));
    gr_error_clear(ctx);
    ck_assert_int_eq((int)gr_sample(inert, (gr_sampling){0}, NULL), -1);
    EXPECT_ERROR("sample: the tensor of logits was made after an error that has been cleared since");
    ck_assert(rng.counter == before.counter);
}

/* -- A continuation ------------------------------------------------------------------------------------------------ */

enum { VOCAB = 11, CONTEXT = 4, TOTAL = 12 };

static gr_gpt *model_of(gr_attention_style style, gr_positions positions, int64_t context) {
    gr_gpt *gpt = gr_gpt_new(ctx, (gr_gpt_config){.vocab = VOCAB,
                                                  .context = context,
                                                  .layers = 2,
                                                  .heads = 2,
                                                  .width = 8,
                                                  .dropout = 0.5,
                                                  .style = style,
                                                  .positions = positions,
                                                  .seed = 3});
    for (int k = 0; k < gr_parameter_count(ctx); k++) {
        gr_tensor *w = gr_parameter_at(ctx, k);
        if (gr_ndim(w) == 2) ck_assert(gr_to_array(gr_scale(w, 25), gr_data(w))); /* sure of its choice */
    }
    return gpt;
}

static gr_gpt *little_model(void) { return model_of((gr_attention_style){0}, GR_LEARNED, CONTEXT); }

typedef struct heard {
    int32_t ids[TOTAL];
    int count;
} heard;
static bool hear(int32_t id, void *arg) {
    heard *h = arg;
    h->ids[h->count++] = id;
    return true;
}

TEST(a_continuation_is_determined_by_its_generator_and_told_as_it_comes) {
    gr_gpt *gpt = little_model();
    int32_t ids[TOTAL] = {1, 7}, again[TOTAL] = {1, 7}, other[TOTAL] = {1, 7};
    gr_rng same = rng;
    heard h = {.count = 0};
    const gr_generation told = {TOTAL, {.temperature = 2}, &rng, hear, &h};
    const gr_generation untold = {.total = TOTAL, .how = told.how, .rng = &same};
    const gr_generation onward = {.total = TOTAL, .how = told.how, .rng = &rng};
    ck_assert(gr_gpt_generate(gpt, ids, 2, told));
    ck_assert(gr_gpt_generate(gpt, again, 2, untold));
    ck_assert(gr_gpt_generate(gpt, other, 2, onward));
    ck_assert(memcmp(ids, again, sizeof ids) == 0 && memcmp(ids, other, sizeof ids) != 0);
    ck_assert(h.count == TOTAL - 2 && memcmp(h.ids, ids + 2, (TOTAL - 2) * sizeof *ids) == 0);
    ck_assert(gpt->drop.training && gpt->h[1].drop.training); /* as before */
}

TEST(a_step_under_way_goes_on) {
    gr_gpt *gpt = little_model();
    gr_rng drawn = gr_rng_seed(4);
    int32_t ids[TOTAL] = {2, 7};
    const gr_generation way = {TOTAL, {.temperature = 1}, &drawn, NULL, NULL};
    ck_assert(gr_gpt_generate(gpt, ids, 2, way)); /* makes what later ones use */
    gr_tensor *w = gr_parameter_at(ctx, 0), *x = counting(GR_SHAPE(2, 3)), *loss = gr_sum(gr_square(w), GR_ALL);
    const size_t bytes = gr_context_bytes(ctx);
    ck_assert(gr_gpt_generate(gpt, ids, 2, way));
    ck_assert_uint_eq(gr_context_bytes(ctx), bytes);
    EXPECT(x, 0, 1, 2, 3, 4, 5);
    ck_assert(gr_backward(loss));
    ck_assert(gr_data(gr_grad(w))[1] == 2 * gr_data(w)[1]);
}

static bool write_more(int32_t id, void *gpt) {
    int32_t ids[TOTAL] = {id};
    return gr_gpt_generate(gpt, ids, 1, (gr_generation){.total = 2});
}

TEST(emit_cannot_make_the_same_model_write) {
    gr_gpt *gpt = little_model();
    int32_t ids[TOTAL] = {1, 7};
    ck_assert(!gr_gpt_generate(gpt, ids, 2, (gr_generation){.total = TOTAL, .emit = write_more, .arg = gpt}));
    EXPECT_ERROR("generate: the model is writing already");
    gr_context_reset(ctx);
    ck_assert(gr_gpt_generate(gpt, ids, 2, (gr_generation){.total = TOTAL}));
}

TEST(what_is_shown_changes_no_bit_of_a_text) {
    gr_gpt *gpt = little_model();
    int32_t shown[TOTAL] = {1, 7}, ids[TOTAL] = {1, 7};
    gpt->keep_weights = true;
    ck_assert(gr_gpt_generate(gpt, shown, 2, (gr_generation){.total = TOTAL}));
    ck_assert(!gpt->decoder->gpt.keep_weights);
    gpt->keep_weights = false;
    ck_assert(gr_gpt_generate(gpt, ids, 2, (gr_generation){.total = TOTAL}));
    ck_assert(memcmp(shown, ids, sizeof ids) == 0);
}

/* What the model is to remember when ids[n] is drawn: a context that is full is cut down to its younger half. */
static int first_remembered(int n) {
    int begin = 0;
    for (int k = 2; k <= n; k++)
        if (k - begin > CONTEXT) begin = k - (CONTEXT + 1) / 2;
    return begin;
}

TEST(past_the_context_the_younger_half_is_kept) {
    gr_gpt *gpt = little_model();
    int32_t ids[TOTAL] = {1, 7};
    ck_assert(gr_gpt_generate(gpt, ids, 2, (gr_generation){.total = TOTAL}));
    gr_gpt_training(gpt, false);
    int distinct = 0;
    for (int n = 2; n < TOTAL; n++) {
        const int begin = first_remembered(n);
        gr_tensor *logits = gr_gpt_forward(gpt, (gr_tokens){ids + begin, 1, n - begin});
        gr_tensor *last = gr_select(gr_select(logits, 0, 0), 0, -1);
        ck_assert_int_eq(ids[n], (int)gr_sample(last, (gr_sampling){0}, NULL));
        distinct += ids[n] != ids[n - 1];
    }
    ck_assert_int_ge(distinct, 2);
}

static const struct {
    gr_attention_style style;
    gr_positions positions;
    bool exact;
} with_past[] = {{{GR_FUSED, 0, 0, 0}, GR_LEARNED, true},   {{GR_FUSED, 0, 0, 0}, GR_ROTARY, true},
                 {{GR_TEXTBOOK, 0, 0, 0}, GR_ROTARY, true}, {{GR_WINDOW, 3, 0, 0}, GR_LEARNED, true},
                 {{GR_WINDOW, 5, 2, 0}, GR_ROTARY, true},   {{GR_SPARSE, 0, 0, 4}, GR_LEARNED, true},
                 {{GR_LINEAR, 0, 0, 0}, GR_LEARNED, false}};
enum { WITH_PAST = sizeof with_past / sizeof *with_past, LONG = 140 }; /* more than a tile of attention */

/* The logits of a step that has kept the past, and those of a forward pass over all of it. */
TEST(a_step_with_the_past_kept_has_the_bits_of_a_full_forward_pass) {
    gr_gpt *gpt = model_of(with_past[_i].style, with_past[_i].positions, LONG);
    int32_t ids[LONG] = {1, 7};
    ck_assert(gr_gpt_generate(gpt, ids, 2, (gr_generation){.total = LONG}));
    ck_assert_int_eq((int)gpt->decoder->kv[0].past, LONG - 1);
    gr_gpt_training(gpt, false);
    for (int n = 1; n < LONG; n = 2 * n + 1) {
        gr_decoder *d = gpt->decoder;
        for (int layer = 0; layer < 2; layer++) d->kv[layer].past = n - 1;
        gr_tensor *step = gr_gpt_forward_after(&d->gpt, (gr_tokens){ids + n - 1, 1, 1}, d->kv, d->head);
        gr_tensor *full = gr_slice(gr_gpt_forward(gpt, (gr_tokens){ids, 1, n}), 1, n - 1, n, 1);
        ck_assert(with_past[_i].exact ? same_tensors(step, full)
                                      : gr_item(gr_max(gr_abs(gr_sub(step, full)), GR_ALL)) < 1e-4);
    }
}

TEST(a_continuation_needs_a_beginning_and_valid_ids) {
    gr_gpt *gpt = little_model();
    int32_t ids[TOTAL] = {1, VOCAB};
    const struct {
        int32_t *ids;
        int64_t count, total;
        gr_sampling how;
        const char *message;
    } bad[] = {
        {NULL, 1, 4, {.temperature = 0}, "generate: ids is NULL"},
        {ids, 0, 4, {.temperature = 0}, "generate: from 0 to 4 ids; at least 1 must be given, and no fewer wanted"},
        {ids, 5, 4, {.temperature = 0}, "generate: from 5 to 4 ids"},
        {ids, 2, 4, {.temperature = 0}, "id 11 at position 1; valid are 0 to 10"},
        {ids, 1, 4, {.temperature = 1}, "sample: rng is NULL"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const gr_generation g = {.total = bad[i].total, .how = bad[i].how};
        ck_assert(!gr_gpt_generate(gpt, bad[i].ids, bad[i].count, g));
        EXPECT_ERROR(bad[i].message);
        gr_context_reset(ctx);
        ck_assert(ids[0] == 1 && ids[1] == VOCAB && ids[2] == 0 && gpt->drop.training);
    }
    ck_assert(gr_gpt_generate(gpt, ids, 1, (gr_generation){.total = 1})); /* nothing to do */
    ck_assert(!gr_gpt_generate(NULL, ids, 1, (gr_generation){.total = 2}));
}

TEST(a_model_that_was_refused_writes_nothing) {
    int32_t ids[4] = {0};
    gr_gpt *gpt = gr_gpt_new(ctx, (gr_gpt_config){.vocab = 3, .context = 8, .width = 4, .dropout = 2});
    EXPECT_ERROR("dropout 2");
    ck_assert(!gr_gpt_generate(gpt, ids, 1, (gr_generation){.total = 4}));
    EXPECT_ERROR("generate: the model could not be made, after an error that has been cleared since");
    ck_assert_int_eq(ids[1], 0);
    ck_assert(!gr_gpt_generate(NULL, ids, 1, (gr_generation){.total = 4}));
}

Suite *generate_suite(void) {
    Suite *suite = suite_create("generate");
    add_rows(suite, "drawing", ids_are_drawn_by_their_shares_and_those_of_none_never, WAYS);
    GROUP(suite, "sampling", temperature_0_is_the_first_of_the_largest, a_share_that_rounds_to_0_is_never_drawn,
          bad_logits_and_bad_ways_are_refused);
    GROUP(suite, "continuations", a_continuation_is_determined_by_its_generator_and_told_as_it_comes,
          a_step_under_way_goes_on, past_the_context_the_younger_half_is_kept, emit_cannot_make_the_same_model_write,
          what_is_shown_changes_no_bit_of_a_text, a_continuation_needs_a_beginning_and_valid_ids,
          a_model_that_was_refused_writes_nothing);
    add_rows(suite, "past", a_step_with_the_past_kept_has_the_bits_of_a_full_forward_pass, WITH_PAST);
    return suite;
}
