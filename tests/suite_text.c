/* Text as ids, corpora and their windows, and ids drawn from logits. */
#include "nn_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static gr_corpus *corpus_of(const char *text) {
    return gr_corpus_from(ctx, (const uint8_t *)text, strlen(text), GR_CHARS);
}

/* -- Tokenizers ---------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint8_t text[16];
    size_t size;
    int distinct;
} sample[] = {
    {"NUL and the last byte", {0, 255, 0, 128, 127}, 5, 4},
    {"CR LF", {'a', '\r', '\n', 'b', '\n', '\r'}, 6, 4},
    {"invalid UTF-8", {0xC3, 0x28, 0xFF, 0xFE, 0xED, 0xA0, 0x80}, 7, 7},
    {"one byte, many times", {'x', 'x', 'x'}, 3, 1},
};
enum { SAMPLES = sizeof sample / sizeof *sample };

static void expect_lossless(const gr_tokenizer *t, const uint8_t *text, size_t size) {
    int32_t ids[256];
    ck_assert_msg(gr_encode(ctx, t, text, size, ids), "%s", gr_error_message(ctx));
    for (size_t i = 0; i < size; i++) {
        ck_assert(ids[i] >= 0 && ids[i] < t->size);
        ck_assert_uint_eq(t->byte[ids[i]], text[i]);
    }
}

TEST(every_text_comes_back_as_it_was) {
    const gr_tokenizer chars = gr_tokenizer_chars(sample[_i].text, sample[_i].size), bytes = gr_tokenizer_bytes();
    ck_assert_msg(chars.size == sample[_i].distinct, "%s: %d ids", sample[_i].name, chars.size);
    expect_lossless(&chars, sample[_i].text, sample[_i].size);
    expect_lossless(&bytes, sample[_i].text, sample[_i].size);
}

TEST(all_256_bytes_come_back) {
    uint8_t all[256];
    for (int i = 0; i < 256; i++) all[i] = (uint8_t)(255 - i);
    const gr_tokenizer chars = gr_tokenizer_chars(all, sizeof all), bytes = gr_tokenizer_bytes();
    ck_assert(chars.size == 256 && memcmp(&chars, &bytes, sizeof chars) == 0);
    for (int i = 0; i < 256; i++) ck_assert_int_eq(bytes.id[i], i);
    expect_lossless(&bytes, all, sizeof all);
}

TEST(ids_are_the_sorted_distinct_bytes) {
    const gr_tokenizer t = gr_tokenizer_chars((const uint8_t *)"banana\xC8\n", 8);
    const uint8_t sorted[] = {'\n', 'a', 'b', 'n', 0xC8};
    ck_assert(t.size == 5 && memcmp(t.byte, sorted, 5) == 0);
    ck_assert_int_eq(t.id['n'], 3);
    ck_assert_int_eq(t.id['c'], -1);
    ck_assert_int_eq(gr_tokenizer_chars(NULL, 0).size, 0);
}

TEST(a_byte_that_is_not_in_the_vocabulary_is_an_error_with_its_place) {
    const gr_tokenizer t = gr_tokenizer_chars((const uint8_t *)"ab", 2);
    int32_t ids[3];
    ck_assert(!gr_encode(ctx, &t, (const uint8_t *)"abc", 3, ids));
    EXPECT_ERROR("encode: byte 0x63 at offset 2 is not in the vocabulary of 2");
    ck_assert(!gr_encode(ctx, NULL, (const uint8_t *)"a", 1, ids));
    EXPECT_ERROR("encode: tokenizer is NULL");
    ck_assert(!gr_encode(ctx, &t, NULL, 1, ids));
    EXPECT_ERROR("encode: text is NULL");
    ck_assert(!gr_encode(ctx, &t, (const uint8_t *)"a", 1, NULL));
    EXPECT_ERROR("encode: out is NULL");
    ck_assert(gr_encode(ctx, &t, NULL, 0, NULL));
}

/* -- Opening a corpus ---------------------------------------------------------------------------------------------- */

TEST(a_file_and_its_text_in_memory_are_one_corpus) {
    const char text[] = "one\r\ntwo\0three \xFF";
    const char *path = temporary_file(text, sizeof text);
    gr_corpus *file = gr_corpus_open(ctx, path, GR_CHARS), *memory;
    unlink(path);
    memory = gr_corpus_from(ctx, (const uint8_t *)text, sizeof text, GR_CHARS);
    ck_assert_msg(gr_ok(ctx), "%s", gr_error_message(ctx));
    for (int part = GR_TRAIN; part <= GR_VALIDATION; part++) {
        const size_t size = gr_corpus_size(memory, (gr_part)part);
        ck_assert_uint_eq(size, gr_corpus_size(file, (gr_part)part));
        ck_assert(memcmp(gr_corpus_bytes(file, (gr_part)part), gr_corpus_bytes(memory, (gr_part)part), size) == 0);
    }
    ck_assert_int_eq(gr_corpus_vocab(file), gr_corpus_vocab(memory));
    ck_assert_int_eq(gr_corpus_vocab(gr_corpus_from(ctx, (const uint8_t *)text, sizeof text, GR_BYTES)), 256);
}

static void expect_nothing(gr_corpus *corpus, const char *message) {
    ck_assert_ptr_nonnull(corpus);
    ck_assert(gr_corpus_vocab(corpus) == 0 && gr_corpus_size(corpus, GR_TRAIN) == 0);
    ck_assert(!gr_corpus_bytes(corpus, GR_VALIDATION) && gr_corpus_tokenizer(corpus)->size == 0);
    EXPECT_ERROR(message);
    ck_assert_ptr_null(gr_corpus_batch(corpus, GR_TRAIN, &rng, 1, 1).inputs.ids);
    EXPECT_ERROR("was not opened, after an error that has been cleared since");
}

TEST(what_is_no_text_file_is_refused_with_its_name) {
    expect_nothing(gr_corpus_open(ctx, "/nonexistent/tales.txt", GR_CHARS),
                   "/nonexistent/tales.txt: cannot open: No such file or directory");
    expect_nothing(gr_corpus_open(ctx, "/tmp", GR_CHARS), "/tmp: is a directory");
    expect_nothing(gr_corpus_open(ctx, "/dev/null", GR_BYTES), "/dev/null: is not a regular file");
    const char *path = temporary_file("", 0);
    expect_nothing(gr_corpus_open(ctx, path, GR_CHARS), ": empty");
    unlink(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    expect_nothing(gr_corpus_open(ctx, path, GR_CHARS), ": is not a regular file"); /* and does not wait for a writer */
    unlink(path);
    expect_nothing(gr_corpus_open(ctx, NULL, GR_CHARS), "corpus: path is NULL");
    expect_nothing(gr_corpus_from(ctx, NULL, 3, GR_CHARS), "corpus: empty");
    expect_nothing(gr_corpus_from(ctx, (const uint8_t *)"x", 0, GR_CHARS), "corpus: empty");
    ck_assert(gr_corpus_vocab(NULL) == 0 && gr_corpus_size(NULL, GR_TRAIN) == 0 && !gr_corpus_bytes(NULL, GR_TRAIN));
    ck_assert_ptr_null(gr_corpus_batch(gr_corpus_from(NULL, NULL, 0, GR_CHARS), GR_TRAIN, &rng, 1, 1).inputs.ids);
}

TEST(the_last_tenth_is_for_validation) {
    const struct { size_t size, validation; } split[] = {{1, 0}, {9, 0}, {10, 1}, {19, 1}, {20, 2}, {99, 9}, {100, 10}};
    static const uint8_t text[100] = "abcdefghijklmnopqrstuvwxyz";
    for (size_t i = 0; i < sizeof split / sizeof *split; i++) {
        gr_corpus *corpus = gr_corpus_from(ctx, text, split[i].size, GR_CHARS);
        ck_assert_uint_eq(gr_corpus_size(corpus, GR_VALIDATION), split[i].validation);
        ck_assert_uint_eq(gr_corpus_size(corpus, GR_TRAIN), split[i].size - split[i].validation);
        ck_assert_ptr_eq(gr_corpus_bytes(corpus, GR_VALIDATION),
                         gr_corpus_bytes(corpus, GR_TRAIN) + gr_corpus_size(corpus, GR_TRAIN));
    }
}

/* -- Batches ------------------------------------------------------------------------------------------------------- */

enum { LETTERS = 26, TRAIN_LETTERS = 24 };
static gr_corpus *alphabet(void) { return corpus_of("abcdefghijklmnopqrstuvwxyz"); } /* ids are places: 0 ... 25 */

TEST(every_window_is_drawn_about_equally_often_and_none_past_the_end) {
    enum { TIME = 5, DRAWS = 19000, PLACES = TRAIN_LETTERS - TIME };
    int count[LETTERS] = {0};
    gr_corpus *corpus = alphabet();
    for (int draw = 0; draw < DRAWS / 2; draw++) {
        const gr_batch b = gr_corpus_batch(corpus, GR_TRAIN, &rng, 2, TIME);
        ck_assert(b.inputs.batch == 2 && b.inputs.time == TIME && b.targets.batch == 2 && b.targets.time == TIME);
        for (int i = 0; i < 2 * TIME; i++) {
            DEMAND(b.targets.ids[i] == b.inputs.ids[i] + 1 && b.targets.ids[i] < TRAIN_LETTERS);
            if (i % TIME > 0) DEMAND(b.inputs.ids[i] == b.inputs.ids[i - 1] + 1);
        }
        count[b.inputs.ids[0]]++, count[b.inputs.ids[TIME]]++;
        gr_context_reset(ctx);
    }
    for (int i = 0; i < PLACES; i++) ck_assert_int_le(abs(count[i] - DRAWS / PLACES), 150); /* 4.9 sigma */
}

TEST(one_generator_gives_the_same_batches_again_and_batches_differ) {
    gr_corpus *corpus = alphabet();
    gr_rng same = rng;
    int differ = 0;
    for (int i = 0; i < 10; i++) {
        const gr_batch a = gr_corpus_batch(corpus, GR_TRAIN, &rng, 3, 4),
                       b = gr_corpus_batch(corpus, GR_TRAIN, &same, 3, 4);
        ck_assert(memcmp(a.inputs.ids, b.inputs.ids, 12 * sizeof *a.inputs.ids) == 0);
        ck_assert(memcmp(a.targets.ids, b.targets.ids, 12 * sizeof *a.inputs.ids) == 0);
        differ += a.inputs.ids[0] != a.inputs.ids[4];
    }
    ck_assert_int_ge(differ, 5);
}

TEST(a_batch_that_cannot_be_is_refused_with_the_numbers) {
    gr_corpus *corpus = corpus_of("abcabcab");
    const struct {
        gr_part part;
        int64_t batch, time;
        const char *message;
    } bad[] = {
        {GR_TRAIN, 1, 64, "corpus: the training part has 8 bytes, a window needs 65"},
        {GR_TRAIN, 1, 8, "corpus: the training part has 8 bytes, a window needs 9"},
        {GR_VALIDATION, 1, 1, "corpus: the validation part has 0 bytes, a window needs 2"},
        {GR_TRAIN, 1, INT64_MAX, "corpus: the training part has 8 bytes, a window needs 9223372036854775808"},
        {GR_TRAIN, 1, 0, "corpus: a window of 0 tokens"},
        {GR_TRAIN, 0, 4, "corpus: a batch of 0 windows of 4 tokens"},
        {GR_TRAIN, -1, 4, "corpus: a batch of -1 windows of 4 tokens"},
        {GR_TRAIN, INT64_MAX, 4, "corpus: a batch of 9223372036854775807 windows of 4 tokens"},
        {GR_TRAIN, 1LL << 50, 4, "out of memory"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const gr_rng before = rng;
        const gr_batch b = gr_corpus_batch(corpus, bad[i].part, &rng, bad[i].batch, bad[i].time);
        ck_assert(!b.inputs.ids && !b.targets.ids && b.inputs.batch == 0 && b.targets.time == 0);
        EXPECT_ERROR(bad[i].message);
        ck_assert(rng.counter == before.counter);
    }
    gr_corpus_batch(corpus, GR_TRAIN, NULL, 1, 2);
    EXPECT_ERROR("corpus: rng is NULL");
    ck_assert_ptr_nonnull(gr_corpus_batch(corpus, GR_TRAIN, &rng, 1, 7).inputs.ids);
}

/* -- The bigram model ---------------------------------------------------------------------------------------------- */

TEST(the_bigram_loss_is_that_of_the_formula) {
    /* Pairs of abcabcab: ab 3, bc 2, ca 2; rows a 3, b 2, c 2; V 3. */
    const double loss = -(3 * log(4 / 6.) + 2 * log(3 / 5.) + 2 * log(3 / 5.)) / 7;
    ck_assert_double_eq_tol(gr_corpus_bigram_loss(corpus_of("abcabcab"), GR_TRAIN), loss, 1e-14);
    ck_assert(isnan(gr_corpus_bigram_loss(corpus_of("abcabcab"), GR_VALIDATION)));
    EXPECT_ERROR("corpus: the validation part has 0 bytes, a window needs 2");
}

/* -ln((count(a b) + 1) / (count(a) + V)), counted over the text each time. */
static double surprise(const uint8_t *text, size_t size, int vocab, uint8_t a, uint8_t b) {
    double of_a = 0, of_pair = 0;
    for (size_t i = 0; i + 1 < size; i++) of_a += text[i] == a, of_pair += text[i] == a && text[i + 1] == b;
    return -log((of_pair + 1) / (of_a + vocab));
}

TEST(the_bigram_counts_have_a_place_for_every_byte_that_a_file_may_come_to_have) {
    const char *path = temporary_file("ababababababababababab", 22);
    gr_corpus *corpus = gr_corpus_open(ctx, path, GR_CHARS);
    FILE *file = fopen(path, "r+b");
    ck_assert(file && fputs("xyz", file) >= 0 && fclose(file) == 0);
    ck_assert(isfinite(gr_corpus_bigram_loss(corpus, GR_TRAIN)));
    unlink(path);
}

TEST(the_bigram_loss_is_learned_from_the_training_part_alone) {
    enum { SIZE = 1000, VOCAB = 4 };
    uint8_t text[SIZE];
    for (int i = 0; i < SIZE; i++) text[i] = (uint8_t)(250 + gr_rng_below(&rng, 3) + (i > 600 && i % 7 == 0));
    gr_corpus *corpus = gr_corpus_from(ctx, text, SIZE, GR_CHARS);
    ck_assert_int_eq(gr_corpus_vocab(corpus), VOCAB);
    for (int part = GR_TRAIN; part <= GR_VALIDATION; part++) {
        const uint8_t *bytes = gr_corpus_bytes(corpus, (gr_part)part);
        const size_t size = gr_corpus_size(corpus, (gr_part)part);
        double sum = 0;
        for (size_t i = 0; i + 1 < size; i++) sum += surprise(text, 900, VOCAB, bytes[i], bytes[i + 1]);
        ck_assert_double_eq_tol(gr_corpus_bigram_loss(corpus, (gr_part)part), sum / (double)(size - 1), 1e-12);
    }
}

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
    ck_assert(rng.counter == before.counter);
}

/* -- A continuation ------------------------------------------------------------------------------------------------ */

enum { VOCAB = 11, CONTEXT = 4, TOTAL = 12 };

static gr_gpt *little_model(void) { /* with weights that make it sure of its choice */
    gr_gpt *gpt = gr_gpt_new(
        ctx, (gr_gpt_config){
                 .vocab = VOCAB, .context = CONTEXT, .layers = 2, .heads = 2, .width = 8, .dropout = 0.5, .seed = 3});
    for (int k = 0; k < gr_parameter_count(ctx); k++) {
        gr_tensor *w = gr_parameter_at(ctx, k);
        if (gr_ndim(w) == 2) ck_assert(gr_to_array(gr_scale(w, 25), gr_data(w)));
    }
    return gpt;
}

typedef struct heard {
    int32_t ids[TOTAL];
    int count;
} heard;
static void hear(int32_t id, void *arg) {
    heard *h = arg;
    h->ids[h->count++] = id;
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

TEST(past_the_context_the_window_slides) {
    gr_gpt *gpt = little_model();
    int32_t ids[TOTAL] = {1, 7};
    ck_assert(gr_gpt_generate(gpt, ids, 2, (gr_generation){.total = TOTAL}));
    gr_gpt_training(gpt, false);
    int distinct = 0;
    for (int n = 2; n < TOTAL; n++) {
        const int64_t time = n < CONTEXT ? n : CONTEXT;
        gr_tensor *logits = gr_gpt_forward(gpt, (gr_tokens){ids + n - time, 1, time});
        gr_tensor *last = gr_select(gr_select(logits, 0, 0), 0, -1);
        ck_assert_int_eq(ids[n], (int)gr_sample(last, (gr_sampling){0}, NULL));
        distinct += ids[n] != ids[n - 1];
    }
    ck_assert_int_ge(distinct, 2);
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

Suite *text_suite(void) {
    Suite *suite = suite_create("text");
    add_rows(suite, "samples", every_text_comes_back_as_it_was, SAMPLES);
    GROUP(suite, "tokenizers", all_256_bytes_come_back, ids_are_the_sorted_distinct_bytes,
          a_byte_that_is_not_in_the_vocabulary_is_an_error_with_its_place);
    GROUP(suite, "corpora", a_file_and_its_text_in_memory_are_one_corpus, what_is_no_text_file_is_refused_with_its_name,
          the_last_tenth_is_for_validation);
    GROUP(suite, "batches", every_window_is_drawn_about_equally_often_and_none_past_the_end,
          one_generator_gives_the_same_batches_again_and_batches_differ,
          a_batch_that_cannot_be_is_refused_with_the_numbers);
    GROUP(suite, "bigrams", the_bigram_loss_is_that_of_the_formula,
          the_bigram_counts_have_a_place_for_every_byte_that_a_file_may_come_to_have,
          the_bigram_loss_is_learned_from_the_training_part_alone);
    add_rows(suite, "drawing", ids_are_drawn_by_their_shares_and_those_of_none_never, WAYS);
    GROUP(suite, "sampling", temperature_0_is_the_first_of_the_largest, a_share_that_rounds_to_0_is_never_drawn,
          bad_logits_and_bad_ways_are_refused);
    GROUP(suite, "continuations", a_continuation_is_determined_by_its_generator_and_told_as_it_comes,
          past_the_context_the_window_slides, a_continuation_needs_a_beginning_and_valid_ids);
    return suite;
}
