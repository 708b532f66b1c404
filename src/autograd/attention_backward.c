#include "attention_tiles.h"

#include "../tensor/parallel.h"

/* The weights P and the gradient dS of the unscaled scores of a tile, from S = Q K^T and dP = dO V^T. */
static void differentiate_tile(const attention_job *job, const tile *t, gr_real *s, gr_real *dp) {
    gr_real room[GR_MASK_ROW];
    for (int64_t r = 0; r < t->rows; r++) {
        const int64_t at = t->lead * job->queries + t->i + r;
        gr_real *x = s + r * TILE_ROW, *dx = dp + r * TILE_ROW;
        const tile_row row = gr_row_at(t, r, room);
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
static void attend_backward(const attention_job *job, const tile *t, int thread) {
    const int64_t m = t->rows, n = t->columns, d = job->d, d_v = job->d_v;
    const matrix p = gr_scores_of(job, thread), ds = gr_d_scores_of(job, thread);
    const matrix q = gr_rows_of(job->q, t->lead, t->i), k = gr_rows_of(job->k, t->lead, t->j);
    const matrix v = gr_rows_of(job->v, t->lead, t->j);
    const matrix d_out = gr_rows_of(job->d_output, t->lead, t->i);
    gr_multiply_tiles(job, thread, (attention_product){m, n, d, false, false}, q, gr_transposed(k), p);
    gr_multiply_tiles(job, thread, (attention_product){m, n, d_v, false, false}, d_out, gr_transposed(v), ds);
    differentiate_tile(job, t, p.x, ds.x);
    if (job->dv)
        gr_multiply_tiles(job, thread, (attention_product){n, d_v, m, true, job->hide}, gr_transposed(p), d_out,
                          gr_rows_of(job->dv, t->lead, t->j));
    if (job->dq)
        gr_multiply_tiles(job, thread, (attention_product){m, d, n, true, job->hide}, ds, k,
                          gr_rows_of(job->dq, t->lead, t->i));
    if (job->dk)
        gr_multiply_tiles(job, thread, (attention_product){n, d, m, true, job->hide}, gr_transposed(ds), q,
                          gr_rows_of(job->dk, t->lead, t->j));
}

static tile tile_of_round(const attention_job *job, int64_t lead, int64_t query_tile) {
    int64_t j = (query_tile + job->round) % job->rounds;
    return j < job->key_tiles ? gr_tile_at(job, lead, query_tile, j) : (tile){.seen = GR_SEEN_NONE};
}

static void run_backward(size_t begin, size_t end, int thread, void *arg) {
    const attention_job *job = arg;
    for (size_t item = begin; item < end; item++) {
        const tile whole = tile_of_round(job, job->pairs[item][0], job->pairs[item][1]);
        for (int64_t r = 0; r < whole.rows;) {
            const tile t = gr_band_at(&whole, r);
            if (t.seen != GR_SEEN_NONE) attend_backward(job, &t, thread);
            r += t.rows;
        }
    }
}

/* delta = sum_j p_j dp_j = sum_j p_j (dO . v_j) = dO . O */
static void run_delta(size_t begin, size_t end, int thread, void *arg) {
    (void)thread;
    const attention_job *job = arg;
    for (size_t lead = begin; lead < end; lead++) {
        const matrix o = gr_matrix_of(job->output, (int64_t)lead), d_o = gr_matrix_of(job->d_output, (int64_t)lead);
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
    size_t most = (size_t)(job->leads * job->query_tiles);
    job->pairs = gr_alloc(n->out->ctx, false, most * sizeof *job->pairs);
    return job->pairs && !gr_is_inert(job->delta);
}

/* In round r tile i of the queries meets tile i + r (mod rounds) of the keys: in a round no two tiles share a row or a
 * column, so that all can be worked on at once, and every gradient is summed in the order of the rounds, whatever the
 * threads. */
void gr_attention_backward_tiles(gr_node *n) {
    attention_job job;
    if (!gr_start_attention(&job, n->out, n->in, n->saved)) return;
    job.d_output = gr_permuted(n->out->grad, job.saved->order);
    if (gr_is_inert(job.d_output) || !take_gradients(&job, n)) return;
    job.hide = !(gr_leads_are_finite(job.q, job.leads) && gr_leads_are_finite(job.k, job.leads) &&
                 gr_leads_are_finite(job.d_output, job.leads));
    gr_parallel_for((size_t)job.leads, GR_COST_OF_TERM * (size_t)(job.queries * job.d_v), run_delta, &job);
    for (job.round = 0; job.round < job.rounds; job.round++) {
        size_t count = 0;
        for (int64_t lead = 0; lead < job.leads; lead++)
            for (int64_t i = 0; i < job.query_tiles; i++)
                if (tile_of_round(&job, lead, i).seen != GR_SEEN_NONE)
                    job.pairs[count][0] = lead, job.pairs[count++][1] = i;
        size_t cost = (size_t)(2 * TILE_SCORES * (3 * job.d + 2 * job.d_v + GR_COST_OF_EXP));
        gr_parallel_for(count, cost, run_backward, &job);
    }
    gr_tensor *own[] = {job.dq, job.dk, job.dv};
    for (int i = 0; i < 3; i++) {
        if (!job.shared[i]) continue;
        gr_run_map(GR_MAP_plus, 0, job.shared[i], 1, &own[i]);
        gr_pool_give(own[i]);
    }
    gr_pool_give(job.delta);
    gr_pool_give(job.tiles);
}
