/* The scalar type, chosen at compile time: float, or double with -DGR_DOUBLE. GR_R(0.5) is a constant of that type. */
#ifndef GR_REAL_H
#define GR_REAL_H

#include <float.h>

/* As far as the compiler tells: the parts of -ffast-math that change a number. */
#if defined __FAST_MATH__ || (defined __FINITE_MATH_ONLY__ && __FINITE_MATH_ONLY__) || defined __ASSOCIATIVE_MATH__ || \
    defined __RECIPROCAL_MATH__ || defined __NO_SIGNED_ZEROS__
#    error "gradus: without -ffast-math and its parts, please: the source defines the bits, and they change them"
#endif

/* GR_REAL_MAX is the largest number, GR_REAL_MIN the smallest normalised one, 1 + GR_REAL_EPSILON the next after 1. */
#ifdef GR_DOUBLE
typedef double gr_real;
#    define GR_REAL_NAME    "double"
#    define GR_R(x)         x
#    define GR_REAL_MAX     DBL_MAX
#    define GR_REAL_MIN     DBL_MIN
#    define GR_REAL_EPSILON DBL_EPSILON
#else
typedef float gr_real;
#    define GR_REAL_NAME    "float"
#    define GR_R(x)         x##f
#    define GR_REAL_MAX     FLT_MAX
#    define GR_REAL_MIN     FLT_MIN
#    define GR_REAL_EPSILON FLT_EPSILON
#endif

#endif
