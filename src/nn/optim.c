#include "optim.h"
#include "internal.h"

#include "../tensor/parallel.h"

#include <math.h>
#include <string.h>

/* -- What the optimisers share ------------------------------------------------------------------------------------- */

/* A zero tensor for each parameter; NULL after an error. */
static gr_tensor **new_state(gr_context *ctx, const char *where) {
    const int count = gr_parameter_count(ctx);
    gr_tensor **state = gr_alloc_array(ctx, true, count, sizeof *state);
    for (int i = 0; state && i < count; i++) {
        gr_tensor *w = ctx->parameters[i];
        state[i] = gr_new(ctx, where, true, w->shape);
        if (!gr_is_inert(state[i])) memset(state[i]->data, 0, (size_t)gr_numel(w) * sizeof(gr_real));
    }
    return gr_ok(ctx) ? state : NULL;
}

/* A rate or a decay beyond it, or the product of two, may overflow gr_real and make a weight NaN. */
static const double largest_setting = 1e15;

static void check_setting(gr_context *ctx, const char *where, const char *what, double value) {
    if (!(value >= 0 && value <= largest_setting))
        gr_fail(ctx, where, "%s is %g; it must be in [0, %g]", what, value, largest_setting);
}

/* May this step change weights? */
static bool ready(gr_context *ctx, const char *where, int count, double lr) {
    if (!gr_ok(ctx)) return false;
    if (!gr_check_made(ctx, where, "the optimiser", count >= 0)) return false;
    if (gr_parameter_count(ctx) != count)
        gr_fail(ctx, where, "made for %d parameters, there are %d now; make the model first", count,
                gr_parameter_count(ctx));
    else if (ctx->gradients_torn)
        gr_fail(ctx, where, "the backward before it stopped half-way; gr_zero_grad first");
    check_setting(ctx, where, "the learning rate", lr);
    return gr_ok(ctx);
}

static bool decays(const gr_tensor *w, bool all) { return all || gr_ndim(w) >= 2; }

/* A line of the profile: all parameters, so many operations and so many numbers read or written for each element. */
static void charge(gr_context *ctx, const char *name, int operations, int numbers) {
    double n = (double)gr_parameter_numel(ctx);
    gr_profile_event(ctx, name, "update", n * operations, n * numbers * (double)sizeof(gr_real));
}

enum { SGD_COST = 8, ADAM_COST = 24, SCALE_COST = 4 }; /* operations an element, roughly; see gr_parallel_for */

/* -- Stochastic gradient descent ----------------------------------------------------------------------------------- */

struct gr_sgd {
    gr_context *ctx;
    gr_sgd_config config;
    int count;            /* parameters that existed when it was made */
    gr_tensor **velocity; /* one a parameter */
};

gr_sgd *gr_sgd_new(gr_context *ctx, gr_sgd_config config) {
    static const gr_sgd nothing = {.ctx = NULL};
    gr_sgd *sgd = gr_alloc_handle(ctx, sizeof *sgd);
    if (!sgd) return (gr_sgd *)&nothing;
    check_setting(ctx, "sgd", "momentum", config.momentum);
    check_setting(ctx, "sgd", "weight_decay", config.weight_decay);
    *sgd = (gr_sgd){.ctx = ctx, .config = config, .velocity = new_state(ctx, "sgd")};
    sgd->count = sgd->velocity ? gr_parameter_count(ctx) : -1; /* -1: not made */
    return sgd;
}

typedef struct sgd_job {
    const gr_sgd *sgd;
    gr_tensor *w, *velocity;
    double lr, decay;
} sgd_job;

static void sgd_range(size_t begin, size_t end, int thread, void *arg) {
    (void)thread;
    const sgd_job *j = arg;
    j->sgd->ctx->kernels->sgd(end - begin, j->w->data + begin, j->w->grad->data + begin, j->velocity->data + begin,
                              j->lr, j->sgd->config.momentum, j->decay);
}

bool gr_sgd_step(gr_sgd *sgd, double lr) {
    if (!sgd || !ready(sgd->ctx, "sgd", sgd->count, lr)) return false;
    for (int i = 0; i < sgd->count; i++) {
        gr_tensor *w = sgd->ctx->parameters[i];
        sgd_job job = {sgd, w, sgd->velocity[i], lr, decays(w, sgd->config.decay_all) ? sgd->config.weight_decay : 0};
        gr_parallel_for((size_t)gr_numel(w), SGD_COST, sgd_range, &job);
    }
    charge(sgd->ctx, "sgd", SGD_COST, 5);
    return true;
}

/* -- Adam and AdamW ------------------------------------------------------------------------------------------------ */

struct gr_adamw {
    gr_context *ctx;
    gr_adamw_config config;
    bool decoupled; /* AdamW; false: Adam */
    int count;
    gr_tensor **m, **v; /* first and second moment, one a parameter */
    int64_t step;       /* updates made: t of the bias corrections */
};

static gr_adamw *new_adam(gr_context *ctx, const char *where, gr_adamw_config c, bool decoupled) {
    static const gr_adamw nothing = {.ctx = NULL};
    gr_adamw *adamw = gr_alloc_handle(ctx, sizeof *adamw);
    if (!adamw) return (gr_adamw *)&nothing;
    if (c.beta1 == 0) c.beta1 = 0.9;
    if (c.beta2 == 0) c.beta2 = 0.999;
    if (c.eps == 0) c.eps = 1e-8;
    if (!(c.beta1 > 0 && c.beta1 < 1 && c.beta2 > 0 && c.beta2 < 1))
        gr_fail(ctx, where, "beta1 %g, beta2 %g; both must be in (0, 1)", c.beta1, c.beta2);
    check_setting(ctx, where, "eps", c.eps);
    check_setting(ctx, where, "weight_decay", c.weight_decay);
    *adamw = (gr_adamw){.ctx = ctx, .config = c, .decoupled = decoupled};
    adamw->m = new_state(ctx, where);
    adamw->v = new_state(ctx, where);
    adamw->count = adamw->v ? gr_parameter_count(ctx) : -1;
    return adamw;
}

gr_adamw *gr_adamw_new(gr_context *ctx, gr_adamw_config config) { return new_adam(ctx, "adamw", config, true); }
gr_adamw *gr_adam_new(gr_context *ctx, gr_adamw_config config) { return new_adam(ctx, "adam", config, false); }

gr_adam_state gr_adamw_state(gr_adamw *adamw) {
    if (!adamw || !adamw->ctx) return (gr_adam_state){"adamw", NULL, NULL, -1, NULL};
    return (gr_adam_state){adamw->decoupled ? "adamw" : "adam", adamw->m, adamw->v, adamw->count, &adamw->step};
}

/* x^n by squaring: products alone, so the same on every machine, and it needs nothing but n when a run is resumed. */
static double power(double x, int64_t n) {
    double y = 1;
    for (; n > 0; n /= 2) {
        if (n % 2) y *= x;
        x *= x;
    }
    return y;
}

typedef struct adam_job {
    const gr_kernels *kernels;
    gr_tensor *w, *m, *v;
    gr_adam_step step;
} adam_job;

static void adam_range(size_t begin, size_t end, int thread, void *arg) {
    (void)thread;
    const adam_job *j = arg;
    j->kernels->adam(end - begin, j->w->data + begin, j->w->grad->data + begin, j->m->data + begin, j->v->data + begin,
                     &j->step);
}

bool gr_adamw_step(gr_adamw *adamw, double lr) {
    if (!adamw || !ready(adamw->ctx, adamw->decoupled ? "adamw" : "adam", adamw->count, lr)) return false;
    const gr_adamw_config c = adamw->config;
    const int64_t t = ++adamw->step;
    gr_adam_step step = {.beta1 = c.beta1, .beta2 = c.beta2, .eps = c.eps};
    step.rate = lr / (1 - power(c.beta1, t));
    step.root = 1 / sqrt(1 - power(c.beta2, t));
    for (int i = 0; i < adamw->count; i++) {
        gr_tensor *w = adamw->ctx->parameters[i];
        const double decay = decays(w, c.decay_all) ? c.weight_decay : 0;
        step.keep = adamw->decoupled ? 1 - lr * decay : 1;
        step.pull = adamw->decoupled ? 0 : decay;
        adam_job job = {adamw->ctx->kernels, w, adamw->m[i], adamw->v[i], step};
        gr_parallel_for((size_t)gr_numel(w), ADAM_COST, adam_range, &job);
    }
    charge(adamw->ctx, adamw->decoupled ? "adamw" : "adam", ADAM_COST, 7);
    return true;
}

/* -- The norm of all gradients ------------------------------------------------------------------------------------- */

typedef struct squares_job {
    gr_context *ctx;
    gr_real scale;
    double *sum; /* one a parameter */
} squares_job;

static void squares_range(size_t begin, size_t end, int thread, void *arg) {
    (void)thread;
    const squares_job *j = arg;
    for (size_t i = begin; i < end; i++) {
        const gr_tensor *g = j->ctx->parameters[i]->grad;
        j->sum[i] = (double)j->ctx->kernels->sum_squares((size_t)gr_numel(g), g->data, gr_origin, j->scale);
    }
}

/* sum (scale g)^2 over all gradients, added in the order of the parameters. */
static double sum_squares(squares_job job) {
    const int count = job.ctx->parameter_count;
    const int64_t cost = count > 0 ? gr_parameter_numel(job.ctx) / count : 0;
    gr_parallel_for((size_t)count, (size_t)cost, squares_range, &job);
    double total = 0;
    for (int i = 0; i < count; i++) total += job.sum[i];
    return total;
}

/* max |g| over all gradients; NaN, with an error, when one is not finite. */
static double largest_gradient(gr_context *ctx) {
    double largest = 0;
    for (int i = 0; i < ctx->parameter_count; i++) {
        const gr_tensor *w = ctx->parameters[i];
        const int64_t n = gr_numel(w);
        for (int64_t k = 0; k < n; k++) {
            const double size = fabs((double)w->grad->data[k]);
            if (!(size < INFINITY)) {
                gr_fail(ctx, "clip_grad_norm", "the gradient of %s is %g at element %lld", gr_show(w, "a parameter"),
                        (double)w->grad->data[k], (long long)k);
                return (double)NAN;
            }
            if (size > largest) largest = size;
        }
    }
    return largest;
}

static double gradient_norm(gr_context *ctx) {
    double *sum = gr_alloc_array(ctx, false, ctx->parameter_count, sizeof *sum);
    if (!sum) return (double)NAN;
    const double total = sum_squares((squares_job){ctx, 1, sum});
    /* A square below GR_REAL_MIN lost digits, at most GR_REAL_EPSILON GR_REAL_MIN: all of them together do not count
     * from here on. */
    const double trusted = GR_REAL_MIN * (double)gr_parameter_numel(ctx);
    if (total >= trusted && total < INFINITY) return sqrt(total);
    const double largest = largest_gradient(ctx);
    if (!gr_ok(ctx) || largest == 0) return largest;
    const gr_real scale = (gr_real)(1 / largest < GR_REAL_MAX ? 1 / largest : GR_REAL_MAX);
    const double norm = sqrt(sum_squares((squares_job){ctx, scale, sum})) / (double)scale;
    if (!(norm < INFINITY)) gr_fail(ctx, "clip_grad_norm", "the norm of the gradients is too large for a double");
    return gr_ok(ctx) ? norm : (double)NAN;
}

typedef struct scale_job {
    gr_real *g;
    double factor;
} scale_job;

static void scale_range(size_t begin, size_t end, int thread, void *arg) {
    (void)thread;
    const scale_job *j = arg;
    for (size_t i = begin; i < end; i++) j->g[i] = (gr_real)((double)j->g[i] * j->factor);
}

double gr_clip_grad_norm(gr_context *ctx, double max_norm) {
    if (!gr_ok(ctx)) return (double)NAN;
    if (!(max_norm > 0)) gr_fail(ctx, "clip_grad_norm", "max_norm is %g; it must be above 0", max_norm);
    const double norm = gr_ok(ctx) ? gradient_norm(ctx) : (double)NAN;
    if (!(norm > max_norm)) return norm;
    for (int i = 0; i < ctx->parameter_count; i++) {
        scale_job job = {ctx->parameters[i]->grad->data, max_norm / norm};
        gr_parallel_for((size_t)gr_numel(ctx->parameters[i]), SCALE_COST, scale_range, &job);
    }
    charge(ctx, "clip_grad_norm", SCALE_COST, 3);
    return norm;
}
