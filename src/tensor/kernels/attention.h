/* What attention does to one row of a tile of scores. */
#ifndef GR_KERNELS_ATTENTION_H
#define GR_KERNELS_ATTENTION_H

/* Rows are worked on to the next multiple of LANES, where they have room: what lies beyond n becomes 0, which changes
 * no bit of a sum, and no element is left over for a slow loop. */
_Static_assert((int)LANES == (int)GR_ROW_ROOM, "the room promised in kernels.h");
static size_t whole_lanes(size_t n) { return (n + LANES - 1) / LANES * LANES; }

/* The softmax of a row that comes in tiles (Milakov and Gimelshein, 2018). With the largest score seen so far, peak,
 * and total = sum e^(s - peak): a new peak makes all that was summed before too large by e^(old peak - new peak), and
 * that factor is returned. Here s = scale x where it is allowed, else -inf; x becomes e^(s - peak). */
static gr_real softmax_join(size_t n, gr_real *x, const gr_real *allow, gr_real scale, gr_online_softmax *so_far) {
    const size_t all = whole_lanes(n);
    if (allow) {
        GR_SIMD for (size_t i = 0; i < all; i++) x[i] = ((i < n) & (allow[i] != 0)) ? scale * x[i] : (gr_real)-INFINITY;
    } else {
        GR_SIMD for (size_t i = 0; i < all; i++) x[i] = i < n ? scale * x[i] : (gr_real)-INFINITY;
    }
    gr_real tile = row_peak(all, x), old = so_far->peak, peak = tile > old ? tile : old, total;
    gr_real origin = peak == (gr_real)-INFINITY ? 0 : peak; /* -inf - -inf would be NaN */
    GR_SIMD for (size_t i = 0; i < all; i++) x[i] = k_exp(x[i] - origin);
    GR_SUM(total, all, i, x[i]);
    gr_real factor = old == origin ? 1 : k_exp(old - origin); /* 1 exactly, also for two infinities */
    so_far->peak = peak;
    so_far->total = GR_FMA(so_far->total, factor, total);
    return factor;
}

/* The weights again, p = e^(s - peak) inverse, and the gradient of the unscaled scores from that of the weights,
 * ds = scale p (dp - delta), delta = sum_j p_j dp_j over the whole row: x becomes p, dp becomes ds. Where p is 0
 * nothing is read from dp: a mask may hide anything there. */
static void attention_dx(size_t n, gr_real *x, gr_real *dp, const gr_real *allow, gr_real scale, gr_real peak,
                         gr_real inverse, gr_real delta) {
    const size_t all = whole_lanes(n);
    GR_SIMD for (size_t i = 0; i < all; i++) {
        gr_real p = k_exp(scale * x[i] - peak) * inverse;
        x[i] = i < n ? p : 0;
    }
    if (allow) {
        GR_SIMD for (size_t i = 0; i < all; i++) x[i] = allow[i] != 0 ? x[i] : 0;
    }
    GR_SIMD for (size_t i = 0; i < all; i++) dp[i] = x[i] != 0 ? scale * x[i] * (dp[i] - delta) : 0;
}

#endif
