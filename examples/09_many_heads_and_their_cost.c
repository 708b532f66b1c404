/* Lesson 9: many heads. A loop over the heads and its reshaped form give the same bits; the shape of every step. */
#include <gradus.h>

#include <string.h>

enum { B = 2, T = 5, C = 12, H = 3, D = C / H, ALL = B * T * C, SEED = 9 };
enum { W_Q, W_K, W_V, W_O, WEIGHTS };
static const char *const name[WEIGHTS] = {"w_q", "w_k", "w_v", "w_o"};
static bool showing;

/* Prints the shape, and gives x back. */
static gr_tensor *see(const char *what, gr_tensor *x) {
    const gr_shape s = gr_shape_of(x);
    if (!showing) return x;
    printf("  %-38s (", what);
    for (int i = 0; i < s.ndim; i++) printf("%s%lld", i ? ", " : "", (long long)s.dim[i]);
    printf(")\n");
    return x;
}

/* Rows h D to (h + 1) D of a weight (C, C): what makes the queries, keys or values of head h, (D, C). */
static gr_tensor *rows_of_head(gr_tensor *w, int h) { return gr_slice(w, 0, h * D, (h + 1) * D, 1); }

/* As the formula has it: H attentions of size D, side by side. */
static gr_tensor *by_loop(gr_tensor *x, gr_tensor *const w[WEIGHTS]) {
    gr_tensor *head[H];
    for (int h = 0; h < H; h++) {
        gr_tensor *q = see("q = x w_q[head]^T", gr_linear(x, rows_of_head(w[W_Q], h), NULL)); /* (B, T, D) */
        gr_tensor *k = gr_linear(x, rows_of_head(w[W_K], h), NULL);                           /* (B, T, D) */
        gr_tensor *v = gr_linear(x, rows_of_head(w[W_V], h), NULL);                           /* (B, T, D) */
        gr_attended a = gr_causal_attention(q, k, v);
        see("weights", a.weights);            /* (B, T, T) */
        head[h] = see("weights v", a.output); /* (B, T, D) */
        showing = false;                      /* the others: as this one */
    }
    showing = true;
    gr_tensor *y = see("heads side by side", gr_concat(head, H, -1)); /* (B, T, C) */
    return see("y = that w_o^T", gr_linear(y, w[W_O], NULL));         /* (B, T, C) */
}

/* (B, T, C) -> (B, H, T, D), a view: no number moves. */
static gr_tensor *split_heads(gr_tensor *x) {
    gr_tensor *parts = see("reshape: C is H groups of D", gr_reshape(x, GR_SHAPE(B, T, H, D)));
    return see("transpose(1, 2): the heads in front", gr_transpose(parts, 1, 2));
}

/* The heads are one more leading axis of the same products. */
static gr_tensor *by_reshape(gr_tensor *x, gr_tensor *const w[WEIGHTS]) {
    gr_tensor *q = split_heads(see("q = x w_q^T", gr_linear(x, w[W_Q], NULL))); /* (B, H, T, D) */
    const bool was = showing;
    showing = false;                                        /* k and v: as q */
    gr_tensor *k = split_heads(gr_linear(x, w[W_K], NULL)); /* (B, H, T, D) */
    gr_tensor *v = split_heads(gr_linear(x, w[W_V], NULL)); /* (B, H, T, D) */
    showing = was;
    gr_attended a = gr_causal_attention(q, k, v);
    see("weights", a.weights);                                                             /* (B, H, T, T) */
    gr_tensor *y = see("transpose(1, 2)", gr_transpose(see("weights v", a.output), 1, 2)); /* (B, T, H, D) */
    y = see("reshape: heads side by side", gr_reshape(y, GR_SHAPE(B, T, C)));              /* (B, T, C) */
    return see("y = that w_o^T", gr_linear(y, w[W_O], NULL));                              /* (B, T, C) */
}

/* gr_multihead_layer makes q, k and v by one product, with the weights on top of each other, (3C, C). */
static gr_tensor *by_layer(gr_tensor *x, gr_tensor *const w[WEIGHTS]) {
    gr_tensor *stacked = see("w_q, w_k, w_v on top of each other", gr_concat((gr_tensor *[]){w[0], w[1], w[2]}, 3, 0));
    const gr_multihead_layer layer = {.c_attn = {stacked, NULL}, .c_proj = {w[W_O], NULL}, .heads = H, .causal = true};
    return see("y", gr_multihead_forward(&layer, x, NULL).output);
}

/* Output and gradients: y (B, T, C), dL/dw (C, C) each. */
typedef struct result {
    gr_real y[ALL], dw[WEIGHTS][C * C];
} result;

static void run(const char *title, gr_tensor *(*form)(gr_tensor *, gr_tensor *const *), gr_tensor *x,
                gr_tensor *const w[WEIGHTS], gr_tensor *dy, result *r) {
    printf("%s\n", title);
    showing = true;
    gr_tensor *y = form(x, w);
    gr_to_array(y, r->y);
    gr_backward_from(y, dy);
    for (int i = 0; i < WEIGHTS; i++) gr_to_array(gr_grad(w[i]), r->dw[i]);
    gr_zero_grad(gr_context_of(x));
}

static const char *same(const void *a, const void *b, size_t size) { return memcmp(a, b, size) == 0 ? "yes" : "no"; }

/* Without the transpose the numbers are in the wrong heads: two tokens, two heads of two. */
static void the_usual_mistake(gr_context *ctx) {
    const gr_real numbers[] = {0, 1, 2, 3, 4, 5, 6, 7};
    gr_tensor *x = gr_from(ctx, GR_SHAPE(2, 4), numbers);
    gr_tensor *right = gr_transpose(gr_reshape(x, GR_SHAPE(2, 2, 2)), 0, 1), *wrong = gr_reshape(x, GR_SHAPE(2, 2, 2));
    gr_print(gr_named(x, "two tokens"));
    gr_print(gr_named(gr_select(right, 0, 0), "head 0, reshape and transpose"));
    gr_print(gr_named(gr_select(wrong, 0, 0), "head 0, reshape alone"));
}

int main(void) {
    gr_context *ctx = gr_context_new();
    gr_rng rng = gr_rng_seed(SEED);
    gr_tensor *w[WEIGHTS], *x = gr_normal(ctx, GR_SHAPE(B, T, C), 0, 1, &rng);
    for (int i = 0; i < WEIGHTS; i++) w[i] = gr_parameter(gr_normal(ctx, GR_SHAPE(C, C), 0, 0.3, &rng), name[i]);
    gr_tensor *dy = gr_normal(ctx, GR_SHAPE(B, T, C), 0, 1, &rng); /* dL/dy */
    static result loop, reshape, layer;
    printf("B = %d, T = %d, C = %d, H = %d heads of D = C / H = %d\n", B, T, C, H, D);
    run("a loop over the heads; the first of them", by_loop, x, w, dy, &loop);
    run("reshaped", by_reshape, x, w, dy, &reshape);
    run("gr_multihead_layer", by_layer, x, w, dy, &layer);
    printf("the bits of the loop?  reshaped     gr_multihead_layer\n");
    printf("  y                    %-11s  %s\n", same(loop.y, reshape.y, sizeof loop.y),
           same(loop.y, layer.y, sizeof loop.y));
    for (int i = 0; i < WEIGHTS; i++)
        printf("  dL/d%s              %-11s  %s\n", name[i], same(loop.dw[i], reshape.dw[i], sizeof loop.dw[i]),
               same(loop.dw[i], layer.dw[i], sizeof loop.dw[i]));
    the_usual_mistake(ctx);
    int status = gr_context_report(ctx);
    gr_context_free(ctx);
    return status;
}
