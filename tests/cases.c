/* Runs a case: makes its operands, takes their views, calls the op, and reads the tape. */
#include "cases.h"

static const case_list *const lists[] = {&elementwise_cases, &reduction_cases, &product_cases,
                                         &view_cases,        &row_cases,       &attention_cases};

const gradient_case *case_at(int i) {
    for (size_t k = 0; k < sizeof lists / sizeof lists[0]; i -= lists[k++]->count)
        if (i < lists[k]->count) return &lists[k]->cases[i];
    return NULL;
}

gr_tensor *apply_one(const gradient_case *c, gr_tensor **x) { return c->one(x[0]); }
gr_tensor *apply_two(const gradient_case *c, gr_tensor **x) { return c->two(x[0], x[1]); }
gr_tensor *apply_same(const gradient_case *c, gr_tensor **x) { return c->two(x[0], x[0]); }
gr_tensor *apply_three(const gradient_case *c, gr_tensor **x) { return c->three(x[0], x[1], x[2]); }
gr_tensor *apply_with(const gradient_case *c, gr_tensor **x) { return c->with(x[0], c->number); }
gr_tensor *apply_over(const gradient_case *c, gr_tensor **x) { return c->over(x[0], c->axes); }
gr_tensor *apply_to(const gradient_case *c, gr_tensor **x) { return c->to(x[0], c->shape); }
gr_tensor *apply_join(const gradient_case *c, gr_tensor **x) { return c->join(x, operand_count(c), c->axes.axis[0]); }

int operand_count(const gradient_case *c) {
    int n = MOST_OPERANDS;
    while (n > 0 && c->in[n - 1].values == ABSENT) n--;
    return n;
}

static bool is_variable(const operand *o) { return o->values != ABSENT && o->values < FIXED; }

static double value_of(values kind, int64_t k, gr_shape shape, gr_rng *rng) {
    int64_t n = gr_shape_numel(shape), row = shape.ndim ? shape.dim[shape.ndim - 1] : 1;
    double near = 0.75 + 1.25 * gr_rng_uniform(rng), grid = 0.5 * ((double)gr_rng_below(rng, 9) - 4);
    const int64_t prime = 7919; /* k prime mod n runs through all of 0 ... n - 1, in disorder */
    switch (kind) {
    case POSITIVE:
        return near;
    case AWAY:
        return gr_rng_below(rng, 2) ? near : -near;
    case GRID:
        return grid;
    case BETWEEN:
        return grid + 0.25;
    case FIXED:
        return grid + 0.125;
    case APART:
        return 0.125 * (double)(k * prime % n - n / 2);
    case HOLED:
        return k % 3 == 1 ? 0 : gr_rng_normal(rng);
    case MASK:
        return k % 3 != 1;
    case NO_ROW:
        return k >= row && k % 3 != 1;
    default:
        return gr_rng_normal(rng);
    }
}

/* The shape of the tensor under the view. */
static gr_shape base_shape(const operand *o) {
    gr_shape base = o->shape;
    int last = base.ndim - 1;
    switch (o->view) {
    case TRANSPOSED:
        base.dim[last] = o->shape.dim[last - 1], base.dim[last - 1] = o->shape.dim[last];
        break;
    case ROTATED:
        for (int i = 0; i <= last; i++) base.dim[(i + 1) % (last + 1)] = o->shape.dim[i];
        break;
    case SLICED:
        base.dim[last] = 2 * o->shape.dim[last] + 1;
        break;
    case SPACED:
        base.dim[0] = 2 * o->shape.dim[0] + 1;
        break;
    case EXPANDED:
        base.dim[0] = 1;
        break;
    case SPREAD:
        base.dim[last] = 1;
        break;
    case WHOLE:
        break;
    }
    return base;
}

static gr_tensor *see(const operand *o, gr_tensor *x) {
    gr_axes up = {o->shape.ndim, false, {0}};
    switch (o->view) {
    case TRANSPOSED:
        return gr_transpose(x, -2, -1);
    case ROTATED:
        for (int i = 0; i < up.count; i++) up.axis[i] = (i + 1) % up.count;
        return gr_permute(x, up);
    case SLICED:
        return gr_slice(x, -1, 1, GR_END, 2);
    case SPACED:
        return gr_slice(x, 0, 1, GR_END, 2);
    case EXPANDED:
    case SPREAD:
        return gr_expand(x, o->shape);
    case WHOLE:
        break;
    }
    return x;
}

static gr_tensor *make_operand(gr_context *ctx, const operand *o, int place) {
    gr_shape base = base_shape(o);
    gr_rng rng = gr_rng_seed((uint64_t)place + 1);
    gr_tensor *x = gr_zeros(ctx, base);
    for (int64_t k = 0; k < gr_numel(x); k++) gr_data(x)[k] = (gr_real)value_of(o->values, k, base, &rng);
    return x;
}

typedef struct trial {
    const gradient_case *c;
    const mutant *m;
    unsigned reached;
} trial;

/* The function that gr_gradcheck checks. Without a tape there is no node to look at. */
static gr_tensor *run_case(gr_context *ctx, gr_tensor **inputs, void *arg) {
    trial *t = arg;
    const gr_node *before = ctx->tape;
    gr_tensor *x[MOST_OPERANDS] = {NULL};
    for (int i = 0, k = 0; i < operand_count(t->c); i++)
        if (t->c->in[i].values != ABSENT) x[i] = see(&t->c->in[i], inputs[k++]);
    gr_tensor *y = t->c->apply(t->c, x);
    if (t->c->twice) y = gr_add(y, t->c->apply(t->c, x));
    for (const gr_node *n = ctx->tape; n != before; n = n->previous)
        for (int i = 0; n->op == t->c->op && i < n->count; i++) t->reached |= (unsigned)gr_wants(n, i) << i;
    if (t->m) infect(t->m, ctx->tape, before);
    return y;
}

static int make_operands(gr_context *ctx, const gradient_case *c, gr_tensor **inputs, bool *wanted) {
    int count = 0;
    for (int i = 0; i < operand_count(c); i++) {
        if (c->in[i].values == ABSENT) continue;
        wanted[count] = is_variable(&c->in[i]);
        inputs[count++] = make_operand(ctx, &c->in[i], i);
    }
    return count;
}

gr_tensor *result_of_case(gr_context *ctx, const gradient_case *c, gr_tensor *inputs[MOST_OPERANDS]) {
    bool wanted[MOST_OPERANDS];
    trial t = {c, NULL, 0};
    const int count = make_operands(ctx, c, inputs, wanted);
    for (int i = 0; i < count; i++)
        if (wanted[i]) gr_requires_grad(inputs[i]);
    for (int i = count; i < MOST_OPERANDS; i++) inputs[i] = NULL;
    return run_case(ctx, inputs, &t);
}

gr_gradcheck_result check_case(gr_context *ctx, const gradient_case *c, const mutant *m, unsigned *reached) {
    gr_tensor *inputs[MOST_OPERANDS];
    bool wanted[MOST_OPERANDS];
    const int count = make_operands(ctx, c, inputs, wanted);
    trial t = {c, m, 0};
    gr_gradcheck_result result = gr_gradcheck(ctx, run_case, &t, count, inputs, wanted, (gr_gradcheck_config){0});
    if (reached) *reached = t.reached;
    gr_context_reset(ctx);
    return result;
}
