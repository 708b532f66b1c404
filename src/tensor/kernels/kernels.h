/* The table of numeric kernels: plain C on rows of numbers, no tensor, no memory, no error. The same source is compiled
 * once per instruction set (fast.c); reference.c holds the same formulas in the plainest loops. */
#ifndef GR_KERNELS_H
#define GR_KERNELS_H

#include "../real.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One row of an elementwise map: y[i] = f(a[i], b[i], c[i], t), operands p = {y, a, b, c} walked with strides s. */
enum { GR_ROW_OPERANDS = 4 };
typedef struct gr_row {
    size_t n;
    gr_real *p[GR_ROW_OPERANDS];
    ptrdiff_t s[GR_ROW_OPERANDS];
    gr_real t;
} gr_row;
typedef void gr_map(const gr_row *row);

/* C (m, n) = A (m, k) B (k, n), or C += A B. A and B have any strides, C has rows c_row apart. Each element is one
 * chain of fma over k = 0, 1, ..., begun at 0 or at C's value. */
typedef struct gr_gemm {
    size_t m, n, k;
    const gr_real *a, *b;
    ptrdiff_t a_row, a_col, b_row, b_col;
    gr_real *c;
    ptrdiff_t c_row;
    bool accumulate;
    gr_real *scratch; /* GR_GEMM_SCRATCH numbers of this thread's own */
} gr_gemm;

/* B is packed in blocks so wide that a panel of A is packed but once for most matrices, and so deep that C is seldom
 * read again; measured, see docs/performance.md. Beside a block lies a panel of A, as high
 * as the highest tile of any instruction set. */
enum {
    GR_GEMM_BLOCK_K = 512,
    GR_GEMM_BLOCK_N = 1024,
    GR_GEMM_PANEL_M = 8,
    GR_GEMM_SCRATCH = GR_GEMM_BLOCK_K * (GR_GEMM_BLOCK_N + GR_GEMM_PANEL_M)
};

/* One update of Adam: m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, w -= rate m / (sqrt(v) root + eps).
 */
typedef struct gr_adam_step {
    double beta1, beta2, eps;
    double rate; /* lr / (1 - beta1^step) */
    double root; /* 1 / sqrt(1 - beta2^step) */
    double keep; /* w is multiplied by it first: 1 - lr decay (AdamW) */
    double pull; /* and g grows by pull w: the decay of plain Adam */
} gr_adam_step;

/* Rows of scores are worked on in whole lanes: as many numbers past their end may be written. */
enum { GR_ROW_ROOM = 16 };

/* A softmax that has seen a part of its row: the largest score, and sum e^(score - peak); -inf and 0 at first. */
typedef struct gr_online_softmax {
    gr_real peak, total;
} gr_online_softmax;

/* GR_MAP_add, GR_MAP_exp, ...: every elementwise map, by name; maps.def has the formulas. */
typedef enum gr_map_name {
#define MAP(name, formula)       GR_MAP_##name,
#define MAP_PLAIN(name, formula) GR_MAP_##name,
#include "maps.def"
    GR_MAP_COUNT
} gr_map_name;

/* A number and what it lacks, together more exact than one: what is close to it keeps its digits in
 * (x - near) - rest. */
typedef struct gr_center {
    gr_real near, rest;
} gr_center;

static const gr_center gr_origin = {0, 0};

typedef struct gr_kernels {
    const char *name;
    bool exact; /* the bits of the reference; false where there is no fused multiply-add: last digits differ */
    gr_map *map[GR_MAP_COUNT];

    /* Reductions of n numbers, each the fixed tree of tree.h. */
    gr_real (*sum)(size_t n, const gr_real *x, gr_real center); /* sum (x - center) */
    gr_real (*sum_squares)(size_t n, const gr_real *x, gr_center center,
                           gr_real scale); /* sum ((x - center) scale)^2 */
    gr_real (*dot)(size_t n, const gr_real *a, const gr_real *b);
    /* n > 0; first: the index of the first maximum, or of the first NaN. */
    gr_real (*max)(size_t n, const gr_real *x, size_t *first);
    gr_real (*logsumexp)(size_t n, const gr_real *x); /* max x + log sum e^(x - max x) */
    /* y[j] (+)= sum over i of x[i * row + j]; every column is the tree of its m numbers. */
    void (*sum_rows)(size_t m, size_t n, const gr_real *x, ptrdiff_t row, gr_real *y, bool accumulate);

    void (*matmul)(const gr_gemm *g);
    void (*matmul_hiding)(const gr_gemm *g); /* terms whose factor in A is 0 are left out: what they hide may be NaN */
    bool (*all_finite)(size_t m, size_t n, const gr_real *x, ptrdiff_t row); /* m rows of n, row apart */

    /* Rows of n: softmax of scale * x where mask is not 0 (mask NULL: all), its gradient dx += scale y (dy - sum y dy),
     * log_softmax, and its gradient dx += dy - e^y sum dy. */
    void (*softmax)(size_t n, gr_real *y, const gr_real *x, const gr_real *mask, gr_real scale);
    void (*softmax_dx)(size_t n, gr_real *dx, const gr_real *y, const gr_real *dy, gr_real scale);
    void (*log_softmax)(size_t n, gr_real *y, const gr_real *x);
    void (*log_softmax_dx)(size_t n, gr_real *dx, const gr_real *y, const gr_real *dy);
    /* dx += factor (e^(x - lse) - [i = target]) */
    void (*cross_entropy_dx)(size_t n, gr_real *dx, const gr_real *x, gr_real lse, gr_real factor, size_t target);

    /* Attention on a row of a tile of scores, see attention.h; x, dp and allow have room for n rounded up to
     * GR_ROW_ROOM. */
    gr_real (*softmax_join)(size_t n, gr_real *x, const gr_real *allow, gr_real scale, gr_online_softmax *so_far);
    void (*attention_dx)(size_t n, gr_real *x, gr_real *dp, const gr_real *allow, gr_real scale, gr_real peak,
                         gr_real inverse, gr_real delta);

    /* y = (x - mean) rstd w + b; w and b may be NULL. */
    void (*normalize)(size_t n, gr_real *y, const gr_real *x, gr_center mean, gr_real rstd, const gr_real *w,
                      const gr_real *b);
    /* With h = (x - mean) rstd and g = dy w: dx += rstd (g - [center] mean(g) - h mean(g h)). */
    void (*normalize_dx)(size_t n, gr_real *dx, const gr_real *dy, const gr_real *x, gr_center mean, gr_real rstd,
                         const gr_real *w, bool center);
    /* t = dy h: the terms of dw. */
    void (*normalize_dw)(size_t n, gr_real *t, const gr_real *dy, const gr_real *x, gr_center mean, gr_real rstd);

    void (*adam)(size_t n, gr_real *w, const gr_real *g, gr_real *m, gr_real *v, const gr_adam_step *step);
    /* velocity = momentum velocity + g + decay w; w -= lr velocity */
    void (*sgd)(size_t n, gr_real *w, const gr_real *g, gr_real *velocity, double lr, double momentum, double decay);
} gr_kernels;

/* The mean of n numbers, taken around the first: of equal ones it is that number, and their variance 0, to the last
 * bit. */
static inline gr_real gr_mean_of(const gr_kernels *k, size_t n, const gr_real *x) {
    return x[0] + k->sum(n, x, x[0]) / (gr_real)n;
}

/* The mean in two parts, as rounded and what rounding has lost: close numbers keep the digits in which they differ. */
static inline gr_center gr_center_of(const gr_kernels *k, size_t n, const gr_real *x) {
    const gr_real mean = gr_mean_of(k, n, x);
    return (gr_center){mean, k->sum(n, x, mean) / (gr_real)n};
}

/* The table named by GRADUS_ISA, or the best that this processor has; NULL for a name that is unknown or cannot run
 * here. */
const gr_kernels *gr_kernels_select(const char *wanted);
/* The names gr_kernels_select accepts here, "reference, baseline, avx2". */
const char *gr_kernels_choices(char *out, size_t size);

#endif
