#include "scalar.h"

#ifndef GR_DOUBLE /* math.h gives double functions here, also in the float library */
#    define GR_DOUBLE
#endif
#include "kernels/math.h"

double gr_double_exp(double x) { return k_exp(x); }
double gr_double_log(double x) { return k_log(x); }
double gr_double_sin(double x) { return k_sin(x); }
double gr_double_cos(double x) { return k_cos(x); }
