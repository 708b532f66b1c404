/* The tape: what an op is, what it leaves behind, and what its backward may call. */
#ifndef GR_TAPE_H
#define GR_TAPE_H

#include "../tensor/internal.h"
#include "../tensor/iterate.h"
#include "../tensor/product.h"
#include "../tensor/reduce.h"
#include "autograd.h"
#include "ops.h"

typedef struct gr_node gr_node;

enum { GR_ANY_NUMBER = -1, GR_LABELS = 3 };

typedef struct gr_op {
    const char *name;
    int operands;                 /* or GR_ANY_NUMBER */
    const char *label[GR_LABELS]; /* of the operands, for messages */
    void (*backward)(gr_node *n); /* adds to the gradients of the operands */
    unsigned constant, optional;  /* bit i: operand i has no gradient; may be NULL */
    bool view;                    /* computes nothing: the same numbers, seen otherwise */
    const void *rule;             /* what the op's family needs to know */
    double (*flops)(const gr_tensor *out, gr_tensor *const *in); /* of forward; NULL: one an element */
} gr_op;

/* One entry of the tape: out = op(in[0], ..., in[count - 1]). */
struct gr_node {
    const gr_op *op;
    gr_tensor *out, **in;
    int count;
    bool *wanted;      /* of each operand: is its gradient wanted? */
    const void *saved; /* what forward left for backward */
    bool reached, done;
    int number;     /* in the last gr_explain */
    double seconds; /* of forward and backward, while a profile is kept */
    gr_node *previous;
};

/* First line of every op: NULL when all operands are there, in one context without an error; else the inert tensor to
 * return. */
gr_tensor *gr_check(const gr_op *op, int count, gr_tensor *const *in);

/* The same for q (..., Tq, D), k (..., Tk, D), v (..., Tk, Dv), which must fit. */
gr_tensor *gr_check_attention(const gr_op *op, gr_tensor *const in[3]);

/* Last line of every op: appends the entry, if a gradient will be wanted, and returns out. saved is copied. */
gr_tensor *gr_record(const gr_op *op, gr_tensor *out, int count, gr_tensor *const *in, const void *saved,
                     size_t saved_size);

/* Keeps an error as "add: a (2, 3), b (4,): shapes do not broadcast", the reason given, and returns the inert tensor.
 */
gr_tensor *gr_refuse(const gr_op *op, int count, gr_tensor *const *in, const char *format, ...) GR_PRINTF(4, 5);

/* Charges the time since the last event to op, forward or backward, if a profile is kept, and returns it in seconds. */
double gr_charge(const gr_op *op, bool backward, const gr_tensor *out, int count, gr_tensor *const *in);

/* What forward costs: FLOPs, and bytes of result and operands. */
typedef struct gr_cost {
    double flops, bytes;
} gr_cost;
gr_cost gr_cost_of(const gr_op *op, const gr_tensor *out, int count, gr_tensor *const *in);

/* In a backward: is the gradient of operand i wanted? Decided when the op was recorded. */
bool gr_wants(const gr_node *n, int i);

/* The gradient of x, to be added to; a new one is zero. */
gr_tensor *gr_gradient(gr_tensor *x);

/* The same for operand i, in a backward; the inert tensor if it is not wanted. */
gr_tensor *gr_wanted_gradient(gr_node *n, int i);

/* The same without the zeros: when *fresh comes back true, write instead of add. */
gr_tensor *gr_gradient_fresh(gr_tensor *x, bool *fresh);

/* The same where it will end: of a view, the part of the whole tensor's gradient that it sees, so that nothing is
 * copied on the way back. It may have any strides. fresh NULL: a new one is zero. */
gr_tensor *gr_gradient_in_place(gr_tensor *x, bool *fresh);

/* Do the gradients of a and b, in place, share no element, as far as the ops tell that made them? */
bool gr_have_gradients_apart(gr_tensor *a, gr_tensor *b);

/* Adds map(operands) to the gradient of operand i, summed over the axes along which it was broadcast. The map is one of
 * those that add; every operand has a shape that broadcasts to that of the node's output. */
void gr_add_gradient(gr_node *n, int i, gr_map_name map, double t, int count, gr_tensor *const *operands);

#endif
