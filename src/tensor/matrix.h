/* Matrices with any strides: the parts of tensors that products work on. */
#ifndef GR_MATRIX_H
#define GR_MATRIX_H

#include "internal.h"

typedef struct gr_matrix {
    size_t rows, columns;
    gr_real *x;
    ptrdiff_t row, column; /* strides */
} gr_matrix;

/* How many matrices a tensor (..., M, N) holds. */
int64_t gr_matrices(gr_shape shape);

/* Rows [begin, begin + count) of matrix number `lead` of a tensor. */
gr_matrix gr_matrix_of(const gr_tensor *x, int64_t lead, int64_t begin, int64_t count);

static inline gr_matrix gr_transposed(gr_matrix m) { return (gr_matrix){m.columns, m.rows, m.x, m.column, m.row}; }

typedef struct gr_product_how {
    bool accumulate; /* C += A B, else C = A B */
    bool zeros_hide; /* a factor 0 in A leaves its term out, even 0 times NaN */
} gr_product_how;

/* C = A B, or C +=, in one thread, whose scratch has GR_GEMM_SCRATCH numbers. Rows of C are contiguous. */
void gr_multiply(const gr_kernels *kernels, gr_real *scratch, gr_matrix c, gr_matrix a, gr_matrix b,
                 gr_product_how how);

bool gr_matrix_is_finite(const gr_kernels *kernels, gr_matrix m);

/* GR_GEMM_SCRATCH numbers for each thread, one after another; NULL after keeping an out-of-memory error. */
gr_real *gr_product_scratch(gr_context *ctx);

#endif
