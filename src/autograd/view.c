/* Views: another shape and other strides over the same numbers. The gradient of a view is added through the same view
 * of the gradient: forward's geometry, applied to dx. Only expand sees an element more than once; its gradient is a
 * sum. */
#include "tape.h"

/* The geometry of a view, enough to take it again on a tensor of the same shape. */
typedef struct geometry {
    enum { RESHAPE, PERMUTE, SLICE } kind;
    gr_shape shape; /* of the result */
    int order[GR_MAX_DIMS];
    int axis;
    int64_t start, step;
} geometry;

/* Strides that see x under another shape without a copy; false if there are none. Both shapes are cut into the shortest
 * runs of axes that hold equally many elements; a run of x must be evenly spaced to be cut anew. */
static bool reshape_strides(const gr_tensor *x, gr_shape shape, int64_t *stride) {
    int i = 0, j = 0;
    while (i < x->shape.ndim || j < shape.ndim) {
        int first_i = i, first_j = j;
        int64_t old = i < x->shape.ndim ? x->shape.dim[i++] : 1, new = j < shape.ndim ? shape.dim[j++] : 1;
        while (old != new)
            if (old < new)
                old *= x->shape.dim[i++];
            else
                new *= shape.dim[j++];
        int64_t step = 0, extent = 1; /* of the run: distance of neighbours, elements so far from its end */
        for (int k = i - 1; k >= first_i; k--) {
            if (x->shape.dim[k] == 1) continue;
            if (extent == 1)
                step = x->stride[k];
            else if (x->stride[k] != step * extent)
                return false;
            extent *= x->shape.dim[k];
        }
        for (int k = j - 1; k >= first_j; k--) {
            stride[k] = step;
            step *= shape.dim[k];
        }
    }
    return true;
}

static gr_tensor *take_view(gr_tensor *x, const geometry *g) {
    int64_t stride[GR_MAX_DIMS], offset = 0;
    if (g->kind == RESHAPE) {
        if (gr_shape_numel(g->shape) == 0 || !reshape_strides(x, g->shape, stride)) {
            x = gr_contiguous(x);
            if (gr_is_inert(x)) return x;
            gr_shape_strides(g->shape, stride);
        }
    } else {
        for (int i = 0; i < g->shape.ndim; i++) stride[i] = x->stride[g->kind == PERMUTE ? g->order[i] : i];
    }
    if (g->kind == SLICE && g->shape.dim[g->axis] > 0) offset = g->start * x->stride[g->axis];
    if (g->kind == SLICE && g->shape.dim[g->axis] > 1) stride[g->axis] *= g->step; /* a lone index may have any step */
    return gr_view(x, g->shape, stride, offset);
}

static void view_backward(gr_node *n) {
    if (!gr_wants(n, 0)) return;
    gr_tensor *dx = gr_gradient(n->in[0]);
    gr_tensor *seen = gr_is_inert(dx) ? dx : take_view(dx, n->saved);
    if (!gr_is_inert(seen)) gr_run_map(GR_MAP_plus, 0, seen, 1, &n->out->grad);
}

static void expand_backward(gr_node *n) {
    gr_tensor *dx = gr_wants(n, 0) ? gr_gradient(n->in[0]) : NULL;
    if (!gr_is_inert(dx)) gr_sum_to(dx, n->out->grad, true);
}

const gr_op gr_op_reshape = {.name = "reshape", .operands = 1, .label = {"x"}, .backward = view_backward};
const gr_op gr_op_transpose = {.name = "transpose", .operands = 1, .label = {"x"}, .backward = view_backward};
const gr_op gr_op_permute = {.name = "permute", .operands = 1, .label = {"x"}, .backward = view_backward};
const gr_op gr_op_slice = {.name = "slice", .operands = 1, .label = {"x"}, .backward = view_backward};
const gr_op gr_op_expand = {.name = "expand", .operands = 1, .label = {"x"}, .backward = expand_backward};

static gr_tensor *record_view(const gr_op *op, gr_tensor *x, const geometry *g) {
    return gr_record(op, take_view(x, g), 1, &x, g, sizeof *g);
}

/* Fills in the one size given as -1. */
static bool infer_size(gr_shape *shape, int64_t numel) {
    int unknown = -1;
    for (int i = 0; i < shape->ndim; i++) {
        if (shape->dim[i] != -1) continue;
        if (unknown >= 0) return false;
        unknown = i;
        shape->dim[i] = 1;
    }
    if (unknown >= 0) {
        int64_t known = gr_shape_numel(*shape);
        if (known <= 0 || numel % known) return false;
        shape->dim[unknown] = numel / known;
    }
    return gr_shape_numel(*shape) == numel;
}

static bool too_many_axes(gr_shape shape) { return shape.ndim < 0 || shape.ndim > GR_MAX_DIMS; }

gr_tensor *gr_reshape(gr_tensor *x, gr_shape shape) {
    gr_tensor *bad = gr_check(&gr_op_reshape, 1, &x);
    if (bad) return bad;
    geometry g = {.kind = RESHAPE, .shape = shape};
    if (too_many_axes(shape) || !infer_size(&g.shape, gr_numel(x)))
        return gr_refuse(&gr_op_reshape, 1, &x, "cannot take the shape %s",
                         too_many_axes(shape) ? "of more than 6 axes" : gr_show_shape(x->ctx, shape));
    return record_view(&gr_op_reshape, x, &g);
}

gr_tensor *gr_transpose(gr_tensor *x, int axis0, int axis1) {
    gr_tensor *bad = gr_check(&gr_op_transpose, 1, &x);
    if (bad) return bad;
    int i = gr_shape_axis(x->shape, axis0), j = gr_shape_axis(x->shape, axis1);
    if (i < 0 || j < 0) return gr_refuse(&gr_op_transpose, 1, &x, "has no axes %d and %d", axis0, axis1);
    geometry g = {.kind = PERMUTE, .shape = x->shape};
    for (int k = 0; k < x->shape.ndim; k++) g.order[k] = k == i ? j : k == j ? i : k;
    g.shape.dim[i] = x->shape.dim[j], g.shape.dim[j] = x->shape.dim[i];
    return record_view(&gr_op_transpose, x, &g);
}

gr_tensor *gr_permute(gr_tensor *x, gr_axes order) {
    gr_tensor *bad = gr_check(&gr_op_permute, 1, &x);
    if (bad) return bad;
    unsigned set;
    if (order.count != x->shape.ndim || !gr_shape_axes(x->shape, order, &set))
        return gr_refuse(&gr_op_permute, 1, &x, "the order must name each of its %d axes once", x->shape.ndim);
    geometry g = {.kind = PERMUTE, .shape = x->shape};
    for (int k = 0; k < order.count; k++) {
        g.order[k] = gr_shape_axis(x->shape, order.axis[k]);
        g.shape.dim[k] = x->shape.dim[g.order[k]];
    }
    return record_view(&gr_op_permute, x, &g);
}

gr_tensor *gr_slice(gr_tensor *x, int axis, int64_t start, int64_t stop, int64_t step) {
    gr_tensor *bad = gr_check(&gr_op_slice, 1, &x);
    if (bad) return bad;
    int i = gr_shape_axis(x->shape, axis);
    if (i < 0) return gr_refuse(&gr_op_slice, 1, &x, "has no axis %d", axis);
    int64_t size = x->shape.dim[i], from = start < 0 ? start + size : start;
    int64_t to = stop == GR_END ? size : stop < 0 ? stop + size : stop;
    if (from < 0 || to > size || from > to || step < 1)
        return gr_refuse(&gr_op_slice, 1, &x, "axis %d from %lld to %lld by %lld; it has indices 0 to %lld", axis,
                         (long long)start, (long long)stop, (long long)step, (long long)size);
    geometry g = {.kind = SLICE, .shape = x->shape, .axis = i, .start = from, .step = step};
    g.shape.dim[i] = (to - from) / step + ((to - from) % step != 0);
    return record_view(&gr_op_slice, x, &g);
}

gr_tensor *gr_expand(gr_tensor *x, gr_shape shape) {
    gr_tensor *bad = gr_check(&gr_op_expand, 1, &x);
    if (bad) return bad;
    gr_shape common;
    if (too_many_axes(shape) || gr_shape_numel(shape) < 0 || x->shape.ndim > shape.ndim ||
        !gr_shape_broadcast(x->shape, shape, &common) || !gr_shape_equal(common, shape))
        return gr_refuse(&gr_op_expand, 1, &x, "cannot be expanded to %s",
                         too_many_axes(shape) ? "more than 6 axes" : gr_show_shape(x->ctx, shape));
    int64_t stride[GR_MAX_DIMS];
    int front = shape.ndim - x->shape.ndim;
    for (int i = 0; i < shape.ndim; i++)
        stride[i] = i >= front && x->shape.dim[i - front] == shape.dim[i] ? x->stride[i - front] : 0;
    return gr_record(&gr_op_expand, gr_view(x, shape, stride, 0), 1, &x, NULL, 0);
}

gr_tensor *gr_select(gr_tensor *x, int axis, int64_t index) {
    static const gr_op named = {
        .name = "select", .operands = 1, .label = {"x"}}; /* for messages: not an op of its own */
    gr_tensor *bad = gr_check(&named, 1, &x);
    if (bad) return bad;
    int i = gr_shape_axis(x->shape, axis);
    if (i < 0) return gr_refuse(&named, 1, &x, "has no axis %d", axis);
    int64_t size = x->shape.dim[i], at = index < 0 ? index + size : index;
    if (at < 0 || at >= size)
        return gr_refuse(&named, 1, &x, "index %lld of axis %d; it has %lld", (long long)index, axis, (long long)size);
    gr_tensor *one = gr_slice(x, axis, at, at + 1, 1);
    return gr_is_inert(one) ? one : gr_reshape(one, gr_shape_reduced(one->shape, 1u << i, false));
}

void gr_split(gr_tensor *x, int axis, int parts, gr_tensor **out) {
    int64_t size = gr_dim(x, axis), each = parts > 0 ? size / parts : 0;
    if (x && gr_ok(x->ctx) && !gr_is_inert(x) && (parts < 1 || size % parts))
        gr_refuse(&gr_op_slice, 1, &x, "axis %d of size %lld cannot be split into %d equal parts", axis,
                  (long long)size, parts);
    if (x && !out) gr_refuse(&gr_op_slice, 1, &x, "no place for the parts: out is NULL");
    for (int i = 0; out && i < parts; i++) out[i] = gr_slice(x, axis, i * each, (i + 1) * each, 1);
}
