/* The matrix product as a book writes it: three loops. Element (i, j) is one chain of fma over p = 0, 1, ... */
#ifndef GR_PLAIN_H
#define GR_PLAIN_H

static void plain_product(const gr_gemm *g, bool zeros_hide) {
    for (size_t i = 0; i < g->m; i++)
        for (size_t j = 0; j < g->n; j++) {
            gr_real *c = &g->c[(ptrdiff_t)i * g->c_row + (ptrdiff_t)j], sum = g->accumulate ? *c : 0;
            for (size_t p = 0; p < g->k; p++) {
                gr_real a = g->a[(ptrdiff_t)i * g->a_row + (ptrdiff_t)p * g->a_col];
                gr_real b = g->b[(ptrdiff_t)p * g->b_row + (ptrdiff_t)j * g->b_col];
                if (!zeros_hide || a != 0) sum = GR_FMA(a, b, sum);
            }
            *c = sum;
        }
}

static inline void plain_matmul(const gr_gemm *g) { plain_product(g, false); }
static inline void plain_matmul_hiding(const gr_gemm *g) { plain_product(g, true); }

#endif
