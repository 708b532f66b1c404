/* Files of weights from bytes: a checkpoint (nanoGPT's among them), its tokenizer, the state of a run. All or nothing:
 * after an error the context, or the model and its optimiser, are as they were, and little memory was taken; what is
 * accepted runs, and comes back when it is saved. Bytes that begin with '{' are a header up to the first NUL, the rest
 * values; its length is then put in front, so that a header may change its size. */
#include "fuzz.h"

#include "nn/files.h"
#include "nn/internal.h"
#include "nn/safetensors.h"

enum { ROOM = 1 << 20, MIB = 1 << 20, LENGTH_SIZE = 8, GIVEN = 1, SAVED = 2 };

static size_t write_file(const uint8_t *data, size_t size) {
    static uint8_t bytes[ROOM];
    const size_t kept = size < ROOM - LENGTH_SIZE ? size : ROOM - LENGTH_SIZE;
    if (size == 0 || data[0] != '{') {
        fuzz_write(fuzz_path(GIVEN), data, size);
        return size;
    }
    const uint8_t *nul = memchr(data, 0, kept);
    const size_t length = nul ? (size_t)(nul - data) : kept, values = nul ? kept - length - 1 : 0;
    gr_store_little(length, LENGTH_SIZE, bytes);
    memcpy(bytes + LENGTH_SIZE, data, length);
    if (values > 0) memcpy(bytes + LENGTH_SIZE + length, nul + 1, values);
    fuzz_write(fuzz_path(GIVEN), bytes, LENGTH_SIZE + length + values);
    return LENGTH_SIZE + length + values;
}

/* -- What must not change ------------------------------------------------------------------------------------------ */

/* All parameters, and what the optimiser has of each, one after the other; malloc'd. */
static gr_real *values_of(gr_context *ctx, gr_adamw *adamw, size_t *count) {
    const gr_adam_state adam = adamw ? gr_adamw_state(adamw) : (gr_adam_state){.count = 0};
    const int parameters = gr_parameter_count(ctx);
    size_t at = 0;
    gr_real *out = malloc((3 * (size_t)gr_parameter_numel(ctx) + 1) * sizeof *out);
    DEMAND(out && (!adamw || adam.count == parameters));
    for (int i = 0; i < parameters; i++) {
        gr_tensor *x[] = {gr_parameter_at(ctx, i), adamw ? adam.m[i] : NULL, adamw ? adam.v[i] : NULL};
        for (int kind = 0; kind < (adamw ? 3 : 1); kind++)
            for (int64_t k = 0; k < gr_numel(x[kind]); k++) out[at++] = gr_data(x[kind])[k];
    }
    *count = at;
    return out;
}

static bool same_values(gr_context *a, gr_context *b) {
    size_t of_a, of_b;
    gr_real *x = values_of(a, NULL, &of_a), *y = values_of(b, NULL, &of_b);
    const bool same = of_a == of_b && fuzz_same_numbers(of_a, x, y);
    free(x), free(y);
    return same;
}

/* -- A checkpoint -------------------------------------------------------------------------------------------------- */

/* One token through the model, and the same model from a file of ours. */
static void check_model(gr_context *ctx, gr_gpt *gpt, const gr_tokenizer *tokenizer) {
    const int32_t id[] = {(int32_t)gpt->config.vocab - 1, 0};
    const int64_t time = gpt->config.context > 1 ? 2 : 1;
    gr_tokenizer again;
    DEMAND(tokenizer->size == gpt->config.vocab || tokenizer->size == 256);
    gr_tensor *y = gr_gpt_forward(gpt, (gr_tokens){id, 1, time});
    DEMAND_SAYING(gr_ok(ctx), "%s", gr_error_message(ctx));
    DEMAND(gr_numel(y) == time * gpt->config.vocab);
    DEMAND_SAYING(gr_gpt_save(gpt, tokenizer, fuzz_path(SAVED)), "%s", gr_error_message(ctx));
    gr_context *other = fuzz_context(1);
    gr_gpt *same = gr_gpt_load(other, fuzz_path(SAVED), &again);
    DEMAND_SAYING(gr_ok(other), "%s", gr_error_message(other));
    DEMAND(memcmp(&again, tokenizer, sizeof again) == 0 && same->config.layers == gpt->config.layers);
    DEMAND(same_values(ctx, other));
}

/* So much may a model of so many bytes take: F16 as double, with gradients, and a tensor's own size for each. */
enum { MOST_TIMES = 24 };

/* All that a model which could not be loaded leaves in a context, to say so where it is used; in multiples of 64, as
 * the arena gives it. */
enum { HANDLE = (sizeof(gr_gpt) + 63) / 64 * 64 };

static void load_model(size_t size) {
    gr_context *ctx = fuzz_context(0), *own = fuzz_context(2);
    gr_tokenizer tokenizer;
    const size_t before = gr_context_bytes(ctx);
    gr_gpt *gpt = gr_gpt_load(ctx, fuzz_path(GIVEN), &tokenizer);
    if (gr_ok(ctx)) {
        DEMAND(gpt->h && gpt->count > 0 && gr_context_bytes(ctx) - before < MOST_TIMES * size + MIB);
        check_model(ctx, gpt, &tokenizer);
    } else {
        DEMAND(gr_context_bytes(ctx) - before < size + MIB);
        DEMAND(!gpt->h && gpt->count == 0 && gr_parameter_count(ctx) == 0 && tokenizer.size == 0);
        fuzz_expect_error(ctx);
    }
    gr_tensor *mine = gr_parameter(gr_full(own, GR_SHAPE(3), 1.5), "mine"); /* in a context that has something */
    gr_context_reset(own);
    const size_t kept = gr_context_bytes(own);
    gr_gpt_load(own, fuzz_path(GIVEN), NULL);
    if (!gr_ok(own)) {
        fuzz_expect_error(own);
        gr_context_reset(own);
        DEMAND(gr_parameter_count(own) == 1 && gr_context_bytes(own) == kept + HANDLE);
    }
    for (int i = 0; i < 3; i++) DEMAND(gr_data(mine)[i] == GR_R(1.5));
}

static void load_tokenizer(size_t size) {
    gr_context *ctx = fuzz_context(0);
    gr_tokenizer tokenizer;
    const bool loaded = gr_tokenizer_load(ctx, fuzz_path(GIVEN), &tokenizer);
    DEMAND(loaded == gr_ok(ctx) && loaded == (tokenizer.size > 0));
    for (int i = 0; i < tokenizer.size; i++) DEMAND(tokenizer.id[tokenizer.byte[i]] == i);
    DEMAND(gr_context_bytes(ctx) < size + MIB);
    if (!loaded) fuzz_expect_error(ctx);
}

/* -- The state of a run -------------------------------------------------------------------------------------------- */

/* Of the run whose state is among the corpus: tests/fuzz/seeds.c. */
static const gr_gpt_config run = {.vocab = 2, .context = 2, .layers = 1, .heads = 1, .width = 2, .dropout = 0.1};

typedef struct moment {
    gr_real *values;
    size_t count;
    gr_rng drop[2];
    int64_t step;
    gr_resume at;
} moment;

static moment now(gr_gpt *gpt, gr_adamw *adamw, gr_resume at) {
    moment m = {.drop = {gpt->drop.rng, gpt->h[0].drop.rng}, .step = *gr_adamw_state(adamw).step, .at = at};
    m.values = values_of(gpt->ctx, adamw, &m.count);
    return m;
}

static bool same_moment(moment a, moment b) {
    return a.count == b.count && fuzz_same_numbers(a.count, a.values, b.values) &&
           memcmp(a.drop, b.drop, sizeof a.drop) == 0 && a.step == b.step && a.at.step == b.at.step &&
           memcmp(&a.at.rng, &b.at.rng, sizeof a.at.rng) == 0 && a.at.best == b.at.best && a.at.text == b.at.text;
}

static void load_state(size_t size) {
    gr_context *ctx = fuzz_context(0);
    gr_gpt *gpt = gr_gpt_new(ctx, run);
    gr_adamw *adamw = gr_adamw_new(ctx, (gr_adamw_config){.beta1 = 0.9});
    gr_resume at = {.step = -1};
    gr_context_reset(ctx);
    const size_t taken = gr_context_bytes(ctx);
    moment before = now(gpt, adamw, at);
    const bool loaded = gr_state_load(gpt, adamw, &at, fuzz_path(GIVEN));
    moment after = now(gpt, adamw, at);
    DEMAND(loaded == gr_ok(ctx) && gr_context_bytes(ctx) - taken < MOST_TIMES * size + MIB);
    if (loaded) {
        DEMAND_SAYING(gr_state_save(gpt, adamw, at, fuzz_path(SAVED)), "%s", gr_error_message(ctx));
        DEMAND_SAYING(gr_state_load(gpt, adamw, &at, fuzz_path(SAVED)), "%s", gr_error_message(ctx));
        moment again = now(gpt, adamw, at);
        DEMAND(same_moment(after, again));
        free(again.values);
    } else {
        DEMAND(same_moment(before, after));
        fuzz_expect_error(ctx);
    }
    free(before.values), free(after.values);
}

/* -- Any file of tensors ------------------------------------------------------------------------------------------- */

static void read_tensors(size_t size) {
    gr_context *ctx = fuzz_context(0);
    gr_safetensors in;
    if (!gr_safetensors_open(ctx, fuzz_path(GIVEN), &in)) {
        DEMAND(gr_context_bytes(ctx) < size + MIB);
        fuzz_expect_error(ctx);
    } else {
        uint64_t bytes = 0;
        DEMAND(gr_context_bytes(ctx) < size + MIB);
        for (size_t i = 0; i < in.tensors; i++) {
            const gr_stored *t = &in.tensor[i];
            bytes += t->end - t->begin;
            DEMAND(gr_safetensors_find(&in, t->name) == t);
            gr_tensor *x = gr_zeros(ctx, t->shape);
            DEMAND_SAYING(gr_ok(ctx), "%s", gr_error_message(ctx));
            DEMAND(gr_safetensors_read(&in, t, x) == (t->type != GR_OTHER_TYPE));
            if (t->type == GR_OTHER_TYPE) fuzz_expect_error(ctx);
        }
        for (size_t i = 0; i < in.notes; i++) DEMAND(gr_safetensors_note(&in, in.note[i].key) == in.note[i].value);
        DEMAND(in.start + bytes == size);
        gr_safetensors_close(&in);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const size_t written = write_file(data, size);
    read_tensors(written);
    load_tokenizer(written);
    load_model(written);
    load_state(written);
    return 0;
}
