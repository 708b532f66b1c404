#include "checkpoint.h"
#include "configuration.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* -- The vocabulary ------------------------------------------------------------------------------------------------ */

static int hex_digit(char c) {
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* "0a2041": the bytes of the ids, each larger than the one before. */
static gr_tokenizer of_hex(const gr_safetensors *in, const char *hex, int64_t vocab) {
    uint8_t byte[256];
    size_t size = 0;
    for (; size < sizeof byte && *hex; size++, hex += 2) {
        const int high = hex_digit(hex[0]), low = high < 0 ? -1 : hex_digit(hex[1]);
        if (low < 0) break;
        byte[size] = (uint8_t)(high << 4 | low);
        if (size > 0 && byte[size] <= byte[size - 1]) break;
    }
    if (*hex || size != (size_t)vocab)
        gr_fail(in->ctx, in->path, "metadata: vocabulary must be %lld ascending bytes in hexadecimal",
                (long long)vocab);
    return gr_tokenizer_chars(byte, size);
}

static gr_tokenizer read_tokenizer(const gr_safetensors *in, int64_t vocab) {
    const char *kind = gr_safetensors_note(in, "tokenizer"), *hex = gr_safetensors_note(in, "vocabulary");
    if (kind && strcmp(kind, "chars") != 0 && strcmp(kind, "bytes") != 0)
        gr_fail(in->ctx, in->path, "metadata: tokenizer is \"%.40s\"; it can be \"chars\" or \"bytes\"",
                gr_safetensors_show(in, kind));
    else if (!hex && vocab != 256)
        gr_fail(in->ctx, in->path,
                "the metadata have no \"vocabulary\": which bytes the %lld ids are (only 256 ids need none)",
                (long long)vocab);
    if (!gr_ok(in->ctx)) return gr_tokenizer_chars(NULL, 0);
    return hex ? of_hex(in, hex, vocab) : gr_tokenizer_bytes();
}

/* -- Which tensors ------------------------------------------------------------------------------------------------- */

/* Marks a tensor of the file as the model's. */
static gr_stored *claim(const gr_safetensors *in, const char *name, gr_shape wanted) {
    gr_stored *stored = gr_safetensors_find(in, name);
    if (!gr_ok(in->ctx)) return NULL;
    if (!stored)
        gr_fail(in->ctx, in->path, "%s %s is missing", name, gr_show_shape(in->ctx, wanted));
    else if (!gr_shape_equal(stored->shape, wanted))
        gr_fail(in->ctx, in->path, "%s is %s; by the file's own configuration it must be %s", name,
                gr_show_shape(in->ctx, stored->shape), gr_show_shape(in->ctx, wanted));
    else
        stored->used = true;
    return gr_ok(in->ctx) ? stored : NULL;
}

/* The shapes of a layer's parameters, in multiples of the width; no columns: a vector. */
static const struct {
    const char *name;
    int rows, columns;
    bool bias;
} part[] = {{"ln_1.weight", 1, 0, false},     {"ln_1.bias", 1, 0, true},           {"attn.c_attn.weight", 3, 1, false},
            {"attn.c_attn.bias", 3, 0, true}, {"attn.c_proj.weight", 1, 1, false}, {"attn.c_proj.bias", 1, 0, true},
            {"ln_2.weight", 1, 0, false},     {"ln_2.bias", 1, 0, true},           {"mlp.c_fc.weight", 4, 1, false},
            {"mlp.c_fc.bias", 4, 0, true},    {"mlp.c_proj.weight", 1, 4, false},  {"mlp.c_proj.bias", 1, 0, true}};
enum { PARTS = sizeof part / sizeof *part };

static void claim_layer(const gr_safetensors *in, gr_gpt_config c, int64_t layer) {
    char name[64];
    for (int i = 0; i < PARTS && gr_ok(in->ctx); i++) {
        if (part[i].bias && !c.bias) continue;
        const int64_t rows = part[i].rows * c.width, columns = part[i].columns * c.width;
        snprintf(name, sizeof name, "transformer.h.%" PRId64 ".%s", layer, part[i].name);
        claim(in, name, columns > 0 ? GR_SHAPE(rows, columns) : GR_SHAPE(rows));
    }
    snprintf(name, sizeof name, "transformer.h.%" PRId64 ".attn.bias", layer); /* nanoGPT's causal mask */
    if (gr_ok(in->ctx) && gr_safetensors_find(in, name)) claim(in, name, GR_SHAPE(1, 1, c.context, c.context));
}

/* The same values in the same type? */
static bool same_values(const gr_safetensors *in, const gr_stored *a, const gr_stored *b) {
    enum { CHUNK = 4096 }; /* bytes */
    uint8_t of_a[CHUNK], of_b[CHUNK];
    if (a->type != b->type || a->value_size != b->value_size) return false;
    for (uint64_t at = 0, size = a->end - a->begin; at < size; at += CHUNK) {
        const size_t n = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
        if (!gr_safetensors_bytes(in, a->begin + at, n, of_a)) return false;
        if (!gr_safetensors_bytes(in, b->begin + at, n, of_b)) return false;
        if (memcmp(of_a, of_b, n) != 0) return false;
    }
    return true;
}

static const char table_name[] = "transformer.wte.weight", head_name[] = "lm_head.weight";

/* The head is the embedding: of a pair that is one tensor, a writer may leave out either. */
static void claim_table(const gr_safetensors *in, gr_gpt_config c) {
    const gr_shape shape = GR_SHAPE(c.vocab, c.width);
    const bool head = gr_safetensors_find(in, head_name) != NULL;
    if (!head || gr_safetensors_find(in, table_name)) claim(in, table_name, shape);
    if (head) claim(in, head_name, shape);
    const gr_stored *a = gr_safetensors_find(in, table_name), *b = gr_safetensors_find(in, head_name);
    if (gr_ok(in->ctx) && a && b && !same_values(in, a, b))
        gr_fail(in->ctx, in->path, "%s %s differs from %s: heads that are not tied to the embedding are not supported",
                head_name, gr_show_shape(in->ctx, b->shape), table_name);
}

/* The file has the parameters of this model, each in its shape, and nothing else: found without memory for a model,
 * which a false configuration could make larger than any file. */
static bool check_tensors(const gr_safetensors *in, gr_gpt_config c) {
    claim_table(in, c);
    if (c.positions == GR_LEARNED) claim(in, "transformer.wpe.weight", GR_SHAPE(c.context, c.width));
    for (int64_t i = 0; i < c.layers && gr_ok(in->ctx); i++) claim_layer(in, c, i);
    claim(in, "transformer.ln_f.weight", GR_SHAPE(c.width));
    if (c.bias) claim(in, "transformer.ln_f.bias", GR_SHAPE(c.width));
    for (size_t i = 0; i < in->tensors && gr_ok(in->ctx); i++)
        if (!in->tensor[i].used)
            gr_fail(in->ctx, in->path, "%s %s does not belong to a model of %lld layers %s biases",
                    gr_safetensors_show(in, in->tensor[i].name), gr_show_shape(in->ctx, in->tensor[i].shape),
                    (long long)c.layers, c.bias ? "with" : "without");
    return gr_ok(in->ctx);
}

/* -- Load and save ------------------------------------------------------------------------------------------------- */

static gr_gpt *read_model(gr_safetensors *in, gr_gpt_config config) {
    if (!gr_ok(in->ctx) || !check_tensors(in, config)) return NULL;
    gr_gpt *gpt = gr_gpt_new(in->ctx, config);
    gr_gpt_training(gpt, false);
    for (int i = 0; i < gpt->count && gr_ok(in->ctx); i++) {
        gr_tensor *w = gr_parameter_at(in->ctx, gpt->first + i);
        const gr_stored *stored = gr_safetensors_find(in, gr_name(w));
        gr_safetensors_read(in, stored ? stored : gr_safetensors_find(in, head_name), w);
    }
    return gr_ok(in->ctx) ? gpt : NULL;
}

gr_gpt *gr_gpt_load(gr_context *ctx, const char *path, gr_tokenizer *tokenizer) {
    const gr_gpt_config no_model = {.vocab = 0};
    gr_safetensors in;
    if (tokenizer) *tokenizer = gr_tokenizer_chars(NULL, 0);
    if (!path) gr_fail(ctx, "load", "path is NULL");
    if (!gr_safetensors_open(ctx, path, &in)) return gr_gpt_new(ctx, no_model);
    const int parameters = gr_parameter_count(ctx);
    const gr_arena before = ctx->forever;
    const gr_gpt_config config = gr_configuration_read(&in);
    const gr_tokenizer stored = read_tokenizer(&in, config.vocab);
    gr_gpt *gpt = read_model(&in, config);
    gr_safetensors_close(&in);
    if (gpt) {
        if (tokenizer) *tokenizer = stored;
        return gpt;
    }
    ctx->parameter_count = parameters; /* those of a model that came to nothing are nobody's */
    gr_arena_rewind(&ctx->forever, &before);
    return gr_gpt_new(ctx, no_model);
}

bool gr_tokenizer_load(gr_context *ctx, const char *path, gr_tokenizer *out) {
    gr_safetensors in;
    *out = gr_tokenizer_chars(NULL, 0);
    if (!path) gr_fail(ctx, "load", "path is NULL");
    if (!gr_safetensors_open(ctx, path, &in)) return false;
    const gr_tokenizer stored = read_tokenizer(&in, gr_note_number(&in, "vocab", 1, INT32_MAX));
    gr_safetensors_close(&in);
    if (gr_ok(ctx)) *out = stored;
    return gr_ok(ctx);
}

static bool check_model(gr_gpt *gpt, const gr_tokenizer *tokenizer, const char *path) {
    if (!gpt || !gr_ok(gpt->ctx)) return false;
    if (!gr_check_made(gpt->ctx, path ? path : "save", "the model", gpt->h)) return false;
    if (!path)
        gr_fail(gpt->ctx, "save", "path is NULL");
    else if (!tokenizer)
        gr_fail(gpt->ctx, path, "the tokenizer is NULL");
    else if (tokenizer->size != gpt->config.vocab)
        gr_fail(gpt->ctx, path, "a tokenizer of %d bytes for a model of %lld", tokenizer->size,
                (long long)gpt->config.vocab);
    return gr_ok(gpt->ctx);
}

bool gr_gpt_save(gr_gpt *gpt, const gr_tokenizer *tokenizer, const char *path) {
    if (!check_model(gpt, tokenizer, path)) return false;
    gr_context *ctx = gpt->ctx;
    enum { NOTES = GR_CONFIGURATION_NOTES + 2 };
    char vocabulary[2 * 256 + 1] = "";
    gr_note notes[NOTES];
    for (int i = 0; i < tokenizer->size; i++) snprintf(vocabulary + 2 * i, 3, "%02x", tokenizer->byte[i]);
    gr_configuration_write(ctx, gpt->config, notes);
    notes[NOTES - 2] = (gr_note){"tokenizer", tokenizer->size == 256 ? "bytes" : "chars"};
    notes[NOTES - 1] = (gr_note){"vocabulary", vocabulary};
    gr_safetensors_entry *entry = gr_alloc_array(ctx, false, gpt->count, sizeof *entry);
    for (int i = 0; entry && i < gpt->count; i++) {
        gr_tensor *w = gr_parameter_at(ctx, gpt->first + i);
        entry[i] = (gr_safetensors_entry){gr_name(w), w};
    }
    return gr_safetensors_write(ctx, path, (gr_safetensors_content){notes, NOTES, entry, (size_t)gpt->count});
}
