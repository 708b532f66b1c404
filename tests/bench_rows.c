/* The machine's two limits, and each row kernel against them. */
#include "bench.h"

#include "../src/autograd/tape.h"
#include "../src/tensor/parallel.h"

#include <stdlib.h>
#include <string.h>

/* -- Peak of fused multiply-adds ------------------------------------------------------------------------------------
 */

/* Twelve vectors of eight: more chains than latency times units, all in registers. */
enum { LANES = 8, CHAINS = 12 * LANES, ROUNDS = 1 << 20 };

#if defined __x86_64__
__attribute__((target("avx2,fma")))
#endif
static float
fma_chains(float a, float b) {
    float x[CHAINS / LANES][LANES], sum = 0;
    for (int c = 0; c < CHAINS; c++) x[c / LANES][c % LANES] = (float)c;
    for (int i = 0; i < ROUNDS; i++)
        for (int v = 0; v < CHAINS / LANES; v++)
#pragma omp simd
            for (int l = 0; l < LANES; l++) x[v][l] = __builtin_fmaf(x[v][l], a, b);
    for (int c = 0; c < CHAINS; c++) sum += x[c / LANES][c % LANES];
    return sum;
}

static void peak_range(size_t begin, size_t end, int thread, void *arg) {
    (void)thread;
    for (size_t i = begin; i < end; i++) ((volatile float *)arg)[i] = fma_chains(0.999f, 0.001f);
}

static void peak_work(void *arg) {
    gr_parallel_for((size_t)gr_max_threads(), 2 * CHAINS * (size_t)ROUNDS, peak_range, arg);
}

double bench_peak(void) {
    float sink[64];
    if (gr_max_threads() > 64) return 0;
    return 2.0 * CHAINS * ROUNDS * gr_max_threads() / bench_time(peak_work, sink).best / 1e9;
}

/* -- Bandwidth --------------------------------------------------------------------------------------------------------
 */

typedef struct copy_job {
    char *to, *from;
    size_t size;
} copy_job;

static void copy_range(size_t begin, size_t end, int thread, void *arg) {
    (void)thread;
    const copy_job *j = arg;
    memcpy(j->to + begin, j->from + begin, end - begin);
}

static void copy_work(void *arg) { gr_parallel_for(((copy_job *)arg)->size, 1, copy_range, arg); }
static void copy_alone(void *arg) { copy_range(0, ((copy_job *)arg)->size, 0, arg); }

double bench_bandwidth(bool one_thread) {
    const size_t size = (size_t)128 << 20; /* four times a large last-level cache */
    copy_job job = {malloc(size), malloc(size), size};
    if (!job.to || !job.from) exit(1);
    memset(job.from, 1, size);
    double best = bench_time(one_thread ? copy_alone : copy_work, &job).best;
    free(job.to);
    free(job.from);
    return 2.0 * (double)size / best / 1e9;
}

/* -- Rows
 * --------------------------------------------------------------------------------------------------------------- */

typedef struct row_job {
    const gr_kernels *k;
    size_t rows, n;
    gr_real *x, *y, *z, *w;
} row_job;

static void map_of(row_job *j, gr_map_name name, size_t i, gr_real *b) {
    j->k->map[name](&(gr_row){j->n, {j->y + i, j->x + i, b ? b + i : NULL}, {1, 1, 1}, 1});
}

static void run_exp(row_job *j, size_t i) { map_of(j, GR_MAP_exp, i, NULL); }
static void run_tanh(row_job *j, size_t i) { map_of(j, GR_MAP_tanh, i, NULL); }
static void run_gelu(row_job *j, size_t i) { map_of(j, GR_MAP_gelu, i, NULL); }
static void run_gelu_dx(row_job *j, size_t i) { map_of(j, GR_MAP_gelu_dx, i, j->z); }
static void run_add(row_job *j, size_t i) { map_of(j, GR_MAP_add, i, j->z); }
static void run_softmax(row_job *j, size_t i) { j->k->softmax(j->n, j->y + i, j->x + i, NULL, 1); }
static void run_masked(row_job *j, size_t i) { j->k->softmax(j->n, j->y + i, j->x + i, j->w, 1); }
static void run_softmax_dx(row_job *j, size_t i) { j->k->softmax_dx(j->n, j->y + i, j->x + i, j->z + i, 1); }
static void run_norm(row_job *j, size_t i) {
    const gr_center mean = gr_center_of(j->k, j->n, j->x + i);
    gr_real variance = j->k->sum_squares(j->n, j->x + i, mean, 1);
    j->k->normalize(j->n, j->y + i, j->x + i, mean, 1 / (variance + 1), j->w, NULL);
}
static void run_norm_dx(row_job *j, size_t i) {
    j->k->normalize_dx(j->n, j->y + i, j->z + i, j->x + i, gr_origin, 1, j->w, true);
}
static void run_entropy(row_job *j, size_t i) { j->y[i] = j->k->logsumexp(j->n, j->x + i); }
static void run_entropy_dx(row_job *j, size_t i) { j->k->cross_entropy_dx(j->n, j->y + i, j->x + i, 5, 1, 0); }
static void run_sum(row_job *j, size_t i) { j->y[i] = j->k->sum(j->n, j->x + i, 0); }
static void run_norm2(row_job *j, size_t i) { j->y[i] = j->k->sum_squares(j->n, j->x + i, gr_origin, 1); }
static void run_adam(row_job *j, size_t i) {
    const gr_adam_step step = {.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .rate = 1e-9, .root = 1, .keep = 1};
    j->k->adam(j->n, j->y + i, j->x + i, j->z + i, j->z + i, &step);
}

static const struct row_case {
    const char *name;
    void (*run)(row_job *j, size_t i);
    int streams; /* numbers read or written for each element */
} cases[] = {
    {"add", run_add, 3},           {"exp", run_exp, 2},
    {"tanh", run_tanh, 2},         {"gelu", run_gelu, 2},
    {"gelu_dx", run_gelu_dx, 4},   {"softmax", run_softmax, 2},
    {"masked", run_masked, 2},     {"softmax_dx", run_softmax_dx, 4},
    {"layernorm", run_norm, 2},    {"norm_dx", run_norm_dx, 4},
    {"logsumexp", run_entropy, 1}, {"entropy_dx", run_entropy_dx, 3},
    {"sum", run_sum, 1},           {"norm", run_norm2, 1},
    {"adamw", run_adam, 6},
};

typedef struct case_job {
    row_job row;
    const struct row_case *of;
} case_job;

static void case_work(void *arg) {
    case_job *c = arg;
    for (size_t i = 0; i < c->row.rows; i++) c->of->run(&c->row, i * c->row.n);
}

static void bench_rows_of(const char *where, size_t rows, size_t n, double bandwidth) {
    gr_context *ctx = gr_context_new();
    gr_rng rng = gr_rng_seed(1);
    gr_shape shape = GR_SHAPE((int64_t)rows, (int64_t)n);
    case_job c = {{ctx->kernels, rows, n, NULL, NULL, NULL, NULL}, NULL};
    c.row.x = gr_data(gr_normal(ctx, shape, 0, 1, &rng));
    c.row.y = gr_data(gr_normal(ctx, shape, 0, 1, &rng));
    c.row.z = gr_data(gr_uniform(ctx, shape, 1, 2, &rng));
    c.row.w = gr_data(gr_full(ctx, GR_SHAPE((int64_t)n), 1));
    if (gr_context_report(ctx)) exit(1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        c.of = &cases[i];
        timing t = bench_time(case_work, &c);
        double elements = (double)(rows * n),
               rate = cases[i].streams * (double)sizeof(gr_real) * elements / t.best / 1e9;
        char what[64];
        snprintf(what, sizeof what, "%s_%s", cases[i].name, where);
        bench_row("rows", what, t.best / elements * 1e9, "ns/element");
        bench_row("rows", what, rate, "GB/s");
        if (bandwidth > 0) bench_row("rows", what, 100 * rate / bandwidth, "%_of_bandwidth");
    }
    gr_context_free(ctx);
}

/* One thread: the kernels do not know threads. 128 wide rows that fit the second cache, and 512 wide ones that fit
 * none. */
void bench_rows(void) {
    bench_rows_of("cache", 256, 128, 0);
    bench_rows_of("memory", 16384, 512, bench_bandwidth(true));
}
