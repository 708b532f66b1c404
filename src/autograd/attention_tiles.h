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
    gr_kept drop;
    gr_axes order;             /* the output lies in memory as q does; its axes in the order of the scores */
    gr_tensor *peak, *inverse; /* (..., Tq): the largest score of a row, and 1 / sum e^(score - peak) */
} attention_saved;

/* The two passes. lies, whose axes in s->order are the output (..., Tq, Dv), peak and inverse are written; backward
 * adds to the gradients of q, k, v. */
void gr_attention_forward_tiles(gr_tensor *lies, gr_tensor *const in[3], const attention_saved *s);
void gr_attention_backward_tiles(gr_node *n);

/* -- What both are made of ----------------------------------------------------------------------------------------- */

/* Queries and keys of a tile. Its scores must stay in a core's cache, twice; it should be large, because each tile of
 * keys is packed anew for every tile of queries; and small, because of the triangle on the diagonal half is computed in
 * vain. Measured, see docs/performance.md. */
enum { TILE = 128, TILE_ROW = TILE + GR_ROW_ROOM, TILE_SCORES = TILE * TILE_ROW };

/* A matrix with any strides. */
typedef struct matrix {
    gr_real *x;
    ptrdiff_t row, col;
} matrix;

matrix gr_transposed(matrix a);
matrix gr_rows_from(matrix a, int64_t i);
matrix gr_matrix_of(const gr_tensor *x, int64_t lead);            /* number `lead` of the leading axes of a tensor */
matrix gr_rows_of(const gr_tensor *x, int64_t lead, int64_t row); /* the same from a row on */

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

/* False after an error. The job's tiles are to be given back to the pool. */
bool gr_start_attention(attention_job *job, gr_tensor *lies, gr_tensor *const in[3], const attention_saved *s);

/* x with its axes in another order. */
gr_tensor *gr_permuted(gr_tensor *x, gr_axes order);

/* The scores, and the gradients of scores, that a thread works on: rows TILE_ROW apart. */
matrix gr_scores_of(const attention_job *job, int thread);
matrix gr_d_scores_of(const attention_job *job, int thread);

/* C (m, n) = A (m, k) B (k, n), or C +=; hide: a 0 of A hides. */
typedef struct attention_product {
    int64_t m, n, k;
    bool accumulate, hide;
} attention_product;
void gr_multiply_tiles(const attention_job *job, int thread, attention_product p, matrix a, matrix b, matrix c);

/* Is every number of the leads finite? */
bool gr_leads_are_finite(const gr_tensor *x, int64_t leads);

/* A tile of scores, queries [i, i + rows) and keys [j, j + columns), and what of it is visible. */
typedef struct tile {
    gr_masked mask;
    int64_t lead, i, j, rows, columns;
    gr_seen seen;
} tile;

tile gr_tile_at(const attention_job *job, int64_t lead, int64_t query_tile, int64_t key_tile);

/* A tile that is partly hidden is worked on in bands of rows, each of which may be cut down further: of a triangle
 * little is then computed in vain. The band that begins at a row of the tile; a tile of which all is visible is one
 * band. */
enum { BAND = 32 };
tile gr_band_at(const tile *whole, int64_t row);

/* Row r of a tile: columns [from, to) are visible, and when allow is not NULL only those of them where it is not 0. */
typedef struct tile_row {
    int64_t from, count;
    const gr_real *allow;
} tile_row;

tile_row gr_row_at(const tile *t, int64_t r, gr_real room[GR_MASK_ROW]);

/* Clears what the row does not show at its two ends. */
void gr_clear_ends(const tile *t, tile_row row, gr_real *x);

/* Dropout of a row of the tile, as gr_dropout of the whole weights would do it. */
void gr_drop_row(const attention_job *job, const tile *t, int64_t r, gr_real *row);

#endif
