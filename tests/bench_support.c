#include "bench_support.h"

const char *const attention_kind_name[ATTENTION_KINDS + 1] = {"textbook", "fused", "window", "sparse", "linear"};

enum { BLOCK = 64, STRIDE = 4 }; /* of the sparse kind: a group is 256 keys, as wide as the default window */
enum { STRIP = 128 };            /* queries whose mask is written out at a time */

static gr_mask mask_of(gr_context *ctx, const attention_case *of) {
    const gr_mask causal = gr_mask_causal();
    if (of->kind == WINDOW) return gr_mask_and(causal, gr_mask_window(of->window));
    if (of->kind != SPARSE) return causal;
    const int64_t blocks = (of->n - 1) / BLOCK + 1;
    return gr_mask_and(causal, gr_mask_blocks(gr_keep(gr_layout_fixed(ctx, blocks, STRIDE)), BLOCK));
}

attention_job attention_job_new(gr_context *ctx, attention_case of) {
    const gr_shape shape = GR_SHAPE(of.batch, of.heads, of.n, of.d);
    gr_rng rng = gr_rng_seed(1);
    attention_job job = {.of = of, .ctx = ctx, .mask = mask_of(ctx, &of)};
    job.q = gr_parameter(gr_normal(ctx, shape, 0, 1, &rng), "q");
    job.k = gr_parameter(gr_normal(ctx, shape, 0, 1, &rng), "k");
    job.v = gr_parameter(gr_normal(ctx, shape, 0, 1, &rng), "v");
    job.seed = gr_keep(gr_normal(ctx, shape, 0, 1, &rng));
    gr_context_reset(ctx);
    return job;
}

void attention_forward_backward(const attention_job *job) {
    gr_tensor *weights = NULL, *y;
    if (job->of.kind == LINEAR)
        y = gr_linear_attention(job->q, job->k, job->v, true);
    else
        y = gr_attention(
            job->q, job->k, job->v,
            (gr_attention_options){.mask = job->mask, .weights = job->of.kind == TEXTBOOK ? &weights : NULL});
    gr_backward_from(y, job->seed);
}

size_t attention_extra_bytes(const attention_job *job) {
    const size_t output = (size_t)gr_numel(job->q) * sizeof(gr_real);
    attention_forward_backward(job); /* what is made once is made now */
    gr_context_reset(job->ctx);
    const size_t before = gr_context_bytes(job->ctx);
    attention_forward_backward(job);
    const size_t taken = gr_context_bytes(job->ctx) - before;
    gr_context_reset(job->ctx);
    return taken > 2 * output ? taken - 2 * output : 0; /* y and dy; 0 only after an error */
}

/* By strips: a mask over (count, end) is that of the last count of end moments, and, being causal, hides what comes
 * after them. */
double attention_visible_pairs(const attention_job *job) {
    int64_t pairs = 0;
    for (int64_t begin = 0, end; begin < job->of.n && gr_ok(job->ctx); begin = end) {
        end = begin + STRIP < job->of.n ? begin + STRIP : job->of.n;
        gr_tensor *visible = gr_mask_matrix(job->ctx, job->mask, GR_SHAPE(end - begin, end));
        const gr_real *at = gr_data(visible);
        for (int64_t i = 0, count = gr_numel(visible); at && i < count; i++) pairs += at[i] != 0;
        gr_context_reset(job->ctx);
    }
    return (double)pairs;
}
