#include "lm.h"

#include "nn/files.h"
#include "nn/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>

/* ids (T) and logits (T, V) of a text, its first `context` bytes if it is longer. */
static void write_logits(const lm_settings *set, gr_gpt *gpt, const int32_t *ids, int64_t n) {
    gr_context *ctx = gpt->ctx;
    const int64_t vocab = gpt->config.vocab;
    gr_tensor *stored = gr_zeros(ctx, GR_SHAPE(n));
    for (int64_t i = 0; i < n && gr_ok(ctx); i++) gr_data(stored)[i] = (gr_real)ids[i];
    gr_no_grad_begin(ctx);
    gr_tensor *logits = gr_gpt_forward(gpt, (gr_tokens){ids, 1, n}); /* (1, T, V) */
    logits = gr_reshape(logits, GR_SHAPE(n, vocab));
    gr_no_grad_end(ctx);
    const gr_safetensors_entry entry[] = {{"ids", stored}, {"logits", logits}};
    if (gr_ok(ctx))
        gr_safetensors_write(ctx, set->out,
                             (gr_safetensors_content){.tensor = entry, .tensors = sizeof entry / sizeof *entry});
    if (gr_ok(ctx)) printf("logits of %" PRId64 " tokens, (%" PRId64 ", %" PRId64 "), in %s\n", n, n, vocab, set->out);
}

int lm_logits(const lm_settings *set) {
    gr_context *ctx = gr_context_new();
    gr_tokenizer tokenizer;
    char path[LM_PATH];
    if ((lm_is_file(set->text) && lm_same_file(ctx, set->out, set->text)) || lm_same_file(ctx, set->out, set->model))
        gr_fail(ctx, "--out", "%s is read, and would be replaced", set->out);
    if (lm_writes(ctx, ~0U, lm_home(ctx, set->model, path), set->out))
        gr_fail(ctx, "--out", "%s belongs to the model's run, and would be replaced", set->out);
    gr_can_replace(ctx, set->out);
    gr_gpt *gpt = lm_load(ctx, set->model, &tokenizer);
    lm_text text = {.origin = set->text};
    text.bytes = text.owned = gr_ok(ctx) ? lm_read(ctx, set->text, &text.size) : NULL;
    if (gr_ok(ctx) && text.size == 0) gr_fail(ctx, set->text, "is empty");
    if (gr_ok(ctx) && text.size > (size_t)gpt->config.context) {
        lm_warn(set, "%s has %zu bytes; the logits are of the first %" PRId64 ", the model's context", set->text,
                text.size, gpt->config.context);
        text.size = (size_t)gpt->config.context;
    }
    int32_t *ids = lm_encode(ctx, &tokenizer, text, 0);
    if (ids) write_logits(set, gpt, ids, (int64_t)text.size);
    free(ids);
    free(text.owned);
    return lm_end(set, ctx);
}
