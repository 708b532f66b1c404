/* Random numbers as a value: counter-based, so that a number depends on (seed, stream, counter) alone and never on
 * threads or platform.
 *
 * Generator: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011). Each draw takes one
 * counter: key = seed, counter words = (counter low, counter high, stream low, stream high). A generator that
 * is NULL has no context to keep an error: it is not allowed. */
#ifndef GR_RANDOM_H
#define GR_RANDOM_H

#include <stdint.h>

typedef struct gr_rng {
    uint64_t seed, stream, counter;
} gr_rng;

/* Streams the library itself uses; those from GR_STREAM_USER to 2^32 - 1 are yours. */
enum { GR_STREAM_DEFAULT = 0, GR_STREAM_INIT = 1, GR_STREAM_DROPOUT = 2, GR_STREAM_USER = 16 };

/* Stream 0 of the seed, from its beginning. */
gr_rng gr_rng_seed(uint64_t seed);

/* Another stream of the same seed, independent of this one, from its beginning. */
gr_rng gr_rng_stream(gr_rng rng, uint64_t stream);

/* The 128 random bits of one counter as four words; no state. */
void gr_philox(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t out[4]);

/* 64 random bits. */
uint64_t gr_rng_next(gr_rng *rng);

/* Uniform in [0, 1), a multiple of 2^-53. */
double gr_rng_uniform(gr_rng *rng);

/* Standard normal: Box-Muller, sqrt(-2 ln u) cos(2 pi v). */
double gr_rng_normal(gr_rng *rng);

/* Uniform integer in [0, n), without bias (Lemire, 2019); 0 when n is 0. */
uint64_t gr_rng_below(gr_rng *rng, uint64_t n);

#endif
