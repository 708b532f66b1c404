#include "attention.h"
#include "internal.h"

#include "../tensor/iterate.h"

/* -- Masks --------------------------------------------------------------------------------------------------------- */

gr_tensor *gr_causal_mask(gr_context *ctx, int64_t n) { return gr_causal_mask_between(ctx, n, n); }

gr_tensor *gr_causal_mask_between(gr_context *ctx, int64_t queries, int64_t keys) {
    return gr_mask_matrix(ctx, gr_mask_causal(), GR_SHAPE(queries, keys));
}

/* -- Scaled dot product -------------------------------------------------------------------------------------------- */

/* What attention gives after an error. */
static gr_attended nothing(gr_tensor *inert) { return (gr_attended){inert, inert}; }

static gr_attended with_weights(gr_tensor *q, gr_tensor *k, gr_tensor *v, gr_mask mask) {
    gr_attended y = {NULL, NULL};
    y.output = gr_attention(q, k, v, (gr_attention_options){.mask = mask, .weights = &y.weights});
    return y;
}

gr_attended gr_scaled_dot_product_attention(gr_tensor *q, gr_tensor *k, gr_tensor *v, gr_tensor *mask) {
    return with_weights(q, k, v, gr_mask_or_all(mask));
}

gr_attended gr_causal_attention(gr_tensor *q, gr_tensor *k, gr_tensor *v) {
    return with_weights(q, k, v, gr_mask_causal());
}

/* -- In some style ------------------------------------------------------------------------------------------------- */

enum {
    WINDOW = 64,
    BLOCK = WINDOW / GR_SPARSE_STRIDE
}; /* where nothing else is said: a group is as wide as a window */

enum { MOST = INT32_MAX }; /* that a checkpoint may say */

gr_attention_style gr_check_style(gr_context *ctx, const char *where, gr_attention_style s) {
    if (s.kind == GR_ATTENTION_DEFAULT) s.kind = GR_TEXTBOOK;
    if (s.window == 0) s.window = WINDOW;
    if (s.block == 0) s.block = BLOCK;
    if (s.kind < GR_TEXTBOOK || s.kind > GR_LINEAR) gr_fail(ctx, where, "no attention is of kind %d", (int)s.kind);
    if (s.window < 1 || s.global < 0 || s.block < 1 || s.window > MOST || s.global > MOST || s.block > MOST)
        gr_fail(ctx, where, "window %lld, global %lld, block %lld; at least 1, 0 and 1, at most %d",
                (long long)s.window, (long long)s.global, (long long)s.block, MOST);
    return s;
}

/* The mask of a style over so many keys. */
static gr_mask mask_of_style(gr_context *ctx, gr_attention_style s, bool causal, int64_t keys) {
    gr_mask mask = causal ? gr_mask_causal() : gr_mask_all();
    if (s.kind == GR_WINDOW) mask = gr_mask_and(mask, gr_mask_or(gr_mask_window(s.window), gr_mask_global(s.global)));
    if (s.kind == GR_SPARSE) {
        int64_t blocks = keys / s.block + (keys % s.block != 0);
        mask = gr_mask_and(mask, gr_mask_blocks(gr_layout_fixed(ctx, blocks, GR_SPARSE_STRIDE), s.block));
    }
    return mask;
}

static gr_attended attend_in_style(gr_attention_style s, bool causal, bool keep_weights, gr_qkv in, gr_mask extra) {
    gr_context *ctx = gr_context_of(in.q);
    gr_attended y = {NULL, NULL};
    if (s.kind == GR_LINEAR) {
        if (gr_ok(ctx) && extra.count > 0) gr_fail(ctx, "attention", "linear attention takes no mask");
        y.output = gr_linear_attention(in.q, in.k, in.v, causal);
        return y;
    }
    gr_mask mask = mask_of_style(ctx, s, causal, gr_dim(in.k, -2));
    gr_attention_options options = {.mask = gr_mask_and(mask, extra)};
    if (s.kind == GR_TEXTBOOK || s.kind == GR_ATTENTION_DEFAULT || keep_weights) options.weights = &y.weights;
    y.output = gr_attention(in.q, in.k, in.v, options);
    return y;
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
    c.style = gr_check_style(ctx, "attention", c.style);
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
    return (gr_attention_layer){p.w_q, p.w_k, p.w_v, w_o, c.d_k, c.causal, c.style};
}

gr_attended gr_attention_forward(const gr_attention_layer *a, gr_tensor *x, gr_tensor *mask) {
    if (!a) return nothing(gr_no_layer(x, "attention"));
    const gr_attention_projections p = {a->w_q, a->w_k, a->w_v};
    gr_attended y =
        attend_in_style(a->style, a->causal, false, gr_attention_projections_forward(&p, x), gr_mask_or_all(mask));
    y.output = gr_linear_forward(&a->w_o, y.output); /* (B, T, d_model) */
    return y;
}

/* -- Many heads ---------------------------------------------------------------------------------------------------- */

void gr_check_heads(gr_context *ctx, const char *where, int64_t heads, int64_t width, gr_positions positions) {
    if (heads < 1 || width < 1)
        gr_fail(ctx, where, "heads %lld, width %lld; both must be at least 1", (long long)heads, (long long)width);
    else if (width % heads != 0)
        gr_fail(ctx, where, "heads %lld does not divide width %lld", (long long)heads, (long long)width);
    else if (positions == GR_ROTARY && width / heads % 2 != 0)
        gr_fail(ctx, where, "rotary positions turn pairs: heads of size %lld are odd", (long long)(width / heads));
}

gr_multihead_layer gr_multihead_new(gr_context *ctx, const char *prefix, gr_multihead_config config, gr_rng *rng) {
    const int64_t width = config.width;
    gr_check_heads(ctx, "multihead", config.heads, width, GR_LEARNED);
    /* q, k and v side by side; gr_normal refuses what is too large. */
    int64_t all = width > 0 && width <= INT64_MAX / 3 ? 3 * width : width;
    gr_linear_config in = {.in = width, .out = all, .bias = config.bias, .std = config.std};
    gr_linear_config out = {.in = width, .out = width, .bias = config.bias, .std = config.proj_std};
    if (out.std == 0) out.std = config.std;
    gr_multihead_layer a = {.heads = config.heads, .causal = config.causal};
    a.style = gr_check_style(ctx, "multihead", config.style);
    a.c_attn = gr_linear_new(ctx, gr_prefixed(ctx, prefix, "c_attn"), in, rng);
    a.c_proj = gr_linear_new(ctx, gr_prefixed(ctx, prefix, "c_proj"), out, rng);
    return a;
}

static gr_tensor *join_heads(gr_tensor *x) {
    gr_shape shape = GR_SHAPE(gr_dim(x, 0), gr_dim(x, 2), gr_dim(x, 1) * gr_dim(x, 3));
    return gr_reshape(gr_transpose(x, 1, 2), shape); /* (B, H, T, D) -> (B, T, H, D) -> (B, T, C) */
}

/* (B, T, 3C) as q, k, v (B, H, T, D): views. */
static gr_qkv split_heads(gr_tensor *qkv, int64_t heads) {
    const int64_t size = gr_dim(qkv, 2) / (3 * heads);
    gr_tensor *rows = gr_reshape(qkv, GR_SHAPE(gr_dim(qkv, 0), gr_dim(qkv, 1), 3 * heads, size)); /* (B, T, 3H, D) */
    gr_tensor *part[3];
    gr_split(gr_transpose(rows, 1, 2), 1, 3, part); /* (B, H, T, D) each */
    return (gr_qkv){part[0], part[1], part[2]};
}

/* The new keys and values (B, H, T, D) join those that are kept; what comes back are views of all of them. */
static void join_past(gr_kv_cache *kv, gr_qkv *in) {
    const int64_t past = kv->past, all = past + gr_dim(in->k, 2);
    gr_tensor **part[] = {&in->k, &in->v}, *kept[] = {kv->k, kv->v};
    for (int i = 0; i < 2 && gr_ok(kept[i]->ctx); i++) {
        gr_tensor *room = gr_slice(kept[i], 2, past, all, 1), *seen = gr_slice(kept[i], 2, 0, all, 1);
        if (gr_is_inert(room)) return;
        gr_run_map(GR_MAP_copy, 0, room, 1, part[i]);
        *part[i] = seen;
    }
}

gr_attended gr_multihead_attend(const gr_multihead_layer *a, gr_tensor *x, gr_attending how) {
    if (!a) return nothing(gr_no_layer(x, "multihead"));
    gr_context *ctx = gr_context_of(x);
    gr_tensor *qkv = gr_linear_forward(&a->c_attn, x); /* (B, T, 3C) */
    if (gr_ok(ctx) && gr_ndim(x) != 3) gr_fail(ctx, "multihead", "%s is not (B, T, C)", gr_show(x, "x"));
    if (!gr_ok(ctx)) return nothing(gr_inert(ctx));
    gr_qkv in = split_heads(qkv, a->heads); /* (B, H, T, D) */
    if (how.rotary) in.q = gr_rotary(in.q, how.rotary), in.k = gr_rotary(in.k, how.rotary);
    if (how.kv) join_past(how.kv, &in); /* k, v (B, H, past + T, D) */
    gr_attended y = attend_in_style(a->style, a->causal, a->keep_weights || how.weights, in, how.mask);
    y.output = gr_linear_forward(&a->c_proj, join_heads(y.output)); /* (B, T, C) */
    return y;
}

gr_attended gr_multihead_forward(const gr_multihead_layer *a, gr_tensor *x, gr_tensor *mask) {
    return gr_multihead_attend(a, x, (gr_attending){.mask = gr_mask_or_all(mask)});
}
