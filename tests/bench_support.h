/* One causal attention, forward and backward, as `bench attention` measures it and tests/suite_bench.c checks it. */
#ifndef GR_BENCH_SUPPORT_H
#define GR_BENCH_SUPPORT_H

#include <gradus.h>

/* Sparse: gr_layout_fixed, blocks of 64, stride 4. Only the window kind reads window. */
typedef enum attention_kind { TEXTBOOK, FUSED, WINDOW, SPARSE, LINEAR, ATTENTION_KINDS } attention_kind;
extern const char *const attention_kind_name[ATTENTION_KINDS + 1]; /* ends in NULL */

typedef struct attention_case {
    long kind, n, d, heads, batch, window;
} attention_case;

typedef struct attention_job {
    attention_case of;
    gr_context *ctx;
    gr_mask mask;
    gr_tensor *q, *k, *v, *seed; /* (B, H, n, d): normal numbers; the first three have a gradient, the last is one */
} attention_job;
attention_job attention_job_new(gr_context *ctx, attention_case of);

/* One step without its end: y = attention(q, k, v), gradients from dy = seed. */
void attention_forward_backward(const attention_job *job);

/* Bytes that a step takes beside q, k, v, y and their gradients, at its peak: the arena of a step only grows until
 * gr_context_reset, so they are gr_context_bytes just before it, less those at the step's beginning, less y and dy. Not
 * counted is what a context makes once, whatever the n: the room in which products pack their operands. */
size_t attention_extra_bytes(const attention_job *job);

/* Pairs (query, key) of one head that the mask shows. */
double attention_visible_pairs(const attention_job *job);

#endif
