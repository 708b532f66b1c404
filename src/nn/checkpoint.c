#include "checkpoint.h"
#include "safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* -- Metadata ------------------------------------------------------------------------------------------------------ */

static const char *note(const gr_safetensors *in, const char *key) {
    const char *value = gr_safetensors_note(in, key);
    if (!value) gr_fail(in->ctx, in->path, "the metadata have no \"%s\"", key);
    return value ? value : "";
}

/* A number that note says, in [low, 2^31). */
static int64_t number(const gr_safetensors *in, const char *key, int64_t low) {
    const char *text = note(in, key);
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (gr_ok(in->ctx) && (end == text || *end || errno || value < low || value > INT32_MAX))
        gr_fail(in->ctx, in->path, "metadata: %s is \"%.40s\"; it must be a whole number in [%lld, %ld]", key, text,
                (long long)low, (long)INT32_MAX);
    return value;
}

/* The words of what is one of several, by their number. */
static const char *const kinds[] = {[GR_TEXTBOOK] = "textbook", [GR_FUSED] = "fused",   [GR_WINDOW] = "window",
                                    [GR_SPARSE] = "sparse",     [GR_LINEAR] = "linear", NULL};
static const char *const positions[] = {[GR_LEARNED] = "learned", [GR_ROTARY] = "rotary", NULL};

/* The number of the word that note says, `otherwise` if there is no such note. */
static int word(const gr_safetensors *in, const char *key, const char *const *words, int first, int otherwise) {
    const char *text = gr_safetensors_note(in, key);
    if (!text) return otherwise;
    for (int i = first; words[i]; i++)
        if (strcmp(text, words[i]) == 0) return i;
    gr_fail(in->ctx, in->path, "metadata: %s is \"%.40s\", which is none that is known", key, text);
    return otherwise;
}

/* A file that says nothing of attention is of a model before there was a choice. */
static int64_t number_or_0(const gr_safetensors *in, const char *key) {
    return gr_safetensors_note(in, key) ? number(in, key, 0) : 0;
}

static gr_gpt_config read_config(const gr_safetensors *in) {
    gr_gpt_config c = {.layers = number(in, "layers", 1),
                       .heads = number(in, "heads", 1),
                       .width = number(in, "width", 1),
                       .context = number(in, "context", 1),
                       .vocab = number(in, "vocab", 1),
                       .bias = number(in, "bias", 0) != 0};
    c.style.kind = (gr_attention_kind)word(in, "attention", kinds, GR_TEXTBOOK, GR_FUSED);
    c.style.window = number_or_0(in, "window");
    c.style.global = number_or_0(in, "global");
    c.style.block = number_or_0(in, "block");
    c.positions = (gr_positions)word(in, "positions", positions, GR_LEARNED, GR_LEARNED);
    const char *gelu = note(in, "gelu");
    if (strcmp(gelu, "tanh") != 0)
        gr_fail(in->ctx, in->path, "metadata: gelu is \"%.40s\"; this model has the form \"tanh\"", gelu);
    const char *kind = note(in, "tokenizer");
    if (strcmp(kind, "chars") != 0 && strcmp(kind, "bytes") != 0)
        gr_fail(in->ctx, in->path, "metadata: tokenizer is \"%.40s\"; it can be \"chars\" or \"bytes\"", kind);
    return c;
}

static int hex_digit(char c) {
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* "0a2041": the bytes of the ids, each larger than the one before. */
static gr_tokenizer read_tokenizer(const gr_safetensors *in, int64_t vocab) {
    const char *hex = note(in, "vocabulary");
    uint8_t byte[256];
    size_t size = 0;
    for (; size < sizeof byte && *hex; size++, hex += 2) {
        const int high = hex_digit(hex[0]), low = high < 0 ? -1 : hex_digit(hex[1]);
        if (low < 0) break;
        byte[size] = (uint8_t)(high << 4 | low);
        if (size > 0 && byte[size] <= byte[size - 1]) break;
    }
    if (gr_ok(in->ctx) && (*hex || size != (size_t)vocab))
        gr_fail(in->ctx, in->path, "metadata: vocabulary must be %lld ascending bytes in hexadecimal",
                (long long)vocab);
    return gr_tokenizer_chars(byte, size);
}

/* -- Load and save ------------------------------------------------------------------------------------------------- */

static bool check_shape(const gr_safetensors *in, const char *name, gr_shape wanted) {
    const gr_stored *stored = gr_safetensors_find(in, name);
    if (!stored)
        gr_fail(in->ctx, in->path, "%s %s is missing", name, gr_show_shape(in->ctx, wanted));
    else if (!gr_shape_equal(stored->shape, wanted))
        gr_fail(in->ctx, in->path, "%s is %s; by the file's own configuration it must be %s", name,
                gr_show_shape(in->ctx, stored->shape), gr_show_shape(in->ctx, wanted));
    return gr_ok(in->ctx);
}

/* A configuration must not make a model much larger than the file: it costs memory before the tensors are compared. */
static bool check_size(const gr_safetensors *in, gr_gpt_config c) {
    if (!check_shape(in, "transformer.wte.weight", GR_SHAPE(c.vocab, c.width))) return false;
    if (c.positions == GR_LEARNED && !check_shape(in, "transformer.wpe.weight", GR_SHAPE(c.context, c.width)))
        return false;
    const double bytes = (double)in->tensor[in->tensors - 1].end;
    const double least = (double)c.layers * (double)c.width * (double)c.width * sizeof(float); /* one square a layer */
    if ((uint64_t)c.layers > in->tensors || least > bytes)
        gr_fail(in->ctx, in->path, "metadata: %lld layers of width %lld cannot be in %zu tensors of %.0f bytes",
                (long long)c.layers, (long long)c.width, in->tensors, bytes);
    return gr_ok(in->ctx);
}

static bool is_parameter_of(const gr_gpt *gpt, const char *name) {
    for (int i = 0; i < gpt->count; i++)
        if (strcmp(gr_name(gr_parameter_at(gpt->ctx, gpt->first + i)), name) == 0) return true;
    return false;
}

/* The file has the model's parameters, each in its shape, and nothing else. */
static bool check_tensors(const gr_safetensors *in, const gr_gpt *gpt) {
    for (int i = 0; i < gpt->count; i++) {
        const gr_tensor *w = gr_parameter_at(in->ctx, gpt->first + i);
        if (!check_shape(in, gr_name(w), gr_shape_of(w))) return false;
    }
    for (size_t i = 0; i < in->tensors && in->tensors > (size_t)gpt->count; i++)
        if (gr_ok(in->ctx) && !is_parameter_of(gpt, in->tensor[i].name))
            gr_fail(in->ctx, in->path, "%.80s %s does not belong to a model of %lld layers %s biases",
                    in->tensor[i].name, gr_show_shape(in->ctx, in->tensor[i].shape), (long long)gpt->config.layers,
                    gpt->config.bias ? "with" : "without");
    return gr_ok(in->ctx);
}

static gr_gpt *read_model(gr_safetensors *in, gr_gpt_config config) {
    gr_check_heads(in->ctx, in->path, config.heads, config.width);
    if (!gr_ok(in->ctx) || !check_size(in, config)) return NULL;
    gr_gpt *gpt = gr_gpt_new(in->ctx, config);
    gr_gpt_training(gpt, false);
    if (!gr_ok(in->ctx) || !check_tensors(in, gpt)) return NULL;
    for (int i = 0; i < gpt->count; i++) {
        gr_tensor *w = gr_parameter_at(in->ctx, gpt->first + i);
        if (!gr_safetensors_read(in, gr_safetensors_find(in, gr_name(w)), w)) return NULL;
    }
    return gpt;
}

gr_gpt *gr_gpt_load(gr_context *ctx, const char *path, gr_tokenizer *tokenizer) {
    const gr_gpt_config no_model = {.vocab = 0};
    gr_safetensors in;
    if (tokenizer) *tokenizer = gr_tokenizer_chars(NULL, 0);
    if (!path) gr_fail(ctx, "load", "path is NULL");
    if (!gr_safetensors_open(ctx, path, &in)) return gr_gpt_new(ctx, no_model);
    const int parameters = gr_parameter_count(ctx);
    const gr_gpt_config config = read_config(&in);
    const gr_tokenizer stored = read_tokenizer(&in, config.vocab);
    gr_gpt *gpt = read_model(&in, config);
    gr_safetensors_close(&in);
    if (gpt) {
        if (tokenizer) *tokenizer = stored;
        return gpt;
    }
    ctx->parameter_count = parameters; /* those of a model that came to nothing are nobody's */
    return gr_gpt_new(ctx, no_model);
}

bool gr_gpt_save(gr_gpt *gpt, const gr_tokenizer *tokenizer, const char *path) {
    if (!gpt || !gr_ok(gpt->ctx)) return false;
    const gr_gpt_config c = gpt->config;
    if (!path)
        gr_fail(gpt->ctx, "save", "path is NULL");
    else if (!gpt->h)
        gr_fail(gpt->ctx, path, "the model could not be made, after an error that has been cleared since");
    else if (!tokenizer || tokenizer->size != c.vocab)
        gr_fail(gpt->ctx, path, "a tokenizer of %d bytes for a model of %lld", tokenizer ? tokenizer->size : 0,
                (long long)c.vocab);
    if (!gr_ok(gpt->ctx)) return false;
    const struct {
        const char *key;
        int64_t value;
    } size[] = {{"layers", c.layers},       {"heads", c.heads},         {"width", c.width},
                {"context", c.context},     {"vocab", c.vocab},         {"bias", c.bias},
                {"window", c.style.window}, {"global", c.style.global}, {"block", c.style.block}};
    enum { SIZES = sizeof size / sizeof *size, WORDS = 5 };
    char text[SIZES][24], vocabulary[2 * 256 + 1] = "";
    gr_note notes[SIZES + WORDS];
    for (int i = 0; i < SIZES; i++) {
        snprintf(text[i], sizeof text[i], "%" PRId64, size[i].value);
        notes[i] = (gr_note){size[i].key, text[i]};
    }
    for (int i = 0; i < tokenizer->size; i++) snprintf(vocabulary + 2 * i, 3, "%02x", tokenizer->byte[i]);
    notes[SIZES] = (gr_note){"gelu", "tanh"};
    notes[SIZES + 1] = (gr_note){"tokenizer", tokenizer->size == 256 ? "bytes" : "chars"};
    notes[SIZES + 2] = (gr_note){"vocabulary", vocabulary};
    notes[SIZES + 3] = (gr_note){"attention", kinds[c.style.kind]};
    notes[SIZES + 4] = (gr_note){"positions", positions[c.positions]};
    gr_tensor *const *parameter = gpt->ctx->parameters + gpt->first;
    return gr_safetensors_write(gpt->ctx, path,
                                (gr_safetensors_content){notes, SIZES + WORDS, parameter, (size_t)gpt->count});
}
