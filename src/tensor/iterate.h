/* One walk over several tensors of one shape, whatever their strides: row by row, rows as long as the strides allow. */
#ifndef GR_ITERATE_H
#define GR_ITERATE_H

#include "internal.h"

/* Strides of x seen under a shape it broadcasts to: 0 along repeated axes. */
void gr_broadcast_strides(const gr_tensor *x, gr_shape shape, int64_t stride[GR_MAX_DIMS]);

/* Runs the map y = f(operands, t) over all elements of y; operands, at most 3, are broadcast to the shape of y. */
void gr_run_map(gr_map_name map, double t, gr_tensor *y, int count, gr_tensor *const *operands);

#endif
