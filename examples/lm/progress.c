#include "progress.h"

#include "lm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_COLUMNS = 100 };           /* of the bar */
static const double MEMORY = 0.95;     /* of the running means: some 20 steps */
static const double BAR_EVERY = 0.1;   /* seconds */
static const double LINE_EVERY = 10.0; /* seconds; a line comes at each validation, too */

double lm_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void lm_progress_begin(lm_progress *p, int64_t first, int64_t total, bool quiet) {
    const double now = lm_now();
    *p = (lm_progress){
        .first = first, .total = total, .quiet = quiet, .begun = now, .shown = now, .validation = (double)NAN};
    const char *term = getenv("TERM");
    p->terminal = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

/* "1:05", "2:00:03" */
static void write_time(char *out, size_t room, double seconds) {
    const long long s = (long long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(out, room, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, room, "%lld:%02lld", s / 60, s % 60);
}

/* "12.3k", "456", "1.2M" */
static void write_speed(char *out, size_t room, double x) {
    const double million = 1e6, thousand = 1e3;
    if (x >= million)
        snprintf(out, room, "%.1fM", x / million);
    else if (x >= thousand)
        snprintf(out, room, "%.1fk", x / thousand);
    else
        snprintf(out, room, "%.0f", x);
}

static void write_numbers(char *out, size_t room, const lm_progress *p, const lm_record *r) {
    char left[32], speed[32], validation[32] = "";
    const double done = (double)(r->step - p->first), rest = (double)(p->total - r->step);
    write_time(left, sizeof left, (lm_now() - p->begun) / done * rest);
    write_speed(speed, sizeof speed, p->speed / p->weight);
    if (!isnan(p->validation)) snprintf(validation, sizeof validation, "val %.3f ", p->validation);
    snprintf(out, room, "%*lld/%lld loss %.3f %slr %.1e norm %.2f %s tok/s %s left",
             snprintf(NULL, 0, "%lld", (long long)p->total), (long long)r->step, (long long)p->total,
             p->loss / p->weight, validation, r->lr, r->norm, speed, left);
}

/* The bar lies under the numbers, in reverse video. */
static void draw_bar(lm_progress *p, const lm_record *r, const char *numbers) {
    char line[MOST_COLUMNS + 1];
    const int columns = lm_columns(STDERR_FILENO) - 1, width = columns < MOST_COLUMNS ? columns : MOST_COLUMNS;
    const int full = (int)((double)width * (double)r->step / (double)p->total);
    snprintf(line, (size_t)width + 1, "%-*s", width, numbers);
    fprintf(stderr, "\r\033[7m%.*s\033[0m%s\033[K", full, line, line + full);
    p->drawn = true;
}

void lm_progress_step(lm_progress *p, const lm_record *r) {
    const double now = lm_now();
    const bool measured = !isnan(r->validation);
    char numbers[256];
    p->loss = MEMORY * p->loss + (1 - MEMORY) * r->loss;
    p->speed = MEMORY * p->speed + (1 - MEMORY) * r->tokens_per_second;
    p->weight = MEMORY * p->weight + (1 - MEMORY);
    if (measured) p->validation = r->validation;
    if (p->quiet || (!measured && now - p->shown < (p->terminal ? BAR_EVERY : LINE_EVERY))) return;
    p->shown = now;
    write_numbers(numbers, sizeof numbers, p, r);
    if (p->terminal)
        draw_bar(p, r, numbers);
    else
        fprintf(stderr, "%s\n", numbers);
}

void lm_progress_end(lm_progress *p) {
    if (p->drawn) fputc('\n', stderr);
    p->drawn = false;
}
