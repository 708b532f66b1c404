/* Lesson 5: three projections of one x, and the gradients of a linear layer as sums beside those of the tape. */
#include <gradus.h>

#include <math.h>

enum { ROWS = 4, IN = 3, OUT = 2, SEED = 5 };

/* dx = dy W, dW = dy^T x, written as sums; the largest difference from what the tape says. */
static void by_hand(gr_context *ctx) {
    gr_rng rng = gr_rng_seed(SEED);
    gr_tensor *x = gr_requires_grad(gr_named(gr_normal(ctx, GR_SHAPE(ROWS, IN), 0, 1, &rng), "x"));
    gr_tensor *w = gr_requires_grad(gr_named(gr_normal(ctx, GR_SHAPE(OUT, IN), 0, 1, &rng), "W"));
    gr_tensor *dy = gr_normal(ctx, GR_SHAPE(ROWS, OUT), 0, 1, &rng);
    gr_backward_from(gr_linear(x, w, NULL), dy);
    if (!gr_ok(ctx)) return;
    const gr_real *X = gr_data(x), *W = gr_data(w), *dY = gr_data(dy), *dX = gr_data(gr_grad(x)),
                  *dW = gr_data(gr_grad(w));
    double apart = 0;
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < IN; c++) {
            double sum = 0;
            for (int o = 0; o < OUT; o++) sum += (double)dY[i * OUT + o] * (double)W[o * IN + c];
            apart = fmax(apart, fabs(sum - (double)dX[i * IN + c]));
        }
    for (int o = 0; o < OUT; o++)
        for (int c = 0; c < IN; c++) {
            double sum = 0;
            for (int i = 0; i < ROWS; i++) sum += (double)dY[i * OUT + o] * (double)X[i * IN + c];
            apart = fmax(apart, fabs(sum - (double)dW[o * IN + c]));
        }
    gr_print(gr_named(gr_grad(x), "dx = dy W"));
    gr_print(gr_named(gr_grad(w), "dW = dy^T x"));
    printf("the sums by hand agree within 1e-6: %s\n", apart < 1e-6 ? "yes" : "no");
}

static void projections(gr_context *ctx) {
    gr_rng rng = gr_rng_seed(SEED);
    gr_tensor *x = gr_normal(ctx, GR_SHAPE(2, 5, 8), 0, 1, &rng); /* (B, T, d_model) */
    gr_attention_projections p =
        gr_attention_projections_new(ctx, "lesson", (gr_attention_config){.d_model = 8, .d_k = 4, .d_v = 6}, &rng);
    gr_qkv y = gr_attention_projections_forward(&p, x);
    const gr_linear_layer layer[] = {p.w_q, p.w_k, p.w_v};
    gr_tensor *const to[] = {y.q, y.k, y.v};
    for (int i = 0; i < 3; i++)
        printf("x (2, 5, 8), W_%c (%lld, %lld) -> %c (2, 5, %lld)\n", "QKV"[i], (long long)gr_dim(layer[i].weight, 0),
               (long long)gr_dim(layer[i].weight, 1), "qkv"[i], (long long)gr_dim(to[i], -1));
    printf("\n");
}

int main(void) {
    gr_context *ctx = gr_context_new();
    projections(ctx);
    by_hand(ctx);
    const int status = gr_context_report(ctx);
    gr_context_free(ctx);
    return status;
}
