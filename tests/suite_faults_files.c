/* Files that cannot be opened, read, written, renamed, closed: each call fails once, and each allocation on the way. */
#include "faults_support.h"

#include "nn/configuration.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* -- Work ---------------------------------------------------------------------------------------------------------- */

static void expect_ok(trial *t) { ck_assert_msg(gr_ok(t->c), "%s", gr_error_message(t->c)); }

static void begin_save(trial *t) {
    begin_model(t);
    trial_step(t);
    trial_file("model", "an older file\n");
}

static void save(trial *t) { gr_gpt_save(t->gpt, &t->letters, trial_path("model")); }

static void save_state(trial *t) {
    gr_state_save(t->gpt, t->adamw, (gr_resume){.step = 1, .rng = t->rng, .best = 2}, trial_path("model"));
}

static void begin_load(trial *t) {
    begin_save(t);
    save(t);
    expect_ok(t);
}

static void load(trial *t) {
    gr_tokenizer letters;
    gr_gpt_load(t->c, trial_path("model"), &letters);
    t->bits = hash_bytes(t->bits, &letters, sizeof letters);
}

static void load_letters(trial *t) {
    gr_tokenizer letters;
    gr_tokenizer_load(t->c, trial_path("model"), &letters);
    t->bits = hash_bytes(t->bits, &letters, sizeof letters);
}

/* The run has gone on since. */
static void begin_load_state(trial *t) {
    begin_save(t);
    save_state(t);
    trial_step(t);
    expect_ok(t);
}

static void load_state(trial *t) {
    gr_resume at = {.step = 77};
    const bool loaded = gr_state_load(t->gpt, t->adamw, &at, trial_path("model"));
    DEMAND(loaded || at.step == 77);
    t->bits = hash_bytes(t->bits, &at, sizeof at);
}

/* A state dict of nanoGPT, with the head beside the embedding that it is tied to. */
static void begin_import(trial *t) {
    enum { NOTES = GR_CONFIGURATION_NOTES + 1, MOST = 32 };
    gr_note notes[NOTES];
    gr_safetensors_entry entry[MOST + 1] = {{"lm_head.weight", NULL}};
    begin_model(t);
    const int count = gr_parameter_count(t->c);
    gr_configuration_write(t->c, t->gpt->config, notes);
    notes[NOTES - 1] = (gr_note){"vocabulary", "61626364656667"};
    entry[0].x = t->gpt->wte.weight;
    for (int i = 0; i < count && i < MOST; i++) {
        gr_tensor *w = gr_parameter_at(t->c, i);
        entry[1 + i] = (gr_safetensors_entry){gr_name(w), w};
    }
    gr_safetensors_write(t->c, trial_path("model"), (gr_safetensors_content){notes, NOTES, entry, 1 + (size_t)count});
    expect_ok(t);
}

static void begin_texts(trial *t) {
    begin_context(t);
    trial_file("model", "abcabcabcabcabcabcabc");
    trial_file("more", "abcddcbaabcddcbaabcddcba");
    const int file = open(trial_path("model"), O_RDONLY);
    ck_assert(file >= 0 && dup2(file, STDIN_FILENO) == STDIN_FILENO && (file == STDIN_FILENO || close(file) == 0));
}

static void read_corpus(trial *t, gr_corpus *corpus) {
    const gr_part parts[] = {GR_TRAIN, GR_VALIDATION};
    for (int i = 0; i < 2; i++) {
        const gr_batch b = gr_corpus_batch(corpus, parts[i], &t->rng, 2, 4);
        if (b.inputs.ids) t->bits = hash_bytes(t->bits, b.inputs.ids, 2 * 4 * sizeof *b.inputs.ids);
    }
    const double bigram = gr_corpus_bigram_loss(corpus, GR_VALIDATION);
    t->bits = hash_bytes(t->bits, &bigram, sizeof bigram);
}

static void open_corpus(trial *t) {
    const char *paths[] = {trial_path("model"), trial_path("more")};
    read_corpus(t, gr_corpus_new(t->c, paths, 2, (gr_corpus_config){.validation_path = trial_path("more")}));
}

static void read_input(trial *t) {
    const char *path = "-";
    lseek(STDIN_FILENO, 0, SEEK_SET);
    read_corpus(t, gr_corpus_new(t->c, &path, 1, (gr_corpus_config){.validation = 0.4}));
}

static const work works[] = {
    {"save", begin_save, save, .least = 6, .closes = 1},
    {"save a state", begin_save, save_state, .least = 6, .closes = 1},
    {"load", begin_load, load, .least = 20},
    {"load a state", begin_load_state, load_state, .least = 20},
    {"load letters", begin_load, load_letters, .least = 3},
    {"import", begin_import, load, .least = 20},
    {"files", begin_texts, open_corpus, .least = 15, .keeps = 3},
    {"standard input", begin_texts, read_input, .least = 2},
};
enum { WORKS = sizeof works / sizeof *works, SAVES = 2, FILES = WORKS - 1 }; /* these come first */

/* -- Faults -------------------------------------------------------------------------------------------------------- */

#define MOVES (FAULT(read) | FAULT(pread) | FAULT(write))

/* Which name a message has: the file's, in its directory, or the input's. */
static const char *name_in(const work *w) {
    return w->run == read_input ? "standard input: cannot read" : w->run == open_corpus ? "/mo" : "/model: ";
}

TEST(each_call_for_a_file_fails_once) {
    const work *w = &works[_i];
    const char *const words[] = {name_in(w), strerror(EIO)};
    const unsigned long long calls = MOVES | FAULT(open) | FAULT(stat) | FAULT(fstat) | FAULT(fsync) | FAULT(rename);
    if (!faults_possible) return;
    const outcome o = every_fault(w, (failure){calls, 0, FAULT_FAILS, EIO}, words);
    ck_assert_msg(o.faults >= w->least, "%s: %d faults", w->name, o.faults);
    ck_assert_int_eq(o.errors, o.faults);
}

/* Once from the first call on; then the write, the file's fsync and its directory's, each alone. */
TEST(a_full_disk_is_an_error) {
    const char *const words[] = {name_in(&works[_i]), "No space left on device"};
    const outcome o = every_fault(&works[_i], (failure){FAULT(write) | FAULT(fsync), 0, FAULT_FAILS, ENOSPC}, words);
    ck_assert(o.errors == o.faults && (o.faults == 4 || !faults_possible));
}

/* The first open is the directory's, the second makes the new file, and again by another name. */
TEST(a_name_that_is_taken_is_passed_over) {
    const char *const none[] = {"", ""};
    const outcome o = every_fault(&works[_i], (failure){FAULT(open), 2, FAULT_FAILS, EEXIST}, none);
    ck_assert(o.errors == 0 && (o.faults == 1 || !faults_possible));
    ck_assert_int_eq(faults_careless(), 0);
}

TEST(permissions_that_cannot_be_set_are_no_error) {
    const char *const none[] = {"", ""};
    const outcome o = every_fault(&works[_i], (failure){FAULT(fchmod), 1, FAULT_FAILS, EPERM}, none);
    ck_assert(o.errors == 0 && (o.faults == 1 || !faults_possible));
}

TEST(a_call_that_is_interrupted_is_made_again) {
    const char *const none[] = {"", ""};
    const outcome o = every_fault(&works[_i], (failure){MOVES, 1, FAULT_FAILS, EINTR}, none);
    ck_assert(o.errors == 0 && (o.faults > 0 || !faults_possible));
}

TEST(a_short_one_goes_on) {
    const char *const none[] = {"", ""};
    const outcome o = every_fault(&works[_i], (failure){MOVES, 0, FAULT_SHORT, 0}, none);
    ck_assert(o.errors == 0 && (o.faults > 0 || !faults_possible));
}

/* Of a file that has become shorter, and of a device that takes nothing. (Of standard input it is the end.) */
TEST(an_empty_one_is_an_error) {
    const char *const words[] = {name_in(&works[_i]), ""};
    const outcome o = every_fault(&works[_i], (failure){MOVES & ~FAULT(read), 0, FAULT_EMPTY, 0}, words);
    ck_assert(o.errors == o.faults && (o.faults > 0 || !faults_possible));
}

/* What has been read is there; what was written may be lost. */
TEST(a_close_that_fails_is_an_error_where_something_was_written) {
    const char *const words[] = {"/model: cannot write", strerror(EIO)};
    const outcome o = every_fault(&works[_i], (failure){FAULT(close), 1, FAULT_FAILS, EIO}, words);
    if (faults_possible) ck_assert_int_eq(o.errors, works[_i].closes);
}

TEST(each_allocation_on_the_way_fails_once) {
    const char *const words[] = {"memory", ""};
    const outcome arena = every_fault(&works[_i], (failure){FAULT(gr_arena_alloc), 0, FAULT_FAILS, 0}, words);
    const outcome system = every_fault(&works[_i], (failure){FAULT_MEMORY, 0, FAULT_FAILS, ENOMEM}, words);
    ck_assert(arena.errors == arena.faults && (arena.faults > 0 || !faults_possible));
    ck_assert_int_eq(system.errors, system.faults);
}

Suite *faults_files_suite(void) {
    Suite *suite = suite_create("faults_files");
    add_rows(suite, "calls", each_call_for_a_file_fails_once, WORKS);
    add_rows(suite, "full", a_full_disk_is_an_error, SAVES);
    add_rows(suite, "taken", a_name_that_is_taken_is_passed_over, SAVES);
    add_rows(suite, "permissions", permissions_that_cannot_be_set_are_no_error, SAVES);
    add_rows(suite, "interrupted", a_call_that_is_interrupted_is_made_again, WORKS);
    add_rows(suite, "short", a_short_one_goes_on, WORKS);
    add_rows(suite, "empty", an_empty_one_is_an_error, FILES);
    add_rows(suite, "close", a_close_that_fails_is_an_error_where_something_was_written, WORKS);
    add_rows(suite, "memory", each_allocation_on_the_way_fails_once, WORKS);
    return suite;
}
