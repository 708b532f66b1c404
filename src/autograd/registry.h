/* The list of all differentiable ops. A new op is its own file or a part of one, and one name here. */
#ifndef GR_REGISTRY_H
#define GR_REGISTRY_H

#include "tape.h"

/* clang-format off */
#define GR_OPS(X)                                                                                                      \
    X(add) X(sub) X(mul) X(div) X(minimum) X(maximum) X(where) X(mask_scores)                                          \
    X(neg) X(scale) X(add_scalar) X(pow) X(square) X(sqrt) X(exp) X(log) X(abs)                                        \
    X(relu) X(sigmoid) X(tanh) X(gelu) X(gelu_erf) X(silu)                                                             \
    X(sum) X(mean) X(max) X(variance) X(logsumexp) X(norm)                                                             \
    X(matmul) X(linear) X(attention_scores) X(attention_output) X(attention) X(linear_attention) X(rotary)             \
    X(reshape) X(transpose) X(permute) X(slice) X(expand)                                                              \
    X(concat) X(gather_rows)                                                                                           \
    X(softmax) X(log_softmax) X(masked_softmax) X(cross_entropy) X(mse) X(layernorm) X(rmsnorm) X(dropout)
/* clang-format on */

#define GR_DECLARE_OP(name) extern const gr_op gr_op_##name;
GR_OPS(GR_DECLARE_OP)
#undef GR_DECLARE_OP

extern const gr_op *const gr_ops[];
extern const int gr_op_count;

#endif
