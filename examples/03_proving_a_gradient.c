/* Lesson 3: difference quotients, what blinds them, and how a check is itself checked. */
#include <gradus.h>

#include <math.h>

#include "plot.h"

/* -- Step size -------------------------------------------------------------------------------------------------------
 */

/* sqrt and the four operations are exact to the last bit in IEEE 754: the same errors on every machine. */
static double f(double x) { return sqrt(1 + x * x); }
static double slope(double x) { return x / sqrt(1 + x * x); }

static const double POINT = 0.7;
enum { FORMULAS = 3, FINEST = 46 /* h = 2^-46 is a few units in the last place of x */ };

static double quotient(int formula, double x, double h) {
    if (formula == 0) return (f(x + h) - f(x)) / h;
    if (formula == 1) return (f(x + h) - f(x - h)) / (2 * h);
    return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h);
}

static double error_of(int formula, int k) { return fabs(quotient(formula, POINT, ldexp(1, -k)) - slope(POINT)); }

static void step_size(int argc, char **argv) {
    printf("error of the slope of sqrt(1 + x^2) at 0.7\n%-16s  one-sided    central  4th order\n", "step h");
    for (int k = 1; k <= FINEST; k += 5) {
        printf("2^-%-2d = %.1e ", k, ldexp(1, -k));
        for (int i = 0; i < FORMULAS; i++) printf("%11.1e", error_of(i, k));
        printf("\n");
    }
    plot p;
    if (!plot_open(&p, argc, argv, "03_step_size.svg", 760, 460)) return;
    const double floor = 1e-16; /* an error of 0 must be drawn somewhere */
    for (int k = 1; k <= FINEST; k++) {
        fprintf(p.data, "%.6e", ldexp(1, -k));
        for (int i = 0; i < FORMULAS; i++) fprintf(p.data, "\t%.3e", fmax(error_of(i, k), floor));
        fprintf(p.data, "\n");
    }
    fprintf(p.script, "set logscale xy\nset format '10^{%%T}'\nset termoption enhanced\nset xrange [1e-14:1]\n"
                      "set yrange [1e-16:3]\nset xlabel 'step h'\nset ylabel 'error of the slope'\n"
                      "set ytics 1e-16,100\nset xtics 1e-14,100\nset key top center\nunset mxtics\nunset mytics\n"
                      "set arrow 1 from 2**-9, graph 0 to 2**-9, graph 1 nohead dt (6,4) lc rgb '#808080'\n"
                      "set label 1 'gr\\_gradcheck: h = 2^{-9}' at 2**-9, 1e-15 right offset -0.7,0\n"
                      "plot data using 1:2 with linespoints ls 1 title 'one-sided', \\\n"
                      "     data using 1:3 with linespoints ls 2 title 'central', \\\n"
                      "     data using 1:4 with linespoints ls 3 title 'fourth order'\n");
    if (!plot_close(&p)) exit(EXIT_FAILURE);
}

/* -- A kink ----------------------------------------------------------------------------------------------------------
 */

static gr_tensor *relu(gr_context *ctx, gr_tensor **x, void *arg) {
    (void)ctx, (void)arg;
    return gr_relu(x[0]);
}

static void kink(gr_context *ctx, double at) {
    gr_tensor *x = gr_scalar(ctx, at);
    gr_gradcheck_result r = gr_gradcheck(ctx, relu, NULL, 1, &x, NULL, (gr_gradcheck_config){0});
    printf("relu at %-4g: dL/dx by backward %.3f, by difference %.3f: they %s\n", at, r.analytic, r.numeric,
           r.ok ? "agree" : "differ");
}

/* -- What a cotangent must be ----------------------------------------------------------------------------------------
 */

enum { N = 4, BACKWARDS = 5 };
static const char *const backward_name[BACKWARDS] = {"right", "doubled", "sign flipped", "nothing at all",
                                                     "without the sum"};

static void softmax(const double *x, double *y) {
    double sum = 0;
    for (int i = 0; i < N; i++) sum += y[i] = exp(x[i]);
    for (int i = 0; i < N; i++) y[i] /= sum;
}

/* dx = y (dy - sum y dy), and four ways of getting it wrong */
static void softmax_backward(int which, const double *y, const double *dy, double *dx) {
    static const double factor[BACKWARDS] = {1, 2, -1, 0, 1};
    double sum = 0;
    for (int i = 0; i < N; i++) sum += which == 4 ? 0 : y[i] * dy[i];
    for (int i = 0; i < N; i++) dx[i] = factor[which] * y[i] * (dy[i] - sum);
}

/* The largest |by backward - by difference| for L = sum r y. */
static double worst(int which, const double *r) {
    double x[N] = {0.5, -1, 2, 0}, y[N], dx[N], largest = 0;
    softmax(x, y);
    softmax_backward(which, y, r, dx);
    for (int i = 0; i < N; i++) {
        const double h = 0x1p-9, middle = x[i], step[] = {h, -h, 2 * h, -2 * h};
        double at[4] = {0};
        for (int k = 0; k < 4; k++) {
            x[i] = middle + step[k];
            softmax(x, y);
            for (int j = 0; j < N; j++) at[k] += r[j] * y[j];
        }
        x[i] = middle;
        largest = fmax(largest, fabs(dx[i] - (8 * (at[0] - at[1]) - (at[2] - at[3])) / (12 * h)));
    }
    return largest;
}

int main(int argc, char **argv) {
    step_size(argc, argv);
    gr_context *ctx = gr_context_new();
    kink(ctx, 1);
    kink(ctx, 0.01);
    const double ones[N] = {1, 1, 1, 1}, drawn[N] = {0.7, -1.2, 0.9, -0.6};
    printf("%-25s  L = sum y    L = sum r y\n", "a backward of softmax");
    for (int b = 0; b < BACKWARDS; b++)
        printf("%-25s  %-11s  %s\n", backward_name[b], worst(b, ones) < 1e-8 ? "passes" : "caught",
               worst(b, drawn) < 1e-8 ? "passes" : "caught");
    int status = gr_context_report(ctx);
    gr_context_free(ctx);
    return status;
}
