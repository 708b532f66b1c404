#include "lm.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

typedef struct measured {
    gr_context *ctx;
    gr_gpt *gpt;
    gr_corpus *corpus;
    gr_tokenizer tokenizer;
    gr_part part;   /* what is measured */
    size_t size;    /* bytes of it */
    uint8_t *bytes; /* batch context + 1 of each, room for the windows at hand */
    int32_t *ids;
} measured;

/* The sum of -ln p over the n bytes behind place at of the text, in windows of `time`. */
static double loss_of(measured *m, size_t at, int64_t windows, int64_t time) {
    const int64_t n = windows * time;
    const size_t size = (size_t)n + 1;
    if (!gr_corpus_read(m->corpus, m->part, at, size, m->bytes)) return (double)NAN;
    if (!gr_encode(m->ctx, &m->tokenizer, m->bytes, size, m->ids)) return (double)NAN;
    gr_tensor *logits = gr_gpt_forward(m->gpt, (gr_tokens){m->ids, windows, time});
    const double mean = gr_item(gr_cross_entropy(logits, (gr_tokens){m->ids + 1, windows, time}));
    gr_context_reset(m->ctx);
    return mean * (double)n;
}

/* Consecutive windows of the context's length, the last one shorter: each byte but the first is predicted once. */
static double measure(measured *m, int64_t batch) {
    const int64_t time = m->gpt->config.context, total = (int64_t)m->size - 1;
    double sum = 0;
    gr_no_grad_begin(m->ctx);
    for (int64_t at = 0; at < total && gr_ok(m->ctx);) {
        const int64_t left = (total - at) / time, windows = left < batch ? left : batch;
        const bool rest = windows == 0;
        sum += loss_of(m, (size_t)at, rest ? 1 : windows, rest ? total - at : time);
        at = rest ? total : at + windows * time;
    }
    gr_no_grad_end(m->ctx);
    return sum / (double)total;
}

/* The corpus, and which of its bytes: all, or the share at its end. */
static void open_text(measured *m, const lm_settings *set) {
    gr_corpus_config config = {.tokenizer = &m->tokenizer, .validation = set->validation_share};
    if (!gr_ok(m->ctx)) return;
    m->corpus = gr_corpus_new(m->ctx, set->data.item, set->data.count, config);
    m->part = set->validation_share > 0 ? GR_VALIDATION : GR_WHOLE;
    m->size = gr_corpus_size(m->corpus, m->part);
    if (gr_ok(m->ctx) && m->size < 2)
        gr_fail(m->ctx, lm_shown(set->data.item[0]), "%zu bytes to measure; at least 2 are needed", m->size);
}

static void report(const measured *m, double loss) {
    const double byte = log(2);
    printf("loss           %.4f nats a byte\n", loss);
    printf("perplexity     %.4f\n", exp(loss));
    printf("bits per byte  %.4f\n", loss / byte);
    printf("tokens         %zu of %zu bytes predicted (the first has nothing before it), in windows of %" PRId64 "\n",
           m->size - 1, m->size, m->gpt->config.context);
}

int lm_eval(const lm_settings *set) {
    measured m = {.ctx = gr_context_new()};
    m.gpt = lm_load(m.ctx, set->model, &m.tokenizer);
    open_text(&m, set);
    const size_t room = (size_t)set->batch * (size_t)m.gpt->config.context + 1;
    m.bytes = malloc(room);
    m.ids = malloc(room * sizeof *m.ids);
    if (!m.bytes || !m.ids) gr_fail(m.ctx, "eval", "no memory for %" PRId64 " windows", set->batch);
    const double loss = gr_ok(m.ctx) ? measure(&m, set->batch) : (double)NAN;
    if (gr_ok(m.ctx) && !isfinite(loss))
        gr_fail(m.ctx, "eval", "the loss is not finite: the model's numbers are too large");
    if (gr_ok(m.ctx)) report(&m, loss);
    free(m.bytes);
    free(m.ids);
    return lm_end(set, m.ctx);
}
