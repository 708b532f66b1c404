/* One walk over several tensors of one shape, whatever their strides: row by row, rows as long as the strides allow. */
#ifndef GR_ITERATE_H
#define GR_ITERATE_H

#include "internal.h"

/* Runs the map y = f(operands) over all elements of y; operands are broadcast to the shape of y. At most 3 operands. */
void gr_run_map(gr_map *map, gr_real t, gr_tensor *y, int count, gr_tensor *const *operands);

#endif
