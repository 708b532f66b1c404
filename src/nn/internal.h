/* What the files of this room share. */
#ifndef GR_NN_INTERNAL_H
#define GR_NN_INTERNAL_H

#include "../tensor/internal.h"
#include "gpt.h"
#include "optim.h"
#include "text.h"

/* "prefix.name", or "name" without a prefix; lives until gr_context_reset. */
const char *gr_prefixed(gr_context *ctx, const char *prefix, const char *name);

/* The result of a layer that is NULL: the error "where: the layer is NULL", and the inert tensor. */
gr_tensor *gr_no_layer(gr_tensor *x, const char *where);

/* An error unless heads divides width and both are at least 1; rotary positions want heads of an even size
 * (a layer that knows no positions says GR_LEARNED). */
void gr_check_heads(gr_context *ctx, const char *where, int64_t heads, int64_t width, gr_positions positions);

/* The vocabulary of a set of bytes; ids in their order. */
gr_tokenizer gr_tokenizer_of(const bool member[256]);

/* gr_encode of a text of this name, for the message. */
bool gr_encode_from(gr_context *ctx, const char *where, const gr_tokenizer *tokenizer, const uint8_t *text, size_t size,
                    int32_t *out);

/* Keeps the error of a byte that a vocabulary, of so many, does not have; `where` names the text. */
void gr_fail_unknown(gr_context *ctx, const char *where, uint8_t byte, uint64_t offset, int vocabulary);

/* Fills in what a style leaves to be chosen; an error if it is none. */
gr_attention_style gr_check_style(gr_context *ctx, const char *where, gr_attention_style style);

/* allow as a mask; NULL shows all. */
static inline gr_mask gr_mask_or_all(gr_tensor *allow) { return allow ? gr_mask_tensor(allow) : gr_mask_all(); }

/* The keys and values of a layer for the tokens so far: room for (B, H, context, D) of each, the first `past` set. */
typedef struct gr_kv_cache {
    gr_tensor *k, *v;
    int64_t past;
} gr_kv_cache;

/* What a model adds to the attention of its layers: nothing, when all is 0. */
typedef struct gr_attending {
    gr_mask mask;      /* joined with the style's by AND */
    gr_tensor *rotary; /* gr_rotary's table for these tokens */
    gr_kv_cache *kv;   /* tokens that came before: theirs are put in front, and those of x join them */
    bool weights;      /* give them, whatever the layer does by itself */
} gr_attending;
gr_attended gr_multihead_attend(const gr_multihead_layer *a, gr_tensor *x, gr_attending how);

/* gr_gpt_forward of tokens that follow those in kv, a cache for each layer, with another weight for the head; NULL: the
 * first ones, and wte's. */
gr_tensor *gr_gpt_forward_after(gr_gpt *gpt, gr_tokens ids, gr_kv_cache *kv, gr_tensor *head);

/* A model as generation wants it: see generate.c. */
typedef struct gr_decoder {
    gr_gpt gpt;
    gr_kv_cache *kv; /* of each layer */
    gr_tensor *head; /* (V, C) */
    bool busy;
} gr_decoder;

/* What an optimiser remembers, for a file; count is -1 when it could not be made. */
typedef struct gr_adam_state {
    const char *name; /* "adamw" or "adam" */
    gr_tensor **m, **v;
    int count;
    int64_t *step;
} gr_adam_state;
gr_adam_state gr_adamw_state(gr_adamw *adamw);

#endif
