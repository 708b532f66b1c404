/* The scalar type, chosen at compile time: float, or double with -DGR_DOUBLE. GR_R(0.5) is a constant of that type. */
#ifndef GR_REAL_H
#define GR_REAL_H

#if defined __FAST_MATH__
#    error \
        "gradus: without -ffast-math, please: the source defines the bits, and that option lets the compiler change them"
#endif

#ifdef GR_DOUBLE
typedef double gr_real;
#    define GR_REAL_NAME "double"
#    define GR_R(x)      x
#else
typedef float gr_real;
#    define GR_REAL_NAME "float"
#    define GR_R(x)      x##f
#endif

#endif
