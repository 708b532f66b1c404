/* Arrays of doubles in the plainest form, against which the ops are compared: numbers in row-major order, and one
 * function that finds what broadcasting shows at an index. */
#ifndef TESTS_REFERENCE_H
#define TESTS_REFERENCE_H

#include "support.h"

enum { MOST = 8192 };

typedef struct array {
    gr_shape shape;
    double v[MOST];
} array;

static inline int64_t size_of(gr_shape shape) {
    int64_t n = 1;
    for (int i = 0; i < shape.ndim; i++) n *= shape.dim[i];
    return n;
}

static inline void read_array(gr_tensor *x, array *out) {
    ck_assert_msg(!gr_is_inert(x), "%s", gr_error_message(ctx));
    ck_assert(gr_numel(x) <= MOST);
    out->shape = gr_shape_of(x);
    read_values(x, out->v);
}

/* The index of the element at a place in row-major order. */
static inline void index_of(gr_shape shape, int64_t place, int64_t index[GR_MAX_DIMS]) {
    for (int i = shape.ndim - 1; i >= 0; i--) index[i] = place % shape.dim[i], place /= shape.dim[i];
}

/* The element of x that broadcasting shows at an index of `ndim` axes. */
static inline double seen(const array *x, int ndim, const int64_t *index) {
    int64_t place = 0;
    for (int i = 0; i < x->shape.ndim; i++)
        place = place * x->shape.dim[i] + (x->shape.dim[i] == 1 ? 0 : index[ndim - x->shape.ndim + i]);
    return x->v[place];
}

/* `size` is that of the terms whose rounding errors add up. */
static inline void demand_near(const char *what, int64_t place, double found, double wanted, double size) {
    const double vanishing = 1e-35; /* floats lose digits here */
    bool same = found == wanted || (found != found && wanted != wanted);
    if (!same && !(fabs(found - wanted) <= TOLERANCE * fmax(size, fabs(wanted)) + vanishing))
        ck_abort_msg("%s: element %lld is %.17g, not %.17g", what, (long long)place, found, wanted);
}

#endif
