/* What arithmetic is here: a float is rounded to float, and GR_FMA(a, b, c) is a * b + c rounded once, whether the
 * processor has it (GR_HAS_FMA) or the C library computes it. */
#ifndef GR_KERNELS_FMA_H
#define GR_KERNELS_FMA_H

#include "../real.h"

/* Before the other includes: where -m32 finds no headers, this is still what the compiler says. */
#if FLT_EVAL_METHOD != 0
#    error "gradus: float must be rounded to float (x86: -msse2 -mfpmath=sse, s390: -fexcess-precision=fast)"
#endif

#include <math.h>

#if defined __FMA__ || defined __ARM_FEATURE_FMA || defined __aarch64__ || defined __FP_FAST_FMA
#    define GR_HAS_FMA 1
#else
#    define GR_HAS_FMA 0
#endif

#if !defined GR_DOUBLE
#    define k_fma fmaf
#elif (GR_HAS_FMA && defined __OPTIMIZE__) || defined __GLIBC__ /* at -O0 also the processor's is a call */
#    define k_fma fma
#else
/* musl's fma (1.2.3) loses the sign of a product too small for a double when c is 0; alone, it is rounded once. */
static inline double k_fma(double a, double b, double c) { return c == 0 && a != 0 && b != 0 ? a * b : fma(a, b, c); }
#endif
#ifndef GR_FMA
#    define GR_FMA(a, b, c) k_fma((a), (b), (c))
#endif

#endif
