/* Attention tile by tile (FlashAttention: Dao et al., 2022; Dao, 2023): the scores are computed where they are needed,
 * forward and again backward, and never stand in memory as a whole. */
#ifndef GR_ATTENTION_TILES_H
#define GR_ATTENTION_TILES_H

#include "../tensor/mask_tile.h"
#include "dropout.h"
#include "tape.h"

/* What the forward pass leaves. A row that sees nothing has peak 0 and inverse 0. */
typedef struct attention_saved {
    gr_mask mask;
    double scale;
    gr_dropout_key drop;
    gr_axes order;             /* the output is stored as q lies in memory; its axes in the order of the scores */
    gr_tensor *peak, *inverse; /* (..., Tq): the largest score of a row, and 1 / sum e^(score - peak) */
} attention_saved;

/* The two passes. Of the stored output, whose axes in s->order are (..., Tq, Dv), peak and inverse are written;
 * backward adds to the gradients of q, k, v. */
void gr_fused_attention(gr_tensor *stored, gr_tensor *const in[3], const attention_saved *s);
void gr_fused_attention_backward(gr_node *n);

/* -- What both are made of ----------------------------------------------------------------------------------------- */

/* Queries and keys of a tile. Its scores must stay in a core's cache, twice; it should be large, because each tile of
 * keys is packed anew for every tile of queries; and small, because of the triangle on the diagonal half is computed in
 * vain. A tile that is partly hidden is therefore worked on in bands of rows, each of which may be cut down further.
 * Measured, see docs/performance.md. */
enum {
    ATTENTION_TILE = 128,
    ATTENTION_BAND = 32,
    ATTENTION_ROW = ATTENTION_TILE + GR_ROW_ROOM,
    ATTENTION_SCORES = ATTENTION_TILE * ATTENTION_ROW
};

/* Queries [i, i + rows) and keys [j, j + columns), and what of these scores is visible. */
typedef struct attention_tile {
    gr_mask_view mask;
    int64_t lead, i, j, rows, columns;
    gr_seen seen;
} attention_tile;

typedef struct attention_job {
    const gr_kernels *kernels;
    const attention_saved *saved;
    gr_shape scores; /* (..., Tq, Tk) */
    int64_t leads, queries, keys, d_v, query_tiles, key_tiles;
    gr_tensor *q, *k, *v, *output;
    bool hide;        /* something is not finite: what meets a weight of 0 is not read */
    gr_tensor *tiles; /* the scores, and gradients of scores, that each thread works on */
    gr_real *scratch; /* of each thread, for products */

    /* Backward only. A gradient that is not wanted is NULL; one that has memory of its own is added to shared[i] at the
     * end. */
    gr_tensor *d_output, *dq, *dk, *dv, *delta, *shared[3];
    attention_tile *round_tiles;
    int64_t first, block, round, rounds; /* query tiles [first, first + block), in this round of so many */
} attention_job;

/* False after an error. The job's tiles are to be given back to the pool. */
bool gr_start_attention(attention_job *job, gr_tensor *stored, gr_tensor *const in[3], const attention_saved *s);

/* A tile cut down to the columns of which something is visible. */
attention_tile gr_attention_tile_at(const attention_job *job, int64_t lead, int64_t query_tile, int64_t key_tile);

/* The band of a tile that begins at a row; a tile of which all is visible is one band. */
attention_tile gr_attention_band_at(const attention_tile *whole, int64_t row);

/* Where the tile's scores, and their gradients, are kept: rows ATTENTION_ROW apart. */
gr_matrix gr_scores_of(const attention_job *job, const attention_tile *t, int thread);
gr_matrix gr_d_scores_of(const attention_job *job, const attention_tile *t, int thread);

/* Its rows of q, dq or the output, and of k, v, dk or dv. */
static inline gr_matrix gr_queries_of(const attention_tile *t, const gr_tensor *x) {
    return gr_matrix_of(x, t->lead, t->i, t->rows);
}
static inline gr_matrix gr_keys_of(const attention_tile *t, const gr_tensor *x) {
    return gr_matrix_of(x, t->lead, t->j, t->columns);
}

/* Row r of a tile: columns [from, from + count) are visible, and if allow is not NULL only those where it is not 0. */
typedef struct attention_row {
    int64_t from, count;
    const gr_real *allow;
} attention_row;
attention_row gr_attention_row_at(const attention_tile *t, int64_t r, gr_real room[GR_MASK_ROW]);

/* Clears what the row does not show at its two ends. */
void gr_clear_ends(const attention_tile *t, attention_row row, gr_real *x);

/* Dropout of a row of the tile, as gr_dropout of the whole weights would do it. */
void gr_drop_row(const attention_job *job, const attention_tile *t, int64_t r, gr_real *row);

/* x with its axes in another order. */
gr_tensor *gr_permuted(gr_tensor *x, gr_axes order);

/* Is every number of the tensor finite? */
bool gr_is_finite(const gr_tensor *x);

#endif
