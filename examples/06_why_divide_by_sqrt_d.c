/* Lesson 6: scores of random queries and keys, their softmax and its gradient, against the size of a head. */
#include <gradus.h>

#include <math.h>

#include "plot.h"

enum { QUERIES = 512, KEYS = 64, SIZES = 6, SEED = 6 };
static const int size[SIZES] = {1, 4, 16, 64, 256, 1024};

/* A softmax over KEYS scores; L = sum r p with r ~ N(0, 1), so that |dL/dscores| is a number for each query. */
typedef struct findings {
    double variance; /* of what goes into the softmax */
    double entropy;  /* -sum p ln p, in nats, mean; ln KEYS when all weights are equal */
    double mean;     /* of |dL/dscores| ... */
    double median;   /* ... half of the queries get less */
} findings;

static int by_size(const void *a, const void *b) {
    const gr_real x = *(const gr_real *)a, y = *(const gr_real *)b;
    return (x > y) - (x < y);
}

/* scores = scale q k^T with q, k ~ N(0, 1). */
static findings measure(gr_context *ctx, int d, double scale) {
    gr_rng rng = gr_rng_seed(SEED);
    gr_tensor *q = gr_normal(ctx, GR_SHAPE(QUERIES, d), 0, 1, &rng);                            /* (Q, d) */
    gr_tensor *k = gr_normal(ctx, GR_SHAPE(KEYS, d), 0, 1, &rng);                               /* (K, d) */
    gr_tensor *r = gr_normal(ctx, GR_SHAPE(QUERIES, KEYS), 0, 1, &rng);                         /* (Q, K) */
    gr_tensor *scores = gr_requires_grad(gr_scale(gr_matmul(q, gr_transpose(k, 0, 1)), scale)); /* (Q, K) */
    gr_tensor *p = gr_softmax(scores);                                                          /* (Q, K) */
    gr_backward_from(p, r);
    gr_tensor *logs = gr_log_softmax(scores);                  /* finite where p is 0 */
    gr_tensor *length = gr_norm(gr_grad(scores), GR_AXES(-1)); /* (Q) */
    gr_real sorted[QUERIES] = {0};
    gr_to_array(length, sorted);
    qsort(sorted, QUERIES, sizeof *sorted, by_size);
    const findings found = {gr_item(gr_variance(scores, GR_ALL)), -gr_item(gr_sum(gr_mul(p, logs), GR_ALL)) / QUERIES,
                            gr_item(gr_mean(length, GR_ALL)), (double)sorted[QUERIES / 2]};
    gr_context_reset(ctx);
    return found;
}

/* Two rows of weights, eight keys, one query: the eye's version of the table. */
static void print_rows(gr_context *ctx, int d) {
    gr_rng rng = gr_rng_seed(SEED);
    gr_tensor *q = gr_normal(ctx, GR_SHAPE(1, d), 0, 1, &rng), *k = gr_normal(ctx, GR_SHAPE(8, d), 0, 1, &rng);
    gr_tensor *raw = gr_matmul(q, gr_transpose(k, 0, 1)); /* (1, 8) */
    const struct {
        const char *name;
        gr_tensor *of;
    } rows[] = {{"q.k", raw},
                {"softmax(q.k)", gr_softmax(raw)},
                {"softmax(q.k / sqrt(d_k))", gr_softmax(gr_scale(raw, 1 / sqrt((double)d)))}};
    gr_real x[8];
    printf("one query, eight keys, d_k = %d\n", d);
    for (int i = 0; i < 3 && gr_to_array(rows[i].of, x); i++) {
        printf("  %-26s", rows[i].name);
        for (int j = 0; j < 8; j++) printf(i == 0 ? "%7.1f" : "%7.3f", (double)x[j]);
        printf("\n");
    }
    gr_context_reset(ctx);
}

static void write_script(FILE *out) {
    static const char *const title[] = {"variance of the scores", "entropy of the weights, nats", "median |gradient|"};
    static const char *const range[] = {"[0.3:3000]", "[0:4.4]", "[1e-4:1]"};
    fprintf(out,
            "set multiplot layout 1,3 margins 0.06,0.98,0.2,0.78 spacing 0.07,0\nset logscale x 4\nset xlabel 'd_k'\n"
            "set xrange [0.8:1300]\nset xtics (1, 4, 16, 64, 256, 1024)\nset key at screen 0.75,0.98 maxrows 1\n");
    for (int i = 0; i < 3; i++)
        fprintf(out,
                "%sset logscale y\nset yrange %s\nset title '%s'\n"
                "plot data using 1:%d with linespoints ls 2 %s, '' using 1:%d with linespoints ls 1 %s\n",
                i == 1 ? "un" : "", range[i], title[i], 2 + i, i ? "notitle" : "title 'softmax of q.k'", 5 + i,
                i ? "notitle" : "title 'of q.k / sqrt(d_k)'");
    fprintf(out, "unset multiplot\n");
}

int main(int argc, char **argv) {
    plot p;
    const bool drawing = plot_open(&p, argc, argv, "06_why_divide_by_sqrt_d.svg", 1000, 340);
    gr_context *ctx = gr_context_new();
    print_rows(ctx, 64);
    printf("\n%d queries, %d keys; ln %d = %.2f\n", QUERIES, KEYS, KEYS, log(KEYS));
    printf("             q.k                                   q.k / sqrt(d_k)\n"
           "                        |gradient|                              |gradient|\n"
           " d_k  variance  entropy     mean    median    variance  entropy     mean    median\n");
    for (int i = 0; i < SIZES; i++) {
        const findings f[2] = {measure(ctx, size[i], 1), measure(ctx, size[i], 1 / sqrt((double)size[i]))};
        printf("%4d", size[i]);
        for (int s = 0; s < 2; s++)
            printf("%10.2f%9.2f%9.4f%10.4f%s", f[s].variance, f[s].entropy, f[s].mean, f[s].median, s ? "\n" : "  ");
        if (drawing)
            fprintf(p.data, "%d\t%.5g\t%.5g\t%.5g\t%.5g\t%.5g\t%.5g\n", size[i], f[0].variance, f[0].entropy,
                    f[0].median, f[1].variance, f[1].entropy, f[1].median);
    }
    if (drawing) write_script(p.script);
    const int status = gr_context_report(ctx);
    gr_context_free(ctx);
    return drawing && !plot_close(&p) ? 1 : status;
}
