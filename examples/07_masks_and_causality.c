/* Lesson 7, first part: the causal triangle, padding, and rows that see nothing. */
#include <gradus.h>

enum { WORDS = 6, SIZE = 2, BATCH = 2, SEED = 7 };

/* Three queries, of which the second sees no key: its softmax is 0 / 0 unless somebody has thought of it. */
static void print_blind(gr_context *ctx) {
    gr_rng rng = gr_rng_seed(SEED);
    gr_tensor *q = gr_requires_grad(gr_normal(ctx, GR_SHAPE(3, SIZE), 0, 1, &rng));
    gr_tensor *k = gr_normal(ctx, GR_SHAPE(3, SIZE), 0, 1, &rng), *v = gr_normal(ctx, GR_SHAPE(3, SIZE), 0, 1, &rng);
    gr_tensor *allow = gr_from(ctx, GR_SHAPE(3, 3), (const gr_real[]){1, 0, 0, 0, 0, 0, 1, 1, 1});
    gr_tensor *e = gr_exp(gr_mask_scores(gr_matmul(q, gr_transpose(k, 0, 1)), allow)); /* (3, 3) */
    printf("e^s / sum e^s of row 1: %s\n",
           gr_item(gr_slice(gr_sum(e, GR_AXES(-1)), 0, 1, 2, 1)) > 0 ? "a number" : "0 / 0");
    gr_attended y = gr_scaled_dot_product_attention(q, k, v, allow);
    gr_backward(gr_sum(y.output, GR_ALL));
    gr_print(gr_named(y.weights, "weights"));
    gr_print(gr_named(y.output, "output"));
    gr_print(gr_named(gr_grad(q), "dq"));
    gr_context_reset(ctx);
}

/* What stands in the padding changes nothing, be it NaN: two sequences of 3 and 6 keys in one batch. */
static void print_padding(gr_context *ctx) {
    gr_rng rng = gr_rng_seed(SEED);
    gr_tensor *lengths = gr_from(ctx, GR_SHAPE(BATCH), (const gr_real[]){3, WORDS}), *y[2];
    gr_tensor *q = gr_normal(ctx, GR_SHAPE(BATCH, 1, SIZE), 0, 1, &rng);
    gr_tensor *x = gr_normal(ctx, GR_SHAPE(BATCH, WORDS, SIZE), 0, 1, &rng);
    gr_tensor *allow = gr_mask_matrix(ctx, gr_mask_padding(lengths), GR_SHAPE(BATCH, 1, WORDS)); /* (B, 1, T) */
    gr_print(gr_named(allow, "padding: lengths 3 and 6"));
    for (int i = 0; i < 2; i++) { /* then the same with NaN behind the end of the first */
        y[i] = gr_attention(q, x, x, (gr_attention_options){.mask = gr_mask_padding(lengths)}); /* (B, 1, SIZE) */
        gr_real values[BATCH * WORDS * SIZE];
        if (!gr_to_array(x, values)) return;
        for (int n = 3 * SIZE; n < WORDS * SIZE; n++) values[n] = GR_R(0.0) / (values[n] - values[n]);
        x = gr_from(ctx, GR_SHAPE(BATCH, WORDS, SIZE), values);
    }
    printf("largest change of the output when the padding is NaN: %g\n",
           gr_item(gr_max(gr_abs(gr_sub(y[1], y[0])), GR_ALL)));
    gr_context_reset(ctx);
}

int main(void) {
    gr_context *ctx = gr_context_new();
    printf("causal, %d queries, %d keys\n", WORDS, WORDS);
    gr_mask_print(ctx, gr_mask_causal(), WORDS, WORDS, stdout);
    printf("causal, the last 2 queries only\n");
    gr_mask_print(ctx, gr_mask_causal(), 2, WORDS, stdout);
    print_padding(ctx);
    print_blind(ctx);
    const int status = gr_context_report(ctx);
    gr_context_free(ctx);
    return status;
}
