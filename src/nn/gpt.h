/* GPT: the decoder of GPT-2 (Radford et al., 2019), pre-norm, head tied to the embedding. Positions are learned, or
 * rotary (Su et al., 2021): then there is no wpe, and queries and keys are turned.
 *
 * x = wte[ids] + wpe[0 ... T-1]                 (B, T, C)
 * x = x + attention(norm(x)); x = x + mlp(norm(x))   L times
 * logits = norm(x) wte^T                        (B, T, V) */
#ifndef GR_GPT_H
#define GR_GPT_H

#include "attention.h"

/* GELU in the tanh form of GPT-2, or x Phi(x) as in PyTorch's default and nanoGPT. */
typedef enum gr_gelu_form { GR_GELU_TANH, GR_GELU_ERF } gr_gelu_form;

/* C -> 4C -> GELU -> C. */
typedef struct gr_mlp_layer {
    gr_linear_layer c_fc, c_proj; /* (4C, C), (C, 4C) */
    gr_gelu_form gelu;
} gr_mlp_layer;
typedef struct gr_mlp_config {
    int64_t width;
    bool bias;
    double std, proj_std; /* of the first weights of c_fc and c_proj; 0 means 1 / sqrt(in) */
    gr_gelu_form gelu;
} gr_mlp_config;
gr_mlp_layer gr_mlp_new(gr_context *ctx, const char *prefix, gr_mlp_config config, gr_rng *rng);
gr_tensor *gr_mlp_forward(const gr_mlp_layer *mlp, gr_tensor *x);

/* x + attention(norm(x)), then x + mlp(norm(x)): (B, T, C) -> (B, T, C), weights (B, H, T, T). Dropout acts on what is
 * added; a new block has none. Names: ln_1, attn.c_attn, attn.c_proj, ln_2, mlp.c_fc, mlp.c_proj, made and drawn in
 * this order. */
typedef struct gr_block_layer {
    gr_layernorm_layer ln_1, ln_2;
    gr_multihead_layer attn;
    gr_mlp_layer mlp;
    gr_dropout_layer drop;
} gr_block_layer;
gr_block_layer gr_block_new(gr_context *ctx, const char *prefix, gr_multihead_config config, gr_rng *rng);
gr_attended gr_block_forward(gr_block_layer *block, gr_tensor *x, gr_tensor *mask);

/* Zero means: layers, heads 1; dropout none; bias none; fused attention; learned positions; GELU in tanh form. vocab,
 * context and width must be given; heads must divide width, into even parts for rotary positions. */
typedef enum gr_positions { GR_LEARNED, GR_ROTARY } gr_positions;
typedef struct gr_gpt_config {
    int64_t vocab, context, layers, heads, width;
    double dropout; /* in [0, 1): of the embedding and of what each half of a block adds */
    bool bias;      /* in linear layers and norms */
    gr_attention_style style;
    gr_positions positions;
    gr_gelu_form gelu;
    uint64_t seed;
} gr_gpt_config;

typedef struct gr_gpt {
    gr_context *ctx;
    gr_gpt_config config;
    gr_embedding_layer wte, wpe;
    gr_block_layer *h; /* layers of them */
    gr_layernorm_layer ln_f;
    gr_dropout_layer drop;
    int first, count;           /* its parameters: gr_parameter_at(ctx, first + i), i in [0, count) */
    bool keep_weights;          /* set it to see the attention of a forward pass ... */
    gr_tensor **weights;        /* ... per layer (B, H, T, T), NULL for linear attention; gone with gr_context_reset */
    struct gr_decoder *decoder; /* kept for generation, once there has been one */
} gr_gpt;

/* A model with GPT-2's initialisation: N(0, 0.02), output projections N(0, 0.02 / sqrt(2 layers)), biases 0, norms 1.
 * Its parameters carry the names "transformer.wte.weight", "transformer.wpe.weight", "transformer.h.0.ln_1.weight",
 * ..., "transformer.ln_f.weight", made in this order; all are drawn from stream GR_STREAM_INIT of the seed, in this
 * order. Never NULL; owned by ctx. */
gr_gpt *gr_gpt_new(gr_context *ctx, gr_gpt_config config);

/* (B, T) -> (B, T, V), T at most the context. */
gr_tensor *gr_gpt_forward(gr_gpt *gpt, gr_tokens ids);

/* Dropout acts only while training; a new model is. */
void gr_gpt_training(gr_gpt *gpt, bool training);

#endif
