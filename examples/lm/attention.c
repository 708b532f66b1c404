#include "attention.h"

#include <math.h>
#include <stdlib.h>

static void label(char out[8], uint8_t byte) {
    if (byte == '\n')
        snprintf(out, 8, u8"\u21b5"); /* an arrow down and to the left */
    else if (byte == ' ')
        snprintf(out, 8, u8"\u2423"); /* an open box */
    else if (byte > ' ' && byte < 0x7f)
        snprintf(out, 8, "%c", byte);
    else
        snprintf(out, 8, "x%02X", byte);
}

lm_attention lm_attention_of(gr_gpt *gpt, const gr_tokenizer *tokenizer, const int32_t *ids, int64_t n) {
    gr_context *ctx = gpt->ctx;
    lm_attention a = {.layers = gpt->config.layers, .heads = gpt->config.heads, .n = n};
    const size_t layer = (size_t)a.heads * (size_t)n * (size_t)n;
    if (!gr_ok(ctx)) return a;
    gr_gpt_training(gpt, false);
    gr_no_grad_begin(ctx);
    gpt->keep_weights = true;
    gr_gpt_forward(gpt, (gr_tokens){ids, 1, n});
    gpt->keep_weights = false;
    gr_no_grad_end(ctx);
    if (gr_ok(ctx)) a.weight = calloc((size_t)a.layers * layer, sizeof *a.weight);
    if (gr_ok(ctx)) a.label = malloc((size_t)n * sizeof *a.label);
    if (!a.weight || !a.label) gr_fail(ctx, "attention", "no memory for %zu weights", (size_t)a.layers * layer);
    for (int64_t i = 0; i < a.layers && gr_ok(ctx); i++) gr_to_array(gpt->weights[i], a.weight + (size_t)i * layer);
    for (size_t i = 0; a.weight && gr_ok(ctx) && i < (size_t)a.layers * layer; i++)
        if (!isfinite(a.weight[i]))
            gr_fail(ctx, "attention", "a weight is not finite: the model's numbers are too large");
    for (int64_t i = 0; i < n && gr_ok(ctx); i++) label(a.label[i], tokenizer->byte[ids[i]]);
    gr_context_reset(ctx);
    if (!gr_ok(ctx)) lm_attention_free(&a);
    return a;
}

void lm_attention_free(lm_attention *a) {
    free(a->weight);
    free(a->label);
    a->weight = NULL;
    a->label = NULL;
}

const gr_real *lm_head_of(const lm_attention *a, int64_t layer, int64_t head) {
    return a->weight + (layer * a->heads + head) * a->n * a->n;
}

/* How much a head looks for what a token is, not for where it is. place[d], the mean weight of the keys d places before
 * their query, is what a head gives by position alone; the score is the largest excess over it in a row, mean over the
 * rows. The first key does not count, where a head looks when it looks for nothing, nor does the query itself. */
static double looks_for_content(const gr_real *weight, int64_t n, double *place) {
    double score = 0;
    for (int64_t d = 1; d < n - 1; d++) {
        place[d] = 0;
        for (int64_t key = 1; key + d < n; key++) place[d] += (double)weight[(key + d) * n + key];
        place[d] /= (double)(n - 1 - d);
    }
    for (int64_t query = 2; query < n; query++) {
        double most = 0;
        for (int64_t key = 1; key < query; key++) {
            const double excess = (double)weight[query * n + key] - place[query - key];
            if (excess > most) most = excess;
        }
        score += most / (double)(n - 2);
    }
    return score;
}

lm_view lm_content_head(gr_context *ctx, const lm_attention *a) {
    lm_view best = {0, 1, 0, 1};
    double most = -1, *place = malloc((size_t)a->n * sizeof *place);
    if (!place) gr_fail(ctx, "attention", "no memory for %lld places", (long long)a->n);
    for (int64_t i = 0; place && i < a->layers * a->heads; i++) {
        const double score = looks_for_content(a->weight + i * a->n * a->n, a->n, place);
        if (score <= most) continue;
        best = (lm_view){i / a->heads, 1, i % a->heads, 1};
        most = score;
    }
    free(place);
    return best;
}
