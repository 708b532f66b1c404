/* Optimisers. An optimiser updates every parameter of its context from its gradient; after an error in the context it
 * does nothing, so a step with an error cannot touch a weight. A gradient that is not finite stops a step only if
 * gr_clip_grad_norm has looked before: with INFINITY it looks, and scales nothing. An optimiser keeps a state for each
 * parameter that exists when it is made: make the model first. A step that finds other parameters, or a learning rate
 * that is negative or not finite, is an error and changes nothing. */
#ifndef GR_OPTIM_H
#define GR_OPTIM_H

#include "../autograd/autograd.h"
#include "schedule.h"

/* Parameter groups by rank: tensors of two or more axes (matrices) decay; vectors and scalars do not. decay_all: all
 * do. */
typedef struct gr_sgd_config {
    double momentum;     /* 0: none */
    double weight_decay; /* 0: none */
    bool decay_all;
} gr_sgd_config;
typedef struct gr_sgd gr_sgd;
gr_sgd *gr_sgd_new(gr_context *ctx, gr_sgd_config config);
bool gr_sgd_step(gr_sgd *sgd, double lr); /* v = momentum v + g + decay w; w -= lr v */

/* Zero means the default: beta1 0.9, beta2 0.999, eps 1e-8; weight_decay 0 is none. */
typedef struct gr_adamw_config {
    double beta1, beta2, eps, weight_decay;
    bool decay_all;
} gr_adamw_config;
typedef struct gr_adamw gr_adamw;

/* AdamW: w *= 1 - lr decay; m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
 * w -= lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps). Loshchilov and Hutter, 2019. */
gr_adamw *gr_adamw_new(gr_context *ctx, gr_adamw_config config);
/* Adam: the decay is added to the gradient, g += decay w, as in Kingma and Ba, 2015. */
gr_adamw *gr_adam_new(gr_context *ctx, gr_adamw_config config);
bool gr_adamw_step(gr_adamw *adamw, double lr); /* false, and nothing changed, after an error in the context */

/* Scales all gradients by max_norm / norm if their common norm is above max_norm (INFINITY: only measures); returns the
 * norm before. Computed without overflow or underflow. A gradient that is not finite is an error that names its
 * parameter; then, as after an earlier error, no gradient changes and the result is NaN. */
double gr_clip_grad_norm(gr_context *ctx, double max_norm);

#endif
