/* Elementary functions of our own: exp expm1 log tanh sigmoid erf normal_cdf sin cos, for float or double.
 *
 * A libm differs from machine to machine. These give the same bits wherever IEEE 754 holds (of a NaN: that it is one),
 * because they use only + - * /, GR_FMA, fabs, copysign, comparisons and integer operations on the bits, in the order
 * written (-ffp-contract=off). They have no branch and no call: `c ? a : b` between computed values is a select, so a
 * loop over any of them becomes vector code (gcc needs -fno-trapping-math for that). Each reduces its argument to a
 * short interval by an identity, sums a series there, and undoes the reduction. tests/ulp.c measures the errors.
 *
 * The table for processors without FMA defines GR_FMA(a, b, c) as a*b + c, rounded twice; every step that must be exact
 * is exact either way, and only last digits differ. */
#ifndef GR_KERNELS_MATH_H
#define GR_KERNELS_MATH_H

#include "fma.h"

#include <stdint.h>
#include <string.h>

#ifdef GR_DOUBLE
typedef uint64_t k_bits;
#    define K_PICK(single, twice) twice
#else
typedef uint32_t k_bits;
#    define K_PICK(single, twice) single
#endif
#define K_RATIO(p, q) ((gr_real)((double)(p) / (q))) /* a coefficient, rounded by the compiler */

/* -- The bits of a number: sign, exponent + BIAS, FRACTION --------------------------------------------------------- */

#define K_FRACTION_BITS K_PICK(23, 52)
#define K_BIAS          ((k_bits)K_PICK(127, 1023))
#define K_FRACTION      (((k_bits)1 << K_FRACTION_BITS) - 1)
#define K_SIGN_BIT      K_PICK(31, 63)
#define K_SMALLEST      K_PICK(0x1p-126f, 0x1p-1022) /* the smallest number that is not denormal */
#define K_INTEGERS      K_PICK(0x1p23f, 0x1p52)      /* from here to its double, consecutive numbers differ by 1 */
#define K_ROUND         (GR_R(1.5) * K_INTEGERS)     /* x + K_ROUND holds round(x) in its low bits */

static inline k_bits k_to_bits(gr_real x) {
    k_bits b;
    memcpy(&b, &x, sizeof b);
    return b;
}
static inline gr_real k_from_bits(k_bits b) {
    gr_real x;
    memcpy(&x, &b, sizeof x);
    return x;
}
static inline gr_real k_magnitude(gr_real x) { return K_PICK(fabsf, fabs)(x); }
static inline gr_real k_signed(gr_real magnitude, gr_real sign) { return K_PICK(copysignf, copysign)(magnitude, sign); }

/* c[0] + c[1] x + ... + c[degree] x^degree by Horner's rule. The degree is a constant, so the loop disappears; gcc must
 * be asked when it is long, clang must not (with the pragma, clang 14 unrolls after it has given up on vectors). */
static inline gr_real k_polynomial(const gr_real *c, int degree, gr_real x) {
    gr_real sum = c[degree];
#if defined __GNUC__ && !defined __clang__
#    pragma GCC unroll 32
#endif
    for (int k = degree - 1; k >= 0; k--) sum = GR_FMA(sum, x, c[k]);
    return sum;
}

/* -- Exponentials: e^x = 2^n e^r, x = n ln 2 + r, |r| <= (ln 2)/2 -------------------------------------------------- */

#define K_LOG2_E    GR_R(1.4426950408889634)
#define K_LN2_HI    K_PICK(0.693145751953125f, 0.69314718055989033) /* 16 (42) bits: n HI is exact */
#define K_LN2_LO    K_PICK(1.42860682e-6f, 5.4979230187083712e-14)  /* ln 2 - HI */
#define K_EXP_MIN   K_PICK(-104.f, -746.) /* e^x rounds to 0 here, below half the smallest denormal */
#define K_EXP_MAX   K_PICK(89.f, 710.)    /* and to infinity here */
#define K_FLAT      K_PICK(20.f, 40.)     /* 1 - e^-x rounds to 1 here; so does tanh(x/2) */
#define K_EXP_TERMS K_PICK(7, 13) /* up to r^7/7! (r^13/13!): at |r| = 0.3466 the next is 5e-9 (4e-18), 1/10 ulp */

/* x = n ln 2 + r, r = head - n LO, head = x - n HI exactly. */
typedef struct {
    gr_real n, head;
    k_bits exponent;
} k_reduced;

static inline k_reduced k_exp_reduce(gr_real x) {
    gr_real shifted = GR_FMA(x, K_LOG2_E, K_ROUND), n = shifted - K_ROUND;
    return (k_reduced){n, GR_FMA(n, -K_LN2_HI, x), k_to_bits(shifted) - k_to_bits(K_ROUND)};
}

/* y 2^n for y near 1, in two steps, because 2^n itself may overflow or be denormal: only the last step rounds. The
 * bias, added twice, keeps the sum of the two exponent fields positive. */
static inline gr_real k_scale(gr_real y, k_bits n) {
    k_bits both = n + 2 * K_BIAS, half = both >> 1;
    return y * k_from_bits(half << K_FRACTION_BITS) * k_from_bits((both - half) << K_FRACTION_BITS);
}

/* (e^r - 1 - r) / r^2 = 1/2! + r/3! + r^2/4! + ... */
static inline gr_real k_exp_series(gr_real r) {
    static const gr_real c[] = {K_RATIO(1, 2),        K_RATIO(1, 6),         K_RATIO(1, 24),
                                K_RATIO(1, 120),      K_RATIO(1, 720),       K_RATIO(1, 5040),
                                K_RATIO(1, 40320),    K_RATIO(1, 362880),    K_RATIO(1, 3628800),
                                K_RATIO(1, 39916800), K_RATIO(1, 479001600), K_RATIO(1, 6227020800.)};
    return k_polynomial(c, K_EXP_TERMS - 2, r);
}

static inline gr_real k_exp_undo(gr_real r, k_bits n) {
    return k_scale(GR_FMA(GR_FMA(k_exp_series(r), r, GR_R(1.)), r, GR_R(1.)), n);
}

static inline gr_real k_exp(gr_real x) {
    x = x < K_EXP_MIN ? K_EXP_MIN : x; /* a NaN passes: every comparison with it is false */
    x = x > K_EXP_MAX ? K_EXP_MAX : x;
    k_reduced a = k_exp_reduce(x);
    return k_exp_undo(GR_FMA(a.n, -K_LN2_LO, a.head), a.exponent);
}

/* e^x - 1 = 2^n ((1 - 2^-n) + r + (what rounding took from r) + r^2/2! + ...): for n = 0 the first term vanishes and no
 * digit of r is lost. 2^(1-n) has exponent field 0, and so is 0, for the largest n: 2^-n no longer counts there. */
static inline gr_real k_expm1(gr_real x) {
    gr_real y = x < -K_FLAT ? -K_FLAT : x;
    y = y > K_EXP_MAX ? K_EXP_MAX : y;
    k_reduced a = k_exp_reduce(y);
    gr_real low = -K_LN2_LO * a.n, r = a.head + low, rest = a.head - r + low;
    gr_real w = GR_FMA(GR_R(-0.5), k_from_bits((K_BIAS + 1 - a.exponent) << K_FRACTION_BITS), GR_R(1.));
    return k_signed(k_scale(w + (r + GR_FMA(r * r, k_exp_series(r), rest)), a.exponent), x);
}

/* tanh x = (e^2x - 1) / (e^2x + 1) = t / (t + 2), t = e^2|x| - 1, with the sign of x. The rounding of t + 2 counts most
 * for small t; t/2 - (t/2) (t / (t + 2)) is the same number, and there the rounding touches only a small part of it. */
static inline gr_real k_tanh(gr_real x) {
    gr_real a = GR_R(2.) * k_magnitude(x);
    gr_real t = k_expm1(a > K_FLAT ? K_FLAT : a), half = GR_R(0.5) * t, y = t / (t + GR_R(2.));
    return k_signed(a < GR_R(1.) ? GR_FMA(-half, y, half) : y, x);
}

/* 1 / (1 + e^-x) for x >= 0, and y = e^x / (1 + e^x), the same number, for x < 0: no exponential above 1, no overflow.
 * e^x - e^x y is again y, with less of the rounding of 1 + e^x in it. */
static inline gr_real k_sigmoid(gr_real x) {
    gr_real e = k_exp(-k_magnitude(x)), y = (x < 0 ? e : GR_R(1.)) / (GR_R(1.) + e);
    return x < 0 ? GR_FMA(-e, y, e) : y;
}

/* -- Logarithm: log x = k ln 2 + log m, x = 2^k m, m in [1/sqrt 2, sqrt 2) ----------------------------------------- */

/* log m = 2 atanh s = 2 (s + s^3/3 + s^5/5 + ...), s = f / (2 + f), f = m - 1, |s| <= 0.1716. Since 2 s = f - s f, this
 * is f - s (f - R), R = s^2 (2/3 + s^2 2/5 + ...): the exact f carries the value; the rounding of s counts little. */
#define K_LOG_TERMS K_PICK(4, 10) /* of R; the next is 2e-9 (6e-19) of the logarithm */

static inline gr_real k_log(gr_real x) {
    static const gr_real c[] = {K_RATIO(2, 3),  K_RATIO(2, 5),  K_RATIO(2, 7),  K_RATIO(2, 9),  K_RATIO(2, 11),
                                K_RATIO(2, 13), K_RATIO(2, 15), K_RATIO(2, 17), K_RATIO(2, 19), K_RATIO(2, 21)};
    const k_bits lowest = k_to_bits(GR_R(0.70710678118654752));
    const gr_real bias = K_INTEGERS + (gr_real)K_BIAS;

    gr_real normal = x < K_SMALLEST ? x * K_INTEGERS : x;
    k_bits b = k_to_bits(normal) + (k_to_bits(GR_R(1.)) - lowest); /* now the exponent field steps at sqrt 2 */
    gr_real k = k_from_bits(k_to_bits(K_INTEGERS) | b >> K_FRACTION_BITS) -
                (x < K_SMALLEST ? bias + (gr_real)K_FRACTION_BITS : bias);
    gr_real f = k_from_bits((b & K_FRACTION) + lowest) - GR_R(1.);
    gr_real s = f / (GR_R(2.) + f), z = s * s;
    gr_real minus_R = -z * k_polynomial(c, K_LOG_TERMS - 1, z);
    gr_real y = GR_FMA(k, K_LN2_HI, f - GR_FMA(s, f + minus_R, -k * K_LN2_LO));

    y = x < (gr_real)INFINITY ? y : x; /* infinity and NaN */
    y = x < 0 ? (gr_real)NAN : y;
    return x == 0 ? -(gr_real)INFINITY : y;
}

/* -- The normal distribution and erf ------------------------------------------------------------------------------- */

/* The tail Q(x) = Phi(-x) = e^(-x^2/2) S / (x + 1), x >= 0, where S hardly varies: 1/2 at 0, at most 0.53, 0.399 at the
 * end. w = x / (x + K) takes [0, infinity) to [0, 1), and S = 1/2 + w R(2 w - 1). The polynomial R interpolates
 * (S - 1/2) / w, computed with 60 digits (mpmath), at the Chebyshev nodes of the w between x = 0 and x = 14.5 (39).
 * K = 5 makes both fits good: the relative error of S before rounding is 6.7e-9 (9.6e-18). */
#define K_TAIL_K      GR_R(5.)
#define K_TAIL_DEGREE K_PICK(9, 22)
#define K_TAIL_MAX    K_PICK(14.5f, 39.) /* Q rounds to 0 here */

static inline gr_real k_normal_tail(gr_real x) {
#ifdef GR_DOUBLE
    static const double c[] = {
        -7.69683402999244494e-2, -0.106136223368093275,   0.168196960220019483,    -0.148192255449598071,
        9.53901695170243545e-2,  -4.63162430284800499e-2, 1.59754122230668006e-2,  -2.93141090485212446e-3,
        -4.20733786453944418e-4, 4.36317121029666599e-4,  -7.16487707154399591e-5, -3.55670674095514015e-5,
        1.57744210402089903e-5,  2.34726027630939574e-6,  -2.48616350658911631e-6, -1.32496271866106528e-7,
        3.84063528382510324e-7,  1.24702986636873279e-8,  -5.92309357406640951e-8, -4.44803022534373964e-9,
        7.27346330043245414e-9,  1.12580180253725513e-9,  -2.59098481666198582e-10};
#else
    static const float c[] = {-7.696834584e-2f, -0.1061361870f,  0.1681975101f,    -0.1481935155f,   9.538086405e-2f,
                              -4.630786707e-2f, 1.603241698e-2f, -2.933286681e-3f, -5.531450278e-4f, 3.715691475e-4f};
#endif
    x = x > K_TAIL_MAX ? K_TAIL_MAX : x;

    /* The exponential multiplies a relative error of x^2 by x^2. So x = head + rest, head having half the digits:
     * head^2 is exact, and x^2 - head^2 = rest (x + head) is small. */
    gr_real head = k_from_bits(k_to_bits(x) & ~(((k_bits)1 << K_PICK(12, 27)) - 1));
    k_reduced a = k_exp_reduce(GR_R(-0.5) * head * head);
    gr_real low = GR_FMA(GR_R(-0.5) * (x - head), x + head, a.n * -K_LN2_LO);

    gr_real w = x / (x + K_TAIL_K), R = k_polynomial(c, K_TAIL_DEGREE, GR_FMA(GR_R(2.), w, GR_R(-1.)));
    return k_exp_undo(a.head + low, a.exponent) * GR_FMA(w, R, GR_R(0.5)) / (x + GR_R(1.));
}

/* Phi(x) = erfc(-x / sqrt 2) / 2, the chance that a normal variable is below x; small values have all their digits. */
static inline gr_real k_normal_cdf(gr_real x) {
    gr_real tail = k_normal_tail(k_magnitude(x));
    return x < 0 ? tail : GR_R(1.) - tail;
}

/* erf x = 2/sqrt pi (x - x^3/3 + x^5/(2! 5) - ...) for |x| < 1, from there +-(1 - 2 Q(sqrt 2 |x|)). The series is
 * written x + x S with a small S, whose rounding counts little. */
#define K_ERF_TERMS              K_PICK(10, 17) /* up to x^(2N)/(N! (2N + 1)): at |x| = 1 the next is 1e-9 (4e-18) */
#define K_ERF_TERM(k, factorial) K_RATIO((k % 2 ? -1 : 1) * 1.1283791670955126, factorial * (2 * k + 1))

static inline gr_real k_erf(gr_real x) {
    static const gr_real c[] = {(gr_real)0.1283791670955126,
                                K_ERF_TERM(1, 1.),
                                K_ERF_TERM(2, 2.),
                                K_ERF_TERM(3, 6.),
                                K_ERF_TERM(4, 24.),
                                K_ERF_TERM(5, 120.),
                                K_ERF_TERM(6, 720.),
                                K_ERF_TERM(7, 5040.),
                                K_ERF_TERM(8, 40320.),
                                K_ERF_TERM(9, 362880.),
                                K_ERF_TERM(10, 3628800.),
                                K_ERF_TERM(11, 39916800.),
                                K_ERF_TERM(12, 479001600.),
                                K_ERF_TERM(13, 6227020800.),
                                K_ERF_TERM(14, 87178291200.),
                                K_ERF_TERM(15, 1307674368000.),
                                K_ERF_TERM(16, 20922789888000.),
                                K_ERF_TERM(17, 355687428096000.)};
    gr_real a = k_magnitude(x);
    gr_real series = GR_FMA(x, k_polynomial(c, K_ERF_TERMS, x * x), x);
    gr_real beyond = GR_R(1.) - GR_R(2.) * k_normal_tail(GR_R(1.4142135623730950) * a);
    return a < 1 ? series : k_signed(beyond, x);
}

/* -- Sine and cosine: |x| = n pi/2 + r, |r| <= pi/4; n mod 4 chooses from sin r, cos r, -sin r, -cos r ------------- */

/* Cody and Waite: pi/2 = A + B + C + D. A and C have 33 bits, and B ends at 2^-53, so that for n < 2^20 every product
 * but n D is exact; |x| - n A - n B is exact too, and the one rounding that counts is relative to r, however near x is
 * to a multiple of pi/2. This is done in double for float as well. So the errors hold for |x| < 1.6e6, and grow from
 * there with |x|; the result stays in [-1, 1] for every finite x. */
#define K_PI_2_A    1.5707963267341256
#define K_PI_2_B    6.077094383272197e-11
#define K_PI_2_C    6.12323399538461e-17
#define K_PI_2_D    3.5215598651832e-27
#define K_2_PI      0.63661977236758134
#define K_SIN_TERMS K_PICK(4, 8) /* up to r^(2N+1)/(2N+1)!: at pi/4 the next is 2e-9 (1e-19) of the sine */
#define K_COS_TERMS K_PICK(5, 8) /* up to r^(2N)/(2N)!: the next is 1e-10 (2e-18) */

/* sin(|x| + turns pi/2) */
static inline gr_real k_sin_turned(gr_real x, k_bits turns) {
    static const gr_real sine[] = {
        /* (r - sin r) / r^3 */
        K_RATIO(1, 6),        K_RATIO(-1, 120),         K_RATIO(1, 5040),           K_RATIO(-1, 362880),
        K_RATIO(1, 39916800), K_RATIO(-1, 6227020800.), K_RATIO(1, 1307674368000.), K_RATIO(-1, 355687428096000.)};
    static const gr_real cosine[] = {
        /* (1 - cos r) / r^2 */
        K_RATIO(1, 2),       K_RATIO(-1, 24),        K_RATIO(1, 720),          K_RATIO(-1, 40320),
        K_RATIO(1, 3628800), K_RATIO(-1, 479001600), K_RATIO(1, 87178291200.), K_RATIO(-1, 20922789888000.)};
    double wide = (double)k_magnitude(x), shifted = wide * K_2_PI + 0x1.8p52, n = shifted - 0x1.8p52;
    uint64_t quarters;
    memcpy(&quarters, &shifted, sizeof quarters);
    k_bits turn = (k_bits)quarters + turns;
    wide = wide - n * K_PI_2_A - n * K_PI_2_B - n * K_PI_2_C - n * K_PI_2_D;
    wide = wide > 1 ? 1 : wide; /* beyond only when x is huge */
    wide = wide < -1 ? -1 : wide;

    gr_real r = (gr_real)wide, z = r * r;
    gr_real s = GR_FMA(-r * z, k_polynomial(sine, K_SIN_TERMS - 1, z), r);
    gr_real c = GR_FMA(-z, k_polynomial(cosine, K_COS_TERMS - 1, z), GR_R(1.));
    gr_real odd = k_from_bits(k_to_bits(K_INTEGERS) | (turn & 1)) - K_INTEGERS;
    gr_real sign = k_from_bits(k_to_bits(GR_R(1.)) | turn >> 1 << K_SIGN_BIT);
    return sign * (odd > 0 ? c : s);
}

static inline gr_real k_sin(gr_real x) { return k_signed(GR_R(1.), x) * k_sin_turned(x, 0); }
static inline gr_real k_cos(gr_real x) { return k_sin_turned(x, 1); }

#endif
