/* Sums over axes, and any tensor as rows to be reduced. */
#ifndef GR_REDUCE_H
#define GR_REDUCE_H

#include "internal.h"
#include "iterate.h"

/* y (+)= the sum of x over the axes along which y, contiguous, would be broadcast to the shape of x. This is both the
 * sum op and the backward of every broadcast. Each element of y is the tree of kernels/tree.h over its terms in
 * row-major order. */
void gr_sum_to(gr_tensor *y, gr_tensor *x, bool accumulate);

/* x with the axes of the set moved to the end and copied if need be: contiguous (rows, n), n the product of the set's
 * sizes. */
gr_tensor *gr_as_rows(gr_tensor *x, unsigned set);

#endif
