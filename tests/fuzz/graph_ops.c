/* Elementwise ops, reductions, products: how each is called on what is drawn. */
#include "graph.h"

#include <math.h>

/* Distances from kinks and singularities, in a smooth graph: a difference quotient reaches 2^-8. */
static const double NEAR = 0.02, SINGULAR = 0.2;

/* -- Elementwise --------------------------------------------------------------------------------------------------- */

#define UNARY(name) \
    gr_tensor *graph_call_##name(graph *g) { return gr_##name(graph_first(g)); }
#define UNARY_WHERE(name, smooth, distance)                  \
    gr_tensor *graph_call_##name(graph *g) {                 \
        gr_tensor *x = graph_first(g);                       \
        return smooth(g, x, distance) ? gr_##name(x) : NULL; \
    }
#define BINARY(name)                         \
    gr_tensor *graph_call_##name(graph *g) { \
        gr_tensor *a, *b;                    \
        draw_two(g, &a, &b);                 \
        return gr_##name(a, b);              \
    }

/* Two that broadcast, the wider one on either side, or both wider than the other somewhere. */
static void draw_two(graph *g, gr_tensor **a, gr_tensor **b) {
    gr_tensor *x = graph_first(g);
    gr_shape common = gr_shape_of(x), other = graph_narrower(g, common);
    if (graph_below(g, 4) == 1 && !g->none) x = graph_sound(g, graph_narrower(g, common)), other = common;
    gr_tensor *y = graph_operand(g, other);
    const bool swapped = graph_below(g, 2) == 1;
    *a = swapped ? y : x, *b = swapped ? x : y;
}

UNARY(neg)
UNARY(square)
UNARY(exp)
UNARY(sigmoid)
UNARY(tanh)
UNARY(gelu)
UNARY(gelu_erf)
UNARY(silu)
UNARY(softmax)
UNARY(log_softmax)
UNARY_WHERE(sqrt, graph_is_above, SINGULAR)
UNARY_WHERE(log, graph_is_above, SINGULAR)
UNARY_WHERE(abs, graph_is_away, NEAR)
UNARY_WHERE(relu, graph_is_away, NEAR)
BINARY(add)
BINARY(sub)
BINARY(mul)

gr_tensor *graph_call_div(graph *g) {
    gr_tensor *a, *b;
    draw_two(g, &a, &b);
    return graph_is_away(g, b, SINGULAR) ? gr_div(a, b) : NULL;
}

/* Equal operands are a kink; so is what lies on both sides of one. */
static bool differ(graph *g, gr_tensor *a, gr_tensor *b) { return !g->smooth || graph_is_away(g, gr_sub(a, b), NEAR); }

gr_tensor *graph_call_minimum(graph *g) {
    gr_tensor *a, *b;
    draw_two(g, &a, &b);
    return differ(g, a, b) ? gr_minimum(a, b) : NULL;
}

gr_tensor *graph_call_maximum(graph *g) {
    gr_tensor *a, *b;
    draw_two(g, &a, &b);
    return differ(g, a, b) ? gr_maximum(a, b) : NULL;
}

gr_tensor *graph_call_where(graph *g) {
    gr_tensor *a, *b;
    draw_two(g, &a, &b);
    return gr_where(graph_mask(g, graph_narrower(g, gr_shape_of(graph_below(g, 2) ? a : b))), a, b);
}

/* Its -inf is no number: in a smooth graph exp makes 0 of it. */
gr_tensor *graph_call_mask_scores(graph *g) {
    gr_tensor *x = graph_first(g);
    gr_tensor *y = gr_mask_scores(x, graph_mask(g, graph_narrower(g, gr_shape_of(x))));
    return g->smooth ? gr_exp(y) : y;
}

gr_tensor *graph_call_scale(graph *g) { return gr_scale(graph_first(g), graph_number(g)); }
gr_tensor *graph_call_add_scalar(graph *g) { return gr_add_scalar(graph_first(g), graph_number(g)); }

gr_tensor *graph_call_pow(graph *g) {
    gr_tensor *x = graph_first(g);
    const double exponent = graph_number(g);
    if (exponent != floor(exponent)) return graph_is_above(g, x, SINGULAR) ? gr_pow(x, exponent) : NULL;
    return exponent >= 0 || graph_is_away(g, x, SINGULAR) ? gr_pow(x, exponent) : NULL;
}

/* -- Reductions ---------------------------------------------------------------------------------------------------- */

#define OVER(name)                             \
    gr_tensor *graph_call_##name(graph *g) {   \
        gr_tensor *x = graph_first(g);         \
        return gr_##name(x, graph_axes(g, x)); \
    }
OVER(sum)
OVER(mean)
OVER(variance)
OVER(logsumexp)

gr_tensor *graph_call_max(graph *g) {
    gr_tensor *x = graph_first(g);
    return graph_is_apart(g, x, NEAR) ? gr_max(x, graph_axes(g, x)) : NULL;
}

gr_tensor *graph_call_norm(graph *g) {
    gr_tensor *x = graph_first(g), *y = gr_norm(x, graph_axes(g, x));
    return gr_is_inert(y) || graph_is_above(g, y, SINGULAR) ? y : NULL;
}

/* -- Products ------------------------------------------------------------------------------------------------------ */

gr_tensor *graph_call_matmul(graph *g) {
    gr_tensor *a = graph_first(g);
    const gr_shape shape = gr_shape_of(a);
    const int64_t k = shape.ndim > 0 ? shape.dim[shape.ndim - 1] : 1, n = graph_side(g);
    gr_shape other = graph_matrix(graph_narrower(g, shape), k, n);
    if (graph_below(g, 4) == 1) other = GR_SHAPE(k);
    if (graph_below(g, 4) == 1) other = graph_matrix(GR_SHAPE(2, 1, 1), k, n);
    return gr_matmul(a, graph_operand(g, other));
}

gr_tensor *graph_call_linear(graph *g) {
    gr_tensor *x = graph_first(g);
    const gr_shape shape = gr_shape_of(x);
    const int64_t in = shape.ndim > 0 ? shape.dim[shape.ndim - 1] : 1, out = graph_side(g);
    gr_tensor *weight = graph_operand(g, GR_SHAPE(out, in));
    gr_tensor *bias = graph_optional(g, GR_SHAPE(out));
    return gr_linear(x, weight, bias);
}

gr_tensor *graph_call_attention_scores(graph *g) {
    gr_tensor *q = graph_first(g);
    const gr_shape shape = gr_shape_of(q);
    return gr_attention_scores(q, graph_operand(g, graph_matrix(shape, graph_side(g), gr_dim(q, -1))));
}

gr_tensor *graph_call_attention_output(graph *g) {
    gr_tensor *weights = graph_first(g);
    return gr_attention_output(
        weights, graph_operand(g, graph_matrix(gr_shape_of(weights), gr_dim(weights, -1), graph_side(g))));
}
