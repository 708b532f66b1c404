#include "internal.h"
#include "profile.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A row for each op's two directions, and for the few stages of a step that are no op. */
enum { MOST_ROWS = 160 };

typedef struct profile_row {
    const char *name, *phase;
    double seconds, flops, bytes;
    long calls;
} profile_row;

struct gr_profile {
    double last; /* when the last event ended */
    int rows;
    profile_row row[MOST_ROWS];
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void gr_profile_begin(gr_context *ctx) {
    if (!gr_ok(ctx)) return;
    if (!ctx->profile) ctx->profile = gr_alloc(ctx, true, sizeof *ctx->profile);
    if (!ctx->profile) return;
    ctx->profile->rows = 0;
    ctx->profile->last = now();
}

double gr_profile_event(gr_context *ctx, const char *name, const char *phase, double flops, double bytes) {
    struct gr_profile *p = ctx->profile;
    if (!p) return 0;
    double end = now();
    int i = 0;
    while (i < p->rows && (strcmp(p->row[i].name, name) != 0 || strcmp(p->row[i].phase, phase) != 0)) i++;
    if (i == MOST_ROWS) return 0;
    if (i == p->rows) p->row[p->rows++] = (profile_row){.name = name, .phase = phase};
    const double passed = end - p->last;
    p->row[i].seconds += passed;
    p->row[i].flops += flops;
    p->row[i].bytes += bytes;
    p->row[i].calls++;
    p->last = end;
    return passed;
}

double gr_profile_seconds(const gr_context *ctx) {
    double sum = 0;
    for (int i = 0; ctx && ctx->profile && i < ctx->profile->rows; i++) sum += ctx->profile->row[i].seconds;
    return sum;
}

static int slowest_first(const void *a, const void *b) {
    double x = ((const profile_row *)a)->seconds, y = ((const profile_row *)b)->seconds;
    return (x < y) - (x > y);
}

void gr_profile_print(gr_context *ctx, FILE *out) {
    if (!ctx || !ctx->profile || !out) return;
    struct gr_profile *p = ctx->profile;
    double whole = gr_profile_seconds(ctx);
    qsort(p->row, (size_t)p->rows, sizeof p->row[0], slowest_first);
    fprintf(out, "%-18s %-8s %9s %6s %8s %9s %7s\n", "op", "", "ms", "share", "calls", "GFLOP/s", "GB/s");
    for (int i = 0; i < p->rows; i++) {
        const profile_row *r = &p->row[i];
        double seconds = r->seconds > 0 ? r->seconds : 1e-9; /* the clock may not have moved */
        fprintf(out, "%-18s %-8s %9.2f %5.1f%% %8ld %9.2f %7.2f\n", r->name, r->phase, 1e3 * r->seconds,
                whole > 0 ? 100 * r->seconds / whole : 0, r->calls, 1e-9 * r->flops / seconds,
                1e-9 * r->bytes / seconds);
    }
    fprintf(out, "%-27s %9.2f\n", "sum", 1e3 * whole);
}
