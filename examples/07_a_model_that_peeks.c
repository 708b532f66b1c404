/* Lesson 7, second part: the same small model trained with the causal mask and without. */
#include <gradus.h>

#include "plot.h"

enum { T = 32, BATCH = 16, C = 32, HEADS = 4, LAYERS = 2, STEPS = 500, WARMUP = 20, TESTS = 16, DRAWN = 60, SEED = 7 };
static const char *const corpus_path = "examples/corpora/names.txt";

typedef struct model {
    gr_embedding_layer token, position;
    gr_block_layer block[LAYERS];
    gr_layernorm_layer norm;
} model;

static model new_model(gr_context *ctx, int64_t vocab, bool causal) {
    gr_rng rng = gr_rng_seed(SEED);
    model m = {.token = gr_embedding_new(ctx, "token", (gr_embedding_config){vocab, C, 0.1}, &rng),
               .position = gr_embedding_new(ctx, "position", (gr_embedding_config){T, C, 0.1}, &rng),
               .norm = gr_layernorm_new(ctx, "norm", C, true)};
    for (int i = 0; i < LAYERS; i++) /* the one difference: .causal */
        m.block[i] = gr_block_new(
            ctx, "block", (gr_multihead_config){.width = C, .heads = HEADS, .causal = causal, .bias = true}, &rng);
    return m;
}

static gr_tensor *forward(model *m, gr_tokens ids) {
    gr_tensor *x = gr_embedding_forward(&m->token, ids);            /* (B, T, C) */
    x = gr_add(x, gr_slice(m->position.weight, 0, 0, ids.time, 1)); /* (B, T, C) */
    for (int i = 0; i < LAYERS; i++) x = gr_block_forward(&m->block[i], x, NULL).output;
    return gr_linear(gr_layernorm_forward(&m->norm, x), m->token.weight, NULL); /* (B, T, V) */
}

/* Writes on from "Novi ": each letter from the logits of the last place. */
static void sample(gr_context *ctx, model *m, const gr_tokenizer *tokens) {
    static const char prompt[] = "Novi ";
    int32_t ids[DRAWN + sizeof prompt] = {0}, count = (int32_t)strlen(prompt);
    gr_rng rng = gr_rng_seed(SEED);
    if (!gr_encode(ctx, tokens, (const uint8_t *)prompt, (size_t)count, ids)) return;
    for (; count < DRAWN && gr_ok(ctx); count++, gr_context_reset(ctx)) {
        const int from = count > T ? count - T : 0;
        gr_tensor *logits = forward(m, (gr_tokens){ids + from, 1, count - from});            /* (1, t, V) */
        logits = gr_reshape(gr_slice(logits, 1, count - from - 1, GR_END, 1), GR_SHAPE(-1)); /* (V) */
        ids[count] = (int32_t)gr_sample(logits, (gr_sampling){.temperature = 0.5}, &rng);
    }
    printf("  writes: ");
    for (int i = 0; i < count && gr_ok(ctx); i++)
        tokens->byte[ids[i]] == '\n' ? printf("\\n") : putchar(tokens->byte[ids[i]]);
    printf("\n");
}

/* Validation loss, over all places of the windows, and over their last, after which there is nothing to look at. */
static void test(gr_context *ctx, model *m, gr_corpus *corpus) {
    double all = 0, last = 0;
    gr_rng rng = gr_rng_seed(SEED + 1);
    for (int i = 0; i < TESTS; i++, gr_context_reset(ctx)) {
        gr_batch b = gr_corpus_batch(corpus, GR_VALIDATION, &rng, BATCH, T);
        int32_t end[BATCH * T];
        if (!gr_ok(ctx)) return;
        for (int n = 0; n < BATCH * T; n++) end[n] = n % T == T - 1 ? b.targets.ids[n] : GR_IGNORE;
        gr_tensor *logits = forward(m, b.inputs); /* (B, T, V) */
        all += gr_item(gr_cross_entropy(logits, b.targets)) / TESTS;
        last += gr_item(gr_cross_entropy(logits, (gr_tokens){end, BATCH, T})) / TESTS;
    }
    printf("  loss %.2f; of the last place alone %.2f\n", all, last);
}

static int run(bool causal, plot *p, bool drawing) {
    gr_context *ctx = gr_context_new();
    gr_corpus *corpus = gr_corpus_open(ctx, corpus_path, GR_CHARS);
    model m = new_model(ctx, gr_corpus_vocab(corpus), causal);
    gr_adamw *adamw = gr_adamw_new(ctx, (gr_adamw_config){.weight_decay = 0.1});
    gr_rng rng = gr_rng_seed(SEED);
    for (int step = 0; step < STEPS; step++) {
        gr_batch batch = gr_corpus_batch(corpus, GR_TRAIN, &rng, BATCH, T);
        gr_tensor *loss = gr_cross_entropy(forward(&m, batch.inputs), batch.targets);
        if (!gr_backward(loss)) break;
        if (drawing && step % 5 == 0) fprintf(p->data, "%d\t%.4f\n", step, gr_item(loss));
        gr_clip_grad_norm(ctx, 1);
        gr_adamw_step(adamw, gr_cosine(step, (gr_cosine_config){.peak = 3e-3, .warmup = WARMUP, .total = STEPS}));
        gr_zero_grad(ctx);
        gr_context_reset(ctx);
    }
    if (drawing) fprintf(p->data, "\n\n");
    printf("%s\n", causal ? "with the causal mask" : "without a mask");
    test(ctx, &m, corpus);
    sample(ctx, &m, gr_corpus_tokenizer(corpus));
    const int status = gr_context_report(ctx);
    gr_context_free(ctx);
    return status;
}

int main(int argc, char **argv) {
    plot p;
    const bool drawing = plot_open(&p, argc, argv, "07_a_model_that_peeks.svg", 800, 380);
    if (drawing)
        fprintf(p.script,
                "set xlabel 'step'\nset ylabel 'training loss, nats per letter'\nset yrange [0:*]\n"
                "plot data index 0 with lines ls 1 title 'causal mask', '' index 1 with lines ls 2 title 'no mask'\n");
    const int status = run(true, &p, drawing) | run(false, &p, drawing);
    return drawing && !plot_close(&p) ? 1 : status;
}
