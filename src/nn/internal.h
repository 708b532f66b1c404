/* What the files of this room share. */
#ifndef GR_NN_INTERNAL_H
#define GR_NN_INTERNAL_H

#include "../tensor/internal.h"

/* "prefix.name", or "name" without a prefix; lives until gr_context_reset. */
const char *gr_prefixed(gr_context *ctx, const char *prefix, const char *name);

/* The result of a layer that is NULL: the error "where: the layer is NULL", and the inert tensor. */
gr_tensor *gr_no_layer(gr_tensor *x, const char *where);

/* An error unless heads divides width and both are at least 1. */
void gr_check_heads(gr_context *ctx, const char *where, int64_t heads, int64_t width);

#endif
