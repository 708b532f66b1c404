/* The walk back along the tape. Entries are in the order of their making, so every entry comes after those it depends
 * on: walked from the end, the gradient of an output is complete when its entry is reached. */
#include "tape.h"

/* Marks what y depends on. False if a part of it has been gone through before. */
static bool mark(gr_tensor *y) {
    if (y->node) y->node->reached = true;
    for (gr_node *n = y->node; n; n = n->previous) {
        if (!n->reached) continue;
        if (n->done) {
            gr_fail(y->ctx, "backward",
                    "%s depends on %s of %s, which backward has gone through before; compute it again", gr_show(y, "y"),
                    gr_show(n->out, "the output"), n->op->name);
            return false;
        }
        for (int i = 0; i < n->count; i++)
            if (gr_wants(n, i) && n->in[i]->node) n->in[i]->node->reached = true;
    }
    return true;
}

static void unmark(gr_tensor *y) {
    for (gr_node *n = y->node; n; n = n->previous) n->reached = false;
}

/* dy += seed */
static void add_seed(gr_tensor *y, gr_tensor *seed) {
    gr_tensor *dy = gr_gradient(y);
    if (!gr_is_inert(dy)) gr_run_map(GR_MAP_plus, 0, dy, 1, &seed);
}

/* The gradient of an intermediate has done its work when its entry has been gone through. */
static void recycle_gradient(gr_tensor *out) {
    if (out->retain_grad) return;
    gr_pool_give(out->grad);
    out->grad = NULL;
}

static void walk_back(gr_tensor *y) {
    for (gr_node *n = y->node; n && gr_ok(y->ctx); n = n->previous) {
        if (!n->reached) continue;
        n->done = true;
        if (!n->out->grad) continue; /* nothing has come down to it */
        n->op->backward(n);
        n->seconds += gr_charge(n->op, true, n->out, n->count, n->in);
        recycle_gradient(n->out);
    }
}

/* After an error half-way nothing that has been added is of use: the graph has been gone through, what lies between has
 * no gradient any more, those of its leaves are zero. */
static void spoil(gr_tensor *y) {
    for (gr_node *n = y->node; n; n = n->previous) {
        if (!n->reached) continue;
        n->done = true;
        n->out->grad = NULL;
        for (int i = 0; i < n->count; i++)
            if (gr_wants(n, i) && !n->in[i]->node) gr_clear(n->in[i]->grad);
    }
    y->ctx->gradients_torn = true;
}

static bool may_go_back(gr_tensor *y, gr_tensor *seed) {
    gr_context *ctx = y->ctx;
    if (seed->ctx != ctx)
        gr_fail(ctx, "backward", "the seed belongs to another context");
    else if (!gr_check_alive(y, "backward", "y") || !gr_check_alive(seed, "backward", "the seed"))
        return false;
    else if (!gr_shape_equal(y->shape, seed->shape))
        gr_fail(ctx, "backward", "%s needs a seed of its own shape, not %s", gr_show(y, "y"), gr_show(seed, "seed"));
    else if (ctx->gradients_torn)
        gr_fail(ctx, "backward", "one before it stopped half-way; gr_zero_grad first");
    else if (!y->requires_grad)
        gr_fail(ctx, "backward",
                "%s depends on no parameter or variable, or was computed between gr_no_grad_begin and _end",
                gr_show(y, "y"));
    return gr_ok(ctx);
}

bool gr_backward_from(gr_tensor *y, gr_tensor *seed) {
    if (!y || !seed) {
        gr_fail(y ? y->ctx : seed ? seed->ctx : NULL, "backward", "%s is NULL", y ? "seed" : "y");
        return false;
    }
    if (!gr_ok(y->ctx) || !may_go_back(y, seed)) return false;
    if (mark(y)) {
        add_seed(y, seed);
        walk_back(y);
        if (!gr_ok(y->ctx)) spoil(y);
    }
    unmark(y);
    return gr_ok(y->ctx);
}

bool gr_backward(gr_tensor *loss) {
    if (!loss || !gr_ok(loss->ctx) || !gr_check_alive(loss, "backward", "the loss")) return false;
    if (gr_numel(loss) != 1) {
        gr_fail(loss->ctx, "backward", "%s has more than one element: give gr_backward_from a seed",
                gr_show(loss, "loss"));
        return false;
    }
    return gr_backward_from(loss, gr_full(loss->ctx, loss->shape, 1));
}
