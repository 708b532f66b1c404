/* Arithmetic of shapes, checked for overflow. */
#ifndef GR_SHAPE_H
#define GR_SHAPE_H

#include "tensor.h"

/* Number of elements; -1 when a size is negative or the product does not fit. */
int64_t gr_shape_numel(gr_shape shape);

bool gr_shape_equal(gr_shape a, gr_shape b);

/* The common shape of two by broadcasting; false if there is none. */
bool gr_shape_broadcast(gr_shape a, gr_shape b, gr_shape *out);

/* Row-major strides. */
void gr_shape_strides(gr_shape shape, int64_t stride[GR_MAX_DIMS]);

/* Where element number `index` in row-major order lies, under these strides. */
int64_t gr_shape_offset(gr_shape shape, const int64_t *stride, int64_t index);

/* An axis in [0, ndim) from one that may count from the end; -1 if out of range. */
int gr_shape_axis(gr_shape shape, int axis);

/* A bit for each axis of the set; false if one is out of range or named twice. */
bool gr_shape_axes(gr_shape shape, gr_axes axes, unsigned *set);

/* The shape without the axes of the set, or with size 1 there. */
gr_shape gr_shape_reduced(gr_shape shape, unsigned set, bool keep);

/* "(2, 3)", "(4,)", "()" into out. */
const char *gr_shape_text(gr_shape shape, char *out, size_t size);

#endif
