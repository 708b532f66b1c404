/* Training as a whole: a loss curve exact to the last bit, errors in the middle of a step, memory, and a model that
 * learns what only attention can find. */
#include "nn_support.h"

#include "tensor/kernels/kernels.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* -- The training loop --------------------------------------------------------------------------------------------- */

static const char rhyme[] = "One step is a little thing,\n"
                            "two steps are the start of a walk,\n"
                            "ten steps, and the birds that sing\n"
                            "have stopped to hear the gravel talk.\n"
                            "Whoever counts them one by one\n"
                            "will find the top before the sun.\n"
                            "So take the first, and do not mind\n"
                            "how many more are still behind.\n";

enum { STEPS = 20, BATCH = 4, TIME = LEARNER_TIME };

static learner begin(double dropout) { return new_learner(gr_context_new(), rhyme, sizeof rhyme - 1, dropout, 1337); }

/* Where a step may go wrong. */
typedef enum trouble { NONE, BEFORE_FORWARD, BEFORE_BACKWARD, BEFORE_UPDATE } trouble;

static void make_trouble(learner *r, bool now) {
    if (now) gr_add(r->gpt->wte.weight, r->gpt->wpe.weight); /* shapes that do not fit */
}

/* One step up to, and without, the reset; its loss, NaN after an error. */
static double step(learner *r, int number, trouble when) {
    gr_batch batch = gr_corpus_batch(r->corpus, GR_TRAIN, &r->rng, BATCH, TIME);
    make_trouble(r, when == BEFORE_FORWARD);
    gr_tensor *loss = gr_cross_entropy(gr_gpt_forward(r->gpt, batch.inputs), batch.targets);
    const double value = gr_is_inert(loss) ? (double)NAN : gr_item(loss);
    make_trouble(r, when == BEFORE_BACKWARD);
    ck_assert(gr_backward(loss) == gr_ok(r->c));
    gr_clip_grad_norm(r->c, 1.0);
    make_trouble(r, when == BEFORE_UPDATE);
    const gr_cosine_config rate = {.peak = 1e-2, .warmup = 5, .total = STEPS};
    ck_assert(gr_adamw_step(r->adamw, gr_cosine(number, rate)) == (when == NONE));
    gr_zero_grad(r->c);
    return value;
}

/* -- The same bits everywhere -------------------------------------------------------------------------------------- */

static const struct {
    const char *isa; /* NULL: the best of this machine */
    int threads;
} place[] = {{NULL, 1}, {NULL, 2}, {NULL, 3}, {"reference", 3}};
enum { PLACES = sizeof place / sizeof *place };

/* The losses, and at the end the sum of all weights. */
static void curve(const char *isa, int threads, double number[STEPS + 1]) {
    if (isa) setenv("GRADUS_ISA", isa, 1);
    use_threads(threads);
    learner r = begin(0.1);
    for (int i = 0; i < STEPS; i++) {
        number[i] = step(&r, i, NONE);
        gr_context_reset(r.c);
    }
    ck_assert_int_eq(gr_context_report(r.c), 0);
    number[STEPS] = 0;
    for (int k = 0; k < gr_parameter_count(r.c); k++) {
        gr_tensor *w = gr_parameter_at(r.c, k);
        for (int64_t i = 0; i < gr_numel(w); i++) number[STEPS] += (double)gr_data(w)[i];
    }
    gr_context_free(r.c);
}

/* tests/golden.txt has such a curve for every machine. */
TEST(the_loss_curve_is_the_same_for_any_threads_and_instruction_set) {
    double found[STEPS + 1], wanted[STEPS + 1];
    const bool exact = gr_kernels_select(gr_context_isa(ctx))->exact;
    curve(place[_i].isa, place[_i].threads, found);
    curve(place[_i].isa || exact ? "reference" : NULL, 1, wanted); /* what is not exact is equal to itself */
    for (int i = 0; i <= STEPS; i++)
        ck_assert_msg(found[i] == wanted[i], "number %d: %a (%.9g), not %a (%.9g)", i, found[i], found[i], wanted[i],
                      wanted[i]);
    ck_assert_double_lt(found[STEPS - 1], found[0] - 0.5);
}

/* As the README writes it, with a file and one check a step. */
TEST(the_training_loop_as_a_user_writes_it_is_this_loop) {
    const char *path = temporary_file(rhyme, sizeof rhyme - 1);
    gr_corpus *corpus = gr_corpus_open(ctx, path, GR_CHARS);
    unlink(path);
    gr_gpt *gpt = gr_gpt_new(ctx, (gr_gpt_config){.vocab = gr_corpus_vocab(corpus),
                                                  .context = TIME,
                                                  .layers = 2,
                                                  .heads = 2,
                                                  .width = 32,
                                                  .bias = true,
                                                  .seed = 1337});
    gr_adamw *adamw = gr_adamw_new(ctx, (gr_adamw_config){.weight_decay = 0.1});
    gr_rng random = gr_rng_seed(1337);

    for (int i = 0; i < STEPS; i++) {
        gr_batch batch = gr_corpus_batch(corpus, GR_TRAIN, &random, BATCH, TIME);
        gr_tensor *logits = gr_gpt_forward(gpt, batch.inputs);
        gr_tensor *loss = gr_cross_entropy(logits, batch.targets);
        if (!gr_backward(loss)) break;
        gr_clip_grad_norm(ctx, 1.0);
        gr_adamw_step(adamw, gr_cosine(i, (gr_cosine_config){.peak = 1e-2, .warmup = 5, .total = STEPS}));
        gr_zero_grad(ctx);
        gr_context_reset(ctx);
    }
    ck_assert_int_eq(gr_context_report(ctx), 0);

    learner r = begin(0);
    for (int i = 0; i < STEPS; i++) step(&r, i, NONE), gr_context_reset(r.c);
    ck_assert(same_tensors(snapshot(ctx), snapshot(r.c)));
    gr_context_free(r.c);
}

/* -- Within a step ------------------------------------------------------------------------------------------------- */

TEST(after_the_second_step_memory_stays_as_it_is) {
    learner r = begin(0.1);
    size_t first_end = 0, first_start = 0;
    for (int i = 0; i < 10; i++) {
        step(&r, i, NONE);
        const size_t end = gr_context_bytes(r.c);
        gr_context_reset(r.c);
        const size_t start = gr_context_bytes(r.c);
        if (i == 1) first_end = end, first_start = start;
        if (i > 1) ck_assert(end == first_end && start == first_start && start < end);
    }
    gr_context_free(r.c);
}

/* A run in which each step first fails there, is given up and made again. */
static gr_tensor *after_trouble(learner *r, trouble when) {
    *r = begin(0);
    for (int i = 0; i < 5; i++) {
        const gr_rng before = r->rng;
        if (when != NONE) {
            step(r, i, when);
            ck_assert(contains(gr_error_message(r->c), "add: transformer.wte.weight"));
            gr_error_clear(r->c);
            gr_zero_grad(r->c);
            gr_context_reset(r->c);
            r->rng = before;
        }
        step(r, i, NONE);
        gr_context_reset(r->c);
    }
    return snapshot(r->c);
}

TEST(an_error_in_the_middle_of_a_step_leaves_no_trace) {
    learner smooth, rough;
    gr_tensor *wanted = after_trouble(&smooth, NONE);
    for (trouble when = BEFORE_FORWARD; when <= BEFORE_UPDATE; when++) {
        ck_assert(same_tensors(wanted, after_trouble(&rough, when)));
        gr_context_free(rough.c);
    }
    gr_context_free(smooth.c);
}

/* -- Learning a rule ----------------------------------------------------------------------------------------------- */

/* "Tamo whispered and Tamo sang.": the name of the first clause returns in the second. Its letters are the tokens that
 * the rule determines; between the two names there are 9 to 15 others. Of 32 * 32 names, 128 are never seen in
 * training. */
enum { SYLLABLES = 32, NAME = 4, MARGIN = 5, LINE = 29, LINES = 20 };
static const char consonants[] = "bdkmnrst", vowels[] = "aiou";
static const char *const first_verb[] = {"ran", "fell", "slept", "danced", "whispered"};
static const char *const second_verb[] = {"sat", "hid", "sang"};
enum { FIRST_VERBS = sizeof first_verb / sizeof *first_verb, SECOND_VERBS = sizeof second_verb / sizeof *second_verb };

static bool is_unseen(uint64_t a, uint64_t b) { return (7 * a + 3 * b) % 8 == 0; } /* 4 of 32 b for every a */

static gr_tokenizer alphabet(void) {
    static const char all[] = "abcdefghijklmnopqrstuvwxyzBDKMNRST .\n";
    return gr_tokenizer_chars((const uint8_t *)all, sizeof all - 1);
}

/* One line as a row of inputs and targets; where the name is foretold, determined is true. */
typedef struct rows {
    int32_t inputs[LINES * LINE], targets[LINES * LINE];
    bool determined[LINES * LINE];
} rows;

static void write_row(rows *r, int row, uint64_t a, uint64_t b, const char *verb, const char *last) {
    const gr_tokenizer t = alphabet();
    const char first = (char)(consonants[a / 4] - 'a' + 'A');
    const char name[NAME + 1] = {first, vowels[a % 4], consonants[b / 4], vowels[b % 4], '\0'};
    char line[64];
    const int length = snprintf(line, sizeof line, "%s %s and %s %s.\n", name, verb, name, last);
    const int second = NAME + 1 + (int)strlen(verb) + MARGIN; /* where the name returns */
    for (int i = 0; i < LINE; i++) {
        const int at = row * LINE + i, next = i + 1;
        r->inputs[at] = t.id[i < length ? (uint8_t)line[i] : '\n'];
        r->targets[at] = next < length ? t.id[(uint8_t)line[next]] : GR_IGNORE;
        r->determined[at] = next >= second && next < second + NAME;
    }
}

static void draw_rows(rows *r, gr_rng *g) {
    for (int row = 0; row < LINES; row++) {
        uint64_t a, b;
        do a = gr_rng_below(g, SYLLABLES), b = gr_rng_below(g, SYLLABLES);
        while (is_unseen(a, b));
        const char *verb = first_verb[gr_rng_below(g, FIRST_VERBS)];
        write_row(r, row, a, b, verb, second_verb[gr_rng_below(g, SECOND_VERBS)]);
    }
}

typedef struct score {
    int right, all;
} score;

static void count_right(gr_gpt *gpt, const rows *r, score *s) {
    gr_no_grad_begin(gpt->ctx);
    gr_tensor *logits = gr_gpt_forward(gpt, (gr_tokens){r->inputs, LINES, LINE}); /* (LINES, LINE, V) */
    gr_tensor *each = gr_reshape(logits, GR_SHAPE(LINES * LINE, -1));
    for (int i = 0; i < LINES * LINE; i++) {
        if (!r->determined[i]) continue;
        s->right += gr_sample(gr_select(each, 0, i), (gr_sampling){0}, NULL) == r->targets[i];
        s->all++;
    }
    gr_no_grad_end(gpt->ctx);
    gr_context_reset(gpt->ctx);
}

/* Every unseen name with every first verb: 640 lines, a multiple of LINES. */
static score examine(gr_gpt *gpt) {
    static rows r;
    score s = {0, 0};
    int line = 0;
    for (uint64_t a = 0; a < SYLLABLES; a++)
        for (uint64_t b = 0; b < SYLLABLES; b++)
            for (int verb = 0; verb < FIRST_VERBS && is_unseen(a, b); verb++) {
                write_row(&r, line++, a, b, first_verb[verb], second_verb[0]);
                if (line == LINES) count_right(gpt, &r, &s), line = 0;
            }
    return s;
}

static score learn(uint64_t seed, int steps) {
    static rows r;
    gr_rng g = gr_rng_stream(gr_rng_seed(seed), GR_STREAM_USER);
    gr_gpt_config config = {
        .vocab = alphabet().size, .context = LINE, .layers = 2, .heads = 4, .width = 48, .seed = seed};
    gr_gpt *gpt = gr_gpt_new(ctx, config);
    gr_adamw *adamw = gr_adamw_new(ctx, (gr_adamw_config){.weight_decay = 0.1, .beta2 = 0.99});
    for (int i = 0; i < steps; i++) {
        draw_rows(&r, &g);
        gr_tensor *logits = gr_gpt_forward(gpt, (gr_tokens){r.inputs, LINES, LINE});
        if (!gr_backward(gr_cross_entropy(logits, (gr_tokens){r.targets, LINES, LINE}))) break;
        gr_clip_grad_norm(ctx, 1.0);
        gr_adamw_step(adamw, gr_cosine(i, (gr_cosine_config){.peak = 1e-2, .warmup = 20, .total = steps}));
        gr_zero_grad(ctx);
        gr_context_reset(ctx);
    }
    ck_assert_int_eq(gr_context_report(ctx), 0);
    return examine(gpt);
}

/* The address sanitizer is some hundred times slower: there a few steps, which have the same code, must do. */
#ifdef __SANITIZE_ADDRESS__
enum { RULE_STEPS = 3, SANITIZED = true };
#else
enum { RULE_STEPS = 700, SANITIZED = false };
#endif

/* Seeds 1 to 8 get all 2560 letters right, in both precisions; without looking back it is one in four to eight. */
TEST(a_model_learns_to_look_back_for_a_name_it_has_never_seen) {
    use_threads(1);
    const score s = learn(1, RULE_STEPS);
    ck_assert_int_eq(s.all, 128 * FIRST_VERBS * NAME);
    ck_assert_msg(s.right >= 0.99 * s.all || SANITIZED, "%d of %d letters", s.right, s.all);
}

static void open_context(void) { ctx = gr_context_new(); }
static void close_context(void) { gr_context_free(ctx); }

Suite *training_suite(void) {
    Suite *suite = suite_create("training");
    add_rows(suite, "curve", the_loss_curve_is_the_same_for_any_threads_and_instruction_set, PLACES);
    GROUP(suite, "steps", the_training_loop_as_a_user_writes_it_is_this_loop,
          after_the_second_step_memory_stays_as_it_is, an_error_in_the_middle_of_a_step_leaves_no_trace);
    TCase *slow = tcase_create("rule");
    tcase_set_timeout(slow, 300);
    tcase_set_tags(slow, "slow");
    tcase_add_checked_fixture(slow, open_context, close_context);
    tcase_add_test(slow, a_model_learns_to_look_back_for_a_name_it_has_never_seen);
    suite_add_tcase(suite, slow);
    return suite;
}
