#include "lm.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int32_t lm_first_id(const gr_tokenizer *tokenizer) { return tokenizer->id['\n'] >= 0 ? tokenizer->id['\n'] : 0; }

int32_t *lm_encode(gr_context *ctx, const gr_tokenizer *tokenizer, lm_text text, size_t room) {
    if (!gr_ok(ctx)) return NULL;
    const bool fits = room <= SIZE_MAX / sizeof(int32_t) - text.size - 1;
    int32_t *ids = fits ? malloc((text.size + 1 + room) * sizeof *ids) : NULL;
    if (!ids) gr_fail(ctx, text.origin, "no memory for %zu bytes of text and a sample of %zu", text.size, room);
    for (size_t i = 0; ids && i < text.size; i++) {
        const uint8_t byte = (uint8_t)text.bytes[i];
        ids[i] = tokenizer->id[byte];
        if (ids[i] < 0) gr_fail(ctx, text.origin, "byte 0x%02X at offset %zu: the model knows no such byte", byte, i);
    }
    if (gr_ok(ctx)) return ids;
    free(ids);
    return NULL;
}

static void print_byte(int32_t id, void *arg) {
    const gr_tokenizer *tokenizer = arg;
    putchar(tokenizer->byte[id]);
    fflush(stdout);
}

/* The stream of the random numbers that text is drawn with; training has others. */
enum { SAMPLE_STREAM = GR_STREAM_USER };

void lm_continue(const lm_settings *set, gr_gpt *gpt, const gr_tokenizer *tokenizer, int64_t bytes) {
    gr_generation g = {.how = {set->temperature, set->top_k, set->top_p}, .emit = print_byte};
    gr_rng rng = gr_rng_stream(gr_rng_seed((uint64_t)set->seed), SAMPLE_STREAM);
    const lm_text prompt = {"--prompt", set->prompt, strlen(set->prompt)};
    int64_t count = (int64_t)prompt.size;
    int32_t *ids = lm_encode(gpt->ctx, tokenizer, prompt, (size_t)bytes);
    if (!ids) return;
    if (count == 0) ids[count++] = lm_first_id(tokenizer);
    fputs(set->prompt, stdout);
    gr_tokenizer copy = *tokenizer;
    g.total = count + bytes, g.rng = &rng, g.arg = &copy;
    gr_gpt_generate(gpt, ids, count, g);
    putchar('\n');
    free(ids);
}

int lm_sample(const lm_settings *set) {
    gr_context *ctx = gr_context_new();
    char path[LM_PATH] = "";
    gr_tokenizer tokenizer;
    struct stat info;
    const bool directory = stat(set->model, &info) == 0 && S_ISDIR(info.st_mode);
    const char *file = directory ? lm_path(ctx, path, set->model, LM_MODEL) : set->model;
    gr_gpt *gpt = gr_gpt_load(ctx, file, &tokenizer);
    gr_context_reset(ctx);
    lm_continue(set, gpt, &tokenizer, set->bytes);
    return lm_end(set, ctx);
}
