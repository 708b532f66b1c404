/* Packing: operands of the matrix product are copied into the order in which a tile reads them, and the vectors that
 * both are written in. */
#ifndef GR_PACK_H
#define GR_PACK_H

/* Vector types, which begin anywhere in memory: an array of sums written as plain numbers goes through the stack. Each
 * vector becomes a register only when the loops over vectors are unrolled, in functions that are inlined. */
#define GR_VECTOR(bytes) __attribute__((vector_size(bytes)))
#define GR_ANYWHERE      __attribute__((aligned(sizeof(gr_real)), may_alias))
#define GR_INLINE        static inline __attribute__((always_inline))
#ifdef __clang__
#    define GR_UNROLL _Pragma("unroll")
#else
#    define GR_UNROLL _Pragma("GCC unroll 16")
#endif

/* A line is SQUARE numbers: half a vector to two, by precision and instruction set; the compiler splits or widens it.
 */
#ifdef __AVX2__
enum { SQUARE = 8 };
#    define GR_LOW_HALVES  0, 8, 1, 9, 2, 10, 3, 11
#    define GR_HIGH_HALVES 4, 12, 5, 13, 6, 14, 7, 15
#else
enum { SQUARE = 4 };
#    define GR_LOW_HALVES  0, 4, 1, 5
#    define GR_HIGH_HALVES 2, 6, 3, 7
#endif
typedef gr_real line GR_VECTOR(SQUARE * sizeof(gr_real));
typedef line line_in_memory GR_ANYWHERE;
#ifdef __clang__
#    define GR_SHUFFLE(a, b, places) __builtin_shufflevector(a, b, places)
#else /* gcc has that name only from 12 on */
typedef k_bits line_of_places GR_VECTOR(SQUARE * sizeof(gr_real));
#    define GR_SHUFFLE(a, b, places) __builtin_shuffle(a, b, (line_of_places){places})
#endif

/* panel[p][l] = x[l][p]. A square is transposed by shuffling one half of its rows into the other, like cards, log2
 * SQUARE times: each time the bits of an element's place, (row, column), go round by one. In lanes from count on stands
 * row 0 again. (Of the same shuffle as a loop over numbers gcc makes inserts, one by one.) */
GR_INLINE void pack_square(size_t count, const gr_real *x, ptrdiff_t across, gr_real *panel, size_t lanes) {
    line from[SQUARE], to[SQUARE];
    GR_UNROLL for (size_t l = 0; l < SQUARE; l++) from[l] =
        *(const line_in_memory *)(x + (l < count ? (ptrdiff_t)l : 0) * across);
    GR_UNROLL for (size_t round = 1; round < SQUARE; round *= 2) {
        GR_UNROLL for (size_t l = 0; l < SQUARE / 2; l++) {
            line upper = from[l], lower = from[l + SQUARE / 2];
            to[2 * l] = GR_SHUFFLE(upper, lower, GR_LOW_HALVES);
            to[2 * l + 1] = GR_SHUFFLE(upper, lower, GR_HIGH_HALVES);
        }
        GR_UNROLL for (size_t l = 0; l < SQUARE; l++) from[l] = to[l];
    }
    GR_UNROLL for (size_t p = 0; p < SQUARE; p++) * (line_in_memory *)(panel + p * lanes) = from[p];
}

/* panel[p][l] = x[p deep + l across], l < count: rows of A or columns of B. Lanes from count on may hold anything: what
 * is computed from them is not kept. */
static inline void pack(size_t lanes, size_t k, size_t count, const gr_real *x, ptrdiff_t across, ptrdiff_t deep,
                        gr_real *restrict panel) {
    if (across == 1 && count == lanes) {
        for (size_t p = 0; p < k; p++, x += deep, panel += lanes)
            GR_UNROLL for (size_t l = 0; l < lanes; l += SQUARE) * (line_in_memory *)(panel + l) =
                *(const line_in_memory *)(x + l);
        return;
    }
    for (size_t l = 0; l < count; l += SQUARE, x += SQUARE * across, panel += SQUARE) {
        size_t some = count - l < SQUARE ? count - l : SQUARE, p = 0;
        for (; deep == 1 && p + SQUARE <= k; p += SQUARE)
            if (some == SQUARE)
                pack_square(SQUARE, x + p, across, panel + p * lanes, lanes);
            else
                pack_square(some, x + p, across, panel + p * lanes, lanes);
        for (; p < k; p++)
            for (size_t i = 0; i < some; i++) panel[p * lanes + i] = x[(ptrdiff_t)i * across + (ptrdiff_t)p * deep];
    }
}

#endif
