/* The key=value arguments of conform. Whoever asks for a key marks it; one that nobody asked for is an error. */
#include "conform.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 256 }; /* of a message */

void conform_misuse(conform_call *c, const char *format, ...) {
    char text[TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (gr_ok(c->ctx)) c->misused = true;
    gr_fail(c->ctx, c->op->name, "%s", text);
}

/* The index of a key; -1: not there. */
static int find(const conform_call *c, const char *key, size_t length) {
    for (int i = 0; i < c->keys; i++)
        if (strncmp(c->key[i], key, length) == 0 && c->key[i][length] == '=') return i;
    return -1;
}

bool conform_has(const conform_call *c, const char *key) { return find(c, key, strlen(key)) >= 0; }

static const char *value_of(conform_call *c, const char *key) {
    const int i = find(c, key, strlen(key));
    if (i < 0) {
        conform_misuse(c, "%s= is missing; an example: %s", key, c->op->keys);
        return "";
    }
    c->used[i] = true;
    return c->key[i] + strlen(key) + 1;
}

/* A whole number from -(2^31 - 1) on, to what follows it; false if there is none. */
static bool scan_whole(const char **text, int *out) {
    char *end;
    const long long value = strtoll(*text, &end, 10); /* long may have 32 bits: 2^31 must be seen */
    const bool found = end != *text && value >= -INT32_MAX && value <= INT32_MAX;
    *text = end;
    *out = found ? (int)value : 0;
    return found;
}

int conform_whole(conform_call *c, const char *key) {
    const char *text = value_of(c, key), *end = text;
    int value;
    if (!scan_whole(&end, &value) || *end) conform_misuse(c, "%s=%.40s is not a whole number below 2^31", key, text);
    return value;
}

double conform_number(conform_call *c, const char *key) {
    const char *text = value_of(c, key);
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value)) conform_misuse(c, "%s=%.40s is not a number", key, text);
    return value;
}

gr_shape conform_list(conform_call *c, const char *key) {
    const char *text = value_of(c, key), *at = text;
    gr_shape list = {0, {0}};
    int value;
    bool good = true;
    for (bool more = *at; good && more; at += more) {
        good = list.ndim < GR_MAX_DIMS && scan_whole(&at, &value) && (!*at || *at == ',');
        if (good) list.dim[list.ndim++] = value;
        more = good && *at == ',';
    }
    if (!good) conform_misuse(c, "%s=%.40s is not a list of at most %d numbers, such as 0,2", key, text, GR_MAX_DIMS);
    return list;
}

int conform_whole_or(conform_call *c, const char *key, int value) {
    return conform_has(c, key) ? conform_whole(c, key) : value;
}

double conform_number_or(conform_call *c, const char *key, double value) {
    return conform_has(c, key) ? conform_number(c, key) : value;
}

bool conform_flag(conform_call *c, const char *key) {
    const int value = conform_whole_or(c, key, 0);
    if (value != 0 && value != 1) conform_misuse(c, "%s=%d; it is 0 or 1", key, value);
    return value == 1;
}

int conform_choice(conform_call *c, const char *key, const char *const *choice) {
    char all[TEXT / 2] = "";
    if (!conform_has(c, key)) return 0;
    const char *text = value_of(c, key);
    for (int i = 0; choice[i]; i++) {
        if (strcmp(text, choice[i]) == 0) return i;
        const size_t length = strlen(all);
        snprintf(all + length, sizeof all - length, "%s%s", i > 0 ? ", " : "", choice[i]);
    }
    conform_misuse(c, "%s=%.40s is none of %s", key, text, all);
    return 0;
}

bool conform_check_keys(conform_call *c) {
    if (c->keys > CONFORM_KEYS) conform_misuse(c, "more than %d keys", CONFORM_KEYS);
    for (int i = 0; i < c->keys && gr_ok(c->ctx); i++) {
        const char *equals = strchr(c->key[i], '=');
        if (!equals || equals == c->key[i])
            conform_misuse(c, "\"%.40s\" is not of the form key=value", c->key[i]);
        else if (find(c, c->key[i], (size_t)(equals - c->key[i])) != i)
            conform_misuse(c, "%.*s= is there twice", (int)(equals - c->key[i] > 40 ? 40 : equals - c->key[i]),
                           c->key[i]);
    }
    return gr_ok(c->ctx);
}

bool conform_check_used(conform_call *c) {
    for (int i = 0; i < c->keys; i++)
        if (!c->used[i])
            conform_misuse(c, "%.40s is not read here; an example of what is: %s%sstrided=1", c->key[i], c->op->keys,
                           *c->op->keys ? " " : "");
    return gr_ok(c->ctx);
}
