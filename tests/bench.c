/* clang-format off */
/* Measures. Prints tab-separated rows: name, case, threads, value, unit; medians and bests of 9 repetitions after a
 * warm-up. Threads from OMP_NUM_THREADS.
 *
 *   bench peak         the machine's limits: fused multiply-adds, memory
 *   bench gemm [--ta] [--tb] 768x384x128 ...
 *                      C (M, N) = A (M, K) B (K, N), given as MxNxK; A or B transposed in memory
 *   bench rows         each row kernel: ns an element, GB/s, share of the bandwidth
 *   bench step [--layers 4 --heads 4 --width 128 --context 64 --batch 12 --vocab 65 --steps 40]
 *                      a training step of the GPT
 *   bench attention [--kind textbook|fused|window|sparse|linear --n 1024 --d 64 --heads 1 --batch 1 --window 256]
 *                      causal attention, forward and backward; work on visible pairs, memory beside in- and output
 *   bench generate [--layers 4 --heads 4 --width 128 --context 64 --tokens 2000]
 *                      writing with keys and values kept, and the full forward passes that this saves
 *   bench op           a tiny op, forward and backward, per call
 *   bench all          the lot, and a table of it at the end */
/* clang-format on */
#include "bench.h"

#include "../src/tensor/internal.h"
#include "../src/tensor/parallel.h"
#include "../src/tensor/product.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

enum { MOST_ROWS = 256 };
static struct {
    char name[16], what[64], unit[24];
    double value;
} kept[MOST_ROWS];
static int kept_rows;

void bench_row(const char *name, const char *what, double value, const char *unit) {
    printf("%s\t%s\t%d\t%.4g\t%s\n", name, what, gr_max_threads(), value, unit);
    fflush(stdout);
    if (kept_rows == MOST_ROWS) return;
    snprintf(kept[kept_rows].name, sizeof kept->name, "%s", name);
    snprintf(kept[kept_rows].what, sizeof kept->what, "%s", what);
    snprintf(kept[kept_rows].unit, sizeof kept->unit, "%s", unit);
    kept[kept_rows++].value = value;
}

/* One line per case: all its values side by side. */
static void print_table(void) {
    printf("\n%-8s %-34s\n", "bench", "case");
    for (int i = 0; i < kept_rows; i++) {
        bool same = i > 0 && strcmp(kept[i].what, kept[i - 1].what) == 0 && strcmp(kept[i].name, kept[i - 1].name) == 0;
        if (!same) printf("%s%-8s %-34s", i ? "\n" : "", kept[i].name, kept[i].what);
        printf(" %9.4g %-14s", kept[i].value, kept[i].unit);
    }
    printf("\n");
}

/* Long enough for the clock, and for the processor to leave its idle states. */
static const double shortest_repetition = 0.02;
static const double slow_call = 1;

timing bench_time(void (*work)(void *arg), void *arg) {
    double begin = seconds(), once, time[REPETITIONS];
    work(arg);
    begin = seconds();
    work(arg);
    once = seconds() - begin;
    const int calls = once < shortest_repetition ? (int)(shortest_repetition / (once + 1e-8)) + 1 : 1;
    const int repetitions = once > slow_call ? SLOW_REPETITIONS : REPETITIONS;
    for (int r = 0; r < repetitions; r++) {
        begin = seconds();
        for (int i = 0; i < calls; i++) work(arg);
        time[r] = (seconds() - begin) / calls;
    }
    qsort(time, (size_t)repetitions, sizeof *time, ascending);
    return (timing){time[repetitions / 2], time[0]};
}

/* Sets the option from the word; false where it does not fit. */
static bool set_option(const bench_option *o, const char *word) {
    char *end = NULL;
    if (!word) return false;
    if (!o->choices) {
        *o->value = strtol(word, &end, 10);
        return *o->value >= 1 && !*end;
    }
    for (*o->value = 0; o->choices[*o->value]; ++*o->value)
        if (strcmp(o->choices[*o->value], word) == 0) return true;
    return false;
}

static void refuse_option(const char *bench, const bench_option *options, const bench_option *o, const char *word) {
    if (!o->name) {
        fprintf(stderr, "bench %s: %s is none of the options", bench, word);
        for (o = options; o->name; o++) fprintf(stderr, " %s", o->name);
    } else if (o->choices) {
        fprintf(stderr, "bench %s: %s needs one of", bench, o->name);
        for (int i = 0; o->choices[i]; i++) fprintf(stderr, " %s", o->choices[i]);
    } else
        fprintf(stderr, "bench %s: %s needs a whole number above 0", bench, o->name);
    fprintf(stderr, "\n");
    exit(2);
}

void bench_options(const char *bench, const bench_option *options, int count, char **words) {
    for (int i = 0; i < count; i += 2) {
        const bench_option *o = options;
        while (o->name && strcmp(words[i], o->name) != 0) o++;
        if (!o->name || !set_option(o, i + 1 < count ? words[i + 1] : NULL)) refuse_option(bench, options, o, words[i]);
    }
}

typedef struct gemm_job {
    gr_tensor *a, *b, *c;
} gemm_job;

static void gemm_work(void *arg) {
    gemm_job *g = arg;
    gr_product(g->c, g->a, g->b, (gr_product_how){.accumulate = false});
}

static void bench_gemm(const char *shape, bool ta, bool tb) {
    long m, n, k;
    char end;
    if (sscanf(shape, "%ldx%ldx%ld%c", &m, &n, &k, &end) != 3 || m < 1 || n < 1 || k < 1) {
        fprintf(stderr, "bench gemm: \"%s\" is not MxNxK, as in 768x384x128\n", shape);
        exit(2);
    }
    gr_context *ctx = gr_context_new();
    gr_rng rng = gr_rng_seed(1);
    gr_tensor *a = gr_normal(ctx, ta ? GR_SHAPE(k, m) : GR_SHAPE(m, k), 0, 1, &rng);
    gr_tensor *b = gr_normal(ctx, tb ? GR_SHAPE(n, k) : GR_SHAPE(k, n), 0, 1, &rng);
    gr_tensor *c = gr_zeros(ctx, GR_SHAPE(m, n));
    if (gr_context_report(ctx)) exit(1);
    gemm_job job = {ta ? gr_swapped(a) : a, tb ? gr_swapped(b) : b, c};
    timing t = bench_time(gemm_work, &job);
    double work = 2.0 * (double)m * (double)n * (double)k;
    char what[64];
    snprintf(what, sizeof what, "%.40s%s%s", shape, ta ? "_ta" : "", tb ? "_tb" : "");
    bench_row("gemm", what, work / t.median / 1e9, "GFLOP/s_median");
    bench_row("gemm", what, work / t.best / 1e9, "GFLOP/s_best");
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
    getrusage(RUSAGE_SELF, &usage); /* before the peak is measured, which is no part of the step */
    const double peak = bench_peak();
    bench_row("step", name, time[c->steps / 2] * 1e3, "ms_median");
    bench_row("step", name, time[0] * 1e3, "ms_best");
    bench_row("step", name, step_flops(c) / time[0] / 1e9, "GFLOP/s");
    if (peak > 0) bench_row("step", name, 100 * step_flops(c) / time[0] / 1e9 / peak, "%_of_peak");
    bench_row("step", name, (double)usage.ru_maxrss / 1024, "MiB_peak_rss");
    free(ids);
    free(time);
    gr_context_free(ctx);
}

/* A chain of additions of one number, back and forth; the time of one. */
enum { CHAIN = 1000 };

static void op_work(void *arg) {
    gr_tensor *x = arg, *y = x;
    for (int i = 0; i < CHAIN; i++) y = gr_add(y, x);
    gr_backward(y);
    gr_context_reset(gr_context_of(x));
}

static void bench_op(void) {
    gr_context *ctx = gr_context_new();
    timing t = bench_time(op_work, gr_parameter(gr_scalar(ctx, 1), "x"));
    if (gr_context_report(ctx)) exit(1);
    bench_row("op", "add", t.median / CHAIN * 1e9, "ns_median");
    bench_row("op", "add", t.best / CHAIN * 1e9, "ns_best");
    gr_context_free(ctx);
}

static void bench_limits(void) {
    bench_row("peak", "fma", bench_peak(), "GFLOP/s");
    bench_row("peak", "memory", bench_bandwidth(false), "GB/s");
}

static void bench_step_command(int count, char **words) {
    step_case c = {4, 4, 128, 64, 12, 65, 40};
    const bench_option options[] = {{"--layers", &c.layers, NULL}, {"--heads", &c.heads, NULL},
                                    {"--width", &c.width, NULL},   {"--context", &c.context, NULL},
                                    {"--batch", &c.batch, NULL},   {"--vocab", &c.vocab, NULL},
                                    {"--steps", &c.steps, NULL},   {NULL, NULL, NULL}};
    bench_options("step", options, count, words);
    bench_step(&c);
}

static void bench_gemms(int count, char **words) {
    bool ta = false, tb = false;
    for (int i = 0; i < count; i++) {
        if (strcmp(words[i], "--ta") == 0)
            ta = true;
        else if (strcmp(words[i], "--tb") == 0)
            tb = true;
        else
            bench_gemm(words[i], ta, tb);
    }
}

static void bench_all(void) {
    const char *shapes[] = {"768x384x128",   "768x128x128",   "768x512x128",   "768x128x512",    "128x512x768",
                            "2048x1152x384", "2048x384x1536", "384x1536x2048", "1024x1024x1024", "512x512x512",
                            "64x64x64",      "32x32x32",      "8x8x8"};
    bench_limits();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) bench_gemm(shapes[i], false, false);
    bench_rows();
    bench_op();
    bench_step(&(step_case){1, 1, 32, 8, 1, 32, 400});
    bench_step(&(step_case){1, 1, 32, 16, 4, 32, 400});
    bench_step(&(step_case){4, 4, 128, 64, 12, 65, 40});
    bench_step(&(step_case){6, 6, 384, 256, 8, 65, 7});
    bench_attention((attention_case){.kind = FUSED, .n = 1024, .d = 64, .heads = 1, .batch = 1});
    bench_attention((attention_case){.kind = FUSED, .n = 64, .d = 32, .heads = 4, .batch = 12});
    bench_generate((generate_case){4, 4, 128, 64, 500});
    print_table();
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "peak") == 0)
        bench_limits();
    else if (strcmp(what, "gemm") == 0)
        bench_gemms(argc - 2, argv + 2);
    else if (strcmp(what, "rows") == 0)
        bench_rows();
    else if (strcmp(what, "step") == 0)
        bench_step_command(argc - 2, argv + 2);
    else if (strcmp(what, "attention") == 0)
        bench_attention_command(argc - 2, argv + 2);
    else if (strcmp(what, "generate") == 0)
        bench_generate_command(argc - 2, argv + 2);
    else if (strcmp(what, "op") == 0)
        bench_op();
    else if (strcmp(what, "all") == 0)
        bench_all();
    else {
        fprintf(stderr, "usage: bench peak | gemm [--ta] [--tb] MxNxK ... | rows | step [--layers N ...] |\n"
                        "       attention [--kind KIND --n N ...] | generate [--layers N ...] | op | all\n");
        return 2;
    }
    return 0;
}
