/* One query, four keys, two tiles of two: the softmax that never sees its whole row, and its gradient. Small enough to
 * be followed on paper; docs/attention_derived.md does. */
#include <gradus.h>

#include <math.h>

enum { KEYS = 4, TILE = 2 };
static const double score[KEYS] = {1, 0, 3, 2}, value[KEYS] = {1, 2, 3, 4};

/* What is known of the row after each tile: the largest score, the sum of weights and the weighted sum of values, both
 * as seen from that score. */
typedef struct online {
    double peak, total, output;
} online;

static online join(online s, const double *x, const double *v) {
    double peak = s.peak;
    for (int j = 0; j < TILE; j++) peak = fmax(peak, x[j]);
    const double factor = exp(s.peak - peak); /* what was summed before is too large by as much */
    online next = {peak, factor * s.total, factor * s.output};
    printf("  peak %.0f: what came before is multiplied by %.4f\n", peak, factor);
    for (int j = 0; j < TILE; j++) {
        const double weight = exp(x[j] - peak);
        printf("    e^(%.0f - %.0f) = %.4f, times %.0f\n", x[j], peak, weight, v[j]);
        next.total += weight;
        next.output += weight * v[j];
    }
    printf("  total %.4f, output %.4f\n", next.total, next.output);
    return next;
}

/* The weights again, from what the forward pass has kept; dL/dy = 1. */
static void backward(online s) {
    const double y = s.output / s.total, delta = y; /* sum_j p_j dp_j = dy y */
    printf("backward, dy = 1:\n");
    for (int j = 0; j < KEYS; j++) {
        const double p = exp(score[j] - s.peak) / s.total, dp = value[j];
        printf("  p = %.4f  dv = p dy = %.4f  dp = dy v = %.0f  ds = p (dp - delta) = %+.4f\n", p, p, dp,
               p * (dp - delta));
    }
}

static gr_tensor *column(gr_context *ctx, const double *x, int n) {
    gr_real values[KEYS];
    for (int j = 0; j < n; j++) values[j] = (gr_real)x[j];
    return gr_requires_grad(gr_from(ctx, GR_SHAPE(n, 1), values)); /* (n, 1) */
}

int main(void) {
    online s = {-INFINITY, 0, 0};
    for (int j = 0; j < KEYS; j += TILE) {
        printf("keys %d and %d:\n", j, j + 1);
        s = join(s, score + j, value + j);
    }
    printf("y = output / total = %.4f\n", s.output / s.total);
    backward(s);

    gr_context *ctx = gr_context_new();
    gr_tensor *q = column(ctx, (const double[]){1}, 1), *k = column(ctx, score, KEYS), *v = column(ctx, value, KEYS);
    gr_tensor *y = gr_attention(q, k, v, (gr_attention_options){.scale = 1}); /* (1, 1) */
    gr_backward(y);
    printf("gr_attention: y = %.4f\n", gr_item(y));
    gr_print(gr_named(gr_grad(k), "dk = ds q"));
    int status = gr_context_report(ctx);
    gr_context_free(ctx);
    return status;
}
