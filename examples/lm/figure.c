#include "figure.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NO_PROGRAM = 127 }; /* the shell's exit status for a program that is not there */

void lm_write_terminal(FILE *script, const char *name, int width, int height) {
    fprintf(script,
            "# Draws %s.png (or .svg) in this directory: gnuplot %s.gp\n"
            "reset\n"
            "if (strstrt(GPVAL_TERMINALS, 'pngcairo') > 0) {\n"
            "    set terminal pngcairo noenhanced size %d,%d font 'sans,11'\n"
            "    set output '%s.png'\n"
            "} else {\n"
            "    set terminal svg noenhanced size %d,%d font 'sans,11' background rgb 'white'\n"
            "    set output '%s.svg'\n"
            "}\n",
            name, name, width, height, name, width, height, name);
}

void lm_write_loss_script(const lm_settings *set, gr_context *ctx, double bigram) {
    static const char body[] =
        "set datafile separator \"\\t\"\n"
        "stats 'log.tsv' skip 1 using 2 nooutput\n"
        "lowest(a, b) = a < b ? a : b\n"
        "set logscale y\n"
        "set yrange [0.93 * lowest(STATS_min, bigram) : 1.05 * STATS_max]\n"
        "set ytics (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, 6)\n"
        "set xrange [0:STATS_records]\n"
        "set xlabel 'step'\n"
        "set ylabel 'loss (nats per byte)'\n"
        "set border 3 lc rgb '#606060'\n"
        "set tics nomirror textcolor rgb '#303030'\n"
        "set grid ytics lc rgb '#e8e8e8' lt 1\n"
        "set key top right samplen 2 spacing 1.3\n"
        "set label sprintf('counts of byte pairs reach %.2f', bigram) at graph 0.985, first bigram right offset "
        "0,0.7 "
        "\\\n"
        "    textcolor rgb '#505050'\n"
        "keep = exp(-100.0 / STATS_records) # a running mean over a hundredth of the training\n"
        "sum = weight = 0\n"
        "smooth(x) = (sum = keep * sum + x, weight = keep * weight + 1, sum / weight)\n"
        "plot 'log.tsv' skip 1 using 1:2 with lines lw 1 lc rgb '#c6dbef' notitle, \\\n"
        "     bigram with lines dt (8,6) lw 1.5 lc rgb '#707070' notitle, \\\n"
        "     'log.tsv' skip 1 using 1:(smooth($2)) with lines lw 2.5 lc rgb '#2171b5' title 'training, smoothed', \\\n"
        "     'log.tsv' skip 1 using 1:3 with linespoints pt 7 ps 0.9 lw 2.5 lc rgb '#d94801' title 'validation'\n"
        "set output\n";
    FILE *script = lm_create(ctx, set->out, "loss.gp");
    if (!script) return;
    lm_write_terminal(script, "loss", 900, 560);
    fprintf(script, "bigram = %.6f\n%s", bigram, body);
    lm_close(ctx, script, "loss.gp");
}

/* In the child: becomes gnuplot, silent, in the directory. */
static void become_gnuplot(const char *directory, const char *script) {
    const int nowhere = open("/dev/null", O_RDWR);
    if (nowhere < 0 || chdir(directory) != 0) _exit(1);
    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    execlp("gnuplot", "gnuplot", script, (char *)NULL);
    _exit(NO_PROGRAM);
}

bool lm_draw(const lm_settings *set, const char *name) {
    char script[64];
    int status = 0;
    snprintf(script, sizeof script, "%s.gp", name);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) become_gnuplot(set->out, script);
    const bool ended = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);
    if (ended && WEXITSTATUS(status) == 0) return true;
    if (ended && WEXITSTATUS(status) == NO_PROGRAM)
        fprintf(stderr, "lm %s: no pictures, as gnuplot is not installed; with it: cd %s && gnuplot *.gp\n",
                set->command->name, set->out);
    else
        fprintf(stderr, "lm %s: no picture: gnuplot fails on %s/%s\n", set->command->name, set->out, script);
    return false;
}
