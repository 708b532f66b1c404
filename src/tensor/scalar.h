/* The double-precision versions of the library's own exp, log, sin and cos, one number at a time, in every build:
 * random numbers, schedules and sampling must not depend on the platform's libm. */
#ifndef GR_SCALAR_H
#define GR_SCALAR_H

double gr_double_exp(double x);
double gr_double_log(double x);
double gr_double_sin(double x);
double gr_double_cos(double x);

#endif
