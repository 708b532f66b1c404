/* Lesson 5, second part: C = A B, n x n, from three loops to the library's kernels. */
#include <gradus.h>

#include <math.h>
#include <time.h>

#include "plot.h"

/* -- C = A B, n x n --------------------------------------------------------------------------------------------------
 */

enum { N = 512, ROWS = 4, COLUMNS = 8, RUNS = 5, SEED = 5 };
static const double slow = 0.1; /* seconds */
typedef void product(const gr_real *A, const gr_real *B, gr_real *C);

static void three_loops(const gr_real *A, const gr_real *B, gr_real *C) {
    for (int i = 0; i < N * N; i++) C[i] = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int k = 0; k < N; k++) C[i * N + j] += A[i * N + k] * B[k * N + j]; /* B: a step of N numbers */
}

static void reordered(const gr_real *A, const gr_real *B, gr_real *C) {
    for (int i = 0; i < N * N; i++) C[i] = 0;
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            for (int j = 0; j < N; j++) C[i * N + j] += A[i * N + k] * B[k * N + j]; /* all: a step of one */
}

/* ROWS x COLUMNS of C at a time stay in registers: each number of B is used ROWS times, each of A COLUMNS times. */
static void blocked(const gr_real *A, const gr_real *B, gr_real *C) {
    for (int i = 0; i < N; i += ROWS)
        for (int j = 0; j < N; j += COLUMNS) {
            gr_real sum[ROWS][COLUMNS] = {{0}};
            for (int k = 0; k < N; k++)
                for (int r = 0; r < ROWS; r++)
                    for (int c = 0; c < COLUMNS; c++) sum[r][c] += A[(i + r) * N + k] * B[k * N + j + c];
            for (int r = 0; r < ROWS; r++) memcpy(C + (i + r) * N + j, sum[r], sizeof sum[r]);
        }
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static gr_real A[N * N], B[N * N], C[N * N], expected[N * N];

/* The best of RUNS, one where it is slow, in GFLOP/s: 2 N^3 operations. `of` NULL: gr_matmul, with the kernels named by
 * GRADUS_ISA. */
static double speed(product *of, gr_context *ctx) {
    double best = INFINITY;
    for (int run = 0; run < RUNS && (run == 0 || best < slow); run++, gr_context_reset(ctx)) {
        gr_tensor *a = gr_from(ctx, GR_SHAPE(N, N), A), *b = gr_from(ctx, GR_SHAPE(N, N), B), *c = a;
        const double start = seconds();
        if (of) of(A, B, C);
        if (!of) c = gr_matmul(a, b);
        best = fmin(best, seconds() - start);
        if (!of && !gr_to_array(c, C)) return NAN; /* not on this processor */
    }
    return 2e-9 * N * N * N / best;
}

static void ladder(plot *p, bool drawing) {
    static const struct {
        const char *name, *isa;
        product *of;
    } step[] = {{"three loops", "", three_loops},
                {"loops reordered", "", reordered},
                {"blocked", "", blocked},
                {"gr_matmul, reference", "reference", NULL},
                {"gr_matmul, baseline", "baseline", NULL},
                {"gr_matmul, avx2", "avx2", NULL},
                {"gr_matmul, best", "", NULL}};
    bool close = true, same = true;
    if (drawing) fprintf(p->data, "# time\n");
    for (size_t i = 0; i < sizeof step / sizeof *step; i++) {
        if (*step[i].isa) setenv("GRADUS_ISA", step[i].isa, 1);
        if (!*step[i].isa) unsetenv("GRADUS_ISA");
        gr_context *ctx = gr_context_new();
        const double gflops = speed(step[i].of, ctx);
        for (int n = 0; n < N * N && isfinite(gflops); n++) {
            if (i == 0) expected[n] = C[n];
            if (step[i].of) same = same && !(C[n] < expected[n]) && !(C[n] > expected[n]);
            close = close && fabs((double)(C[n] - expected[n])) < 1e-3;
        }
        printf("time: %-22s %8.2f GFLOP/s  %s\n", step[i].name, gflops, step[i].of ? "" : gr_context_isa(ctx));
        if (drawing) fprintf(p->data, "%s\t%.3g\n", step[i].name, isfinite(gflops) ? gflops : 0);
        gr_error_clear(ctx);
        gr_context_free(ctx);
    }
    printf("the first three give the same numbers: %s\n", same ? "yes" : "no");
    printf("all products agree within 1e-3: %s\n", close ? "yes" : "no");
}

int main(int argc, char **argv) {
    plot p;
    const bool drawing = plot_open(&p, argc, argv, "05_matmul.svg", 800, 360);
    gr_context *ctx = gr_context_new();
    gr_rng rng = gr_rng_seed(SEED);
    gr_to_array(gr_normal(ctx, GR_SHAPE(N, N), 0, 1, &rng), A);
    gr_to_array(gr_normal(ctx, GR_SHAPE(N, N), 0, 1, &rng), B);
    printf("C = A B, %d x %d, one number 4 bytes\n", N, N);
    ladder(&p, drawing);
    if (drawing)
        fprintf(
            p.script,
            "set style fill solid noborder\nset boxwidth 0.6\nset logscale y\nset yrange [0.1:*]\nset grid noxtics\n"
            "set xtics rotate by -25 scale 0\nset ylabel 'GFLOP/s'\n"
            "plot data using 0:2:xtic(1) with boxes ls 1 notitle, '' using 0:2:(sprintf('%%.3g', $2)) with labels "
            "offset 0,0.7 notitle\n");
    const int status = gr_context_report(ctx);
    gr_context_free(ctx);
    return drawing && !plot_close(&p) ? 1 : status;
}
