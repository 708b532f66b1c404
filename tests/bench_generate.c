/* Writing with a GPT: a token with kept keys and values, against the full forward pass that it saves. */
#include "bench.h"

#include <stdlib.h>

enum { VOCAB = 65 }; /* characters of a play, as in `bench step` */

typedef struct generate_job {
    gr_gpt *gpt;
    int32_t *ids; /* max(tokens + 1, context) */
    int64_t total, context;
    gr_rng rng;
} generate_job;

static void generate_work(void *arg) {
    generate_job *g = arg;
    gr_gpt_generate(g->gpt, g->ids, 1, (gr_generation){.total = g->total, .how = {.temperature = 1}, .rng = &g->rng});
}

static void full_work(void *arg) {
    generate_job *g = arg;
    gr_no_grad_begin(g->gpt->ctx);
    gr_gpt_forward(g->gpt, (gr_tokens){g->ids, 1, g->context});
    gr_no_grad_end(g->gpt->ctx);
    gr_context_reset(g->gpt->ctx);
}

void bench_generate(generate_case c) {
    gr_context *ctx = gr_context_new();
    gr_gpt *gpt = gr_gpt_new(
        ctx,
        (gr_gpt_config){
            .vocab = VOCAB, .context = c.context, .layers = c.layers, .heads = c.heads, .width = c.width, .seed = 1});
    if (gr_context_report(ctx)) exit(1);
    generate_job job = {gpt, NULL, c.tokens + 1, c.context, gr_rng_seed(2)};
    job.ids = calloc((size_t)(job.total > c.context ? job.total : c.context), sizeof *job.ids);
    if (!job.ids) exit(1);
    const timing written = bench_time(generate_work, &job), full = bench_time(full_work, &job);
    if (gr_context_report(ctx)) exit(1);

    const double token = written.best / (double)c.tokens;
    char name[64];
    snprintf(name, sizeof name, "L%ld_H%ld_C%ld_T%ld", c.layers, c.heads, c.width, c.context);
    bench_row("generate", name, 1 / token, "tokens/s");
    bench_row("generate", name, full.best * 1e3, "ms_full_forward");
    bench_row("generate", name, full.best / token, "x");
    free(job.ids);
    gr_context_free(ctx);
}

void bench_generate_command(int count, char **words) {
    generate_case c = {.layers = 4, .heads = 4, .width = 128, .context = 64, .tokens = 2000};
    const bench_option options[] = {{"--layers", &c.layers, NULL}, {"--heads", &c.heads, NULL},
                                    {"--width", &c.width, NULL},   {"--context", &c.context, NULL},
                                    {"--tokens", &c.tokens, NULL}, {NULL, NULL, NULL}};
    bench_options("generate", options, count, words);
    bench_generate(c);
}
