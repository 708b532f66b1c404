/* Measures. Prints tab-separated rows: name, case, threads, value, unit; medians and bests of at least 7 repetitions
 * after a warm-up. Threads from OMP_NUM_THREADS.
 *
 *   bench gemm 768x384x128 ...        C (M, N) = A (M, K) B (K, N), given as MxNxK
 *   bench step [--layers 4 --heads 4 --width 128 --context 64 --batch 12 --vocab 65 --steps 40]
 *   bench op                          a tiny op, forward and backward, per call
 *   bench all                         the lot */
#include <gradus.h>

#include "../src/tensor/internal.h"
#include "../src/tensor/parallel.h"
#include "../src/tensor/product.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { REPETITIONS = 9 };

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void row(const char *name, const char *what, double value, const char *unit) {
    printf("%s\t%s\t%d\t%.4g\t%s\n", name, what, gr_max_threads(), value, unit);
    fflush(stdout);
}

static void bench_gemm(const char *shape) {
    long m, n, k;
    if (sscanf(shape, "%ldx%ldx%ld", &m, &n, &k) != 3) {
        fprintf(stderr, "bench gemm: \"%s\" is not MxNxK, as in 768x384x128\n", shape);
        exit(2);
    }
    gr_context *ctx = gr_context_new();
    gr_rng rng = gr_rng_seed(1);
    gr_tensor *a = gr_normal(ctx, GR_SHAPE(m, k), 0, 1, &rng), *b = gr_normal(ctx, GR_SHAPE(k, n), 0, 1, &rng);
    gr_tensor *c = gr_zeros(ctx, GR_SHAPE(m, n));
    if (gr_context_report(ctx)) exit(1);
    double work = 2.0 * (double)m * (double)n * (double)k, time[REPETITIONS];
    int calls = (int)(4e8 / work) + 1;
    if (calls > 20000) calls = 20000;
    for (int r = -1; r < REPETITIONS; r++) {
        double begin = seconds();
        for (int i = 0; i < calls; i++) gr_product(c, a, b, (gr_product_how){.accumulate = false});
        if (r >= 0) time[r] = (seconds() - begin) / calls;
    }
    qsort(time, REPETITIONS, sizeof *time, ascending);
    row("gemm", shape, work / time[REPETITIONS / 2] / 1e9, "GFLOP/s_median");
    row("gemm", shape, work / time[0] / 1e9, "GFLOP/s_best");
    gr_context_free(ctx);
}

typedef struct step_case {
    long layers, heads, width, context, batch, vocab, steps;
} step_case;

/* Forward, backward, clip and update of the GPT, on one batch of random ids. */
static double one_step(gr_context *ctx, gr_gpt *gpt, gr_adamw *adamw, gr_tokens inputs, gr_tokens targets) {
    double begin = seconds();
    gr_tensor *loss = gr_cross_entropy(gr_gpt_forward(gpt, inputs), targets);
    gr_backward(loss);
    gr_clip_grad_norm(ctx, 1.0);
    gr_adamw_step(adamw, 1e-3);
    gr_zero_grad(ctx);
    gr_context_reset(ctx);
    return seconds() - begin;
}

/* Multiplications and additions of the matrix products: 6 per weight and token, and 12 L T C per token for attention.
 */
static double step_flops(const step_case *c) {
    double l = (double)c->layers, w = (double)c->width, t = (double)c->context, tokens = (double)c->batch * t;
    return tokens * (6 * (12 * l * w * w + (double)c->vocab * w) + 12 * l * t * w);
}

static void bench_step(const step_case *c) {
    gr_context *ctx = gr_context_new();
    gr_gpt *gpt = gr_gpt_new(ctx, (gr_gpt_config){.vocab = c->vocab,
                                                  .context = c->context,
                                                  .layers = c->layers,
                                                  .heads = c->heads,
                                                  .width = c->width,
                                                  .seed = 1});
    gr_adamw *adamw = gr_adamw_new(ctx, (gr_adamw_config){.beta2 = 0.99, .weight_decay = 0.1});
    size_t n = (size_t)(c->batch * c->context);
    int32_t *ids = malloc(2 * n * sizeof *ids);
    double *time = malloc((size_t)c->steps * sizeof *time);
    if (!ids || !time) exit(1);
    gr_rng rng = gr_rng_seed(2);
    for (size_t i = 0; i < 2 * n; i++) ids[i] = (int32_t)gr_rng_below(&rng, (uint64_t)c->vocab);
    gr_tokens inputs = {ids, c->batch, c->context}, targets = {ids + n, c->batch, c->context};
    for (long s = -1; s < c->steps; s++) {
        double t = one_step(ctx, gpt, adamw, inputs, targets);
        if (s >= 0) time[s] = t;
    }
    if (gr_context_report(ctx)) exit(1);
    qsort(time, (size_t)c->steps, sizeof *time, ascending);
    char name[128];
    snprintf(name, sizeof name, "L%ld_H%ld_C%ld_T%ld_B%ld_V%ld", c->layers, c->heads, c->width, c->context, c->batch,
             c->vocab);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    row("step", name, time[c->steps / 2] * 1e3, "ms_median");
    row("step", name, time[0] * 1e3, "ms_best");
    row("step", name, step_flops(c) / time[0] / 1e9, "GFLOP/s");
    row("step", name, (double)usage.ru_maxrss / 1024, "MiB_peak_rss");
    free(ids);
    free(time);
    gr_context_free(ctx);
}

static void bench_op(void) {
    gr_context *ctx = gr_context_new();
    gr_tensor *x = gr_parameter(gr_scalar(ctx, 1), "x");
    enum { CHAIN = 1000 };
    double time[REPETITIONS];
    for (int r = -1; r < REPETITIONS; r++) {
        double begin = seconds();
        gr_tensor *y = x;
        for (int i = 0; i < CHAIN; i++) y = gr_add(y, x);
        gr_backward(y);
        gr_context_reset(ctx);
        if (r >= 0) time[r] = (seconds() - begin) / CHAIN;
    }
    if (gr_context_report(ctx)) exit(1);
    qsort(time, REPETITIONS, sizeof *time, ascending);
    row("op", "add", time[REPETITIONS / 2] * 1e9, "ns_median");
    row("op", "add", time[0] * 1e9, "ns_best");
    gr_context_free(ctx);
}

static step_case parse_step(int count, char **words) {
    step_case c = {4, 4, 128, 64, 12, 65, 40};
    const struct {
        const char *name;
        long *value;
    } options[] = {{"--layers", &c.layers}, {"--heads", &c.heads}, {"--width", &c.width}, {"--context", &c.context},
                   {"--batch", &c.batch},   {"--vocab", &c.vocab}, {"--steps", &c.steps}};
    enum { OPTIONS = sizeof options / sizeof options[0] };
    for (int i = 0; i < count; i += 2) {
        int o = 0;
        while (o < OPTIONS && strcmp(words[i], options[o].name) != 0) o++;
        char *end = NULL;
        long value = o < OPTIONS && i + 1 < count ? strtol(words[i + 1], &end, 10) : 0;
        if (value < 1 || *end) {
            fprintf(stderr,
                    "bench step: %s needs a whole number above 0; options are --layers --heads --width --context "
                    "--batch --vocab --steps\n",
                    words[i]);
            exit(2);
        }
        *options[o].value = value;
    }
    return c;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    bool all = strcmp(what, "all") == 0;
    if (strcmp(what, "gemm") == 0)
        for (int i = 2; i < argc; i++) bench_gemm(argv[i]);
    else if (strcmp(what, "step") == 0) {
        step_case c = parse_step(argc - 2, argv + 2);
        bench_step(&c);
    } else if (strcmp(what, "op") == 0)
        bench_op();
    else if (!all) {
        fprintf(stderr, "usage: bench gemm MxNxK ... | step [--layers N ...] | op | all\n");
        return 2;
    }
    if (all) {
        const char *shapes[] = {"768x384x128", "768x128x128", "768x512x128", "128x512x768", "512x512x512", "32x32x32"};
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) bench_gemm(shapes[i]);
        bench_op();
        bench_step(&(step_case){4, 4, 128, 64, 12, 65, 40});
        bench_step(&(step_case){1, 1, 32, 16, 4, 32, 400});
    }
    return 0;
}
