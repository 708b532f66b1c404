/* What the suites of fused attention share: a run with its gradients, rows of tensors, random masks. */
#ifndef TESTS_FUSED_SUPPORT_H
#define TESTS_FUSED_SUPPORT_H

#include "nn_support.h"

#include "autograd/attention_tiles.h"

enum { TILE = ATTENTION_TILE, BAND = ATTENTION_BAND }; /* sizes in the tests lie around their edges */
enum { Q, K, V, INPUTS };

static inline int64_t below(int64_t n) { return (int64_t)gr_rng_below(&rng, (uint64_t)n); }
static inline void begin_at(int seed) { rng = gr_rng_stream(gr_rng_seed((uint64_t)seed), GR_STREAM_USER); }
static inline gr_tensor *rows(gr_tensor *x, int64_t begin, int64_t end) { return gr_slice(x, -2, begin, end, 1); }
static inline bool is_zero(gr_tensor *x) { return gr_numel(x) == 0 || gr_item(gr_max(gr_abs(x), GR_ALL)) == 0; }
static inline bool same_rows(gr_tensor *a, gr_tensor *b, int64_t begin, int64_t end) {
    return same_tensors(rows(a, begin, end), rows(b, begin, end));
}

typedef gr_tensor *view(gr_tensor *x);
typedef struct attended {
    gr_tensor *y, *gradient[INPUTS];
} attended;

typedef struct problem {
    gr_tensor *in[INPUTS];
    view *through[INPUTS];
    gr_shape scores;
    int64_t width; /* of q and k */
    gr_attention_options options;
} problem;

static view *const plain[INPUTS];

/* Variables with these values, seen through the views, and their gradients after this seed (NULL: a random one). */
attended attend(gr_tensor *const in[INPUTS], view *const through[INPUTS], gr_attention_options options,
                gr_tensor *seed);

/* Zeros and, of ten, so many ones. */
gr_tensor *sparse(gr_shape shape, int64_t odds);

/* A word of masks, or several joined, whose sizes lie around those of tiles. */
gr_mask draw_mask(gr_shape scores);

#endif
