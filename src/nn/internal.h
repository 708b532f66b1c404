/* What the files of this room share. */
#ifndef GR_NN_INTERNAL_H
#define GR_NN_INTERNAL_H

#include "../tensor/internal.h"
#include "attention.h"

/* "prefix.name", or "name" without a prefix; lives until gr_context_reset. */
const char *gr_prefixed(gr_context *ctx, const char *prefix, const char *name);

/* The result of a layer that is NULL: the error "where: the layer is NULL", and the inert tensor. */
gr_tensor *gr_no_layer(gr_tensor *x, const char *where);

/* An error unless heads divides width and both are at least 1. */
void gr_check_heads(gr_context *ctx, const char *where, int64_t heads, int64_t width);

/* Fills in what a style leaves to be chosen; an error if it is none. */
gr_attention_style gr_check_style(gr_context *ctx, const char *where, gr_attention_style style);

/* The keys and values of a layer for the tokens so far: room for (B, H, context, D) of each, the first `past` set. */
typedef struct gr_kv {
    gr_tensor *k, *v;
    int64_t past;
} gr_kv;

/* What a model adds to the attention of its layers: nothing, when all is 0. */
typedef struct gr_attending {
    gr_mask mask;      /* joined with the style's by AND */
    gr_tensor *rotary; /* gr_rotary's table for these tokens */
    gr_kv *kv;         /* tokens that came before: theirs are put in front, and those of x join them */
} gr_attending;
gr_attended gr_multihead_attend(const gr_multihead_layer *a, gr_tensor *x, gr_attending how);

#endif
