/* Reverse-mode differentiation. Operations append to a tape while they compute; gr_backward walks it from the end to
 * the start and adds dL/dx to the gradient of every tensor that asked for one. */
#ifndef GR_AUTOGRAD_H
#define GR_AUTOGRAD_H

#include "../tensor/tensor.h"

/* A parameter: a copy of x that lives as long as the context, has a gradient (zeros) and is seen by the optimisers. */
gr_tensor *gr_parameter(gr_tensor *x, const char *name);

/* Marks x as a variable: ops that use it from now on accumulate a gradient for it. Returns x. An x that an operation
 * made from variables is refused: see gr_retain_grad. */
gr_tensor *gr_requires_grad(gr_tensor *x);

/* Keeps the gradient of an intermediate x until gr_context_reset; gr_backward would recycle it. Returns x. */
gr_tensor *gr_retain_grad(gr_tensor *x);

/* The gradient of a parameter, a variable or a retained intermediate, of the shape of x; an error for any other. */
gr_tensor *gr_grad(gr_tensor *x);

/* A constant with the values of x (a view, no copy): no gradient flows through it. */
gr_tensor *gr_detach(gr_tensor *x);

/* Adds dL/dx to every gradient, for a loss of one element. False after an error; then no gradient has changed, unless
 * memory ran out half-way: then those of the parameters and variables that it depends on are zero, those of the
 * intermediates are gone, and gr_backward and the optimisers refuse until gr_zero_grad. */
bool gr_backward(gr_tensor *loss);

/* The same for y of any shape: adds the gradient of sum(seed * y); seed has the shape of y. */
bool gr_backward_from(gr_tensor *y, gr_tensor *seed);

/* Sets the gradient of every parameter to zero. */
void gr_zero_grad(gr_context *ctx);

/* Between the two nothing is recorded on the tape. They nest. */
void gr_no_grad_begin(gr_context *ctx);
void gr_no_grad_end(gr_context *ctx);

/* The parameters in the order of their making. */
int gr_parameter_count(const gr_context *ctx);
gr_tensor *gr_parameter_at(gr_context *ctx, int index);
int64_t gr_parameter_numel(const gr_context *ctx); /* elements of all of them */

/* What gr_gradcheck found: the worst place, and how it differs. */
typedef struct gr_gradcheck_result {
    bool ok;
    int input;              /* the operand ... */
    int64_t index;          /* ... and the row-major index in it at which the two differ most */
    double analytic;        /* dL/dx by gr_backward */
    double numeric;         /* dL/dx by difference quotients */
    double error;           /* |analytic - numeric| / max(1, largest |numeric| of this operand) */
    const char *input_name; /* "" when it has none */
} gr_gradcheck_result;

/* The function to check: a tensor of any shape from its inputs. It must be a pure function of their values. */
typedef gr_tensor *gr_function(gr_context *ctx, gr_tensor **inputs, void *arg);

typedef struct gr_gradcheck_config {
    double tolerance; /* largest error allowed; 0: 1e-8 in double, 1e-3 in float */
    double step;      /* step of the difference quotient; 0: the best for the precision */
    uint64_t seed;    /* of the random cotangent */
} gr_gradcheck_config;

/* Compares the gradients of L = sum(r * f(inputs)), r a random cotangent, with difference quotients of fourth order in
 * every element of every input. Gradients are pre-filled, so that "=" in place of "+=" shows. The inputs are copied;
 * the current step goes on as if nothing had happened: what f uses beside them is held constant. After an error, also
 * one that f made, ok is false and error NaN: see gr_error_message. An input for which wanted[i] is false is held
 * constant; wanted NULL: all are checked. */
gr_gradcheck_result gr_gradcheck(gr_context *ctx, gr_function *f, void *arg, int count, gr_tensor **inputs,
                                 const bool *wanted, gr_gradcheck_config config);

#endif
