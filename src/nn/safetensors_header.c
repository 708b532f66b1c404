#include "safetensors.h"

#include <string.h>

/* -- JSON, as much of it as a header has: no value nests, so nothing recurs ---------------------------------------- */

typedef struct scanner {
    gr_safetensors *out;
    const char *begin, *end;
    char *at;
    const char *tensor; /* whose fields are being read; NULL: none's */
} scanner;

static bool fail_at(scanner *s, const char *expected) {
    gr_fail(s->out->ctx, s->out->path, "header, character %zu%s%s: expected %s", (size_t)(s->at - s->begin),
            s->tensor ? ", of " : "", s->tensor ? gr_safetensors_show(s->out, s->tensor) : "", expected);
    return false;
}

static void skip_space(scanner *s) {
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\r' || *s->at == '\n')) s->at++;
}

static bool accept(scanner *s, char c) {
    skip_space(s);
    if (s->at == s->end || *s->at != c) return false;
    s->at++;
    return true;
}

static bool expect(scanner *s, char c) {
    const char expected[] = {'\'', c, '\'', '\0'};
    return accept(s, c) || fail_at(s, expected);
}

/* Four hexadecimal digits; -1 for anything else. */
static long scan_hex(scanner *s) {
    long value = 0;
    for (int i = 0; i < 4; i++, s->at++) {
        const char c = s->at < s->end ? *s->at : '\0';
        if (c >= '0' && c <= '9')
            value = 16 * value + (c - '0');
        else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
            value = 16 * value + (c | 0x20) - 'a' + 10;
        else
            return -1;
    }
    return value;
}

/* The bytes of a code point in UTF-8 (RFC 3629); at most the six characters that stand for it. */
static char *put_utf8(char *to, long code) {
    const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char mark[] = {0, 0xC0, 0xE0, 0xF0};
    *to++ = (char)(mark[more] | code >> 6 * more);
    for (int i = more - 1; i >= 0; i--) *to++ = (char)(0x80 | (code >> 6 * i & 0x3F));
    return to;
}

/* What follows \u: a code point, or a pair of surrogates, 0x10000 + (high - 0xD800) 2^10 + (low - 0xDC00) (RFC 8259).
 * NUL is refused: names end with it. */
static bool scan_code(scanner *s, char **to) {
    long code = scan_hex(s);
    if (code < 0) return fail_at(s, "four hexadecimal digits after \\u");
    if (code == 0) return fail_at(s, "another character than NUL before this");
    if (code >= 0xDC00 && code < 0xE000) return fail_at(s, "a high surrogate before this low one");
    if (code >= 0xD800 && code < 0xDC00) {
        const bool pair = s->end - s->at > 2 && s->at[0] == '\\' && s->at[1] == 'u';
        if (pair) s->at += 2;
        const long low = pair ? scan_hex(s) : -1;
        if (low < 0xDC00 || low >= 0xE000) return fail_at(s, "a low surrogate after a high one");
        code = 0x10000 + (code - 0xD800) * 0x400 + (low - 0xDC00);
    }
    *to = put_utf8(*to, code);
    return true;
}

static bool scan_escape(scanner *s, char **to) {
    static const char escape[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
    const char c = s->at < s->end ? *s->at++ : '\0';
    if (c == 'u') return scan_code(s, to);
    const char *which = c ? strchr(escape, c) : NULL;
    if (!which) return fail_at(s, "one of \"\\/bfnrtu after a backslash");
    *(*to)++ = meaning[which - escape];
    return true;
}

/* A string, decoded in place and ended with NUL. */
static bool scan_string(scanner *s, const char **out) {
    if (!expect(s, '"')) return false;
    char *to = s->at;
    *out = to;
    while (s->at < s->end && *s->at != '"') {
        const char c = *s->at++;
        if ((unsigned char)c < ' ') return fail_at(s, "a string without control characters");
        if (c != '\\')
            *to++ = c;
        else if (!scan_escape(s, &to))
            return false;
    }
    if (s->at == s->end) return fail_at(s, "the end of a string");
    s->at++;
    *to = '\0';
    return true;
}

static bool scan_whole(scanner *s, uint64_t *out) {
    skip_space(s);
    const char *first = s->at;
    for (*out = 0; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++) {
        const uint64_t digit = (uint64_t)(*s->at - '0');
        if (*out > (INT64_MAX - digit) / 10) return fail_at(s, "a number below 2^63");
        *out = 10 * *out + digit;
    }
    if (s->at - first > 1 && *first == '0') return fail_at(s, "a number without leading zeros");
    return s->at > first || fail_at(s, "a whole number");
}

/* [1, 2, 3], at most `most` of them. */
static bool scan_wholes(scanner *s, uint64_t *out, int most, int *count) {
    *count = 0;
    if (!expect(s, '[')) return false;
    if (accept(s, ']')) return true;
    do {
        if (*count == most) return fail_at(s, "a shorter list");
        if (!scan_whole(s, &out[(*count)++])) return false;
    } while (accept(s, ','));
    return expect(s, ']');
}

/* -- The header ---------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    gr_stored_type type;
    unsigned size;
} types[] = {
    {"F16", GR_F16, 2},        {"BF16", GR_BF16, 2},          {"F32", GR_F32, 4},
    {"F64", GR_F64, 8},        {"BOOL", GR_OTHER_TYPE, 1},    {"U8", GR_OTHER_TYPE, 1},
    {"I8", GR_OTHER_TYPE, 1},  {"U16", GR_OTHER_TYPE, 2},     {"I16", GR_OTHER_TYPE, 2},
    {"U32", GR_OTHER_TYPE, 4}, {"I32", GR_OTHER_TYPE, 4},     {"U64", GR_OTHER_TYPE, 8},
    {"I64", GR_OTHER_TYPE, 8}, {"F8_E5M2", GR_OTHER_TYPE, 1}, {"F8_E4M3", GR_OTHER_TYPE, 1},
};

static bool scan_type(scanner *s, gr_stored *t) {
    if (!scan_string(s, &t->type_name)) return false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(t->type_name, types[i].name) == 0) {
            t->type = types[i].type;
            t->value_size = types[i].size;
            return true;
        }
    gr_fail(s->out->ctx, s->out->path, "%s: values of type %.16s, which is none that is known",
            gr_safetensors_show(s->out, t->name), gr_safetensors_show(s->out, t->type_name));
    return false;
}

static bool scan_field(scanner *s, gr_stored *t, const char *field) {
    uint64_t number[GR_MAX_DIMS];
    int count;
    if (strcmp(field, "dtype") == 0) return scan_type(s, t);
    if (strcmp(field, "shape") == 0) {
        if (!scan_wholes(s, number, GR_MAX_DIMS, &t->shape.ndim)) return false;
        for (int i = 0; i < t->shape.ndim; i++) t->shape.dim[i] = (int64_t)number[i];
        return true;
    }
    if (strcmp(field, "data_offsets") != 0) return fail_at(s, "dtype, shape or data_offsets before this");
    if (!scan_wholes(s, number, 2, &count)) return false;
    if (count != 2) return fail_at(s, "two offsets before this");
    t->begin = number[0];
    t->end = number[1];
    return true;
}

static bool too_many(scanner *s, const char *what, size_t room) {
    gr_fail(s->out->ctx, s->out->path, "not a model: more than %zu %s in a file of this size", room, what);
    return false;
}

static bool scan_tensor(scanner *s, const char *name) {
    if (s->out->tensors == s->out->tensor_room) return too_many(s, "tensors", s->out->tensor_room);
    gr_stored *t = &s->out->tensor[s->out->tensors++];
    *t = (gr_stored){.name = name};
    s->tensor = name;
    const char *seen[3] = {"", "", ""};
    if (!expect(s, '{')) return false;
    for (int i = 0; i < 3; i++) {
        if (i > 0 && !expect(s, ',')) return false;
        if (!scan_string(s, &seen[i]) || !expect(s, ':')) return false;
        for (int j = 0; j < i; j++)
            if (strcmp(seen[i], seen[j]) == 0) return fail_at(s, "another field than before");
        if (!scan_field(s, t, seen[i])) return false;
    }
    if (!expect(s, '}')) return false;
    s->tensor = NULL;
    return true;
}

static bool scan_notes(scanner *s) {
    if (s->out->note) return fail_at(s, "no second __metadata__");
    s->out->note = gr_alloc(s->out->ctx, false, s->out->note_room * sizeof *s->out->note);
    if (!s->out->note || !expect(s, '{')) return false;
    if (accept(s, '}')) return true;
    do {
        if (s->out->notes == s->out->note_room) return too_many(s, "notes", s->out->note_room);
        gr_note *note = &s->out->note[s->out->notes++];
        if (!scan_string(s, &note->key) || !expect(s, ':') || !scan_string(s, &note->value)) return false;
    } while (accept(s, ','));
    return expect(s, '}');
}

bool gr_safetensors_scan(gr_safetensors *in, char *text, size_t length) {
    scanner s = {in, text, text + length, text, NULL};
    const char *name;
    if (!expect(&s, '{')) return false;
    if (!accept(&s, '}')) {
        do {
            if (!scan_string(&s, &name) || !expect(&s, ':')) return false;
            if (strcmp(name, "__metadata__") == 0 ? !scan_notes(&s) : !scan_tensor(&s, name)) return false;
        } while (accept(&s, ','));
        if (!expect(&s, '}')) return false;
    }
    skip_space(&s);
    return s.at == s.end || fail_at(&s, "nothing after the last }");
}
