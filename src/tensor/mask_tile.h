/* Asking a mask about a part of the scores: for attention, which computes tile by tile what is not hidden. */
#ifndef GR_MASK_TILE_H
#define GR_MASK_TILE_H

#include "mask.h"

enum {
    GR_MASK_CAUSAL = 1,
    GR_MASK_WINDOW,
    GR_MASK_GLOBAL,
    GR_MASK_PADDING,
    GR_MASK_BLOCKS,
    GR_MASK_TENSOR,
    GR_MASK_AND,
    GR_MASK_OR,
    GR_MASK_TOO_LONG
};

/* True if the mask can be used on scores of this shape; else keeps an error "where: why" and returns false. */
bool gr_mask_check(gr_context *ctx, const char *where, const gr_mask *mask, gr_shape scores);

/* A mask over the scores (..., Tq, Tk), at one of their matrices. */
typedef struct gr_mask_view {
    const gr_mask *mask;
    gr_shape scores;
    int64_t matrix, queries, keys;
    int64_t batch; /* the matrix's index along the first axis */
} gr_mask_view;
gr_mask_view gr_mask_view_at(const gr_mask *mask, gr_shape scores, int64_t matrix);

/* What queries [i0, i1) see of the keys [j0, j1): nothing outside [from, to), and there nothing, some or all; SOME also
 * when it is too much work to tell. */
typedef enum gr_seen { GR_SEEN_NONE, GR_SEEN_SOME, GR_SEEN_ALL } gr_seen;
typedef struct gr_mask_range {
    gr_seen seen;
    int64_t from, to;
} gr_mask_range;
gr_mask_range gr_mask_range_of(const gr_mask_view *m, int64_t i0, int64_t i1, int64_t j0, int64_t j1);

/* allow[j - j0] = 1 where query i sees key j, else 0; j1 - j0 at most GR_MASK_ROW. */
enum { GR_MASK_ROW = 128 };
void gr_mask_row(const gr_mask_view *m, int64_t i, int64_t j0, int64_t j1, gr_real *allow);

#endif
