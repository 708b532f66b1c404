/* Learning-rate schedules: the rate of a step, counted from 0. */
#ifndef GR_SCHEDULE_H
#define GR_SCHEDULE_H

#include <stdint.h>

double gr_constant(int64_t step, double lr);

/* peak (step + 1) / warmup, then a line from peak at step `warmup` down to min at `total`, then min. min 0 means peak /
 * 10: the rate is never 0. total 0: peak for ever. */
typedef struct gr_linear_schedule {
    double peak, min;
    int64_t warmup, total;
} gr_linear_schedule;
double gr_linear_decay(int64_t step, gr_linear_schedule c);

/* The same with half a cosine in place of the line: min + (peak - min) (1 + cos(pi x)) / 2, x = (step - warmup) /
 * (total - warmup). Loshchilov and Hutter, 2017, without restarts. */
typedef struct gr_cosine_config {
    double peak, min;
    int64_t warmup, total;
} gr_cosine_config;
double gr_cosine(int64_t step, gr_cosine_config c);

#endif
