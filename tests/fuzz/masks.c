#include "masks.h"

#include <math.h>

enum { ALL, CAUSAL, WINDOW, GLOBAL, PADDING, BLOCKS, TENSOR, WORDS };

typedef struct drawing {
    fuzz_bytes *in;
    gr_context *ctx;
    gr_shape scores;
    int64_t queries, keys, batches, count; /* batches: the first axis before the matrices, count: elements */
    bool hostile;
} drawing;

/* One draw in sixteen, of a hostile mask. */
static bool wrong(const drawing *d) { return d->hostile && fuzz_below(d->in, 16) == 1; }

/* -- Tensors of a mask --------------------------------------------------------------------------------------------- */

/* 0 and numbers that are not; of any other axes order in memory, or with gaps. */
static gr_tensor *flags(const drawing *d, gr_shape shape) {
    static const double shown[] = {1, -2, (double)NAN, 0.25};
    const int n = shape.ndim, layout = (int)fuzz_below(d->in, 3), odds = (int)fuzz_below(d->in, 8);
    gr_shape under = shape;
    if (layout == 1 && n >= 2) under.dim[n - 1] = shape.dim[n - 2], under.dim[n - 2] = shape.dim[n - 1];
    if (layout == 2 && n >= 1) under.dim[n - 1] = 2 * shape.dim[n - 1] + 1;
    gr_tensor *x = gr_zeros(d->ctx, under);
    uint32_t bits = fuzz_byte(d->in);
    for (int64_t i = 0; i < gr_numel(x); i++) {
        bits = bits * 1664525 + 1013904223; /* Numerical Recipes; its upper bits serve */
        if ((int)(bits >> 29) <= odds) gr_data(x)[i] = (gr_real)shown[bits >> 27 & 3];
    }
    if (layout == 1 && n >= 2) return gr_transpose(x, -1, -2);
    return layout == 2 && n >= 1 ? gr_slice(x, -1, 1, GR_END, 2) : x;
}

/* The tensor of a mask, or now and then what is none. */
static gr_tensor *unless_wrong(const drawing *d, gr_tensor *x, bool *valid) {
    static gr_context *foreign;
    if (!wrong(d)) return x;
    *valid = false;
    if (fuzz_below(d->in, 2)) return NULL;
    if (!foreign) foreign = gr_context_new();
    gr_context_reset(foreign);
    return gr_zeros(foreign, gr_shape_of(x));
}

static gr_tensor *draw_lengths(const drawing *d, bool *valid) {
    const bool off = wrong(d);
    gr_tensor *len = gr_zeros(d->ctx, GR_SHAPE(d->batches + off));
    for (int64_t b = 0; b < gr_numel(len); b++) gr_data(len)[b] = (gr_real)(fuzz_below(d->in, 2 * d->keys + 8) - 3) / 2;
    if (gr_numel(len) > 0 && fuzz_below(d->in, 16) == 1) gr_data(len)[0] = (gr_real)(double)NAN;
    *valid = *valid && !off;
    return len;
}

static int64_t parts(int64_t n, int64_t size) { return n / size + (n % size != 0); }

static gr_tensor *draw_layout(const drawing *d, int64_t block, bool *valid) {
    const int64_t least = parts(d->keys, block > 0 ? block : 1);
    const bool off = wrong(d) && least > 0;
    const int64_t m = least + fuzz_below(d->in, 2), n = off ? least - 1 : least + fuzz_below(d->in, 2);
    *valid = *valid && !off && block > 0;
    return flags(d, GR_SHAPE(m, n));
}

/* Of the shape of the scores, of fewer axes, or with some of size 1. */
static gr_tensor *draw_allow(const drawing *d, bool *valid) {
    gr_shape shape = d->scores;
    const int front = (int)fuzz_below(d->in, shape.ndim + 1), off = wrong(d);
    shape.ndim -= front;
    for (int i = 0; i < shape.ndim; i++) shape.dim[i] = fuzz_below(d->in, 3) ? d->scores.dim[i + front] : 1;
    if (off && shape.ndim > 0) shape.dim[0] = d->scores.dim[front] + 2, *valid = false;
    return flags(d, shape);
}

/* -- Definitions --------------------------------------------------------------------------------------------------- */

/* What a word shows at each element; x: its lengths, its layout, or allow in the shape of the scores. */
static void define(const drawing *d, fuzz_mask *m, int word, int64_t n, gr_tensor *x) {
    static gr_real values[FUZZ_MASK_MOST];
    if (x) DEMAND(gr_numel(x) <= FUZZ_MASK_MOST && gr_to_array(x, values));
    for (int64_t at = 0; at < d->count; at++) {
        const int64_t i = at / d->keys % d->queries, j = at % d->keys, t = i + d->keys - d->queries;
        const int64_t batch = at / (d->count / d->batches);
        bool sees = true;
        if (word == CAUSAL) sees = j <= t;
        if (word == WINDOW) sees = llabs(t - j) < n;
        if (word == GLOBAL) sees = j < n || (0 <= t && t < n);
        if (word == PADDING) sees = (double)j < (double)values[batch];
        if (word == BLOCKS) sees = t >= 0 && values[t / n * gr_dim(x, -1) + j / n] != 0;
        if (word == TENSOR) sees = values[at] != 0;
        m->see[at] = sees;
    }
}

static void draw_word(const drawing *d, fuzz_mask *m) {
    static const int64_t far[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX / 2, (int64_t)1 << 32};
    const int word = (int)fuzz_below(d->in, WORDS);
    int64_t n = fuzz_below(d->in, 16) == 1 ? far[fuzz_below(d->in, 4)] : fuzz_below(d->in, d->keys + 3);
    gr_tensor *x = NULL, *given = NULL;
    m->valid = true;
    if (word == WINDOW || word == BLOCKS) n += n == 0;
    if ((word == WINDOW || word == BLOCKS || word == GLOBAL) && wrong(d))
        n = word != GLOBAL && fuzz_below(d->in, 2) ? 0 : -1 - far[fuzz_below(d->in, 4)], m->valid = false;
    if (word == PADDING) given = x = draw_lengths(d, &m->valid);
    if (word == BLOCKS) given = x = draw_layout(d, n, &m->valid);
    if (word == TENSOR) given = draw_allow(d, &m->valid), x = m->valid ? gr_expand(given, d->scores) : NULL;
    DEMAND_SAYING(gr_ok(d->ctx), "%s", gr_error_message(d->ctx));
    if (given) given = unless_wrong(d, given, &m->valid);
    const gr_mask mask[WORDS] = {gr_mask_all(),        gr_mask_causal(),       gr_mask_window(n),
                                 gr_mask_global(n),    gr_mask_padding(given), gr_mask_blocks(given, n),
                                 gr_mask_tensor(given)};
    m->mask = mask[word];
    if (m->valid) define(d, m, word, n, x);
}

/* -- Expressions --------------------------------------------------------------------------------------------------- */

/* Everything or x is everything, and does not ask what x is; everything and x is x. */
static void join(const drawing *d, fuzz_mask *a, const fuzz_mask *b, bool both) {
    const int words = a->mask.count + b->mask.count + 1;
    const bool simple = a->mask.count == 0 || b->mask.count == 0;
    bool valid = a->valid && b->valid && words <= GR_MASK_WORDS;
    if (simple && both) valid = a->mask.count == 0 ? b->valid : a->valid;
    if (simple && !both) valid = true;
    for (int64_t at = 0; at < d->count; at++)
        a->see[at] = simple && !both ? 1 : both ? a->see[at] && b->see[at] : a->see[at] || b->see[at];
    a->valid = valid;
    a->mask = (both ? gr_mask_and : gr_mask_or)(a->mask, b->mask);
    DEMAND(simple || words > GR_MASK_WORDS || a->mask.count == words);
}

const fuzz_mask *fuzz_draw_mask(fuzz_bytes *in, gr_context *ctx, gr_shape scores, int leaves, bool hostile) {
    enum { MOST = 12 };
    static fuzz_mask part[MOST];
    const int64_t first = scores.ndim > 2 ? scores.dim[0] : 1;
    drawing d = {in, ctx, scores, scores.dim[scores.ndim - 2], scores.dim[scores.ndim - 1], first, 1, hostile};
    for (int i = 0; i < scores.ndim; i++) d.count *= scores.dim[i];
    DEMAND(leaves >= 1 && leaves <= MOST && d.count <= FUZZ_MASK_MOST);
    for (int i = 0; i < leaves; i++) draw_word(&d, &part[i]);
    for (int left = leaves; left > 1; left--) /* the last one with any other */
        join(&d, &part[fuzz_below(in, left - 1)], &part[left - 1], fuzz_below(in, 2) == 0);
    return &part[0];
}
