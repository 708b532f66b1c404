#include "fuzz.h"

#include "tensor/internal.h"

#include <stdarg.h>
#include <unistd.h>

_Noreturn void fuzz_abort(const char *file, int line, const char *format, ...) {
    va_list args;
    fflush(stdout);
    fprintf(stderr, "%s:%d: ", file, line);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}

uint8_t fuzz_byte(fuzz_bytes *in) { return in->at < in->end ? *in->at++ : 0; }

int64_t fuzz_below(fuzz_bytes *in, int64_t n) {
    uint64_t drawn = fuzz_byte(in);
    for (int64_t reach = n; reach > 256; reach /= 256) drawn = drawn << 8 | fuzz_byte(in);
    return n > 0 ? (int64_t)(drawn % (uint64_t)n) : 0;
}

size_t fuzz_left(const fuzz_bytes *in) { return (size_t)(in->end - in->at); }

fuzz_bytes fuzz_rest(fuzz_bytes *in, size_t n) {
    const fuzz_bytes part = {in->at, in->at + (n < fuzz_left(in) ? n : fuzz_left(in))};
    in->at = part.end;
    return part;
}

bool fuzz_same_numbers(size_t n, const gr_real *a, const gr_real *b) {
    for (size_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0 && (a[i] == a[i] || b[i] == b[i])) return false;
    return true;
}

void fuzz_expect_error(gr_context *ctx) {
    const char *message = gr_error_message(ctx);
    DEMAND(!gr_ok(ctx));
    DEMAND(strstr(message, ": ") && !strchr(message, '\n'));
    gr_error_clear(ctx);
}

gr_context *fuzz_context(int number) {
    static gr_context *all[FUZZ_CONTEXTS];
    if (!all[number]) all[number] = gr_context_new();
    gr_context *ctx = all[number];
    DEMAND(gr_ok(ctx));
    for (gr_cleanup *c = ctx->cleanups; c; c = c->next) c->run(c->arg);
    gr_context_reset(ctx);
    gr_arena_rewind(&ctx->forever, &(gr_arena){0});
    ctx->cleanups = NULL; /* they, and what follows, lay in there */
    ctx->scratch = NULL;
    ctx->parameter_count = ctx->scratch_threads = 0;
    return ctx;
}

/* -- Files --------------------------------------------------------------------------------------------------------- */

static char directory[1024], path[FUZZ_FILES][1100];

static void remove_files(void) {
    for (int i = 0; i < FUZZ_FILES; i++) unlink(path[i]);
    rmdir(directory);
}

/* In memory where there is such a place: a checkpoint waits for the disk. */
const char *fuzz_directory(void) {
    if (*directory) return directory;
    const char *given = getenv("TMPDIR");
    const char *room = given ? given : access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(directory, sizeof directory, "%.1000s/fuzz.XXXXXX", room);
    DEMAND_SAYING(mkdtemp(directory), "%s: no directory can be made here", room);
    snprintf(path[0], sizeof path[0], "%s/config.txt", directory);
    for (int i = 1; i < FUZZ_FILES; i++) snprintf(path[i], sizeof path[i], "%s/file%d", directory, i);
    atexit(remove_files);
    return directory;
}

const char *fuzz_path(int number) {
    fuzz_directory();
    return path[number];
}

void fuzz_write(const char *to, const uint8_t *data, size_t size) {
    FILE *file = fopen(to, "wb");
    DEMAND_SAYING(file, "%s: cannot be written", to);
    DEMAND(fwrite(data, 1, size, file) == size);
    DEMAND(fclose(file) == 0);
}
