#include "figure.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Three panels over one axis of steps; each leaves out what is not finite or, on an axis of logarithms, not above 0. */
static const char body[] =
    "set datafile separator \"\\t\"\n"
    "stats 'log.tsv' skip 1 using 1 name 'STEP' nooutput\n"
    "stats 'log.tsv' skip 1 using 2 name 'LOSS' nooutput\n"
    "stats 'log.tsv' skip 1 using 4 name 'LR' nooutput\n"
    "stats 'log.tsv' skip 1 using 5 name 'NORM' nooutput\n"
    "has_line = bigram == bigram # it is not, of NaN\n"
    "lowest = has_line && bigram < LOSS_min ? bigram : LOSS_min\n"
    "set multiplot\n"
    "set lmargin at screen 0.105\n"
    "set rmargin at screen 0.975\n"
    "set xrange [0 : STEP_max]\n"
    "set border 3 lc rgb '#606060'\n"
    "set tics nomirror textcolor rgb '#303030'\n"
    "set grid ytics lc rgb '#e8e8e8' lt 1\n"
    "set format x ''\n"
    "set format y '%g'\n"
    "keep = exp(-100.0 / STEP_records) # a running mean over a hundredth of the training\n"
    "sum = weight = 0\n"
    "smooth(x) = (sum = keep * sum + x, weight = keep * weight + 1, sum / weight)\n"
    "\n"
    "set tmargin at screen 0.965\n"
    "set bmargin at screen 0.47\n"
    "set label 2 'loss (nats per byte)' at screen 0.02, screen 0.7175 center rotate\n"
    "set key top right samplen 2 spacing 1.3\n"
    "if (lowest > 0) {\n"
    "    set logscale y\n"
    "    set yrange [0.93 * lowest : 1.05 * LOSS_max]\n"
    "    set ytics (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, 6, 8, 10)\n"
    "}\n"
    "if (has_line) {\n"
    "    set label 1 sprintf('counts of byte pairs reach %.2f', bigram) at graph 0.985, first bigram right \\\n"
    "        offset 0, 0.7 textcolor rgb '#505050'\n"
    "}\n"
    "plot 'log.tsv' skip 1 using 1:2 with lines lw 1 lc rgb '#c6dbef' title 'each step', \\\n"
    "     has_line ? bigram : NaN with lines dt (8,6) lw 1.5 lc rgb '#707070' notitle, \\\n"
    "     'log.tsv' skip 1 using 1:(smooth($2)) with lines lw 2.5 lc rgb '#2171b5' title 'training, smoothed', \\\n"
    "     'log.tsv' skip 1 using 1:3 with linespoints pt 7 ps 0.9 lw 2.5 lc rgb '#d94801' title 'validation'\n"
    "\n"
    "unset label 1\n"
    "unset logscale y\n"
    "unset key\n"
    "set yrange [0 : *]\n"
    "set tmargin at screen 0.43\n"
    "set bmargin at screen 0.285\n"
    "set label 2 'learning rate' at screen 0.02, screen 0.3575\n"
    "set ytics (0, LR_max / 2, LR_max)\n"
    "plot 'log.tsv' skip 1 using 1:4 with lines lw 2 lc rgb '#238b45'\n"
    "\n"
    "set ytics autofreq\n"
    "set format x '%g'\n"
    "if (NORM_max > 0) {\n"
    "    set logscale y\n"
    "}\n"
    "set yrange [* : *]\n"
    "set tmargin at screen 0.245\n"
    "set bmargin at screen 0.09\n"
    "set label 2 'gradient norm' at screen 0.02, screen 0.1675\n"
    "set xlabel 'step'\n"
    "sum = weight = 0\n"
    "plot 'log.tsv' skip 1 using 1:5 with lines lw 1 lc rgb '#dadaeb', \\\n"
    "     'log.tsv' skip 1 using 1:(smooth($5)) with lines lw 2 lc rgb '#6a51a3'\n"
    "unset multiplot\n"
    "unset label 2\n"
    "unset xlabel\n"
    "unset logscale y\n";

enum { WIDTH = 900, HEIGHT = 860 };

bool lm_draw_log(const lm_settings *set, gr_context *ctx, const char *directory, double bigram) {
    lm_script script;
    lm_begin_script(&script, ctx, (lm_picture){directory, "loss", WIDTH, HEIGHT});
    gr_replace_print(&script.out, isnan(bigram) ? "bigram = NaN\n" : "bigram = %.6f\n", bigram);
    gr_replace_text(&script.out, body);
    lm_end_script(&script);
    return gr_ok(ctx) && lm_draw(set, directory, "loss");
}

/* The log has a header and a row at least. */
static void check_log(gr_context *ctx, const char *directory) {
    char path[LM_PATH] = "", line[256];
    lm_path(ctx, path, directory, LM_LOG);
    lm_check_holds(ctx, directory, "training", LM_LOG);
    FILE *log = lm_open(ctx, path);
    if (!log) {
        gr_fail(ctx, path, "cannot open: there is no such file");
        return;
    }
    const bool titled = fgets(line, sizeof line, log) && strncmp(line, "step\tloss\t", strlen("step\tloss\t")) == 0;
    const bool has_step = titled && fgets(line, sizeof line, log);
    if (ferror(log))
        gr_fail(ctx, path, "cannot read: %s", strerror(errno));
    else if (!titled)
        gr_fail(ctx, path, "is not a log of lm train: it does not begin with \"step<tab>loss<tab>\"");
    else if (!has_step)
        gr_fail(ctx, path, "has no step yet");
    (void)fclose(log); /* only read */
}

/* The bigram loss that the training has put into its script; the log does not have it. NaN: none. */
static double drawn_bigram(gr_context *ctx, const char *directory) {
    char path[LM_PATH] = "", line[256];
    double bigram = (double)NAN;
    FILE *script = lm_open(ctx, lm_path(ctx, path, directory, "loss.gp"));
    while (script && fgets(line, sizeof line, script))
        /* NOLINTNEXTLINE(cert-err34-c): a line of lm's own; another text than a number leaves NaN */
        if (sscanf(line, "bigram = %lf", &bigram) == 1) break;
    if (script && ferror(script)) gr_fail(ctx, path, "cannot read: %s", strerror(errno));
    if (script) (void)fclose(script);
    return bigram;
}

int lm_plot(const lm_settings *set) {
    gr_context *ctx = gr_context_new();
    check_log(ctx, set->model);
    if (gr_ok(ctx) && lm_draw_log(set, ctx, set->model, drawn_bigram(ctx, set->model)))
        printf("%s/loss.svg, and loss.png where this gnuplot can, by %s/loss.gp\n", set->model, set->model);
    return lm_end(set, ctx);
}
