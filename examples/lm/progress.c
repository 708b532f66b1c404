#include "progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { COLUMNS = 80, MOST_COLUMNS = 120 };
static const double MEMORY = 0.95;     /* of the running means: some 20 steps */
static const double BAR_EVERY = 0.1;   /* seconds */
static const double LINE_EVERY = 10.0; /* seconds; a line comes at each validation, too */

double lm_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void lm_progress_begin(lm_progress *p, int64_t total, bool quiet) {
    const double now = lm_now();
    *p = (lm_progress){.total = total, .quiet = quiet, .begun = now, .shown = now, .validation = (double)NAN};
    p->terminal = isatty(STDERR_FILENO);
}

static int terminal_columns(void) {
#ifdef TIOCGWINSZ
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col < MOST_COLUMNS ? size.ws_col : MOST_COLUMNS;
#endif
    return COLUMNS;
}

/* "1:05", "2:00:03" */
static void write_time(char *out, size_t room, double seconds) {
    const long long s = (long long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(out, room, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, room, "%lld:%02lld", s / 60, s % 60);
}

static void write_numbers(char *out, size_t room, const lm_progress *p, const lm_record *r) {
    char left[32], validation[32] = "";
    const double done = (double)r->step, total = (double)p->total;
    write_time(left, sizeof left, (lm_now() - p->begun) / done * (total - done));
    if (!isnan(p->validation)) snprintf(validation, sizeof validation, "val %.3f  ", p->validation);
    snprintf(out, room, "%*lld/%lld  loss %.3f  %slr %.1e  %.1fk tok/s  %s left",
             snprintf(NULL, 0, "%lld", (long long)p->total), (long long)r->step, (long long)p->total,
             p->loss / p->weight, validation, r->lr, p->speed / p->weight / 1e3, left);
}

static void draw_bar(lm_progress *p, const lm_record *r, const char *numbers) {
    char bar[MOST_COLUMNS + 1] = "";
    const int room = terminal_columns() - 2 - (int)strlen(numbers), most = COLUMNS / 2;
    const int cells = room < 0 ? 0 : room > most ? most : room;
    const int full = (int)((double)cells * (double)r->step / (double)p->total);
    memset(bar, '#', (size_t)full);
    memset(bar + full, '-', (size_t)(cells - full));
    fprintf(stderr, "\r%s%s%.*s\033[K", bar, cells > 0 ? " " : "", terminal_columns() - 1, numbers);
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
