/* Text as ids, corpora and their windows. */
#include "nn_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static gr_corpus *corpus_of(const char *text) {
    return gr_corpus_from(ctx, (const uint8_t *)text, strlen(text), GR_CHARS);
}

/* A part of a corpus, in memory until gr_context_reset. */
static const uint8_t *bytes_of(gr_corpus *corpus, gr_part part) {
    static uint8_t bytes[2][1024];
    const size_t size = gr_corpus_size(corpus, part);
    ck_assert(size <= sizeof *bytes && gr_corpus_read(corpus, part, 0, size, bytes[part]));
    return bytes[part];
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
    EXPECT_ERROR("encode: 'c' (0x63) at offset 2 is not in the vocabulary of 2");
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
        uint8_t of_file[sizeof text], of_memory[sizeof text];
        const size_t size = gr_corpus_size(memory, (gr_part)part);
        ck_assert_uint_eq(size, gr_corpus_size(file, (gr_part)part));
        ck_assert(gr_corpus_read(file, (gr_part)part, 0, size, of_file));
        ck_assert(gr_corpus_read(memory, (gr_part)part, 0, size, of_memory));
        ck_assert(memcmp(of_file, of_memory, size) == 0);
    }
    ck_assert_int_eq(gr_corpus_vocab(file), gr_corpus_vocab(memory));
    ck_assert_int_eq(gr_corpus_vocab(gr_corpus_from(ctx, (const uint8_t *)text, sizeof text, GR_BYTES)), 256);
}

static void expect_nothing(gr_corpus *corpus, const char *message) {
    ck_assert_ptr_nonnull(corpus);
    ck_assert(gr_corpus_vocab(corpus) == 0 && gr_corpus_size(corpus, GR_TRAIN) == 0);
    ck_assert_int_eq(gr_corpus_tokenizer(corpus)->size, 0);
    EXPECT_ERROR(message);
    ck_assert_ptr_null(gr_corpus_batch(corpus, GR_TRAIN, &rng, 1, 1).inputs.ids);
    EXPECT_ERROR("was not opened, after an error that has been cleared since");
    ck_assert(!gr_corpus_read(corpus, GR_VALIDATION, 0, 0, NULL));
    EXPECT_ERROR("was not opened, after an error that has been cleared since");
}

TEST(a_text_that_was_opened_after_an_error_says_so) {
    const char *const paths[] = {"/nonexistent/tales.txt", "more.txt"};
    gr_fail(ctx, "test", "an error");
    expect_nothing(gr_corpus_new(ctx, paths, 2, (gr_corpus_config){0}), "test: an error");
    gr_fail(ctx, "test", "an error");
    expect_nothing(gr_corpus_from(ctx, (const uint8_t *)"abc", 3, GR_CHARS), "test: an error");
}

TEST(the_tokenizer_of_no_text_knows_no_byte) {
    int32_t ids[1];
    ck_assert(!gr_encode(ctx, gr_corpus_tokenizer(NULL), (const uint8_t *)"a", 1, ids));
    EXPECT_ERROR("of 0 bytes");
    ck_assert(!gr_encode(ctx, gr_corpus_tokenizer(gr_corpus_open(NULL, "a", GR_CHARS)), (const uint8_t *)"a", 1, ids));
    EXPECT_ERROR("of 0 bytes");
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
    ck_assert(gr_corpus_vocab(NULL) == 0 && gr_corpus_size(NULL, GR_TRAIN) == 0);
    ck_assert(!gr_corpus_read(NULL, GR_TRAIN, 0, 0, NULL));
    ck_assert_ptr_null(gr_corpus_batch(gr_corpus_from(NULL, NULL, 0, GR_CHARS), GR_TRAIN, &rng, 1, 1).inputs.ids);
}

TEST(the_last_tenth_is_for_validation) {
    const struct { size_t size, validation; } split[] = {{1, 0}, {9, 0}, {10, 1}, {19, 1}, {20, 2}, {99, 9}, {100, 10}};
    static const uint8_t text[100] = "abcdefghijklmnopqrstuvwxyz";
    for (size_t i = 0; i < sizeof split / sizeof *split; i++) {
        gr_corpus *corpus = gr_corpus_from(ctx, text, split[i].size, GR_CHARS);
        ck_assert_uint_eq(gr_corpus_size(corpus, GR_VALIDATION), split[i].validation);
        ck_assert_uint_eq(gr_corpus_size(corpus, GR_TRAIN), split[i].size - split[i].validation);
        uint8_t part[sizeof text];
        const size_t train = gr_corpus_size(corpus, GR_TRAIN);
        ck_assert(gr_corpus_read(corpus, GR_VALIDATION, 0, split[i].validation, part));
        ck_assert(memcmp(part, text + train, split[i].validation) == 0);
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
        {GR_TRAIN, (int64_t)(SIZE_MAX / 2 / sizeof(int32_t) / 4), 4, "out of memory"},
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
        const uint8_t *bytes = bytes_of(corpus, (gr_part)part);
        const size_t size = gr_corpus_size(corpus, (gr_part)part);
        double sum = 0;
        for (size_t i = 0; i + 1 < size; i++) sum += surprise(text, 900, VOCAB, bytes[i], bytes[i + 1]);
        ck_assert_double_eq_tol(gr_corpus_bigram_loss(corpus, (gr_part)part), sum / (double)(size - 1), 1e-12);
    }
}

Suite *text_suite(void) {
    Suite *suite = suite_create("text");
    add_rows(suite, "samples", every_text_comes_back_as_it_was, SAMPLES);
    GROUP(suite, "tokenizers", all_256_bytes_come_back, ids_are_the_sorted_distinct_bytes,
          a_byte_that_is_not_in_the_vocabulary_is_an_error_with_its_place);
    GROUP(suite, "corpora", a_file_and_its_text_in_memory_are_one_corpus, a_text_that_was_opened_after_an_error_says_so,
          the_tokenizer_of_no_text_knows_no_byte, what_is_no_text_file_is_refused_with_its_name,
          the_last_tenth_is_for_validation);
    GROUP(suite, "batches", every_window_is_drawn_about_equally_often_and_none_past_the_end,
          one_generator_gives_the_same_batches_again_and_batches_differ,
          a_batch_that_cannot_be_is_refused_with_the_numbers);
    GROUP(suite, "bigrams", the_bigram_loss_is_that_of_the_formula,
          the_bigram_counts_have_a_place_for_every_byte_that_a_file_may_come_to_have,
          the_bigram_loss_is_learned_from_the_training_part_alone);
    return suite;
}
