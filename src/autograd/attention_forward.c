#include "attention_tiles.h"

#include "../tensor/parallel.h"

#include <math.h>

/* Scores of a tile become weights, still without their common divisor; the rows of the output that stand on an older
 * peak are brought to the new one. */
static void join_tile(const attention_job *job, const tile *t, gr_real *s, gr_online *state, matrix out) {
    gr_real room[GR_MASK_ROW];
    for (int64_t r = 0; r < t->rows; r++) {
        gr_real *x = s + r * TILE_ROW, *o = out.x + r * out.row;
        const tile_row row = gr_row_at(t, r, room);
        gr_real factor = job->kernels->softmax_join((size_t)row.count, x + row.from, row.allow,
                                                    (gr_real)job->saved->scale, &state[r]);
        for (int64_t c = 0; factor != 1 && c < job->d_v; c++) o[c] *= factor;
        gr_clear_ends(t, row, x);
        gr_drop_row(job, t, r, x);
    }
}

/* O = O e^(old peak - peak) + e^(S - peak) V, S = Q K^T, for one tile of scores. */
static void attend_tile(const attention_job *job, const tile *t, gr_online *state, matrix out, int thread) {
    const matrix s = gr_scores_of(job, thread);
    const matrix q = gr_rows_of(job->q, t->lead, t->i), k = gr_rows_of(job->k, t->lead, t->j);
    const matrix v = gr_rows_of(job->v, t->lead, t->j);
    gr_multiply_tiles(job, thread, (attention_product){t->rows, t->columns, job->d, false, false}, q, gr_transposed(k),
                      s);
    join_tile(job, t, s.x, state, out);
    gr_multiply_tiles(job, thread, (attention_product){t->rows, job->d_v, t->columns, true, job->hide}, s, v, out);
}

/* The output of a tile of queries, over all keys that are not hidden. */
static void attend(const attention_job *job, int64_t lead, int64_t query_tile, int thread) {
    gr_online state[TILE];
    const int64_t begin = query_tile * TILE, rows = job->queries - begin < TILE ? job->queries - begin : TILE;
    const matrix out = gr_rows_of(job->output, lead, begin);
    for (int64_t r = 0; r < rows; r++) {
        state[r] = (gr_online){(gr_real)-INFINITY, 0};
        for (int64_t c = 0; c < job->d_v; c++) out.x[r * out.row + c] = 0;
    }
    for (int64_t j = 0; j < job->key_tiles; j++) {
        const tile whole = gr_tile_at(job, lead, query_tile, j);
        for (int64_t r = 0; whole.seen != GR_SEEN_NONE && r < rows;) {
            const tile t = gr_band_at(&whole, r);
            if (t.seen != GR_SEEN_NONE) attend_tile(job, &t, state + r, gr_rows_from(out, r), thread);
            r += t.rows;
        }
    }
    for (int64_t r = 0; r < rows; r++) {
        const int64_t at = lead * job->queries + begin + r;
        const gr_real inverse = state[r].total == 0 ? 0 : 1 / state[r].total;
        for (int64_t c = 0; c < job->d_v; c++) out.x[r * out.row + c] *= inverse;
        job->saved->peak->data[at] = inverse == 0 ? 0 : state[r].peak;
        job->saved->inverse->data[at] = inverse;
    }
}

/* Tiles of queries from both ends in turn: under a causal mask the late ones cost most, and every thread gets both. */
static void run_forward(size_t begin, size_t end, int thread, void *arg) {
    const attention_job *job = arg;
    for (size_t item = begin; item < end; item++) {
        int64_t lead = (int64_t)item / job->query_tiles, at = (int64_t)item % job->query_tiles;
        attend(job, lead, at % 2 ? job->query_tiles - 1 - at / 2 : at / 2, thread);
    }
}

void gr_attention_forward_tiles(gr_tensor *lies, gr_tensor *const in[3], const attention_saved *s) {
    attention_job job;
    if (!gr_start_attention(&job, lies, in, s)) return;
    job.hide = !gr_leads_are_finite(job.v, job.leads);
    size_t cost = (size_t)(2 * TILE * job.keys * (job.d + job.d_v + GR_COST_OF_EXP));
    gr_parallel_for((size_t)(job.leads * job.query_tiles), cost, run_forward, &job);
    gr_pool_give(job.tiles);
}
