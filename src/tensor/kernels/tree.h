/* The order of every sum. n terms are cut into blocks of BLOCK; in a block LANES running sums start at 0 and take every
 * LANES-th term; they are folded in halves (lane l takes lane l + LANES/2, and so on); the sums of the blocks are added
 * pairwise, the left part being the largest power of two of blocks that is less than all of them. The order depends on
 * n alone, so the vector width, the number of threads and the strides change no bit; the error grows like log n. */
#ifndef GR_TREE_H
#define GR_TREE_H

/* 16 lanes fill the widest vector of floats; a chain of 16 keeps the additions in a block short, as in numpy. */
enum { LANES = 16, CHAIN = 16, BLOCK = LANES * CHAIN, LEVELS = 48 }; /* 2^48 blocks fill no memory */

/* The pairwise part, as a binary counter: partial sums of 2^i blocks, largest first. */
typedef struct tree {
    size_t blocks;
    int count;
    gr_real partial[LEVELS];
} tree;

static inline void tree_start(tree *t) { t->blocks = 0, t->count = 0; } /* the partial sums need no clearing */

static inline void tree_add(tree *t, gr_real block) {
    for (size_t b = t->blocks++; b & 1; b >>= 1) block = t->partial[--t->count] + block;
    t->partial[t->count++] = block;
}

static inline gr_real tree_total(const tree *t) {
    gr_real total = t->count > 0 ? t->partial[t->count - 1] : 0;
    for (int i = t->count - 2; i >= 0; i--) total = t->partial[i] + total;
    return total;
}

static inline gr_real fold_lanes(gr_real lane[LANES]) {
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) lane[l] += lane[l + half];
    return lane[0];
}

/* total = the sum of `term`, an expression in i, over i = 0 ... n - 1. */
#define GR_SUM(total, n, i, term)                                                \
    do {                                                                         \
        tree sum_tree;                                                           \
        tree_start(&sum_tree);                                                   \
        for (size_t begin = 0; begin < (n); begin += BLOCK) {                    \
            gr_real lane[LANES] = {0};                                           \
            size_t end = (n)-begin < BLOCK ? (n) : begin + BLOCK, first = begin; \
            for (; end - first >= LANES; first += LANES) {                       \
                GR_SIMD for (size_t l = 0; l < LANES; l++) {                     \
                    const size_t i = first + l;                                  \
                    lane[l] += (term);                                           \
                }                                                                \
            }                                                                    \
            for (size_t i = first; i < end; i++) lane[i - first] += (term);      \
            tree_add(&sum_tree, fold_lanes(lane));                               \
        }                                                                        \
        (total) = tree_total(&sum_tree);                                         \
    } while (0)

#endif
