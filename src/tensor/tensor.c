#include "internal.h"
#include "iterate.h"
#include "parallel.h"

#include <math.h>
#include <string.h>

/* Contiguous, of these numbers. */
static void become(gr_tensor *x, gr_real *data, gr_shape shape) {
    *x = (gr_tensor){.ctx = x->ctx, .persistent = x->persistent, .earlier = x->earlier, .data = data, .shape = shape};
    gr_shape_strides(shape, x->stride);
}

gr_tensor *gr_new(gr_context *ctx, const char *where, bool persistent, gr_shape shape) {
    if (!gr_ok(ctx)) return gr_inert(ctx);
    if (shape.ndim < 0 || shape.ndim > GR_MAX_DIMS) {
        gr_fail(ctx, where, "%d dimensions; a tensor has 0 to %d", shape.ndim, GR_MAX_DIMS);
        return gr_inert(ctx);
    }
    int64_t n = gr_shape_numel(shape);
    if (n < 0 || (uint64_t)n > SIZE_MAX / 2 / sizeof(gr_real)) {
        gr_fail(ctx, where, "shape %s has a negative size or too many elements", gr_show_shape(ctx, shape));
        return gr_inert(ctx);
    }
    gr_tensor *x = gr_alloc_tensor(ctx, persistent);
    gr_real *data = gr_alloc_array(ctx, persistent, n, sizeof *data);
    if (!x || !data) return gr_inert(ctx);
    become(x, data, shape);
    return x;
}

gr_tensor *gr_view(gr_tensor *x, gr_shape shape, const int64_t *stride, int64_t offset) {
    gr_tensor *view = gr_alloc_tensor(x->ctx, false);
    if (!view) return gr_inert(x->ctx);
    view->data = x->data + offset;
    view->shape = shape;
    view->name = x->name;
    memcpy(view->stride, stride, (size_t)shape.ndim * sizeof *stride);
    return view;
}

gr_tensor *gr_view_as(gr_tensor *contiguous, gr_shape shape) {
    int64_t stride[GR_MAX_DIMS];
    gr_shape_strides(shape, stride);
    return gr_view(contiguous, shape, stride, 0);
}

void gr_clear(gr_tensor *x) { memset(x->data, 0, (size_t)gr_shape_numel(x->shape) * sizeof *x->data); }

bool gr_is_contiguous(const gr_tensor *x) {
    int64_t stride[GR_MAX_DIMS];
    gr_shape_strides(x->shape, stride);
    for (int i = 0; i < x->shape.ndim; i++)
        if (x->shape.dim[i] != 1 && x->stride[i] != stride[i]) return false;
    return true;
}

gr_tensor *gr_contiguous(gr_tensor *x) {
    if (gr_is_contiguous(x)) return x;
    gr_tensor *y = gr_new(x->ctx, "copy", false, x->shape);
    if (!gr_is_inert(y)) gr_run_map(GR_MAP_copy, 0, y, 1, &x);
    return y;
}

gr_tensor *gr_pool_take(gr_context *ctx, gr_shape shape) {
    int64_t numel = gr_shape_numel(shape);
    for (gr_tensor **link = &ctx->free_tensors; *link; link = &(*link)->next_free) {
        gr_tensor *x = *link;
        if (gr_shape_numel(x->shape) != numel) continue;
        *link = x->next_free;
        become(x, x->data, shape);
        return x;
    }
    return gr_new(ctx, "gradient", false, shape);
}

void gr_pool_give(gr_tensor *x) {
    x->next_free = x->ctx->free_tensors;
    x->ctx->free_tensors = x;
}

static gr_tensor *filled(gr_context *ctx, const char *where, gr_shape shape, double value) {
    gr_tensor *x = gr_new(ctx, where, false, shape);
    int64_t n = gr_is_inert(x) ? 0 : gr_shape_numel(shape);
    for (int64_t i = 0; i < n; i++) x->data[i] = (gr_real)value;
    return x;
}

gr_tensor *gr_full(gr_context *ctx, gr_shape shape, double value) { return filled(ctx, "full", shape, value); }
gr_tensor *gr_zeros(gr_context *ctx, gr_shape shape) { return filled(ctx, "zeros", shape, 0); }
gr_tensor *gr_scalar(gr_context *ctx, double value) { return filled(ctx, "scalar", GR_SCALAR, value); }

gr_tensor *gr_from(gr_context *ctx, gr_shape shape, const gr_real *values) {
    if (!values) gr_fail(ctx, "from", "values is NULL");
    gr_tensor *x = gr_new(ctx, "from", false, shape);
    if (values && !gr_is_inert(x)) memcpy(x->data, values, (size_t)gr_shape_numel(shape) * sizeof *values);
    return x;
}

/* A normal number takes about 70 ns: two draws, a logarithm, a cosine. */
enum { DRAWS_OF_NORMAL = 2, COST_OF_NORMAL = 500 };

typedef struct normal_job {
    gr_real *x;
    double mean, std;
    gr_rng rng;
} normal_job;

static void run_normal(size_t begin, size_t end, int thread, void *arg) {
    (void)thread;
    const normal_job *job = arg;
    gr_rng rng = job->rng;
    rng.counter += DRAWS_OF_NORMAL * begin;
    for (size_t i = begin; i < end; i++) job->x[i] = (gr_real)(job->mean + job->std * gr_rng_normal(&rng));
}

gr_tensor *gr_normal(gr_context *ctx, gr_shape shape, double mean, double std, gr_rng *rng) {
    if (!rng) gr_fail(ctx, "normal", "rng is NULL");
    if (!(fabs(mean) <= (double)GR_REAL_MAX && std >= 0 && std <= (double)GR_REAL_MAX))
        gr_fail(ctx, "normal", "mean %g, std %g; both must be finite, and std not negative", mean, std);
    gr_tensor *x = gr_new(ctx, "normal", false, shape);
    int64_t n = !rng || gr_is_inert(x) ? 0 : gr_shape_numel(shape);
    if (n > 0) {
        gr_parallel_for((size_t)n, COST_OF_NORMAL, run_normal, &(normal_job){x->data, mean, std, *rng});
        rng->counter += DRAWS_OF_NORMAL * (uint64_t)n;
    }
    return x;
}

gr_tensor *gr_uniform(gr_context *ctx, gr_shape shape, double low, double high, gr_rng *rng) {
    if (!rng) gr_fail(ctx, "uniform", "rng is NULL");
    if (!(low <= high && low >= -(double)GR_REAL_MAX && high <= (double)GR_REAL_MAX && high - low < HUGE_VAL))
        gr_fail(ctx, "uniform", "from %g to %g; both must be finite, and the first not the larger", low, high);
    gr_tensor *x = gr_new(ctx, "uniform", false, shape);
    int64_t n = gr_is_inert(x) ? 0 : gr_shape_numel(shape);
    for (int64_t i = 0; i < n; i++) {
        double value = low + (high - low) * gr_rng_uniform(rng);
        gr_real rounded = (gr_real)value;
        x->data[i] = rounded < (gr_real)high || low == high ? rounded : (gr_real)low; /* rounding must not reach high */
    }
    return x;
}

gr_tensor *gr_keep(gr_tensor *x) {
    if (!gr_check_alive(x, "keep", "x")) return gr_inert(x ? x->ctx : NULL);
    gr_tensor *y = gr_new(x->ctx, "keep", true, x->shape);
    if (gr_is_inert(y)) return y;
    gr_run_map(GR_MAP_copy, 0, y, 1, &x);
    return x->name ? gr_named(y, x->name) : y;
}

gr_tensor *gr_named(gr_tensor *x, const char *name) {
    if (!gr_check_alive(x, "named", "x")) return gr_inert(x ? x->ctx : NULL);
    if (!name) return x;
    size_t size = strlen(name) + 1;
    char *copy = gr_alloc(x->ctx, x->persistent, size);
    if (!copy) return gr_inert(x->ctx);
    memcpy(copy, name, size);
    x->name = copy;
    return x;
}

const char *gr_name(const gr_tensor *x) { return x && x->name ? x->name : ""; }
gr_context *gr_context_of(const gr_tensor *x) { return x ? x->ctx : gr_inert(NULL)->ctx; }
gr_shape gr_shape_of(const gr_tensor *x) { return x ? x->shape : GR_SCALAR; }
int gr_ndim(const gr_tensor *x) { return x ? x->shape.ndim : 0; }
gr_real *gr_data(gr_tensor *x) { return x ? x->data : NULL; }
bool gr_is_inert(const gr_tensor *x) { return !x || !x->data; }
int64_t gr_numel(const gr_tensor *x) { return gr_is_inert(x) ? 0 : gr_shape_numel(x->shape); }

int64_t gr_dim(const gr_tensor *x, int axis) {
    int i = x ? gr_shape_axis(x->shape, axis) : -1;
    return i < 0 ? 0 : x->shape.dim[i];
}

int64_t gr_stride(const gr_tensor *x, int axis) {
    int i = x ? gr_shape_axis(x->shape, axis) : -1;
    return i < 0 ? 0 : x->stride[i];
}

double gr_item(gr_tensor *x) {
    if (!gr_check_alive(x, "item", "x")) return (double)NAN;
    if (gr_numel(x) != 1) {
        gr_fail(x->ctx, "item", "%s has %lld elements; one is needed", gr_show(x, "x"), (long long)gr_numel(x));
        return (double)NAN;
    }
    return (double)x->data[0];
}

bool gr_to_array(gr_tensor *x, gr_real *out) {
    if (!gr_check_alive(x, "to_array", "x")) return false;
    if (!out) gr_fail(x->ctx, "to_array", "out is NULL");
    if (!gr_ok(x->ctx)) return false;
    gr_tensor y = {.ctx = x->ctx, .data = out, .shape = x->shape};
    gr_shape_strides(x->shape, y.stride);
    gr_run_map(GR_MAP_copy, 0, &y, 1, &x);
    return true;
}
