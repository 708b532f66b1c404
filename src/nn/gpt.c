#include "gpt.h"
#include "internal.h"

#include <math.h>
#include <stdio.h>

/* -- MLP ----------------------------------------------------------------------------------------------------------- */

enum { MLP_WIDENING = 4 }; /* Vaswani et al., 2017: 2048 inside for 512 outside */

static void check_gelu(gr_context *ctx, const char *where, gr_gelu_form form) {
    if (form != GR_GELU_TANH && form != GR_GELU_ERF) gr_fail(ctx, where, "GELU has no form %d", (int)form);
}

gr_mlp_layer gr_mlp_new(gr_context *ctx, const char *prefix, gr_mlp_config config, gr_rng *rng) {
    int64_t width = config.width; /* gr_normal refuses what is too large */
    int64_t inside = width > 0 && width <= INT64_MAX / MLP_WIDENING ? MLP_WIDENING * width : width;
    gr_linear_config in = {.in = width, .out = inside, .bias = config.bias, .std = config.std};
    gr_linear_config out = {.in = inside, .out = width, .bias = config.bias, .std = config.proj_std};
    gr_mlp_layer mlp = {.gelu = config.gelu};
    check_gelu(ctx, "mlp", config.gelu);
    mlp.c_fc = gr_linear_new(ctx, gr_prefixed(ctx, prefix, "c_fc"), in, rng);
    mlp.c_proj = gr_linear_new(ctx, gr_prefixed(ctx, prefix, "c_proj"), out, rng);
    return mlp;
}

gr_tensor *gr_mlp_forward(const gr_mlp_layer *mlp, gr_tensor *x) {
    gr_tensor *h = gr_linear_forward(mlp ? &mlp->c_fc : NULL, x);      /* (B, T, 4C) */
    h = mlp && mlp->gelu == GR_GELU_ERF ? gr_gelu_erf(h) : gr_gelu(h); /* (B, T, 4C) */
    return gr_linear_forward(mlp ? &mlp->c_proj : NULL, h);            /* (B, T, C) */
}

/* -- Block --------------------------------------------------------------------------------------------------------- */

gr_block_layer gr_block_new(gr_context *ctx, const char *prefix, gr_multihead_config config, gr_rng *rng) {
    gr_mlp_config mlp = {config.width, config.bias, config.std, config.proj_std, GR_GELU_TANH};
    gr_block_layer b = {.drop = {.p = 0}};
    gr_check_heads(ctx, "multihead", config.heads, config.width, GR_LEARNED); /* before ln_1 is made */
    b.ln_1 = gr_layernorm_new(ctx, gr_prefixed(ctx, prefix, "ln_1"), config.width, config.bias);
    b.attn = gr_multihead_new(ctx, gr_prefixed(ctx, prefix, "attn"), config, rng);
    b.ln_2 = gr_layernorm_new(ctx, gr_prefixed(ctx, prefix, "ln_2"), config.width, config.bias);
    b.mlp = gr_mlp_new(ctx, gr_prefixed(ctx, prefix, "mlp"), mlp, rng);
    return b;
}

static gr_attended block_attend(gr_block_layer *block, gr_tensor *x, gr_attending how) {
    if (!block || !gr_ok(gr_context_of(x))) {
        gr_tensor *none = block ? gr_inert(gr_context_of(x)) : gr_no_layer(x, "block");
        return (gr_attended){none, none};
    }
    gr_attended y = gr_multihead_attend(&block->attn, gr_layernorm_forward(&block->ln_1, x), how);
    x = gr_add(x, gr_dropout_forward(&block->drop, y.output)); /* (B, T, C) */
    gr_tensor *h = gr_mlp_forward(&block->mlp, gr_layernorm_forward(&block->ln_2, x));
    y.output = gr_add(x, gr_dropout_forward(&block->drop, h)); /* (B, T, C) */
    return y;
}

gr_attended gr_block_forward(gr_block_layer *block, gr_tensor *x, gr_tensor *mask) {
    return block_attend(block, x, (gr_attending){.mask = gr_mask_or_all(mask)});
}

/* -- Model --------------------------------------------------------------------------------------------------------- */

/* The streams GR_STREAM_DROPOUT + n 2^32: one for each dropout layer, out of the way of the small numbers that users
 * take. */
static gr_dropout_layer dropout(gr_gpt_config config, int64_t n) {
    gr_dropout_layer drop = gr_dropout_new(config.dropout, config.seed);
    drop.rng = gr_rng_stream(drop.rng, GR_STREAM_DROPOUT + ((uint64_t)n << 32));
    return drop;
}

static void check(gr_context *ctx, gr_gpt_config c) {
    const struct {
        const char *name;
        int64_t value;
    } size[] = {
        {"vocab", c.vocab}, {"context", c.context}, {"layers", c.layers}, {"heads", c.heads}, {"width", c.width}};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        if (size[i].value < 1)
            gr_fail(ctx, "gpt", "%s is %lld; it must be at least 1", size[i].name, (long long)size[i].value);
    gr_check_heads(ctx, "gpt", c.heads, c.width, c.positions);
    if (c.positions != GR_LEARNED && c.positions != GR_ROTARY)
        gr_fail(ctx, "gpt", "no positions are of kind %d", (int)c.positions);
    check_gelu(ctx, "gpt", c.gelu);
    if (!(c.dropout >= 0 && c.dropout < 1)) gr_fail(ctx, "gpt", "dropout %g is not in [0, 1)", c.dropout);
    if ((uint64_t)c.layers > SIZE_MAX / 2 / sizeof(gr_block_layer))
        gr_fail(ctx, "gpt", "%lld layers are too many", (long long)c.layers);
}

/* All parameters, in the order of a state dict. */
static void make_parameters(gr_gpt *gpt) {
    gr_context *ctx = gpt->ctx;
    gr_gpt_config c = gpt->config;
    gr_rng rng = gr_rng_stream(gr_rng_seed(c.seed), GR_STREAM_INIT);
    const double std = 0.02; /* GPT-2; each of 2 L additions to x brings 1 / (2 L) of its variance */
    gr_multihead_config block = {.width = c.width, .heads = c.heads, .bias = c.bias, .causal = true, .style = c.style};
    block.std = std, block.proj_std = std / sqrt(2 * (double)c.layers);
    gpt->wte = gr_embedding_new(ctx, "transformer.wte", (gr_embedding_config){c.vocab, c.width, std}, &rng);
    if (c.positions == GR_LEARNED)
        gpt->wpe = gr_embedding_new(ctx, "transformer.wpe", (gr_embedding_config){c.context, c.width, std}, &rng);
    gpt->drop = dropout(c, 0);
    for (int64_t i = 0; i < c.layers; i++) {
        char prefix[sizeof "transformer.h.-9223372036854775808"];
        snprintf(prefix, sizeof prefix, "transformer.h.%lld", (long long)i);
        gpt->h[i] = gr_block_new(ctx, prefix, block, &rng);
        gpt->h[i].mlp.gelu = c.gelu;
        gpt->h[i].drop = dropout(c, i + 1);
        gpt->weights[i] = NULL;
    }
    gpt->ln_f = gr_layernorm_new(ctx, "transformer.ln_f", c.width, c.bias);
}

gr_gpt *gr_gpt_new(gr_context *ctx, gr_gpt_config config) {
    static gr_gpt nothing; /* of no layer: only its user may write to it */
    gr_gpt *gpt = gr_alloc_handle(ctx, sizeof *gpt);
    if (!gpt) return &nothing;
    gr_tensor *inert = gr_inert(ctx);
    const gr_gpt refused = {.ctx = ctx, .wte = {inert}, .wpe = {inert}, .ln_f = {inert, NULL}};
    *gpt = refused;
    if (config.layers == 0) config.layers = 1;
    if (config.heads == 0) config.heads = 1;
    if (config.style.kind == GR_ATTENTION_DEFAULT) config.style.kind = GR_FUSED;
    config.style = gr_check_style(ctx, "gpt", config.style);
    check(ctx, config);
    gr_block_layer *h = gr_ok(ctx) ? gr_alloc_array(ctx, true, config.layers, sizeof *h) : NULL;
    gr_tensor **weights = gr_ok(ctx) ? gr_alloc_array(ctx, true, config.layers, sizeof *weights) : NULL;
    if (!h || !weights) return gpt;
    gpt->config = config;
    gpt->h = h;
    gpt->weights = weights;
    gpt->first = gr_parameter_count(ctx);
    make_parameters(gpt);
    gpt->count = gr_parameter_count(ctx) - gpt->first;
    if (!gr_ok(ctx)) { /* half a model is none */
        ctx->parameter_count = gpt->first;
        *gpt = refused;
    }
    return gpt;
}

/* x = wte[ids] + wpe[past ... past + T - 1] */
static gr_tensor *embed(gr_gpt *gpt, gr_tokens ids, int64_t past) {
    gr_tensor *x = gr_embedding_forward(&gpt->wte, ids); /* (B, T, C) */
    if (gpt->config.positions == GR_LEARNED)
        x = gr_add(x, gr_slice(gpt->wpe.weight, 0, past, past + ids.time, 1)); /* + (T, C) */
    return gr_dropout_forward(&gpt->drop, x);
}

gr_tensor *gr_gpt_forward_after(gr_gpt *gpt, gr_tokens ids, gr_kv_cache *kv, gr_tensor *head) {
    const gr_gpt_config c = gpt->config;
    const int64_t time = ids.time, past = kv ? kv->past : 0;
    if (!gr_check_made(gpt->ctx, "gpt", "the model", gpt->h)) return gr_inert(gpt->ctx);
    if (time < 1 || time > c.context - past)
        gr_fail(gpt->ctx, "gpt", "%lld tokens, the context is %lld", (long long)time, (long long)c.context);
    gr_tensor *x = embed(gpt, ids, past); /* (B, T, C) */
    gr_attending how = {.weights = gpt->keep_weights};
    if (c.positions == GR_ROTARY) how.rotary = gr_rotary_table(gpt->ctx, past, time, c.width / c.heads, 0);
    for (int64_t i = 0; i < c.layers; i++) {
        how.kv = kv ? &kv[i] : NULL;
        gr_attended y = block_attend(&gpt->h[i], x, how);
        if (kv) kv[i].past += time;
        gpt->weights[i] = y.weights; /* (B, H, T, T) */
        x = y.output;                /* (B, T, C) */
    }
    x = gr_layernorm_forward(&gpt->ln_f, x);                  /* (B, T, C) */
    return gr_linear(x, head ? head : gpt->wte.weight, NULL); /* (B, T, V) */
}

gr_tensor *gr_gpt_forward(gr_gpt *gpt, gr_tokens ids) {
    return gpt && gpt->ctx ? gr_gpt_forward_after(gpt, ids, NULL, NULL) : gr_inert(NULL);
}

void gr_gpt_training(gr_gpt *gpt, bool training) {
    if (!gpt || !gpt->h) return;
    gpt->drop.training = training;
    for (int64_t i = 0; i < gpt->config.layers; i++) gpt->h[i].drop.training = training;
}
