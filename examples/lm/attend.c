#include "figure.h"

#include <inttypes.h>
#include <stdlib.h>

/* The layers and heads that --layer and --head want. */
static lm_view wanted_view(gr_context *ctx, const lm_settings *set, const gr_gpt *gpt) {
    const int64_t layers = gpt->config.layers, heads = gpt->config.heads;
    if (set->layer > layers)
        gr_fail(ctx, "--layer", "%" PRId64 " is none of the model's layers 1 to %" PRId64, set->layer, layers);
    if (set->head > heads)
        gr_fail(ctx, "--head", "%" PRId64 " is none of the model's heads 1 to %" PRId64, set->head, heads);
    const bool every_layer = set->layer == 0, every_head = set->head == 0;
    return (lm_view){every_layer ? 0 : set->layer - 1, every_layer ? layers : 1, every_head ? 0 : set->head - 1,
                     every_head ? heads : 1};
}

static void check_text(gr_context *ctx, const gr_gpt *gpt, lm_text text) {
    if (gr_ok(ctx) && gpt->config.style.kind == GR_LINEAR)
        gr_fail(ctx, "attend", "linear attention has no weights that could be shown");
    if (gr_ok(ctx) && text.size == 0) gr_fail(ctx, text.origin, "is empty; the text to show is wanted");
    if (gr_ok(ctx) && text.size > (size_t)gpt->config.context)
        gr_fail(ctx, text.origin, "has %zu bytes; the model sees %" PRId64 " at a time", text.size,
                gpt->config.context);
}

int lm_attend(const lm_settings *set) {
    if (lm_check_prompt(set, true) != 0) return LM_USAGE;
    gr_context *ctx = gr_context_new();
    gr_tokenizer tokenizer;
    char path[LM_PATH];
    const char *out = *set->out ? set->out : lm_home(ctx, set->model, path);
    lm_spare(ctx, set, out, set->model);
    lm_spare(ctx, set, out, set->prompt_file);
    gr_gpt *gpt = lm_load(ctx, set->model, &tokenizer);
    const lm_text text = lm_prompt(ctx, set);
    check_text(ctx, gpt, text);
    const lm_view view = wanted_view(ctx, set, gpt);
    const int64_t n = (int64_t)text.size;
    int32_t *ids = lm_encode(ctx, &tokenizer, text, 0);
    if (ids) {
        lm_attention a = lm_attention_of(gpt, &tokenizer, ids, n);
        if (gr_ok(ctx)) lm_print_attention(&a, view);
        if (gr_ok(ctx) && lm_make_directory(ctx, out)) {
            const bool drawn = lm_draw_attention(set, ctx, out, "attend", &a, view);
            if (gr_ok(ctx))
                printf("%s/attend.tsv and attend.gp%s\n", out,
                       drawn ? ", drawn as attend.svg, and attend.png where this gnuplot can" : "");
        }
        lm_attention_free(&a);
    }
    free(ids);
    free(text.owned);
    return lm_end(set, ctx);
}
