/* The attentions, each compared with the textbook's, and rotary positions. */
#include "graph.h"
#include "masks.h"

#include <math.h>

long graph_compared;

enum { Q, K, V, INPUTS };

/* The largest size of an element; infinite when one is not finite. */
static double largest(gr_tensor *x) {
    const int64_t n = gr_numel(x);
    gr_real *value = malloc(((size_t)n + 1) * sizeof *value);
    double most = 0;
    DEMAND(value && gr_to_array(x, value));
    for (int64_t i = 0; i < n; i++) most = isfinite(value[i]) ? fmax(most, fabs((double)value[i])) : (double)INFINITY;
    free(value);
    return most;
}

static void demand_near(const char *what, gr_tensor *found, gr_tensor *wanted, double unit) {
#ifdef GR_DOUBLE
    const double tolerance = 1e-12;
#else
    const double tolerance = 1e-5;
#endif
    const double size = largest(wanted), error = largest(gr_sub(found, wanted));
    DEMAND_SAYING(error <= tolerance * unit * fmax(1, size), "attention, %s: an error of %g beside %g", what, error,
                  size);
}

/* The gradients of sum(seed * attention) in q, k and v, and the output; seed in [-1, 1]. */
static gr_tensor *attend(gr_tensor *const in[INPUTS], gr_attention_options o, gr_tensor *gradient[INPUTS]) {
    gr_tensor *x[INPUTS];
    gr_rng same = o.rng ? *o.rng : gr_rng_seed(0), seed = gr_rng_seed(1);
    if (o.rng) o.rng = &same;
    for (int n = 0; n < INPUTS; n++) x[n] = gr_requires_grad(gr_detach(in[n]));
    gr_tensor *y = gr_attention(x[Q], x[K], x[V], o);
    if (gr_is_inert(y)) return y;
    DEMAND(gr_backward_from(y, gr_uniform(gr_context_of(y), gr_shape_of(y), -1, 1, &seed)));
    for (int n = 0; n < INPUTS; n++) gradient[n] = gr_grad(x[n]);
    return y;
}

/* Where no number is large: an error of the scores, which grows with them, is one of the weights. */
static void compare_with_textbook(gr_tensor *const in[INPUTS], gr_attention_options o) {
    static const char *const name[] = {"dq", "dk", "dv"};
    static const double MOST = 4;
    gr_tensor *fused[INPUTS], *textbook[INPUTS], *weights;
    for (int n = 0; n < INPUTS; n++)
        if (!(largest(in[n]) <= MOST)) return;
    o.logsumexp = NULL;
    gr_tensor *a = attend(in, o, fused);
    o.weights = &weights;
    gr_tensor *b = attend(in, o, textbook);
    DEMAND(gr_is_inert(a) == gr_is_inert(b));
    if (gr_is_inert(a)) return;
    const double scale = o.scale != 0 ? fabs(o.scale) : 1,
                 terms = (double)gr_dim(in[Q], -1) + (double)gr_dim(in[Q], -2);
    const double unit = 1 + scale * largest(in[Q]) * largest(in[K]) * (1 + terms);
    demand_near("output", a, b, unit);
    for (int n = 0; n < INPUTS; n++) demand_near(name[n], fused[n], textbook[n], unit);
    graph_compared++;
}

/* Three axes of (queries, width), (keys, width), (keys, values). */
static void draw_attention(graph *g, gr_tensor *in[INPUTS]) {
    in[Q] = graph_below(g, 2) && gr_ndim(g->pool[g->count - 1]) >= 2 ? g->pool[g->count - 1] : graph_first(g);
    if (!g->none && gr_ndim(in[Q]) < 2 && !g->hostile) in[Q] = graph_operand(g, GR_SHAPE(graph_side(g), graph_side(g)));
    const gr_shape shape = gr_shape_of(in[Q]);
    const int64_t width = gr_dim(in[Q], -1), keys = graph_below(g, 3) ? gr_dim(in[Q], -2) : graph_side(g);
    in[K] = graph_operand(g, graph_matrix(shape, keys, width));
    in[V] = graph_operand(g, graph_matrix(shape, keys, graph_below(g, 3) ? width : graph_side(g)));
}

gr_tensor *graph_call_attention(graph *g) {
    gr_tensor *in[INPUTS], *weights, *logsumexp;
    gr_attention_options o = {.scale = graph_below(g, 3) == 1 ? graph_number(g) : 0};
    draw_attention(g, in);
    gr_rng rng = graph_rng(g);
    if (graph_below(g, 4) == 1) o.dropout = 0.3, o.rng = &rng;
    const int extra = (int)graph_below(g, 8);
    if (extra == 1 || extra == 3) o.weights = &weights;
    if (extra == 2 || (extra == 3 && g->hostile)) o.logsumexp = &logsumexp;
    gr_shape scores = graph_with_last(gr_shape_of(in[Q]), gr_dim(in[K], -2));
    if (!g->none && scores.ndim >= 2 && gr_shape_numel(scores) <= FUZZ_MASK_MOST)
        o.mask = fuzz_draw_mask(&g->in, g->ctx, scores, 1 + (int)graph_below(g, 3), g->hostile)->mask;
    const gr_rng before = rng;
    gr_tensor *y = gr_attention(in[Q], in[K], in[V], o);
    rng = before;
    if (g->compare && !gr_is_inert(y) && gr_context_of(y) == g->ctx) compare_with_textbook(in, o);
    return y;
}

gr_tensor *graph_call_linear_attention(graph *g) {
    gr_tensor *in[INPUTS];
    draw_attention(g, in);
    return gr_linear_attention(in[Q], in[K], in[V], graph_below(g, 2) == 1);
}

gr_tensor *graph_call_rotary(graph *g) {
    gr_tensor *x = graph_first(g);
    const int64_t size = 2 * (1 + graph_below(g, 3)), time = gr_dim(x, -2);
    if (!g->none && (gr_dim(x, -1) % 2 != 0 || graph_below(g, 2)))
        x = graph_operand(g, graph_matrix(gr_shape_of(x), time, size));
    const int64_t wrong = graph_wrong(g);
    return gr_rotary(
        x, gr_rotary_table(g->ctx, graph_below(g, 100), gr_dim(x, -2) + wrong, gr_dim(x, -1), graph_number(g) + 3));
}
