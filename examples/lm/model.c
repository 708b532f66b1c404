#include "lm.h"

#include "nn/internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

gr_gpt_config lm_gpt_config(const lm_settings *set, int64_t vocab) {
    /* the words of --attention are in the order of gr_attention_kind, from GR_TEXTBOOK on */
    const gr_attention_kind kind = (gr_attention_kind)(GR_TEXTBOOK + set->attention);
    return (gr_gpt_config){.vocab = vocab,
                           .context = set->context,
                           .layers = set->layers,
                           .heads = set->heads,
                           .width = set->width,
                           .dropout = set->dropout,
                           .bias = set->bias,
                           .style = {kind, set->window, set->global, set->block},
                           .positions = (gr_positions)set->positions,
                           .gelu = (gr_gelu_form)set->gelu,
                           .seed = (uint64_t)set->seed};
}

int lm_check_model(const lm_settings *set) {
    if (set->width % set->heads != 0)
        return lm_wrong_usage(set, "--heads %" PRId64 " does not divide --width %" PRId64, set->heads, set->width);
    if (set->positions == GR_ROTARY && set->width / set->heads % 2 != 0)
        return lm_wrong_usage(
            set, "--positions rotary turns pairs, but --width %" PRId64 " / --heads %" PRId64 " = %" PRId64 " is odd",
            set->width, set->heads, set->width / set->heads);
    return 0;
}

int64_t lm_first_broken(gr_tensor *x) {
    int64_t i = 0;
    while (i < gr_numel(x) && isfinite(gr_data(x)[i])) i++;
    return i < gr_numel(x) ? i : -1;
}

gr_gpt *lm_load(gr_context *ctx, const char *model, gr_tokenizer *tokenizer) {
    char path[LM_PATH] = "";
    const char *file = lm_is_directory(ctx, model) ? lm_path(ctx, path, model, LM_MODEL) : model;
    lm_check_holds(ctx, model, "model", LM_MODEL);
    gr_gpt *gpt = gr_gpt_load(ctx, file, tokenizer);
    for (int i = 0; i < gpt->count && gr_ok(ctx); i++) {
        gr_tensor *w = gr_parameter_at(ctx, gpt->first + i);
        const int64_t at = lm_first_broken(w);
        if (at >= 0) gr_fail(ctx, file, "%s: element %" PRId64 " is not finite", gr_name(w), at);
    }
    gr_gpt_training(gpt, false);
    gr_context_reset(ctx);
    return gpt;
}

int lm_check_prompt(const lm_settings *set, bool needed) {
    if (*set->prompt && *set->prompt_file)
        return lm_wrong_usage(set, "--prompt and --prompt-file are two prompts; one is wanted");
    if (needed && !*set->prompt && !*set->prompt_file)
        return lm_wrong_usage(set, "--prompt TEXT is missing: the text to show; or --prompt-file FILE");
    return 0;
}

lm_text lm_prompt(gr_context *ctx, const lm_settings *set) {
    const char *file = set->prompt_file;
    lm_text text = {"--prompt", set->prompt, strlen(set->prompt), NULL};
    if (!*file) return text;
    text.origin = lm_shown(file);
    text.bytes = text.owned = lm_read(ctx, file, &text.size);
    return text;
}

int32_t *lm_encode(gr_context *ctx, const gr_tokenizer *tokenizer, lm_text text, size_t room) {
    if (!gr_ok(ctx)) return NULL;
    const bool fits = room <= SIZE_MAX / sizeof(int32_t) - text.size - 1;
    int32_t *ids = fits ? malloc((text.size + 1 + room) * sizeof *ids) : NULL;
    if (!ids) gr_fail(ctx, "out of memory", "for %zu bytes of text and %zu of a sample", text.size, room);
    if (ids && gr_encode_from(ctx, text.origin, tokenizer, (const uint8_t *)text.bytes, text.size, ids)) return ids;
    free(ids);
    return NULL;
}
