#include "lm.h"

#include "nn/files.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* -- Reading: the text is cut into keys and values where it stands ------------------------------------------------- */

static char *trim(char *text) {
    while (isspace((unsigned char)*text)) text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1])) end--;
    *end = '\0';
    return text;
}

/* What stands behind a backslash: n, t, xHH, or itself; moves on behind it. */
static char escaped(const char **at) {
    const char c = *(*at)++;
    if (c == 'n') return '\n';
    if (c == 't') return '\t';
    if (c != 'x' || !isxdigit((unsigned char)(*at)[0]) || !isxdigit((unsigned char)(*at)[1])) return c;
    const char digits[3] = {(*at)[0], (*at)[1], '\0'};
    *at += 2;
    return (char)strtol(digits, NULL, 16);
}

/* "text" in place; NULL: the quote does not end, \x00 is in it, or something stands behind it that is no comment. */
static char *unquote(char *text) {
    const char *from = text + 1;
    char *to = text;
    while (*from && *from != '"') {
        const bool escape = *from == '\\' && from[1];
        if (escape) from++;
        const char c = escape ? escaped(&from) : *from++;
        if (c == '\0') return NULL;
        *to++ = c;
    }
    if (*from != '"') return NULL;
    do from++;
    while (isspace((unsigned char)*from));
    const bool ends = !*from || *from == '#';
    *to = '\0';
    return ends ? text : NULL;
}

/* The value behind "key =": in quotes, or up to a # that begins the value or stands behind a blank. */
static char *value_of(char *text) {
    text = trim(text);
    if (*text == '"') return unquote(text);
    char *at = text;
    while (*at && !(*at == '#' && (at == text || isspace((unsigned char)at[-1])))) at++;
    *at = '\0';
    return trim(text);
}

static int read_line(lm_settings *set, lm_source source, char *line) {
    char *key = trim(line);
    if (!*key || *key == '#') return 0;
    char *sign = strchr(key, '=');
    if (!sign)
        return lm_wrong_usage(set, "%.180s:%d: \"%.40s\" is not of the form key = value", source.file, source.line,
                              key);
    *sign = '\0';
    key = trim(key);
    if (!*key) return lm_wrong_usage(set, "%.180s:%d: no key before the =", source.file, source.line);
    char *value = value_of(sign + 1);
    if (!value)
        return lm_wrong_usage(set, "%.180s:%d: %.40s: the text in quotes has \\x00, or does not end with the line",
                              source.file, source.line, key);
    return lm_set(set, source, key, value);
}

static int read_lines(lm_settings *set, lm_source source, char *text) {
    int status = 0;
    for (char *next; text && status == 0; text = next) {
        next = strchr(text, '\n');
        if (next) *next++ = '\0';
        source.line++;
        status = read_line(set, source, text);
    }
    return status;
}

int lm_read_config(lm_settings *set, const char *path) {
    size_t size = 0;
    gr_context *ctx = gr_context_new();
    char *text = lm_read(ctx, path, &size);
    if (text && strlen(text) != size) gr_fail(ctx, path, "has a byte 0 at offset %zu; it must be text", strlen(text));
    set->text_of_config = text;
    const int status = lm_end(set, ctx);
    static const char MARK[] = "\xef\xbb\xbf"; /* U+FEFF, which some editors write first */
    if (text && strncmp(text, MARK, strlen(MARK)) == 0) text += strlen(MARK);
    return status == 0 ? read_lines(set, (lm_source){LM_BY_FILE, path, 0}, text) : status;
}

/* -- Presets ------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name, *text;
} preset[] = {
    {"tiny", "layers = 2\nwidth = 64\ncontext = 32\nbatch = 8\nsteps = 500\nlr = 3e-3\nmin-lr = 3e-4\nwarmup = 50\n"
             "eval-interval = 100\n"},
    /* nanoGPT's recipe for a CPU, which the defaults are, but for a higher learning rate */
    {"shakespeare", "lr = 3e-3\nmin-lr = 1e-4\n"},
    {"small", "layers = 6\nheads = 6\nwidth = 384\ncontext = 256\nsteps = 5000\ndropout = 0.2\n"},
};

enum { PRESETS = sizeof preset / sizeof *preset };

void lm_help_presets(void) {
    puts("\npresets:");
    for (size_t i = 0; i < PRESETS; i++) {
        printf("  %-12s", preset[i].name);
        for (const char *at = preset[i].text; *at; at++)
            if (*at == '\n')
                fputs(at[1] ? ", " : "\n", stdout);
            else
                putchar(*at);
    }
}

int lm_use_preset(lm_settings *set) {
    size_t i = 0;
    while (i < PRESETS && strcmp(preset[i].name, set->preset) != 0) i++;
    if (i == PRESETS)
        return lm_wrong_usage(set, "--preset \"%.40s\" is not one of %s", set->preset,
                              lm_find_option(set->command, "preset", 0)->range);
    const size_t size = strlen(preset[i].text) + 1;
    set->text_of_preset = malloc(size);
    if (!set->text_of_preset) return lm_failed(set, "no memory for the preset");
    memcpy(set->text_of_preset, preset[i].text, size);
    return read_lines(set, (lm_source){LM_BY_PRESET, preset[i].name, 0}, set->text_of_preset);
}

/* -- Writing ------------------------------------------------------------------------------------------------------- */

static void write_text(gr_replacing *out, const char *text) {
    gr_replace_text(out, "\"");
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            gr_replace_print(out, "\\%c", c);
        else if (c < ' ' || c == 0x7f)
            gr_replace_print(out, c == '\n' ? "\\n" : "\\x%02x", c);
        else
            gr_replace_write(out, &c, 1);
    }
    gr_replace_text(out, "\"\n");
}

static void write_option(gr_replacing *out, const lm_settings *set, const lm_option *option) {
    char shown[LM_DESCRIPTION];
    const char *text = option->kind == LM_TEXT ? *(const char *const *)lm_value(set, option) : "";
    const lm_list one = {&text, 1}, list = option->kind == LM_LIST ? *(const lm_list *)lm_value(set, option) : one;
    for (int i = 0; i < list.count; i++) {
        gr_replace_print(out, "%s = ", option->name);
        if (option->kind == LM_TEXT || option->kind == LM_LIST)
            write_text(out, list.item[i]);
        else
            gr_replace_print(out, "%s\n", lm_show(set, option, shown));
    }
}

void lm_write_config(gr_context *ctx, const lm_settings *set, const char *name) {
    char path[LM_PATH] = "";
    gr_replacing out = gr_replace_begin(ctx, lm_path(ctx, path, set->out, name), 0);
    gr_replace_print(&out, "# Repeats the run: lm %s --config %s --out ANOTHER. Goes on with it: lm %s --resume DIR\n",
                     set->command->name, LM_CONFIG, set->command->name);
    for (size_t i = 0; i < lm_option_count; i++)
        if (lm_options[i].commands & set->command->bit && !(lm_options[i].commands & LM_UNSAVED))
            write_option(&out, set, &lm_options[i]);
    gr_replace_end(&out);
    gr_context_reset(ctx);
}
