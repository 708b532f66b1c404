/* Joining tensors and picking rows. Backward of joining cuts dy up; backward of picking adds each row of dy where it
 * came from. */
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
        gr_tensor *dx = gr_wants(n, i) ? gr_gradient(n->in[i]) : NULL;
        gr_tensor *dy = dx ? part_of(n->out->grad, axis, start, size) : NULL;
        if (!gr_is_inert(dx) && !gr_is_inert(dy)) gr_run_map(GR_MAP_plus, 0, dx, 1, &dy);
        start += size;
    }
}

typedef struct picked {
    const int32_t *ids;
    int64_t count;
} picked;

/* Each row of the table is the sum of its uses in their order; one thread, as two uses may be of one row. */
static void gather_rows_backward(gr_node *n) {
    const picked *p = n->saved;
    gr_tensor *dw = gr_wants(n, 0) ? gr_gradient(n->in[0]) : NULL;
    if (gr_is_inert(dw)) return;
    int64_t width = dw->shape.dim[1];
    gr_map *plus = dw->ctx->kernels->map[GR_MAP_plus];
    for (int64_t i = 0; i < p->count; i++)
        plus(&(gr_row){(size_t)width, {dw->data + p->ids[i] * width, n->out->grad->data + i * width}, {1, 1}, 0});
}

const gr_op gr_op_concat = {.name = "concat", .operands = GR_ANY_NUMBER, .backward = concat_backward};
const gr_op gr_op_gather_rows = {
    .name = "gather_rows", .operands = 1, .label = {"table"}, .backward = gather_rows_backward};

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
    static const gr_op named = {.name = "stack", .operands = GR_ANY_NUMBER, .backward = NULL},
                       *op = &named; /* for messages: not an op of its own */
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
    gr_tensor **wide = gr_alloc(ctx, false, (size_t)count * sizeof *wide);
    for (int i = 0; wide && i < count; i++) wide[i] = gr_reshape(x[i], shape);
    return wide ? gr_concat(wide, count, at) : gr_inert(ctx);
}

gr_tensor *gr_gather_rows(gr_tensor *table, gr_tokens ids) {
    const gr_op *op = &gr_op_gather_rows;
    gr_tensor *bad = gr_check(op, 1, &table);
    if (bad) return bad;
    gr_context *ctx = table->ctx;
    if (table->shape.ndim != 2) return gr_refuse(op, 1, &table, "the table must be (rows, width)");
    int64_t rows = table->shape.dim[0], width = table->shape.dim[1];
    gr_tensor *y = gr_new(ctx, op->name, false, GR_SHAPE(ids.batch, ids.time, width));
    if (gr_is_inert(y)) return y;
    picked p = {NULL, ids.batch * ids.time};
    if (!ids.ids && p.count > 0) return gr_refuse(op, 1, &table, "ids are NULL");
    for (int64_t i = 0; i < p.count; i++)
        if (ids.ids[i] < 0 || ids.ids[i] >= rows)
            return gr_refuse(op, 1, &table, "id %d at position %lld; valid are 0 to %lld", (int)ids.ids[i],
                             (long long)i, (long long)rows - 1);
    int32_t *copy = gr_alloc(ctx, false, (size_t)p.count * sizeof *copy);
    gr_tensor *from = gr_contiguous(table);
    if (!gr_ok(ctx)) return gr_inert(ctx);
    for (int64_t i = 0; i < p.count; i++) {
        copy[i] = ids.ids[i];
        memcpy(y->data + i * width, from->data + copy[i] * width, (size_t)width * sizeof *y->data);
    }
    p.ids = copy;
    return gr_record(op, y, 1, &table, &p, sizeof p);
}
