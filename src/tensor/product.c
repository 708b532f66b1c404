#include "product.h"
#include "parallel.h"

/* Leading axes of the whole problem: those that C has first, then those that are summed over. */
typedef struct batch_axes {
    int kept, summed;
    int64_t dim[2 * GR_MAX_DIMS];
    int64_t a[2 * GR_MAX_DIMS], b[2 * GR_MAX_DIMS], c[2 * GR_MAX_DIMS]; /* strides */
} batch_axes;

typedef struct product_task {
    const gr_kernels *kernels;
    gr_matrix a, b, c; /* of the first batch */
    gr_product_how how;
    batch_axes batch;
    size_t pieces; /* each product is cut into so many ... */
    bool cut_rows; /* ... bands of rows, or of columns */
    gr_real *scratch;
} product_task;

/* Bands begin at multiples of a full tile of every instruction set and precision, so that cutting costs no ragged
 * tiles. */
enum { BAND_ROWS = 24, BAND_COLUMNS = 32 };

static int64_t leading(const gr_tensor *x, int axis, int axes, int64_t *stride) {
    int own = axis - (axes - (x->shape.ndim - 2));
    int64_t dim = own < 0 ? 1 : x->shape.dim[own];
    *stride = dim == 1 ? 0 : x->stride[own];
    return dim;
}

/* Written in place and only as far as there are axes: clearing and copying all of it would take longer than a product
 * of 8 x 8 matrices. */
static void find_batches(batch_axes *found, const gr_tensor *c, const gr_tensor *a, const gr_tensor *b) {
    int axes = 0;
    found->kept = found->summed = 0;
    const gr_tensor *all[] = {a, b, c};
    for (int k = 0; k < 3; k++)
        if (all[k]->shape.ndim - 2 > axes) axes = all[k]->shape.ndim - 2;
    for (int summed = 0; summed < 2; summed++)
        for (int i = 0; i < axes; i++) {
            int at = found->kept + found->summed;
            int64_t na = leading(a, i, axes, &found->a[at]), nb = leading(b, i, axes, &found->b[at]);
            int64_t nc = leading(c, i, axes, &found->c[at]), n = na == 1 ? nb : na;
            if ((nc != n) != summed) continue;
            found->dim[at] = n;
            if (summed)
                found->summed++;
            else
                found->kept++;
        }
}

static gr_matrix rows_of(gr_matrix m, size_t begin, size_t end) {
    return (gr_matrix){end - begin, m.columns, m.x + (ptrdiff_t)begin * m.row, m.row, m.column};
}
static gr_matrix columns_of(gr_matrix m, size_t begin, size_t end) {
    return gr_transposed(rows_of(gr_transposed(m), begin, end));
}

/* Cuts one band out of the product. */
static void cut_band(const product_task *t, size_t piece, gr_matrix *c, gr_matrix *a, gr_matrix *b) {
    size_t whole = t->cut_rows ? t->c.rows : t->c.columns, unit = t->cut_rows ? BAND_ROWS : BAND_COLUMNS;
    size_t units = (whole + unit - 1) / unit;
    size_t begin = units * piece / t->pieces * unit, end = units * (piece + 1) / t->pieces * unit;
    if (end > whole) end = whole;
    *a = t->cut_rows ? rows_of(t->a, begin, end) : t->a;
    *b = t->cut_rows ? t->b : columns_of(t->b, begin, end);
    *c = t->cut_rows ? rows_of(t->c, begin, end) : columns_of(t->c, begin, end);
}

static void run_items(size_t begin, size_t end, int thread, void *arg) {
    const product_task *t = arg;
    const batch_axes *batch = &t->batch;
    gr_real *scratch = t->scratch + (size_t)thread * GR_GEMM_SCRATCH;
    int64_t sums = 1;
    for (int i = batch->kept; i < batch->kept + batch->summed; i++) sums *= batch->dim[i];
    for (size_t item = begin; item < end; item++) {
        gr_matrix a0, b0, c0;
        cut_band(t, item % t->pieces, &c0, &a0, &b0);
        if (c0.rows == 0 || c0.columns == 0) continue;
        if (sums == 0) a0.columns = b0.rows = 0; /* a sum over nothing: C is 0, or stays */
        for (int64_t sum = 0; sum < sums || sum == 0; sum++) {
            gr_matrix a = a0, b = b0, c = c0;
            int64_t kept = (int64_t)(item / t->pieces), summed = sum;
            for (int i = batch->kept + batch->summed - 1; i >= 0; i--) {
                int64_t *rest = i < batch->kept ? &kept : &summed;
                int64_t dim = batch->dim[i] > 0 ? batch->dim[i] : 1, at = *rest % dim;
                *rest /= dim;
                a.x += at * batch->a[i];
                b.x += at * batch->b[i];
                c.x += at * batch->c[i];
            }
            gr_multiply(t->kernels, scratch, c, a, b,
                        (gr_product_how){t->how.accumulate || sum > 0, t->how.zeros_hide});
        }
    }
}

static gr_matrix first_matrix(const gr_tensor *x) { return gr_matrix_of(x, 0, 0, x->shape.dim[x->shape.ndim - 2]); }

gr_tensor *gr_as_matrix(gr_tensor *x) {
    gr_shape lead = x->shape;
    int64_t columns = lead.dim[--lead.ndim];
    x = gr_contiguous(x);
    return gr_is_inert(x) ? x : gr_view_as(x, GR_SHAPE(gr_shape_numel(lead), columns));
}

void gr_product(gr_tensor *c, gr_tensor *a, gr_tensor *b, gr_product_how how) {
    gr_context *ctx = c->ctx;
    if (b->shape.ndim == 2 && a->shape.ndim > 2 && c->shape.ndim == a->shape.ndim && gr_is_contiguous(a) &&
        gr_is_contiguous(c)) { /* B is one matrix: one large product instead of many */
        a = gr_as_matrix(a);
        c = gr_as_matrix(c);
        if (gr_is_inert(a) || gr_is_inert(c)) return;
    }
    gr_real *scratch = gr_product_scratch(ctx);
    if (!scratch || !gr_ok(ctx)) return;
    product_task t; /* not cleared: see find_batches */
    t.kernels = ctx->kernels, t.how = how, t.scratch = scratch;
    t.a = first_matrix(a), t.b = first_matrix(b), t.c = first_matrix(c);
    find_batches(&t.batch, c, a, b);
    size_t batches = 1, threads = (size_t)gr_max_threads();
    for (int i = 0; i < t.batch.kept; i++) batches *= (size_t)t.batch.dim[i];
    t.cut_rows = t.c.rows > t.c.columns;
    t.pieces = batches >= threads ? 1 : threads;
    gr_parallel_for(batches * t.pieces, 2 * t.c.rows * t.c.columns * t.a.columns / t.pieces, run_items, &t);
}

gr_tensor *gr_swapped(gr_tensor *x) {
    int n = x->shape.ndim;
    gr_shape shape = x->shape;
    int64_t stride[GR_MAX_DIMS];
    for (int i = 0; i < n; i++) stride[i] = x->stride[i];
    shape.dim[n - 2] = x->shape.dim[n - 1], shape.dim[n - 1] = x->shape.dim[n - 2];
    stride[n - 2] = x->stride[n - 1], stride[n - 1] = x->stride[n - 2];
    return gr_view(x, shape, stride, 0);
}
