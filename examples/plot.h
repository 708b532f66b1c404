/* The figures of the lessons. A lesson that is given a directory writes its data and a gnuplot script there and, where
 * gnuplot is installed, draws:
 *
 *     plot p;
 *     if (plot_open(&p, argc, argv, "03_steps.svg", 800, 480)) {
 *         fprintf(p.data, "%g\t%g\n", x, y);                    -> DIR/03_steps.tsv
 *         fprintf(p.script, "plot data using 1:2 with lines ls 1 title 'error'\n");    -> DIR/03_steps.gp
 *         plot_close(&p);                                       -> DIR/03_steps.svg (or .png, by the name)
 *     }
 *
 * Messages go to standard error: standard output is the lesson's, with a directory or without. */
#ifndef PLOT_H
#define PLOT_H

#include "gnuplot.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PLOT_TEXT = 96 };

typedef struct plot {
    const char *directory;
    char name[PLOT_TEXT]; /* "03_steps" */
    FILE *data, *script;
} plot;

/* Okabe and Ito's colours, told apart by colour-blind readers, as line styles 1 to 6: blue, vermilion, green, purple,
 * orange, sky. The variable `data` is the table's name. Text is 14 px: as large as the page's when the figure is. */
static const char plot_style[] = "set datafile separator \"\\t\"\n"
                                 "set style line 1 lc rgb '#0072b2' lw 2 pt 7 ps 0.7\n"
                                 "set style line 2 lc rgb '#d55e00' lw 2 pt 5 ps 0.7\n"
                                 "set style line 3 lc rgb '#009e73' lw 2 pt 9 ps 0.8\n"
                                 "set style line 4 lc rgb '#cc79a7' lw 2 pt 13 ps 0.8\n"
                                 "set style line 5 lc rgb '#e69f00' lw 2 pt 11 ps 0.8\n"
                                 "set style line 6 lc rgb '#56b4e9' lw 2 pt 6 ps 0.7\n"
                                 "set palette defined (0 '#f7fbff', 0.5 '#6baed6', 1 '#08306b') # for weights\n"
                                 "set border 3 lc rgb '#808080'\n"
                                 "set tics nomirror textcolor rgb '#303030'\n"
                                 "set grid lc rgb '#e4e4e4' lt 1 lw 1\n"
                                 "set key top right samplen 2 spacing 1.3\n";

/* DIR/name with another ending; room for the whole path. */
static inline FILE *plot_create(const plot *p, const char *ending) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s%s", p->directory, p->name, ending);
    FILE *file = fopen(path, "w");
    if (!file) fprintf(stderr, "%s: %s\n", path, strerror(errno));
    return file;
}

/* False when no directory was given (argv[1]); one that cannot be written to ends the program after a message. The name
 * ends in .svg, or in .png for a picture of many cells; sizes in pixels. */
static inline bool plot_open(plot *p, int argc, char **argv, const char *name, int width, int height) {
    *p = (plot){.directory = argc > 1 ? argv[1] : NULL};
    const char *dot = strrchr(name, '.');
    if (!p->directory || !dot) return false;
    snprintf(p->name, sizeof p->name, "%.*s", (int)(dot - name), name);
    (void)mkdir(p->directory, 0777); /* it may be there; if it is not, opening fails */
    p->data = plot_create(p, ".tsv");
    p->script = plot_create(p, ".gp");
    if (!p->data || !p->script) exit(EXIT_FAILURE);
    const bool svg = strcmp(dot, ".svg") == 0;
    fprintf(p->script, "# Draws %s in this directory: gnuplot %s.gp\nset terminal %s size %d,%d font '%s,14'%s\n", name,
            p->name, svg ? "svg noenhanced" : "pngcairo noenhanced", width, height, svg ? "sans-serif" : "sans",
            svg ? " background rgb 'white'" : "");
    fprintf(p->script, "set output '%s'\ndata = '%s.tsv'\n%s", name, p->name, plot_style);
    return true;
}

/* Ends both files and draws. False, after a message, when that failed; without gnuplot the files are the result. With
 * GRADUS_DRAW=no in the environment nothing is drawn. */
static inline bool plot_close(plot *p) {
    const bool data = fclose(p->data) == 0, script = fclose(p->script) == 0;
    const char *draw = getenv("GRADUS_DRAW");
    if (!data || !script || (draw && strcmp(draw, "no") == 0)) {
        if (!data || !script) fprintf(stderr, "%s: no room to write\n", p->directory);
        return data && script;
    }
    char name[PLOT_TEXT + 4];
    snprintf(name, sizeof name, "%s.gp", p->name);
    const int status = gnuplot(p->directory, name);
    if (status == GNUPLOT_MISSING)
        fprintf(stderr, "no picture without gnuplot; with it: cd %s && gnuplot %s.gp\n", p->directory, p->name);
    else if (status != 0)
        fprintf(stderr, "no picture: gnuplot fails on %s/%s.gp\n", p->directory, p->name);
    return status == 0 || status == GNUPLOT_MISSING;
}

#endif
