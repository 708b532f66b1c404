#include "graph.h"

#include <math.h>

enum { HEADER = 16 }; /* bytes */

static gr_real draw_value(gr_rng *rng, values kind) {
    static const gr_real odd[] = {
        (gr_real)NAN, (gr_real)INFINITY, -(gr_real)INFINITY, 0, -GR_R(0.0), 1, -1, 2, GR_REAL_MAX,
        -GR_REAL_MAX, GR_REAL_MIN,       -GR_REAL_MIN / 8};
    enum { ODD = sizeof odd / sizeof *odd, OF_NO_SIZE = 8, EXPONENTS = 200 };
    const double u = 4 * gr_rng_uniform(rng) - 2;
    const uint64_t choice = gr_rng_below(rng, 8);
    if (kind == TAME || choice > 2) return (gr_real)u;
    if (kind == WILD && choice > 0) return (gr_real)ldexp(u, (int)gr_rng_below(rng, EXPONENTS) - EXPONENTS / 2);
    return odd[gr_rng_below(rng, kind == WILD ? ODD : OF_NO_SIZE)];
}

static gr_shape draw_leaf(fuzz_bytes *in, int64_t most, bool empty) {
    static const int64_t side[] = {1, 2, 3, 4, 5, 0, 8, 2, 1, 3, 7, 16, 17, 33, 65, 130};
    gr_shape shape = {(int)fuzz_below(in, 5), {0}};
    int64_t numel = 1;
    for (int i = 0; i < shape.ndim; i++) {
        shape.dim[i] = side[fuzz_below(in, most > 100 ? 16 : 8)];
        if (numel * shape.dim[i] > most || (shape.dim[i] == 0 && !empty)) shape.dim[i] = 1;
        numel *= shape.dim[i];
    }
    return shape;
}

plan graph_plan(fuzz_bytes in) {
    fuzz_bytes header = fuzz_rest(&in, HEADER);
    plan p = {.steps = in, .smooth = fuzz_below(&header, 3) == 0};
    p.hostile = !p.smooth && fuzz_below(&header, 2) == 0;
    p.values = p.smooth ? TAME : (values)fuzz_below(&header, KINDS);
    p.seed = (uint64_t)fuzz_below(&header, 65536);
    p.leaves = 1 + (int)fuzz_below(&header, p.smooth ? 2 : GRAPH_LEAVES);
    gr_rng rng = gr_rng_stream(gr_rng_seed(p.seed), GR_STREAM_USER);
    for (int i = 0; i < p.leaves; i++) {
        p.shape[i] = draw_leaf(&header, p.smooth ? 12 : 2000, i > 0);
        p.variable[i] = i == 0 || fuzz_below(&header, 4) != 1;
        const size_t n = (size_t)gr_shape_numel(p.shape[i]);
        p.value[i] = malloc((n + 1) * sizeof(gr_real));
        DEMAND(p.value[i]);
        for (size_t k = 0; k < n; k++) p.value[i][k] = draw_value(&rng, p.values);
    }
    return p;
}
