/* Joining tensors along an axis they have, or along a new one. Backward cuts dy up. */
#include "tape.h"

#include <string.h>

/* The part of x along an axis, from start on, of a given size. */
static gr_tensor *part_of(gr_tensor *x, int axis, int64_t start, int64_t size) {
    gr_shape shape = x->shape;
    shape.dim[axis] = size;
    return gr_view(x, shape, x->stride, start * x->stride[axis]);
}

static void concat_backward(gr_node *n) {
    int axis = *(const int *)n->saved;
    int64_t start = 0;
    for (int i = 0; i < n->count; i++) {
        int64_t size = n->in[i]->shape.dim[axis];
        gr_tensor *dx = gr_wanted_gradient(n, i);
        gr_tensor *dy = gr_is_inert(dx) ? dx : part_of(n->out->grad, axis, start, size);
        if (!gr_is_inert(dy)) gr_run_map(GR_MAP_plus, 0, dx, 1, &dy);
        start += size;
    }
}

/* stack is made of other ops; this is for its messages. */
static const gr_op stack_messages = {.name = "stack", .operands = GR_ANY_NUMBER};

const gr_op gr_op_concat = {.name = "concat", .operands = GR_ANY_NUMBER, .backward = concat_backward};

gr_tensor *gr_concat(gr_tensor **x, int count, int axis) {
    const gr_op *op = &gr_op_concat;
    if (!x || count < 1) return gr_check(op, 1, (gr_tensor *[]){NULL});
    gr_tensor *bad = gr_check(op, count, x);
    if (bad) return bad;
    int at = gr_shape_axis(x[0]->shape, axis);
    if (at < 0) return gr_refuse(op, 1, x, "has no axis %d", axis);
    gr_shape shape = x[0]->shape;
    for (int i = 1; i < count; i++) {
        gr_shape other = x[i]->shape;
        if (other.ndim != shape.ndim) return gr_refuse(op, 2, (gr_tensor *[]){x[0], x[i]}, "numbers of axes differ");
        int64_t size = other.dim[at];
        other.dim[at] = shape.dim[at];
        if (!gr_shape_equal(other, shape))
            return gr_refuse(op, 2, (gr_tensor *[]){x[0], x[i]}, "sizes differ along another axis than %d", at);
        if (size > INT64_MAX - shape.dim[at])
            return gr_refuse(op, 2, (gr_tensor *[]){x[0], x[i]}, "too large when joined");
        shape.dim[at] += size;
    }
    gr_tensor *y = gr_new(x[0]->ctx, op->name, false, shape);
    int64_t start = 0;
    for (int i = 0; i < count && !gr_is_inert(y); i++) {
        gr_tensor *part = part_of(y, at, start, x[i]->shape.dim[at]);
        if (gr_is_inert(part)) return part;
        gr_run_map(GR_MAP_copy, 0, part, 1, &x[i]);
        start += x[i]->shape.dim[at];
    }
    return gr_record(op, y, count, x, &at, sizeof at);
}

/* Every tensor gets an axis of size 1, and they are joined along it. */
gr_tensor *gr_stack(gr_tensor **x, int count, int axis) {
    const gr_op *op = &stack_messages;
    if (!x || count < 1) return gr_check(op, 1, (gr_tensor *[]){NULL});
    gr_tensor *bad = gr_check(op, count, x);
    if (bad) return bad;
    gr_context *ctx = x[0]->ctx;
    gr_shape shape = x[0]->shape;
    int at = axis < 0 ? axis + shape.ndim + 1 : axis;
    if (at < 0 || at > shape.ndim || shape.ndim == GR_MAX_DIMS)
        return gr_refuse(op, 1, x, "cannot get a new axis %d", axis);
    for (int i = 1; i < count; i++)
        if (!gr_shape_equal(x[i]->shape, shape)) return gr_refuse(op, 2, (gr_tensor *[]){x[0], x[i]}, "shapes differ");
    memmove(&shape.dim[at + 1], &shape.dim[at], (size_t)(shape.ndim - at) * sizeof shape.dim[0]);
    shape.dim[at] = 1, shape.ndim++;
    gr_tensor **wide = gr_alloc_array(ctx, false, count, sizeof *wide);
    for (int i = 0; wide && i < count; i++) wide[i] = gr_reshape(x[i], shape);
    return wide ? gr_concat(wide, count, at) : gr_inert(ctx);
}
