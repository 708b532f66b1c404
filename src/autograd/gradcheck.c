/* Gradients against difference quotients.
 *
 * L = sum(r * f(x)) with a fixed random r: a sum without r would be blind where the outputs of f add up to a constant,
 * as those of a softmax do. dL/dx_i is compared with the difference quotient of fourth order, (8 (L(x+h) - L(x-h)) -
 * (L(x+2h) - L(x-2h))) / 12 h, whose error is h^4 f^(5) / 30 and rounding / h. */
#include "tape.h"

#include <math.h>

/* Both errors about equal: h near eps^(1/5), as a power of two so that x + h is exact for most x. */
#ifdef GR_DOUBLE
static const double best_step = 0x1p-9, usual_tolerance = 1e-8;
#else
static const double best_step = 0x1p-5, usual_tolerance = 1e-3;
#endif

typedef struct check {
    gr_context *ctx;
    gr_function *f;
    void *arg;
    int count;
    gr_tensor **inputs;
    gr_rng cotangent;
} check;

/* An r of either sign and of size 1/2 to 3/2: one near 0 would hide the gradients behind it. */
static double next_cotangent(gr_rng *rng) {
    double u = 2 * gr_rng_uniform(rng) - 1;
    return u < 0 ? u - 0.5 : u + 0.5;
}

/* Is y a tensor that f could give? */
static bool sound_result(const check *c, const gr_tensor *y) {
    if (gr_is_inert(y))
        gr_fail(c->ctx, "gradcheck", "the function gave %s", y ? "an inert tensor" : "NULL");
    else if (y->ctx != c->ctx)
        gr_fail(c->ctx, "gradcheck", "the function gave a tensor of another context");
    return gr_ok(c->ctx);
}

/* The result of f. One that ends the step takes the inputs with it. */
static gr_tensor *call(const check *c) {
    const unsigned steps = c->ctx->steps;
    gr_tensor *y = c->f(c->ctx, c->inputs, c->arg);
    if (c->ctx->steps == steps) return y;
    gr_fail(c->ctx, "gradcheck", "the function has ended the step (gr_context_reset)");
    return gr_inert(c->ctx);
}

/* L = sum(r * y), in double; r is drawn anew from its seed each time. */
static double value_of(const check *c, gr_tensor *y) {
    gr_rng rng = c->cotangent;
    double sum = 0;
    if (!sound_result(c, y)) return sum;
    const gr_tensor *rows = gr_contiguous(y);
    for (int64_t i = 0, n = gr_numel(rows); i < n; i++)
        sum += (double)(gr_real)next_cotangent(&rng) * (double)rows->data[i];
    return sum;
}

/* L at the inputs as they are now; the memory it took is taken back. */
static double evaluate(const check *c) {
    const gr_mark before = gr_mark_step(c->ctx);
    gr_no_grad_begin(c->ctx);
    double value = value_of(c, call(c));
    gr_no_grad_end(c->ctx);
    gr_rewind_step(c->ctx, &before);
    return value;
}

static double difference_quotient(const check *c, gr_real *x, double h) {
    const gr_real middle = *x;
    double at[4];
    const double steps[4] = {1, -1, 2, -2};
    for (int i = 0; i < 4; i++) {
        *x = (gr_real)((double)middle + steps[i] * h);
        at[i] = evaluate(c);
        if (!gr_ok(c->ctx)) return (double)NAN; /* x may be gone */
    }
    *x = middle;
    return (8 * (at[0] - at[1]) - (at[2] - at[3])) / (12 * h);
}

/* Gradients begin at these numbers, not at 0: a backward that overwrites instead of adding is caught. */
static double prefill(int input, int64_t index) { return 0.5 + 0.25 * (double)((input + index) % 3); }

/* Copies of the inputs as variables, their gradients pre-filled. */
static bool make_variables(check *c, gr_tensor **inputs, const bool *wanted) {
    c->inputs = gr_alloc_array(c->ctx, false, c->count ? c->count : 1, sizeof *c->inputs);
    for (int i = 0; c->inputs && i < c->count; i++) {
        gr_tensor *copy = gr_new(c->ctx, "gradcheck", false, inputs[i]->shape);
        if (gr_is_inert(copy)) return false;
        gr_run_map(GR_MAP_copy, 0, copy, 1, &inputs[i]);
        copy->name = inputs[i]->name;
        c->inputs[i] = copy;
        if (wanted && !wanted[i]) continue;
        if (gr_is_inert(gr_requires_grad(copy))) return false;
        for (int64_t k = 0; k < gr_numel(copy); k++) copy->grad->data[k] = (gr_real)prefill(i, k);
    }
    return gr_ok(c->ctx);
}

/* All but the inputs is held constant: what f uses beside them, a parameter or an earlier result, gets no gradient from
 * here, so the step that is under way goes on as if nothing had happened. `before` is the tape's end before f ran. */
static void hold_the_rest_constant(const check *c, const gr_node *before) {
    for (gr_node *n = c->ctx->tape; n != before; n = n->previous) n->reached = true; /* made by f */
    for (gr_node *n = c->ctx->tape; n != before; n = n->previous)
        for (int i = 0; i < n->count; i++) {
            const gr_tensor *x = n->in[i];
            bool ours = x && x->node && x->node->reached;
            for (int k = 0; k < c->count; k++) ours = ours || x == c->inputs[k];
            n->wanted[i] = n->wanted[i] && ours;
        }
    for (gr_node *n = c->ctx->tape; n != before; n = n->previous) n->reached = false;
}

static bool run_backward(const check *c) {
    const gr_node *before = c->ctx->tape;
    gr_tensor *y = call(c);
    if (!sound_result(c, y)) return false;
    if (!y->requires_grad) {
        gr_fail(c->ctx, "gradcheck", "the result depends on no input whose gradient is wanted");
        return false;
    }
    hold_the_rest_constant(c, before);
    gr_rng rng = c->cotangent;
    gr_tensor *seed = gr_zeros(c->ctx, y->shape);
    for (int64_t k = 0; k < gr_numel(seed); k++) seed->data[k] = (gr_real)next_cotangent(&rng);
    return gr_backward_from(y, seed);
}

/* The worst place of one operand goes into the result if it is worse than what is there. */
static void compare(const check *c, int input, double h, gr_gradcheck_result *worst) {
    gr_tensor *x = c->inputs[input];
    double largest = 1;
    gr_gradcheck_result here = {.ok = true, .input = input, .error = -1, .input_name = gr_name(x)};
    for (int64_t k = 0; k < gr_numel(x); k++) {
        double numeric = difference_quotient(c, &x->data[k], h);
        if (!gr_ok(c->ctx)) return; /* x may be gone */
        double analytic = (double)x->grad->data[k] - (double)(gr_real)prefill(input, k);
        double error = fabs(analytic - numeric);
        if (fabs(numeric) > largest && fabs(numeric) < HUGE_VAL) largest = fabs(numeric);
        if (error <= here.error) continue;
        here.index = k, here.analytic = analytic, here.numeric = numeric;
        here.error = error == error ? error : HUGE_VAL; /* NaN is as wrong as can be */
    }
    here.error /= largest;
    if (here.error > worst->error) *worst = here;
}

gr_gradcheck_result gr_gradcheck(gr_context *ctx, gr_function *f, void *arg, int count, gr_tensor **inputs,
                                 const bool *wanted, gr_gradcheck_config config) {
    const gr_gradcheck_result none = {.error = (double)NAN, .input_name = ""};
    if (!gr_ok(ctx)) return none;
    for (int i = 0; i < count && gr_ok(ctx); i++) {
        char label[32];
        snprintf(label, sizeof label, "input %d", i);
        if (!inputs || !inputs[i] || inputs[i]->ctx != ctx)
            gr_fail(ctx, "gradcheck", "%s is NULL or of another context", label);
        else
            gr_check_alive(inputs[i], "gradcheck", label);
    }
    if (!f || count < 0)
        gr_fail(ctx, "gradcheck", "%s", f ? "the number of inputs is negative" : "the function is NULL");
    if (!gr_ok(ctx)) return none;
    double h = config.step > 0 ? config.step : best_step;
    double tolerance = config.tolerance > 0 ? config.tolerance : usual_tolerance;
    struct gr_node *tape = ctx->tape;
    const unsigned steps = ctx->steps;
    const bool torn = ctx->gradients_torn; /* of the step under way; here it is about copies */
    ctx->gradients_torn = false;
    check c = {ctx, f, arg, count, NULL, gr_rng_stream(gr_rng_seed(config.seed), GR_STREAM_USER)};
    gr_gradcheck_result worst = {.input_name = "", .error = -1};
    if (make_variables(&c, inputs, wanted) && run_backward(&c))
        for (int i = 0; gr_ok(ctx) && i < count; i++)
            if (c.inputs[i]->requires_grad) compare(&c, i, h, &worst);
    ctx->tape = ctx->steps == steps ? tape : NULL;
    ctx->gradients_torn = torn;
    if (worst.error < 0) worst.error = 0; /* there was nothing to compare */
    worst.ok = worst.error <= tolerance && worst.error < HUGE_VAL;
    return gr_ok(ctx) ? worst : none;
}
