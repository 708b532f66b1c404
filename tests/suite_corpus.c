/* A corpus from files that stay on the disk: several as one, standard input, and what becomes of them meanwhile. */
#include "again.h"
#include "nn_support.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILES = 4, PATH_ROOM = 32 };

/* BOM, CR LF, NUL, invalid UTF-8; one file is empty, and borders cut a character in two. */
static const struct {
    const char *text;
    size_t size;
} piece[FILES] = {
    {"\xEF\xBB\xBFone\r\n\0tw", 11}, {"", 0}, {"o \xC3", 3}, {"\xA4\xFF\xFE three\0\0 \r four and five\n", 26}};

static char whole[64];
static size_t whole_size;

/* Writes the pieces into files. */
static void write_pieces(char path[FILES][PATH_ROOM], const char *paths[FILES]) {
    whole_size = 0;
    for (int i = 0; i < FILES; i++) {
        strcpy(path[i], temporary_file(piece[i].text, piece[i].size));
        paths[i] = path[i];
        memcpy(whole + whole_size, piece[i].text, piece[i].size);
        whole_size += piece[i].size;
    }
}

/* The same parts, vocabulary, batches and bigrams. */
static void expect_same(gr_corpus *a, gr_corpus *b, int64_t time) {
    ck_assert_msg(gr_ok(ctx), "%s", gr_error_message(ctx));
    ck_assert(memcmp(gr_corpus_tokenizer(a), gr_corpus_tokenizer(b), sizeof(gr_tokenizer)) == 0);
    for (int part = GR_TRAIN; part <= GR_VALIDATION; part++) {
        const size_t size = gr_corpus_size(a, (gr_part)part);
        uint8_t *of_a = malloc(size + 1), *of_b = malloc(size + 1);
        ck_assert_uint_eq(size, gr_corpus_size(b, (gr_part)part));
        ck_assert(gr_corpus_read(a, (gr_part)part, 0, size, of_a) && gr_corpus_read(b, (gr_part)part, 0, size, of_b));
        ck_assert(memcmp(of_a, of_b, size) == 0);
        free(of_a);
        free(of_b);
        const double loss = gr_corpus_bigram_loss(a, (gr_part)part);
        ck_assert(loss > 0 && loss == gr_corpus_bigram_loss(b, (gr_part)part));
    }
    gr_rng other = rng;
    for (int i = 0; i < 200; i++) {
        const gr_batch x = gr_corpus_batch(a, GR_TRAIN, &rng, 2, time),
                       y = gr_corpus_batch(b, GR_TRAIN, &other, 2, time);
        const size_t bytes = (size_t)(2 * time) * sizeof(int32_t);
        DEMAND(x.inputs.ids && memcmp(x.inputs.ids, y.inputs.ids, bytes) == 0);
        DEMAND(memcmp(x.targets.ids, y.targets.ids, bytes) == 0 && rng.counter == other.counter);
        gr_context_reset(ctx);
    }
}

TEST(files_are_one_text_with_every_byte_as_it_was) {
    char path[FILES][PATH_ROOM];
    const char *paths[FILES];
    write_pieces(path, paths);
    gr_corpus *files = gr_corpus_new(ctx, paths, FILES, (gr_corpus_config){.kind = GR_CHARS});
    for (int i = 0; i < FILES; i++) unlink(path[i]);
    gr_corpus *memory = gr_corpus_from(ctx, (const uint8_t *)whole, whole_size, GR_CHARS);
    expect_same(files, memory, 9);
    for (size_t at = 0; at < gr_corpus_size(files, GR_TRAIN); at++)
        for (size_t n = 0; n <= gr_corpus_size(files, GR_TRAIN) - at; n++) {
            uint8_t some[64];
            DEMAND(gr_corpus_read(files, GR_TRAIN, at, n, some) && memcmp(some, whole + at, n) == 0);
        }
}

/* Longer than what is read at once, with a border on neither's multiple. */
TEST(a_text_of_many_pieces_is_read_as_one_from_memory_is) {
    enum { SIZE = 200000, BORDER = 70001 };
    static uint8_t text[SIZE];
    for (int i = 0; i < SIZE; i++) text[i] = (uint8_t)gr_rng_below(&rng, 200);
    char first[PATH_ROOM], second[PATH_ROOM];
    strcpy(first, temporary_file(text, BORDER));
    strcpy(second, temporary_file(text + BORDER, SIZE - BORDER));
    const char *paths[] = {first, second};
    gr_corpus *files = gr_corpus_new(ctx, paths, 2, (gr_corpus_config){.kind = GR_CHARS});
    unlink(first);
    unlink(second);
    expect_same(files, gr_corpus_from(ctx, text, SIZE, GR_CHARS), 1000);
}

TEST(every_window_over_the_borders_of_files_is_reached_and_none_past_the_end) {
    enum { LETTERS = 26, TIME = 5, DRAWS = 19000, PLACES = 24 - TIME };
    char path[LETTERS][PATH_ROOM];
    const char *paths[LETTERS];
    int count[LETTERS] = {0};
    for (int i = 0; i < LETTERS; i++) {
        const char letter = (char)('a' + i);
        strcpy(path[i], temporary_file(&letter, 1));
        paths[i] = path[i];
    }
    gr_corpus *corpus = gr_corpus_new(ctx, paths, LETTERS, (gr_corpus_config){.kind = GR_CHARS});
    for (int i = 0; i < LETTERS; i++) unlink(path[i]);
    for (int draw = 0; draw < DRAWS; draw++) {
        const gr_batch b = gr_corpus_batch(corpus, GR_TRAIN, &rng, 1, TIME);
        for (int i = 0; i < TIME; i++) DEMAND(b.inputs.ids[i] == b.inputs.ids[0] + i);
        DEMAND(b.targets.ids[TIME - 1] == b.inputs.ids[TIME - 1] + 1 && b.targets.ids[TIME - 1] < 24);
        count[b.inputs.ids[0]]++;
        gr_context_reset(ctx);
    }
    for (int i = 0; i < PLACES; i++) ck_assert_int_le(abs(count[i] - DRAWS / PLACES), 150); /* 4.9 sigma */
}

/* -- Standard input ------------------------------------------------------------------------------------------------ */

/* Standard input becomes a pipe from a process that writes n bytes of text in small portions. */
static void feed(const uint8_t *text, size_t n) {
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    if (fork() == 0) {
        close(ends[0]);
        for (size_t at = 0; at < n;) {
            const ssize_t some = write(ends[1], text + at, n - at < 777 ? n - at : 777);
            if (some <= 0) break;
            at += (size_t)some;
        }
        _exit(0);
    }
    close(ends[1]);
    ck_assert_int_eq(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    close(ends[0]);
}

TEST(standard_input_is_a_file_among_others) {
    enum { SIZE = 150000, BORDER = 30 };
    static uint8_t text[SIZE];
    for (int i = 0; i < SIZE; i++) text[i] = (uint8_t)gr_rng_below(&rng, 256);
    char last[PATH_ROOM];
    strcpy(last, temporary_file(text + SIZE - BORDER, BORDER));
    const char *paths[] = {"-", last};
    feed(text, SIZE - BORDER);
    gr_corpus *corpus = gr_corpus_new(ctx, paths, 2, (gr_corpus_config){.kind = GR_CHARS});
    wait(NULL);
    unlink(last);
    expect_same(corpus, gr_corpus_from(ctx, text, SIZE, GR_CHARS), 50);
}

TEST(standard_input_that_is_empty_or_closed_is_an_error) {
    feed(NULL, 0);
    gr_corpus_open(ctx, "-", GR_CHARS);
    EXPECT_ERROR("standard input: empty");
    wait(NULL);
    close(STDIN_FILENO);
    gr_corpus_open(ctx, "-", GR_CHARS);
    EXPECT_ERROR("standard input: cannot read: Bad file descriptor");
}

/* -- Parts and vocabulary ------------------------------------------------------------------------------------------ */

TEST(validation_has_a_share_or_a_file_of_its_own) {
    char train[PATH_ROOM], other[PATH_ROOM];
    strcpy(train, temporary_file("abcabcabcabcabcabcab", 20));
    strcpy(other, temporary_file("xyzab", 5));
    const char *paths[] = {train};
    const struct {
        double share;
        size_t size;
    } cut[] = {{0, 2}, {0.1, 2}, {0.25, 5}, {0.99, 19}, {0.001, 0}};
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        gr_corpus *c = gr_corpus_new(ctx, paths, 1, (gr_corpus_config){.validation = cut[i].share});
        ck_assert_uint_eq(gr_corpus_size(c, GR_VALIDATION), cut[i].size);
        ck_assert_uint_eq(gr_corpus_size(c, GR_TRAIN), 20 - cut[i].size);
    }
    gr_corpus *c = gr_corpus_new(ctx, paths, 1, (gr_corpus_config){.validation = 0.25});
    uint8_t all[20];
    ck_assert(gr_corpus_size(c, GR_WHOLE) == 20 && gr_corpus_read(c, GR_WHOLE, 0, 20, all));
    ck_assert(memcmp(all, "abcabcabcabcabcabcab", 20) == 0);
    ck_assert(!gr_corpus_read(c, GR_WHOLE, 1, 20, all));
    EXPECT_ERROR(": 20 bytes from offset 1 of the whole text, which has 20");
    c = gr_corpus_new(ctx, paths, 1, (gr_corpus_config){.validation_path = other});
    ck_assert_uint_eq(gr_corpus_size(c, GR_WHOLE), 20);
    ck_assert(gr_corpus_size(c, GR_TRAIN) == 20 && gr_corpus_size(c, GR_VALIDATION) == 5);
    ck_assert_int_eq(gr_corpus_vocab(c), 6); /* abc and xyz */
    uint8_t read[5];
    ck_assert(gr_corpus_read(c, GR_VALIDATION, 0, 5, read) && memcmp(read, "xyzab", 5) == 0);
    ck_assert(isfinite(gr_corpus_bigram_loss(c, GR_VALIDATION)));
    gr_corpus_batch(c, GR_VALIDATION, &rng, 1, 5);
    EXPECT_ERROR(": the validation part has 5 bytes, a window needs 6");
    ck_assert(!gr_corpus_read(c, GR_VALIDATION, 2, 4, read));
    EXPECT_ERROR(": 4 bytes from offset 2 of the validation part, which has 5");
    ck_assert(!gr_corpus_read(c, GR_TRAIN, SIZE_MAX, 2, read));
    EXPECT_ERROR("of the training part, which has 20");
    unlink(train);
    unlink(other);
}

TEST(a_vocabulary_that_is_given_names_the_first_byte_it_has_not) {
    const gr_tokenizer letters = gr_tokenizer_chars((const uint8_t *)"abcdef", 6), bytes = gr_tokenizer_bytes();
    char first[PATH_ROOM], second[PATH_ROOM], message[128];
    strcpy(first, temporary_file("abcabcabcabc", 12));
    strcpy(second, temporary_file("abcab#c#", 8));
    const char *paths[] = {first, second};
    gr_corpus *c = gr_corpus_new(ctx, paths, 1, (gr_corpus_config){.tokenizer = &letters});
    ck_assert(gr_ok(ctx) && gr_corpus_vocab(c) == 6 && gr_corpus_batch(c, GR_TRAIN, &rng, 1, 1).inputs.ids[0] < 3);
    ck_assert_int_eq(gr_corpus_vocab(gr_corpus_new(ctx, paths, 2, (gr_corpus_config){.tokenizer = &bytes})), 256);
    snprintf(message, sizeof message, "%s: '#' (0x23) at offset 5 is not in the vocabulary of 6 bytes; with", second);
    c = gr_corpus_new(ctx, paths, 2, (gr_corpus_config){.tokenizer = &letters});
    ck_assert(gr_corpus_vocab(c) == 0 && gr_corpus_size(c, GR_TRAIN) == 0);
    EXPECT_ERROR(message);
    gr_corpus_new(ctx, paths, 1, (gr_corpus_config){.tokenizer = &letters, .validation_path = second});
    EXPECT_ERROR(message);
    unlink(first);
    unlink(second);
}

TEST(what_cannot_be_a_corpus_is_refused) {
    char path[PATH_ROOM], empty[PATH_ROOM];
    strcpy(path, temporary_file("abcabcabcabc", 12));
    strcpy(empty, temporary_file("", 0));
    const char *good[] = {path, path}, *twice[] = {"-", "-"}, *hole[] = {path, NULL}, *gone[] = {path, "/gone/x"},
               *nothing[] = {empty, empty, empty};
    const struct {
        const char *const *paths;
        int count;
        gr_corpus_config config;
        const char *message;
    } bad[] = {
        {NULL, 1, {.validation = 0}, "corpus: no file"},
        {good, 0, {.validation = 0}, "corpus: no file"},
        {good, INT_MIN, {.validation = 0}, "corpus: no file"},
        {hole, 2, {.validation = 0}, "corpus: path is NULL"},
        {twice, 2, {.validation = 0}, "standard input: is asked for 2 times; it can be read once"},
        {twice, 1, {.validation_path = "-"}, "standard input: is asked for 2 times; it can be read once"},
        {gone, 2, {.validation = 0}, "/gone/x: cannot open: No such file or directory"},
        {good, 1, {.validation_path = "/gone/x"}, "/gone/x: cannot open: No such file or directory"},
        {nothing, 3, {.validation = 0}, " and 2 more: empty"},
        {good, 1, {.validation = 1}, ": a share of 1 for validation; it must be in [0, 1)"},
        {good, 1, {.validation = -0.5}, ": a share of -0.5 for validation; it must be in [0, 1)"},
        {good, 1, {.validation = (double)NAN}, "for validation; it must be in [0, 1)"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        gr_corpus *c = gr_corpus_new(ctx, bad[i].paths, bad[i].count, bad[i].config);
        ck_assert(c && gr_corpus_vocab(c) == 0 && gr_corpus_size(c, GR_TRAIN) == 0);
        EXPECT_ERROR(bad[i].message);
    }
    unlink(path);
    unlink(empty);
}

/* Where a file was closed, another may have taken its number. */
TEST(a_corpus_that_cannot_be_closes_each_file_once) {
    char path[PATH_ROOM], other[PATH_ROOM];
    strcpy(path, temporary_file("abcabcabcabc", 12));
    strcpy(other, temporary_file("abcabcabcxbc", 12));
    const char *paths[] = {path, path};
    const gr_tokenizer letters = gr_tokenizer_chars((const uint8_t *)"abc", 3);
    const int before = open_files();
    gr_context *own = gr_context_new();
    gr_corpus_new(own, paths, 2, (gr_corpus_config){.tokenizer = &letters, .validation_path = other});
    ck_assert(contains(gr_error_message(own), "'x' (0x78) at offset 9"));
    ck_assert_int_eq(open_files(), before);
    int mine[3];
    for (int i = 0; i < 3; i++) mine[i] = open(path, O_RDONLY);
    gr_context_free(own);
    for (int i = 0; i < 3; i++) ck_assert_int_eq(close(mine[i]), 0);
    unlink(path);
    unlink(other);
}

TEST(reading_needs_a_place_and_a_batch_a_generator) {
    gr_corpus *corpus = gr_corpus_from(ctx, (const uint8_t *)"abcabc", 6, GR_CHARS);
    uint8_t byte;
    ck_assert(!gr_corpus_read(corpus, GR_TRAIN, 0, 1, NULL));
    EXPECT_ERROR("out is NULL");
    ck_assert(gr_corpus_read(corpus, GR_TRAIN, 0, 0, NULL) && gr_corpus_read(corpus, GR_TRAIN, 0, 1, &byte));
    ck_assert(byte == 'a' && gr_corpus_tokenizer(NULL)->size == 0);
    gr_corpus_batch(corpus, GR_TRAIN, NULL, 1, 2);
    EXPECT_ERROR("rng is NULL");
}

/* -- Files that change --------------------------------------------------------------------------------------------- */

TEST(a_file_that_shrinks_is_an_error_that_names_it) {
    char path[PATH_ROOM], message[128];
    strcpy(path, temporary_file("abcdefghijabcdefghij", 20));
    gr_corpus *corpus = gr_corpus_open(ctx, path, GR_CHARS);
    ck_assert(gr_corpus_batch(corpus, GR_TRAIN, &rng, 1, 17).inputs.ids);
    ck_assert_int_eq(truncate(path, 12), 0);
    snprintf(message, sizeof message, "%s: has become shorter: no byte at offset 12", path);
    const gr_rng before = rng;
    ck_assert_ptr_null(gr_corpus_batch(corpus, GR_TRAIN, &rng, 1, 17).inputs.ids);
    ck_assert(rng.counter == before.counter);
    EXPECT_ERROR(message);
    ck_assert(isnan(gr_corpus_bigram_loss(corpus, GR_TRAIN)));
    EXPECT_ERROR(message);
    uint8_t read[18];
    ck_assert(!gr_corpus_read(corpus, GR_TRAIN, 0, 18, read));
    EXPECT_ERROR(message);
    unlink(path);
}

TEST(a_byte_that_has_come_into_a_file_is_an_error_that_names_it) {
    char path[PATH_ROOM], message[128];
    strcpy(path, temporary_file("abababababababababab", 20));
    gr_corpus *corpus = gr_corpus_open(ctx, path, GR_CHARS);
    FILE *file = fopen(path, "r+b");
    ck_assert(file && fputs("xyz", file) >= 0 && fclose(file) == 0);
    snprintf(message, sizeof message, "%s: has changed since it was opened: a byte that is not in the vocabulary of 2",
             path);
    ck_assert_ptr_null(gr_corpus_batch(corpus, GR_TRAIN, &rng, 1, 17).inputs.ids);
    EXPECT_ERROR(message);
    unlink(path);
}

static long peak_kib(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

TEST(a_file_larger_than_memory_is_read_where_its_windows_lie) {
    const int64_t size = (int64_t)6 << 30; /* bytes; a hole but for its end */
    const char *path = temporary_file("", 0);
    if (truncate(path, size - 4) == 0) {
        FILE *file = fopen(path, "ab");
        ck_assert(file && fputs("last", file) >= 0 && fclose(file) == 0);
        const long before = peak_kib();
        gr_corpus *corpus = gr_corpus_open(ctx, path, GR_BYTES);
        if (size > PTRDIFF_MAX) {
            EXPECT_ERROR("too large for this machine");
            unlink(path);
            return;
        }
        ck_assert_uint_eq(gr_corpus_size(corpus, GR_TRAIN) + gr_corpus_size(corpus, GR_VALIDATION), (size_t)size);
        for (int i = 0; i < 1000; i++) {
            DEMAND(gr_corpus_batch(corpus, (gr_part)(i % 2), &rng, 12, 64).inputs.ids);
            gr_context_reset(ctx);
        }
        uint8_t end[4];
        ck_assert(gr_corpus_read(corpus, GR_VALIDATION, gr_corpus_size(corpus, GR_VALIDATION) - 4, 4, end));
        ck_assert(memcmp(end, "last", 4) == 0);
        ck_assert_int_lt(peak_kib() - before, 16 << 10);
    }
    unlink(path);
}

Suite *corpus_suite(void) {
    Suite *suite = suite_create("corpus");
    GROUP(suite, "files", files_are_one_text_with_every_byte_as_it_was,
          a_text_of_many_pieces_is_read_as_one_from_memory_is,
          every_window_over_the_borders_of_files_is_reached_and_none_past_the_end);
    GROUP(suite, "standard input", standard_input_is_a_file_among_others,
          standard_input_that_is_empty_or_closed_is_an_error);
    GROUP(suite, "parts", validation_has_a_share_or_a_file_of_its_own,
          a_vocabulary_that_is_given_names_the_first_byte_it_has_not, what_cannot_be_a_corpus_is_refused,
          a_corpus_that_cannot_be_closes_each_file_once, reading_needs_a_place_and_a_batch_a_generator);
    GROUP(suite, "changes", a_file_that_shrinks_is_an_error_that_names_it,
          a_byte_that_has_come_into_a_file_is_an_error_that_names_it,
          a_file_larger_than_memory_is_read_where_its_windows_lie);
    return suite;
}
