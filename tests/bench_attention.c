/* Causal attention, forward and backward from a random gradient of the output. */
#include "bench.h"
#include "bench_support.h"

#include <stdlib.h>

static void attention_work(void *arg) {
    attention_forward_backward(arg);
    gr_context_reset(((attention_job *)arg)->ctx);
}

/* For each visible pair and head the products are two forward, q k^T and p v, and five backward: the scores anew, dp,
 * dq, dk, dv; each is d multiplications and d additions. */
static double visible_flops(const attention_job *job) {
    const attention_case *of = &job->of;
    return 14 * (double)of->d * (double)of->heads * (double)of->batch * attention_visible_pairs(job);
}

void bench_attention(attention_case of) {
    gr_context *ctx = gr_context_new();
    attention_job job = attention_job_new(ctx, of);
    const size_t extra = attention_extra_bytes(&job);
    if (gr_context_report(ctx)) exit(1);
    const timing t = bench_time(attention_work, &job);
    if (gr_context_report(ctx)) exit(1);

    char name[64], kind[32];
    snprintf(kind, sizeof kind, of.kind == WINDOW ? "%s%ld" : "%s", attention_kind_name[of.kind], of.window);
    snprintf(name, sizeof name, "%s_n%ld_d%ld_H%ld_B%ld", kind, of.n, of.d, of.heads, of.batch);
    bench_row("attention", name, t.median * 1e3, "ms_median");
    bench_row("attention", name, t.best * 1e3, "ms_best");
    if (of.kind != LINEAR) { /* which has no pairs */
        const double rate = visible_flops(&job) / t.best / 1e9, peak = bench_peak();
        bench_row("attention", name, rate, "GFLOP/s");
        if (peak > 0) bench_row("attention", name, 100 * rate / peak, "%_of_peak");
    }
    bench_row("attention", name, (double)extra / (1 << 20), "MiB_extra");
    gr_context_free(ctx);
}

void bench_attention_command(int count, char **words) {
    attention_case c = {.kind = FUSED, .n = 1024, .d = 64, .heads = 1, .batch = 1, .window = 256};
    const bench_option options[] = {{"--kind", &c.kind, attention_kind_name},
                                    {"--n", &c.n, NULL},
                                    {"--d", &c.d, NULL},
                                    {"--heads", &c.heads, NULL},
                                    {"--batch", &c.batch, NULL},
                                    {"--window", &c.window, NULL},
                                    {NULL, NULL, NULL}};
    bench_options("attention", options, count, words);
    bench_attention(c);
}
