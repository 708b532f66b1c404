#include "lm.h"

#include "nn/configuration.h"

#include <inttypes.h>
#include <stdlib.h>

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
static double flops_of_token(const gr_gpt_config *c) {
    const double width = (double)c->width, layers = (double)c->layers;
    const double of_layer = 3 + 1 + 4 + 4; /* c_attn, c_proj, the MLP's two: C^2 each */
    const double matrices = (double)c->vocab * width + layers * of_layer * width * width;
    return 3 * (2 * matrices + 4 * layers * width * keys_met(c));
}

/* -- Memory -------------------------------------------------------------------------------------------------------- */

enum { BATCH = 2, TIME = 256 }; /* windows, and tokens of one, of a step that is measured, at most */

/* Bytes that a step takes beside the model. */
static double measured(gr_context *ctx, gr_gpt_config c, int64_t batch) {
    const int32_t ids[BATCH * TIME] = {0};
    const gr_tokens tokens = {ids, batch, c.context};
    gr_gpt *gpt = gr_gpt_new(ctx, c);
    double bytes = 0;
    for (int i = 0; i < 2; i++) { /* the first step makes the gradients, too */
        const size_t before = gr_context_bytes(ctx);
        gr_backward(gr_cross_entropy(gr_gpt_forward(gpt, tokens), tokens));
        bytes = (double)gr_context_bytes(ctx) - (double)before;
        gr_context_reset(ctx);
    }
    return bytes;
}

/* A large model would take its time, and memory, to answer a question: small ones are measured. Of windows, layers,
 * heads and the numbers of a head the bytes are an affine function while the other three stay: two measurements of
 * each, 2^4 in all, tell it. A window that is longer counts as several; but textbook attention grows with the square
 * of its tokens: scores, weights and what they were before the mask stand in memory for each layer, and of one their
 * gradients. (The state of linear attention grows with the square of a head, which this does not see.) */
static double activations(gr_context *ctx, const gr_gpt_config *c, int64_t batch) {
    enum { SIZES = 4 };
    static const int64_t less[SIZES] = {1, 1, 2, 16}, more[SIZES] = {BATCH, 2, 4, 32};
    const int64_t time = c->context < TIME ? c->context : TIME;
    const int64_t head = c->width / c->heads;
    const double n = (double)c->context, windows = (double)batch * n / (double)time;
    const double size[SIZES] = {windows, (double)c->layers, (double)c->heads, (double)head};
    double bytes = 0;
    for (unsigned corner = 0; corner < 1U << SIZES && gr_ok(ctx); corner++) {
        int64_t at[SIZES];
        double share = 1;
        for (int i = 0; i < SIZES; i++) {
            const bool high = corner >> i & 1, as_is = size[i] <= (double)less[i];
            const double along = as_is ? 0 : (size[i] - (double)less[i]) / (double)(more[i] - less[i]);
            at[i] = as_is ? (int64_t)size[i] : high ? more[i] : less[i];
            share *= high ? along : 1 - along;
        }
        if (share == 0) continue;
        gr_gpt_config small = *c;
        small.context = time, small.layers = at[1], small.heads = at[2], small.width = at[2] * at[3];
        bytes += share * measured(ctx, small, at[0]);
    }
    const double squares = (double)batch * (double)((3 * c->layers + 2) * c->heads) * n * (n - (double)time);
    return bytes + (c->style.kind == GR_TEXTBOOK ? squares * sizeof(gr_real) : 0);
}

/* -- The page ------------------------------------------------------------------------------------------------------ */

/* As a checkpoint says it. */
static void print_config(gr_context *ctx, gr_gpt_config config) {
    enum { ROW = GR_CONFIGURATION_NOTES / 2 };
    gr_note note[GR_CONFIGURATION_NOTES];
    gr_configuration_write(ctx, config, note);
    for (int i = 0; i < GR_CONFIGURATION_NOTES; i++)
        printf("%s %s%s", note[i].key, note[i].value, (i + 1) % ROW == 0 ? "\n" : ", ");
    putchar('\n');
}

enum { NAME = 40, SHAPE = 16, COUNT = 12 };

/* A matrix or, without columns, a vector; gives its numbers. */
static int64_t print_parameter(int64_t layer, const char *part, int64_t rows, int64_t columns) {
    char name[64], shape[64];
    const int64_t count = columns > 0 ? rows * columns : rows;
    const int end = layer < 0 ? snprintf(name, sizeof name, "transformer.")
                              : snprintf(name, sizeof name, "transformer.h.%" PRId64 ".", layer);
    snprintf(name + end, sizeof name - (size_t)end, "%s", part);
    if (columns > 0)
        snprintf(shape, sizeof shape, "(%" PRId64 ", %" PRId64 ")", rows, columns);
    else
        snprintf(shape, sizeof shape, "(%" PRId64 ")", rows);
    printf("%-*s%-*s%*" PRId64 "\n", NAME, name, SHAPE, shape, COUNT, count);
    return count;
}

static int64_t print_layer(const gr_gpt_config *c, int64_t layer) {
    const int64_t width = c->width;
    const struct {
        const char *weight, *bias;
        int64_t rows, columns;
    } part[] = {
        {"ln_1.weight", "ln_1.bias", width, 0},
        {"attn.c_attn.weight", "attn.c_attn.bias", 3 * width, width},
        {"attn.c_proj.weight", "attn.c_proj.bias", width, width},
        {"ln_2.weight", "ln_2.bias", width, 0},
        {"mlp.c_fc.weight", "mlp.c_fc.bias", 4 * width, width},
        {"mlp.c_proj.weight", "mlp.c_proj.bias", width, 4 * width},
    };
    int64_t count = 0;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        count += print_parameter(layer, part[i].weight, part[i].rows, part[i].columns);
        if (c->bias) count += print_parameter(layer, part[i].bias, part[i].rows, 0);
    }
    return count;
}

/* What gr_gpt_new makes, in its order, without making it; gives the numbers of all. */
static int64_t print_parameters(const gr_gpt_config *c) {
    printf("%-*s%-*s%*s\n", NAME, "parameter", SHAPE, "shape", COUNT, "numbers");
    int64_t count = print_parameter(-1, "wte.weight", c->vocab, c->width);
    if (c->positions == GR_LEARNED) count += print_parameter(-1, "wpe.weight", c->context, c->width);
    for (int64_t i = 0; i < c->layers; i++) count += print_layer(c, i);
    count += print_parameter(-1, "ln_f.weight", c->width, 0);
    if (c->bias) count += print_parameter(-1, "ln_f.bias", c->width, 0);
    printf("%-*s%-*s%*" PRId64 "\n\n", NAME, "all", SHAPE, "", COUNT, count);
    return count;
}

static void print_size(const char *what, double bytes) {
    static const double KIB = 1024;
    printf("  %-38s%*.2f MiB\n", what, COUNT, bytes / KIB / KIB);
}

/* Weights, gradients and AdamW's two moments have the same size. */
static void print_step(const gr_gpt_config *c, const lm_settings *set, int64_t parameters, double step) {
    static const double GIGA = 1e9;
    const double weights = (double)parameters * sizeof(gr_real);
    const double tokens = (double)set->batch * (double)c->context * (double)set->accumulation;
    const double flops = flops_of_token(c);
    printf("a training step: %" PRId64 " x %" PRId64 " windows of %" PRId64 " tokens, %.0f tokens\n", set->accumulation,
           set->batch, c->context, tokens);
    print_size("weights", weights);
    print_size("gradients", weights);
    print_size("AdamW's moments", 2 * weights);
    print_size("activations, gradients (estimate)", step);
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

/* Batch and accumulation are those of the model's run, unless they are given, or it has no log: then config.txt may be
 * another program's. */
static int read_run(lm_settings *set) {
    char home[LM_PATH], path[LM_PATH] = "";
    if (!*set->model) return 0;
    gr_context *ctx = gr_context_new();
    const char *directory = lm_home(ctx, set->model, home);
    struct stat file;
    lm_path(ctx, path, directory, LM_CONFIG);
    const bool there = lm_exists(ctx, directory, LM_LOG) && lm_look_at(ctx, path, &file) && S_ISREG(file.st_mode);
    const int status = lm_end(set, ctx);
    return there && status == 0 ? lm_read_config(set, path) : status;
}

static int tell(const lm_settings *set) {
    gr_context *ctx = gr_context_new();
    const gr_gpt_config config = *set->model ? lm_load(ctx, set->model, NULL)->config : lm_gpt_config(set, set->vocab);
    const double step = gr_ok(ctx) ? activations(ctx, &config, set->batch) : 0;
    if (gr_ok(ctx)) {
        print_config(ctx, config);
        print_step(&config, set, print_parameters(&config), step);
    }
    return lm_end(set, ctx);
}

int lm_info(const lm_settings *set) {
    lm_settings s = *set; /* batch and accumulation become the run's */
    int status = check_options(set);
    if (status == 0) status = read_run(&s);
    if (status == 0) status = tell(&s);
    if (s.text_of_config != set->text_of_config) free(s.text_of_config);
    return status;
}
