/* The elementwise formulas: one line each. a, b, c are the operands, t a number given with the map. */
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

/* A map y[i] = formula. Rows that lie close together get a loop that vectorises; GR_MAP_PLAIN is for a formula that
 * cannot. */
#define GR_MAP(name, formula)       GR_MAP_WITH(GR_SIMD, name, formula)
#define GR_MAP_PLAIN(name, formula) GR_MAP_WITH(, name, formula)
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
        const ptrdiff_t sy = row->s[0], sa = row->s[1], sb = row->p[2] ? row->s[2] : sa,              \
                        sc = row->p[3] ? row->s[3] : sa;                                              \
        if (sy == 1 && sa == 1 && sb == 1 && sc == 1) {                                               \
            simd for (size_t i = 0; i < n; i++) y[i] = name##_of(y[i], a[i], b[i], c[i], t);          \
        } else {                                                                                      \
            for (ptrdiff_t i = 0; i < (ptrdiff_t)n; i++)                                              \
                y[i * sy] = name##_of(y[i * sy], a[i * sa], b[i * sb], c[i * sc], t);                 \
        }                                                                                             \
    }

/* clang-format off */
GR_MAP(copy,       a)
GR_MAP(add,        a + b)
GR_MAP(sub,        a - b)
GR_MAP(mul,        a * b)
GR_MAP(div,        a / b)
GR_MAP(minimum,    k_min(a, b))
GR_MAP(maximum,    k_max(a, b))
GR_MAP(where,      a != 0 ? b : c)
GR_MAP(mask_scores, b != 0 ? a : (gr_real)-INFINITY)
GR_MAP(neg,        -a)
GR_MAP(scale,      t * a)
GR_MAP(add_scalar, a + t)
GR_MAP_PLAIN(pow,  k_pow(a, t))
GR_MAP(square,     a * a)
GR_MAP(sqrt,       k_sqrt(a))
GR_MAP(exp,        k_exp(a))
GR_MAP(log,        k_log(a))
GR_MAP(abs,        a < 0 ? -a : a == 0 ? 0 : a)
GR_MAP(relu,       a <= 0 ? 0 : a)
GR_MAP(sigmoid,    k_sigmoid(a))
GR_MAP(tanh,       k_tanh(a))
GR_MAP(gelu,       a * gelu_gate(a))
GR_MAP(gelu_erf,   a * k_normal_cdf(a))
GR_MAP(silu,       a * k_sigmoid(a))

/* Gradients, added to y. a is always dy; b and c are what the formula needs of the forward pass. */
GR_MAP(plus,          y + a)
GR_MAP(minus,         y - a)
GR_MAP(plus_scaled,   GR_FMA(t, a, y))
GR_MAP(plus_product,  GR_FMA(a, b, y))                          /* mul: b the other factor; exp: b = y */
GR_MAP(div_da,        y + a / b)                                /* b the divisor */
GR_MAP(div_db,        y - a * b / c)                            /* b the quotient, c the divisor */
GR_MAP(minimum_da,    y + (b <= c || b != b ? a : 0))           /* b, c the operands */
GR_MAP(minimum_db,    y + (b <= c || b != b ? 0 : a))
GR_MAP(maximum_da,    y + (b >= c || b != b ? a : 0))
GR_MAP(maximum_db,    y + (b >= c || b != b ? 0 : a))
GR_MAP(where_da,      y + (b != 0 ? a : 0))                     /* b the condition */
GR_MAP(where_db,      y + (b != 0 ? 0 : a))
GR_MAP_PLAIN(pow_dx,  y + (t == 0 ? 0 : a * t * k_pow(b, t - 1))) /* b = x, from here on */
GR_MAP(square_dx,     GR_FMA(2 * a, b, y))
GR_MAP(sqrt_dx,       y + a * GR_R(0.5) / b)                    /* b = sqrt x */
GR_MAP(log_dx,        y + a / b)
GR_MAP(abs_dx,        y + (b > 0 ? a : b < 0 ? -a : b == 0 ? 0 : b))
GR_MAP(relu_dx,       y + (b <= 0 ? 0 : a))
GR_MAP(sigmoid_dx,    GR_FMA(a * b, 1 - b, y))                  /* b = sigmoid x */
GR_MAP(tanh_dx,       GR_FMA(a, GR_FMA(-b, b, 1), y))           /* b = tanh x */
GR_MAP(gelu_dx,       GR_FMA(a, gelu_slope(b), y))
GR_MAP(gelu_erf_dx,   GR_FMA(a, gelu_erf_slope(b), y))
GR_MAP(silu_dx,       GR_FMA(a, silu_slope(b), y))
GR_MAP(variance_dx,   GR_FMA(a * t, b - c, y))                  /* c = mean, t = 2/n */
GR_MAP(logsumexp_dx,  GR_FMA(a, k_exp(b - c), y))               /* c = logsumexp */
GR_MAP(norm_dx,       y + (c == 0 ? 0 : a * (b / c)))           /* c = norm */
GR_MAP(mse_dx,        GR_FMA(a * t, b - c, y))                  /* c = target, t = 2/n */
/* clang-format on */

#endif
