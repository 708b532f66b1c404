/* Mutants. The library has no hook for them: after a graph has been built, the op of each node in question is replaced
 * by one whose backward runs the true one and then alters what it has added. */
#include "cases.h"

#include <string.h>

/* The operand's gradient, if it can be told apart from that of the others: of x x the two terms cannot. */
static gr_tensor *target(const gr_node *n, int place) {
    if (!gr_wants(n, place)) return NULL;
    for (int i = 0; i < n->count; i++)
        if (i != place && n->in[i] == n->in[place]) return NULL;
    return n->in[place];
}

static gr_real altered(fault kind, gr_real before, gr_real added, bool last) {
    switch (kind) {
    case SCALED:
        return before + GR_R(1.01) * added;
    case FLIPPED:
        return before - added;
    case ZEROED:
        return before;
    case TAILLESS:
        return last ? before : before + added;
    case OVERWRITING:
        return added;
    default:
        return before + added;
    }
}

static void faulty_backward(gr_node *n) {
    const mutant *m = (const mutant *)n->op;
    gr_tensor *x = target(n, m->operand);
    size_t count = x ? (size_t)gr_numel(x) : 0;
    gr_real *before = gr_alloc(n->out->ctx, false, count * sizeof *before);
    if (!before) return;
    if (x && x->grad)
        memcpy(before, x->grad->data, count * sizeof *before);
    else
        memset(before, 0, count * sizeof *before);

    n->op = m->original;
    n->op->backward(n);
    n->op = &m->op;

    for (size_t k = 0; x && x->grad && k < count; k++)
        x->grad->data[k] = altered(m->fault, before[k], x->grad->data[k] - before[k], k + 1 == count);
}

mutant mutant_of(const gr_op *op, int place, fault kind) {
    mutant m = {.op = *op, .original = op, .operand = place, .fault = kind};
    m.op.backward = faulty_backward;
    return m;
}

void infect(const mutant *m, gr_node *last, const gr_node *end) {
    for (gr_node *n = last; n != end; n = n->previous)
        if (n->op == m->original) n->op = &m->op;
}

const char *fault_name(fault kind) {
    static const char *const names[FAULTS] = {"no fault", "x 1.01", "sign flipped", "zero", "dropped tail", "= for +="};
    return names[kind];
}
