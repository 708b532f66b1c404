#include "lm.h"

#include "nn/configuration.h"

#include <inttypes.h>

/* -- FLOPs --------------------------------------------------------------------------------------------------------- */

/* Keys that a query meets in the mean: the visible ones; of textbook attention all; of linear attention the size of a
 * head, whose state takes the keys' place. */
static double keys_met(const gr_gpt_config *c) {
    const int64_t n = c->context, group = GR_SPARSE_STRIDE * c->style.block;
    double sum = 0;
    if (c->style.kind == GR_TEXTBOOK) return (double)n;
    if (c->style.kind == GR_LINEAR) return (double)c->width / (double)c->heads;
    for (int64_t query = 0; query < n; query++) {
        int64_t seen = query + 1;
        if (c->style.kind == GR_WINDOW && seen > c->style.window + c->style.global)
            seen = c->style.window + c->style.global;
        if (c->style.kind == GR_SPARSE) seen = query % group + 1 + query / group * c->style.block;
        sum += (double)seen;
    }
    return sum / (double)n;
}

/* Forward, per token: a multiplication and an addition for each number of a matrix, the head's among them, and for each
 * key met as much for its score and its value as the width has numbers. Backward costs twice that. */
static double flops_of_token(const gr_gpt *gpt) {
    const gr_gpt_config *c = &gpt->config;
    double matrices = (double)c->vocab * (double)c->width;
    for (int i = 0; i < gpt->count; i++) {
        const gr_tensor *w = gr_parameter_at(gpt->ctx, gpt->first + i);
        const bool table = w == gpt->wte.weight || w == gpt->wpe.weight;
        if (gr_ndim(w) == 2 && !table) matrices += (double)gr_numel(w);
    }
    return 3 * (2 * matrices + 4 * (double)c->layers * (double)c->width * keys_met(c));
}

/* -- Memory -------------------------------------------------------------------------------------------------------- */

enum { MEASURED = 256 }; /* tokens of a window, at most: longer ones would take their time to answer a question */

/* Bytes that a step of so many windows takes beside the model: measured. */
static double bytes_of_step(gr_gpt *gpt, const int32_t *ids, int64_t batch, int64_t time) {
    const gr_tokens tokens = {ids, batch, time};
    const size_t before = gr_context_bytes(gpt->ctx);
    gr_backward(gr_cross_entropy(gr_gpt_forward(gpt, tokens), tokens));
    const size_t after = gr_context_bytes(gpt->ctx);
    gr_context_reset(gpt->ctx);
    return (double)after - (double)before;
}

/* A step is measured with one window and with two; each further one takes as much as the second. What a longer window
 * takes grows with its tokens, and of textbook attention, whose scores, weights and both their gradients stand in
 * memory, with their square. */
static double activations(gr_gpt *gpt, int64_t batch) {
    const gr_gpt_config *c = &gpt->config;
    const int64_t time = c->context < MEASURED ? c->context : MEASURED;
    int32_t ids[2 * MEASURED] = {0};
    bytes_of_step(gpt, ids, 2, time); /* what is made once */
    const double one = bytes_of_step(gpt, ids, 1, time), two = bytes_of_step(gpt, ids, 2, time);
    const double longer = (double)c->context / (double)time, n = (double)c->context;
    const double squares = 4 * (double)(c->layers * c->heads) * n * (n - (double)time) * sizeof(gr_real);
    const double window = (two - one) * longer + (c->style.kind == GR_TEXTBOOK ? squares : 0);
    return 2 * one - two + window * (double)batch;
}

/* -- The page ------------------------------------------------------------------------------------------------------ */

/* As a checkpoint says it. */
static void print_config(const gr_gpt *gpt) {
    enum { ROW = GR_CONFIGURATION_NOTES / 2 };
    gr_note note[GR_CONFIGURATION_NOTES];
    gr_configuration_write(gpt->ctx, gpt->config, note);
    for (int i = 0; i < GR_CONFIGURATION_NOTES; i++)
        printf("%s %s%s", note[i].key, note[i].value, (i + 1) % ROW == 0 ? "\n" : ", ");
    putchar('\n');
}

enum { NAME = 40, SHAPE = 16, COUNT = 12 };

static void print_parameters(gr_gpt *gpt) {
    int64_t total = 0;
    printf("%-*s%-*s%*s\n", NAME, "parameter", SHAPE, "shape", COUNT, "numbers");
    for (int i = 0; i < gpt->count; i++) {
        const gr_tensor *w = gr_parameter_at(gpt->ctx, gpt->first + i);
        char shape[64];
        int at = 0;
        for (int axis = 0; axis < gr_ndim(w); axis++)
            at += snprintf(shape + at, sizeof shape - (size_t)at, "%s%" PRId64, axis > 0 ? ", " : "(", gr_dim(w, axis));
        snprintf(shape + at, sizeof shape - (size_t)at, ")");
        printf("%-*s%-*s%*" PRId64 "\n", NAME, gr_name(w), SHAPE, shape, COUNT, gr_numel(w));
        total += gr_numel(w);
    }
    printf("%-*s%-*s%*" PRId64 "\n\n", NAME, "all", SHAPE, "", COUNT, total);
}

static void print_size(const char *what, double bytes) {
    static const double KIB = 1024;
    printf("  %-38s%*.2f MiB\n", what, COUNT, bytes / KIB / KIB);
}

/* Weights, gradients and AdamW's two moments have the same size. */
static void print_step(gr_gpt *gpt, int64_t batch, int64_t accumulation, double step) {
    static const double GIGA = 1e9;
    double weights = 0;
    for (int i = 0; i < gpt->count; i++)
        weights += (double)gr_numel(gr_parameter_at(gpt->ctx, gpt->first + i)) * sizeof(gr_real);
    const double tokens = (double)batch * (double)gpt->config.context * (double)accumulation;
    const double flops = flops_of_token(gpt);
    printf("a training step: %" PRId64 " x %" PRId64 " windows of %" PRId64 " tokens, %.0f tokens\n", accumulation,
           batch, gpt->config.context, tokens);
    print_size("weights", weights);
    print_size("gradients", weights);
    print_size("AdamW's moments", 2 * weights);
    print_size(gpt->config.context > MEASURED ? "activations, their gradients (estimate)"
                                              : "activations and their gradients",
               step);
    print_size("memory in all", 4 * weights + step);
    printf("  %-38s%*.3f GFLOP\n", "a token, forward and backward", COUNT, flops / GIGA);
    printf("  %-38s%*.3f GFLOP\n", "FLOPs of the step", COUNT, flops * tokens / GIGA);
}

/* Options of a model beside a model: one of them is not meant. */
static int check_options(const lm_settings *set) {
    for (size_t i = 0; *set->model && i < lm_option_count; i++) {
        const unsigned of = lm_options[i].commands;
        if (of & LM_INFO && of & (LM_FIXED | LM_UNSAVED) && set->level[i] > LM_BY_DEFAULT)
            return lm_wrong_usage(set, "--%s does not go with --model, which says it", lm_options[i].name);
    }
    return lm_check_model(set);
}

int lm_info(const lm_settings *set) {
    if (check_options(set) != 0) return LM_USAGE;
    gr_context *ctx = gr_context_new();
    gr_gpt *gpt = *set->model ? lm_load(ctx, set->model, NULL) : gr_gpt_new(ctx, lm_gpt_config(set, set->vocab));
    const double step = gr_ok(ctx) ? activations(gpt, set->batch) : 0;
    if (gr_ok(ctx)) {
        print_config(gpt);
        print_parameters(gpt);
        print_step(gpt, set->batch, set->accumulation, step);
    }
    return lm_end(set, ctx);
}
