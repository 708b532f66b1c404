#include "attention.h"
#include "internal.h"

#include <math.h>

/* -- Masks --------------------------------------------------------------------------------------------------------- */

gr_tensor *gr_causal_mask(gr_context *ctx, int64_t n) { return gr_causal_mask_between(ctx, n, n); }

/* Query i of Tq is the moment i + Tk - Tq of the keys' time, and sees the keys up to it. */
gr_tensor *gr_causal_mask_between(gr_context *ctx, int64_t queries, int64_t keys) {
    gr_tensor *mask = gr_new(ctx, "causal mask", false, GR_SHAPE(queries, keys));
    if (gr_is_inert(mask) || keys == 0) return mask;
    gr_real *row = gr_data(mask);
    for (int64_t i = 0; i < queries; i++, row += keys)
        for (int64_t j = 0; j < keys; j++) row[j] = j <= i + keys - queries;
    return mask;
}

/* a AND b. Not a product: a mask is what is 0 and what is not, and 0 times NaN is not 0. */
static gr_tensor *both(gr_tensor *a, gr_tensor *b) { return gr_where(a, b, gr_scalar(gr_context_of(a), 0)); }

/* The mask of a layer over x (B, T, C): the given one, the causal one, or both. NULL: all visible. */
static gr_tensor *layer_mask(gr_tensor *x, bool causal, gr_tensor *mask) {
    if (!causal) return mask;
    gr_tensor *before = gr_causal_mask(gr_context_of(x), gr_dim(x, -2)); /* (T, T) */
    return mask ? both(before, mask) : before;
}

/* -- Scaled dot product -------------------------------------------------------------------------------------------- */

/* What attention gives after an error. */
static gr_attended nothing(gr_tensor *inert) { return (gr_attended){inert, inert}; }

gr_attended gr_scaled_dot_product_attention(gr_tensor *q, gr_tensor *k, gr_tensor *v, gr_tensor *mask) {
    int64_t d_k = gr_dim(q, -1);
    double scale = d_k > 0 ? 1 / sqrt((double)d_k) : 1;          /* q k of N(0, 1) entries has variance d_k */
    gr_tensor *scores = gr_attention_scores(q, k);               /* (..., Tq, Tk) */
    gr_tensor *weights = gr_masked_softmax(scores, mask, scale); /* (..., Tq, Tk), rows sum to 1 */
    gr_tensor *output = gr_attention_output(weights, v);         /* (..., Tq, d_v) */
    return (gr_attended){output, weights};
}

gr_attended gr_causal_attention(gr_tensor *q, gr_tensor *k, gr_tensor *v) {
    gr_tensor *mask = gr_causal_mask_between(gr_context_of(q), gr_dim(q, -2), gr_dim(k, -2)); /* (Tq, Tk) */
    return gr_scaled_dot_product_attention(q, k, v, mask);
}

/* -- One head ------------------------------------------------------------------------------------------------------ */

static gr_linear_layer projection(gr_context *ctx, const char *prefix, const char *name, int64_t in, int64_t out,
                                  gr_rng *rng) {
    return gr_linear_new(ctx, gr_prefixed(ctx, prefix, name), (gr_linear_config){.in = in, .out = out}, rng);
}

/* Checked as a whole, before the first projection is made. */
static gr_attention_config with_defaults(gr_context *ctx, gr_attention_config c) {
    if (c.d_k == 0) c.d_k = c.d_model;
    if (c.d_v == 0) c.d_v = c.d_model;
    if (c.d_model < 1 || c.d_k < 1 || c.d_v < 1)
        gr_fail(ctx, "attention", "d_model %lld, d_k %lld, d_v %lld; all must be at least 1", (long long)c.d_model,
                (long long)c.d_k, (long long)c.d_v);
    return c;
}

gr_attention_projections gr_attention_projections_new(gr_context *ctx, const char *prefix, gr_attention_config config,
                                                      gr_rng *rng) {
    gr_attention_config c = with_defaults(ctx, config);
    gr_attention_projections p;
    p.w_q = projection(ctx, prefix, "w_q", c.d_model, c.d_k, rng); /* (d_k, d_model) */
    p.w_k = projection(ctx, prefix, "w_k", c.d_model, c.d_k, rng); /* (d_k, d_model) */
    p.w_v = projection(ctx, prefix, "w_v", c.d_model, c.d_v, rng); /* (d_v, d_model) */
    return p;
}

gr_qkv gr_attention_projections_forward(const gr_attention_projections *p, gr_tensor *x) {
    gr_qkv qkv;
    qkv.q = gr_linear_forward(p ? &p->w_q : NULL, x); /* (B, T, d_k) */
    qkv.k = gr_linear_forward(p ? &p->w_k : NULL, x); /* (B, T, d_k) */
    qkv.v = gr_linear_forward(p ? &p->w_v : NULL, x); /* (B, T, d_v) */
    return qkv;
}

gr_attention_layer gr_attention_new(gr_context *ctx, const char *prefix, gr_attention_config config, gr_rng *rng) {
    gr_attention_config c = with_defaults(ctx, config);
    gr_attention_projections p = gr_attention_projections_new(ctx, prefix, c, rng);
    gr_linear_layer w_o = projection(ctx, prefix, "w_o", c.d_v, c.d_model, rng); /* (d_model, d_v) */
    return (gr_attention_layer){p.w_q, p.w_k, p.w_v, w_o, c.d_k, c.causal};
}

gr_attended gr_attention_forward(const gr_attention_layer *a, gr_tensor *x, gr_tensor *mask) {
    if (!a) return nothing(gr_no_layer(x, "attention"));
    const gr_attention_projections p = {a->w_q, a->w_k, a->w_v};
    gr_qkv in = gr_attention_projections_forward(&p, x);
    gr_attended y = gr_scaled_dot_product_attention(in.q, in.k, in.v, layer_mask(x, a->causal, mask));
    y.output = gr_linear_forward(&a->w_o, y.output); /* (B, T, d_model) */
    return y;
}

/* -- Many heads ---------------------------------------------------------------------------------------------------- */

void gr_check_heads(gr_context *ctx, const char *where, int64_t heads, int64_t width) {
    if (heads < 1 || width < 1)
        gr_fail(ctx, where, "heads %lld, width %lld; both must be at least 1", (long long)heads, (long long)width);
    else if (width % heads != 0)
        gr_fail(ctx, where, "heads %lld does not divide width %lld", (long long)heads, (long long)width);
}

gr_multihead_layer gr_multihead_new(gr_context *ctx, const char *prefix, gr_multihead_config config, gr_rng *rng) {
    const int64_t width = config.width;
    gr_check_heads(ctx, "multihead", config.heads, width);
    /* q, k and v side by side; gr_normal refuses what is too large. */
    int64_t all = width > 0 && width <= INT64_MAX / 3 ? 3 * width : width;
    gr_linear_config in = {.in = width, .out = all, .bias = config.bias, .std = config.std};
    gr_linear_config out = {.in = width, .out = width, .bias = config.bias, .std = config.proj_std};
    if (out.std == 0) out.std = config.std;
    gr_multihead_layer a = {.heads = config.heads, .causal = config.causal};
    a.c_attn = gr_linear_new(ctx, gr_prefixed(ctx, prefix, "c_attn"), in, rng);
    a.c_proj = gr_linear_new(ctx, gr_prefixed(ctx, prefix, "c_proj"), out, rng);
    return a;
}

static gr_tensor *join_heads(gr_tensor *x) {
    gr_shape shape = GR_SHAPE(gr_dim(x, 0), gr_dim(x, 2), gr_dim(x, 1) * gr_dim(x, 3));
    return gr_reshape(gr_transpose(x, 1, 2), shape); /* (B, H, T, D) -> (B, T, H, D) -> (B, T, C) */
}

gr_attended gr_multihead_forward(const gr_multihead_layer *a, gr_tensor *x, gr_tensor *mask) {
    if (!a) return nothing(gr_no_layer(x, "multihead"));
    gr_context *ctx = gr_context_of(x);
    gr_tensor *qkv = gr_linear_forward(&a->c_attn, x); /* (B, T, 3C) */
    if (gr_ok(ctx) && gr_ndim(x) != 3) gr_fail(ctx, "multihead", "%s is not (B, T, C)", gr_show(x, "x"));
    if (!gr_ok(ctx)) return nothing(gr_inert(ctx));
    const int64_t heads = a->heads, size = gr_dim(x, 2) / heads;
    gr_tensor *rows = gr_reshape(qkv, GR_SHAPE(gr_dim(x, 0), gr_dim(x, 1), 3 * heads, size)); /* (B, T, 3H, D) */
    gr_tensor *part[3];
    gr_split(gr_transpose(rows, 1, 2), 1, 3, part);     /* (B, 3H, T, D): views, H heads each */
    gr_tensor *q = part[0], *k = part[1], *v = part[2]; /* (B, H, T, D) */
    gr_attended y = gr_scaled_dot_product_attention(q, k, v, layer_mask(x, a->causal, mask));
    y.output = gr_linear_forward(&a->c_proj, join_heads(y.output)); /* (B, T, C) */
    return y;
}
