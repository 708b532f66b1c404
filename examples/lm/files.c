#include "lm.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

const char *lm_path(gr_context *ctx, char out[LM_PATH], const char *directory, const char *name) {
    const size_t length = strlen(directory);
    const char *slash = length > 0 && directory[length - 1] == '/' ? "" : "/";
    if (snprintf(out, LM_PATH, "%s%s%s", directory, slash, name) >= LM_PATH)
        gr_fail(ctx, "path", "%.40s...: longer than %d bytes", directory, LM_PATH - 1);
    return out;
}

static bool is_directory(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool lm_make_directory(gr_context *ctx, const char *path) {
    char part[LM_PATH] = "";
    lm_path(ctx, part, path, "");
    for (char *at = strchr(part + 1, '/'); gr_ok(ctx) && at; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(part, 0777) != 0 && !is_directory(part))
            gr_fail(ctx, part, "cannot make the directory: %s", strerror(errno));
        *at = '/';
    }
    return gr_ok(ctx);
}

bool lm_can_hold(gr_context *ctx, const char *directory, const char *const *names, size_t count) {
    for (size_t i = 0; i < count && gr_ok(ctx); i++) {
        char path[LM_PATH] = "";
        lm_path(ctx, path, directory, names[i]);
        if (is_directory(path)) gr_fail(ctx, path, "is a directory; the file of that name belongs there");
    }
    return gr_ok(ctx);
}

FILE *lm_create(gr_context *ctx, const char *directory, const char *name) {
    char path[LM_PATH] = "";
    lm_path(ctx, path, directory, name);
    FILE *file = gr_ok(ctx) ? fopen(path, "w") : NULL;
    if (!file) gr_fail(ctx, path, "cannot write: %s", strerror(errno));
    return file;
}

bool lm_close(gr_context *ctx, FILE *file, const char *name) {
    if (!file) return false;
    const bool bad = ferror(file);
    if (fclose(file) != 0 || bad) gr_fail(ctx, name, "cannot write: %s", strerror(errno));
    return gr_ok(ctx);
}
