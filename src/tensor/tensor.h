/* Tensors: an array of gr_real with a shape of up to 6 dimensions and a stride for each. Every function that can fail
 * keeps its error in the context and returns an inert tensor, never NULL. */
#ifndef GR_TENSOR_H
#define GR_TENSOR_H

#include "context.h"
#include "random.h"
#include "real.h"

#include <stdint.h>
#include <stdio.h>

enum { GR_MAX_DIMS = 6 };

typedef struct gr_tensor gr_tensor;

/* Sizes, outermost first. GR_SHAPE(2, 3) is a matrix of 2 rows and 3 columns, GR_SCALAR has no dimension. */
typedef struct gr_shape {
    int ndim;
    int64_t dim[GR_MAX_DIMS];
} gr_shape;

/* A set of axes to reduce over; negative axes count from the end, GR_ALL is every axis. GR_AXES(0, -1) drops the axes,
 * GR_KEEP(0, -1) keeps them with size 1 (PyTorch's keepdim). */
typedef struct gr_axes {
    int count; /* -1: all */
    bool keep;
    int axis[GR_MAX_DIMS];
} gr_axes;

#define GR_NARGS_(a, b, c, d, e, f, n, ...) n
#define GR_NARGS(...)                       GR_NARGS_(__VA_ARGS__, 6, 5, 4, 3, 2, 1, 0)
#ifdef __cplusplus
#    define GR_LITERAL(type) type
#else
#    define GR_LITERAL(type) (type)
#endif
/* clang-format off */
#define GR_SHAPE(...) (GR_LITERAL(gr_shape){GR_NARGS(__VA_ARGS__), {__VA_ARGS__}})
#define GR_SCALAR     (GR_LITERAL(gr_shape){0, {0}})
#define GR_AXES(...)  (GR_LITERAL(gr_axes){GR_NARGS(__VA_ARGS__), false, {__VA_ARGS__}})
#define GR_KEEP(...)  (GR_LITERAL(gr_axes){GR_NARGS(__VA_ARGS__), true, {__VA_ARGS__}})
#define GR_ALL        (GR_LITERAL(gr_axes){-1, false, {0}})
/* clang-format on */

/* Token ids (batch, time), row by row: ids[b * time + t]. */
typedef struct gr_tokens {
    const int32_t *ids;
    int64_t batch, time;
} gr_tokens;

/* New tensors; they live until gr_context_reset. Values are given as double and rounded to gr_real. */
gr_tensor *gr_zeros(gr_context *ctx, gr_shape shape);
gr_tensor *gr_full(gr_context *ctx, gr_shape shape, double value);
gr_tensor *gr_scalar(gr_context *ctx, double value);                                          /* () */
gr_tensor *gr_from(gr_context *ctx, gr_shape shape, const gr_real *values);                   /* copies, row-major */
gr_tensor *gr_normal(gr_context *ctx, gr_shape shape, double mean, double std, gr_rng *rng);  /* std >= 0, finite */
gr_tensor *gr_uniform(gr_context *ctx, gr_shape shape, double low, double high, gr_rng *rng); /* [low, high), finite */

/* A copy that lives as long as the context: a mask, a table. No gradient flows through it. */
gr_tensor *gr_keep(gr_tensor *x);

/* Gives x a name for messages and pictures (copied) and returns x. */
gr_tensor *gr_named(gr_tensor *x, const char *name);
const char *gr_name(const gr_tensor *x); /* "" when it has none */

/* What a tensor is. An inert tensor has shape () and no data. */
gr_context *gr_context_of(const gr_tensor *x);
gr_shape gr_shape_of(const gr_tensor *x);
int gr_ndim(const gr_tensor *x);
int64_t gr_dim(const gr_tensor *x, int axis);    /* size; negative axes count from the end; 0 for a wrong axis */
int64_t gr_stride(const gr_tensor *x, int axis); /* in elements */
int64_t gr_numel(const gr_tensor *x);
gr_real *gr_data(gr_tensor *x); /* element (0, ..., 0), to be walked with the strides; NULL if inert */
bool gr_is_inert(const gr_tensor *x);

/* The value of a tensor of one element; NaN, and an error, for any other. */
double gr_item(gr_tensor *x);

/* Copies all elements in row-major order to out, which has room for gr_numel(x); false after an error. */
bool gr_to_array(gr_tensor *x, gr_real *out);

/* Prints shape and values as numpy does: rows in brackets, "..." inside axes longer than 6 when there are over 1000
 * elements. */
void gr_print(gr_tensor *x);
void gr_fprint(FILE *out, gr_tensor *x);

#endif
