/* Where the time of a training step goes. */
#ifndef GR_PROFILE_H
#define GR_PROFILE_H

#include "tensor.h"

/* From here on the time between two events of the context (an op recorded, a backward done, an update) is charged to
 * the later one, so that the rows add up to the whole. Begins anew when called again. */
void gr_profile_begin(gr_context *ctx);

/* Prints a row per op, forward and backward apart, slowest first: milliseconds, share, calls, GFLOP/s, GB/s, each over
 * the time since gr_profile_begin. FLOPs count multiplications and additions of products and one per element elsewhere;
 * bytes are those of operands and results. */
void gr_profile_print(gr_context *ctx, FILE *out);

/* Seconds since gr_profile_begin that are charged to some row; 0 when there was none. */
double gr_profile_seconds(const gr_context *ctx);

#endif
