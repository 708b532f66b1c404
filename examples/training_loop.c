/* The training loop, whole: a text file in, a falling loss out.
 *
 *   build/training_loop [FILE]        default: examples/corpora/tales.txt */
#include <gradus.h>

int main(int argc, char **argv) {
    gr_context *ctx = gr_context_new();
    gr_corpus *corpus = gr_corpus_open(ctx, argc > 1 ? argv[1] : "examples/corpora/tales.txt", GR_CHARS);
    gr_gpt *gpt = gr_gpt_new(
        ctx, (gr_gpt_config){
                 .vocab = gr_corpus_vocab(corpus), .context = 64, .layers = 2, .heads = 4, .width = 64, .seed = 1337});
    gr_adamw *adamw = gr_adamw_new(ctx, (gr_adamw_config){.weight_decay = 0.1});
    gr_rng rng = gr_rng_seed(1337);

    for (int step = 0; step < 300; step++) {
        gr_batch batch = gr_corpus_batch(corpus, GR_TRAIN, &rng, 12, 64); /* ids (B, T), (B, T) */
        gr_tensor *logits = gr_gpt_forward(gpt, batch.inputs);            /* (B, T, V) */
        gr_tensor *loss = gr_cross_entropy(logits, batch.targets);        /* () */
        if (!gr_backward(loss)) break;                                    /* the one check */
        if (step % 50 == 0) printf("step %3d  loss %.3f\n", step, gr_item(loss));
        gr_clip_grad_norm(ctx, 1.0);
        gr_adamw_step(adamw, gr_cosine(step, (gr_cosine_config){.peak = 3e-3, .warmup = 20, .total = 300}));
        gr_zero_grad(ctx);
        gr_context_reset(ctx); /* ends the step */
    }
    int status = gr_context_report(ctx); /* 0, or the error printed */
    gr_context_free(ctx);
    return status;
}
