/* The differentiable operations. Each refuses shapes that do not fit, with an error that names operands and shapes.
 *
 * Broadcasting: shapes are aligned at their last axes; sizes must be equal or one of them 1 (as in numpy). An axis may
 * be negative and then counts from the end. B batch, T time, C width, V classes; (...) any leading axes. */
#ifndef GR_OPS_H
#define GR_OPS_H

#include "../tensor/mask.h"
#include "../tensor/tensor.h"

/* Elementwise with broadcasting. */
gr_tensor *gr_add(gr_tensor *a, gr_tensor *b);     /* a + b */
gr_tensor *gr_sub(gr_tensor *a, gr_tensor *b);     /* a - b */
gr_tensor *gr_mul(gr_tensor *a, gr_tensor *b);     /* a b */
gr_tensor *gr_div(gr_tensor *a, gr_tensor *b);     /* a / b */
gr_tensor *gr_minimum(gr_tensor *a, gr_tensor *b); /* the smaller; a tie is a's; NaN if either is */
gr_tensor *gr_maximum(gr_tensor *a, gr_tensor *b); /* the larger; a tie is a's; NaN if either is */

/* condition != 0 ? a : b; no gradient to condition. */
gr_tensor *gr_where(gr_tensor *condition, gr_tensor *a, gr_tensor *b);

/* mask != 0 ? scores : -inf; no gradient to mask. */
gr_tensor *gr_mask_scores(gr_tensor *scores, gr_tensor *mask);

/* Elementwise. */
gr_tensor *gr_neg(gr_tensor *x);                     /* -x */
gr_tensor *gr_scale(gr_tensor *x, double factor);    /* factor x */
gr_tensor *gr_add_scalar(gr_tensor *x, double term); /* x + term */
gr_tensor *gr_pow(gr_tensor *x, double exponent);    /* x^exponent; x < 0 needs a whole exponent, else NaN */
gr_tensor *gr_square(gr_tensor *x);                  /* x^2 */
gr_tensor *gr_sqrt(gr_tensor *x);                    /* x^(1/2) */
gr_tensor *gr_exp(gr_tensor *x);                     /* e^x */
gr_tensor *gr_log(gr_tensor *x);                     /* natural logarithm */
gr_tensor *gr_abs(gr_tensor *x);                     /* |x|; slope 0 at 0 */
gr_tensor *gr_relu(gr_tensor *x);                    /* max(x, 0); slope 0 at 0; NaN passes */
gr_tensor *gr_sigmoid(gr_tensor *x);                 /* 1 / (1 + e^-x) */
gr_tensor *gr_tanh(gr_tensor *x);                    /* (e^x - e^-x) / (e^x + e^-x) */
gr_tensor *gr_gelu(gr_tensor *x);     /* x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3): the tanh form of GPT-2 */
gr_tensor *gr_gelu_erf(gr_tensor *x); /* x Phi(x), Phi the normal distribution function: the exact form */
gr_tensor *gr_silu(gr_tensor *x);     /* x sigmoid(x) */

/* Reductions over a set of axes: gr_sum(x, GR_ALL), gr_mean(x, GR_AXES(0, 1)), gr_max(x, GR_KEEP(-1)). */
gr_tensor *gr_sum(gr_tensor *x, gr_axes axes);       /* of nothing: 0 */
gr_tensor *gr_mean(gr_tensor *x, gr_axes axes);      /* of nothing: an error */
gr_tensor *gr_max(gr_tensor *x, gr_axes axes);       /* gradient to the first maximum; of nothing: an error */
gr_tensor *gr_variance(gr_tensor *x, gr_axes axes);  /* sum (x - mean)^2 / n, in two passes; of nothing: an error */
gr_tensor *gr_logsumexp(gr_tensor *x, gr_axes axes); /* log sum e^x, without overflow; of nothing: -inf */
gr_tensor *gr_norm(gr_tensor *x, gr_axes axes);      /* sqrt(sum x^2), without overflow; gradient 0 where it is 0 */

/* Products. */

/* a b: (..., M, K), (..., K, N) -> (..., M, N); leading axes broadcast. A vector is a row on the left, a column on the
 * right, and the axis it lacked is dropped from the result. */
gr_tensor *gr_matmul(gr_tensor *a, gr_tensor *b);

/* x W^T + b: (..., in), (out, in), (out) -> (..., out); bias may be NULL. */
gr_tensor *gr_linear(gr_tensor *x, gr_tensor *weight, gr_tensor *bias);

/* The two products of attention. What meets a zero of the weights, or of the scores' gradient, is not read, in forward
 * and backward: there 0 times NaN or Inf is 0, and what a mask hides can do no harm. */

/* q k^T: (..., Tq, D), (..., Tk, D) -> (..., Tq, Tk) */
gr_tensor *gr_attention_scores(gr_tensor *q, gr_tensor *k);

/* sum_j w_ij v_j over w_ij != 0: (..., Tq, Tk), (..., Tk, D) -> (..., Tq, D) */
gr_tensor *gr_attention_output(gr_tensor *weights, gr_tensor *v);

/* softmax(scale q k^T where the mask shows) v in one pass, without the scores in memory: (..., Tq, D), (..., Tk, D),
 * (..., Tk, Dv) -> (..., Tq, Dv), leading axes equal. A query that sees nothing gets 0; what is hidden from it changes
 * no bit of its row, be it NaN. The output lies in memory as q does. */
typedef struct gr_attention_options {
    gr_mask mask;        /* {0}: all visible */
    double scale;        /* 0: 1 / sqrt(D) */
    double dropout;      /* of the weights, in [0, 1); needs rng */
    gr_rng *rng;         /* moves on by one when there is dropout */
    gr_tensor **weights; /* if not NULL gets the weights before dropout, (..., Tq, Tk): the textbook's way, in memory */
    gr_tensor **logsumexp; /* if not NULL gets log sum_j e^(score), (..., Tq), without gradient; not with weights */
} gr_attention_options;
gr_tensor *gr_attention(gr_tensor *q, gr_tensor *k, gr_tensor *v, gr_attention_options options);

/* Linear attention (Katharopoulos et al., 2020): y_i = sum_j (f(q_i) f(k_j)) v_j / sum_j f(q_i) f(k_j), f(x) = elu(x) +
 * 1, over all keys or, causal, over j <= i + Tk - Tq; 0 where no key is seen or the weights are 0. Time and memory grow
 * like Tq + Tk. (..., Tq, D), (..., Tk, D), (..., Tk, Dv) -> (..., Tq, Dv); leading axes equal. What causality hides
 * does no harm, even NaN. */
gr_tensor *gr_linear_attention(gr_tensor *q, gr_tensor *k, gr_tensor *v, bool causal);

/* Rotary positions (Su et al., 2021). A row of the table (count, size) holds cos(p t_i) and then sin(p t_i), i <
 * size/2, for the position p = first + row, t_i = base^(-2i/size), base 0 means 10000; computed in double, each from p
 * alone, good to p = 1e6. */
gr_tensor *gr_rotary_table(gr_context *ctx, int64_t first, int64_t count, int64_t size, double base);

/* Turns the pairs (a_i, b_i) of each row, a and b its two halves as in GPT-NeoX and LLaMA: (a cos - b sin, b cos + a
 * sin). x (..., T, D), table (T, D) without gradient. */
gr_tensor *gr_rotary(gr_tensor *x, gr_tensor *table);

/* Views: the same numbers seen under another shape, without a copy (reshape copies when the strides force it). */

/* The elements in row-major order under another shape; one size may be -1: what is left. */
gr_tensor *gr_reshape(gr_tensor *x, gr_shape shape);

/* Two axes swapped. */
gr_tensor *gr_transpose(gr_tensor *x, int axis0, int axis1);

/* Axis i of the result is axis order[i] of x: GR_AXES(2, 0, 1). */
gr_tensor *gr_permute(gr_tensor *x, gr_axes order);

/* Indices start, start + step, ... below stop; step >= 1. start and stop may count from the end; GR_END as stop: to the
 * end. */
#define GR_END INT64_MAX
gr_tensor *gr_slice(gr_tensor *x, int axis, int64_t start, int64_t stop, int64_t step);

/* Axes of size 1 repeated; new axes in front. */
gr_tensor *gr_expand(gr_tensor *x, gr_shape shape);

/* One index, its axis dropped: a slice and a reshape. */
gr_tensor *gr_select(gr_tensor *x, int axis, int64_t index);

/* Equal parts, each a slice, into out[0], ..., out[parts - 1]. */
void gr_split(gr_tensor *x, int axis, int parts, gr_tensor **out);

/* Joining and picking. */
gr_tensor *gr_concat(gr_tensor **x, int count, int axis);   /* along an axis that all have */
gr_tensor *gr_stack(gr_tensor **x, int count, int axis);    /* along a new axis; all of one shape */
gr_tensor *gr_gather_rows(gr_tensor *table, gr_tokens ids); /* (V, C), (B, T) -> (B, T, C): an embedding */

/* Softmax along the last axis. The row's maximum is subtracted first; a row with NaN stays NaN. */
gr_tensor *gr_softmax(gr_tensor *x);     /* e^x / sum e^x; a row of -inf gives 0 */
gr_tensor *gr_log_softmax(gr_tensor *x); /* x - logsumexp(x); a row of -inf gives NaN */

/* softmax(scale scores) over what the mask shows, mask != 0, and exactly 0 elsewhere; mask broadcasts, has no gradient,
 * and NULL shows all. */
gr_tensor *gr_masked_softmax(gr_tensor *scores, gr_tensor *mask, double scale);

/* Losses: a tensor of shape (). */
enum { GR_IGNORE = -100 }; /* PyTorch's ignore_index: the target of a row that does not count */

/* The mean of -log softmax(logits)[target] over targets that are not GR_IGNORE; none left: 0. logits (..., V), one
 * target a row. */
gr_tensor *gr_cross_entropy(gr_tensor *logits, gr_tokens targets);

/* mean (x - target)^2; shapes equal. */
gr_tensor *gr_mse(gr_tensor *x, gr_tensor *target);

/* Normalisation along the last axis, of size C. weight (C) and bias (C) may be NULL: 1 and 0. eps 0 means 1e-5. */

/* (x - mean) / sqrt(var + eps) w + b */
gr_tensor *gr_layernorm(gr_tensor *x, gr_tensor *weight, gr_tensor *bias, double eps);

/* x / sqrt(mean x^2 + eps) w */
gr_tensor *gr_rmsnorm(gr_tensor *x, gr_tensor *weight, double eps);

/* x / (1 - p) with probability 1 - p, else 0. Element i depends on the generator's value and i alone; rng moves on by
 * one. */
gr_tensor *gr_dropout(gr_tensor *x, double p, gr_rng *rng);

#endif
