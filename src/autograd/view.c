/* Views: another shape and other strides over the same numbers. The gradient of a view is added through the same view
 * of the gradient: forward's geometry, applied to dx. Only expand sees an element more than once; its gradient is a
 * sum. */
#include "tape.h"

/* The geometry of a view, enough to take it again on a tensor of the same shape. */
typedef struct geometry {
    gr_shape shape;         /* of the result */
    int order[GR_MAX_DIMS]; /* of transpose and permute: the axes of x */
    int axis;               /* of slice, and the next two */
    int64_t start, step;
} geometry;

typedef struct rule {
    gr_tensor *(*take)(gr_tensor *x, const geometry *g);
} rule;

/* Ops that are made of others; these are for their messages. */
static const gr_op select_messages = {.name = "select", .operands = 1, .label = {"x"}};
static const gr_op split_messages = {.name = "split", .operands = 1, .label = {"x"}};

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

static gr_tensor *take_reshape(gr_tensor *x, const geometry *g) {
    int64_t stride[GR_MAX_DIMS];
    if (gr_shape_numel(g->shape) > 0 && reshape_strides(x, g->shape, stride)) return gr_view(x, g->shape, stride, 0);
    x = gr_contiguous(x);
    return gr_is_inert(x) ? x : gr_view_as(x, g->shape);
}

static gr_tensor *take_permute(gr_tensor *x, const geometry *g) {
    int64_t stride[GR_MAX_DIMS];
    for (int i = 0; i < g->shape.ndim; i++) stride[i] = x->stride[g->order[i]];
    return gr_view(x, g->shape, stride, 0);
}

static gr_tensor *take_slice(gr_tensor *x, const geometry *g) {
    int64_t stride[GR_MAX_DIMS], size = g->shape.dim[g->axis];
    for (int i = 0; i < g->shape.ndim; i++) stride[i] = x->stride[i];
    if (size > 1) stride[g->axis] *= g->step; /* a lone index may have any step */
    return gr_view(x, g->shape, stride, size > 0 ? g->start * x->stride[g->axis] : 0);
}

static void view_backward(gr_node *n) {
    if (!gr_wants(n, 0)) return;
    const rule *r = n->op->rule;
    gr_tensor *dx = gr_gradient(n->in[0]);
    gr_tensor *seen = gr_is_inert(dx) ? dx : r->take(dx, n->saved);
    if (!gr_is_inert(seen)) gr_run_map(GR_MAP_plus, 0, seen, 1, &n->out->grad);
}

static void expand_backward(gr_node *n) {
    gr_tensor *dx = gr_wanted_gradient(n, 0);
    if (!gr_is_inert(dx)) gr_sum_to(dx, n->out->grad, true);
}

const gr_op gr_op_reshape = {.name = "reshape",
                             .view = true,
                             .operands = 1,
                             .label = {"x"},
                             .backward = view_backward,
                             .rule = &(rule){take_reshape}};
const gr_op gr_op_transpose = {.name = "transpose",
                               .view = true,
                               .operands = 1,
                               .label = {"x"},
                               .backward = view_backward,
                               .rule = &(rule){take_permute}};
const gr_op gr_op_permute = {.name = "permute",
                             .view = true,
                             .operands = 1,
                             .label = {"x"},
                             .backward = view_backward,
                             .rule = &(rule){take_permute}};
const gr_op gr_op_slice = {.name = "slice",
                           .view = true,
                           .operands = 1,
                           .label = {"x"},
                           .backward = view_backward,
                           .rule = &(rule){take_slice}};
const gr_op gr_op_expand = {.name = "expand", .view = true, .operands = 1, .label = {"x"}, .backward = expand_backward};

/* What x is a view of, through ops that see each element once and copy nothing. */
static gr_tensor *base_of(gr_tensor *x) {
    while (x->node && x->node->op->backward == view_backward && !x->retain_grad && gr_wants(x->node, 0)) {
        gr_tensor *whole = x->node->in[0];
        if (x->node->op == &gr_op_reshape && x->data != whole->data) break; /* it had to copy */
        x = whole;
    }
    return x;
}

gr_tensor *gr_gradient_in_place(gr_tensor *x, bool *fresh) {
    gr_tensor *base = base_of(x);
    const bool in_place = !x->grad && base != x && gr_is_contiguous(base);
    if (!in_place) base = x;
    /* What x does not see, if it is only a part, is to be 0 too. */
    const bool may_write = fresh && gr_numel(base) == gr_numel(x);
    if (fresh) *fresh = false;
    gr_tensor *grad = may_write ? gr_gradient_fresh(base, fresh) : gr_gradient(base);
    return in_place && !gr_is_inert(grad) ? gr_view(grad, x->shape, x->stride, x->data - base->data) : grad;
}

static bool is_slice(const gr_tensor *x) { return x->node && x->node->op == &gr_op_slice; }

bool gr_have_gradients_apart(gr_tensor *a, gr_tensor *b) {
    if (a == b) return false;
    if (base_of(a) != base_of(b)) return true;
    if (!is_slice(a) || !is_slice(b) || a->node->in[0] != b->node->in[0]) return false;
    const geometry *x = a->node->saved, *y = b->node->saved;
    const int64_t n_x = x->shape.dim[x->axis], n_y = y->shape.dim[y->axis];
    if (n_x == 0 || n_y == 0) return true;
    const int64_t last_x = x->start + (n_x - 1) * x->step, last_y = y->start + (n_y - 1) * y->step;
    return x->axis == y->axis && (last_x < y->start || last_y < x->start);
}

static gr_tensor *record_view(const gr_op *op, gr_tensor *x, const geometry *g) {
    const rule *r = op->rule;
    return gr_record(op, r->take(x, g), 1, &x, g, sizeof *g);
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

static gr_tensor *refuse_axes(const gr_op *op, gr_tensor *x) {
    return gr_refuse(op, 1, &x, "a shape of more than %d axes", GR_MAX_DIMS);
}

gr_tensor *gr_reshape(gr_tensor *x, gr_shape shape) {
    gr_tensor *bad = gr_check(&gr_op_reshape, 1, &x);
    if (bad) return bad;
    if (too_many_axes(shape)) return refuse_axes(&gr_op_reshape, x);
    geometry g = {.shape = shape};
    int64_t own = gr_numel(x), wanted = gr_shape_numel(shape);
    if (!infer_size(&g.shape, own)) {
        const char *text = gr_show_shape(x->ctx, shape);
        if (wanted < 0)
            return gr_refuse(&gr_op_reshape, 1, &x, "%lld elements cannot take the shape %s", (long long)own, text);
        return gr_refuse(&gr_op_reshape, 1, &x, "%lld elements cannot take the shape %s of %lld", (long long)own, text,
                         (long long)wanted);
    }
    return record_view(&gr_op_reshape, x, &g);
}

gr_tensor *gr_transpose(gr_tensor *x, int axis0, int axis1) {
    gr_tensor *bad = gr_check(&gr_op_transpose, 1, &x);
    if (bad) return bad;
    int i = gr_shape_axis(x->shape, axis0), j = gr_shape_axis(x->shape, axis1);
    if (i < 0 || j < 0) return gr_refuse(&gr_op_transpose, 1, &x, "has no axis %d", i < 0 ? axis0 : axis1);
    geometry g = {.shape = x->shape};
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
    geometry g = {.shape = x->shape};
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
        return gr_refuse(&gr_op_slice, 1, &x, "axis %d from %lld to %lld by %lld; its size is %lld", axis,
                         (long long)start, (long long)stop, (long long)step, (long long)size);
    geometry g = {.shape = x->shape, .axis = i, .start = from, .step = step};
    g.shape.dim[i] = (to - from) / step + ((to - from) % step != 0);
    return record_view(&gr_op_slice, x, &g);
}

gr_tensor *gr_expand(gr_tensor *x, gr_shape shape) {
    gr_tensor *bad = gr_check(&gr_op_expand, 1, &x);
    if (bad) return bad;
    gr_shape common;
    if (too_many_axes(shape)) return refuse_axes(&gr_op_expand, x);
    /* More elements than size_t counts (of 32 bits) no op could walk over. */
    const int64_t n = gr_shape_numel(shape);
    if (n < 0 || (uint64_t)n > SIZE_MAX / 2 || x->shape.ndim > shape.ndim ||
        !gr_shape_broadcast(x->shape, shape, &common) || !gr_shape_equal(common, shape))
        return gr_refuse(&gr_op_expand, 1, &x, "cannot be expanded to %s", gr_show_shape(x->ctx, shape));
    int64_t stride[GR_MAX_DIMS];
    gr_broadcast_strides(x, shape, stride);
    return gr_record(&gr_op_expand, gr_view(x, shape, stride, 0), 1, &x, NULL, 0);
}

gr_tensor *gr_select(gr_tensor *x, int axis, int64_t index) {
    const gr_op *op = &select_messages;
    gr_tensor *bad = gr_check(op, 1, &x);
    if (bad) return bad;
    int i = gr_shape_axis(x->shape, axis);
    if (i < 0) return gr_refuse(op, 1, &x, "has no axis %d", axis);
    int64_t size = x->shape.dim[i], at = index < 0 ? index + size : index;
    if (at < 0 || at >= size)
        return gr_refuse(op, 1, &x, "index %lld of axis %d; its size is %lld", (long long)index, axis, (long long)size);
    gr_tensor *one = gr_slice(x, axis, at, at + 1, 1);
    return gr_is_inert(one) ? one : gr_reshape(one, gr_shape_reduced(one->shape, 1u << i, false));
}

static void check_split(gr_tensor *x, int axis, int parts, gr_tensor **out) {
    const gr_op *op = &split_messages;
    if (gr_check(op, 1, &x)) return;
    int64_t size = gr_dim(x, axis);
    if (!out)
        gr_refuse(op, 1, &x, "no place for the parts: out is NULL");
    else if (gr_shape_axis(x->shape, axis) < 0)
        gr_refuse(op, 1, &x, "has no axis %d", axis);
    else if (parts < 1 || size % parts)
        gr_refuse(op, 1, &x, "axis %d of size %lld cannot be split into %d equal parts", axis, (long long)size, parts);
}

void gr_split(gr_tensor *x, int axis, int parts, gr_tensor **out) {
    check_split(x, axis, parts, out);
    int64_t each = parts > 0 ? gr_dim(x, axis) / parts : 0;
    for (int i = 0; out && i < parts; i++) out[i] = gr_slice(x, axis, i * each, (i + 1) * each, 1);
}
