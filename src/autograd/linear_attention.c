/* Linear attention (Katharopoulos et al., 2020): with weights f(q_i) f(k_j), f(x) = elu(x) + 1 > 0, what a query needs
 * of the keys before it is one small matrix that grows by a term a key. Write p = f(q), g = f(k), and v' for v with a 1
 * behind it, so that numerator and denominator are one product:
 *
 *     [N_i, d_i] = p_i S_i,   S_i = sum over the keys j that i sees of g_j^T v'_j  (D, Dv + 1),   y_i = N_i / d_i.
 *
 * Backward, with u'_i = [dy_i, -(dy_i . y_i)] / d_i, the gradient of [N_i, d_i]:
 *
 *     dp_i  = u'_i S_i^T,       R_j = sum over the queries i that see j of p_i^T u'_i  (D, Dv + 1),
 *     dg_j  = v'_j R_j^T,       dv_j = g_j R_j without its last column,       dq = f'(q) dp, dk = f'(k) dg.
 *
 * Causal, S is carried from the front and R from the back, a chunk of C rows at a time. Within a chunk each of the four
 * is X carried + mask(X Y^T) Z: (p, g, v') for y, (u', v', g) for dp, and (v', u', p), (g, p, u') for dg and dv, where
 * the mask is the other triangle. Time is O(T C (D + Dv) + T D Dv); nothing is kept but d. */
#include "tape.h"

#include "../tensor/parallel.h"

#include <string.h>

/* Shorter chunks make the products less efficient, longer ones spend more on the masked half; measured at D = 64. */
enum { CHUNK = 64 };

/* The near rows that a row sees: none (all that it sees is carried), those up to its own, or those from its own on. */
typedef enum sight { CARRIED, UP_TO, FROM } sight;

/* The tiles of a thread. S and R are kept transposed: products with few columns are the slower ones. */
typedef struct workspace {
    const gr_kernels *kernels;
    gr_real *scratch;
    gr_matrix state;                /* (Dv + 1, D) */
    gr_matrix p, g, v, u;           /* (C, D), (C, D), (C, Dv + 1), (C, Dv + 1) */
    gr_matrix scores;               /* (C, C) */
    gr_matrix by_value, by_feature; /* results: (C, Dv + 1), (C, D) */
} workspace;

typedef struct linear_task {
    gr_tensor *q, *k, *v, *y;
    gr_tensor *d;                 /* (heads, Tq) */
    gr_tensor *dy, *dq, *dk, *dv; /* forward: NULL, as is what is not wanted */
    int64_t blind, past;          /* queries below blind see no key, those from there on the keys below past ... */
    bool causal;                  /* ... and, causal, query blind + t the keys up to past + t */
    gr_real *tiles, *scratch;
} linear_task;

static gr_matrix without_last(gr_matrix m) { return (gr_matrix){m.rows, m.columns - 1, m.x, m.row, m.column}; }

static gr_matrix rows_of(const gr_tensor *x, size_t head, int64_t begin, int64_t count) {
    return gr_matrix_of(x, (int64_t)head, begin, count);
}

static void map_rows(const workspace *w, gr_map_name map, gr_matrix y, gr_matrix a, gr_matrix b) {
    for (ptrdiff_t i = 0; i < (ptrdiff_t)a.rows; i++)
        w->kernels->map[map](&(gr_row){.n = a.columns,
                                       .p = {y.x + i * y.row, a.x + i * a.row, b.x ? b.x + i * b.row : NULL},
                                       .s = {y.column, a.column, b.column}});
}

/* C = A B, C += A B, and C += A B in which a 0 of A hides. */
static const gr_product_how SET = {false, false}, ADD = {true, false}, ADD_HIDING = {true, true};

static void product(const workspace *w, gr_matrix c, gr_matrix a, gr_matrix b, gr_product_how how) {
    gr_multiply(w->kernels, w->scratch, c, a, b, how);
}

/* out = x carried + mask(x near^T) z */
static void attend(const workspace *w, gr_matrix out, gr_matrix x, gr_matrix carried, gr_matrix near, gr_matrix z,
                   sight sees) {
    product(w, out, x, carried, SET);
    if (sees == CARRIED) return;
    gr_matrix scores = w->scores;
    scores.rows = x.rows, scores.columns = near.rows;
    product(w, scores, x, gr_transposed(near), SET);
    for (size_t i = 0; i < scores.rows; i++) {
        gr_real *row = scores.x + (ptrdiff_t)i * scores.row;
        size_t begin = sees == UP_TO ? i + 1 : 0, end = sees == UP_TO ? scores.columns : i;
        if (begin < end) memset(row + begin, 0, (end - begin) * sizeof *row);
    }
    product(w, out, scores, z, ADD_HIDING);
}

static void load_queries(workspace *w, const linear_task *t, size_t head, int64_t begin, int64_t count) {
    w->p.rows = w->u.rows = (size_t)count;
    map_rows(w, GR_MAP_elu1, w->p, rows_of(t->q, head, begin, count), (gr_matrix){0});
}

static void load_keys(workspace *w, const linear_task *t, size_t head, int64_t begin, int64_t count) {
    gr_matrix v = rows_of(t->v, head, begin, count);
    w->g.rows = w->v.rows = (size_t)count;
    map_rows(w, GR_MAP_elu1, w->g, rows_of(t->k, head, begin, count), (gr_matrix){0});
    map_rows(w, GR_MAP_copy, w->v, v, (gr_matrix){0});
    for (size_t j = 0; j < v.rows; j++) w->v.x[j * w->v.columns + v.columns] = 1;
}

static gr_real *denominators(const linear_task *t, size_t head, int64_t begin) {
    return t->d->data + (int64_t)head * t->d->shape.dim[1] + begin;
}

/* Weights so small that their sum has lost digits, or is 0, would make infinities of 1 / d: they count as 0. */
static bool counts(gr_real d) { return !(d < GR_REAL_MIN); }

/* u' = [dy, -(dy . y)] / d; 0 where the weights are 0. */
static void load_cotangents(workspace *w, const linear_task *t, size_t head, int64_t begin, int64_t count) {
    const gr_matrix dy = rows_of(t->dy, head, begin, count), y = rows_of(t->y, head, begin, count);
    const gr_real *d = denominators(t, head, begin);
    map_rows(w, GR_MAP_mul, w->u, dy, y);
    for (size_t i = 0; i < dy.rows; i++) {
        gr_real *u = w->u.x + i * w->u.columns;
        const gr_real *dy_i = dy.x + (ptrdiff_t)i * dy.row, sum = w->kernels->sum(dy.columns, u, 0);
        for (size_t e = 0; e < dy.columns; e++) u[e] = counts(d[i]) ? dy_i[e] / d[i] : 0;
        u[dy.columns] = counts(d[i]) ? -sum / d[i] : 0;
    }
}

/* y = N / d; 0 where the weights are 0. */
static void store_output(const linear_task *t, size_t head, int64_t begin, gr_matrix sums) {
    const gr_matrix y = rows_of(t->y, head, begin, (int64_t)sums.rows);
    gr_real *d = denominators(t, head, begin);
    for (size_t i = 0; i < y.rows; i++) {
        const gr_real *sum = sums.x + (ptrdiff_t)i * sums.row;
        d[i] = sum[y.columns];
        for (size_t e = 0; e < y.columns; e++)
            y.x[(ptrdiff_t)i * y.row + (ptrdiff_t)e] = counts(d[i]) ? sum[e] / d[i] : 0;
    }
}

static gr_matrix first_rows(gr_matrix m, int64_t count) {
    m.rows = (size_t)count;
    return m;
}

static int64_t rows_in_chunk(int64_t begin, int64_t end) { return end - begin < CHUNK ? end - begin : CHUNK; }

static void clear_state(const workspace *w) {
    memset(w->state.x, 0, w->state.rows * w->state.columns * sizeof *w->state.x);
}

/* Carries S from the front: y, or, given dy, dq. */
static void sweep_forward(workspace *w, const linear_task *t, size_t head) {
    const int64_t queries = t->q->shape.dim[t->q->shape.ndim - 2];
    const sight sees = t->causal ? UP_TO : CARRIED;
    clear_state(w);
    for (int64_t j = 0; j < t->past; j += CHUNK) {
        load_keys(w, t, head, j, rows_in_chunk(j, t->past));
        product(w, w->state, gr_transposed(w->v), w->g, ADD);
    }
    for (int64_t i = t->blind; i < queries; i += CHUNK) {
        const int64_t count = rows_in_chunk(i, queries);
        const gr_matrix sums = first_rows(w->by_value, count), dp = first_rows(w->by_feature, count);
        load_queries(w, t, head, i, count);
        if (t->causal) load_keys(w, t, head, t->past + i - t->blind, count);
        if (t->dy) {
            load_cotangents(w, t, head, i, count);
            attend(w, dp, w->u, w->state, w->v, w->g, sees);
            map_rows(w, GR_MAP_elu1_dx, rows_of(t->dq, head, i, count), dp, w->p);
        } else {
            attend(w, sums, w->p, gr_transposed(w->state), w->g, w->v, sees);
            store_output(t, head, i, sums);
        }
        if (t->causal) product(w, w->state, gr_transposed(w->v), w->g, ADD);
    }
}

static void add_to_keys(workspace *w, const linear_task *t, size_t head, int64_t begin, int64_t count, sight sees) {
    const gr_matrix dg = first_rows(w->by_feature, count), dv = without_last(first_rows(w->by_value, count));
    load_keys(w, t, head, begin, count);
    if (t->dk) {
        attend(w, dg, w->v, w->state, w->u, w->p, sees);
        map_rows(w, GR_MAP_elu1_dx, rows_of(t->dk, head, begin, count), dg, w->g);
    }
    if (t->dv) {
        attend(w, dv, w->g, without_last(gr_transposed(w->state)), w->p, without_last(w->u), sees);
        map_rows(w, GR_MAP_plus, rows_of(t->dv, head, begin, count), dv, (gr_matrix){0});
    }
}

/* Carries R from the back: dk and dv. */
static void sweep_backward(workspace *w, const linear_task *t, size_t head) {
    const int64_t seeing = t->q->shape.dim[t->q->shape.ndim - 2] - t->blind;
    clear_state(w);
    for (int64_t c = (seeing + CHUNK - 1) / CHUNK - 1; c >= 0; c--) {
        const int64_t i = c * CHUNK, count = rows_in_chunk(i, seeing);
        load_queries(w, t, head, t->blind + i, count);
        load_cotangents(w, t, head, t->blind + i, count);
        if (t->causal) add_to_keys(w, t, head, t->past + i, count, FROM);
        product(w, w->state, gr_transposed(w->u), w->p, ADD);
    }
    for (int64_t j = 0; j < t->past; j += CHUNK) add_to_keys(w, t, head, j, rows_in_chunk(j, t->past), CARRIED);
}

static gr_matrix take_tile(gr_real **room, size_t rows, size_t columns) {
    gr_matrix m = {rows, columns, *room, (ptrdiff_t)columns, 1};
    *room += rows * columns;
    return m;
}

/* The numbers in a thread's tiles. */
static size_t tiles_size(size_t d, size_t e) { return e * d + CHUNK * (3 * d + 3 * e + CHUNK); }

static workspace open_workspace(const linear_task *t, int thread) {
    const size_t d = (size_t)gr_dim(t->q, -1), e = (size_t)gr_dim(t->v, -1) + 1;
    gr_real *room = t->tiles + (size_t)thread * tiles_size(d, e);
    return (workspace){.kernels = t->y->ctx->kernels,
                       .scratch = t->scratch + (size_t)thread * GR_GEMM_SCRATCH,
                       .state = take_tile(&room, e, d),
                       .p = take_tile(&room, CHUNK, d),
                       .g = take_tile(&room, CHUNK, d),
                       .v = take_tile(&room, CHUNK, e),
                       .u = take_tile(&room, CHUNK, e),
                       .scores = take_tile(&room, CHUNK, CHUNK),
                       .by_value = take_tile(&room, CHUNK, e),
                       .by_feature = take_tile(&room, CHUNK, d)};
}

static void run_heads(size_t begin, size_t end, int thread, void *arg) {
    const linear_task *t = arg;
    workspace w = open_workspace(t, thread);
    for (size_t head = begin; head < end; head++) {
        if (!t->dy || t->dq) sweep_forward(&w, t, head);
        if (t->dk || t->dv) sweep_backward(&w, t, head);
    }
}

/* Who sees what, memory for the threads, and all heads. */
static void run_task(linear_task *t) {
    gr_context *ctx = t->y->ctx;
    const int64_t queries = gr_dim(t->q, -2), keys = gr_dim(t->k, -2);
    const size_t d = (size_t)gr_dim(t->q, -1), e = (size_t)gr_dim(t->v, -1) + 1,
                 heads = (size_t)gr_matrices(t->q->shape);
    t->past = !t->causal ? keys : keys > queries ? keys - queries : 0;
    t->blind = keys == 0 ? queries : t->causal && queries > keys ? queries - keys : 0;
    t->scratch = gr_product_scratch(ctx);
    gr_tensor *tiles = gr_pool_take(ctx, GR_SHAPE(gr_max_threads(), (int64_t)tiles_size(d, e)));
    if (!t->scratch || gr_is_inert(tiles)) return;
    t->tiles = tiles->data;
    gr_parallel_for(heads, 4 * d * e * ((size_t)queries + (size_t)keys), run_heads, t);
    gr_pool_give(tiles);
}

typedef struct linear_saved {
    gr_tensor *d;
    bool causal;
} linear_saved;

static void linear_attention_backward(gr_node *n) {
    const linear_saved *saved = n->saved;
    gr_tensor *grad[3] = {NULL};
    for (int i = 0; i < 3; i++) {
        grad[i] = gr_wants(n, i) ? gr_gradient(n->in[i]) : NULL;
        if (grad[i] && gr_is_inert(grad[i])) return;
    }
    linear_task t = {n->in[0], n->in[1], n->in[2], n->out, saved->d, n->out->grad, .causal = saved->causal};
    t.dq = grad[0], t.dk = grad[1], t.dv = grad[2];
    run_task(&t);
}

/* Of the sums over keys and their use; without the masked products within chunks. */
static double linear_attention_flops(const gr_tensor *out, gr_tensor *const *in) {
    double rows = (double)gr_dim(in[0], -2) + (double)gr_dim(in[1], -2);
    return 2 * (double)gr_matrices(out->shape) * rows * (double)gr_dim(in[0], -1) * ((double)gr_dim(in[2], -1) + 1);
}

const gr_op gr_op_linear_attention = {.name = "linear_attention",
                                      .operands = 3,
                                      .label = {"q", "k", "v"},
                                      .backward = linear_attention_backward,
                                      .flops = linear_attention_flops};

gr_tensor *gr_linear_attention(gr_tensor *q, gr_tensor *k, gr_tensor *v, bool causal) {
    const gr_op *op = &gr_op_linear_attention;
    gr_tensor *in[] = {q, k, v}, *bad = gr_check_attention(op, in);
    if (bad) return bad;
    gr_shape shape = q->shape;
    shape.dim[shape.ndim - 1] = gr_dim(v, -1);
    gr_tensor *y = gr_new(q->ctx, op->name, false, shape);
    gr_tensor *d = gr_new(q->ctx, op->name, false, GR_SHAPE(gr_matrices(q->shape), gr_dim(q, -2)));
    if (gr_is_inert(y) || gr_is_inert(d)) return gr_inert(q->ctx);
    gr_clear(y); /* what sees nothing stays 0 */
    run_task(&(linear_task){.q = q, .k = k, .v = v, .y = y, .d = d, .causal = causal});
    linear_saved saved = {d, causal};
    return gr_record(op, y, 3, in, &saved, sizeof saved);
}
