/* Random graphs of ops. What is wrong is refused: an error, the inert tensor, and the next op goes on. What is right
 *
 *   has the same bits, outputs and gradients, with any kernels as with the reference (unless these have no fma);
 *   has the gradients of difference quotients, in double, where it is smooth: kinks and singularities are kept away
 *       from, no number is above MOST, and a quotient of one of several steps must agree: a gradient that is wrong
 *       agrees with none;
 *   is, where it is fused attention, the textbook's, output and gradients, to rounding;
 *   adds its gradients to those that are there, and cannot be gone through twice. */
#include "graph.h"

#include "../tables.h"

#include <math.h>

static const struct {
    const gr_op *op;
    graph_call *call;
} ops[] = {
#define GRAPH_LIST(name) {&gr_op_##name, graph_call_##name},
    GR_OPS(GRAPH_LIST)
#undef GRAPH_LIST
};
enum { OPS = sizeof ops / sizeof *ops };

/* -- Counting ------------------------------------------------------------------------------------------------------ */

static struct { long graphs, refused, done[OPS], same, checked, finer, twice; } count;

static void print_counts(void) {
    long all = 0;
    int rarest = 0;
    for (int i = 0; i < OPS; i++) {
        all += count.done[i];
        if (count.done[i] < count.done[rarest]) rarest = i;
    }
    printf("%s: %ld graphs, %ld ops (rarest: %s, %ld), %ld refused; %ld compared with reference kernels, %ld with "
           "difference quotients (%ld at a finer step), %ld attentions with the textbook's, %ld gone through twice\n",
           GR_REAL_NAME, count.graphs, all, ops[rarest].op->name, count.done[rarest], count.refused, count.same,
           count.checked, count.finer, graph_compared, count.twice);
}

/* -- A graph from its plan ---------------------------------------------------------------------------------------- */

enum { STEP = 32 };                      /* bytes */
enum { ROOM_SMOOTH = 400, ROOM = 6000 }; /* elements of a tensor */
static const double MOST = 100; /* in a smooth graph; beyond it rounding and curvature tell more than gradients */

/* Within bounds, and in a smooth graph of a size that a difference quotient can tell. */
static bool is_kept(const plan *p, gr_tensor *y) {
    const int64_t n = gr_numel(y);
    gr_real value[ROOM_SMOOTH];
    if (n > (p->smooth ? ROOM_SMOOTH : ROOM)) return false;
    if (!p->smooth || n == 0) return true;
    DEMAND(gr_to_array(y, value));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)value[i]) <= MOST)) return false;
    return true;
}

/* What an op must not do: give nothing, or the inert tensor without an error, or an error beside a result. NULL: it was
 * refused. */
static gr_tensor *sound(graph *g, const char *name, gr_tensor *y) {
    DEMAND_SAYING(y, "%s gave NULL", name);
    gr_context *of = gr_context_of(y);
    DEMAND_SAYING(!g->none || gr_is_inert(y), "%s took an operand that is none", name);
    DEMAND_SAYING(gr_is_inert(y) == !gr_ok(of), "%s: %s", name, gr_ok(of) ? "inert without an error" : "not inert");
    if (!gr_is_inert(y)) {
        DEMAND_SAYING(of == g->ctx && gr_ok(g->ctx), "%s: %s", name, gr_error_message(g->ctx));
        return y;
    }
    DEMAND(*gr_error_message(of));
    gr_error_clear(g->ctx), gr_error_clear(g->away);
    count.refused++;
    return NULL;
}

static void run_step(graph *g, plan *p, int step, fuzz_bytes in) {
    g->in = in, g->none = false;
    const int which = (int)fuzz_below(&g->in, OPS);
    gr_tensor *y = ops[which].call(g);
    if (y) y = sound(g, ops[which].op->name, y);
    if (!p->drawn) p->kept[step] = y && is_kept(p, y);
    if (p->kept[step]) g->pool[g->count++] = y;
    count.done[which] += y && !p->drawn;
}

/* All results, one after the other, as a vector; NULL: there is none. */
static gr_tensor *build(graph *g, plan *p, gr_tensor *const *leaves) {
    gr_tensor *list[GRAPH_STEPS];
    fuzz_bytes in = p->steps;
    g->leaves = g->count = p->leaves;
    g->hostile = p->hostile, g->smooth = p->smooth, g->settled = p->drawn, g->room = p->smooth ? ROOM_SMOOTH : ROOM;
    for (int i = 0; i < p->leaves; i++) g->pool[i] = leaves[i];
    for (int step = 0; step < GRAPH_STEPS && fuzz_left(&in) > 0; step++) {
        const fuzz_bytes own = fuzz_rest(&in, STEP);
        if (!p->drawn || p->kept[step]) run_step(g, p, step, own);
    }
    const int results = g->count - g->leaves;
    for (int i = 0; i < results; i++) {
        gr_tensor *x = g->pool[g->leaves + i];
        list[i] = gr_reshape(x, GR_SHAPE(gr_numel(x)));
    }
    gr_tensor *y = results > 0 ? gr_concat(list, results, 0) : NULL;
    DEMAND_SAYING(gr_ok(g->ctx), "%s", gr_error_message(g->ctx));
    return y;
}

/* -- The same bits ------------------------------------------------------------------------------------------------- */

typedef struct numbers {
    gr_real *at; /* the results, then the gradient of each variable; malloc'd */
    size_t count;
} numbers;

static void append(numbers *to, gr_tensor *x) {
    const size_t n = (size_t)gr_numel(x);
    to->at = realloc(to->at, (to->count + n + 1) * sizeof *to->at);
    DEMAND(to->at && gr_to_array(x, to->at + to->count));
    to->count += n;
}

static void make_leaves(gr_context *ctx, const plan *p, gr_tensor *leaves[GRAPH_LEAVES]) {
    for (int i = 0; i < p->leaves; i++) {
        leaves[i] = gr_from(ctx, p->shape[i], p->value[i]);
        if (p->variable[i]) leaves[i] = gr_requires_grad(leaves[i]);
    }
    DEMAND(gr_ok(ctx));
}

static numbers gradients(const plan *p, gr_tensor *const *leaves) {
    numbers all = {NULL, 0};
    for (int i = 0; i < p->leaves; i++)
        if (p->variable[i]) append(&all, gr_grad(leaves[i]));
    return all;
}

/* False when y hangs on no variable. */
static bool go_back(gr_context *ctx, gr_tensor *y, uint64_t seed) {
    gr_rng rng = gr_rng_seed(seed);
    if (gr_backward_from(y, gr_uniform(ctx, gr_shape_of(y), -1, 1, &rng))) return true;
    DEMAND(strstr(gr_error_message(ctx), "depends on no parameter or variable"));
    gr_error_clear(ctx);
    return false;
}

/* A second time is an error and changes nothing. */
static void go_back_again(gr_context *ctx, const plan *p, gr_tensor *y, gr_tensor *const *leaves) {
    numbers before = gradients(p, leaves);
    DEMAND(!gr_backward_from(y, gr_full(ctx, gr_shape_of(y), 1)));
    DEMAND(strstr(gr_error_message(ctx), "gone through before"));
    gr_error_clear(ctx);
    numbers after = gradients(p, leaves);
    DEMAND(before.count == after.count && fuzz_same_numbers(before.count, before.at, after.at));
    free(before.at), free(after.at);
    count.twice++;
}

/* Another graph on the same leaves adds as much again. */
static void add_again(graph *g, plan *p, gr_tensor *const *leaves) {
#ifdef GR_DOUBLE
    const double tolerance = 1e-7; /* of what may cancel */
    numbers once = gradients(p, leaves);
    gr_tensor *y = build(g, p, leaves);
    DEMAND(go_back(g->ctx, y, p->seed));
    numbers twice = gradients(p, leaves);
    double largest = 1;
    for (size_t i = 0; i < once.count; i++) largest = fmax(largest, fabs((double)once.at[i]));
    for (size_t i = 0; i < once.count && largest < MOST * MOST; i++)
        DEMAND(fabs((double)(twice.at[i] - 2 * once.at[i])) <= tolerance * largest);
    free(once.at), free(twice.at);
#else
    (void)g, (void)p, (void)leaves;
#endif
}

static numbers run(gr_context *ctx, gr_context *away, plan *p, bool compare) {
    graph g = {.ctx = ctx, .away = away, .compare = compare};
    gr_tensor *leaves[GRAPH_LEAVES];
    numbers all = {NULL, 0};
    make_leaves(ctx, p, leaves);
    gr_tensor *y = build(&g, p, leaves);
    if (y) append(&all, y);
    p->differentiable = y && go_back(ctx, y, p->seed);
    if (p->differentiable) {
        for (int i = 0; i < p->leaves; i++)
            if (p->variable[i]) append(&all, gr_grad(leaves[i]));
        if (compare) go_back_again(ctx, p, y, leaves);
        g.compare = false;
        if (compare && p->smooth) p->drawn = true, add_again(&g, p, leaves), p->drawn = false;
    }
    gr_context_reset(ctx);
    gr_context_reset(away);
    return all;
}

/* -- Gradients ----------------------------------------------------------------------------------------------------- */

#ifdef GR_DOUBLE
static gr_tensor *again(gr_context *ctx, gr_tensor **inputs, void *arg) {
    (void)ctx;
    graph *g = ((void **)arg)[0];
    return build(g, ((void **)arg)[1], inputs);
}

static void check_gradients(gr_context *ctx, gr_context *away, plan *p) {
    static const double step[] = {0, 0x1p-11, 0x1p-13, 0x1p-15, 0x1p-7}; /* 0: the usual one */
    enum { STEPS = sizeof step / sizeof *step };
    graph g = {.ctx = ctx, .away = away};
    gr_tensor *leaves[GRAPH_LEAVES];
    gr_gradcheck_result found = {.ok = false};
    int at = 0;
    p->drawn = true;
    make_leaves(ctx, p, leaves);
    for (; at < STEPS && !found.ok; at++) {
        found = gr_gradcheck(ctx, again, (void *[]){&g, p}, p->leaves, leaves, p->variable,
                             (gr_gradcheck_config){.tolerance = 1e-6, .step = step[at], .seed = p->seed});
        DEMAND_SAYING(gr_ok(ctx), "%s", gr_error_message(ctx));
    }
    DEMAND_SAYING(found.ok, "gradient of leaf %d, element %lld: %.12g, by difference quotients %.12g", found.input,
                  (long long)found.index, found.analytic, found.numeric);
    count.checked++, count.finer += at > 1;
    gr_context_reset(ctx);
    gr_context_reset(away);
}
#endif

/* -- An input ------------------------------------------------------------------------------------------------------ */

enum { MOST_TABLES = 8 };
static gr_context *reference, *fast[MOST_TABLES], *elsewhere;
static int fasts;

static gr_context *context_of(const gr_kernels *k) {
    setenv("GRADUS_ISA", k->name, 1);
    return gr_context_new();
}

/* A context for each table that runs here and has the reference's bits; where none has, one for the best. */
static void make_contexts(void) {
    elsewhere = gr_context_new();
    for (int i = 0; i + 1 < tables() && fasts < MOST_TABLES; i++)
        if (table(i)->exact) fast[fasts++] = context_of(table(i));
    if (fasts == 0) fast[fasts++] = context_of(table(0));
    reference = context_of(table(tables() - 1));
    atexit(print_counts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!reference) make_contexts();
    plan p = graph_plan((fuzz_bytes){data, data + size});
    plan q = p;
    gr_context *ctx = fast[p.seed % (uint64_t)fasts];
    numbers a = run(ctx, elsewhere, &p, true), b = run(reference, elsewhere, &q, false);
    if (gr_kernels_select(gr_context_isa(ctx))->exact) {
        DEMAND(memcmp(p.kept, q.kept, sizeof p.kept) == 0 && a.count == b.count);
        DEMAND(fuzz_same_numbers(a.count, a.at, b.at));
        count.same++;
    }
#ifdef GR_DOUBLE
    if (p.smooth && p.differentiable) check_gradients(ctx, elsewhere, &p);
#endif
    free(a.at), free(b.at);
    for (int i = 0; i < p.leaves; i++) free(p.value[i]);
    count.graphs++;
    return 0;
}
