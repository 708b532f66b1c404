#include "configuration.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* -- Notes --------------------------------------------------------------------------------------------------------- */

const char *gr_note_text(const gr_safetensors *in, const char *key) {
    const char *value = gr_safetensors_note(in, key);
    if (!value) gr_fail(in->ctx, in->path, "the metadata have no \"%s\"", key);
    return value ? value : "";
}

int64_t gr_note_number(const gr_safetensors *in, const char *key, int64_t low, int64_t high) {
    const char *text = gr_note_text(in, key);
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    const bool plain = (*text >= '0' && *text <= '9') || *text == '-'; /* strtoll takes blanks and a plus, too */
    if (gr_ok(in->ctx) && (!plain || end == text || *end || errno || value < low || value > high))
        gr_fail(in->ctx, in->path, "metadata: %s is \"%.40s\"; it must be a whole number in [%lld, %lld]", key,
                gr_safetensors_show(in, text), (long long)low, (long long)high);
    return value;
}

const char *gr_text(gr_context *ctx, const char *format, ...) {
    enum { MOST = 128 };
    char *text = gr_alloc(ctx, false, MOST);
    va_list args;
    va_start(args, format);
    if (text) vsnprintf(text, MOST, format, args);
    va_end(args);
    return text ? text : "";
}

/* -- A configuration ----------------------------------------------------------------------------------------------- */

/* The words of what is one of several, by their number. */
static const char *const kinds[] = {[GR_TEXTBOOK] = "textbook", [GR_FUSED] = "fused",   [GR_WINDOW] = "window",
                                    [GR_SPARSE] = "sparse",     [GR_LINEAR] = "linear", NULL};
static const char *const positions[] = {[GR_LEARNED] = "learned", [GR_ROTARY] = "rotary", NULL};
static const char *const forms[] = {[GR_GELU_TANH] = "tanh", [GR_GELU_ERF] = "erf", NULL};

/* The number of the word that a text is. */
static int word(const gr_safetensors *in, const char *key, const char *text, const char *const *words, int first) {
    for (int i = first; words[i]; i++)
        if (strcmp(text, words[i]) == 0) return i;
    gr_fail(in->ctx, in->path, "metadata: %s is \"%.40s\"; it can be %s, %s%s", key, gr_safetensors_show(in, text),
            words[first], words[first + 1], words[first + 2] ? ", ..." : "");
    return first;
}

/* A file that says nothing of attention is of a model without a choice. */
static int word_or(const gr_safetensors *in, const char *key, const char *const *words, int first, int otherwise) {
    const char *text = gr_safetensors_note(in, key);
    return text ? word(in, key, text, words, first) : otherwise;
}

static int64_t number_or_0(const gr_safetensors *in, const char *key) {
    return gr_safetensors_note(in, key) ? gr_note_number(in, key, 0, INT32_MAX) : 0;
}

static bool has_bias(const gr_safetensors *in) {
    if (gr_safetensors_note(in, "bias")) return gr_note_number(in, "bias", 0, 1) != 0;
    return gr_safetensors_find(in, "transformer.ln_f.bias") != NULL;
}

gr_gpt_config gr_configuration_read(const gr_safetensors *in) {
    gr_gpt_config c = {.layers = gr_note_number(in, "layers", 1, INT32_MAX)};
    c.heads = gr_note_number(in, "heads", 1, INT32_MAX);
    c.width = gr_note_number(in, "width", 1, INT32_MAX);
    c.context = gr_note_number(in, "context", 1, INT32_MAX);
    c.vocab = gr_note_number(in, "vocab", 1, INT32_MAX);
    c.bias = has_bias(in);
    c.style.kind = (gr_attention_kind)word_or(in, "attention", kinds, GR_TEXTBOOK, GR_FUSED);
    c.style.window = number_or_0(in, "window");
    c.style.global = number_or_0(in, "global");
    c.style.block = number_or_0(in, "block");
    c.positions = (gr_positions)word_or(in, "positions", positions, GR_LEARNED, GR_LEARNED);
    const char *gelu = gr_note_text(in, "gelu");
    c.gelu = gr_ok(in->ctx) ? (gr_gelu_form)word(in, "gelu", gelu, forms, GR_GELU_TANH) : GR_GELU_TANH;
    c.style = gr_check_style(in->ctx, in->path, c.style);
    gr_check_heads(in->ctx, in->path, c.heads, c.width, c.positions);
    return c;
}

void gr_configuration_write(gr_context *ctx, gr_gpt_config c, gr_note out[GR_CONFIGURATION_NOTES]) {
    const struct {
        const char *key;
        int64_t value;
    } size[] = {{"layers", c.layers},       {"heads", c.heads},         {"width", c.width},
                {"context", c.context},     {"vocab", c.vocab},         {"bias", c.bias},
                {"window", c.style.window}, {"global", c.style.global}, {"block", c.style.block}};
    enum { SIZES = sizeof size / sizeof *size };
    _Static_assert(SIZES + 3 == GR_CONFIGURATION_NOTES, "as many notes as are written");
    for (int i = 0; i < SIZES; i++) out[i] = (gr_note){size[i].key, gr_text(ctx, "%" PRId64, size[i].value)};
    out[SIZES] = (gr_note){"gelu", forms[c.gelu]};
    out[SIZES + 1] = (gr_note){"attention", kinds[c.style.kind]};
    out[SIZES + 2] = (gr_note){"positions", positions[c.positions]};
}
