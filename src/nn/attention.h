/* Attention as a course text writes it: query, key, value, scores, weights, output. Batch first; a mask here is a
 * tensor of 1 (may be attended) and 0 (may not) that broadcasts to the scores; gr_mask_matrix makes one of a gr_mask. B
 * batch, T time, H heads, D head size, C width. */
#ifndef GR_ATTENTION_H
#define GR_ATTENTION_H

#include "layers.h"

/* (n, n): row i, the query, sees columns j <= i. */
gr_tensor *gr_causal_mask(gr_context *ctx, int64_t n);

/* (queries, keys), aligned bottom-right: the last query sees every key. */
gr_tensor *gr_causal_mask_between(gr_context *ctx, int64_t queries, int64_t keys);

/* What attention gives: output (..., Tq, d_v) and the weights (..., Tq, Tk) whose rows sum to 1, NULL where they were
 * not asked for. */
typedef struct gr_attended {
    gr_tensor *output, *weights;
} gr_attended;

/* weights = softmax(q k^T / sqrt(d_k) where mask), output = weights v: gr_attention's textbook way. mask NULL: all
 * visible. */
gr_attended gr_scaled_dot_product_attention(gr_tensor *q, gr_tensor *k, gr_tensor *v, gr_tensor *mask);

/* The same with the causal mask of the two lengths. */
gr_attended gr_causal_attention(gr_tensor *q, gr_tensor *k, gr_tensor *v);

/* The ways of attending. Textbook: the weights stand in memory and are given. Fused: the same numbers to rounding, tile
 * by tile, without them. Window: fused, only keys less than `window` places away (causal: the last `window` of them)
 * and the first `global`. Sparse: fused, in blocks of `block` keys, the own group of GR_SPARSE_STRIDE blocks and the
 * last block of every group. Linear: gr_linear_attention, another function. Zero means: textbook (a GPT: fused), window
 * 64, global 0, block 16. */
typedef enum gr_attention_kind {
    GR_ATTENTION_DEFAULT,
    GR_TEXTBOOK,
    GR_FUSED,
    GR_WINDOW,
    GR_SPARSE,
    GR_LINEAR,
} gr_attention_kind;
enum { GR_SPARSE_STRIDE = 4 };
typedef struct gr_attention_style {
    gr_attention_kind kind;
    int64_t window, global, block;
} gr_attention_style;

/* Sizes of one head; d_k and d_v 0 mean d_model. */
typedef struct gr_attention_config {
    int64_t d_model, d_k, d_v;
    bool causal;
    gr_attention_style style;
} gr_attention_config;

/* The three linear maps, without bias: d_model -> d_k, d_k, d_v. Names: w_q, w_k, w_v, made and drawn in this order. Of
 * the config only the sizes are read. */
typedef struct gr_attention_projections {
    gr_linear_layer w_q, w_k, w_v;
} gr_attention_projections;
typedef struct gr_qkv {
    gr_tensor *q, *k, *v; /* (B, T, d_k), (B, T, d_k), (B, T, d_v) */
} gr_qkv;
gr_attention_projections gr_attention_projections_new(gr_context *ctx, const char *prefix, gr_attention_config config,
                                                      gr_rng *rng);
gr_qkv gr_attention_projections_forward(const gr_attention_projections *p, gr_tensor *x);

/* One head: projections, scaled dot product, W_O (d_model, d_v): (B, T, d_model) -> (B, T, d_model). */
typedef struct gr_attention_layer {
    gr_linear_layer w_q, w_k, w_v, w_o;
    int64_t d_k;
    bool causal;
    gr_attention_style style;
} gr_attention_layer;
gr_attention_layer gr_attention_new(gr_context *ctx, const char *prefix, gr_attention_config config, gr_rng *rng);
/* mask, joined with the style's by AND, may be NULL. */
gr_attended gr_attention_forward(const gr_attention_layer *a, gr_tensor *x, gr_tensor *mask);

/* H heads side by side, each of size D = C / H; H must divide C: (B, T, C) -> (B, T, C), weights (B, H, T, T).
 * Names: c_attn, c_proj, made and drawn in this order. A mask as above. */
typedef struct gr_multihead_config {
    int64_t width, heads;
    bool causal, bias;
    double std;      /* of the first weights; 0 means 1 / sqrt(width) */
    double proj_std; /* of W_O; 0 means std */
    gr_attention_style style;
} gr_multihead_config;
typedef struct gr_multihead_layer {
    gr_linear_layer c_attn, c_proj; /* (3C, C): q, k, v; (C, C) */
    int64_t heads;
    bool causal;
    gr_attention_style style;
    bool keep_weights; /* give the weights of any style that has them: all but linear */
} gr_multihead_layer;
gr_multihead_layer gr_multihead_new(gr_context *ctx, const char *prefix, gr_multihead_config config, gr_rng *rng);
gr_attended gr_multihead_forward(const gr_multihead_layer *a, gr_tensor *x, gr_tensor *mask);

#endif
