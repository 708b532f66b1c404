#include "scalar.h"

#ifndef GR_DOUBLE /* math.h gives double functions here, also in the float library */
#    define GR_DOUBLE
#endif
#include "kernels/math.h"

/* Where the processor's fma cannot be taken for granted, each function exists twice, and the loader picks: a call of
 * libm's fma for every step of a polynomial costs three times as much. The bits are the same. */
#if defined __x86_64__ && defined __GLIBC__ && defined __GNUC__ && !defined __clang__ && !defined __SANITIZE_ADDRESS__
#    define GR_WITH_FMA __attribute__((target_clones("fma", "default")))
#else
#    define GR_WITH_FMA
#endif

GR_WITH_FMA double gr_double_exp(double x) { return k_exp(x); }
GR_WITH_FMA double gr_double_log(double x) { return k_log(x); }
GR_WITH_FMA double gr_double_sin(double x) { return k_sin(x); }
GR_WITH_FMA double gr_double_cos(double x) { return k_cos(x); }
