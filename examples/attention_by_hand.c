/* Attention as a course text writes it, from the ops alone, and its gradient: no layer, no module. */
#include <gradus.h>

#include <math.h>

/* softmax(q k^T / sqrt(d_k)) v with a causal mask; B batch, T time. */
static gr_tensor *attend(const gr_attention_layer *a, gr_tensor *x, gr_tensor *mask) {
    gr_tensor *q = gr_linear_forward(&a->w_q, x);                                                  /* (B, T, d_k) */
    gr_tensor *k = gr_linear_forward(&a->w_k, x);                                                  /* (B, T, d_k) */
    gr_tensor *v = gr_linear_forward(&a->w_v, x);                                                  /* (B, T, d_v) */
    gr_tensor *scores = gr_scale(gr_matmul(q, gr_transpose(k, -2, -1)), 1 / sqrt((double)a->d_k)); /* (B, T, T) */
    gr_tensor *weights = gr_softmax(gr_mask_scores(scores, mask));         /* (B, T, T), rows sum to 1 */
    gr_tensor *output = gr_linear_forward(&a->w_o, gr_matmul(weights, v)); /* (B, T, d_model) */
    gr_print(gr_named(weights, "weights"));
    return output;
}

int main(void) {
    gr_context *ctx = gr_context_new();
    gr_rng rng = gr_rng_seed(1);
    gr_attention_layer a =
        gr_attention_new(ctx, "attention", (gr_attention_config){.d_model = 8, .causal = true}, &rng);
    gr_tensor *x = gr_normal(ctx, GR_SHAPE(1, 4, 8), 0, 1, &rng);    /* (B, T, d_model) */
    gr_tensor *by_hand = attend(&a, x, gr_causal_mask(ctx, 4));      /* (B, T, d_model) */
    gr_tensor *by_module = gr_attention_forward(&a, x, NULL).output; /* (B, T, d_model) */
    gr_tensor *difference = gr_max(gr_abs(gr_sub(by_hand, by_module)), GR_ALL);
    printf("largest difference between the ops and the module: %g\n", gr_item(difference));

    gr_backward(gr_mean(gr_square(by_hand), GR_ALL));
    gr_print(gr_grad(a.w_q.weight));
    int status = gr_context_report(ctx);
    gr_context_free(ctx);
    return status;
}
