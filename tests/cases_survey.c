/* What all cases of an op show together: is every operand reached, does every gradient hold, is every mutant caught. */
#include "cases.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Lines beyond the room there is are left out. */
static void complain(survey *s, const char *format, ...) GR_PRINTF(2, 3);
static void complain(survey *s, const char *format, ...) {
    size_t used = strlen(s->complaint);
    va_list args;
    va_start(args, format);
    vsnprintf(s->complaint + used, sizeof s->complaint - used, format, args);
    va_end(args);
}

static int operands_of(const gr_op *op) { return op->operands == GR_ANY_NUMBER ? MOST_OPERANDS : op->operands; }

static const char *label_of(const gr_op *op, int i) {
    static const char *const of_many[MOST_OPERANDS] = {"first", "middle", "last"};
    return op->operands == GR_ANY_NUMBER ? of_many[i] : op->label[i];
}

static bool is_differentiable(const gr_op *op, int i) { return !(op->constant >> i & 1); }

static void note(const gradient_case *c, gr_context *ctx, const gr_gradcheck_result *r, survey *s) {
    s->worst = r->error > s->worst ? r->error : s->worst;
    if (!gr_ok(ctx))
        complain(s, "%s, %s: %s\n", c->op->name, c->name, gr_error_message(ctx));
    else if (!r->ok)
        complain(s, "%s, %s: dL/dx of input %d at %lld is %.9g by backward, %.9g by differences\n", c->op->name,
                 c->name, r->input, (long long)r->index, r->analytic, r->numeric);
    gr_error_clear(ctx); /* the step has ended: what was made after the error is gone */
}

void survey_gradients(const gr_op *op, survey *s) {
    gr_context *ctx = gr_context_new();
    unsigned reached = 0, here;
    const gradient_case *c;
    for (int i = 0; (c = case_at(i)); i++) {
        if (c->op != op) continue;
        gr_gradcheck_result r = check_case(ctx, c, NULL, &here);
        note(c, ctx, &r, s);
        if (!here) complain(s, "%s, %s: the op is not on the tape\n", op->name, c->name);
        reached |= here;
        s->cases++;
    }
    if (!s->cases) complain(s, "%s has no case\n", op->name);
    for (int i = 0; i < operands_of(op); i++) {
        if (!is_differentiable(op, i)) continue;
        s->operands++;
        if (reached >> i & 1) continue;
        s->unreached |= 1u << i;
        complain(s, "no case of %s reaches its operand %s\n", op->name, label_of(op, i));
    }
    gr_context_free(ctx);
}

static bool is_caught(gr_context *ctx, const mutant *m) {
    const gradient_case *c;
    for (int i = 0; (c = case_at(i)); i++)
        if (c->op == m->original && !check_case(ctx, c, m, NULL).ok && gr_ok(ctx)) return true;
    return false;
}

void survey_mutants(const gr_op *op, survey *s) {
    gr_context *ctx = gr_context_new();
    for (int i = 0; i < operands_of(op); i++)
        for (fault kind = SOUND + 1; is_differentiable(op, i) && kind < FAULTS; kind++) {
            mutant m = mutant_of(op, i, kind);
            bool caught = is_caught(ctx, &m);
            s->made++;
            s->caught += caught;
            if (!caught)
                complain(s, "a mutant survives: backward of %s with %s in the gradient of %s\n", op->name,
                         fault_name(kind), label_of(op, i));
        }
    gr_context_free(ctx);
}
