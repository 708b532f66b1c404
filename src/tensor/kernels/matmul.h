/* Matrix product, blocked for the caches and tiled for the registers (Goto and van de Geijn, 2008; BLIS). Blocks of B
 * and panels of A are copied ("packed") into the order in which the tile reads them, which also removes their strides.
 * However it is cut, an element of C is the same chain of fma over k. */
#ifndef GR_MATMUL_H
#define GR_MATMUL_H

/* A tile of C is held in registers: TILE_M rows of two vectors. 6 x 2 of 16 registers leave room for B and A; AVX-512
 * has 32. */
#if defined __AVX512F__
enum { VECTOR_BYTES = 64, TILE_M = 12 };
#elif defined __AVX2__
enum { VECTOR_BYTES = 32, TILE_M = 6 };
#else
enum { VECTOR_BYTES = 16, TILE_M = 6 };
#endif
enum { TILE_N = 2 * VECTOR_BYTES / sizeof(gr_real) };

/* panel[p][j] = B[p][j], j < width, filled up with zeros to TILE_N columns */
static void pack_b(size_t k, size_t width, const gr_real *b, ptrdiff_t row, ptrdiff_t col, gr_real *restrict panel) {
    if (width == TILE_N && col == 1) {
        for (size_t p = 0; p < k; p++, b += row, panel += TILE_N)
            GR_SIMD for (size_t j = 0; j < TILE_N; j++) panel[j] = b[j];
        return;
    }
    for (size_t p = 0; p < k; p++, b += row, panel += TILE_N)
        for (size_t j = 0; j < TILE_N; j++) panel[j] = j < width ? b[(ptrdiff_t)j * col] : 0;
}

/* panel[p][i] = A[i][p], i < height, filled up with zeros to TILE_M rows; A is read along its closer axis */
static void pack_a(size_t k, size_t height, const gr_real *a, ptrdiff_t row, ptrdiff_t col, gr_real *restrict panel) {
    if (height == TILE_M && row == 1) {
        for (size_t p = 0; p < k; p++, a += col, panel += TILE_M)
            GR_SIMD for (size_t i = 0; i < TILE_M; i++) panel[i] = a[i];
        return;
    }
    for (size_t i = 0; i < TILE_M; i++, a += row)
        for (size_t p = 0; p < k; p++) panel[p * TILE_M + i] = i < height ? a[(ptrdiff_t)p * col] : 0;
}

/* C[i][j] (+)= sum over p of a[p][i] b[p][j] for a whole tile: C stays in registers over all of k. */
static inline void full_tile(size_t k, const gr_real *restrict a, const gr_real *restrict b, gr_real *restrict c,
                             ptrdiff_t c_row, bool accumulate) {
    gr_real sum[TILE_M][TILE_N] = {{0}};
    if (accumulate)
        for (size_t i = 0; i < TILE_M; i++)
            GR_SIMD for (size_t j = 0; j < TILE_N; j++) sum[i][j] = c[(ptrdiff_t)i * c_row + (ptrdiff_t)j];
    for (size_t p = 0; p < k; p++, a += TILE_M, b += TILE_N)
        for (size_t i = 0; i < TILE_M; i++)
            GR_SIMD for (size_t j = 0; j < TILE_N; j++) sum[i][j] = GR_FMA(a[i], b[j], sum[i][j]);
    for (size_t i = 0; i < TILE_M; i++)
        GR_SIMD for (size_t j = 0; j < TILE_N; j++) c[(ptrdiff_t)i * c_row + (ptrdiff_t)j] = sum[i][j];
}

/* A tile at the edge goes through a whole tile on the side. */
static void edge_tile(size_t k, size_t height, size_t width, const gr_real *a, const gr_real *b, gr_real *c,
                      ptrdiff_t c_row, bool accumulate) {
    gr_real side[TILE_M * TILE_N] = {0};
    for (size_t i = 0; accumulate && i < height; i++)
        for (size_t j = 0; j < width; j++) side[i * TILE_N + j] = c[(ptrdiff_t)i * c_row + (ptrdiff_t)j];
    full_tile(k, a, b, side, TILE_N, accumulate);
    for (size_t i = 0; i < height; i++)
        for (size_t j = 0; j < width; j++) c[(ptrdiff_t)i * c_row + (ptrdiff_t)j] = side[i * TILE_N + j];
}

/* One block of B, already packed, times all rows of A. */
static void multiply_block(const gr_gemm *g, size_t k0, size_t depth, size_t j0, size_t width, bool accumulate) {
    gr_real panel[TILE_M * GR_GEMM_BLOCK_K / 2]; /* on the stack: half a block deep at a time keeps it below 16 KiB */
    const size_t most = GR_GEMM_BLOCK_K / 2;
    for (size_t i = 0; i < g->m; i += TILE_M) {
        size_t height = g->m - i < TILE_M ? g->m - i : TILE_M;
        for (size_t half = 0; half < depth || half == 0; half += most) { /* depth 0: one round, which sets C to 0 */
            size_t deep = depth - half < most ? depth - half : most;
            pack_a(deep, height, g->a + (ptrdiff_t)i * g->a_row + (ptrdiff_t)(k0 + half) * g->a_col, g->a_row, g->a_col,
                   panel);
            for (size_t j = 0; j < width; j += TILE_N) {
                const gr_real *b = g->scratch + j * depth + half * TILE_N;
                gr_real *c = g->c + (ptrdiff_t)i * g->c_row + (ptrdiff_t)(j0 + j);
                size_t wide = width - j < TILE_N ? width - j : TILE_N;
                bool add = accumulate || half > 0;
                if (height == TILE_M && wide == TILE_N)
                    full_tile(deep, panel, b, c, g->c_row, add);
                else
                    edge_tile(deep, height, wide, panel, b, c, g->c_row, add);
            }
        }
    }
}

static void matmul(const gr_gemm *g) {
    for (size_t j0 = 0; j0 < g->n; j0 += GR_GEMM_BLOCK_N) {
        size_t width = g->n - j0 < GR_GEMM_BLOCK_N ? g->n - j0 : GR_GEMM_BLOCK_N;
        for (size_t k0 = 0; k0 < g->k || k0 == 0; k0 += GR_GEMM_BLOCK_K) { /* k = 0: one round, which sets C to 0 */
            size_t depth = g->k - k0 < GR_GEMM_BLOCK_K ? g->k - k0 : GR_GEMM_BLOCK_K;
            for (size_t j = 0; j < width; j += TILE_N)
                pack_b(depth, width - j < TILE_N ? width - j : TILE_N,
                       g->b + (ptrdiff_t)k0 * g->b_row + (ptrdiff_t)(j0 + j) * g->b_col, g->b_row, g->b_col,
                       g->scratch + j * depth);
            multiply_block(g, k0, depth, j0, width, g->accumulate || k0 > 0);
        }
    }
}

#endif
