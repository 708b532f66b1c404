/* Which tensors have gradients: parameters, variables, retained intermediates. */
#include "tape.h"

#include <stdlib.h>

static bool give_gradient(gr_tensor *x) {
    gr_tensor *grad = gr_new(x->ctx, "gradient", x->persistent, x->shape);
    if (gr_is_inert(grad)) return false;
    gr_clear(grad);
    x->grad = grad;
    x->requires_grad = true;
    return true;
}

static bool enlist(gr_context *ctx, gr_tensor *x) {
    if (ctx->parameter_count == ctx->parameter_room) {
        int room = ctx->parameter_room ? 2 * ctx->parameter_room : 64;
        gr_tensor **list = realloc(ctx->parameters, (size_t)room * sizeof *list);
        if (!list) {
            gr_fail(ctx, "out of memory", "a list of %d parameters could not be had", room);
            return false;
        }
        ctx->parameters = list;
        ctx->parameter_room = room;
    }
    ctx->parameters[ctx->parameter_count++] = x;
    return true;
}

gr_tensor *gr_parameter(gr_tensor *x, const char *name) {
    gr_tensor *w = gr_keep(x);
    if (gr_is_inert(w)) return w;
    w = gr_named(w, name);
    bool made = !gr_is_inert(w) && give_gradient(w) && enlist(w->ctx, w);
    return made ? w : gr_inert(w->ctx);
}

gr_tensor *gr_requires_grad(gr_tensor *x) {
    if (!x) return gr_inert(NULL);
    if (!gr_ok(x->ctx) || !gr_check_alive(x, "requires_grad", "x")) return gr_inert(x->ctx);
    if (x->node) {
        gr_fail(x->ctx, "requires_grad", "%s was made by %s; gr_retain_grad keeps the gradient of an intermediate",
                gr_show(x, "x"), x->node->op->name);
        return gr_inert(x->ctx);
    }
    return x->requires_grad || give_gradient(x) ? x : gr_inert(x->ctx);
}

gr_tensor *gr_retain_grad(gr_tensor *x) {
    if (!x) return gr_inert(NULL);
    if (!gr_check_alive(x, "retain_grad", "x")) return gr_inert(x->ctx);
    x->retain_grad = true;
    return x;
}

gr_tensor *gr_grad(gr_tensor *x) {
    if (!x) return gr_inert(NULL);
    if (!gr_ok(x->ctx) || !gr_check_alive(x, "grad", "x")) return gr_inert(x->ctx);
    if (x->grad) return x->grad;
    gr_fail(x->ctx, "grad", "%s has no gradient: %s", gr_show(x, "x"),
            !x->requires_grad
                ? "it depends on no parameter or variable, or was computed between gr_no_grad_begin and _end"
            : !x->retain_grad ? "that of an intermediate is kept only by gr_retain_grad"
                              : "gr_backward has not come to it");
    return gr_inert(x->ctx);
}

gr_tensor *gr_detach(gr_tensor *x) {
    if (!x) return gr_inert(NULL);
    if (!gr_ok(x->ctx) || !gr_check_alive(x, "detach", "x")) return gr_inert(x->ctx);
    return gr_view(x, x->shape, x->stride, 0);
}

void gr_zero_grad(gr_context *ctx) {
    if (!gr_ok(ctx)) return;
    for (int i = 0; i < ctx->parameter_count; i++) gr_clear(ctx->parameters[i]->grad);
    ctx->gradients_torn = false;
    gr_profile_event(ctx, "zero_grad", "update", 0, (double)gr_parameter_numel(ctx) * (double)sizeof(gr_real));
}

void gr_no_grad_begin(gr_context *ctx) {
    if (ctx && ctx->kernels) ctx->no_grad++;
}

void gr_no_grad_end(gr_context *ctx) {
    if (!ctx || !ctx->kernels) return;
    if (ctx->no_grad == 0)
        gr_fail(ctx, "no_grad_end", "there was no gr_no_grad_begin before it");
    else
        ctx->no_grad--;
}

int gr_parameter_count(const gr_context *ctx) { return ctx ? ctx->parameter_count : 0; }

gr_tensor *gr_parameter_at(gr_context *ctx, int index) {
    if (!ctx || index < 0 || index >= ctx->parameter_count) {
        gr_fail(ctx, "parameter_at", "index %d; there are %d parameters", index, gr_parameter_count(ctx));
        return gr_inert(ctx);
    }
    return ctx->parameters[index];
}

int64_t gr_parameter_numel(const gr_context *ctx) {
    int64_t n = 0;
    for (int i = 0; i < gr_parameter_count(ctx); i++) n += gr_shape_numel(ctx->parameters[i]->shape);
    return n;
}
