#include "attention_tiles.h"

#include "../tensor/mask_tile.h"
#include "../tensor/parallel.h"

#include <assert.h>
#include <math.h>

/* Queries and keys of a tile. Its scores must stay in a core's cache, twice; it should be large, because each tile of
 * keys is packed anew for every tile of queries; and small, because of the triangle on the diagonal half is computed in
 * vain. Measured, see docs/performance.md. */
enum { TILE = 128, TILE_ROW = TILE + GR_ROW_ROOM, TILE_SCORES = TILE * TILE_ROW };
static_assert((int)TILE <= (int)GR_MASK_ROW, "a mask must be able to show a row of a tile");

/* A matrix with any strides. */
typedef struct matrix {
    gr_real *x;
    ptrdiff_t row, col;
} matrix;

static matrix transposed(matrix a) { return (matrix){a.x, a.col, a.row}; }
static matrix rows_from(matrix a, int64_t i) { return (matrix){a.x + i * a.row, a.row, a.col}; }

/* Matrix number `lead` of the leading axes of a tensor. */
static matrix matrix_of(const gr_tensor *x, int64_t lead) {
    int n = x->shape.ndim;
    gr_shape leading = x->shape;
    leading.ndim -= 2;
    return (matrix){x->data + gr_shape_offset(leading, x->stride, lead), x->stride[n - 2], x->stride[n - 1]};
}

typedef struct attention_job {
    const gr_kernels *kernels;
    const attention_saved *saved;
    gr_shape scores; /* (..., Tq, Tk) */
    int64_t leads, queries, keys, d, d_v, query_tiles, key_tiles;
    gr_tensor *q, *k, *v, *output;
    gr_tensor *d_output, *dq, *dk, *dv, *delta; /* backward only; a gradient that is not wanted is NULL */
    bool hide;                                  /* something is not finite: what meets a weight of 0 is not read */
    gr_tensor *shared[3];                       /* and where to add it when another operand is the same tensor */
    gr_tensor *tiles;                           /* of all threads, as is: */
    gr_real *scratch;
    int64_t (*pairs)[2]; /* backward: the tiles of a round, as (lead, tile of queries) */
    int64_t round, rounds;
} attention_job;

static gr_tensor *permuted(gr_tensor *x, gr_axes order) {
    gr_shape shape = x->shape;
    int64_t stride[GR_MAX_DIMS];
    for (int k = 0; k < shape.ndim; k++)
        shape.dim[k] = x->shape.dim[order.axis[k]], stride[k] = x->stride[order.axis[k]];
    return gr_view(x, shape, stride, 0);
}

static bool start_job(attention_job *job, gr_tensor *lies, gr_tensor *const in[3], const attention_saved *s) {
    gr_context *ctx = lies->ctx;
    gr_tensor *output = permuted(lies, s->order);
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

/* C (m, n) = A (m, k) B (k, n), or C += */
static void multiply(const attention_job *job, int thread, int64_t m, int64_t n, int64_t k, matrix a, matrix b,
                     matrix c, bool accumulate, bool hide) {
    gr_gemm g = {.m = (size_t)m,
                 .n = (size_t)n,
                 .k = (size_t)k,
                 .a = a.x,
                 .b = b.x,
                 .a_row = a.row,
                 .a_col = a.col,
                 .b_row = b.row,
                 .b_col = b.col,
                 .c = c.x,
                 .c_row = c.row,
                 .accumulate = accumulate,
                 .scratch = job->scratch + thread * GR_GEMM_SCRATCH};
    if (hide)
        job->kernels->matmul_hiding(&g);
    else
        job->kernels->matmul(&g);
}

static bool is_finite(const gr_tensor *x, int64_t leads) {
    const size_t rows = (size_t)x->shape.dim[x->shape.ndim - 2], columns = (size_t)x->shape.dim[x->shape.ndim - 1];
    for (int64_t lead = 0; lead < leads; lead++) {
        const matrix a = matrix_of(x, lead);
        if (!gr_matrix_is_finite(x->ctx->kernels, rows, columns, a.x, a.row, a.col)) return false;
    }
    return true;
}

/* A tile of scores, queries [i, i + rows) and keys [j, j + columns), and what of it is visible. */
typedef struct tile {
    gr_masked mask;
    int64_t lead, i, j, rows, columns;
    gr_seen seen;
} tile;

/* Cut down to the columns of which something is visible. */
static tile trimmed(tile t) {
    gr_masked_part part = gr_mask_part(&t.mask, t.i, t.i + t.rows, t.j, t.j + t.columns);
    t.seen = part.seen, t.j = part.from, t.columns = part.to - part.from;
    return t;
}

static tile tile_at(const attention_job *job, int64_t lead, int64_t query_tile, int64_t key_tile) {
    tile t = {.lead = lead, .i = query_tile * TILE, .j = key_tile * TILE};
    t.mask = gr_masked_at(&job->saved->mask, job->scores, lead);
    t.rows = job->queries - t.i < TILE ? job->queries - t.i : TILE;
    t.columns = job->keys - t.j < TILE ? job->keys - t.j : TILE;
    return trimmed(t);
}

/* A tile that is partly hidden is worked on in bands of rows, each of which may be cut down further: of a triangle
 * little is then computed in vain. */
enum { BAND = 32 };

static tile band_at(const tile *whole, int64_t row) {
    tile t = *whole;
    if (t.seen != GR_SEEN_SOME) return t;
    t.i += row, t.rows = t.rows - row < BAND ? t.rows - row : BAND;
    return trimmed(t);
}

/* Row r of a tile: columns [from, to) are visible, and when allow is not NULL only those of them where it is not 0. */
typedef struct tile_row {
    int64_t from, count;
    const gr_real *allow;
} tile_row;

static tile_row row_at(const tile *t, int64_t r, gr_real *room) {
    if (t->seen == GR_SEEN_ALL) return (tile_row){0, t->columns, NULL};
    gr_masked_part part = gr_mask_part(&t->mask, t->i + r, t->i + r + 1, t->j, t->j + t->columns);
    tile_row row = {part.from - t->j, part.to - part.from, NULL};
    if (part.seen != GR_SEEN_SOME) return row;
    gr_mask_row(&t->mask, t->i + r, part.from, part.to, room);
    row.allow = room;
    return row;
}

/* Clears what the row does not show at its two ends. */
static void clear_ends(const tile *t, tile_row row, gr_real *x) {
    for (int64_t c = 0; c < row.from; c++) x[c] = 0;
    for (int64_t c = row.from + row.count; c < t->columns; c++) x[c] = 0;
}

/* Dropout of a row of the tile, as gr_dropout of the whole weights would do it. */
static void drop(const attention_job *job, const tile *t, int64_t r, gr_real *row) {
    if (job->saved->drop.p == 0) return;
    int64_t first = (t->lead * job->queries + t->i + r) * job->keys + t->j;
    gr_keep_elements(job->saved->drop, (size_t)first, (size_t)t->columns, row, row, false);
}

/* -- Forward ------------------------------------------------------------------------------------------------------- */

/* Scores of a tile become weights, still without their common divisor; the rows of the output that stand on an older
 * peak are brought to the new one. */
static void join_tile(const attention_job *job, const tile *t, gr_real *s, gr_online *state, matrix out) {
    gr_real room[GR_MASK_ROW];
    for (int64_t r = 0; r < t->rows; r++) {
        gr_real *x = s + r * TILE_ROW, *o = out.x + r * out.row;
        const tile_row row = row_at(t, r, room);
        gr_real factor = job->kernels->softmax_join((size_t)row.count, x + row.from, row.allow,
                                                    (gr_real)job->saved->scale, &state[r]);
        for (int64_t c = 0; factor != 1 && c < job->d_v; c++) o[c] *= factor;
        clear_ends(t, row, x);
        drop(job, t, r, x);
    }
}

/* O = O e^(old peak - peak) + e^(S - peak) V, S = Q K^T, for one tile of scores. */
static void attend_tile(const attention_job *job, const tile *t, gr_online *state, matrix out, int thread) {
    const matrix s = {job->tiles->data + (size_t)thread * 2 * TILE_SCORES, TILE_ROW, 1};
    const matrix q = rows_from(matrix_of(job->q, t->lead), t->i), k = rows_from(matrix_of(job->k, t->lead), t->j);
    const matrix v = rows_from(matrix_of(job->v, t->lead), t->j);
    multiply(job, thread, t->rows, t->columns, job->d, q, transposed(k), s, false, false);
    join_tile(job, t, s.x, state, out);
    multiply(job, thread, t->rows, job->d_v, t->columns, s, v, out, true, job->hide);
}

/* The output of a tile of queries, over all keys that are not hidden. */
static void attend(const attention_job *job, int64_t lead, int64_t query_tile, int thread) {
    gr_online state[TILE];
    const int64_t begin = query_tile * TILE, rows = job->queries - begin < TILE ? job->queries - begin : TILE;
    const matrix out = rows_from(matrix_of(job->output, lead), begin);
    for (int64_t r = 0; r < rows; r++) {
        state[r] = (gr_online){(gr_real)-INFINITY, 0};
        for (int64_t c = 0; c < job->d_v; c++) out.x[r * out.row + c] = 0;
    }
    for (int64_t j = 0; j < job->key_tiles; j++) {
        const tile whole = tile_at(job, lead, query_tile, j);
        for (int64_t r = 0; whole.seen != GR_SEEN_NONE && r < rows;) {
            const tile t = band_at(&whole, r);
            if (t.seen != GR_SEEN_NONE) attend_tile(job, &t, state + r, rows_from(out, r), thread);
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

void gr_attention_tiles(gr_tensor *lies, gr_tensor *const in[3], const attention_saved *s) {
    attention_job job;
    if (!start_job(&job, lies, in, s)) return;
    job.hide = !is_finite(job.v, job.leads);
    size_t cost = (size_t)(2 * TILE * job.keys * (job.d + job.d_v + GR_COST_OF_EXP));
    gr_parallel_for((size_t)(job.leads * job.query_tiles), cost, run_forward, &job);
    gr_pool_give(job.tiles);
}

/* -- Backward ------------------------------------------------------------------------------------------------------ */

/* The weights P and the gradient dS of the unscaled scores of a tile, from S = Q K^T and dP = dO V^T. */
static void differentiate_tile(const attention_job *job, const tile *t, gr_real *s, gr_real *dp) {
    gr_real room[GR_MASK_ROW];
    for (int64_t r = 0; r < t->rows; r++) {
        const int64_t at = t->lead * job->queries + t->i + r;
        gr_real *x = s + r * TILE_ROW, *dx = dp + r * TILE_ROW;
        const tile_row row = row_at(t, r, room);
        drop(job, t, r, dx);
        job->kernels->attention_dx((size_t)row.count, x + row.from, dx + row.from, row.allow,
                                   (gr_real)job->saved->scale, job->saved->peak->data[at],
                                   job->saved->inverse->data[at], job->delta->data[at]);
        clear_ends(t, row, x);
        clear_ends(t, row, dx);
        drop(job, t, r, x);
    }
}

/* dV += P^T dO, dQ += dS K, dK += dS^T Q for one tile of scores. */
static void attend_backward(const attention_job *job, const tile *t, int thread) {
    const int64_t m = t->rows, n = t->columns, d = job->d, d_v = job->d_v;
    gr_real *s = job->tiles->data + (size_t)thread * 2 * TILE_SCORES;
    const matrix p = {s, TILE_ROW, 1}, ds = {s + TILE_SCORES, TILE_ROW, 1};
    const matrix q = rows_from(matrix_of(job->q, t->lead), t->i), k = rows_from(matrix_of(job->k, t->lead), t->j);
    const matrix v = rows_from(matrix_of(job->v, t->lead), t->j);
    const matrix d_out = rows_from(matrix_of(job->d_output, t->lead), t->i);
    multiply(job, thread, m, n, d, q, transposed(k), p, false, false);
    multiply(job, thread, m, n, d_v, d_out, transposed(v), ds, false, false);
    differentiate_tile(job, t, p.x, ds.x);
    if (job->dv)
        multiply(job, thread, n, d_v, m, transposed(p), d_out, rows_from(matrix_of(job->dv, t->lead), t->j), true,
                 job->hide);
    if (job->dq) multiply(job, thread, m, d, n, ds, k, rows_from(matrix_of(job->dq, t->lead), t->i), true, job->hide);
    if (job->dk)
        multiply(job, thread, n, d, m, transposed(ds), q, rows_from(matrix_of(job->dk, t->lead), t->j), true,
                 job->hide);
}

static tile tile_of_round(const attention_job *job, int64_t lead, int64_t query_tile) {
    int64_t j = (query_tile + job->round) % job->rounds;
    return j < job->key_tiles ? tile_at(job, lead, query_tile, j) : (tile){.seen = GR_SEEN_NONE};
}

static void run_backward(size_t begin, size_t end, int thread, void *arg) {
    const attention_job *job = arg;
    for (size_t item = begin; item < end; item++) {
        const tile whole = tile_of_round(job, job->pairs[item][0], job->pairs[item][1]);
        for (int64_t r = 0; r < whole.rows;) {
            const tile t = band_at(&whole, r);
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
        const matrix o = matrix_of(job->output, (int64_t)lead), d_o = matrix_of(job->d_output, (int64_t)lead);
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
void gr_attention_tiles_backward(gr_node *n) {
    attention_job job;
    if (!start_job(&job, n->out, n->in, n->saved)) return;
    job.d_output = permuted(n->out->grad, job.saved->order);
    if (gr_is_inert(job.d_output) || !take_gradients(&job, n)) return;
    job.hide = !(is_finite(job.q, job.leads) && is_finite(job.k, job.leads) && is_finite(job.d_output, job.leads));
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
