/* Matrix product, blocked for the caches and tiled for the registers (Goto and van de Geijn, 2008; BLIS). Blocks of B
 * and panels of A are copied ("packed") into the order in which the tile reads them, which also removes their strides.
 * However it is cut, an element of C is the same chain of fma over k. */
#ifndef GR_MATMUL_H
#define GR_MATMUL_H

#include "pack.h"

/* A tile of C is held in registers: TILE_M rows of two vectors. 6 x 2 of 16 registers leave room for B and A, 4 x 2
 * also for the products where there is no fma; AVX-512 has 32, but 8 rows hide the latency of fma already and divide
 * the usual sizes. */
#if defined __AVX512F__
enum { VECTOR_BYTES = 64, TILE_M = 8 };
#elif defined __AVX2__
enum { VECTOR_BYTES = 32, TILE_M = 6 };
#elif defined __aarch64__
enum { VECTOR_BYTES = 16, TILE_M = 6 };
#else
enum { VECTOR_BYTES = 16, TILE_M = 4 };
#endif
enum { WIDTH = VECTOR_BYTES / sizeof(gr_real), VECTORS = 2, TILE_N = VECTORS * WIDTH };
_Static_assert((int)TILE_M <= (int)GR_GEMM_PANEL_M && GR_GEMM_PANEL_M % SQUARE == 0,
               "a panel holds the highest tile, in whole lines");
enum { STRIP_VECTORS = 8 }; /* of one row: enough to hide the latency of fma */

typedef gr_real vector GR_VECTOR(VECTOR_BYTES);
typedef vector vector_in_memory GR_ANYWHERE;
GR_INLINE vector load(const gr_real *x) { return *(const vector_in_memory *)x; }
GR_INLINE void store(gr_real *x, vector v) { *(vector_in_memory *)x = v; }
GR_INLINE vector multiply_add(gr_real a, vector b, vector c) {
    for (size_t l = 0; l < WIDTH; l++) c[l] = GR_FMA(a, b[l], c[l]);
    return c;
}

/* -- Tiles --------------------------------------------------------------------------------------------------------- */

/* C[i][j] (+)= sum over p < k of A[i][p] B[p][j], k > 0: A[i][p] at a[i a_row + p a_col], B[p][j] at b[p b_row + j]. C
 * stays in registers over all of k. Rows and vectors are constants. */
GR_INLINE void tile(size_t rows, size_t vectors, size_t k, const gr_real *a, ptrdiff_t a_row, ptrdiff_t a_col,
                    const gr_real *b, ptrdiff_t b_row, gr_real *restrict c, ptrdiff_t c_row, bool accumulate) {
    static const gr_real zeros[STRIP_VECTORS * WIDTH];
    const gr_real *begin = accumulate ? c : zeros;
    const ptrdiff_t begin_row = accumulate ? c_row : 0;
    vector sum[GR_GEMM_PANEL_M][STRIP_VECTORS], row[STRIP_VECTORS];
    GR_UNROLL for (size_t i = 0; i < rows; i++, begin += begin_row) GR_UNROLL for (size_t v = 0; v < vectors; v++)
        sum[i][v] = load(begin + v * WIDTH);
    do {
        GR_UNROLL for (size_t v = 0; v < vectors; v++) row[v] = load(b + v * WIDTH);
        GR_UNROLL for (size_t i = 0; i < rows; i++) GR_UNROLL for (size_t v = 0; v < vectors; v++) sum[i][v] =
            multiply_add(a[(ptrdiff_t)i * a_row], row[v], sum[i][v]);
        a += a_col, b += b_row;
    } while (--k > 0);
    GR_UNROLL for (size_t i = 0; i < rows; i++, c += c_row) GR_UNROLL for (size_t v = 0; v < vectors; v++)
        store(c + v * WIDTH, sum[i][v]);
}

/* A is a packed panel. First, because it is nearly all of them. */
static void full_tile(size_t k, const gr_real *a, const gr_real *b, ptrdiff_t b_row, gr_real *c, ptrdiff_t c_row,
                      bool accumulate) {
    tile(TILE_M, VECTORS, k, a, 1, GR_GEMM_PANEL_M, b, b_row, c, c_row, accumulate);
}

/* A tile of fewer rows or vectors: each number of them has code of its own. */
static void edge_tile(size_t rows, size_t vectors, size_t k, const gr_real *a, const gr_real *b, ptrdiff_t b_row,
                      gr_real *c, ptrdiff_t c_row, bool accumulate) {
/* clang-format off */
#define TILE(r)                                                                                                        \
    if (rows == (r) && vectors == 1) tile(r, 1, k, a, 1, GR_GEMM_PANEL_M, b, b_row, c, c_row, accumulate);                     \
    if (rows == (r) && vectors == 2) tile(r, 2, k, a, 1, GR_GEMM_PANEL_M, b, b_row, c, c_row, accumulate);
    TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6)
#ifdef __AVX512F__
    TILE(7) TILE(8)
#endif
/* clang-format on */
#undef TILE
}

/* A tile that ends within a vector goes through whole ones on the side. */
static void ragged_tile(size_t rows, size_t columns, size_t k, const gr_real *a, const gr_real *b, gr_real *c,
                        ptrdiff_t c_row, bool accumulate) {
    gr_real side[TILE_M * TILE_N];
    for (size_t i = 0; accumulate && i < rows; i++)
        for (size_t j = 0; j < columns; j++) side[i * TILE_N + j] = c[(ptrdiff_t)i * c_row + (ptrdiff_t)j];
    edge_tile(rows, (columns + WIDTH - 1) / WIDTH, k, a, b, TILE_N, side, TILE_N, accumulate);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) c[(ptrdiff_t)i * c_row + (ptrdiff_t)j] = side[i * TILE_N + j];
}

/* -- Blocks -------------------------------------------------------------------------------------------------------- */

/* Packing a block of B is paid once, and each TILE_M rows of A that use it earn some of it back; with fewer than 16
 * such panels it does not pay, and tiles read B where it lies (measured, docs/performance.md). */
enum { WORTH_PACKING_B = 16 * TILE_M };

/* One block of B, (depth, width), times all rows of A. B's panels are in scratch, or it is read in place; A's panel
 * follows them. */
static void multiply_block(const gr_gemm *g, size_t k0, size_t depth, size_t j0, size_t width, bool b_in_place,
                           bool accumulate) {
    gr_real *panel = g->scratch + GR_GEMM_BLOCK_K * GR_GEMM_BLOCK_N;
    for (size_t i = 0; i < g->m; i += TILE_M) {
        size_t rows = g->m - i < TILE_M ? g->m - i : TILE_M;
        pack(GR_GEMM_PANEL_M, depth, rows, g->a + (ptrdiff_t)i * g->a_row + (ptrdiff_t)k0 * g->a_col, g->a_row,
             g->a_col, panel);
        for (size_t j = 0; j < width; j += TILE_N) {
            size_t columns = width - j < TILE_N ? width - j : TILE_N;
            gr_real *c = g->c + (ptrdiff_t)i * g->c_row + (ptrdiff_t)(j0 + j);
            const gr_real *b = g->scratch + j * depth;
            ptrdiff_t b_row = TILE_N;
            if (b_in_place && columns % WIDTH == 0)
                b = g->b + (ptrdiff_t)k0 * g->b_row + (ptrdiff_t)(j0 + j), b_row = g->b_row;
            if (rows == TILE_M && columns == TILE_N)
                full_tile(depth, panel, b, b_row, c, g->c_row, accumulate);
            else if (columns % WIDTH == 0)
                edge_tile(rows, columns / WIDTH, depth, panel, b, b_row, c, g->c_row, accumulate);
            else
                ragged_tile(rows, columns, depth, panel, b, c, g->c_row, accumulate);
        }
    }
}

static void multiply(const gr_gemm *g) {
    const bool b_in_place = g->b_col == 1 && g->m < WORTH_PACKING_B;
    for (size_t j0 = 0; j0 < g->n; j0 += GR_GEMM_BLOCK_N) {
        size_t width = g->n - j0 < GR_GEMM_BLOCK_N ? g->n - j0 : GR_GEMM_BLOCK_N;
        for (size_t k0 = 0; k0 < g->k; k0 += GR_GEMM_BLOCK_K) {
            size_t depth = g->k - k0 < GR_GEMM_BLOCK_K ? g->k - k0 : GR_GEMM_BLOCK_K;
            for (size_t j = 0; j < width; j += TILE_N) {
                size_t columns = width - j < TILE_N ? width - j : TILE_N;
                if (b_in_place && columns % WIDTH == 0) continue;
                pack(TILE_N, depth, columns, g->b + (ptrdiff_t)k0 * g->b_row + (ptrdiff_t)(j0 + j) * g->b_col, g->b_col,
                     g->b_row, g->scratch + j * depth);
            }
            multiply_block(g, k0, depth, j0, width, b_in_place, g->accumulate || k0 > 0);
        }
    }
}

/* -- Few rows ------------------------------------------------------------------------------------------------------ */

/* One or two rows times B by rows. A number of B is used so seldom that B is read where it lies, as fast as memory
 * gives it, in strips so wide that their sums hide the latency of fma; the last columns are plain loops. */
GR_INLINE size_t strips(size_t rows, size_t vectors, const gr_gemm *g, size_t j) {
    for (; j + vectors * WIDTH <= g->n; j += vectors * WIDTH)
        tile(rows, vectors, g->k, g->a, g->a_row, g->a_col, g->b + j, g->b_row, g->c + j, g->c_row, g->accumulate);
    return j;
}

static void multiply_few(const gr_gemm *g) {
    size_t j = 0;
    if (g->m == 1)
        j = strips(1, STRIP_VECTORS, g, j), j = strips(1, 4, g, j), j = strips(1, 2, g, j), j = strips(1, 1, g, j);
    else
        j = strips(2, 4, g, j), j = strips(2, 2, g, j), j = strips(2, 1, g, j);
    gr_gemm rest = *g;
    rest.n -= j, rest.b += j, rest.c += j;
    plain_matmul(&rest);
}

static void matmul(const gr_gemm *g) {
    if (g->k == 0 || g->m == 0)
        plain_matmul(g);
    else if (g->m <= 2 && g->b_col == 1)
        multiply_few(g);
    else
        multiply(g);
}

#endif
