#include "lm.h"

#include "nn/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *lm_path(gr_context *ctx, char out[LM_PATH], const char *directory, const char *name) {
    const size_t length = strlen(directory);
    const char *slash = length > 0 && directory[length - 1] == '/' ? "" : "/";
    if (snprintf(out, LM_PATH, "%s%s%s", directory, slash, name) >= LM_PATH)
        gr_fail(ctx, "path", "%.40s...: longer than %d bytes", directory, LM_PATH - 1);
    return out;
}

bool lm_look_at(gr_context *ctx, const char *path, struct stat *info) {
    const bool there = stat(path, info) == 0;
    if (!there && errno != ENOENT && errno != ENOTDIR) gr_fail(ctx, path, "cannot be looked at: %s", strerror(errno));
    return there;
}

bool lm_is_directory(gr_context *ctx, const char *path) {
    struct stat info;
    return lm_look_at(ctx, path, &info) && S_ISDIR(info.st_mode);
}

bool lm_same_file(gr_context *ctx, const char *a, const char *b) {
    struct stat of_a, of_b;
    return lm_look_at(ctx, a, &of_a) && lm_look_at(ctx, b, &of_b) && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

bool lm_is_file(const char *input) { return *input && strcmp(input, "-") != 0; }

const char *lm_shown(const char *path) { return strcmp(path, "-") == 0 ? "standard input" : path; }

bool lm_exists(gr_context *ctx, const char *directory, const char *name) {
    char path[LM_PATH] = "";
    lm_path(ctx, path, directory, name);
    return gr_ok(ctx) && lm_look_at(ctx, path, &(struct stat){0});
}

void lm_check_holds(gr_context *ctx, const char *directory, const char *what, const char *name) {
    if (lm_is_directory(ctx, directory) && !lm_exists(ctx, directory, name))
        gr_fail(ctx, directory, "holds no %s (no %s)", what, name);
}

const char *lm_home(gr_context *ctx, const char *model, char out[LM_PATH]) {
    if (lm_is_directory(ctx, model)) return model;
    const char *slash = strrchr(model, '/');
    if (!slash) return ".";
    if (snprintf(out, LM_PATH, "%.*s", (int)(slash - model + 1), model) >= LM_PATH)
        gr_fail(ctx, "--model", "the path is longer than %d bytes", LM_PATH - 1);
    return out;
}

const char *lm_quoted(char out[LM_PATH], const char *path) {
    static const char SAFE[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+,:@%";
    const bool safe = *path && !path[strspn(path, SAFE)];
    const char *quote = safe ? "" : "'";
    int length = snprintf(out, LM_PATH, "%s%s", *path == '-' ? "./" : "", quote); /* "-x" would be an option */
    for (; *path && length < LM_PATH; path++)
        length += snprintf(out + length, (size_t)(LM_PATH - length), *path == '\'' ? "'\\%c'" : "%c", *path);
    if (length < LM_PATH) snprintf(out + length, (size_t)(LM_PATH - length), "%s", quote);
    return out;
}

bool lm_make_directory(gr_context *ctx, const char *path) {
    char part[LM_PATH] = "";
    lm_path(ctx, part, path, "");
    for (char *at = strchr(part + 1, '/'); gr_ok(ctx) && at; at = strchr(at + 1, '/')) {
        *at = '\0';
        const int cause = mkdir(part, 0777) == 0 ? 0 : errno;
        if (cause && !lm_is_directory(ctx, part))
            gr_fail(ctx, part, "cannot make the directory: %s",
                    cause == EEXIST ? "a file is in its place" : strerror(cause));
        *at = '/';
    }
    return gr_ok(ctx);
}

/* -- What may be replaced ------------------------------------------------------------------------------------------ */

/* What commands write into a directory. */
static const struct {
    unsigned commands;
    bool beside; /* by gr_replacing: a killed training may leave "name.XXXXXXXX.tmp" */
    const char *name;
} written[] = {
    {LM_TRAIN, false, LM_MODEL},
    {LM_TRAIN, false, LM_LAST},
    {LM_TRAIN, false, LM_STATE},
    {LM_TRAIN, false, LM_CONFIG},
    {LM_TRAIN, true, LM_MODEL LM_NEW},
    {LM_TRAIN, true, LM_LAST LM_NEW},
    {LM_TRAIN, true, LM_STATE LM_NEW},
    {LM_TRAIN, true, LM_CONFIG LM_NEW},
    {LM_TRAIN, false, LM_LOG},
    {LM_TRAIN, true, "attention.tsv"},
    {LM_TRAIN, true, "attention.gp"},
    {LM_TRAIN, false, "attention.png"},
    {LM_TRAIN, false, "attention.svg"},
    {LM_ATTEND, false, "attend.tsv"},
    {LM_ATTEND, false, "attend.gp"},
    {LM_ATTEND, false, "attend.png"},
    {LM_ATTEND, false, "attend.svg"},
    {LM_TRAIN | LM_PLOT, true, "loss.gp"},
    {LM_TRAIN | LM_PLOT, false, "loss.png"},
    {LM_TRAIN | LM_PLOT, false, "loss.svg"},
};
enum { WRITTEN = sizeof written / sizeof *written };

bool lm_is_leftover(const char *entry) {
    for (size_t i = 0; i < WRITTEN; i++) {
        const bool staged = strstr(written[i].name, LM_NEW);
        if ((staged && strcmp(entry, written[i].name) == 0) ||
            (written[i].beside && gr_is_beside(entry, written[i].name)))
            return true;
    }
    return false;
}

bool lm_writes(gr_context *ctx, unsigned commands, const char *directory, const char *file) {
    char path[LM_PATH];
    const char *slash = strrchr(file, '/'), *entry = slash ? slash + 1 : file;
    const int length = snprintf(path, sizeof path, "%.*s", slash ? (int)(slash - file + 1) : 1, slash ? file : ".");
    const bool inside = length < LM_PATH && lm_same_file(ctx, path, directory);
    for (size_t i = 0; i < WRITTEN; i++) {
        if (!(written[i].commands & commands)) continue;
        if (inside && strcmp(entry, written[i].name) == 0) return true; /* it need not be there yet */
        const bool fits = snprintf(path, sizeof path, "%s/%s", directory, written[i].name) < LM_PATH;
        if (fits && lm_same_file(ctx, file, path)) return true;
    }
    return false;
}

void lm_spare(gr_context *ctx, const lm_settings *set, const char *directory, const char *input) {
    if (gr_ok(ctx) && lm_is_file(input) && lm_writes(ctx, set->command->bit, directory, input))
        gr_fail(ctx, input, "is read, and would be replaced by lm %s", set->command->name);
}

bool lm_can_write(gr_context *ctx, const lm_settings *set, const char *directory) {
    for (size_t i = 0; i < WRITTEN && gr_ok(ctx); i++) {
        char path[LM_PATH] = "";
        lm_path(ctx, path, directory, written[i].name);
        if (gr_ok(ctx) && written[i].commands & set->command->bit) gr_can_replace(ctx, path);
    }
    return gr_ok(ctx);
}

/* -- Reading ------------------------------------------------------------------------------------------------------- */

static char *read_all(gr_context *ctx, FILE *file, const char *name, size_t *size) {
    size_t room = 0;
    char *text = NULL;
    while (gr_ok(ctx)) {
        if (*size + 1 >= room) {
            char *more = realloc(text, room = 2 * room + BUFSIZ);
            if (!more) {
                gr_fail(ctx, name, "no memory for %zu bytes", room);
                break;
            }
            text = more;
        }
        const size_t got = fread(text + *size, 1, room - *size - 1, file);
        *size += got;
        text[*size] = '\0';
        if (got == 0 || ferror(file)) break;
    }
    if (ferror(file)) gr_fail(ctx, name, "cannot read: %s", strerror(errno));
    if (gr_ok(ctx)) return text;
    free(text);
    return NULL;
}

FILE *lm_open(gr_context *ctx, const char *path) {
    uint64_t size;
    const int file = gr_ok(ctx) && lm_look_at(ctx, path, &(struct stat){0}) ? gr_open_regular(ctx, path, &size) : -1;
    FILE *stream = file >= 0 ? fdopen(file, "r") : NULL;
    if (file >= 0 && !stream) {
        gr_fail(ctx, path, "cannot open: %s", strerror(errno));
        (void)close(file);
    }
    return stream;
}

char *lm_read(gr_context *ctx, const char *path, size_t *size) {
    const char *name = lm_shown(path);
    *size = 0;
    if (strcmp(path, "-") == 0) return read_all(ctx, stdin, name, size);
    FILE *file = fopen(path, "rb");
    if (!file) {
        gr_fail(ctx, name, "cannot open: %s", strerror(errno));
        return NULL;
    }
    char *text = read_all(ctx, file, name, size);
    (void)fclose(file); /* only read */
    return text;
}
