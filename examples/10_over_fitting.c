/* Lesson 10, third part: over-fitting. One model, larger than its text needs, on a little text, on the same text with
 * dropout, and on 33 times as much; the validation text is the same. */
#include <gradus.h>

#include "plot.h"

enum { T = 64, BATCH = 8, LAYERS = 2, HEADS = 4, C = 128, STEPS = 800, WARMUP = 20, EVERY = 100, SEED = 10 };
enum { LITTLE = 3000, TESTS = 4, POINTS = STEPS / EVERY + 1, RUNS = 3, TRAINING = 0, VALIDATION };
static const char *const corpus_path = "examples/corpora/tales.txt";
static const struct {
    const char *name;
    size_t letters; /* 0: all */
    double dropout;
} runs[RUNS] = {{"3 kB", LITTLE, 0}, {"3 kB, dropout 0.2", LITTLE, 0.2}, {"all, 100 kB", 0, 0}};

typedef struct text {
    int32_t *ids;
    size_t size;
} text;

/* The first `size` letters of a part, or all, as ids. */
static text read_part(gr_corpus *corpus, gr_context *ctx, gr_part part, size_t size) {
    if (size == 0) size = gr_corpus_size(corpus, part);
    uint8_t *bytes = malloc(size);
    text t = {malloc(size * sizeof *t.ids), size};
    if (!bytes || !t.ids) gr_fail(ctx, "lesson", "no memory for %zu letters", size);
    if (gr_ok(ctx) && gr_corpus_read(corpus, part, 0, size, bytes))
        gr_encode(ctx, gr_corpus_tokenizer(corpus), bytes, size, t.ids);
    free(bytes);
    return t;
}

/* The mean loss of a batch of random windows: each letter from those before it. */
static gr_tensor *loss_of(gr_gpt *gpt, text t, gr_rng *rng) {
    static int32_t in[BATCH * T], target[BATCH * T];
    for (int b = 0; b < BATCH; b++) {
        const int32_t *from = t.ids + gr_rng_below(rng, t.size - T);
        memcpy(in + b * T, from, T * sizeof *in);
        memcpy(target + b * T, from + 1, T * sizeof *in);
    }
    return gr_cross_entropy(gr_gpt_forward(gpt, (gr_tokens){in, BATCH, T}), (gr_tokens){target, BATCH, T});
}

/* Without dropout, over the same windows every time. */
static double measure(gr_gpt *gpt, text t) {
    double sum = 0;
    gr_rng rng = gr_rng_seed(SEED + 1);
    gr_gpt_training(gpt, false);
    for (int i = 0; i < TESTS; i++, gr_context_reset(gpt->ctx)) sum += gr_item(loss_of(gpt, t, &rng)) / TESTS;
    gr_gpt_training(gpt, true);
    return sum;
}

static int train(int run, double loss[POINTS][2]) {
    gr_context *ctx = gr_context_new();
    gr_corpus *corpus = gr_corpus_open(ctx, corpus_path, GR_CHARS);
    const text train = read_part(corpus, ctx, GR_TRAIN, runs[run].letters);
    const text held_out = read_part(corpus, ctx, GR_VALIDATION, 0);
    gr_gpt *gpt = gr_gpt_new(ctx, (gr_gpt_config){.vocab = gr_corpus_vocab(corpus),
                                                  .context = T,
                                                  .layers = LAYERS,
                                                  .heads = HEADS,
                                                  .width = C,
                                                  .dropout = runs[run].dropout,
                                                  .seed = SEED});
    gr_adamw *adamw = gr_adamw_new(ctx, (gr_adamw_config){.weight_decay = 0.1});
    gr_rng rng = gr_rng_seed(SEED);
    for (int step = 0; step <= STEPS && gr_ok(ctx); step++) {
        if (step % EVERY == 0) {
            loss[step / EVERY][TRAINING] = measure(gpt, train);
            loss[step / EVERY][VALIDATION] = measure(gpt, held_out);
        }
        if (!gr_backward(loss_of(gpt, train, &rng))) break;
        gr_clip_grad_norm(ctx, 1);
        gr_adamw_step(adamw, gr_cosine(step, (gr_cosine_config){.peak = 3e-3, .warmup = WARMUP, .total = STEPS}));
        gr_zero_grad(ctx);
        gr_context_reset(ctx);
    }
    const int status = gr_context_report(ctx);
    free(train.ids), free(held_out.ids);
    gr_context_free(ctx);
    return status;
}

int main(int argc, char **argv) {
    static double loss[RUNS][POINTS][2];
    for (int run = 0; run < RUNS; run++)
        if (train(run, loss[run]) != 0) return 1;
    printf("step");
    for (int run = 0; run < RUNS; run++) printf("   %-21s", runs[run].name);
    printf("\n    ");
    for (int run = 0; run < RUNS; run++) printf("   training  validation ");
    for (int i = 0; i < POINTS; i++) {
        printf("\n%4d", i * EVERY);
        for (int run = 0; run < RUNS; run++)
            printf("   %-8.3f  %-11.3f", loss[run][i][TRAINING], loss[run][i][VALIDATION]);
    }
    printf("\n");
    plot p;
    if (!plot_open(&p, argc, argv, "10_over_fitting.svg", 900, 480)) return 0;
    for (int run = 0; run < RUNS; run++, fprintf(p.data, "\n\n"))
        for (int i = 0; i < POINTS; i++)
            fprintf(p.data, "%d\t%.4f\t%.4f\n", i * EVERY, loss[run][i][TRAINING], loss[run][i][VALIDATION]);
    fprintf(p.script,
            "set xlabel 'step'\nset ylabel 'loss, nats per letter'\nset yrange [0:*]\nset key outside\nplot ");
    for (int run = 0; run < RUNS; run++)
        fprintf(p.script,
                "data index %d using 1:3 with linespoints ls %d title '%s', '' index %d using 1:2 with lines ls %d "
                "dt (6,4) title '  training'%s\n",
                run, run + 1, runs[run].name, run, run + 1, run < RUNS - 1 ? ", \\" : "");
    return plot_close(&p) ? 0 : 1;
}
