/* The functions of the elementwise maps, made from the formulas in maps.def, and what those formulas call. */
#ifndef GR_MAPS_H
#define GR_MAPS_H

#include <math.h>

#ifdef GR_DOUBLE
static inline gr_real k_sqrt(gr_real x) { return sqrt(x); }
#else
static inline gr_real k_sqrt(gr_real x) { return sqrtf(x); }
#endif
static inline gr_real k_min(gr_real a, gr_real b) {
    return a <= b || a != a ? a : b;
} /* a NaN in either comes through */
static inline gr_real k_max(gr_real a, gr_real b) { return a >= b || a != a ? a : b; }

/* x^t: a whole exponent by repeated squaring, so that negative x is right; any other as e^(t log x). */
static inline gr_real k_pow(gr_real x, gr_real t) {
    const gr_real largest_whole = 1024; /* beyond, squaring is no more accurate than the logarithm */
    gr_real size = t < 0 ? -t : t;
    if (!(size <= largest_whole) || (gr_real)(int)size != size) return x == 0 && t > 0 ? 0 : k_exp(t * k_log(x));
    gr_real power = 1;
    for (int n = (int)size; n > 0; n >>= 1, x *= x)
        if (n & 1) power *= x;
    return t < 0 ? 1 / power : power;
}

/* GELU, tanh form: x (1 + tanh u) / 2 = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3) (Hendrycks and Gimpel, 2016).
 * Beyond |x| = 22 the sigmoid is 0 or 1 in both precisions; the cube is kept from overflowing there. */
static inline gr_real gelu_inner(gr_real x) { return x < -22 ? -22 : x > 22 ? 22 : x; }
static inline gr_real gelu_gate(gr_real x) {
    const gr_real k = GR_R(1.5957691216057308); /* 2 sqrt(2/pi) */
    gr_real u = gelu_inner(x);
    return k_sigmoid(k * GR_FMA(GR_R(0.044715) * u * u, u, u));
}
static inline gr_real gelu_slope(gr_real x) {
    const gr_real k = GR_R(1.5957691216057308);
    gr_real u = gelu_inner(x), s = gelu_gate(x);
    return s + x * s * (1 - s) * k * GR_FMA(3 * GR_R(0.044715) * u, u, 1);
}

/* d/dx x Phi(x) = Phi(x) + x phi(x), phi(x) = e^(-x^2/2) / sqrt(2 pi). Beyond |x| = 40 phi is 0 in both precisions. */
static inline gr_real gelu_erf_slope(gr_real x) {
    gr_real u = x < -40 ? -40 : x > 40 ? 40 : x;
    return k_normal_cdf(x) + u * k_exp(-GR_R(0.5) * u * u) * GR_R(0.3989422804014327);
}

static inline gr_real silu_slope(gr_real x) {
    gr_real s = k_sigmoid(x);
    return s * GR_FMA(x, 1 - s, 1);
}

/* Do all rows of a map lie close together? */
static inline bool rows_lie_close(const gr_row *row) {
    bool close = true;
    for (int i = 0; i < GR_ROW_OPERANDS; i++) close &= !row->p[i] || row->s[i] == 1;
    return close;
}

/* The function of a map. Rows that lie close together get a loop that vectorises. Operands that a formula does not read
 * may be missing; a stands for them. */
#define GR_MAP_WITH(simd, name, formula)                                                              \
    static inline gr_real name##_of(gr_real y, gr_real a, gr_real b, gr_real c, gr_real t) {          \
        (void)y, (void)a, (void)b, (void)c, (void)t;                                                  \
        return formula;                                                                               \
    }                                                                                                 \
    static void name##_map(const gr_row *row) {                                                       \
        const size_t n = row->n;                                                                      \
        const gr_real t = row->t;                                                                     \
        gr_real *restrict y = row->p[0];                                                              \
        const gr_real *a = row->p[1], *b = row->p[2] ? row->p[2] : a, *c = row->p[3] ? row->p[3] : a; \
        if (rows_lie_close(row)) {                                                                    \
            simd for (size_t i = 0; i < n; i++) y[i] = name##_of(y[i], a[i], b[i], c[i], t);          \
        } else {                                                                                      \
            const ptrdiff_t sy = row->s[0], sa = row->s[1], sb = row->p[2] ? row->s[2] : sa,          \
                            sc = row->p[3] ? row->s[3] : sa;                                          \
            for (ptrdiff_t i = 0; i < (ptrdiff_t)n; i++)                                              \
                y[i * sy] = name##_of(y[i * sy], a[i * sa], b[i * sb], c[i * sc], t);                 \
        }                                                                                             \
    }

#define MAP(name, formula)       GR_MAP_WITH(GR_SIMD, name, formula)
#define MAP_PLAIN(name, formula) GR_MAP_WITH(, name, formula)
#include "maps.def"

#endif
