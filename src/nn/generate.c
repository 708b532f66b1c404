#include "generate.h"
#include "internal.h"

#include "../tensor/iterate.h"
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

/* How many of n sorted candidates hold the share p < 1 of the weight: the fewest, at least one. */
static int64_t nucleus(int64_t n, const candidate *c, double p) {
    double total = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) total += c[i].weight;
    int64_t count = 0;
    do sum += c[count++].weight;
    while (sum < p * total); /* ends: all of them are the total, added in the same order */
    return count;
}

/* Candidate i with probability weight[i] / total. The bound is strict, so a weight of 0 is passed over; and a uniform
 * number is at most 1 - 2^-53, times the total (at least 1) always below it, so the walk ends. */
static int64_t draw(int64_t n, const candidate *c, gr_rng *rng) {
    double total = 0;
    for (int64_t i = 0; i < n; i++) total += c[i].weight;
    const double at = gr_rng_uniform(rng) * total;
    double sum = c[0].weight;
    int64_t i = 0;
    while (at >= sum) sum += c[++i].weight;
    return c[i].id;
}

static bool sampling_ok(gr_tensor *logits, gr_sampling how, const gr_rng *rng) {
    gr_context *ctx = gr_context_of(logits);
    if (!logits || !gr_ok(ctx)) return false;
    if (gr_check_alive(logits, "sample", "the tensor of logits") && gr_ndim(logits) != 1)
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
    candidate *c = gr_alloc_array(logits->ctx, false, all, sizeof *c);
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

/* -- A model as generation wants it -------------------------------------------------------------------------------- */

/* One token at a time reads every weight once and multiplies with it once: it is bound by memory, and a row of outputs
 * is computed together when their weights lie side by side. So the decoder has the weights of its linear layers with
 * the outputs innermost; and room for the keys and values of every layer. */
static gr_tensor *new_packed(gr_context *ctx, const gr_tensor *w) {
    gr_tensor *x = gr_new(ctx, "generate", true, GR_SHAPE(w->shape.dim[1], w->shape.dim[0]));
    if (gr_is_inert(x)) return x;
    x->shape = w->shape;
    x->stride[0] = 1, x->stride[1] = w->shape.dim[0];
    return x;
}

/* Calls visit with each weight of the model that the decoder has packed, and the decoder's. */
static void each_packed(gr_gpt *gpt, gr_decoder *d, void (*visit)(gr_tensor *w, gr_tensor **packed)) {
    for (int64_t i = 0; i < gpt->config.layers && gr_ok(gpt->ctx); i++) {
        gr_block_layer *from = &gpt->h[i], *to = &d->gpt.h[i];
        visit(from->attn.c_attn.weight, &to->attn.c_attn.weight);
        visit(from->attn.c_proj.weight, &to->attn.c_proj.weight);
        visit(from->mlp.c_fc.weight, &to->mlp.c_fc.weight);
        visit(from->mlp.c_proj.weight, &to->mlp.c_proj.weight);
    }
    if (gr_ok(gpt->ctx)) visit(gpt->wte.weight, &d->head);
}

static void make_packed(gr_tensor *w, gr_tensor **packed) { *packed = new_packed(w->ctx, w); }
static void pack(gr_tensor *w, gr_tensor **packed) { gr_run_map(GR_MAP_copy, 0, *packed, 1, &w); }

/* Keys lie transposed: the scores of one query are then a product that reads them where they are. */
static void make_cache(const gr_gpt *gpt, gr_kv_cache *kv) {
    const int64_t heads = gpt->config.heads, time = gpt->config.context, size = gpt->config.width / heads;
    kv->k = gr_new(gpt->ctx, "generate", true, GR_SHAPE(1, heads, size, time));
    kv->v = gr_new(gpt->ctx, "generate", true, GR_SHAPE(1, heads, time, size));
    if (!gr_ok(gpt->ctx)) return;
    kv->k->shape = kv->v->shape;
    kv->k->stride[2] = 1, kv->k->stride[3] = time;
}

static gr_decoder *make_decoder(gr_gpt *gpt) {
    gr_context *ctx = gpt->ctx;
    const int64_t layers = gpt->config.layers;
    gr_decoder *d = gr_alloc(ctx, true, sizeof *d);
    gr_block_layer *h = gr_alloc_array(ctx, true, layers, sizeof *h);
    gr_tensor **weights = gr_alloc_array(ctx, true, layers, sizeof *weights);
    gr_kv_cache *kv = gr_alloc_array(ctx, true, layers, sizeof *kv);
    if (!d || !h || !weights || !kv) return NULL;
    *d = (gr_decoder){*gpt, kv, NULL, false};
    d->gpt.h = h, d->gpt.weights = weights;
    for (int64_t i = 0; i < layers; i++) {
        h[i] = gpt->h[i];
        make_cache(gpt, &kv[i]);
    }
    each_packed(gpt, d, make_packed);
    return gr_ok(ctx) ? d : NULL;
}

static void forget(gr_decoder *d) {
    for (int64_t i = 0; i < d->gpt.config.layers; i++) d->kv[i].past = 0;
}

/* With the weights as they are now, without dropout, remembering nothing. */
static gr_decoder *decoder_of(gr_gpt *gpt) {
    if (!gpt->h) return NULL;
    if (!gpt->decoder) gpt->decoder = make_decoder(gpt);
    gr_decoder *d = gpt->decoder;
    if (!d) return NULL;
    each_packed(gpt, d, pack);
    d->gpt.keep_weights = false; /* the same bits whatever the model is asked to show */
    gr_gpt_training(&d->gpt, false);
    forget(d);
    return d;
}

/* -- A continuation ------------------------------------------------------------------------------------------------ */

/* The id after ids[0 ... count). The decoder remembers the ids up to its past; when there is no room for what came
 * since, it keeps the younger half of its context. */
static int64_t next_id(gr_decoder *d, const int32_t *ids, int64_t count, int64_t *begin, const gr_generation *g) {
    const int64_t context = d->gpt.config.context;
    if (count - *begin > context) {
        *begin = count - (context + 1) / 2;
        forget(d);
    }
    const int64_t fed = *begin + d->kv[0].past, time = count - fed;
    gr_no_grad_begin(d->gpt.ctx);
    gr_tensor *logits = gr_gpt_forward_after(&d->gpt, (gr_tokens){ids + fed, 1, time}, d->kv, d->head); /* (1, T, V) */
    gr_tensor *last = gr_select(gr_select(logits, 0, 0), 0, time - 1);                                  /* (V) */
    const int64_t id = gr_sample(last, g->how, g->rng);
    gr_no_grad_end(d->gpt.ctx);
    return id;
}

bool gr_gpt_generate(gr_gpt *gpt, int32_t *ids, int64_t count, gr_generation g) {
    if (!gpt || !gpt->ctx) return false;
    if (!ids) {
        gr_fail(gpt->ctx, "generate", "ids is NULL");
        return false;
    }
    if (!gr_check_made(gpt->ctx, "generate", "the model", gpt->h)) return false;
    if (count < 1 || g.total < count)
        gr_fail(gpt->ctx, "generate", "from %lld to %lld ids; at least 1 must be given, and no fewer wanted",
                (long long)count, (long long)g.total);
    if (gpt->decoder && gpt->decoder->busy)
        gr_fail(gpt->ctx, "generate", "the model is writing already: emit may not make it write again");
    gr_decoder *d = gr_ok(gpt->ctx) ? decoder_of(gpt) : NULL;
    if (d) d->busy = true;
    int64_t begin = 0;
    for (int64_t n = count; d && n < g.total && gr_ok(gpt->ctx); n++) {
        const gr_mark before = gr_mark_step(gpt->ctx);
        const int64_t id = next_id(d, ids, n, &begin, &g);
        gr_rewind_step(gpt->ctx, &before);
        if (id < 0) break;
        ids[n] = (int32_t)id;
        if (g.emit && !g.emit(ids[n], g.arg)) break;
    }
    if (d) d->busy = false;
    return gr_ok(gpt->ctx);
}
