#include "faults_support.h"

#include "again.h"
#include "nn/internal.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* -- Bits ---------------------------------------------------------------------------------------------------------- */

static uint64_t mix_tensor(uint64_t bits, const gr_tensor *x) {
    return hash_bytes(bits, x->data, (size_t)gr_numel(x) * sizeof(gr_real));
}

/* All parameters of the context, and the moments of the optimiser. */
static uint64_t weights_of(const trial *t) {
    uint64_t bits = hash_of_nothing;
    for (int i = 0; i < gr_parameter_count(t->c); i++) bits = mix_tensor(bits, gr_parameter_at(t->c, i));
    const gr_adam_state adam = gr_adamw_state(t->adamw);
    for (int i = 0; i < adam.count; i++) bits = mix_tensor(mix_tensor(bits, adam.m[i]), adam.v[i]);
    return adam.count < 0 ? bits : hash_bytes(bits, adam.step, sizeof *adam.step);
}

static uint64_t stream_bits(FILE *file) {
    uint64_t bits = hash_of_nothing;
    rewind(file);
    for (int c; (c = getc(file)) != EOF;) bits = hash_bytes(bits, &c, sizeof c);
    return bits;
}

void mix_text(trial *t) {
    const uint64_t bits = stream_bits(t->out);
    t->bits = hash_bytes(t->bits, &bits, sizeof bits);
}

/* -- The directory ------------------------------------------------------------------------------------------------- */

static char directory[32];

static void remove_directory(void) {
    DIR *entries = opendir(directory);
    for (struct dirent *e; entries && (e = readdir(entries));) unlink(trial_path(e->d_name));
    if (entries) closedir(entries);
    rmdir(directory);
}

static void make_directory(void) {
    strcpy(directory, "/tmp/gradus_test_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    atexit(remove_directory);
}

const char *trial_path(const char *name) {
    static char path[4][512];
    static int next;
    if (!*directory) make_directory();
    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", directory, name);
    return path[next];
}

void trial_file(const char *name, const char *text) {
    FILE *file = fopen(trial_path(name), "wb");
    ck_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Names and contents, in any order. */
static uint64_t directory_bits(void) {
    uint64_t sum = 0;
    DIR *entries = *directory ? opendir(directory) : NULL;
    for (struct dirent *e; entries && (e = readdir(entries));) {
        FILE *file = *e->d_name != '.' ? fopen(trial_path(e->d_name), "rb") : NULL;
        if (!file) continue;
        const uint64_t bits = stream_bits(file);
        sum += hash_bytes(hash_bytes(hash_of_nothing, e->d_name, strlen(e->d_name)), &bits, sizeof bits);
        fclose(file);
    }
    if (entries) closedir(entries);
    return sum;
}

/* -- A model ------------------------------------------------------------------------------------------------------- */

enum { BATCH = 2 };

void begin_context(trial *t) { t->c = gr_context_new(); }

static void make_text(trial *t) {
    uint8_t text[200];
    gr_rng drawn = gr_rng_seed(3);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)('a' + (i < TRIAL_VOCAB ? i : gr_rng_below(&drawn, TRIAL_VOCAB)));
    t->corpus = gr_corpus_from(t->c, text, sizeof text, GR_CHARS);
}

void begin_model(trial *t) {
    if (!t->c) t->c = gr_context_new();
    make_text(t);
    t->gpt = gr_gpt_new(t->c, (gr_gpt_config){.vocab = TRIAL_VOCAB,
                                              .context = TRIAL_CONTEXT,
                                              .layers = TRIAL_LAYERS,
                                              .heads = 2,
                                              .width = 8,
                                              .dropout = 0.2,
                                              .bias = true,
                                              .style = t->work->style,
                                              .positions = t->work->positions,
                                              .seed = 5});
    t->adamw = gr_adamw_new(t->c, (gr_adamw_config){.weight_decay = 0.1});
}

gr_tensor *trial_loss(trial *t) {
    const gr_batch b = gr_corpus_batch(t->corpus, GR_TRAIN, &t->rng, BATCH, TRIAL_CONTEXT);
    return gr_cross_entropy(gr_gpt_forward(t->gpt, b.inputs), b.targets);
}

void trial_step(trial *t) {
    gr_tensor *loss = trial_loss(t);
    const double value = gr_item(loss);
    gr_backward(loss);
    const double norm = gr_clip_grad_norm(t->c, 0.5);
    gr_adamw_step(t->adamw, 1e-2);
    gr_zero_grad(t->c);
    gr_context_reset(t->c);
    t->bits = hash_bytes(hash_bytes(t->bits, &value, sizeof value), &norm, sizeof norm);
}

/* -- Fault after fault --------------------------------------------------------------------------------------------- */

/* What a run leaves behind. */
typedef struct trace {
    uint64_t bits, weights, files;
} trace;

static trace trace_of(const trial *t) { return (trace){t->bits, weights_of(t), directory_bits()}; }
static bool same(trace a, trace b) { return a.bits == b.bits && a.weights == b.weights && a.files == b.files; }

static trial begin(const work *w) {
    trial t = {
        .work = w, .rng = gr_rng_seed(7), .letters = gr_tokenizer_chars((const uint8_t *)"abcdefg", TRIAL_VOCAB)};
    t.out = tmpfile();
    ck_assert_ptr_nonnull(t.out);
    w->begin(&t);
    ck_assert_msg(!t.c || gr_ok(t.c), "%s: %s", w->name, gr_error_message(t.c));
    return t;
}

static void end(trial *t) {
    gr_error_message(t->c);
    gr_context_free(t->c);
    fclose(t->out);
}

static void recover(trial *t) {
    gr_error_clear(t->c);
    gr_zero_grad(t->c);
    gr_context_reset(t->c);
    rewind(t->out);
    ck_assert_int_eq(ftruncate(fileno(t->out), 0), 0);
}

#define HOLDS(condition) \
    if (!(condition))    \
    ck_abort_msg("%s, fault %d: %s does not hold (\"%s\")", w->name, f.at, #condition, gr_error_message(t.c))

/* False: the fault has not come. */
static bool one_fault(const work *w, failure f, const char *const words[2], trace wanted, outcome *sum) {
    trial t = begin(w);
    gr_gpt *gpt = t.gpt; /* the work may make one */
    const generators drawn = generators_of(t.rng, gpt);
    const trace before = trace_of(&t);
    const int open = open_files();
    faults_begin(f);
    w->run(&t);
    const bool came = faults_end(), error = !gr_ok(t.c);
    sum->faults += came;
    sum->errors += error;
    if (error) {
        const char *message = gr_error_message(t.c);
        HOLDS(came && contains(message, words[0]) && contains(message, words[1]));
        const trace after = trace_of(&t);
        HOLDS(after.weights == before.weights || !gpt);
        HOLDS(after.files == before.files || after.files == wanted.files);
        HOLDS(open_files() == open || open_files() == open + w->keeps);
        recover(&t);
        put_back(drawn, &t.rng, gpt);
        t.bits = before.bits;
        w->run(&t);
        HOLDS(gr_ok(t.c));
    }
    HOLDS(same(trace_of(&t), wanted));
    end(&t);
    return came;
}

outcome every_fault(const work *w, failure f, const char *const words[2]) {
    outcome sum = {0, 0};
    trial t = begin(w);
    w->run(&t);
    ck_assert_msg(gr_ok(t.c), "%s: %s", w->name, gr_error_message(t.c));
    const trace wanted = trace_of(&t);
    end(&t);
    const int open = open_files();
    for (; one_fault(w, f, words, wanted, &sum);) f.at++;
    ck_assert_int_eq(open_files(), open);
    if (getenv("FAULT_COUNTS")) printf("%d faults of %s\n", sum.faults, w->name);
    return sum;
}
