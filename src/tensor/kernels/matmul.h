/* Matrix product, blocked for the caches and tiled for the registers (Goto and van de Geijn, 2008; BLIS). Blocks of B
 * and panels of A are copied ("packed") into the order in which the tile reads them, which also removes their strides.
 * However it is cut, an element of C is the same chain of fma over k. */
#ifndef GR_MATMUL_H
#define GR_MATMUL_H

/* A tile of C is held in registers: TILE_M rows of two vectors. 6 x 2 of 16 registers leave room for B and A; AVX-512
 * has 32, but 8 rows hide the latency of fma already and divide the usual sizes. */
#if defined __AVX512F__
enum { VECTOR_BYTES = 64, TILE_M = 8 };
#elif defined __AVX2__
enum { VECTOR_BYTES = 32, TILE_M = 6 };
#else
enum { VECTOR_BYTES = 16, TILE_M = 6 };
#endif
enum { TILE_N = 2 * VECTOR_BYTES / sizeof(gr_real) };

/* The rows of a tile become separate registers only when their loop is unrolled. */
#ifdef __clang__
#    define GR_UNROLL _Pragma("unroll")
#else
#    define GR_UNROLL _Pragma("GCC unroll 16")
#endif

/* panel[p][l] = x[p deep + l across], l < count, filled up with zeros to a whole number of lanes: rows of A or columns
 * of B, read along their closer axis. */
static inline void pack(size_t lanes, size_t k, size_t count, const gr_real *x, ptrdiff_t across, ptrdiff_t deep,
                        gr_real *restrict panel) {
    if (count == lanes && across == 1) {
        for (size_t p = 0; p < k; p++, x += deep, panel += lanes)
            GR_SIMD for (size_t l = 0; l < lanes; l++) panel[l] = x[l];
        return;
    }
    for (size_t l = 0; l < lanes; l++)
        for (size_t p = 0; p < k; p++)
            panel[p * lanes + l] = l < count ? x[(ptrdiff_t)l * across + (ptrdiff_t)p * deep] : 0;
}

/* Where a tile reads its operands: A[i][p] at a[i a_row + p a_col], B[p][j] at b[p b_row + j]. */
typedef struct tile_source {
    const gr_real *a, *b;
    ptrdiff_t a_row, a_col, b_row;
} tile_source;

/* C[i][j] (+)= sum over p of A[i][p] B[p][j] for a whole tile: C stays in registers over all of k. */
static inline void full_tile(size_t k, tile_source s, gr_real *restrict c, ptrdiff_t c_row, bool accumulate) {
    gr_real sum[TILE_M][TILE_N] = {{0}};
    if (accumulate)
        GR_UNROLL for (size_t i = 0; i < TILE_M; i++) GR_SIMD for (size_t j = 0; j < TILE_N; j++) sum[i][j] =
            c[(ptrdiff_t)i * c_row + (ptrdiff_t)j];
    for (size_t p = 0; p < k; p++, s.a += s.a_col, s.b += s.b_row)
        GR_UNROLL for (size_t i = 0; i < TILE_M; i++) GR_SIMD for (size_t j = 0; j < TILE_N; j++) sum[i][j] =
            GR_FMA(s.a[(ptrdiff_t)i * s.a_row], s.b[j], sum[i][j]);
    GR_UNROLL for (size_t i = 0; i < TILE_M; i++) GR_SIMD for (size_t j = 0; j < TILE_N; j++)
        c[(ptrdiff_t)i * c_row + (ptrdiff_t)j] = sum[i][j];
}

/* A tile at the edge goes through a whole tile on the side. Its panels are packed, with zeros beyond. */
static void edge_tile(size_t k, size_t height, size_t width, tile_source s, gr_real *c, ptrdiff_t c_row,
                      bool accumulate) {
    gr_real side[TILE_M * TILE_N] = {0};
    for (size_t i = 0; accumulate && i < height; i++)
        for (size_t j = 0; j < width; j++) side[i * TILE_N + j] = c[(ptrdiff_t)i * c_row + (ptrdiff_t)j];
    full_tile(k, s, side, TILE_N, accumulate);
    for (size_t i = 0; i < height; i++)
        for (size_t j = 0; j < width; j++) c[(ptrdiff_t)i * c_row + (ptrdiff_t)j] = side[i * TILE_N + j];
}

/* Packing is paid once for every tile that reads the panel again; below these many rows or columns of tiles it costs
 * more than it saves, and the tile reads A or B where it lies. */
enum { WORTH_PACKING_B = 4 * TILE_M, WORTH_PACKING_A = 4 * TILE_N };

/* One block of B times all rows of A. B's panels are in scratch, or it is read in place; A's panel follows them. */
static void multiply_block(const gr_gemm *g, size_t k0, size_t depth, size_t j0, size_t width, bool b_in_place,
                           bool accumulate) {
    gr_real *panel = g->scratch + GR_GEMM_BLOCK_K * GR_GEMM_BLOCK_N;
    for (size_t i = 0; i < g->m; i += TILE_M) {
        size_t height = g->m - i < TILE_M ? g->m - i : TILE_M;
        const gr_real *a = g->a + (ptrdiff_t)i * g->a_row + (ptrdiff_t)k0 * g->a_col;
        bool a_in_place = height == TILE_M && width < WORTH_PACKING_A && width % TILE_N == 0;
        if (!a_in_place) pack(TILE_M, depth, height, a, g->a_row, g->a_col, panel);
        for (size_t j = 0; j < width; j += TILE_N) {
            size_t wide = width - j < TILE_N ? width - j : TILE_N;
            gr_real *c = g->c + (ptrdiff_t)i * g->c_row + (ptrdiff_t)(j0 + j);
            tile_source s = {panel, g->scratch + j * depth, 1, TILE_M, TILE_N};
            if (a_in_place) s.a = a, s.a_row = g->a_row, s.a_col = g->a_col;
            if (b_in_place && wide == TILE_N)
                s.b = g->b + (ptrdiff_t)k0 * g->b_row + (ptrdiff_t)(j0 + j), s.b_row = g->b_row;
            if (height < TILE_M || wide < TILE_N)
                edge_tile(depth, height, wide, s, c, g->c_row, accumulate);
            else if (a_in_place || b_in_place)
                full_tile(depth, s, c, g->c_row, accumulate);
            else
                full_tile(depth, (tile_source){s.a, s.b, 1, TILE_M, TILE_N}, c, g->c_row, accumulate);
        }
    }
}

static void matmul(const gr_gemm *g) {
    const bool b_in_place = g->b_col == 1 && g->m < WORTH_PACKING_B;
    for (size_t j0 = 0; j0 < g->n; j0 += GR_GEMM_BLOCK_N) {
        size_t width = g->n - j0 < GR_GEMM_BLOCK_N ? g->n - j0 : GR_GEMM_BLOCK_N;
        for (size_t k0 = 0; k0 < g->k || k0 == 0; k0 += GR_GEMM_BLOCK_K) { /* k = 0: one round, which sets C to 0 */
            size_t depth = g->k - k0 < GR_GEMM_BLOCK_K ? g->k - k0 : GR_GEMM_BLOCK_K;
            for (size_t j = 0; j < width; j += TILE_N) {
                size_t wide = width - j < TILE_N ? width - j : TILE_N;
                if (b_in_place && wide == TILE_N) continue;
                pack(TILE_N, depth, wide, g->b + (ptrdiff_t)k0 * g->b_row + (ptrdiff_t)(j0 + j) * g->b_col, g->b_col,
                     g->b_row, g->scratch + j * depth);
            }
            multiply_block(g, k0, depth, j0, width, b_in_place, g->accumulate || k0 > 0);
        }
    }
}

#endif
