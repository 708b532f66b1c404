/* Lesson 10: a language model is trained on a book of tales, and writes. */
#include <gradus.h>

#include <string.h>

enum {
    T = 64,
    BATCH = 12,
    LAYERS = 2,
    HEADS = 4,
    C = 64,
    STEPS = 1500,
    WARMUP = 20,
    SHOWN = 250,
    TESTS = 8,
    SEED = 10
};
static const char *const corpus_path = "examples/corpora/tales.txt", prompt[] = "There was once a ";

static double mean_loss(gr_gpt *gpt, gr_corpus *corpus) {
    double sum = 0;
    gr_rng rng = gr_rng_seed(SEED + 1); /* the same windows every time */
    for (int i = 0; i < TESTS; i++, gr_context_reset(gpt->ctx)) {
        gr_batch b = gr_corpus_batch(corpus, GR_VALIDATION, &rng, BATCH, T);
        sum += gr_item(gr_cross_entropy(gr_gpt_forward(gpt, b.inputs), b.targets));
    }
    return sum / TESTS;
}

static void train(gr_gpt *gpt, gr_corpus *corpus) {
    gr_context *ctx = gpt->ctx;
    gr_adamw *adamw = gr_adamw_new(ctx, (gr_adamw_config){.weight_decay = 0.1});
    gr_rng rng = gr_rng_seed(SEED);
    printf("step   rate     training  validation\n");
    for (int step = 0; step <= STEPS; step++) {
        const double rate = gr_cosine(step, (gr_cosine_config){.peak = 5e-3, .warmup = WARMUP, .total = STEPS});
        const double validation = step % SHOWN == 0 ? mean_loss(gpt, corpus) : 0;
        gr_batch batch = gr_corpus_batch(corpus, GR_TRAIN, &rng, BATCH, T);
        gr_tensor *loss = gr_cross_entropy(gr_gpt_forward(gpt, batch.inputs), batch.targets);
        if (!gr_backward(loss)) break;
        if (step % SHOWN == 0) printf("%4d   %.5f  %.3f     %.3f\n", step, rate, gr_item(loss), validation);
        gr_clip_grad_norm(ctx, 1);
        gr_adamw_step(adamw, rate);
        gr_zero_grad(ctx);
        gr_context_reset(ctx);
    }
}

static void write(gr_gpt *gpt, const gr_tokenizer *tokens, int32_t *ids, double temperature, int total) {
    gr_rng rng = gr_rng_seed(SEED);
    const int given = (int)strlen(prompt);
    gr_encode(gpt->ctx, tokens, (const uint8_t *)prompt, (size_t)given, ids);
    gr_gpt_generate(gpt, ids, given, (gr_generation){.total = total, .how = {.temperature = temperature}, .rng = &rng});
    printf("%.1f: ", temperature);
    for (int i = 0; i < total && gr_ok(gpt->ctx); i++)
        tokens->byte[ids[i]] == '\n' ? printf("\\n") : putchar(tokens->byte[ids[i]]);
    printf("\n");
}

int main(void) {
    int32_t ids[2 * T];
    gr_context *ctx = gr_context_new();
    gr_corpus *corpus = gr_corpus_open(ctx, corpus_path, GR_CHARS);
    gr_gpt *gpt = gr_gpt_new(ctx, (gr_gpt_config){.vocab = gr_corpus_vocab(corpus),
                                                  .context = T,
                                                  .layers = LAYERS,
                                                  .heads = HEADS,
                                                  .width = C,
                                                  .seed = SEED});
    train(gpt, corpus);
    printf("counting pairs of letters reaches %.3f\n", gr_corpus_bigram_loss(corpus, GR_VALIDATION));
    for (int i = 0; i < 4; i++) write(gpt, gr_corpus_tokenizer(corpus), ids, 0.5 * i, 2 * T);
    const int status = gr_context_report(ctx);
    gr_context_free(ctx);
    return status;
}
