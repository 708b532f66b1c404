/* The matrix product of tensors with any strides: batches, threads, and what accumulates where. */
#ifndef GR_PRODUCT_H
#define GR_PRODUCT_H

#include "internal.h"

typedef struct gr_product_how {
    bool accumulate; /* C += A B, else C = A B */
    bool zeros_hide; /* a factor 0 in A leaves its term out, even 0 times NaN */
} gr_product_how;

/* C (..., M, N) from A (..., M, K) and B (..., K, N). Leading axes of A and B are broadcast to each other; an axis of C
 * that is then missing or 1 is summed over, in order. Rows of C are contiguous. Shapes must fit. */
void gr_product(gr_tensor *c, gr_tensor *a, gr_tensor *b, gr_product_how how);

/* One product in which a 0 of A hides: the ordinary one if B is finite, else terms are left out in plain loops. */
void gr_multiply_hiding(const gr_kernels *kernels, const gr_gemm *g);

/* GR_GEMM_SCRATCH numbers for each thread, for gr_gemm; NULL after keeping an out-of-memory error. */
gr_real *gr_product_scratch(gr_context *ctx);

/* Is every number of the matrix finite, whatever its strides? */
bool gr_matrix_is_finite(const gr_kernels *kernels, size_t rows, size_t columns, const gr_real *x, ptrdiff_t row,
                         ptrdiff_t col);

/* x as (rows, columns of its last axis): leading axes only lengthen the list of rows. A copy if the strides force it.
 */
gr_tensor *gr_as_matrix(gr_tensor *x);

/* x with its last two axes swapped. */
gr_tensor *gr_swapped(gr_tensor *x);

#endif
