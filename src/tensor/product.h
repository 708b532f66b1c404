/* The matrix product of tensors with any strides: batches, threads, and what accumulates where. */
#ifndef GR_PRODUCT_H
#define GR_PRODUCT_H

#include "matrix.h"

/* C (..., M, N) from A (..., M, K) and B (..., K, N). Leading axes of A and B are broadcast to each other; an axis of C
 * that is then missing or 1 is summed over, in order. Rows of C are contiguous. Shapes must fit. */
void gr_product(gr_tensor *c, gr_tensor *a, gr_tensor *b, gr_product_how how);

/* x as (rows, columns of its last axis): leading axes only lengthen the list of rows. A copy if the strides force it.
 */
gr_tensor *gr_as_matrix(gr_tensor *x);

/* x with its last two axes swapped. */
gr_tensor *gr_swapped(gr_tensor *x);

#endif
