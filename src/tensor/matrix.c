#include "matrix.h"
#include "parallel.h"

int64_t gr_matrices(gr_shape shape) {
    shape.ndim -= 2;
    return gr_shape_numel(shape);
}

gr_matrix gr_matrix_of(const gr_tensor *x, int64_t lead, int64_t begin, int64_t count) {
    const int axis = x->shape.ndim - 2;
    gr_shape leading = x->shape;
    leading.ndim = axis;
    gr_real *first = x->data + gr_shape_offset(leading, x->stride, lead) + begin * x->stride[axis];
    return (gr_matrix){(size_t)count, (size_t)x->shape.dim[axis + 1], first, (ptrdiff_t)x->stride[axis],
                       (ptrdiff_t)x->stride[axis + 1]};
}

bool gr_matrix_is_finite(const gr_kernels *kernels, gr_matrix m) {
    if (m.column != 1 && m.row == 1) m = gr_transposed(m);
    if (m.column == 1) return kernels->all_finite(m.rows, m.columns, m.x, m.row);
    for (size_t j = 0; j < m.columns; j++) /* a column as rows of one number */
        if (!kernels->all_finite(m.rows, 1, m.x + (ptrdiff_t)j * m.column, m.row)) return false;
    return true;
}

void gr_multiply(const gr_kernels *kernels, gr_real *scratch, gr_matrix c, gr_matrix a, gr_matrix b,
                 gr_product_how how) {
    const gr_gemm g = {.m = c.rows,
                       .n = c.columns,
                       .k = a.columns,
                       .a = a.x,
                       .b = b.x,
                       .a_row = a.row,
                       .a_col = a.column,
                       .b_row = b.row,
                       .b_col = b.column,
                       .c = c.x,
                       .c_row = c.row,
                       .accumulate = how.accumulate,
                       .scratch = scratch};
    if (how.zeros_hide && !gr_matrix_is_finite(kernels, b))
        kernels->matmul_hiding(&g);
    else
        kernels->matmul(&g);
}

gr_real *gr_product_scratch(gr_context *ctx) {
    int threads = gr_max_threads();
    if (ctx->scratch_threads >= threads) return ctx->scratch;
    gr_real *scratch = gr_alloc_array(ctx, true, (int64_t)threads * GR_GEMM_SCRATCH, sizeof *scratch);
    if (scratch) ctx->scratch = scratch, ctx->scratch_threads = threads;
    return scratch;
}
