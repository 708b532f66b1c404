#include "attention_tiles.h"

#include "../tensor/parallel.h"

#include <assert.h>

static_assert((int)ATTENTION_TILE <= (int)GR_MASK_ROW, "a mask must be able to show a row of a tile");

gr_tensor *gr_permuted(gr_tensor *x, gr_axes order) {
    gr_shape shape = x->shape;
    int64_t stride[GR_MAX_DIMS];
    for (int k = 0; k < shape.ndim; k++)
        shape.dim[k] = x->shape.dim[order.axis[k]], stride[k] = x->stride[order.axis[k]];
    return gr_view(x, shape, stride, 0);
}

bool gr_is_finite(const gr_tensor *x) {
    for (int64_t lead = 0; lead < gr_matrices(x->shape); lead++)
        if (!gr_matrix_is_finite(x->ctx->kernels, gr_matrix_of(x, lead, 0, x->shape.dim[x->shape.ndim - 2])))
            return false;
    return true;
}

bool gr_start_attention(attention_job *job, gr_tensor *stored, gr_tensor *const in[3], const attention_saved *s) {
    gr_context *ctx = stored->ctx;
    gr_tensor *output = gr_permuted(stored, s->order);
    if (gr_is_inert(output)) return false;
    int n = output->shape.ndim;
    *job = (attention_job){.kernels = ctx->kernels, .saved = s, .q = in[0], .k = in[1], .v = in[2], .output = output};
    job->scores = output->shape;
    job->queries = output->shape.dim[n - 2], job->keys = in[1]->shape.dim[n - 2], job->d_v = output->shape.dim[n - 1];
    job->scores.dim[n - 1] = job->keys;
    job->query_tiles = (job->queries + ATTENTION_TILE - 1) / ATTENTION_TILE;
    job->key_tiles = (job->keys + ATTENTION_TILE - 1) / ATTENTION_TILE;
    job->leads = gr_matrices(output->shape);
    job->tiles = gr_pool_take(ctx, GR_SHAPE(gr_max_threads(), 2, ATTENTION_SCORES));
    job->scratch = gr_product_scratch(ctx);
    return !gr_is_inert(job->tiles) && job->scratch;
}

/* -- Tiles --------------------------------------------------------------------------------------------------------- */

static attention_tile trimmed(attention_tile t) {
    gr_mask_range range = gr_mask_range_of(&t.mask, t.i, t.i + t.rows, t.j, t.j + t.columns);
    t.seen = range.seen, t.j = range.from, t.columns = range.to - range.from;
    return t;
}

attention_tile gr_attention_tile_at(const attention_job *job, int64_t lead, int64_t query_tile, int64_t key_tile) {
    attention_tile t = {.lead = lead, .i = query_tile * ATTENTION_TILE, .j = key_tile * ATTENTION_TILE};
    t.mask = gr_mask_view_at(&job->saved->mask, job->scores, lead);
    t.rows = job->queries - t.i < ATTENTION_TILE ? job->queries - t.i : ATTENTION_TILE;
    t.columns = job->keys - t.j < ATTENTION_TILE ? job->keys - t.j : ATTENTION_TILE;
    return trimmed(t);
}

attention_tile gr_attention_band_at(const attention_tile *whole, int64_t row) {
    attention_tile t = *whole;
    if (t.seen != GR_SEEN_SOME) return t;
    t.i += row, t.rows = t.rows - row < ATTENTION_BAND ? t.rows - row : ATTENTION_BAND;
    return trimmed(t);
}

gr_matrix gr_scores_of(const attention_job *job, const attention_tile *t, int thread) {
    gr_real *first = job->tiles->data + (size_t)thread * 2 * ATTENTION_SCORES;
    return (gr_matrix){(size_t)t->rows, (size_t)t->columns, first, ATTENTION_ROW, 1};
}

gr_matrix gr_d_scores_of(const attention_job *job, const attention_tile *t, int thread) {
    gr_matrix s = gr_scores_of(job, t, thread);
    s.x += ATTENTION_SCORES;
    return s;
}

/* -- Rows ---------------------------------------------------------------------------------------------------------- */

attention_row gr_attention_row_at(const attention_tile *t, int64_t r, gr_real room[GR_MASK_ROW]) {
    if (t->seen == GR_SEEN_ALL) return (attention_row){0, t->columns, NULL};
    gr_mask_range range = gr_mask_range_of(&t->mask, t->i + r, t->i + r + 1, t->j, t->j + t->columns);
    attention_row row = {range.from - t->j, range.to - range.from, NULL};
    if (range.seen != GR_SEEN_SOME) return row;
    gr_mask_row(&t->mask, t->i + r, range.from, range.to, room);
    row.allow = room;
    return row;
}

void gr_clear_ends(const attention_tile *t, attention_row row, gr_real *x) {
    for (int64_t c = 0; c < row.from; c++) x[c] = 0;
    for (int64_t c = row.from + row.count; c < t->columns; c++) x[c] = 0;
}

void gr_drop_row(const attention_job *job, const attention_tile *t, int64_t r, gr_real *row) {
    if (job->saved->drop.p == 0) return;
    int64_t first = (t->lead * job->queries + t->i + r) * job->keys + t->j;
    gr_keep_elements(job->saved->drop, (size_t)first, (size_t)t->columns, row, row, false);
}
