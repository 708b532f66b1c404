/* Lesson 9, second part: the time and memory of attention against the number of tokens n and the size of a head d. The
 * exponents are slopes on logarithmic axes. */
#include <gradus.h>

#include "cost.h"
#include "plot.h"

enum { SIZES = 6, TIME = 0, MEMORY, MEASURES, SWEEPS = 2 };

/* One of n and d grows by factors of 2; the textbook's scores of n = 8192 would take 1.3 GB. */
typedef struct sweep {
    const char *axis, *fixed;
    long n, d;
    bool grows_n;
    int sizes[KINDS];
} sweep;
static const sweep sweeps[SWEEPS] = {{"n", "d = 64", 256, 64, true, {5, 6, 6, 6, 6}},
                                     {"d", "n = 1024", 1024, 16, false, {5, 5, 5, 5, 5}}};

typedef struct curves {
    double x[SIZES], of[MEASURES][KINDS][SIZES], slope[MEASURES][KINDS];
} curves;

static curves measure(const sweep *s) {
    curves c = {{0}, {{{0}}}, {{0}}};
    for (int k = 0; k < KINDS; k++) {
        for (int i = 0; i < s->sizes[k]; i++) {
            const long n = s->grows_n ? s->n << i : s->n, d = s->grows_n ? s->d : s->d << i;
            const cost found = cost_of(k, n, d);
            c.x[i] = (double)(s->grows_n ? n : d);
            c.of[TIME][k][i] = found.ms, c.of[MEMORY][k][i] = found.mib;
        }
        for (int m = 0; m < MEASURES; m++) c.slope[m][k] = cost_slope(s->sizes[k], c.x, c.of[m][k]);
    }
    return c;
}

/* Every line begins with "time:": the memory, too, depends on the number of threads. */
static void print(const sweep *s, const curves *c) {
    static const char *const unit[] = {"ms", "MiB"};
    for (int m = 0; m < MEASURES; m++) {
        printf("time: %s, %s\ntime: %9s", unit[m], s->fixed, s->axis);
        for (int k = 0; k < KINDS; k++) printf("%12s", cost_name[k]);
        for (int i = 0; i < SIZES && c->x[i] > 0; i++) {
            printf("\ntime: %9.0f", c->x[i]);
            for (int k = 0; k < KINDS; k++) i < s->sizes[k] ? printf("%12.2f", c->of[m][k][i]) : printf("%12s", "-");
        }
        printf("\ntime: %4s ~ %s^", unit[m], s->axis);
        for (int k = 0; k < KINDS; k++) printf("%12.2f", c->slope[m][k]);
        printf("\n");
    }
}

/* -- The figure ---------------------------------------------------------------------------------------------------- */

/* A table of x and both measures of every kind; two empty lines end it. */
static void write_data(FILE *out, const sweep *s, const curves *c) {
    for (int i = 0; i < SIZES && c->x[i] > 0; i++) {
        fprintf(out, "%.0f", c->x[i]);
        for (int m = 0; m < MEASURES; m++)
            for (int k = 0; k < KINDS; k++)
                i < s->sizes[k] ? fprintf(out, "\t%.5g", c->of[m][k][i]) : fprintf(out, "\t-");
        fprintf(out, "\n");
    }
    fprintf(out, "\n\n");
}

static void write_panel(FILE *out, int which, const curves *c, int m) {
    static const char *const unit[] = {"milliseconds", "MiB"};
    const sweep *s = &sweeps[which];
    fprintf(out, "set xlabel '%s   (%s)'\nset ylabel '%s'\nset xtics (", s->axis, s->fixed, unit[m]);
    for (int i = 0; i < SIZES && c->x[i] > 0; i++) fprintf(out, "%s%.0f", i ? ", " : "", c->x[i]);
    fprintf(out, ")\nset xrange [%g:%g]\nset yrange [*:%g]\nplot ", c->x[0] / 1.2, c->x[s->sizes[FUSED] - 1] * 1.2,
            c->of[m][TEXTBOOK][s->sizes[TEXTBOOK] - 1] * (m == TIME ? 60 : 120)); /* room for the key */
    for (int k = 0; k < KINDS; k++)
        fprintf(out, "data index %d using 1:%d with linespoints ls %d title '%s  %s^{%.2f}'%s\n", which,
                2 + m * KINDS + k, k + 1, cost_name[k], s->axis, c->slope[m][k], k < KINDS - 1 ? ", \\" : "");
}

static void write_script(FILE *out, const curves c[SWEEPS]) {
    fprintf(out, "set termoption enhanced\nset datafile missing '-'\nset logscale xy\nset format y '%%g'\n"
                 "set key top left Left reverse samplen 2 spacing 1.1\nunset mxtics\n"
                 "set multiplot layout 2,2\n");
    for (int i = 0; i < SWEEPS; i++)
        for (int m = 0; m < MEASURES; m++) write_panel(out, i, &c[i], m);
    fprintf(out, "unset multiplot\n");
}

int main(int argc, char **argv) {
    curves c[SWEEPS];
    printf("causal attention of one head, forward and backward; memory beyond q, k, v, output and gradients\n");
    for (int i = 0; i < SWEEPS; i++) {
        c[i] = measure(&sweeps[i]);
        print(&sweeps[i], &c[i]);
    }
    plot p;
    if (!plot_open(&p, argc, argv, "09_cost.svg", 980, 860)) return 0;
    fprintf(p.data, "# time: measured\n");
    for (int i = 0; i < SWEEPS; i++) write_data(p.data, &sweeps[i], &c[i]);
    write_script(p.script, c);
    return plot_close(&p) ? 0 : 1;
}
