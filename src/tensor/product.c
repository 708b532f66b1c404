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
    gr_gemm gemm; /* of the first batch */
    batch_axes batch;
    size_t pieces; /* each product is cut into so many ... */
    bool cut_rows; /* ... bands of rows, or of columns */
    bool zeros_hide;
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

/* The part of the gemm that belongs to one band. */
static gr_gemm band_of(const product_task *t, size_t piece) {
    gr_gemm g = t->gemm;
    size_t whole = t->cut_rows ? g.m : g.n, unit = t->cut_rows ? BAND_ROWS : BAND_COLUMNS;
    size_t units = (whole + unit - 1) / unit;
    size_t begin = units * piece / t->pieces * unit, end = units * (piece + 1) / t->pieces * unit;
    if (end > whole) end = whole;
    if (t->cut_rows) {
        g.a += (ptrdiff_t)begin * g.a_row;
        g.c += (ptrdiff_t)begin * g.c_row;
        g.m = end - begin;
    } else {
        g.b += (ptrdiff_t)begin * g.b_col;
        g.c += begin;
        g.n = end - begin;
    }
    return g;
}

bool gr_matrix_is_finite(const gr_kernels *kernels, size_t rows, size_t columns, const gr_real *x, ptrdiff_t row,
                         ptrdiff_t col) {
    if (col == 1) return kernels->all_finite(rows, columns, x, row);
    if (row == 1) return kernels->all_finite(columns, rows, x, col);
    for (size_t i = 0; i < rows; i++) /* every number a row of its own */
        for (size_t j = 0; j < columns; j++)
            if (!kernels->all_finite(1, 1, x + (ptrdiff_t)i * row + (ptrdiff_t)j * col, 1)) return false;
    return true;
}

void gr_multiply_hiding(const gr_kernels *kernels, const gr_gemm *g) {
    if (gr_matrix_is_finite(kernels, g->k, g->n, g->b, g->b_row, g->b_col))
        kernels->matmul(g);
    else
        kernels->matmul_hiding(g);
}

static void run_items(size_t begin, size_t end, int thread, void *arg) {
    const product_task *t = arg;
    const batch_axes *batch = &t->batch;
    int64_t sums = 1;
    for (int i = batch->kept; i < batch->kept + batch->summed; i++) sums *= batch->dim[i];
    for (size_t item = begin; item < end; item++) {
        gr_gemm band = band_of(t, item % t->pieces);
        if (band.m == 0 || band.n == 0) continue;
        band.scratch = t->scratch + (size_t)thread * GR_GEMM_SCRATCH;
        if (sums == 0) band.k = 0; /* a sum over nothing: C is 0, or stays */
        for (int64_t sum = 0; sum < sums || sum == 0; sum++) {
            gr_gemm g = band;
            int64_t kept = (int64_t)(item / t->pieces), summed = sum;
            for (int i = batch->kept + batch->summed - 1; i >= 0; i--) {
                int64_t *rest = i < batch->kept ? &kept : &summed;
                int64_t dim = batch->dim[i] > 0 ? batch->dim[i] : 1, at = *rest % dim;
                *rest /= dim;
                g.a += at * batch->a[i];
                g.b += at * batch->b[i];
                g.c += at * batch->c[i];
            }
            g.accumulate = band.accumulate || sum > 0;
            if (t->zeros_hide)
                gr_multiply_hiding(t->kernels, &g);
            else
                t->kernels->matmul(&g);
        }
    }
}

gr_real *gr_product_scratch(gr_context *ctx) {
    int threads = gr_max_threads();
    if (ctx->scratch_threads >= threads) return ctx->scratch;
    gr_real *scratch = gr_alloc(ctx, true, (size_t)threads * GR_GEMM_SCRATCH * sizeof *scratch);
    if (scratch) ctx->scratch = scratch, ctx->scratch_threads = threads;
    return scratch;
}

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
    int na = a->shape.ndim, nb = b->shape.ndim, nc = c->shape.ndim;
    product_task t;
    t.kernels = ctx->kernels, t.zeros_hide = how.zeros_hide, t.scratch = scratch;
    t.gemm = (gr_gemm){.m = (size_t)a->shape.dim[na - 2],
                       .n = (size_t)b->shape.dim[nb - 1],
                       .k = (size_t)a->shape.dim[na - 1],
                       .a = a->data,
                       .a_row = a->stride[na - 2],
                       .a_col = a->stride[na - 1],
                       .b = b->data,
                       .b_row = b->stride[nb - 2],
                       .b_col = b->stride[nb - 1],
                       .c = c->data,
                       .c_row = c->stride[nc - 2],
                       .accumulate = how.accumulate};
    find_batches(&t.batch, c, a, b);
    size_t batches = 1, threads = (size_t)gr_max_threads();
    for (int i = 0; i < t.batch.kept; i++) batches *= (size_t)t.batch.dim[i];
    t.cut_rows = t.gemm.m > t.gemm.n;
    t.pieces = batches >= threads ? 1 : threads;
    gr_parallel_for(batches * t.pieces, 2 * t.gemm.m * t.gemm.n * t.gemm.k / t.pieces, run_items, &t);
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
