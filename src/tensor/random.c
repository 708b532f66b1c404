#include "random.h"

#include "scalar.h"

#include <math.h>

gr_rng gr_rng_seed(uint64_t seed) { return (gr_rng){seed, GR_STREAM_DEFAULT, 0}; }

gr_rng gr_rng_stream(gr_rng rng, uint64_t stream) { return (gr_rng){rng.seed, stream, 0}; }

void gr_philox(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t out[4]) {
    /* multipliers and key steps (golden ratio, sqrt 3 - 1) of the paper */
    const uint32_t mul0 = 0xD2511F53, mul1 = 0xCD9E8D57, step0 = 0x9E3779B9, step1 = 0xBB67AE85;
    uint32_t x0 = (uint32_t)counter, x1 = (uint32_t)(counter >> 32), x2 = (uint32_t)stream,
             x3 = (uint32_t)(stream >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++, k0 += step0, k1 += step1) {
        uint64_t p0 = (uint64_t)mul0 * x0, p1 = (uint64_t)mul1 * x2;
        x0 = (uint32_t)(p1 >> 32) ^ x1 ^ k0;
        x1 = (uint32_t)p1;
        x2 = (uint32_t)(p0 >> 32) ^ x3 ^ k1;
        x3 = (uint32_t)p0;
    }
    out[0] = x0, out[1] = x1, out[2] = x2, out[3] = x3;
}

uint64_t gr_rng_next(gr_rng *rng) {
    uint32_t word[4];
    gr_philox(rng->seed, rng->stream, rng->counter++, word);
    return (uint64_t)word[1] << 32 | word[0];
}

double gr_rng_uniform(gr_rng *rng) { return (double)(gr_rng_next(rng) >> 11) * 0x1p-53; }

double gr_rng_normal(gr_rng *rng) {
    double u = ((double)(gr_rng_next(rng) >> 11) + 1) * 0x1p-53; /* in (0, 1]: its log is finite */
    double v = gr_rng_uniform(rng);
    return sqrt(-2 * gr_double_log(u)) * gr_double_cos(6.283185307179586 * v);
}

uint64_t gr_rng_below(gr_rng *rng, uint64_t n) {
    if (n == 0) return 0;
    /* The top 32 bits of random * n; the few values that would be drawn too often are drawn again. n above 2^32: by
     * remainder. */
    if (n > UINT32_MAX) {
        uint64_t reject = (0 - n) % n, x;
        do x = gr_rng_next(rng);
        while (x < reject);
        return x % n;
    }
    uint32_t reject = (uint32_t)((0 - n) & UINT32_MAX) % (uint32_t)n;
    uint64_t product;
    do product = (gr_rng_next(rng) >> 32) * n;
    while ((uint32_t)product < reject);
    return product >> 32;
}
