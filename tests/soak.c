/* soak [STEPS [ERRORS]]: a long training, 10,000 steps and 1,000 errors if nothing is said.
 *
 * The training is done twice. In the second, evenly spaced steps fail half-way, each in one of several ways; each is
 * then forgotten and done again. Demanded: every loss is finite; the bytes of the context, and where glibc tells them
 * those of the heap, are after every step what they were after the third; as many files are open at the end as in the
 * beginning; both runs have the same losses and weights, bit for bit. Every hundredth step also writes a checkpoint and
 * a text. */
#include "again.h"
#include "autograd/tape.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __GLIBC__
#    include <malloc.h>
#endif

enum { STEADY = 3, LAYERS = 2, BATCH = 4, TIME = 16, TEXT_BYTES = 3000, MOST_STEPS = 1000000, SIDE_WORK = 100 };

static char text_path[] = "/tmp/gradus-soak-XXXXXX", checkpoint_path[sizeof text_path + sizeof ".safetensors"];

/* -- What is watched ----------------------------------------------------------------------------------------------- */

/* What malloc has given out, where it can tell. */
#if defined __GLIBC__ && 100 * __GLIBC__ + __GLIBC_MINOR__ >= 233
static const char watched[] = "the context or on the heap";
static size_t heap_bytes(void) { return mallinfo2().uordblks; }
#else
static const char watched[] = "the context";
static size_t heap_bytes(void) { return 0; }
#endif

static void clean_up(void) {
    unlink(text_path);
    unlink(checkpoint_path);
}

static void demand(bool holds, const char *format, ...) GR_PRINTF(2, 3);
static void demand(bool holds, const char *format, ...) {
    if (holds) return;
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    clean_up();
    exit(EXIT_FAILURE);
}

/* -- The training -------------------------------------------------------------------------------------------------- */

typedef struct training {
    gr_context *ctx;
    gr_corpus *corpus;
    gr_gpt *gpt;
    gr_adamw *adamw;
    gr_rng rng;
} training;

static training begin(void) {
    training t = {.ctx = gr_context_new(), .rng = gr_rng_seed(1337)};
    t.corpus = gr_corpus_open(t.ctx, text_path, GR_CHARS);
    t.gpt = gr_gpt_new(t.ctx, (gr_gpt_config){.vocab = gr_corpus_vocab(t.corpus),
                                              .context = TIME,
                                              .layers = LAYERS,
                                              .heads = 2,
                                              .width = 16,
                                              .dropout = 0.1,
                                              .seed = 1337});
    t.adamw = gr_adamw_new(t.ctx, (gr_adamw_config){.weight_decay = 0.1});
    return t;
}

/* -- Where a step fails -------------------------------------------------------------------------------------------- */

typedef enum fault { NO_FAULT, BAD_TARGET, BAD_SHAPE, EARLY_BACKWARD, LATE_BACKWARD, BAD_RATE, FAULTS } fault;

static void give_up(gr_node *n) { gr_fail(n->out->ctx, "soak", "backward fails on purpose"); }
static const gr_op giving_up = {.name = "giving_up", .operands = 1, .backward = give_up};

/* 0 * x, whose backward fails. */
static gr_tensor *trap(gr_tensor *x) {
    gr_tensor *zero = gr_scale(gr_sum(x, GR_ALL), 0);
    return gr_record(&giving_up, zero, 1, &zero, NULL, 0);
}

static const int32_t no_targets[BATCH * TIME] = {-1};

/* False after an error. *loss is set when the forward pass went through. */
static bool step(training *t, double lr, fault way, double *loss) {
    gr_batch batch = gr_corpus_batch(t->corpus, GR_TRAIN, &t->rng, BATCH, TIME);
    if (way == BAD_TARGET) batch.targets.ids = no_targets;
    gr_tensor *first = way == LATE_BACKWARD ? trap(gr_parameter_at(t->ctx, 0)) : gr_scalar(t->ctx, 0);
    gr_tensor *logits = gr_gpt_forward(t->gpt, batch.inputs);
    if (way == BAD_SHAPE) logits = gr_add(logits, gr_zeros(t->ctx, GR_SHAPE(TIME + 1, 1)));
    gr_tensor *total = gr_add(gr_cross_entropy(logits, batch.targets), first);
    if (way == EARLY_BACKWARD) total = gr_add(total, trap(logits));
    if (!gr_backward(total)) return false;
    *loss = gr_item(total);
    gr_clip_grad_norm(t->ctx, 1.0);
    return gr_adamw_step(t->adamw, way == BAD_RATE ? -1 : lr);
}

static void end_step(training *t) {
    gr_zero_grad(t->ctx);
    gr_context_reset(t->ctx);
}

static void fail_once(training *t, double lr, fault way, int at) {
    const generators before = generators_of(t->rng, t->gpt);
    double loss = 0;
    demand(!step(t, lr, way, &loss), "step %d: fault %d went unnoticed", at, way);
    demand(*gr_error_message(t->ctx), "step %d: fault %d without a message", at, way);
    gr_error_clear(t->ctx);
    end_step(t);
    put_back(before, &t->rng, t->gpt);
}

/* -- The run ------------------------------------------------------------------------------------------------------- */

static void work_aside(training *t) {
    int32_t ids[2 * TIME] = {0};
    demand(gr_gpt_save(t->gpt, gr_corpus_tokenizer(t->corpus), checkpoint_path), "%s", gr_error_message(t->ctx));
    demand(gr_gpt_generate(t->gpt, ids, 1, (gr_generation){.total = 2 * TIME}), "%s", gr_error_message(t->ctx));
}

static void run(int steps, int errors, double *losses, gr_real *weights) {
    training t = begin();
    size_t context = 0, heap = 0;
    int failed = 0;
    for (int i = 0; i < steps; i++) {
        const double lr = gr_cosine(i, (gr_cosine_config){.peak = 1e-2, .warmup = 10, .total = steps});
        if (failed < (int64_t)(i + 1) * errors / steps) {
            fail_once(&t, lr, (fault)(1 + failed % (FAULTS - 1)), i);
            failed++;
        }
        demand(step(&t, lr, NO_FAULT, &losses[i]), "step %d: %s", i, gr_error_message(t.ctx));
        demand(losses[i] - losses[i] == 0, "step %d: the loss is %g", i, losses[i]);
        const size_t now = gr_context_bytes(t.ctx);
        if (i < STEADY || i % SIDE_WORK == 0) work_aside(&t);
        end_step(&t);
        if (i + 1 == STEADY) context = now, heap = heap_bytes();
        demand(i < STEADY || now == context, "step %d: %zu bytes in the context, %zu after the third", i, now, context);
        demand(i < STEADY || heap_bytes() == heap, "step %d: %zu bytes on the heap, %zu after the third", i,
               heap_bytes(), heap);
    }
    for (int k = 0; k < gr_parameter_count(t.ctx); k++) {
        gr_tensor *w = gr_parameter_at(t.ctx, k);
        gr_to_array(w, weights);
        weights += gr_numel(w);
    }
    demand(gr_context_report(t.ctx) == 0, "the run ends with an error");
    gr_context_free(t.ctx);
}

/* After each letter one of two others. */
static void write_text(void) {
    uint8_t text[TEXT_BYTES];
    gr_rng rng = gr_rng_seed(7);
    uint64_t letter = 0;
    for (int i = 0; i < TEXT_BYTES; i++) {
        letter = (5 * letter + gr_rng_below(&rng, 2)) % 16;
        text[i] = (uint8_t)('a' + letter);
    }
    const int file = mkstemp(text_path);
    demand(file >= 0 && write(file, text, sizeof text) == sizeof text && close(file) == 0, "%s: %s", text_path,
           strerror(errno));
    snprintf(checkpoint_path, sizeof checkpoint_path, "%s.safetensors", text_path);
}

static int number(const char *text, int most) {
    char *end;
    const long n = strtol(text, &end, 10);
    demand(*text && !*end && n >= 0 && n <= most, "soak [STEPS [ERRORS]]: %s is not a number from 0 to %d", text, most);
    return (int)n;
}

int main(int argc, char **argv) {
    const int steps = argc > 1 ? number(argv[1], MOST_STEPS) : 10000;
    const int errors = argc > 2 ? number(argv[2], steps) : steps / 10;
    write_text();
    training t = begin();
    const size_t numbers = (size_t)gr_parameter_numel(t.ctx);
    gr_context_free(t.ctx);
    double *losses = calloc(2 * (size_t)steps + 1, sizeof *losses);
    gr_real *weights = calloc(2 * numbers, sizeof *weights);
    demand(losses && weights, "out of memory");
    const int files = open_files();
    run(steps, 0, losses, weights);
    run(steps, errors, losses + steps, weights + numbers);
    demand(open_files() == files, "%d files open, %d in the beginning", open_files(), files);
    for (int i = 0; i < steps; i++)
        demand(losses[i] == losses[steps + i], "step %d: loss %a, with errors %a", i, losses[i], losses[steps + i]);
    demand(memcmp(weights, weights + numbers, numbers * sizeof *weights) == 0, "the weights differ at the end");
    clean_up();
    printf("%s: %d steps, %d errors half-way, the same bits; loss %.3f to %.3f; no byte more in %s after step %d\n",
           GR_REAL_NAME, steps, errors, steps ? losses[0] : 0, steps ? losses[steps - 1] : 0, watched, STEADY);
    free(losses);
    free(weights);
    return EXIT_SUCCESS;
}
