/* Learning-rate schedules: the rate of a step, counted from 0. */
#ifndef GR_SCHEDULE_H
#define GR_SCHEDULE_H

#include <stdint.h>

double gr_constant(int64_t step, double lr);

/* peak (step + 1) / warmup, then from peak at step `warmup` down to min at `total`, then min. min 0 means peak / 10:
 * the rate is never 0. total 0: peak for ever. On the way down x = (step - warmup) / (total - warmup). */
typedef struct gr_schedule_config {
    double peak, min;
    int64_t warmup, total;
} gr_schedule_config;
typedef gr_schedule_config gr_cosine_config;

/* min + (peak - min) (1 - x) */
double gr_linear_decay(int64_t step, gr_schedule_config c);

/* min + (peak - min) (1 + cos(pi x)) / 2. Loshchilov and Hutter, 2017, without restarts. */
double gr_cosine(int64_t step, gr_cosine_config c);

#endif
