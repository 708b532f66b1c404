/* Layers: a struct of parameters, gr_X_new to make them and gr_X_forward to use them. Constructors draw initial weights
 * from rng, which moves on; names are prefixed, "prefix.weight", as in PyTorch's state dicts. Errors stay in the
 * context.
 *
 * B batch, T time, C width. (...) any leading axes. */
#ifndef GR_LAYERS_H
#define GR_LAYERS_H

#include "../autograd/autograd.h"
#include "../autograd/ops.h"

/* y = x W^T + b: (..., in) -> (..., out). W (out, in) ~ N(0, std), b = 0. std 0 means 1 / sqrt(in). */
typedef struct gr_linear_layer {
    gr_tensor *weight, *bias; /* (out, in), (out) or NULL */
} gr_linear_layer;
typedef struct gr_linear_config {
    int64_t in, out;
    bool bias;
    double std;
} gr_linear_config;
gr_linear_layer gr_linear_new(gr_context *ctx, const char *prefix, gr_linear_config config, gr_rng *rng);
gr_tensor *gr_linear_forward(const gr_linear_layer *layer, gr_tensor *x);

/* Row ids[b][t] of W: (B, T) -> (B, T, C). W (V, C) ~ N(0, std). std 0 means 1. */
typedef struct gr_embedding_layer {
    gr_tensor *weight; /* (V, C) */
} gr_embedding_layer;
typedef struct gr_embedding_config {
    int64_t vocab, width;
    double std;
} gr_embedding_config;
gr_embedding_layer gr_embedding_new(gr_context *ctx, const char *prefix, gr_embedding_config config, gr_rng *rng);
gr_tensor *gr_embedding_forward(const gr_embedding_layer *layer, gr_tokens ids);

/* (x - mean) / sqrt(var + eps) w + b over the last axis; w = 1, b = 0 at first; eps 1e-5. */
typedef struct gr_layernorm_layer {
    gr_tensor *weight, *bias; /* (C), (C) or NULL */
} gr_layernorm_layer;
gr_layernorm_layer gr_layernorm_new(gr_context *ctx, const char *prefix, int64_t width, bool bias);
gr_tensor *gr_layernorm_forward(const gr_layernorm_layer *layer, gr_tensor *x);

/* x / sqrt(mean x^2 + eps) w over the last axis; w = 1 at first; eps 1e-5. */
typedef struct gr_rmsnorm_layer {
    gr_tensor *weight; /* (C) */
} gr_rmsnorm_layer;
gr_rmsnorm_layer gr_rmsnorm_new(gr_context *ctx, const char *prefix, int64_t width);
gr_tensor *gr_rmsnorm_forward(const gr_rmsnorm_layer *layer, gr_tensor *x);

/* x / (1 - p) with probability 1 - p, else 0, while training; x itself when not. The generator is the layer's own,
 * stream GR_STREAM_DROPOUT of the seed: layers of one seed and one stream drop the same places. */
typedef struct gr_dropout_layer {
    double p;
    bool training;
    gr_rng rng;
} gr_dropout_layer;
gr_dropout_layer gr_dropout_new(double p, uint64_t seed);
gr_tensor *gr_dropout_forward(gr_dropout_layer *layer, gr_tensor *x);

#endif
