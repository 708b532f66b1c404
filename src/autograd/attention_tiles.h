/* Attention tile by tile (FlashAttention: Dao et al., 2022; Dao, 2023): the scores are computed where they are needed,
 * forward and again backward, and never stand in memory as a whole. */
#ifndef GR_ATTENTION_TILES_H
#define GR_ATTENTION_TILES_H

#include "../tensor/mask.h"
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

/* lies, whose axes in s->order are the output (..., Tq, Dv), peak and inverse are written. */
void gr_attention_tiles(gr_tensor *lies, gr_tensor *const in[3], const attention_saved *s);

/* Adds to the gradients of q, k, v. */
void gr_attention_tiles_backward(gr_node *n);

#endif
