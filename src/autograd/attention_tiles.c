#include "attention_tiles.h"

#include "../tensor/parallel.h"

#include <assert.h>

static_assert((int)TILE <= (int)GR_MASK_ROW, "a mask must be able to show a row of a tile");

matrix gr_transposed(matrix a) { return (matrix){a.x, a.col, a.row}; }
matrix gr_rows_from(matrix a, int64_t i) { return (matrix){a.x + i * a.row, a.row, a.col}; }

/* Matrix number `lead` of the leading axes of a tensor. */
matrix gr_matrix_of(const gr_tensor *x, int64_t lead) {
    int n = x->shape.ndim;
    gr_shape leading = x->shape;
    leading.ndim -= 2;
    return (matrix){x->data + gr_shape_offset(leading, x->stride, lead), x->stride[n - 2], x->stride[n - 1]};
}

matrix gr_rows_of(const gr_tensor *x, int64_t lead, int64_t row) { return gr_rows_from(gr_matrix_of(x, lead), row); }

gr_tensor *gr_permuted(gr_tensor *x, gr_axes order) {
    gr_shape shape = x->shape;
    int64_t stride[GR_MAX_DIMS];
    for (int k = 0; k < shape.ndim; k++)
        shape.dim[k] = x->shape.dim[order.axis[k]], stride[k] = x->stride[order.axis[k]];
    return gr_view(x, shape, stride, 0);
}

bool gr_start_attention(attention_job *job, gr_tensor *lies, gr_tensor *const in[3], const attention_saved *s) {
    gr_context *ctx = lies->ctx;
    gr_tensor *output = gr_permuted(lies, s->order);
    if (gr_is_inert(output)) return false;
    int n = output->shape.ndim;
    *job = (attention_job){.kernels = ctx->kernels, .saved = s, .q = in[0], .k = in[1], .v = in[2], .output = output};
    job->scores = output->shape;
    job->queries = output->shape.dim[n - 2], job->keys = in[1]->shape.dim[n - 2];
    job->d = in[0]->shape.dim[n - 1], job->d_v = output->shape.dim[n - 1];
    job->scores.dim[n - 1] = job->keys;
    job->query_tiles = (job->queries + TILE - 1) / TILE, job->key_tiles = (job->keys + TILE - 1) / TILE;
    job->rounds = job->query_tiles > job->key_tiles ? job->query_tiles : job->key_tiles;
    job->leads = 1;
    for (int k = 0; k < n - 2; k++) job->leads *= output->shape.dim[k];
    job->tiles = gr_pool_take(ctx, GR_SHAPE(gr_max_threads(), 2, TILE_SCORES));
    job->scratch = gr_product_scratch(ctx);
    return !gr_is_inert(job->tiles) && job->scratch;
}

matrix gr_scores_of(const attention_job *job, int thread) {
    return (matrix){job->tiles->data + (size_t)thread * 2 * TILE_SCORES, TILE_ROW, 1};
}
matrix gr_d_scores_of(const attention_job *job, int thread) {
    return (matrix){gr_scores_of(job, thread).x + TILE_SCORES, TILE_ROW, 1};
}

void gr_multiply_tiles(const attention_job *job, int thread, attention_product p, matrix a, matrix b, matrix c) {
    gr_gemm g = {.m = (size_t)p.m,
                 .n = (size_t)p.n,
                 .k = (size_t)p.k,
                 .a = a.x,
                 .b = b.x,
                 .a_row = a.row,
                 .a_col = a.col,
                 .b_row = b.row,
                 .b_col = b.col,
                 .c = c.x,
                 .c_row = c.row,
                 .accumulate = p.accumulate,
                 .scratch = job->scratch + thread * GR_GEMM_SCRATCH};
    if (p.hide)
        job->kernels->matmul_hiding(&g);
    else
        job->kernels->matmul(&g);
}

bool gr_leads_are_finite(const gr_tensor *x, int64_t leads) {
    const size_t rows = (size_t)x->shape.dim[x->shape.ndim - 2], columns = (size_t)x->shape.dim[x->shape.ndim - 1];
    for (int64_t lead = 0; lead < leads; lead++) {
        const matrix a = gr_matrix_of(x, lead);
        if (!gr_matrix_is_finite(x->ctx->kernels, rows, columns, a.x, a.row, a.col)) return false;
    }
    return true;
}

/* Cut down to the columns of which something is visible. */
static tile trimmed(tile t) {
    gr_masked_part part = gr_mask_part(&t.mask, t.i, t.i + t.rows, t.j, t.j + t.columns);
    t.seen = part.seen, t.j = part.from, t.columns = part.to - part.from;
    return t;
}

tile gr_tile_at(const attention_job *job, int64_t lead, int64_t query_tile, int64_t key_tile) {
    tile t = {.lead = lead, .i = query_tile * TILE, .j = key_tile * TILE};
    t.mask = gr_masked_at(&job->saved->mask, job->scores, lead);
    t.rows = job->queries - t.i < TILE ? job->queries - t.i : TILE;
    t.columns = job->keys - t.j < TILE ? job->keys - t.j : TILE;
    return trimmed(t);
}

tile gr_band_at(const tile *whole, int64_t row) {
    tile t = *whole;
    if (t.seen != GR_SEEN_SOME) return t;
    t.i += row, t.rows = t.rows - row < BAND ? t.rows - row : BAND;
    return trimmed(t);
}

tile_row gr_row_at(const tile *t, int64_t r, gr_real room[GR_MASK_ROW]) {
    if (t->seen == GR_SEEN_ALL) return (tile_row){0, t->columns, NULL};
    gr_masked_part part = gr_mask_part(&t->mask, t->i + r, t->i + r + 1, t->j, t->j + t->columns);
    tile_row row = {part.from - t->j, part.to - part.from, NULL};
    if (part.seen != GR_SEEN_SOME) return row;
    gr_mask_row(&t->mask, t->i + r, part.from, part.to, room);
    row.allow = room;
    return row;
}

void gr_clear_ends(const tile *t, tile_row row, gr_real *x) {
    for (int64_t c = 0; c < row.from; c++) x[c] = 0;
    for (int64_t c = row.from + row.count; c < t->columns; c++) x[c] = 0;
}

void gr_drop_row(const attention_job *job, const tile *t, int64_t r, gr_real *row) {
    if (job->saved->drop.p == 0) return;
    int64_t first = (t->lead * job->queries + t->i + r) * job->keys + t->j;
    gr_keep_elements(job->saved->drop, (size_t)first, (size_t)t->columns, row, row, false);
}
