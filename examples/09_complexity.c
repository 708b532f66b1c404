/* Lesson 9, second part: what attention costs, and what a mask lets a query see. Causal attention of one head,
 * d = 64, forward and backward, for n = 256, 512, ...: the time of a step, and the memory it takes beyond q, k, v, the
 * output and their gradients.
 *
 *   build/09_complexity [DIR]      default build/complexity: complexity.tsv and, if gnuplot is there, two pictures */
#include <gradus.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { D = 64, SMALLEST = 256, SIZES = 7, FEWEST_RUNS = 3, RUNS = 9, WINDOW_WIDTH = 256, BLOCK = 64 };
static const double too_slow = 1.5, long_enough = 0.5; /* seconds: a kind stops there; a size is not run again */

enum { TEXTBOOK, FUSED, WINDOW, SPARSE, LINEAR, KINDS };
static const struct {
    const char *name, *colour;
    double point; /* its size: of lines that meet, each shows */
    int sizes;    /* the textbook's scores of n = 8192 would take 1.3 GB */
} kinds[KINDS] = {{"textbook", "#d94801", 1.1, 5},
                  {"fused", "#2171b5", 1.7, SIZES},
                  {"window 256", "#238b45", 1.2, SIZES},
                  {"sparse", "#6a51a3", 0.7, SIZES},
                  {"linear", "#c99700", 1.1, SIZES}};

enum { TIME, MEMORY, MEASURES };
typedef struct curve {
    int sizes;
    double of[MEASURES][SIZES]; /* ms; MiB */
    double slope[MEASURES];
} curve;

static long size_at(int i) { return (long)SMALLEST << i; }

/* -- Measuring ----------------------------------------------------------------------------------------------------- */

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Sparse: groups of about sqrt(blocks) blocks, so that a query sees about 8 sqrt(n) keys of its group, or of the last
 * blocks of all groups. */
static gr_mask mask_of(gr_context *ctx, int kind, long n) {
    const int64_t blocks = n / BLOCK, stride = (int64_t)(sqrt((double)blocks) + 0.5);
    gr_mask causal = gr_mask_causal();
    if (kind == WINDOW) return gr_mask_and(causal, gr_mask_window(WINDOW_WIDTH));
    if (kind != SPARSE) return causal;
    return gr_mask_and(causal, gr_mask_blocks(gr_keep(gr_layout_fixed(ctx, blocks, stride)), BLOCK));
}

static void attend(int kind, gr_mask mask, gr_tensor *const in[4]) {
    gr_tensor *weights, *y;
    gr_attention_options options = {.mask = mask, .weights = kind == TEXTBOOK ? &weights : NULL};
    if (kind == LINEAR)
        y = gr_linear_attention(in[0], in[1], in[2], true);
    else
        y = gr_attention(in[0], in[1], in[2], options);
    gr_backward_from(y, in[3]); /* dL/dy = in[3] */
}

/* The best time of a step, in ms, and its memory in MiB: a step only takes memory until gr_context_reset, so what the
 * context holds just before it is the peak. False after an error. */
static bool measure(int kind, long n, double *ms, double *mib) {
    gr_context *ctx = gr_context_new();
    gr_rng rng = gr_rng_seed(1);
    gr_tensor *in[4]; /* q, k, v, dy: (n, D) */
    for (int i = 0; i < 4; i++) in[i] = gr_normal(ctx, GR_SHAPE(n, D), 0, 1, &rng);
    for (int i = 0; i < 3; i++) in[i] = gr_parameter(in[i], "x");
    in[3] = gr_keep(in[3]);
    const gr_mask mask = mask_of(ctx, kind, n);
    double best = INFINITY, begin = seconds();
    size_t taken = 0;
    for (int run = 0; run < RUNS && (run < FEWEST_RUNS || seconds() - begin < long_enough); run++) {
        gr_context_reset(ctx);
        const size_t before = gr_context_bytes(ctx);
        const double start = seconds();
        attend(kind, mask, in);
        if (run > 0) best = fmin(best, seconds() - start); /* the first warms up */
        taken = gr_context_bytes(ctx) - before;
    }
    *ms = 1e3 * best;
    *mib = ((double)taken - 2.0 * (double)n * D * sizeof(gr_real)) / (1 << 20); /* without y and dy */
    const bool ok = gr_context_report(ctx) == 0;
    gr_context_free(ctx);
    return ok;
}

/* The least-squares slope of log y over log n, over the larger half of the sizes. */
static double slope_of(int sizes, const double *y) {
    const int count = (sizes + 1) / 2, first = sizes - count;
    double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
    for (int i = first; i < sizes; i++) mean_x += log((double)size_at(i)) / count, mean_y += log(y[i]) / count;
    for (int i = first; i < sizes; i++) {
        const double x = log((double)size_at(i)) - mean_x;
        xx += x * x, xy += x * (log(y[i]) - mean_y);
    }
    return count > 1 ? xy / xx : NAN;
}

static bool measure_kind(int kind, curve *c) {
    for (int i = 0; i < kinds[kind].sizes && (i == 0 || c->of[TIME][i - 1] < 1e3 * too_slow); i++, c->sizes++)
        if (!measure(kind, size_at(i), &c->of[TIME][i], &c->of[MEMORY][i])) return false;
    for (int m = 0; m < MEASURES; m++) c->slope[m] = slope_of(c->sizes, c->of[m]);
    return true;
}

/* -- Showing the measures ------------------------------------------------------------------------------------------ */

static void print_table(const curve *curves, int m, const char *title) {
    printf("\n%s\n%8s", title, "n");
    for (int k = 0; k < KINDS; k++) printf("%12s", kinds[k].name);
    for (int i = 0; i < SIZES; i++) {
        printf("\n%8ld", size_at(i));
        for (int k = 0; k < KINDS; k++) {
            const double x = curves[k].of[m][i];
            if (i < curves[k].sizes) printf("%12.*f", x < 10 ? 2 : x < 100 ? 1 : 0, x);
            if (i >= curves[k].sizes) printf("%12s", "-");
        }
    }
    printf("\n");
}

static void print_all(const curve *curves) {
    print_table(curves, TIME, "Milliseconds of causal attention, forward and backward, one head, d = 64");
    print_table(curves, MEMORY, "MiB beyond q, k, v, the output and their gradients");
    printf("\nOver the larger half of the sizes\n");
    for (int k = 0; k < KINDS; k++)
        printf("%12s: time grows like n^%.2f, memory like n^%.2f\n", kinds[k].name, curves[k].slope[TIME],
               curves[k].slope[MEMORY]);
    printf("Only the textbook keeps scores, n^2 of them. The others work on tiles of a fixed size, and keep no more\n"
           "than some numbers for each query.\n");
}

static void write_table(FILE *out, const curve *curves) {
    fprintf(out, "n");
    for (int k = 0; k < KINDS; k++) fprintf(out, "\t%s ms\t%s MiB", kinds[k].name, kinds[k].name);
    for (int i = 0; i < SIZES; i++) {
        fprintf(out, "\n%ld", size_at(i));
        for (int k = 0; k < KINDS; k++) {
            if (i < curves[k].sizes) fprintf(out, "\t%.6g\t%.6g", curves[k].of[TIME][i], curves[k].of[MEMORY][i]);
            if (i >= curves[k].sizes) fprintf(out, "\t-\t-");
        }
    }
    fprintf(out, "\n");
}

static void write_terminal(FILE *out, const char *name, int width, int height) {
    fprintf(out,
            "# Draws %s.png (or .svg) in this directory: gnuplot %s.gp\n"
            "reset\n"
            "if (strstrt(GPVAL_TERMINALS, 'pngcairo') > 0) {\n"
            "    set terminal pngcairo enhanced size %d,%d font 'sans,11'\n"
            "    set output '%s.png'\n"
            "} else {\n"
            "    set terminal svg enhanced size %d,%d font 'sans,11' background rgb 'white'\n"
            "    set output '%s.svg'\n"
            "}\n",
            name, name, width, height, name, width, height, name);
}

static double last(const curve *c, int m) { return c->of[m][c->sizes - 1]; }

/* Names the lines at their ends: those that reach the last size to the right, side by side where they meet, a line of
 * text being a factor of gap high; the others above. */
static void write_names(FILE *out, const curve *curves, int m, double gap) {
    for (int k = 0; k < KINDS; k++) {
        const double y = last(&curves[k], m);
        const bool full = curves[k].sizes == SIZES;
        double rows = 0; /* above this one's, less those below it */
        for (int j = 0; j < KINDS && full; j++) {
            const double other = last(&curves[j], m);
            const bool meet = curves[j].sizes == SIZES && other < y * gap && y < other * gap;
            if (meet && j != k) rows += y > other || (y == other && k > j) ? 1 : -1;
        }
        fprintf(out, "set label '%s' at %ld,%g %s textcolor rgb '%s'\n", kinds[k].name, size_at(curves[k].sizes - 1),
                y * pow(gap, rows / 2), full ? "left offset 1,0" : "right offset -1,0.4", kinds[k].colour);
    }
}

static void write_panel(FILE *out, const curve *curves, int m, const char *title) {
    double low = INFINITY, high = 0;
    for (int k = 0; k < KINDS; k++) low = fmin(low, curves[k].of[m][0]), high = fmax(high, last(&curves[k], m));
    low /= 1.5, high *= 6; /* room for the key */
    fprintf(out, "unset label\nset title '%s' font 'sans,13'\nset yrange [%g:%g]\n", title, low, high);
    write_names(out, curves, m, pow(high / low, 0.045)); /* a line of text, as a share of the axis */
    for (int k = 0; k < KINDS; k++)
        fprintf(out,
                "%s 'complexity.tsv' skip 1 using 1:%d with linespoints pt 7 ps %g lw 2.2 lc rgb '%s' "
                "title '%s  n^{%.2f}'%s\n",
                k == 0 ? "plot" : "    ", 2 + 2 * k + m, kinds[k].point, kinds[k].colour, kinds[k].name,
                curves[k].slope[m], k < KINDS - 1 ? ", \\" : "");
}

static void write_script(FILE *out, const curve *curves) {
    write_terminal(out, "complexity", 1180, 560);
    fprintf(out, "set datafile separator \"\\t\"\nset datafile missing '-'\n"
                 "set multiplot layout 1,2\n"
                 "set logscale xy\nset xrange [220:52000]\nset format y '%%g'\n"
                 "set xtics (256, 512, 1024, 2048, 4096, 8192, 16384) font 'sans,10'\n"
                 "set xlabel 'n, queries and keys'\nset border 3 lc rgb '#606060'\n"
                 "set tics nomirror textcolor rgb '#303030'\nset grid xtics ytics lc rgb '#e8e8e8' lt 1\n"
                 "set key top left Left reverse samplen 2 spacing 1.25\n");
    write_panel(out, curves, TIME, "milliseconds, forward and backward");
    write_panel(out, curves, MEMORY, "MiB beyond inputs, output and gradients");
    fprintf(out, "unset multiplot\nset output\n");
}

/* -- Masks --------------------------------------------------------------------------------------------------------- */

enum { MASKS = 7, DRAWN = 32, PRINTED = 16, IN_A_ROW = 4 };
typedef struct named_mask {
    char name[40];
    gr_mask mask;
} named_mask;

/* For n a multiple of 16; the wording is that of mask.h. */
static void make_masks(gr_context *ctx, int n, named_mask *all) {
    const int wide = n / 4, global = n / 16, len = n * 11 / 16;
    gr_rng rng = gr_rng_seed(3);
    const gr_mask causal = gr_mask_causal(), near = gr_mask_window(global + 1);
    gr_tensor *strided = gr_layout_strided(ctx, n, wide), *fixed = gr_layout_fixed(ctx, n, wide);
    gr_tensor *bigbird = gr_layout_bigbird(ctx, (gr_bigbird_config){n / 2, 3, 1, 2, &rng}); /* blocks of 2 */
    all[0] = (named_mask){"causal", causal};
    all[1] = (named_mask){"", gr_mask_and(causal, gr_mask_window(wide))};
    all[2] = (named_mask){"window and global", gr_mask_or(near, gr_mask_global(global))};
    all[3] = (named_mask){"strided", gr_mask_and(causal, gr_mask_blocks(strided, 1))};
    all[4] = (named_mask){"fixed", gr_mask_and(causal, gr_mask_blocks(fixed, 1))};
    all[5] = (named_mask){"BigBird", gr_mask_blocks(bigbird, 2)};
    all[6] = (named_mask){"padding", gr_mask_padding(gr_full(ctx, GR_SHAPE(1), len))};
    snprintf(all[1].name, sizeof all->name, "window %d", wide);
}

/* gr_mask_print writes rows of PRINTED signs; here the masks stand side by side. */
static void print_masks(gr_context *ctx) {
    named_mask all[MASKS];
    char line[PRINTED + 2];
    FILE *drawn = tmpfile();
    if (!drawn) return;
    make_masks(ctx, PRINTED, all);
    for (int m = 0; m < MASKS; m++) gr_mask_print(ctx, all[m].mask, PRINTED, PRINTED, drawn);
    printf("Masks: a row a query, a column a key; # where it may look\n");
    for (int first = 0, next; first < MASKS; first = next) {
        next = first + IN_A_ROW < MASKS ? first + IN_A_ROW : MASKS;
        for (int m = first; m < next; m++) printf("%s  %-18s", m == first ? "\n" : "", all[m].name);
        for (int row = 0; row < PRINTED; row++)
            for (int m = first; m < next; m++) {
                fseek(drawn, (long)(m * PRINTED + row) * (PRINTED + 1), SEEK_SET);
                if (!fgets(line, sizeof line, drawn)) break;
                printf("%s  %-18.*s", m == first ? "\n" : "", PRINTED, line);
            }
        printf("\n");
    }
    fclose(drawn);
}

static void write_masks(FILE *out, gr_context *ctx) {
    named_mask all[MASKS];
    double share[MASKS] = {0};
    make_masks(ctx, DRAWN, all);
    write_terminal(out, "masks", 1180, 680);
    for (int m = 0; m < MASKS; m++) {
        const gr_real *at = gr_data(gr_mask_matrix(ctx, all[m].mask, GR_SHAPE(DRAWN, DRAWN)));
        fprintf(out, "$mask%d << END\n", m);
        for (int i = 0; at && i < DRAWN * DRAWN; i++) {
            share[m] += (double)at[i] / (DRAWN * DRAWN);
            fprintf(out, "%d%s", at[i] != 0, i % DRAWN == DRAWN - 1 ? "\n" : " ");
        }
        fprintf(out, "END\n");
    }
    fprintf(out,
            "set palette defined (0 '#eef3f8', 1 '#2171b5')\nset cbrange [0:1]\nunset colorbox\nunset key\nunset tics\n"
            "set border lc rgb '#a0a0a0'\nset size ratio 1\n"
            "set xrange [-0.5:%d.5]\nset yrange [%d.5:-0.5] # the first query on top\n"
            "set multiplot layout 2,4 margins 0.02,0.98,0.06,0.94 spacing 0.025,0.14\n",
            DRAWN - 1, DRAWN - 1);
    for (int m = 0; m < MASKS; m++)
        fprintf(out,
                "set title '%s' font 'sans,15' offset 0,-0.5\nset xlabel '%.0f %% of the pairs seen' offset 0,0.3\n"
                "plot $mask%d matrix with image pixels\n",
                all[m].name, 100 * share[m], m);
    fprintf(out, "unset title\nunset xlabel\nunset border\n"
                 "set label 1 'a row: a query' at 0,6 font 'sans,13'\n"
                 "set label 2 'a column: a key' at 0,10 font 'sans,13'\n"
                 "set label 3 'it may look' at 4,16 font 'sans,13'\n"
                 "set label 4 'it may not' at 4,20 font 'sans,13'\n"
                 "set object 1 rectangle from 0,15 to 2.5,17 fs solid fc rgb '#2171b5'\n"
                 "set object 2 rectangle from 0,19 to 2.5,21 fs solid fc rgb '#eef3f8'\n"
                 "plot NaN\nunset multiplot\nset output\n");
}

/* -- Files --------------------------------------------------------------------------------------------------------- */

/* Makes the directory, and those above it, and goes there. */
static bool enter(const char *path) {
    char above[1024];
    for (size_t i = 1; i < sizeof above && i <= strlen(path); i++) {
        snprintf(above, i + 1, "%s", path);
        if ((path[i] == '/' || !path[i]) && mkdir(above, 0777) != 0 && errno != EEXIST) return false;
    }
    return chdir(path) == 0;
}

int main(int argc, char **argv) {
    const char *directory = argc > 1 ? argv[1] : "build/complexity";
    if (argc > 2 || !enter(directory)) {
        fprintf(stderr, "09_complexity [DIR]: %s\n", argc > 2 ? "one directory at most" : strerror(errno));
        return 2;
    }
    gr_context *ctx = gr_context_new();
    print_masks(ctx);
    static curve curves[KINDS];
    for (int k = 0; k < KINDS; k++)
        if (!measure_kind(k, &curves[k])) return 1;
    print_all(curves);

    FILE *file[] = {fopen("complexity.tsv", "w"), fopen("complexity.gp", "w"), fopen("masks.gp", "w")};
    if (file[0]) write_table(file[0], curves);
    if (file[1]) write_script(file[1], curves);
    if (file[2]) write_masks(file[2], ctx);
    bool written = true;
    for (int i = 0; i < 3; i++) written = file[i] && fclose(file[i]) == 0 && written;
    if (!written) fprintf(stderr, "09_complexity: no room to write in %s\n", directory);
    const int status = gr_context_report(ctx) | !written;
    gr_context_free(ctx);
    fflush(NULL);
    if (status == 0 && system("gnuplot complexity.gp masks.gp 2>/dev/null") == 0)
        printf("\nlook at %s/complexity.png and %s/masks.png\n", directory, directory);
    else if (status == 0)
        printf("\nno pictures without gnuplot; with it: cd %s && gnuplot complexity.gp masks.gp\n", directory);
    return status;
}
