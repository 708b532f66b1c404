#include "generate.h"
#include "internal.h"

#include "../tensor/scalar.h"

#include <math.h>
#include <stdlib.h>

/* -- One id from logits -------------------------------------------------------------------------------------------- */

typedef struct candidate {
    double logit, weight; /* weight: e^((logit - largest) / temperature), not normalised */
    int64_t id;
} candidate;

/* Largest logit first; ties by id, so that the order does not depend on the sort. */
static int by_logit(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The first index of the largest logit; -1, with an error, if there is nothing that can be drawn. */
static int64_t largest(gr_context *ctx, int64_t n, const candidate *c) {
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++) {
        if (!(c[i].logit < INFINITY)) {
            gr_fail(ctx, "sample", "logit %lld is %g", (long long)i, c[i].logit);
            return -1;
        }
        if (c[i].logit > (best < 0 ? -INFINITY : c[best].logit)) best = i;
    }
    if (best < 0) gr_fail(ctx, "sample", "none of %lld logits is above -inf", (long long)n);
    return best;
}

/* How many of n sorted candidates hold the share p of the weight: the fewest, at least one. */
static int64_t nucleus(int64_t n, const candidate *c, double p) {
    double total = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) total += c[i].weight;
    for (int64_t i = 0; i < n; i++) {
        sum += c[i].weight;
        if (sum >= p * total) return i + 1;
    }
    return n;
}

/* Candidate i with probability weight[i] / total. The bound is strict, so a weight of 0 is passed over. */
static int64_t draw(int64_t n, const candidate *c, gr_rng *rng) {
    double total = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) total += c[i].weight;
    double at = gr_rng_uniform(rng) * total;
    int64_t last = 0;
    for (int64_t i = 0; i < n; i++) {
        if (c[i].weight > 0) last = i;
        sum += c[i].weight;
        if (at < sum) return c[i].id;
    }
    return c[last].id; /* at was rounded up to the total */
}

static bool sampling_ok(gr_tensor *logits, gr_sampling how, gr_rng *rng) {
    gr_context *ctx = gr_context_of(logits);
    if (!logits || !gr_ok(ctx)) return false;
    if (gr_is_inert(logits))
        gr_fail(ctx, "sample", "logits were made after an error that has been cleared since");
    else if (gr_ndim(logits) != 1)
        gr_fail(ctx, "sample", "%s is not (V)", gr_show(logits, "logits"));
    if (!(how.temperature >= 0 && how.temperature < INFINITY))
        gr_fail(ctx, "sample", "temperature %g; it must be finite and not negative", how.temperature);
    if (how.top_k < 0) gr_fail(ctx, "sample", "top_k %lld is negative", (long long)how.top_k);
    if (!(how.top_p >= 0 && how.top_p <= 1)) gr_fail(ctx, "sample", "top_p %g is not in [0, 1]", how.top_p);
    if (how.temperature > 0 && !rng) gr_fail(ctx, "sample", "rng is NULL");
    return gr_ok(ctx);
}

int64_t gr_sample(gr_tensor *logits, gr_sampling how, gr_rng *rng) {
    if (!sampling_ok(logits, how, rng)) return -1;
    const int64_t all = gr_dim(logits, 0), stride = gr_stride(logits, 0);
    if ((uint64_t)all > SIZE_MAX / 2 / sizeof(candidate)) /* an expanded view may be larger than any memory */
        gr_fail(logits->ctx, "sample", "%s are too many", gr_show(logits, "logits"));
    candidate *c = gr_alloc(logits->ctx, false, (size_t)all * sizeof *c);
    if (!c) return -1;
    for (int64_t i = 0; i < all; i++) c[i] = (candidate){.logit = (double)gr_data(logits)[i * stride], .id = i};
    const int64_t best = largest(logits->ctx, all, c);
    if (best < 0 || how.temperature == 0) return best;

    const double top = c[best].logit;
    for (int64_t i = 0; i < all; i++) c[i].weight = gr_double_exp((c[i].logit - top) / how.temperature);
    const bool some = how.top_k > 0 && how.top_k < all;
    const bool core = how.top_p > 0 && how.top_p < 1;
    if (some || core) qsort(c, (size_t)all, sizeof *c, by_logit);
    int64_t n = some ? how.top_k : all;
    if (core) n = nucleus(n, c, how.top_p);
    return draw(n, c, rng);
}

/* -- A continuation ------------------------------------------------------------------------------------------------ */

/* The id after ids[0 ... count). */
static int64_t next_id(gr_gpt *gpt, const int32_t *ids, int64_t count, const gr_generation *g) {
    const int64_t time = count < gpt->config.context ? count : gpt->config.context;
    gr_no_grad_begin(gpt->ctx);
    gr_tensor *logits = gr_gpt_forward(gpt, (gr_tokens){ids + count - time, 1, time}); /* (1, T, V) */
    gr_tensor *last = gr_select(gr_select(logits, 0, 0), 0, time - 1);                 /* (V) */
    const int64_t id = gr_sample(last, g->how, g->rng);
    gr_no_grad_end(gpt->ctx);
    return id;
}

bool gr_gpt_generate(gr_gpt *gpt, int32_t *ids, int64_t count, gr_generation g) {
    if (!gpt || !gpt->ctx) return false;
    if (!ids) gr_fail(gpt->ctx, "generate", "ids is NULL");
    if (count < 1 || g.total < count)
        gr_fail(gpt->ctx, "generate", "from %lld to %lld ids; at least 1 must be given, and no fewer wanted",
                (long long)count, (long long)g.total);
    const bool training = gpt->drop.training;
    gr_gpt_training(gpt, false);
    for (int64_t n = count; n < g.total && gr_ok(gpt->ctx); n++) {
        const int64_t id = next_id(gpt, ids, n, &g);
        gr_context_reset(gpt->ctx);
        if (id < 0) break;
        ids[n] = (int32_t)id;
        if (g.emit) g.emit(ids[n], g.arg);
    }
    gr_gpt_training(gpt, training);
    return gr_ok(gpt->ctx);
}
