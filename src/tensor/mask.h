/* Which keys a query may see, as an algebra: a mask is a small expression, passed by value, of the words below joined
 * by and/or. It can be written out as a matrix, drawn, or asked tile by tile, so that what it hides need not be
 * computed.
 *
 * Queries i < Tq and keys j < Tk are aligned at their ends: query i stands at the position t = i + Tk - Tq of the keys.
 * A mask keeps no copy of the tensors it was given: they must be alive when it is used. A bad one (a window below 1,
 * too many words) is refused where it is used. */
#ifndef GR_MASK_H
#define GR_MASK_H

#include "tensor.h"

#include <stdio.h>

/* The words of one expression in postfix order; 15 are 8 masks and the 7 joints between them. */
enum { GR_MASK_WORDS = 15 };
typedef struct gr_mask {
    int count; /* 0: everything is visible */
    struct gr_mask_word {
        int kind;
        int64_t number;
        gr_tensor *tensor;
    } word[GR_MASK_WORDS];
} gr_mask;

gr_mask gr_mask_all(void);               /* everything; the same as (gr_mask){0} */
gr_mask gr_mask_causal(void);            /* j <= t */
gr_mask gr_mask_window(int64_t w);       /* |t - j| < w, w >= 1: the key of its own position and w - 1 on each side */
gr_mask gr_mask_global(int64_t g);       /* j < g or 0 <= t < g: the first g see all and are seen by all */
gr_mask gr_mask_padding(gr_tensor *len); /* len (B): j < len[b], B the first axis of the scores */

/* layout (M, N) of blocks of block x block: visible where layout[t / block][j / block] is not 0. */
gr_mask gr_mask_blocks(gr_tensor *layout, int64_t block);

/* allow broadcasts to the scores (..., Tq, Tk): visible where it is not 0. */
gr_mask gr_mask_tensor(gr_tensor *allow);

gr_mask gr_mask_and(gr_mask a, gr_mask b);
gr_mask gr_mask_or(gr_mask a, gr_mask b);

/* Layouts (blocks, blocks) for gr_mask_blocks, seen both ways: join them with gr_mask_causal for a language model.
 * Sparse Transformers (Child et al., 2019): strided, |i - j| < stride or i - j a multiple of stride; fixed, i and j in
 * the same group of stride blocks, or j the last of any group. */
gr_tensor *gr_layout_strided(gr_context *ctx, int64_t blocks, int64_t stride);
gr_tensor *gr_layout_fixed(gr_context *ctx, int64_t blocks, int64_t stride);
/* BigBird (Zaheer et al., 2020): |i - j| <= window / 2, i or j below global, and as many as random blocks j drawn from
 * rng for each i. */
typedef struct gr_bigbird_config {
    int64_t blocks, window, global, random;
    gr_rng *rng;
} gr_bigbird_config;
gr_tensor *gr_layout_bigbird(gr_context *ctx, gr_bigbird_config config);

/* 1 where visible, else 0, in the shape of the scores: (Tq, Tk), or with leading axes. */
gr_tensor *gr_mask_matrix(gr_context *ctx, gr_mask mask, gr_shape scores);

/* Draws the mask in the terminal: a row a query, "#" where it may look, "." where not; 80 columns at most, larger masks
 * by samples. */
void gr_mask_print(gr_context *ctx, gr_mask mask, int64_t queries, int64_t keys, FILE *out);

#endif
