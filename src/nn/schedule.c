#include "schedule.h"

#include "../tensor/scalar.h"

/* left(x): what is left of peak - min, 1 at x = 0 and 0 at x = 1. */
static double rate(int64_t step, gr_schedule_config c, double (*left)(double x)) {
    const double min = c.min == 0 ? c.peak / 10 : c.min;
    if (step < 0) step = 0;
    if (c.warmup < 0) c.warmup = 0;
    if (step < c.warmup) return c.peak * (((double)step + 1) / (double)c.warmup);
    if (c.total <= 0) return c.peak;
    if (step >= c.total) return min;
    return min + (c.peak - min) * left((double)(step - c.warmup) / (double)(c.total - c.warmup));
}

static double line(double x) { return 1 - x; }
static double half_cosine(double x) { return (1 + gr_double_cos(3.141592653589793 * x)) / 2; }

double gr_constant(int64_t step, double lr) {
    (void)step;
    return lr;
}

double gr_linear_decay(int64_t step, gr_schedule_config c) { return rate(step, c, line); }
double gr_cosine(int64_t step, gr_cosine_config c) { return rate(step, c, half_cosine); }
