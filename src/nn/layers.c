#include "layers.h"
#include "internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *gr_prefixed(gr_context *ctx, const char *prefix, const char *name) {
    if (!prefix || !*prefix) return name;
    size_t size = strlen(prefix) + strlen(name) + 2;
    char *text = gr_alloc(ctx, false, size);
    if (!text) return "";
    snprintf(text, size, "%s.%s", prefix, name);
    return text;
}

static gr_tensor *new_parameter(gr_tensor *x, const char *prefix, const char *name) {
    return gr_parameter(x, gr_prefixed(gr_context_of(x), prefix, name));
}

gr_tensor *gr_no_layer(gr_tensor *x, const char *where) {
    gr_fail(gr_context_of(x), where, "the layer is NULL");
    return gr_inert(gr_context_of(x));
}

/* For sizes that a layer cannot have; zero-size tensors are legal, a layer of width 0 is a slip. */
static void check_sizes(gr_context *ctx, const char *where, const char *prefix, int64_t in, int64_t out, double std) {
    if (in < 1 || out < 1)
        gr_fail(ctx, where, "%s: sizes %lld and %lld; they must be at least 1", prefix ? prefix : "", (long long)in,
                (long long)out);
    if (!(std >= 0 && std < INFINITY))
        gr_fail(ctx, where, "%s: std %g; it must be finite and not negative", prefix ? prefix : "", std);
}

/* -- Linear -------------------------------------------------------------------------------------------------------- */

gr_linear_layer gr_linear_new(gr_context *ctx, const char *prefix, gr_linear_config config, gr_rng *rng) {
    check_sizes(ctx, "linear", prefix, config.in, config.out, config.std);
    double std = config.std > 0 ? config.std : 1 / sqrt((double)config.in); /* keeps the variance of x */
    gr_linear_layer layer = {NULL, NULL};
    layer.weight = new_parameter(gr_normal(ctx, GR_SHAPE(config.out, config.in), 0, std, rng), prefix, "weight");
    if (config.bias) layer.bias = new_parameter(gr_zeros(ctx, GR_SHAPE(config.out)), prefix, "bias");
    return layer;
}

gr_tensor *gr_linear_forward(const gr_linear_layer *layer, gr_tensor *x) {
    return layer ? gr_linear(x, layer->weight, layer->bias) : gr_no_layer(x, "linear");
}

/* -- Embedding ----------------------------------------------------------------------------------------------------- */

gr_embedding_layer gr_embedding_new(gr_context *ctx, const char *prefix, gr_embedding_config config, gr_rng *rng) {
    check_sizes(ctx, "embedding", prefix, config.vocab, config.width, config.std);
    double std = config.std > 0 ? config.std : 1;
    gr_tensor *table = gr_normal(ctx, GR_SHAPE(config.vocab, config.width), 0, std, rng);
    return (gr_embedding_layer){new_parameter(table, prefix, "weight")};
}

gr_tensor *gr_embedding_forward(const gr_embedding_layer *layer, gr_tokens ids) {
    return layer ? gr_gather_rows(layer->weight, ids) : gr_no_layer(NULL, "embedding");
}

/* -- Normalisation ------------------------------------------------------------------------------------------------- */

static gr_tensor *ones(gr_context *ctx, int64_t width) { return gr_full(ctx, GR_SHAPE(width), 1); }

gr_layernorm_layer gr_layernorm_new(gr_context *ctx, const char *prefix, int64_t width, bool bias) {
    check_sizes(ctx, "layernorm", prefix, width, width, 0);
    gr_layernorm_layer layer = {NULL, NULL};
    layer.weight = new_parameter(ones(ctx, width), prefix, "weight");
    if (bias) layer.bias = new_parameter(gr_zeros(ctx, GR_SHAPE(width)), prefix, "bias");
    return layer;
}

gr_tensor *gr_layernorm_forward(const gr_layernorm_layer *layer, gr_tensor *x) {
    return layer ? gr_layernorm(x, layer->weight, layer->bias, 0) : gr_no_layer(x, "layernorm");
}

gr_rmsnorm_layer gr_rmsnorm_new(gr_context *ctx, const char *prefix, int64_t width) {
    check_sizes(ctx, "rmsnorm", prefix, width, width, 0);
    return (gr_rmsnorm_layer){new_parameter(ones(ctx, width), prefix, "weight")};
}

gr_tensor *gr_rmsnorm_forward(const gr_rmsnorm_layer *layer, gr_tensor *x) {
    return layer ? gr_rmsnorm(x, layer->weight, 0) : gr_no_layer(x, "rmsnorm");
}

/* -- Dropout ------------------------------------------------------------------------------------------------------- */

gr_dropout_layer gr_dropout_new(double p, uint64_t seed) {
    return (gr_dropout_layer){p, true, gr_rng_stream(gr_rng_seed(seed), GR_STREAM_DROPOUT)};
}

gr_tensor *gr_dropout_forward(gr_dropout_layer *layer, gr_tensor *x) {
    if (!layer || !x) return gr_no_layer(x, "dropout");
    if (layer->training && layer->p != 0) return gr_dropout(x, layer->p, &layer->rng);
    return gr_check_alive(x, "dropout", "x") ? x : gr_inert(x->ctx);
}
