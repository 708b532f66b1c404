#include "lm.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* -- What may be shown of a text that still grows ------------------------------------------------------------------ */

/* Bytes of the character that a byte of UTF-8 begins; 1 for one that begins none. */
static size_t character(uint8_t first) {
    if (first >= 0xc2 && first <= 0xdf) return 2;
    if (first >= 0xe0 && first <= 0xef) return 3;
    if (first >= 0xf0 && first <= 0xf4) return 4;
    return 1;
}

/* The end of the whole characters of text[0 ... end): less than end if the last one waits for more bytes. */
static size_t whole(const uint8_t *text, size_t end) {
    for (size_t back = 1; back <= 3 && back <= end; back++) {
        const uint8_t byte = text[end - back];
        if (byte >= 0x80 && byte <= 0xbf) continue; /* inside a character */
        return character(byte) > back ? end - back : end;
    }
    return end;
}

typedef struct writer {
    const gr_tokenizer *tokenizer;
    const char *stop;
    size_t stop_size, size, shown; /* size: bytes of the text so far, of which so many are printed */
    uint8_t *text;
} writer;

static void show(writer *w, size_t end) {
    if (end <= w->shown) return;
    fwrite(w->text + w->shown, 1, end - w->shown, stdout);
    fflush(stdout);
    w->shown = end;
}

/* The longest end of the text with which the stop text begins: it must not be shown yet. */
static size_t begun_stop(const writer *w) {
    size_t n = w->stop_size < w->size ? w->stop_size : w->size;
    while (n > 0 && memcmp(w->text + w->size - n, w->stop, n) != 0) n--;
    return n;
}

static bool write_byte(int32_t id, void *arg) {
    writer *w = arg;
    w->text[w->size++] = w->tokenizer->byte[id];
    const size_t held = begun_stop(w);
    if (held > 0 && held == w->stop_size) {
        w->size -= held;
        return false;
    }
    show(w, whole(w->text, w->size - held));
    return !ferror(stdout) && !lm_stopped; /* ferror: nobody reads on */
}

/* -- A sample ------------------------------------------------------------------------------------------------------ */

/* The stream of the random numbers that text is drawn with; training has others. */
enum { SAMPLE_STREAM = GR_STREAM_USER };

gr_rng lm_sample_rng(const lm_settings *set) { return gr_rng_stream(gr_rng_seed((uint64_t)set->seed), SAMPLE_STREAM); }

/* What a prompt that was not given is: a line break, or the first byte of the vocabulary when it has none. */
static int32_t first_id(const gr_tokenizer *tokenizer) { return tokenizer->id['\n'] >= 0 ? tokenizer->id['\n'] : 0; }

void lm_continue(const lm_settings *set, gr_gpt *gpt, const gr_tokenizer *tokenizer, lm_text prompt, gr_rng *rng) {
    const char *stop = set->stop ? set->stop : "";
    writer w = {.tokenizer = tokenizer, .stop = stop, .stop_size = strlen(stop)};
    int64_t count = (int64_t)prompt.size;
    int32_t *ids = lm_encode(gpt->ctx, tokenizer, prompt, (size_t)set->bytes);
    if (!ids) return;
    w.text = malloc((size_t)set->bytes + 1);
    if (!w.text) gr_fail(gpt->ctx, "out of memory", "for a sample of %" PRId64 " bytes", set->bytes);
    fwrite(prompt.bytes, 1, prompt.size, stdout);
    if (count == 0) ids[count++] = first_id(tokenizer);
    if (w.text)
        gr_gpt_generate(gpt, ids, count,
                        (gr_generation){.total = count + set->bytes,
                                        .how = {set->temperature, set->top_k, set->top_p},
                                        .rng = rng,
                                        .emit = write_byte,
                                        .arg = &w});
    show(&w, w.size);
    putchar('\n');
    free(w.text);
    free(ids);
}

int lm_sample(const lm_settings *set) {
    if (lm_check_prompt(set, false) != 0) return LM_USAGE;
    gr_context *ctx = gr_context_new();
    gr_tokenizer tokenizer;
    gr_gpt *gpt = lm_load(ctx, set->model, &tokenizer);
    const lm_text prompt = lm_prompt(ctx, set);
    gr_rng rng = lm_sample_rng(set);
    for (int64_t i = 0; i < set->samples && gr_ok(ctx) && !ferror(stdout); i++) {
        if (i > 0) puts("---");
        lm_continue(set, gpt, &tokenizer, prompt, &rng);
    }
    free(prompt.owned);
    return lm_end(set, ctx);
}
