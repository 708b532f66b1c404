#include "internal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *gr_version(void) { return GR_VERSION; }

/* Stands for a context that could not be made. Constant: it may be used from any thread. */
static const gr_context no_context = {
    .failed = true,
    .reported = true,
    .error = "context: out of memory, or an operation on nothing but NULL",
    .inert = {.ctx = (gr_context *)&no_context},
};

gr_context *gr_context_new(void) {
    gr_context *ctx = calloc(1, sizeof *ctx);
    if (!ctx) return (gr_context *)&no_context;
    ctx->inert.ctx = ctx;
    const char *wanted = getenv("GRADUS_ISA");
    ctx->kernels = gr_kernels_select(wanted);
    if (!ctx->kernels) {
        char choices[96];
        ctx->kernels = gr_kernels_select(NULL);
        gr_fail(ctx, "context", "GRADUS_ISA is \"%s\"; here it can be %s", wanted,
                gr_kernels_choices(choices, sizeof choices));
    }
    return ctx;
}

void gr_context_free(gr_context *ctx) {
    if (!ctx || ctx == &no_context) return;
    if (ctx->failed && !ctx->reported) fprintf(stderr, "gradus: %s\n", ctx->error);
    for (gr_cleanup *c = ctx->cleanups; c; c = c->next) c->run(c->arg);
    gr_arena_free(&ctx->step);
    gr_arena_free(&ctx->forever);
    gr_arena_free(&ctx->tensors[0]);
    gr_arena_free(&ctx->tensors[1]);
    free(ctx->parameters);
    free(ctx);
}

static gr_arena *tensors_of_step(gr_context *ctx) { return &ctx->tensors[ctx->turn]; }

void gr_context_reset(gr_context *ctx) {
    if (!ctx || ctx == &no_context) return;
    for (gr_tensor *x = ctx->latest; x; x = x->earlier) x->data = NULL, x->shape = GR_SCALAR, x->name = NULL;
    if (ctx->latest) ctx->turn = 1 - ctx->turn; /* a step without tensors gives those before it no rest */
    ctx->latest = ctx->free_tensors = NULL;
    ctx->steps++;
    gr_arena_reset(tensors_of_step(ctx));
    gr_arena_reset(&ctx->step);
    ctx->tape = NULL;
    gr_profile_event(ctx, "reset", "step", 0, 0);
}

bool gr_ok(const gr_context *ctx) { return ctx && !ctx->failed; }

const char *gr_error_message(gr_context *ctx) {
    if (!ctx) return no_context.error;
    if (ctx->failed && ctx != &no_context) ctx->reported = true;
    return ctx->error;
}

void gr_error_clear(gr_context *ctx) {
    if (!ctx || ctx == &no_context) return;
    ctx->failed = ctx->reported = false;
    ctx->error[0] = '\0';
}

int gr_context_report(gr_context *ctx) {
    if (gr_ok(ctx)) return 0;
    fprintf(stderr, "gradus: %s\n", gr_error_message(ctx));
    return 1;
}

enum { WHERE = 200 }; /* bytes, the last, of a path that would leave no room for what is wrong with it */

void gr_fail(gr_context *ctx, const char *where, const char *format, ...) {
    if (!ctx || ctx->failed) return;
    ctx->failed = true;
    if (!where || !*where) where = "\"\"";
    const size_t length = strlen(where);
    size_t cut = length > WHERE ? length - WHERE : 0;
    while (cut > 0 && ((unsigned char)where[cut] & 0xC0) == 0x80) cut++; /* not within a character of UTF-8 */
    size_t at = (size_t)snprintf(ctx->error, sizeof ctx->error, "%s%s: ", cut > 0 ? "..." : "", where + cut);
    va_list args;
    va_start(args, format);
    if (at < sizeof ctx->error) vsnprintf(ctx->error + at, sizeof ctx->error - at, format, args);
    va_end(args);
    const char *stop = getenv("GRADUS_ABORT");
    if (stop && strcmp(stop, "1") == 0) {
        fprintf(stderr, "gradus: %s\n", ctx->error);
        abort();
    }
}

const char *gr_context_isa(const gr_context *ctx) { return ctx && ctx->kernels ? ctx->kernels->name : ""; }

size_t gr_context_bytes(const gr_context *ctx) {
    return ctx ? ctx->forever.used + ctx->step.used + ctx->tensors[ctx->turn].used : 0;
}

gr_tensor *gr_inert(gr_context *ctx) { return ctx ? &ctx->inert : (gr_tensor *)&no_context.inert; }

static void *alloc_in(gr_arena *arena, gr_context *ctx, size_t bytes) {
    void *memory = gr_arena_alloc(arena, bytes);
    if (!memory)
        gr_fail(ctx, "out of memory", "%zu bytes (%.1f MiB) could not be had", bytes, (double)bytes / (1 << 20));
    return memory;
}

void *gr_alloc(gr_context *ctx, bool persistent, size_t bytes) {
    return gr_ok(ctx) ? alloc_in(persistent ? &ctx->forever : &ctx->step, ctx, bytes) : NULL;
}

void *gr_alloc_array(gr_context *ctx, bool persistent, int64_t count, size_t size) {
    const uint64_t n = (uint64_t)count;
    return gr_alloc(ctx, persistent, n <= SIZE_MAX / size ? (size_t)n * size : SIZE_MAX);
}

void *gr_alloc_handle(gr_context *ctx, size_t bytes) {
    return ctx && ctx != &no_context ? alloc_in(&ctx->forever, ctx, bytes) : NULL;
}

bool gr_check_made(gr_context *ctx, const char *where, const char *what, bool made) {
    if (!made) gr_fail(ctx, where, "%s could not be made, after an error that has been cleared since", what);
    return made;
}

gr_tensor *gr_alloc_tensor(gr_context *ctx, bool persistent) {
    if (!gr_ok(ctx)) return NULL;
    gr_tensor *x = alloc_in(persistent ? &ctx->forever : tensors_of_step(ctx), ctx, sizeof *x);
    if (!x) return NULL;
    *x = (gr_tensor){.ctx = ctx, .persistent = persistent, .earlier = persistent ? NULL : ctx->latest};
    if (!persistent) ctx->latest = x;
    return x;
}

bool gr_check_alive(const gr_tensor *x, const char *where, const char *label) {
    if (x && gr_is_inert(x))
        gr_fail(x->ctx, where,
                x == gr_inert(x->ctx) ? "%s was made after an error that has been cleared since"
                                      : "%s is of an earlier step; gr_keep holds what is used in more than one",
                label);
    return !gr_is_inert(x);
}

gr_mark gr_mark_step(const gr_context *ctx) {
    return (gr_mark){ctx->step, ctx->tensors[ctx->turn], ctx->latest, ctx->steps};
}

void gr_rewind_step(gr_context *ctx, const gr_mark *since) {
    if (ctx->steps != since->steps) return;
    gr_arena_rewind(&ctx->step, &since->step);
    gr_arena_rewind(tensors_of_step(ctx), &since->tensors);
    ctx->latest = since->latest;
    ctx->free_tensors = NULL; /* they may lie in what was taken back */
}

void gr_on_free(gr_context *ctx, void (*run)(void *), void *arg) {
    gr_cleanup *c = gr_alloc(ctx, true, sizeof *c);
    if (!c) {
        run(arg);
        return;
    }
    *c = (gr_cleanup){run, arg, ctx->cleanups};
    ctx->cleanups = c;
}

static char *next_text(gr_context *ctx) {
    char *text = ctx->shown[ctx->next_shown];
    ctx->next_shown = (ctx->next_shown + 1) % GR_SHOW_SLOTS;
    return text;
}

const char *gr_show(const gr_tensor *x, const char *label) {
    if (!gr_ok(x->ctx)) return "";
    char *text = next_text(x->ctx), shape[GR_SHOW_TEXT / 2];
    snprintf(text, GR_SHOW_TEXT, "%.60s %s", x->name ? x->name : label, gr_shape_text(x->shape, shape, sizeof shape));
    return text;
}

const char *gr_show_shape(gr_context *ctx, gr_shape shape) {
    return gr_ok(ctx) ? gr_shape_text(shape, next_text(ctx), GR_SHOW_TEXT) : "";
}
