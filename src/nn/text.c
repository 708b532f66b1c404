#include "text.h"
#include "internal.h"

#include <stdio.h>

gr_tokenizer gr_tokenizer_of(const bool member[256]) {
    gr_tokenizer t = {.size = 0};
    for (int byte = 0; byte < 256; byte++) {
        t.id[byte] = member[byte] ? (int16_t)t.size : -1;
        if (member[byte]) t.byte[t.size++] = (uint8_t)byte;
    }
    return t;
}

gr_tokenizer gr_tokenizer_chars(const uint8_t *text, size_t size) {
    bool member[256] = {false};
    for (size_t i = 0; text && i < size; i++) member[text[i]] = true;
    return gr_tokenizer_of(member);
}

gr_tokenizer gr_tokenizer_bytes(void) {
    bool member[256];
    for (int byte = 0; byte < 256; byte++) member[byte] = true;
    return gr_tokenizer_of(member);
}

void gr_fail_unknown(gr_context *ctx, const char *where, uint8_t byte, uint64_t offset, int vocabulary) {
    char shown[sizeof "'/' (0x2F)"];
    const bool letter = byte > ' ' && byte < 0x7f;
    if (letter)
        snprintf(shown, sizeof shown, "'%c' (0x%02X)", byte, (unsigned)byte);
    else
        snprintf(shown, sizeof shown, "byte 0x%02X", (unsigned)byte);
    gr_fail(
        ctx, where,
        "%s at offset %llu is not in the vocabulary of %d bytes; with the tokenizer \"bytes\" a model reads every text",
        shown, (unsigned long long)offset, vocabulary);
}

bool gr_encode_from(gr_context *ctx, const char *where, const gr_tokenizer *tokenizer, const uint8_t *text, size_t size,
                    int32_t *out) {
    for (size_t i = 0; gr_ok(ctx) && i < size; i++) {
        out[i] = tokenizer->id[text[i]];
        if (out[i] < 0 || out[i] >= tokenizer->size) gr_fail_unknown(ctx, where, text[i], i, tokenizer->size);
    }
    return gr_ok(ctx);
}

bool gr_encode(gr_context *ctx, const gr_tokenizer *tokenizer, const uint8_t *text, size_t size, int32_t *out) {
    if (!tokenizer || (size > 0 && (!text || !out))) {
        gr_fail(ctx, "encode", "%s is NULL", !tokenizer ? "tokenizer" : !text ? "text" : "out");
        return false;
    }
    return gr_encode_from(ctx, "encode", tokenizer, text, size, out);
}
