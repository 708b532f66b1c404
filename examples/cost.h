/* Measuring attention, for lesson 9: the time and the memory of one causal head, forward and backward, in five ways. */
#ifndef COST_H
#define COST_H

#include <gradus.h>

#include <math.h>
#include <time.h>

enum { COST_WINDOW = 256, COST_BLOCK = 64, COST_FEWEST = 3, COST_MOST = 9 /* runs of a size; the first warms up */ };
static const double cost_enough = 0.3; /* seconds after which a size is not run again */

enum { TEXTBOOK, FUSED, SPARSE, WINDOW, LINEAR, KINDS };
static const char *const cost_name[KINDS] = {"textbook", "fused", "sparse", "window 256", "linear"};

typedef struct cost {
    double ms, mib; /* best time of a step; memory beyond q, k, v, y and their gradients */
} cost;

static inline double cost_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Sparse: groups of about sqrt(blocks) blocks, so that a query sees about 8 sqrt(n) keys of its group, or of the last
 * blocks of all groups. */
static inline gr_mask cost_mask(gr_context *ctx, int kind, long n) {
    const int64_t blocks = n / COST_BLOCK, stride = (int64_t)(sqrt((double)blocks) + 0.5);
    const gr_mask causal = gr_mask_causal();
    if (kind == WINDOW) return gr_mask_and(causal, gr_mask_window(COST_WINDOW));
    if (kind != SPARSE) return causal;
    return gr_mask_and(causal, gr_mask_blocks(gr_keep(gr_layout_fixed(ctx, blocks, stride)), COST_BLOCK));
}

/* One step: y (n, d) from q, k, v (n, d), and back from dL/dy = in[3]. */
static inline void cost_step(int kind, gr_mask mask, gr_tensor *const in[4]) {
    gr_tensor *weights = NULL, *y;
    gr_attention_options options = {.mask = mask, .weights = kind == TEXTBOOK ? &weights : NULL};
    if (kind == LINEAR)
        y = gr_linear_attention(in[0], in[1], in[2], true);
    else
        y = gr_attention(in[0], in[1], in[2], options);
    gr_backward_from(y, in[3]);
}

/* A step only takes memory until gr_context_reset: what the context holds just before it is the peak. NaN after an
 * error. */
static inline cost cost_of(int kind, long n, long d) {
    gr_context *ctx = gr_context_new();
    gr_rng rng = gr_rng_seed(1);
    gr_tensor *in[4]; /* q, k, v, dL/dy: (n, d) */
    for (int i = 0; i < 4; i++) in[i] = gr_normal(ctx, GR_SHAPE(n, d), 0, 1, &rng);
    for (int i = 0; i < 3; i++) in[i] = gr_parameter(in[i], "x");
    in[3] = gr_keep(in[3]);
    const gr_mask mask = cost_mask(ctx, kind, n);
    double best = INFINITY, taken = 0, begin = cost_seconds();
    for (int run = 0; run < COST_MOST && (run < COST_FEWEST || cost_seconds() - begin < cost_enough); run++) {
        gr_context_reset(ctx);
        const double before = (double)gr_context_bytes(ctx), start = cost_seconds();
        cost_step(kind, mask, in);
        if (run > 0) best = fmin(best, cost_seconds() - start);
        taken = (double)gr_context_bytes(ctx) - before;
    }
    const double y_and_dy = 2.0 * (double)n * (double)d * sizeof(gr_real);
    cost c = {1e3 * best, (taken - y_and_dy) / (1 << 20)};
    if (gr_context_report(ctx) != 0) c = (cost){NAN, NAN};
    gr_context_free(ctx);
    return c;
}

/* The slope of log y over log x by least squares, over the larger half of the sizes: y grows like x^slope. */
static inline double cost_slope(int sizes, const double *x, const double *y) {
    const int count = (sizes + 1) / 2, first = sizes - count;
    double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
    for (int i = first; i < sizes; i++) mean_x += log(x[i]) / count, mean_y += log(y[i]) / count;
    for (int i = first; i < sizes; i++) {
        xx += (log(x[i]) - mean_x) * (log(x[i]) - mean_x);
        xy += (log(x[i]) - mean_x) * (log(y[i]) - mean_y);
    }
    return xy / xx;
}

#endif
