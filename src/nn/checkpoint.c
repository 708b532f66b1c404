#include "checkpoint.h"
#include "safetensors.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* -- What a model of a configuration is made of -------------------------------------------------------------------- */

/* A block's tensors: sizes in widths, columns 0 for a vector. */
static const struct {
    const char *name;
    int rows, columns;
} part[] = {
    {"ln_1.weight", 1, 0},        {"ln_1.bias", 1, 0},        {"attn.c_attn.weight", 3, 1}, {"attn.c_attn.bias", 3, 0},
    {"attn.c_proj.weight", 1, 1}, {"attn.c_proj.bias", 1, 0}, {"ln_2.weight", 1, 0},        {"ln_2.bias", 1, 0},
    {"mlp.c_fc.weight", 4, 1},    {"mlp.c_fc.bias", 4, 0},    {"mlp.c_proj.weight", 1, 4},  {"mlp.c_proj.bias", 1, 0},
};
enum { PARTS = sizeof part / sizeof *part, OUTSIDE_BLOCKS = 4 };

typedef struct expected {
    char name[64];
    gr_shape shape;
} expected;

static int64_t tensors_with_biases(gr_gpt_config c) { return OUTSIDE_BLOCKS + PARTS * c.layers; }

/* Tensor i of a model with biases; false: a bias, and the model has none. */
static bool tensor_of(gr_gpt_config c, int64_t i, expected *out) {
    static const char *const outside[] = {"wte.weight", "wpe.weight", "ln_f.weight", "ln_f.bias"};
    const char *name;
    if (i < OUTSIDE_BLOCKS) {
        name = outside[i];
        out->shape = i == 0 ? GR_SHAPE(c.vocab, c.width) : i == 1 ? GR_SHAPE(c.context, c.width) : GR_SHAPE(c.width);
        snprintf(out->name, sizeof out->name, "transformer.%s", name);
    } else {
        const int64_t layer = (i - OUTSIDE_BLOCKS) / PARTS, p = (i - OUTSIDE_BLOCKS) % PARTS;
        name = part[p].name;
        out->shape = GR_SHAPE(part[p].rows * c.width, part[p].columns * c.width);
        if (part[p].columns == 0) out->shape.ndim = 1;
        snprintf(out->name, sizeof out->name, "transformer.h.%" PRId64 ".%s", layer, name);
    }
    return c.bias || !strstr(name, ".bias");
}

static bool is_expected(gr_gpt_config c, const char *name) {
    expected e;
    for (int64_t i = 0; i < tensors_with_biases(c); i++)
        if (tensor_of(c, i, &e) && strcmp(e.name, name) == 0) return true;
    return false;
}

static bool check_tensors(const gr_safetensors *in, gr_gpt_config c) {
    gr_context *ctx = in->ctx;
    size_t count = 0;
    for (int64_t i = 0; i < tensors_with_biases(c) && gr_ok(ctx); i++) {
        expected e;
        if (!tensor_of(c, i, &e)) continue;
        const gr_stored *stored = gr_safetensors_find(in, e.name);
        if (!stored)
            gr_fail(ctx, in->path, "%s %s is missing", e.name, gr_show_shape(ctx, e.shape));
        else if (!gr_shape_equal(stored->shape, e.shape))
            gr_fail(ctx, in->path, "%s is %s; by the file's own configuration it must be %s", e.name,
                    gr_show_shape(ctx, stored->shape), gr_show_shape(ctx, e.shape));
        count++;
    }
    for (size_t i = 0; i < in->tensors && in->tensors > count && gr_ok(ctx); i++)
        if (!is_expected(c, in->tensor[i].name))
            gr_fail(ctx, in->path, "%.80s %s does not belong to a model of %lld layers %s biases", in->tensor[i].name,
                    gr_show_shape(ctx, in->tensor[i].shape), (long long)c.layers, c.bias ? "with" : "without");
    return gr_ok(ctx);
}

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

static gr_gpt_config read_config(const gr_safetensors *in) {
    gr_gpt_config c = {.layers = number(in, "layers", 1),
                       .heads = number(in, "heads", 1),
                       .width = number(in, "width", 1),
                       .context = number(in, "context", 1),
                       .vocab = number(in, "vocab", 1),
                       .bias = number(in, "bias", 0) != 0};
    const char *gelu = note(in, "gelu");
    if (strcmp(gelu, "tanh") != 0)
        gr_fail(in->ctx, in->path, "metadata: gelu is \"%.40s\"; this model has the form \"tanh\"", gelu);
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

gr_gpt *gr_gpt_load(gr_context *ctx, const char *path, gr_tokenizer *tokenizer) {
    gr_safetensors in;
    gr_gpt_config config = {.vocab = 0};
    const int first = gr_parameter_count(ctx);
    if (tokenizer) *tokenizer = gr_tokenizer_chars(NULL, 0);
    if (!gr_safetensors_open(ctx, path, &in)) return gr_gpt_new(ctx, config);
    config = read_config(&in);
    if (tokenizer) *tokenizer = read_tokenizer(&in, config.vocab);
    if (gr_ok(ctx)) check_tensors(&in, config);
    gr_gpt *gpt = gr_gpt_new(ctx, config);
    gr_gpt_training(gpt, false);
    for (int i = first; i < gr_parameter_count(ctx) && gr_ok(ctx); i++) {
        gr_tensor *w = gr_parameter_at(ctx, i);
        const gr_stored *stored = gr_safetensors_find(&in, gr_name(w));
        assert(stored && "the table of parts does not know a parameter of the model");
        gr_safetensors_read(&in, stored, w);
    }
    gr_safetensors_close(&in);
    return gpt;
}

/* The parameters from wte.weight on. */
static size_t parameters_of(gr_gpt *gpt, gr_tensor **out) {
    size_t count = 0;
    expected e;
    int at = 0;
    while (at < gr_parameter_count(gpt->ctx) && gr_parameter_at(gpt->ctx, at) != gpt->wte.weight) at++;
    for (int64_t i = 0; i < tensors_with_biases(gpt->config); i++)
        if (tensor_of(gpt->config, i, &e)) out[count++] = gr_parameter_at(gpt->ctx, at++);
    return count;
}

bool gr_gpt_save(gr_gpt *gpt, const gr_tokenizer *tokenizer, const char *path) {
    if (!gpt || !gr_ok(gpt->ctx)) return false;
    const gr_gpt_config c = gpt->config;
    if (!tokenizer || tokenizer->size != c.vocab)
        gr_fail(gpt->ctx, path, "a tokenizer of %d bytes for a model of %lld", tokenizer ? tokenizer->size : 0,
                (long long)c.vocab);
    gr_tensor **tensor = gr_alloc(gpt->ctx, false, (size_t)tensors_with_biases(c) * sizeof *tensor);
    if (!tensor) return false;
    const struct {
        const char *key;
        int64_t value;
    } size[] = {{"layers", c.layers},   {"heads", c.heads}, {"width", c.width},
                {"context", c.context}, {"vocab", c.vocab}, {"bias", c.bias}};
    enum { SIZES = sizeof size / sizeof *size };
    char text[SIZES][24], vocabulary[2 * 256 + 1] = "";
    gr_note notes[SIZES + 3];
    for (int i = 0; i < SIZES; i++) {
        snprintf(text[i], sizeof text[i], "%" PRId64, size[i].value);
        notes[i] = (gr_note){size[i].key, text[i]};
    }
    for (int i = 0; i < tokenizer->size; i++) snprintf(vocabulary + 2 * i, 3, "%02x", tokenizer->byte[i]);
    notes[SIZES] = (gr_note){"gelu", "tanh"};
    notes[SIZES + 1] = (gr_note){"tokenizer", tokenizer->size == 256 ? "bytes" : "chars"};
    notes[SIZES + 2] = (gr_note){"vocabulary", vocabulary};
    return gr_safetensors_write(gpt->ctx, path,
                                (gr_safetensors_content){notes, SIZES + 3, tensor, parameters_of(gpt, tensor)});
}
