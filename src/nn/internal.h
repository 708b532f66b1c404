/* What the files of this room share, and what a checkpoint must know of an optimiser. */
#ifndef GR_NN_INTERNAL_H
#define GR_NN_INTERNAL_H

#include "../tensor/internal.h"
#include "optim.h"

/* "prefix.name", or "name" without a prefix; lives until gr_context_reset. */
const char *gr_join(gr_context *ctx, const char *prefix, const char *name);

/* An error unless heads divides width and both are at least 1. */
void gr_check_heads(gr_context *ctx, int64_t heads, int64_t width);

struct gr_sgd {
    gr_context *ctx;
    gr_sgd_config config;
    int count;            /* parameters that existed when it was made */
    gr_tensor **velocity; /* one a parameter */
};

struct gr_adamw {
    gr_context *ctx;
    gr_adamw_config config;
    bool decoupled; /* AdamW; false: Adam */
    int count;
    gr_tensor **m, **v; /* first and second moment, one a parameter */
    int64_t step;       /* updates made: t of the bias corrections */
};

#endif
