#include "graph.h"

#include <math.h>

/* -- Shapes -------------------------------------------------------------------------------------------------------- */

int64_t graph_side(graph *g) {
    static const int64_t edge[] = {1, 2, 3, 4, 5, 7, 8, 0}, larger[] = {1, 8, 15, 16, 17, 33, 65, 130};
    return g->room > 1000 && graph_below(g, 2) ? larger[graph_below(g, 8)] : edge[graph_below(g, 8)];
}

gr_shape graph_narrower(graph *g, gr_shape shape) {
    const int front = graph_below(g, 3) == 1 ? (int)graph_below(g, shape.ndim + 1) : 0;
    gr_shape out = {shape.ndim - front, {0}};
    for (int i = 0; i < out.ndim; i++) out.dim[i] = graph_below(g, 4) == 1 ? 1 : shape.dim[i + front];
    return out;
}

gr_shape graph_with_last(gr_shape shape, int64_t last) {
    if (shape.ndim > 0) shape.dim[shape.ndim - 1] = last;
    return shape;
}

gr_shape graph_matrix(gr_shape shape, int64_t rows, int64_t columns) {
    if (shape.ndim < 2) return GR_SHAPE(rows, columns);
    shape.dim[shape.ndim - 2] = rows;
    return graph_with_last(shape, columns);
}

int graph_axis(graph *g, const gr_tensor *x) {
    const int n = gr_ndim(x), wrong = graph_wrong(g);
    return (int)graph_below(g, 2 * (n + wrong) + (n + wrong == 0)) - n - wrong;
}

gr_axes graph_axes(graph *g, const gr_tensor *x) {
    const int n = gr_ndim(x);
    gr_axes axes = {(int)graph_below(g, n + 2) - 1, graph_below(g, 2) == 1, {0}};
    const int first = (int)graph_below(g, n + 1), step = g->hostile ? (int)graph_below(g, 3) : 1;
    for (int i = 0; i < axes.count; i++) {
        axes.axis[i] = (first + i * step) % (n + (g->hostile && step == 2));
        if (graph_below(g, 3) == 1) axes.axis[i] -= n;
    }
    return axes;
}

double graph_number(graph *g) {
    static const double tame[] = {1, 2, 3, 0.5, -0.5, -1.75, 2.7, -1, 0, -2}, wild[] = {1e300, INFINITY, (double)NAN};
    if (g->hostile && graph_below(g, 16) == 1) return wild[graph_below(g, 3)];
    return tame[graph_below(g, 10)];
}

gr_rng graph_rng(graph *g) { return gr_rng_seed((uint64_t)graph_below(g, 256)); }

/* -- Tensors ------------------------------------------------------------------------------------------------------- */

gr_tensor *graph_any(graph *g) { return g->pool[graph_below(g, g->count)]; }

/* A tensor of the context after an error, one of another context, nothing. */
static gr_tensor *none(graph *g, bool first) {
    const int64_t which = graph_below(g, first ? 2 : 3);
    g->none = true;
    if (which == 2) return gr_zeros(g->away, GR_SHAPE(2, 2));
    return which == 1 ? gr_inert(g->ctx) : NULL;
}

gr_tensor *graph_first(graph *g) { return g->hostile && graph_below(g, 32) == 1 ? none(g, true) : graph_any(g); }

/* The elements of x in order, again and again, as many as the shape has. */
static gr_tensor *fit(graph *g, gr_shape shape) {
    gr_tensor *x = graph_any(g);
    const int64_t wanted = gr_shape_numel(shape);
    DEMAND(wanted >= 0);
    if (gr_shape_equal(gr_shape_of(x), shape)) return x;
    if (gr_numel(x) == 0 && wanted > 0) x = g->pool[0]; /* which is not empty */
    const int64_t n = gr_numel(x), times = n > 0 ? wanted / n + 1 : 1;
    gr_tensor *flat = gr_reshape(x, GR_SHAPE(n));
    if (n < wanted) flat = gr_reshape(gr_expand(gr_reshape(flat, GR_SHAPE(1, n)), GR_SHAPE(times, n)), GR_SHAPE(-1));
    return gr_reshape(gr_slice(flat, 0, 0, wanted, 1), shape);
}

static gr_tensor *rotated(graph *g, gr_shape shape) {
    const int n = shape.ndim;
    gr_shape under = shape;
    gr_axes up = {n, false, {0}};
    for (int i = 0; i < n; i++) under.dim[(i + 1) % n] = shape.dim[i], up.axis[i] = (i + 1) % n;
    return gr_permute(fit(g, under), up);
}

/* Of this shape, seen through some view. */
static gr_tensor *seen(graph *g, gr_shape shape) {
    enum { WHOLE, TRANSPOSED, ROTATED, SLICED, SPACED, EXPANDED, SPREAD, VIEWS };
    const int view = (int)graph_below(g, VIEWS), last = shape.ndim - 1;
    gr_shape under = shape;
    if (last < 0 || view == WHOLE) return fit(g, shape);
    switch (view) {
    case TRANSPOSED:
        under.dim[0] = shape.dim[last], under.dim[last] = shape.dim[0];
        return gr_transpose(fit(g, under), 0, -1);
    case ROTATED:
        return rotated(g, shape);
    case SLICED:
        under.dim[last] = 2 * shape.dim[last] + 1;
        return gr_slice(fit(g, under), -1, 1, GR_END, 2);
    case SPACED:
        under.dim[0] = 3 * shape.dim[0] + 1;
        return gr_slice(fit(g, under), 0, 1, GR_END, 3);
    default: /* repeated along its first or its last axis */
        under.dim[view == EXPANDED ? 0 : last] = 1;
        return gr_expand(fit(g, under), shape);
    }
}

gr_tensor *graph_sound(graph *g, gr_shape shape) {
    if (g->hostile && graph_below(g, 16) == 1 && shape.ndim > 0) shape.dim[graph_below(g, shape.ndim)] += 1;
    if (g->hostile && graph_below(g, 16) == 1) shape.ndim -= shape.ndim > 0;
    if (gr_shape_numel(shape) > g->room) shape = GR_SCALAR;
    gr_tensor *x = seen(g, shape);
    DEMAND_SAYING(gr_ok(g->ctx), "%s", gr_error_message(g->ctx));
    DEMAND(gr_shape_equal(gr_shape_of(x), shape));
    return x;
}

gr_tensor *graph_operand(graph *g, gr_shape shape) {
    return g->hostile && graph_below(g, 32) == 1 ? none(g, false) : graph_sound(g, shape);
}

static gr_tensor *flags(graph *g, gr_shape shape) {
    if (gr_shape_numel(shape) > g->room) shape = GR_SCALAR;
    gr_rng rng = graph_rng(g);
    const uint64_t odds = (uint64_t)graph_below(g, 5);
    gr_tensor *x = gr_zeros(g->ctx, shape);
    for (int64_t i = 0; i < gr_numel(x); i++) gr_data(x)[i] = gr_rng_below(&rng, 4) < odds;
    return x;
}

gr_tensor *graph_optional(graph *g, gr_shape shape) {
    const bool none = g->none;
    gr_tensor *x = graph_below(g, 3) == 1 ? NULL : graph_operand(g, shape);
    if (!x) g->none = none;
    return x;
}

/* A condition that hangs on a variable would be a step. */
gr_tensor *graph_mask(graph *g, gr_shape shape) {
    return g->smooth || graph_below(g, 2) ? flags(g, shape) : graph_operand(g, shape);
}

/* -- Where a function is smooth ------------------------------------------------------------------------------------ */

enum { PAIRS = 64 }; /* elements that are looked at two by two, at most */

static int64_t read_all(gr_tensor *x, gr_real *out, int64_t room) {
    const int64_t n = gr_is_inert(x) ? 0 : gr_numel(x);
    return n <= room && (n == 0 || gr_to_array(x, out)) ? n : -1;
}

static bool all_at_least(const graph *g, gr_tensor *x, double least, bool absolute) {
    enum { MOST = 1024 };
    gr_real value[MOST];
    const int64_t n = g->smooth && !g->settled ? read_all(x, value, MOST) : 0;
    for (int64_t i = 0; i < n; i++)
        if ((absolute ? fabs((double)value[i]) : (double)value[i]) < least) return false;
    return n >= 0;
}

bool graph_is_away(const graph *g, gr_tensor *x, double least) { return all_at_least(g, x, least, true); }
bool graph_is_above(const graph *g, gr_tensor *x, double least) { return all_at_least(g, x, least, false); }

bool graph_is_apart(const graph *g, gr_tensor *x, double least) {
    gr_real value[PAIRS];
    const int64_t n = g->smooth && !g->settled ? read_all(x, value, PAIRS) : 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            if (fabs((double)value[i] - (double)value[j]) < least) return false;
    return n >= 0;
}
