/* Picking rows of a table: an embedding. Backward adds each row of dy to the row it came from. */
#include "tape.h"

#include <string.h>

typedef struct picked {
    const int32_t *ids;
    int64_t count;
} picked;

/* Each row of the table is the sum of its uses in their order; one thread, as two uses may be of one row. */
static void gather_rows_backward(gr_node *n) {
    const picked *p = n->saved;
    gr_tensor *dw = gr_wanted_gradient(n, 0);
    if (gr_is_inert(dw)) return;
    int64_t width = dw->shape.dim[1];
    gr_map *plus = dw->ctx->kernels->map[GR_MAP_plus];
    for (int64_t i = 0; i < p->count; i++)
        plus(&(gr_row){(size_t)width, {dw->data + p->ids[i] * width, n->out->grad->data + i * width}, {1, 1}, 0});
}

const gr_op gr_op_gather_rows = {
    .name = "gather_rows", .operands = 1, .label = {"table"}, .backward = gather_rows_backward};

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
    int32_t *copy = gr_alloc_array(ctx, false, p.count, sizeof *copy);
    gr_tensor *from = gr_contiguous(table);
    if (!gr_ok(ctx)) return gr_inert(ctx);
    for (int64_t i = 0; i < p.count; i++) {
        copy[i] = ids.ids[i];
        memcpy(y->data + i * width, from->data + copy[i] * width, (size_t)width * sizeof *y->data);
    }
    p.ids = copy;
    return gr_record(op, y, 1, &table, &p, sizeof p);
}
