#include "tape.h"

#include <stdarg.h>
#include <string.h>

static const char *label_of(const gr_op *op, int i) {
    bool named = op->operands != GR_ANY_NUMBER && i < GR_LABELS && op->label[i];
    return named ? op->label[i] : "tensor";
}

/* "b (operand 1)", or "tensor 1" of any number. */
enum { PLACE_TEXT = 48 };
typedef struct place {
    char text[PLACE_TEXT];
} place;

static place place_of(const gr_op *op, int i) {
    place p;
    snprintf(p.text, sizeof p.text, op->operands == GR_ANY_NUMBER ? "%s %d" : "%s (operand %d)", label_of(op, i), i);
    return p;
}

/* The context of the operands. What was made of nothing but NULL has none: another operand's tells of it. */
static gr_context *context_of(int count, gr_tensor *const *in) {
    gr_context *ctx = NULL;
    for (int i = 0; i < count; i++)
        if (in[i] && (!ctx || !ctx->kernels)) ctx = in[i]->ctx;
    return ctx;
}

gr_tensor *gr_check(const gr_op *op, int count, gr_tensor *const *in) {
    gr_context *ctx = context_of(count, in);
    if (!gr_ok(ctx)) return gr_inert(ctx);
    for (int i = 0; i < count; i++) {
        bool optional = i < GR_LABELS && op->optional >> i & 1;
        if (!in[i] && !optional)
            gr_fail(ctx, op->name, "%s is NULL", place_of(op, i).text);
        else if (in[i] && !in[i]->ctx->kernels)
            gr_fail(ctx, op->name, "%s was made by an operation on NULL", place_of(op, i).text);
        else if (in[i] && in[i]->ctx != ctx)
            gr_fail(ctx, op->name, "%s belongs to another context than %s", gr_show(in[i], label_of(op, i)),
                    place_of(op, 0).text);
        else if (in[i] && gr_is_inert(in[i])) /* asked here: to name a place takes longer than a small op */
            gr_check_alive(in[i], op->name, place_of(op, i).text);
    }
    return gr_ok(ctx) ? NULL : gr_inert(ctx);
}

gr_tensor *gr_refuse(const gr_op *op, int count, gr_tensor *const *in, const char *format, ...) {
    gr_context *ctx = in[0]->ctx;
    char why[GR_SHOW_TEXT], shapes[2 * GR_SHOW_TEXT] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    size_t at = 0;
    for (int i = 0; i < count; i++)
        if (in[i] && at < sizeof shapes)
            at += (size_t)snprintf(shapes + at, sizeof shapes - at, "%s%s", at ? ", " : "",
                                   gr_show(in[i], label_of(op, i)));
    gr_fail(ctx, op->name, "%s: %s", shapes, why);
    return gr_inert(ctx);
}

static bool differentiable(const gr_op *op, int i, const gr_tensor *x) {
    bool constant = i < GR_LABELS && op->constant >> i & 1;
    return x && x->requires_grad && !constant;
}

gr_tensor *gr_record(const gr_op *op, gr_tensor *out, int count, gr_tensor *const *in, const void *saved,
                     size_t saved_size) {
    gr_context *ctx = out->ctx;
    const double seconds = gr_charge(op, false, out, count, in);
    bool wanted = false;
    for (int i = 0; i < count; i++) wanted = wanted || differentiable(op, i, in[i]);
    if (!wanted || ctx->no_grad > 0 || gr_is_inert(out) || !gr_ok(ctx)) return gr_ok(ctx) ? out : gr_inert(ctx);

    size_t list = (size_t)count * sizeof *in;
    gr_node *n = gr_alloc(ctx, false, sizeof *n + list + (size_t)count * sizeof *n->wanted);
    void *copy = saved_size ? gr_alloc(ctx, false, saved_size) : NULL;
    if (!gr_ok(ctx)) return gr_inert(ctx);
    *n = (gr_node){.op = op,
                   .out = out,
                   .in = (gr_tensor **)(n + 1),
                   .count = count,
                   .saved = copy,
                   .seconds = seconds,
                   .previous = ctx->tape};
    memcpy(n->in, in, list);
    n->wanted = (bool *)(n->in + count);
    for (int i = 0; i < count; i++) n->wanted[i] = differentiable(op, i, in[i]);
    if (copy) memcpy(copy, saved, saved_size);
    out->node = ctx->tape = n;
    out->requires_grad = true;
    return out;
}

gr_cost gr_cost_of(const gr_op *op, const gr_tensor *out, int count, gr_tensor *const *in) {
    if (op->view) return (gr_cost){0, 0}; /* a reshape that copies is counted as none, too */
    double elements = (double)gr_shape_numel(out->shape), flops = op->flops ? op->flops(out, in) : elements;
    for (int i = 0; i < count; i++)
        if (in[i]) elements += (double)gr_shape_numel(in[i]->shape);
    return (gr_cost){flops, elements * (double)sizeof(gr_real)};
}

double gr_charge(const gr_op *op, bool backward, const gr_tensor *out, int count, gr_tensor *const *in) {
    if (!out->ctx->profile) return 0;
    const gr_cost cost = gr_cost_of(op, out, count, in);
    int wanted = 0; /* a product's gradients each cost as much as the product */
    for (int i = 0; i < count && i < 2; i++) wanted += differentiable(op, i, in[i]);
    return gr_profile_event(out->ctx, op->name, backward ? "backward" : "forward",
                            backward ? cost.flops * wanted : cost.flops, backward ? 2 * cost.bytes : cost.bytes);
}

bool gr_wants(const gr_node *n, int i) { return i < n->count && n->wanted[i]; }

gr_tensor *gr_gradient_fresh(gr_tensor *x, bool *fresh) {
    *fresh = !x->grad;
    if (*fresh) {
        gr_tensor *grad = gr_pool_take(x->ctx, x->shape);
        if (gr_is_inert(grad)) return grad;
        x->grad = grad;
    }
    return x->grad;
}

gr_tensor *gr_gradient(gr_tensor *x) {
    bool fresh;
    gr_tensor *grad = gr_gradient_fresh(x, &fresh);
    if (fresh && !gr_is_inert(grad)) gr_clear(grad);
    return grad;
}

gr_tensor *gr_wanted_gradient(gr_node *n, int i) {
    return gr_wants(n, i) ? gr_gradient(n->in[i]) : gr_inert(n->out->ctx);
}

void gr_add_gradient(gr_node *n, int i, gr_map_name map, double t, int count, gr_tensor *const *operands) {
    if (!gr_wants(n, i)) return;
    gr_context *ctx = n->out->ctx;
    const bool whole = gr_shape_equal(n->in[i]->shape, n->out->shape);
    gr_tensor *dx = whole ? gr_gradient_in_place(n->in[i], NULL) : gr_gradient(n->in[i]);
    if (gr_is_inert(dx)) return;
    if (whole) {
        gr_run_map(map, t, dx, count, operands);
        return;
    }
    if (map == GR_MAP_plus) { /* the terms are at hand: no need to write them down first */
        gr_sum_to(dx, operands[0], true);
        return;
    }
    gr_tensor *terms = gr_pool_take(ctx, n->out->shape);
    if (gr_is_inert(terms)) return;
    gr_clear(terms);
    gr_run_map(map, t, terms, count, operands);
    gr_sum_to(dx, terms, true);
    gr_pool_give(terms);
}
