#include "attention_tiles.h"

#include "../tensor/parallel.h"

/* The weights P and the gradient dS of the unscaled scores of a tile, from S = Q K^T and dP = dO V^T. */
static void differentiate_tile(const attention_job *job, const attention_tile *t, gr_matrix s, gr_matrix dp) {
    gr_real room[GR_MASK_ROW];
    for (int64_t r = 0; r < t->rows; r++) {
        const int64_t at = t->lead * job->queries + t->i + r;
        gr_real *x = s.x + r * s.row, *dx = dp.x + r * dp.row;
        const attention_row row = gr_attention_row_at(t, r, room);
        gr_drop_row(job, t, r, dx);
        job->kernels->attention_dx((size_t)row.count, x + row.from, dx + row.from, row.allow,
                                   (gr_real)job->saved->scale, job->saved->peak->data[at],
                                   job->saved->inverse->data[at], job->delta->data[at]);
        gr_clear_ends(t, row, x);
        gr_clear_ends(t, row, dx);
        gr_drop_row(job, t, r, x);
    }
}

/* dV += P^T dO, dQ += dS K, dK += dS^T Q for one tile of scores. */
static void differentiate(const attention_job *job, const attention_tile *t, int thread) {
    const gr_kernels *kernels = job->kernels;
    gr_real *scratch = job->scratch + (size_t)thread * GR_GEMM_SCRATCH;
    const gr_product_how set = {false, false}, add = {true, job->hide};
    const gr_matrix p = gr_scores_of(job, t, thread), ds = gr_d_scores_of(job, t, thread);
    const gr_matrix q = gr_queries_of(t, job->q), d_out = gr_queries_of(t, job->d_output);
    const gr_matrix k = gr_keys_of(t, job->k), v = gr_keys_of(t, job->v);
    gr_multiply(kernels, scratch, p, q, gr_transposed(k), set);
    gr_multiply(kernels, scratch, ds, d_out, gr_transposed(v), set);
    differentiate_tile(job, t, p, ds);
    if (job->dv) gr_multiply(kernels, scratch, gr_keys_of(t, job->dv), gr_transposed(p), d_out, add);
    if (job->dq) gr_multiply(kernels, scratch, gr_queries_of(t, job->dq), ds, k, add);
    if (job->dk) gr_multiply(kernels, scratch, gr_keys_of(t, job->dk), gr_transposed(ds), q, add);
}

static void run_tiles(size_t begin, size_t end, int thread, void *arg) {
    const attention_job *job = arg;
    for (size_t item = begin; item < end; item++) {
        const attention_tile *whole = &job->round_tiles[item];
        for (int64_t r = 0; r < whole->rows;) {
            const attention_tile t = gr_attention_band_at(whole, r);
            if (t.seen != GR_SEEN_NONE) differentiate(job, &t, thread);
            r += t.rows;
        }
    }
}

/* A block of query tiles is gone through in rounds: in round r tile i of the queries meets tile i + r (mod rounds) of
 * the keys. In a round no two tiles share a row or a column, so that all can be worked on at once, and every gradient
 * is summed in the order of blocks and rounds, whatever the threads. A block is so short that under a window its rows
 * are still in the cache in the next round. */
enum { BLOCK_TILES = 8 };

static void find_tiles(size_t begin, size_t end, int thread, void *arg) {
    (void)thread;
    const attention_job *job = arg;
    for (size_t item = begin; item < end; item++) {
        int64_t lead = (int64_t)item / job->block, i = job->first + (int64_t)item % job->block;
        int64_t j = (i + job->round) % job->rounds;
        job->round_tiles[item].seen = GR_SEEN_NONE;
        if (j < job->key_tiles) job->round_tiles[item] = gr_attention_tile_at(job, lead, i, j);
    }
}

static void run_round(attention_job *job) {
    const size_t all = (size_t)(job->leads * job->block);
    size_t count = 0;
    gr_parallel_for(all, GR_COST_OF_EXP, find_tiles, job);
    for (size_t item = 0; item < all; item++)
        if (job->round_tiles[item].seen != GR_SEEN_NONE) job->round_tiles[count++] = job->round_tiles[item];
    const size_t terms = 3 * (size_t)gr_dim(job->q, -1) + 2 * (size_t)job->d_v + GR_COST_OF_EXP;
    gr_parallel_for(count, 2 * ATTENTION_SCORES * terms, run_tiles, job);
}

static void run_blocks(attention_job *job) {
    job->rounds = job->query_tiles > job->key_tiles ? job->query_tiles : job->key_tiles;
    for (job->first = 0; job->first < job->query_tiles; job->first += BLOCK_TILES) {
        const int64_t left = job->query_tiles - job->first;
        job->block = left < BLOCK_TILES ? left : BLOCK_TILES;
        for (job->round = 0; job->round < job->rounds; job->round++) run_round(job);
    }
}

/* delta = sum_j p_j dp_j = sum_j p_j (dO . v_j) = dO . O */
static void run_delta(size_t begin, size_t end, int thread, void *arg) {
    (void)thread;
    const attention_job *job = arg;
    for (size_t lead = begin; lead < end; lead++) {
        const gr_matrix o = gr_matrix_of(job->output, (int64_t)lead, 0, job->queries);
        const gr_matrix d_o = gr_matrix_of(job->d_output, (int64_t)lead, 0, job->queries);
        for (int64_t i = 0; i < job->queries; i++)
            job->delta->data[(int64_t)lead * job->queries + i] =
                job->kernels->dot((size_t)job->d_v, o.x + i * o.row, d_o.x + i * d_o.row);
    }
}

/* Two tiles of a round may stand in the same rows, one as queries, one as keys: where q, k and v share elements, each
 * gradient gets memory of its own, and is added at the end. */
static bool take_gradients(attention_job *job, gr_node *n) {
    gr_tensor **gradient[] = {&job->dq, &job->dk, &job->dv};
    for (int i = 0; i < 3; i++) {
        gr_tensor *x = n->in[i];
        if (!gr_wants(n, i)) continue;
        bool own = x->stride[x->shape.ndim - 1] != 1; /* a product writes rows without gaps */
        for (int k = 0; k < i; k++) own = own || !gr_have_gradients_apart(x, n->in[k]);
        if (own) job->shared[i] = gr_gradient(x);
        *gradient[i] = own ? gr_pool_take(x->ctx, x->shape) : gr_gradient_in_place(x, NULL);
        if (gr_is_inert(*gradient[i])) return false;
        if (own) gr_clear(*gradient[i]);
    }
    job->delta = gr_pool_take(n->out->ctx, job->saved->peak->shape);
    job->round_tiles = gr_alloc_array(n->out->ctx, false, job->leads * BLOCK_TILES, sizeof *job->round_tiles);
    return job->round_tiles && !gr_is_inert(job->delta);
}

static void give_gradients(attention_job *job) {
    gr_tensor *own[] = {job->dq, job->dk, job->dv};
    for (int i = 0; i < 3; i++) {
        if (!job->shared[i]) continue;
        gr_run_map(GR_MAP_plus, 0, job->shared[i], 1, &own[i]);
        gr_pool_give(own[i]);
    }
    gr_pool_give(job->delta);
    gr_pool_give(job->tiles);
}

void gr_fused_attention_backward(gr_node *n) {
    attention_job job;
    if (!gr_start_attention(&job, n->out, n->in, n->saved)) return;
    job.d_output = gr_permuted(n->out->grad, job.saved->order);
    if (gr_is_inert(job.d_output) || !take_gradients(&job, n)) return;
    job.hide = !(gr_is_finite(job.q) && gr_is_finite(job.k) && gr_is_finite(job.d_output));
    gr_parallel_for((size_t)job.leads, GR_COST_OF_TERM * (size_t)job.queries * (size_t)job.d_v, run_delta, &job);
    run_blocks(&job);
    give_gradients(&job);
}
