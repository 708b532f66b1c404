/* Kernels on whole rows: reductions, softmax, normalisation, losses, optimisers. Each pass is one loop under its
 * formula. */
#ifndef GR_ROWS_H
#define GR_ROWS_H

static gr_real row_sum(size_t n, const gr_real *x, gr_real center) {
    gr_real total;
    GR_SUM(total, n, i, x[i] - center);
    return total;
}

static inline gr_real minus(gr_real x, gr_center center) { return (x - center.near) - center.rest; }

static gr_real row_sum_squares(size_t n, const gr_real *x, gr_center center, gr_real scale) {
    gr_real total;
    GR_SUM(total, n, i, (minus(x[i], center) * scale) * (minus(x[i], center) * scale));
    return total;
}

static gr_real row_dot(size_t n, const gr_real *a, const gr_real *b) {
    gr_real total;
    GR_SUM(total, n, i, a[i] * b[i]);
    return total;
}

/* x - x is 0 for a finite x and NaN for any other: their sum tells. */
static bool all_finite(size_t m, size_t n, const gr_real *x, ptrdiff_t row) {
    gr_real lane[LANES] = {0}, sum = 0;
    for (size_t i = 0; i < m; i++, x += row) {
        size_t j = 0;
        for (; n - j >= LANES; j += LANES) GR_SIMD for (size_t l = 0; l < LANES; l++) lane[l] += x[j + l] - x[j + l];
        for (; j < n; j++) sum += x[j] - x[j];
    }
    for (size_t l = 0; l < LANES; l++) sum += lane[l];
    return sum == 0;
}

static gr_real row_sum_exp(size_t n, const gr_real *x, gr_real center) {
    gr_real total;
    GR_SUM(total, n, i, k_exp(x[i] - center));
    return total;
}

static gr_real row_max(size_t n, const gr_real *x, size_t *first) {
    *first = 0;
    for (size_t i = 1; i < n && x[*first] == x[*first]; i++)
        if (x[i] > x[*first] || x[i] != x[i]) *first = i;
    return x[*first];
}

/* The largest number of a row, NaN left out; -inf if there is none. Order does not matter. */
static gr_real row_peak(size_t n, const gr_real *x) {
    gr_real lane[LANES], peak = (gr_real)-INFINITY;
    for (size_t l = 0; l < LANES; l++) lane[l] = (gr_real)-INFINITY;
    size_t first = 0;
    for (; n - first >= LANES; first += LANES) {
        GR_SIMD for (size_t l = 0; l < LANES; l++) lane[l] = x[first + l] > lane[l] ? x[first + l] : lane[l];
    }
    for (size_t i = first; i < n; i++) peak = x[i] > peak ? x[i] : peak;
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) lane[l] = lane[l + half] > lane[l] ? lane[l + half] : lane[l];
    return lane[0] > peak ? lane[0] : peak;
}

/* Sums down columns: the tree of tree.h for each column, a strip of columns at a time. */
enum { STRIP = 16 };

static void strip_sum(size_t m, size_t width, const gr_real *x, ptrdiff_t row, gr_real *y, bool accumulate) {
    gr_real partial[LEVELS][STRIP];
    size_t blocks = 0, count = 0;
    for (size_t begin = 0; begin < m; begin += BLOCK, blocks++) {
        gr_real lane[LANES][STRIP] = {{0}};
        size_t end = m - begin < BLOCK ? m : begin + BLOCK;
        for (size_t i = begin; i < end; i++) {
            const gr_real *from = x + (ptrdiff_t)i * row;
            gr_real *to = lane[(i - begin) % LANES];
            GR_SIMD for (size_t j = 0; j < width; j++) to[j] += from[j];
        }
        for (size_t half = LANES / 2; half > 0; half /= 2)
            for (size_t l = 0; l < half; l++)
                GR_SIMD for (size_t j = 0; j < width; j++) lane[l][j] += lane[l + half][j];
        for (size_t b = blocks; b & 1; b >>= 1) {
            count--;
            GR_SIMD for (size_t j = 0; j < width; j++) lane[0][j] = partial[count][j] + lane[0][j];
        }
        for (size_t j = 0; j < width; j++) partial[count][j] = lane[0][j];
        count++;
    }
    for (; count > 1; count--)
        for (size_t j = 0; j < width; j++) partial[count - 2][j] += partial[count - 1][j];
    for (size_t j = 0; j < width; j++) y[j] = (accumulate ? y[j] : 0) + (count ? partial[0][j] : 0);
}

static void sum_rows(size_t m, size_t n, const gr_real *x, ptrdiff_t row, gr_real *y, bool accumulate) {
    for (size_t j = 0; j < n; j += STRIP) strip_sum(m, n - j < STRIP ? n - j : STRIP, x + j, row, y + j, accumulate);
}

/* y = e^(s - max s) / sum, s = scale x, over what the mask shows. Nothing to see, or only -inf: 0. */
static void softmax(size_t n, gr_real *y, const gr_real *x, const gr_real *mask, gr_real scale) {
    if (mask) {
        GR_SIMD for (size_t i = 0; i < n; i++) y[i] = mask[i] != 0 ? scale * x[i] : (gr_real)-INFINITY;
    } else {
        GR_SIMD for (size_t i = 0; i < n; i++) y[i] = scale * x[i];
    }
    gr_real peak = row_peak(n, y), total;
    if (peak == (gr_real)-INFINITY) peak = 0; /* -inf - -inf would be NaN */
    GR_SIMD for (size_t i = 0; i < n; i++) y[i] = k_exp(y[i] - peak);
    GR_SUM(total, n, i, y[i]);
    gr_real inverse = total == 0 ? 0 : 1 / total;
    if (mask) { /* a row with NaN stays NaN, but not where nothing is seen */
        GR_SIMD for (size_t i = 0; i < n; i++) y[i] = mask[i] != 0 ? y[i] * inverse : 0;
    } else {
        GR_SIMD for (size_t i = 0; i < n; i++) y[i] *= inverse;
    }
}

/* dx += scale y (dy - sum y dy). Where y is 0 nothing is read from dy: a mask may hide anything there. */
static void softmax_dx(size_t n, gr_real *dx, const gr_real *y, const gr_real *dy, gr_real scale) {
    gr_real total;
    GR_SUM(total, n, i, y[i] != 0 ? y[i] * dy[i] : 0);
    GR_SIMD for (size_t i = 0; i < n; i++) dx[i] += y[i] != 0 ? scale * y[i] * (dy[i] - total) : 0;
}

/* y = (x - max x) - log sum e^(x - max x) */
static void log_softmax(size_t n, gr_real *y, const gr_real *x) {
    gr_real peak = row_peak(n, x);
    if (peak == (gr_real)-INFINITY) peak = 0;
    gr_real log_total = k_log(row_sum_exp(n, x, peak));
    GR_SIMD for (size_t i = 0; i < n; i++) y[i] = (x[i] - peak) - log_total;
}

/* dx += dy - e^y sum dy */
static void log_softmax_dx(size_t n, gr_real *dx, const gr_real *y, const gr_real *dy) {
    gr_real total = row_sum(n, dy, 0);
    GR_SIMD for (size_t i = 0; i < n; i++) dx[i] += GR_FMA(-k_exp(y[i]), total, dy[i]);
}

/* log sum e^x = max x + log sum e^(x - max x). An infinite maximum is not subtracted: then e^x is 0, infinite or NaN,
 * and so is the sum. */
static gr_real row_logsumexp(size_t n, const gr_real *x) {
    gr_real peak = row_peak(n, x);
    if (peak - peak != 0) peak = 0;
    return peak + k_log(row_sum_exp(n, x, peak));
}

/* dx += factor (e^(x - lse) - [i = target]) */
static void cross_entropy_dx(size_t n, gr_real *dx, const gr_real *x, gr_real lse, gr_real factor, size_t target) {
    GR_SIMD for (size_t i = 0; i < n; i++) dx[i] = GR_FMA(factor, k_exp(x[i] - lse), dx[i]);
    dx[target] -= factor;
}

/* y = (x - mean) rstd w + b */
static void normalize(size_t n, gr_real *y, const gr_real *x, gr_center mean, gr_real rstd, const gr_real *w,
                      const gr_real *b) {
    GR_SIMD for (size_t i = 0; i < n; i++) {
        gr_real h = minus(x[i], mean) * rstd;
        y[i] = GR_FMA(h, w ? w[i] : 1, b ? b[i] : 0);
    }
}

/* h = (x - mean) rstd, g = dy w: dx += rstd (g - mean(g) - h mean(g h)); mean(g) is left out when not centered
 * (RMSNorm). */
static void normalize_dx(size_t n, gr_real *dx, const gr_real *dy, const gr_real *x, gr_center mean, gr_real rstd,
                         const gr_real *w, bool center) {
    gr_real sum_g = 0, sum_gh;
    if (center) GR_SUM(sum_g, n, i, dy[i] * (w ? w[i] : 1));
    GR_SUM(sum_gh, n, i, dy[i] * (w ? w[i] : 1) * (minus(x[i], mean) * rstd));
    gr_real mean_g = sum_g / (gr_real)n, mean_gh = sum_gh / (gr_real)n;
    GR_SIMD for (size_t i = 0; i < n; i++) {
        gr_real h = minus(x[i], mean) * rstd, g = dy[i] * (w ? w[i] : 1);
        dx[i] = GR_FMA(rstd, GR_FMA(-h, mean_gh, g - mean_g), dx[i]);
    }
}

/* t = dy h */
static void normalize_dw(size_t n, gr_real *t, const gr_real *dy, const gr_real *x, gr_center mean, gr_real rstd) {
    GR_SIMD for (size_t i = 0; i < n; i++) t[i] = dy[i] * (minus(x[i], mean) * rstd);
}

/* Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019): see gr_adam_step. */
static void adam(size_t n, gr_real *w, const gr_real *g, gr_real *m, gr_real *v, const gr_adam_step *s) {
    const gr_real beta1 = (gr_real)s->beta1, rest1 = (gr_real)(1 - s->beta1), beta2 = (gr_real)s->beta2,
                  rest2 = (gr_real)(1 - s->beta2), eps = (gr_real)s->eps, rate = (gr_real)s->rate,
                  root = (gr_real)s->root, keep = (gr_real)s->keep, pull = (gr_real)s->pull;
    GR_SIMD for (size_t i = 0; i < n; i++) {
        gr_real grad = GR_FMA(pull, w[i], g[i]);
        m[i] = GR_FMA(beta1, m[i], rest1 * grad);
        v[i] = GR_FMA(beta2, v[i], rest2 * grad * grad);
        w[i] = keep * w[i] - rate * m[i] / GR_FMA(k_sqrt(v[i]), root, eps);
    }
}

/* velocity = momentum velocity + g + decay w; w -= lr velocity */
static void sgd(size_t n, gr_real *w, const gr_real *g, gr_real *velocity, double lr, double momentum, double decay) {
    const gr_real rate = (gr_real)lr, keep = (gr_real)momentum, pull = (gr_real)decay;
    GR_SIMD for (size_t i = 0; i < n; i++) {
        velocity[i] = GR_FMA(keep, velocity[i], GR_FMA(pull, w[i], g[i]));
        w[i] = GR_FMA(-rate, velocity[i], w[i]);
    }
}

#endif
