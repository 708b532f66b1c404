/* The attention of a text: its weights, which of them to show, and how. */
#ifndef LM_ATTENTION_H
#define LM_ATTENTION_H

#include "lm.h"

/* Of every layer and head: row i, the query, over its keys. */
typedef struct lm_attention {
    int64_t layers, heads, n;
    gr_real *weight; /* (layers, heads, n, n) */
    /* Each token as a picture can show it: one character of UTF-8 or, of a byte that has none, "xC3". */
    char (*label)[8];
} lm_attention;

/* After an error without weights and labels. */
lm_attention lm_attention_of(gr_gpt *gpt, const gr_tokenizer *tokenizer, const int32_t *ids, int64_t n);
void lm_attention_free(lm_attention *a);
const gr_real *lm_head_of(const lm_attention *a, int64_t layer, int64_t head); /* (n, n) */

/* Layers [layer, layer + layers) and of each the heads [head, head + heads). */
typedef struct lm_view {
    int64_t layer, layers, head, heads;
} lm_view;

/* Of all heads the one that looks most for content. */
lm_view lm_content_head(gr_context *ctx, const lm_attention *a);

/* On standard output: colours on a terminal, tenths as digits elsewhere. */
void lm_print_attention(const lm_attention *a, lm_view view);

#endif
