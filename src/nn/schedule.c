#include "schedule.h"

#include "../tensor/scalar.h"

typedef struct phase {
    double rate;  /* of a step in the warmup or after the end */
    double share; /* of the way from peak to min, in [0, 1); -1 in the other two phases */
} phase;

static double floor_of(double peak, double min) { return min == 0 ? peak / 10 : min; }

static phase phase_of(int64_t step, double peak, double min, int64_t warmup, int64_t total) {
    if (step < 0) step = 0;
    if (step < warmup) return (phase){peak * (((double)step + 1) / (double)warmup), -1};
    if (total <= 0) return (phase){peak, -1};
    if (step >= total) return (phase){min, -1};
    if (warmup < 0) warmup = 0;
    return (phase){0, (double)(step - warmup) / (double)(total - warmup)};
}

double gr_constant(int64_t step, double lr) {
    (void)step;
    return lr;
}

double gr_linear_decay(int64_t step, gr_linear_schedule c) {
    const double min = floor_of(c.peak, c.min);
    const phase p = phase_of(step, c.peak, min, c.warmup, c.total);
    return p.share < 0 ? p.rate : c.peak + (min - c.peak) * p.share;
}

double gr_cosine(int64_t step, gr_cosine_config c) {
    const double pi = 3.141592653589793, min = floor_of(c.peak, c.min);
    const phase p = phase_of(step, c.peak, min, c.warmup, c.total);
    return p.share < 0 ? p.rate : min + (c.peak - min) * (1 + gr_scalar_cos(pi * p.share)) / 2;
}
