/* Attention (Vaswani et al., 2017): output = softmax(scale q k^T where the mask shows) v, as one op.
 *
 * The textbook path writes the scores and weights down, (..., Tq, Tk) each; the fused one (attention_forward.c,
 * attention_backward.c) never does. */
#include "attention_tiles.h"

#include "../tensor/mask_tile.h"

#include <math.h>

/* As if all were visible. */
static double attention_flops(const gr_tensor *out, gr_tensor *const *in) {
    int n = out->shape.ndim;
    double keys = (double)in[1]->shape.dim[n - 2], d = (double)in[0]->shape.dim[n - 1];
    double d_v = (double)out->shape.dim[n - 1], rows = d_v > 0 ? (double)gr_shape_numel(out->shape) / d_v : 0;
    return 2 * rows * keys * (d + d_v);
}

const gr_op gr_op_attention = {.name = "attention",
                               .operands = 3,
                               .label = {"q", "k", "v"},
                               .backward = gr_fused_attention_backward,
                               .flops = attention_flops};

gr_tensor *gr_check_attention(const gr_op *op, gr_tensor *const in[3]) {
    gr_tensor *bad = gr_check(op, 3, in), *q = in[0], *k = in[1], *v = in[2];
    if (bad) return bad;
    int n = q->shape.ndim;
    bool same = n >= 2 && k->shape.ndim == n && v->shape.ndim == n;
    for (int i = 0; same && i < n - 2; i++)
        same = q->shape.dim[i] == k->shape.dim[i] && q->shape.dim[i] == v->shape.dim[i];
    if (!same) return gr_refuse(op, 3, in, "all need two axes or more, and the same leading ones");
    if (gr_dim(q, -1) != gr_dim(k, -1))
        return gr_refuse(op, 3, in, "sizes %lld of q and %lld of k differ", (long long)gr_dim(q, -1),
                         (long long)gr_dim(k, -1));
    if (gr_dim(k, -2) != gr_dim(v, -2))
        return gr_refuse(op, 3, in, "%lld keys, %lld values", (long long)gr_dim(k, -2), (long long)gr_dim(v, -2));
    return NULL;
}

/* Refuses what does not fit; the shape of the scores otherwise. */
static gr_tensor *check(gr_tensor *const in[3], const gr_attention_options *o, gr_shape *scores) {
    const gr_op *op = &gr_op_attention;
    gr_tensor *bad = gr_check_attention(op, in), *q = in[0];
    if (bad) return bad;
    if (!(o->dropout >= 0 && o->dropout < 1))
        return gr_refuse(op, 3, in, "dropout is %g; it must be in [0, 1)", o->dropout);
    if (o->dropout > 0 && !o->rng) return gr_refuse(op, 3, in, "dropout without rng");
    if (!(fabs(o->scale) <= (double)GR_REAL_MAX)) return gr_refuse(op, 3, in, "scale is %g", o->scale);
    if (o->weights && o->logsumexp) return gr_refuse(op, 3, in, "weights and logsumexp cannot both be had");
    *scores = q->shape;
    scores->dim[scores->ndim - 1] = gr_dim(in[1], -2);
    return gr_mask_check(q->ctx, op->name, &o->mask, *scores) ? NULL : gr_inert(q->ctx);
}

/* 1 / sqrt(d_k): q k of numbers of variance 1 has variance d_k. */
static double scale_of(const gr_attention_options *o, int64_t d_k) {
    return o->scale != 0 ? o->scale : d_k > 0 ? 1 / sqrt((double)d_k) : 1;
}

static gr_tensor *textbook(gr_tensor *const in[3], const gr_attention_options *o, gr_shape shape) {
    gr_context *ctx = in[0]->ctx;
    gr_tensor *mask = o->mask.count > 0 ? gr_mask_matrix(ctx, o->mask, shape) : NULL;
    gr_tensor *scores = gr_attention_scores(in[0], in[1]);                                /* (..., Tq, Tk) */
    gr_tensor *weights = gr_masked_softmax(scores, mask, scale_of(o, gr_dim(in[0], -1))); /* rows sum to 1 */
    *o->weights = weights;
    if (o->dropout > 0) weights = gr_dropout(weights, o->dropout, o->rng);
    return gr_attention_output(weights, in[2]); /* (..., Tq, Dv) */
}

/* A tensor for a result of this shape that lies in memory as `like` does, its last axis contiguous; axis k of the
 * result is its axis order->axis[k]. Heads that are views of (B, T, H D) so give an output that is a view of (B, T, H
 * D). */
static gr_tensor *new_like(gr_tensor *like, gr_shape shape, gr_axes *order) {
    int outer[GR_MAX_DIMS], n = shape.ndim;
    for (int i = 0; i < n - 1; i++) { /* by insertion: the widest stride first */
        int at = i;
        for (; at > 0 && like->stride[outer[at - 1]] < like->stride[i]; at--) outer[at] = outer[at - 1];
        outer[at] = i;
    }
    outer[n - 1] = n - 1;
    gr_shape lies = {n, {0}};
    order->count = n;
    for (int i = 0; i < n; i++) lies.dim[i] = shape.dim[outer[i]], order->axis[outer[i]] = i;
    return gr_new(like->ctx, "attention", false, lies);
}

/* peak + log sum e^(score - peak), a constant; -inf where nothing is seen. */
static gr_tensor *logsumexp_of(const attention_saved *s) {
    gr_tensor *y = gr_new(s->peak->ctx, "attention", false, s->peak->shape);
    if (gr_is_inert(y)) return y;
    gr_run_map(GR_MAP_log, 0, y, 1, &(gr_tensor *){s->inverse});
    gr_run_map(GR_MAP_sub, 0, y, 2, (gr_tensor *[]){s->peak, y});
    for (int64_t i = 0; i < gr_numel(y); i++)
        if (s->inverse->data[i] == 0) y->data[i] = (gr_real)-INFINITY;
    return y;
}

gr_tensor *gr_attention(gr_tensor *q, gr_tensor *k, gr_tensor *v, gr_attention_options options) {
    gr_tensor *in[] = {q, k, v};
    gr_shape scores = {0};
    gr_tensor *bad = check(in, &options, &scores);
    if (options.weights) *options.weights = bad;
    if (options.logsumexp) *options.logsumexp = bad;
    if (bad) return bad;
    if (options.weights) return textbook(in, &options, scores);
    attention_saved s = {.mask = options.mask, .scale = scale_of(&options, gr_dim(q, -1))};
    if (options.dropout > 0) s.drop = (gr_dropout_key){gr_rng_next(options.rng), options.dropout};
    gr_shape rows = q->shape, shape = q->shape;
    rows.ndim--, shape.dim[rows.ndim] = gr_dim(v, -1);
    gr_tensor *y = new_like(q, shape, &s.order);
    s.peak = gr_new(q->ctx, "attention", false, rows);
    s.inverse = gr_new(q->ctx, "attention", false, rows);
    if (!gr_ok(q->ctx)) {
        if (options.logsumexp) *options.logsumexp = gr_inert(q->ctx);
        return gr_inert(q->ctx);
    }
    gr_fused_attention(y, in, &s);
    if (options.logsumexp) *options.logsumexp = logsumexp_of(&s);
    y = gr_record(&gr_op_attention, y, 3, in, &s, sizeof s);
    for (int i = 0; i < s.order.count; i++)
        if (s.order.axis[i] != i) return gr_permute(y, s.order);
    return y; /* it lies as it is seen */
}
