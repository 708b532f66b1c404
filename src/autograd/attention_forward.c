#include "attention_tiles.h"

#include "../tensor/parallel.h"

#include <math.h>

/* Scores of a tile become weights, still without their common divisor; the rows of the output that stand on an older
 * peak are brought to the new one. */
static void join_tile(const attention_job *job, const attention_tile *t, gr_matrix s, gr_online_softmax *state,
                      gr_matrix out) {
    gr_real room[GR_MASK_ROW];
    for (int64_t r = 0; r < t->rows; r++) {
        gr_real *x = s.x + r * s.row, *o = out.x + r * out.row;
        const attention_row row = gr_attention_row_at(t, r, room);
        gr_real factor = job->kernels->softmax_join((size_t)row.count, x + row.from, row.allow,
                                                    (gr_real)job->saved->scale, &state[r]);
        for (int64_t c = 0; factor != 1 && c < job->d_v; c++) o[c] *= factor;
        gr_clear_ends(t, row, x);
        gr_drop_row(job, t, r, x);
    }
}

/* O = O e^(old peak - peak) + e^(S - peak) V, S = Q K^T, for one tile of scores. */
static void attend_tile(const attention_job *job, const attention_tile *t, gr_online_softmax *state, int thread) {
    gr_real *scratch = job->scratch + (size_t)thread * GR_GEMM_SCRATCH;
    const gr_matrix q = gr_queries_of(t, job->q), k = gr_keys_of(t, job->k), v = gr_keys_of(t, job->v);
    const gr_matrix s = gr_scores_of(job, t, thread), out = gr_queries_of(t, job->output);
    gr_multiply(job->kernels, scratch, s, q, gr_transposed(k), (gr_product_how){false, false});
    join_tile(job, t, s, state, out);
    gr_multiply(job->kernels, scratch, out, s, v, (gr_product_how){true, job->hide});
}

/* The output of a tile of queries, over all keys that are not hidden. */
static void attend(const attention_job *job, int64_t lead, int64_t query_tile, int thread) {
    gr_online_softmax state[ATTENTION_TILE];
    const int64_t begin = query_tile * ATTENTION_TILE, left = job->queries - begin;
    const int64_t rows = left < ATTENTION_TILE ? left : ATTENTION_TILE;
    const gr_matrix out = gr_matrix_of(job->output, lead, begin, rows);
    for (int64_t r = 0; r < rows; r++) {
        state[r] = (gr_online_softmax){(gr_real)-INFINITY, 0};
        for (int64_t c = 0; c < job->d_v; c++) out.x[r * out.row + c] = 0;
    }
    for (int64_t j = 0; j < job->key_tiles; j++) {
        const attention_tile whole = gr_attention_tile_at(job, lead, query_tile, j);
        for (int64_t r = 0; whole.seen != GR_SEEN_NONE && r < rows;) {
            const attention_tile t = gr_attention_band_at(&whole, r);
            if (t.seen != GR_SEEN_NONE) attend_tile(job, &t, state + r, thread);
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

void gr_fused_attention(gr_tensor *stored, gr_tensor *const in[3], const attention_saved *s) {
    attention_job job;
    if (!gr_start_attention(&job, stored, in, s)) return;
    job.hide = !gr_is_finite(job.v);
    const size_t terms = (size_t)gr_dim(job.q, -1) + (size_t)job.d_v + GR_COST_OF_EXP;
    const size_t cost = 2 * ATTENTION_TILE * (size_t)job.keys * terms;
    gr_parallel_for((size_t)(job.leads * job.query_tiles), cost, run_forward, &job);
    gr_pool_give(job.tiles);
}
