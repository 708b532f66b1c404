/* Views, joining and picking, softmax, losses, norms, dropout: how each is called on what is drawn. */
#include "graph.h"

/* -- Views --------------------------------------------------------------------------------------------------------- */

gr_tensor *graph_call_reshape(graph *g) {
    gr_tensor *x = graph_first(g);
    gr_shape shape = gr_shape_of(x);
    const int64_t n = gr_numel(x) + graph_wrong(g), how = graph_below(g, 6), part = graph_below(g, 6) + 1;
    if (how == 0) shape = GR_SHAPE(n);
    if (how == 1) shape = GR_SHAPE(1, n, 1);
    if (how == 2) shape = GR_SHAPE(-1, part);
    if (how == 3) shape = n % part == 0 ? GR_SHAPE(part, n / part) : GR_SHAPE(n, 1);
    if (how == 4 && shape.ndim > 0) shape.dim[graph_below(g, shape.ndim)] = -1;
    for (int i = 0; how == 5 && i < shape.ndim / 2; i++) { /* the sizes in the opposite order */
        const int64_t size = shape.dim[i];
        shape.dim[i] = shape.dim[shape.ndim - 1 - i], shape.dim[shape.ndim - 1 - i] = size;
    }
    if (graph_wrong(g)) shape.ndim = (int)graph_below(g, 10) - 1;
    return gr_reshape(x, shape);
}

gr_tensor *graph_call_transpose(graph *g) {
    gr_tensor *x = graph_first(g);
    const int axis = graph_axis(g, x);
    return gr_transpose(x, axis, graph_axis(g, x));
}

gr_tensor *graph_call_permute(graph *g) {
    gr_tensor *x = graph_first(g);
    const int n = gr_ndim(x);
    gr_axes order = {n + (int)graph_wrong(g), false, {0}};
    if (order.count > GR_MAX_DIMS) order.count = 0;
    for (int i = 0; i < order.count; i++) order.axis[i] = i;
    for (int i = order.count - 1; i > 0; i--) { /* Fisher and Yates */
        const int other = (int)graph_below(g, i + 1), axis = order.axis[i];
        order.axis[i] = order.axis[other], order.axis[other] = axis;
    }
    if (n > 0 && graph_below(g, 2)) order.axis[0] -= n;
    if (n > 1 && graph_wrong(g)) order.axis[0] = order.axis[1];
    return gr_permute(x, order);
}

/* A slice, one index of an axis, or one of equal parts. */
gr_tensor *graph_call_slice(graph *g) {
    enum { PARTS = 4 };
    gr_tensor *x = graph_first(g), *part[PARTS];
    const int axis = graph_axis(g, x), how = (int)graph_below(g, 4);
    const int64_t size = gr_dim(x, axis), start = graph_below(g, 2 * size + 2) - size,
                  stop = graph_below(g, 2 * size + 3) - size;
    if (how == 1) return gr_select(x, axis, graph_below(g, size + graph_wrong(g)) - (graph_below(g, 2) ? size : 0));
    if (how == 2) {
        const int parts = (int)graph_below(g, PARTS) + 1;
        gr_split(x, axis, parts, part);
        return part[graph_below(g, parts)];
    }
    return gr_slice(x, axis, start, graph_below(g, 2) ? GR_END : stop, graph_below(g, 4) + !graph_wrong(g));
}

gr_tensor *graph_call_expand(graph *g) {
    gr_tensor *x = graph_first(g);
    gr_shape shape = gr_shape_of(x);
    if (!g->none) x = graph_sound(g, graph_narrower(g, shape));
    if (shape.ndim < GR_MAX_DIMS && graph_below(g, 2)) {
        for (int i = shape.ndim++; i > 0; i--) shape.dim[i] = shape.dim[i - 1];
        shape.dim[0] = graph_below(g, 4);
    }
    return gr_expand(x, shape);
}

/* -- Joining and picking ------------------------------------------------------------------------------------------- */

gr_tensor *graph_call_concat(graph *g) {
    enum { MOST = 4 };
    gr_tensor *x[MOST] = {graph_first(g)};
    const gr_shape shape = gr_shape_of(x[0]);
    const int count = (int)graph_below(g, MOST) + 1, axis = graph_axis(g, x[0]);
    const bool stack = graph_below(g, 3) == 1;
    for (int i = 1; i < count; i++) {
        gr_shape other = shape;
        const int along = axis < 0 ? axis + shape.ndim : axis;
        if (!stack && along >= 0 && along < shape.ndim) other.dim[along] = graph_side(g);
        x[i] = graph_operand(g, other);
    }
    return stack ? gr_stack(x, count, axis) : gr_concat(x, count, axis);
}

enum { IDS = 512 };

/* So many numbers below a limit; now and then one that is not, or one that is to be ignored. */
static const int32_t *draw_ids(graph *g, int64_t count, int64_t limit, bool ignored) {
    static int32_t ids[IDS];
    gr_rng rng = graph_rng(g);
    for (int64_t i = 0; i < count && i < IDS; i++) {
        ids[i] = (int32_t)gr_rng_below(&rng, (uint64_t)limit);
        if (ignored && gr_rng_below(&rng, 4) == 0) ids[i] = GR_IGNORE;
    }
    if (graph_wrong(g) && count > 0)
        ids[graph_below(g, count < IDS ? count : IDS)] = graph_below(g, 2) ? (int32_t)limit : -1;
    return graph_wrong(g) ? NULL : ids;
}

gr_tensor *graph_call_gather_rows(graph *g) {
    gr_tensor *table = graph_first(g);
    const int64_t batch = graph_below(g, 4), time = graph_below(g, 5);
    if (!g->none && !(g->hostile && graph_below(g, 2))) table = graph_sound(g, GR_SHAPE(graph_side(g), graph_side(g)));
    return gr_gather_rows(table, (gr_tokens){draw_ids(g, batch * time, gr_dim(table, 0), false), batch, time});
}

gr_tensor *graph_call_cross_entropy(graph *g) {
    gr_tensor *logits = graph_first(g);
    const int64_t classes = gr_dim(logits, -1), rows = classes > 0 ? gr_numel(logits) / classes : 0;
    const int64_t targets = rows + graph_wrong(g);
    if (targets > IDS) return NULL;
    return gr_cross_entropy(logits, (gr_tokens){draw_ids(g, targets, classes, true), 1, targets});
}

/* -- Rows ---------------------------------------------------------------------------------------------------------- */

gr_tensor *graph_call_masked_softmax(graph *g) {
    gr_tensor *scores = graph_first(g);
    const gr_shape shape = graph_narrower(g, gr_shape_of(scores));
    gr_tensor *mask = g->smooth ? graph_mask(g, shape) : graph_optional(g, shape);
    return gr_masked_softmax(scores, mask, graph_number(g));
}

gr_tensor *graph_call_mse(graph *g) {
    gr_tensor *x = graph_first(g);
    return gr_mse(x, graph_operand(g, gr_shape_of(x)));
}

static const double eps[] = {0, 1e-5, 0.1, 1};

gr_tensor *graph_call_layernorm(graph *g) {
    gr_tensor *x = graph_first(g);
    const gr_shape row = GR_SHAPE(gr_dim(x, -1));
    gr_tensor *weight = graph_optional(g, row), *bias = graph_optional(g, row);
    return gr_layernorm(x, weight, bias, eps[graph_below(g, 4)]);
}

gr_tensor *graph_call_rmsnorm(graph *g) {
    gr_tensor *x = graph_first(g);
    gr_tensor *weight = graph_optional(g, GR_SHAPE(gr_dim(x, -1)));
    return gr_rmsnorm(x, weight, eps[graph_below(g, 4)]);
}

gr_tensor *graph_call_dropout(graph *g) {
    static const double share[] = {0, 0.1, 0.5, 0.9, 1, -0.1};
    gr_tensor *x = graph_first(g);
    gr_rng rng = graph_rng(g);
    return gr_dropout(x, share[graph_below(g, g->hostile ? 6 : 4)], graph_wrong(g) ? NULL : &rng);
}
