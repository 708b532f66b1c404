/* ulp [function] [--step N]: the largest error of each function of kernels/math.h, in units in the last place.
 *
 * float:  against libm in double, over all 2^32 floats, or every Nth of them.
 * double: against libm in long double, over 10^7 / N random numbers and the edges.
 *
 * Prints function, precision, worst error, where, bound, separated by tabs; exits 1 if an error exceeds its bound. An
 * error is infinite if only one of result and reference is NaN or infinite, or if a zero has the wrong sign. */
#include "../src/tensor/real.h"
#ifdef GR_FMA /* -D'GR_FMA(a,b,c)=((a)*(b)+(c))' measures the functions of processors without FMA */
enum { FUSED = 0 };
#else
enum { FUSED = 1 };
#endif
#include "../src/tensor/kernels/math.h"
#include <float.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef GR_DOUBLE
typedef long double wide;
#    define WIDE(f) f##l
enum { SMALLEST = DBL_MIN_EXP - DBL_MANT_DIG, DIGITS = DBL_MANT_DIG };
#else
typedef double wide;
#    define WIDE(f) f
enum { SMALLEST = FLT_MIN_EXP - FLT_MANT_DIG, DIGITS = FLT_MANT_DIG };
#endif

static wide ref_sigmoid(wide x) { return 1 / (1 + WIDE(exp)(-x)); }

/* erfc(t)/2 at t = -x / sqrt 2, corrected by the derivative for the rounding of t, which the tail multiplies by t^2. */
static wide ref_normal_cdf(wide x) {
    const wide c = WIDE(sqrt)((wide)0.5), c_rest = WIDE(fma)(-c, c, (wide)0.5) / (2 * c);
    wide t = -x * c, rest = WIDE(fma)(-x, c, -t) - x * c_rest;
    wide slope = x * x < 3000 ? (wide)0.56418958354775628695L * WIDE(exp)(-t * t) : 0;
    return WIDE(erfc)(t) / 2 - (slope != 0 ? slope * rest : 0);
}

/* A loop over an array, as in the kernels, so that the vector code is what is measured. */
#define LOOP(f)                                                                   \
    static void loop_##f(gr_real *restrict y, const gr_real *restrict x, int n) { \
        _Pragma("omp simd") for (int i = 0; i < n; i++) y[i] = k_##f(x[i]);       \
    }                                                                             \
    struct takes_the_semicolon
LOOP(exp);
LOOP(expm1);
LOOP(log);
LOOP(tanh);
LOOP(sigmoid);
LOOP(erf);
LOOP(normal_cdf);
LOOP(sin);
LOOP(cos);

static const struct {
    const char *name;
    void (*loop)(gr_real *restrict, const gr_real *restrict, int);
    wide (*reference)(wide);
    double limit;    /* measured for |x| <= limit; beyond, a finite x must give a value in [-1, 1] */
    double bound[2]; /* in ulp: without FMA, with FMA */
} functions[] = {
    {"exp", loop_exp, WIDE(exp), INFINITY, {1.25, 1.00}},
    {"expm1", loop_expm1, WIDE(expm1), INFINITY, {1.75, 1.75}},
    {"log", loop_log, WIDE(log), INFINITY, {1.00, 1.00}},
    {"tanh", loop_tanh, WIDE(tanh), INFINITY, {2.00, 2.00}},
    {"sigmoid", loop_sigmoid, ref_sigmoid, INFINITY, {2.00, 1.75}},
    {"erf", loop_erf, WIDE(erf), INFINITY, {1.50, 1.50}},
    {"normal_cdf", loop_normal_cdf, ref_normal_cdf, INFINITY, {4.25, 4.25}},
    {"sin", loop_sin, WIDE(sin), 1e5, {1.50, 1.50}},
    {"cos", loop_cos, WIDE(cos), 1e5, {1.50, 1.50}},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions, BLOCK = 1024 };

/* |y - reference| / the distance between neighbours of the reference in gr_real. */
static double ulps(gr_real y, wide reference) {
    gr_real rounded = (gr_real)reference;
    if (isnan(y) || isnan(rounded)) return isnan(y) && isnan(rounded) ? 0 : INFINITY;
    if (isinf(y) || isinf(rounded)) return y == rounded ? 0 : INFINITY;
    if (reference == 0) return y == 0 && !signbit(y) == !signbit(reference) ? 0 : INFINITY;
    int exponent;
    WIDE(frexp)(reference, &exponent);
    int last = exponent - DIGITS > SMALLEST ? exponent - DIGITS : SMALLEST;
    return (double)WIDE(fabs)(WIDE(ldexp)((wide)y - reference, -last));
}

typedef struct {
    double ulp, x;
} worst_case;

static void measure(int f, const gr_real *x, int n, worst_case *worst) {
    static gr_real y[BLOCK];
    functions[f].loop(y, x, n);
    for (int i = 0; i < n; i++) {
        if (isfinite(x[i]) && (double)k_magnitude(x[i]) > functions[f].limit) {
            if (!(y[i] >= -1 && y[i] <= 1)) *worst = (worst_case){INFINITY, (double)x[i]};
            continue;
        }
        double error = ulps(y[i], functions[f].reference((wide)x[i]));
        if (error > worst->ulp) *worst = (worst_case){error, (double)x[i]};
    }
}

#ifdef GR_DOUBLE
/* splitmix64 */
static uint64_t mix(uint64_t z) {
    z *= 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Three kinds in turn: any bits; exponents from 2^-32 to 2^17; evenly from -40 to 40. */
static double argument(uint64_t i) {
    uint64_t bits = mix(i);
    if (i % 3 == 1) bits = (bits & (1ull << 63 | K_FRACTION)) | (1023 - 32 + (bits >> 52 & 0x7ff) % 49) << 52;
    return i % 3 == 2 ? ((double)(bits >> 11) * 0x1p-53 - 0.5) * 80 : k_from_bits(bits);
}

static const double edges[] = {0,
                               DBL_TRUE_MIN,
                               DBL_MIN,
                               DBL_EPSILON,
                               0.5,
                               0.70710678118654752,
                               1,
                               1.4142135623730951,
                               0.34657359027997264,
                               0.78539816339744831,
                               1.5707963267948966,
                               3.1415926535897931,
                               19,
                               20,
                               36.04,
                               37.5,
                               38.4,
                               38.5,
                               39,
                               40,
                               708.39,
                               709.78271289338397,
                               710,
                               745.13321910194110,
                               746,
                               1e5,
                               DBL_MAX,
                               INFINITY,
                               NAN};

static worst_case survey(int f, uint64_t step) {
    static double x[BLOCK];
    worst_case worst = {0, 0};
    int n = 0;
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        for (int side = -1; side <= 1; side++) {
            double near = side ? nextafter(edges[i], side < 0 ? -INFINITY : INFINITY) : edges[i];
            x[n++] = near;
            x[n++] = -near;
        }
    for (uint64_t i = 0; i <= 10000000 / step; i++) {
        x[n++] = argument(i);
        if (n >= BLOCK - 1) measure(f, x, n, &worst), n = 0;
        if (i < 127000) x[n++] = (double)((long double)i * 0.785398163397448309616L); /* n pi/4: sin or cos cancels */
    }
    measure(f, x, n, &worst);
    return worst;
}
#else
static worst_case survey(int f, uint64_t step) {
    static float x[BLOCK];
    worst_case worst = {0, 0};
    int n = 0;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += step) {
        x[n++] = k_from_bits((uint32_t)bits);
        if (n == BLOCK) measure(f, x, n, &worst), n = 0;
    }
    measure(f, x, n, &worst);
    return worst;
}
#endif

int main(int argc, char **argv) {
    const char *only = NULL;
    uint64_t step = 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--step") == 0 && i + 1 < argc)
            step = strtoull(argv[++i], NULL, 10);
        else
            only = argv[i];
    }
    if (step == 0) step = 1;

    bool known = false, good = true;
    for (int f = 0; f < FUNCTIONS; f++) {
        if (only && strcmp(only, functions[f].name) != 0) continue;
        worst_case worst = survey(f, step);
        double bound = functions[f].bound[FUSED];
        printf("%s\t%s\t%.3f\t%.17g\t%.2f\n", functions[f].name, GR_REAL_NAME, worst.ulp, worst.x, bound);
        fflush(stdout);
        known = true;
        good = good && worst.ulp <= bound;
    }
    if (!known) fprintf(stderr, "ulp: no function \"%s\"\n", only);
    return known && good ? 0 : 1;
}
