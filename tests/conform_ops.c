/* The table of conform: how each op and module is called. */
#include "conform.h"

#include "autograd/ops.h"
#include "nn/attention.h"

/* clang-format off */
#define UNARY(name)  static gr_tensor *run_##name(conform_call *c) { return gr_##name(c->x[0]); }
#define BINARY(name) static gr_tensor *run_##name(conform_call *c) { return gr_##name(c->x[0], c->x[1]); }
#define REDUCE(name) static gr_tensor *run_##name(conform_call *c) { return gr_##name(c->x[0], axes_of(c)); }
#define OP(name, ...) {#name, run_##name, __VA_ARGS__}
/* clang-format on */

/* -- Elementwise --------------------------------------------------------------------------------------------------- */

BINARY(add)
BINARY(sub)
BINARY(mul)
BINARY(div)
BINARY(minimum)
BINARY(maximum)
UNARY(neg)
UNARY(square)
UNARY(sqrt)
UNARY(exp)
UNARY(log)
UNARY(abs)
UNARY(relu)
UNARY(sigmoid)
UNARY(tanh)
UNARY(gelu)
UNARY(gelu_erf)
UNARY(silu)
static gr_tensor *run_where(conform_call *c) { return gr_where(c->x[0], c->x[1], c->x[2]); }
static gr_tensor *run_mask_scores(conform_call *c) { return gr_mask_scores(c->x[0], conform_mask(c)); }
static gr_tensor *run_scale(conform_call *c) { return gr_scale(c->x[0], conform_number(c, "value")); }
static gr_tensor *run_add_scalar(conform_call *c) { return gr_add_scalar(c->x[0], conform_number(c, "value")); }
static gr_tensor *run_pow(conform_call *c) { return gr_pow(c->x[0], conform_number(c, "exponent")); }
static gr_tensor *run_dropout(conform_call *c) {
    gr_rng rng = gr_rng_seed((uint64_t)conform_whole(c, "seed"));
    return gr_dropout(c->x[0], conform_number(c, "p"), &rng);
}

/* -- Reductions ---------------------------------------------------------------------------------------------------- */

static gr_axes as_axes(gr_shape list) {
    gr_axes axes = {list.ndim, false, {0}};
    for (int i = 0; i < list.ndim; i++) axes.axis[i] = (int)list.dim[i];
    return axes;
}

static gr_axes axes_of(conform_call *c) {
    gr_axes axes = conform_has(c, "axes") ? as_axes(conform_list(c, "axes")) : GR_ALL;
    axes.keep = conform_flag(c, "keepdim");
    return axes;
}

REDUCE(sum)
REDUCE(mean)
REDUCE(max)
REDUCE(logsumexp)
REDUCE(norm)
static gr_tensor *run_variance(conform_call *c) {
    if (conform_flag(c, "unbiased")) conform_misuse(c, "unbiased=1: the sum is divided by n, unbiased=0");
    return gr_variance(c->x[0], axes_of(c));
}

/* -- Products ------------------------------------------------------------------------------------------------------ */

BINARY(matmul)
BINARY(attention_scores)
BINARY(attention_output)
static gr_tensor *run_linear(conform_call *c) { return gr_linear(c->x[0], c->x[1], c->x[2]); }

/* -- Views and joins ----------------------------------------------------------------------------------------------- */

static gr_tensor *run_reshape(conform_call *c) { return gr_reshape(c->x[0], conform_list(c, "shape")); }
static gr_tensor *run_expand(conform_call *c) { return gr_expand(c->x[0], conform_list(c, "shape")); }
static gr_tensor *run_permute(conform_call *c) { return gr_permute(c->x[0], as_axes(conform_list(c, "perm"))); }
static gr_tensor *run_transpose(conform_call *c) {
    gr_axes two = as_axes(conform_list(c, "axes"));
    if (two.count != 2) conform_misuse(c, "axes= names %d axes; two are swapped, such as axes=0,1", two.count);
    return gr_transpose(c->x[0], two.axis[0], two.axis[1]);
}
static gr_tensor *run_slice(conform_call *c) {
    const int64_t stop = conform_has(c, "stop") ? conform_whole(c, "stop") : GR_END;
    return gr_slice(c->x[0], conform_whole(c, "axis"), conform_whole_or(c, "start", 0), stop,
                    conform_whole_or(c, "step", 1));
}
static gr_tensor *run_concat(conform_call *c) { return gr_concat(c->x, c->count, conform_whole(c, "axis")); }
static gr_tensor *run_stack(conform_call *c) { return gr_stack(c->x, c->count, conform_whole(c, "axis")); }
static gr_tensor *run_gather_rows(conform_call *c) { return gr_gather_rows(c->x[0], conform_tokens(c, "ids")); }

/* -- Softmax, losses, norms ---------------------------------------------------------------------------------------- */

static gr_tensor *along_axis(conform_call *c, gr_tensor *(*f)(gr_tensor *)) {
    const int axis = conform_whole_or(c, "axis", -1);
    return gr_transpose(f(gr_transpose(c->x[0], axis, -1)), axis, -1);
}
static gr_tensor *run_softmax(conform_call *c) { return along_axis(c, gr_softmax); }
static gr_tensor *run_log_softmax(conform_call *c) { return along_axis(c, gr_log_softmax); }
static gr_tensor *run_masked_softmax(conform_call *c) {
    return gr_masked_softmax(c->x[0], conform_mask(c), conform_number_or(c, "scale", 1));
}
static gr_tensor *run_cross_entropy(conform_call *c) {
    const int ignored = conform_whole_or(c, "ignore", GR_IGNORE);
    if (ignored != GR_IGNORE) conform_misuse(c, "ignore=%d; what is ignored is %d", ignored, GR_IGNORE);
    return gr_cross_entropy(c->x[0], conform_tokens(c, "targets"));
}
BINARY(mse)
static gr_tensor *run_layernorm(conform_call *c) {
    return gr_layernorm(c->x[0], c->x[1], c->x[2], conform_number_or(c, "eps", 0));
}
static gr_tensor *run_rmsnorm(conform_call *c) { return gr_rmsnorm(c->x[0], c->x[1], conform_number_or(c, "eps", 0)); }
static gr_tensor *run_rotary(conform_call *c) {
    gr_tensor *x = c->x[0];
    const int first = conform_whole_or(c, "first", 0);
    return gr_rotary(x, gr_rotary_table(c->ctx, first, gr_dim(x, -2), gr_dim(x, -1), conform_number_or(c, "base", 0)));
}

/* -- Attention ----------------------------------------------------------------------------------------------------- */

static gr_attention_style style_of(conform_call *c) {
    static const char *const names[] = {"default", "textbook", "fused", "window", "sparse", "linear", NULL};
    gr_attention_style style = {.kind = (gr_attention_kind)conform_choice(c, "kind", names)};
    if (style.kind == GR_WINDOW) style.window = conform_whole(c, "window");
    if (style.kind == GR_WINDOW) style.global = conform_whole_or(c, "global", 0);
    if (style.kind == GR_SPARSE) style.block = conform_whole(c, "block");
    return style;
}

static gr_mask mask_of(conform_call *c, gr_attention_style style) {
    gr_tensor *extra = conform_mask(c);
    gr_mask mask = conform_flag(c, "causal") ? gr_mask_causal() : gr_mask_all();
    if (style.kind == GR_WINDOW)
        mask = gr_mask_and(mask, gr_mask_or(gr_mask_window(style.window), gr_mask_global(style.global)));
    if (style.kind == GR_SPARSE) {
        const int64_t block = style.block > 0 ? style.block : 1, blocks = (gr_dim(c->x[1], -2) + block - 1) / block;
        mask = gr_mask_and(mask, gr_mask_blocks(gr_layout_fixed(c->ctx, blocks, GR_SPARSE_STRIDE), style.block));
    }
    return extra ? gr_mask_and(mask, gr_mask_tensor(extra)) : mask;
}

static gr_tensor *run_linear_attention(conform_call *c) {
    return gr_linear_attention(c->x[0], c->x[1], c->x[2], conform_flag(c, "causal"));
}

static gr_tensor *run_attention(conform_call *c) {
    const gr_attention_style style = style_of(c);
    if (style.kind == GR_LINEAR) return run_linear_attention(c);
    const bool whole = style.kind == GR_TEXTBOOK || style.kind == GR_ATTENTION_DEFAULT;
    return gr_attention(c->x[0], c->x[1], c->x[2],
                        (gr_attention_options){.mask = mask_of(c, style),
                                               .scale = conform_number_or(c, "scale", 0),
                                               .weights = whole ? &c->weights : NULL});
}

/* The weights drawn for a module give way to those of the file. */
static gr_tensor *run_attention_module(conform_call *c) {
    gr_rng rng = gr_rng_seed(0);
    gr_attention_layer layer = gr_attention_new(c->ctx, "",
                                                (gr_attention_config){.d_model = gr_dim(c->x[0], -1),
                                                                      .d_k = gr_dim(c->x[1], 0),
                                                                      .d_v = gr_dim(c->x[3], 0),
                                                                      .causal = conform_flag(c, "causal"),
                                                                      .style = style_of(c)},
                                                &rng);
    gr_linear_layer *part[] = {&layer.w_q, &layer.w_k, &layer.w_v, &layer.w_o};
    for (int i = 0; i < 4; i++) part[i]->weight = c->x[1 + i];
    gr_attended y = gr_attention_forward(&layer, c->x[0], conform_mask(c));
    c->weights = y.weights;
    return y.output;
}

static gr_tensor *run_multihead_module(conform_call *c) {
    gr_rng rng = gr_rng_seed(0);
    gr_multihead_layer layer = gr_multihead_new(c->ctx, "",
                                                (gr_multihead_config){.width = gr_dim(c->x[0], -1),
                                                                      .heads = conform_whole(c, "heads"),
                                                                      .causal = conform_flag(c, "causal"),
                                                                      .style = style_of(c)},
                                                &rng);
    layer.c_attn = (gr_linear_layer){c->x[1], c->x[3]};
    layer.c_proj = (gr_linear_layer){c->x[2], c->x[4]};
    gr_attended y = gr_multihead_forward(&layer, c->x[0], conform_mask(c));
    c->weights = y.weights;
    return y.output;
}

/* clang-format off */
#define QKV "x0=2,2,5,4 x1=2,2,7,4 x2=2,2,7,3"
const conform_op conform_ops[] = {
    OP(add,               2, 2, "x0=2,3,4 x1=3,1 grad=2,3,4", ""),
    OP(sub,               2, 2, "x0=3,1 x1=2,3,4 grad=2,3,4", ""),
    OP(mul,               2, 2, "x0=2,3,4 x1=3,1 grad=2,3,4", ""),
    OP(div,               2, 2, "x0=3,1 x1=2,3,4 grad=2,3,4", ""),
    OP(minimum,           2, 2, "x0=2,3,4 x1=3,1 grad=2,3,4", ""),
    OP(maximum,           2, 2, "x0=3,1 x1=2,3,4 grad=2,3,4", ""),
    OP(where,             3, 3, "x0=3,1 x1=2,3,4 x2=4 grad=2,3,4", ""),
    OP(mask_scores,       1, 1, "x0=2,3,4 mask=3,1 grad=2,3,4", ""),
    OP(neg,               1, 1, "x0=2,3,4 grad=2,3,4", ""),
    OP(scale,             1, 1, "x0=2,3,4 grad=2,3,4", "value=0.5"),
    OP(add_scalar,        1, 1, "x0=2,3,4 grad=2,3,4", "value=0.5"),
    OP(pow,               1, 1, "x0=2,3,4 grad=2,3,4", "exponent=3"),
    OP(square,            1, 1, "x0=2,3,4 grad=2,3,4", ""),
    OP(sqrt,              1, 1, "x0=2,3,4 grad=2,3,4", ""),
    OP(exp,               1, 1, "x0=2,3,4 grad=2,3,4", ""),
    OP(log,               1, 1, "x0=2,3,4 grad=2,3,4", ""),
    OP(abs,               1, 1, "x0=2,3,4 grad=2,3,4", ""),
    OP(relu,              1, 1, "x0=2,3,4 grad=2,3,4", ""),
    OP(sigmoid,           1, 1, "x0=2,3,4 grad=2,3,4", ""),
    OP(tanh,              1, 1, "x0=2,3,4 grad=2,3,4", ""),
    OP(gelu,              1, 1, "x0= grad=", ""),
    OP(gelu_erf,          1, 1, "x0=17 grad=17", ""),
    OP(silu,              1, 1, "x0=0,3 grad=0,3", ""),
    OP(sum,               1, 1, "x0=2,3,4 grad=1,3,1", "axes=0,2 keepdim=1"),
    OP(mean,              1, 1, "x0=2,3,4 grad=2,4", "axes=1 keepdim=0"),
    OP(max,               1, 1, "x0=2,3,4 grad=2,3,1", "axes=-1 keepdim=1"),
    OP(variance,          1, 1, "x0=2,3,4 grad=1,1,4", "axes=0,1 keepdim=1 unbiased=0"),
    OP(logsumexp,         1, 1, "x0=2,3,4 grad=3,4", "axes=0 keepdim=0"),
    OP(norm,              1, 1, "x0=2,3,4 grad=2,1,1", "axes=1,2 keepdim=1"),
    OP(matmul,            2, 2, "x0=2,1,5,7 x1=3,7,4 grad=2,3,5,4", ""),
    OP(linear,            2, 3, "x0=2,5,7 x1=4,7 x2=4 grad=2,5,4", ""),
    OP(attention_scores,  2, 2, "x0=2,5,4 x1=2,7,4 grad=2,5,7", ""),
    OP(attention_output,  2, 2, "x0=2,5,7 x1=2,7,4 grad=2,5,4", ""),
    OP(attention,         3, 3, QKV " mask=5,7 grad=2,2,5,3", "kind=textbook causal=1 scale=0.25"),
    OP(attention,         3, 3, QKV " mask=5,7 grad=2,2,5,3", "kind=fused causal=0"),
    OP(attention,         3, 3, QKV " grad=2,2,5,3", "kind=window window=2 global=1 causal=1"),
    OP(attention,         3, 3, QKV " grad=2,2,5,3", "kind=sparse block=2 causal=1"),
    OP(attention,         3, 3, QKV " grad=2,2,5,3", "kind=linear causal=1"),
    OP(linear_attention,  3, 3, QKV " grad=2,2,5,3", "causal=1"),
    OP(rotary,            1, 1, "x0=2,5,4 grad=2,5,4", "first=3 base=100"),
    OP(reshape,           1, 1, "x0=2,3,4 grad=4,6", "shape=4,6"),
    OP(transpose,         1, 1, "x0=2,3,4 grad=4,3,2", "axes=0,2"),
    OP(permute,           1, 1, "x0=2,3,4 grad=4,2,3", "perm=2,0,1"),
    OP(slice,             1, 1, "x0=2,5,4 grad=2,2,4", "axis=1 start=1 stop=5 step=2"),
    OP(expand,            1, 1, "x0=3,1 grad=2,3,4", "shape=2,3,4"),
    OP(concat,            1, 8, "x0=2,3,4 x1=2,1,4 x2=2,5,4 grad=2,9,4", "axis=1"),
    OP(stack,             1, 8, "x0=2,3 x1=2,3 x2=2,3 grad=2,3,3", "axis=2"),
    OP(gather_rows,       1, 1, "x0=7,3 ids=2,5 grad=2,5,3", ""),
    OP(softmax,           1, 1, "x0=2,3,17 grad=2,3,17", "axis=1"),
    OP(log_softmax,       1, 1, "x0=2,3,17 grad=2,3,17", "axis=-1"),
    OP(masked_softmax,    1, 1, "x0=2,5,7 mask=5,7 grad=2,5,7", "scale=0.25"),
    OP(cross_entropy,     1, 1, "x0=2,5,7 targets=2,5 grad=", "ignore=-100"),
    OP(mse,               2, 2, "x0=2,3,4 x1=2,3,4 grad=", ""),
    OP(layernorm,         1, 3, "x0=2,3,17 x1=17 x2=17 grad=2,3,17", "eps=1e-5"),
    OP(rmsnorm,           1, 2, "x0=2,3,17 x1=17 grad=2,3,17", "eps=1e-5"),
    OP(dropout,           1, 1, "x0=2,3,17 grad=2,3,17", "p=0.25 seed=7"),
    OP(attention_module,  5, 5, "x0=2,5,6 x1=4,6 x2=4,6 x3=3,6 x4=6,3 mask=5,1 grad=2,5,6", "causal=1 kind=fused"),
    OP(multihead_module,  3, 5, "x0=2,5,6 x1=18,6 x2=6,6 x3=18 x4=6 grad=2,5,6", "heads=2 causal=1 kind=textbook"),
};
/* clang-format on */
const int conform_op_count = sizeof conform_ops / sizeof conform_ops[0];
