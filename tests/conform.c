/* clang-format off */
/* conform OP in.safetensors out.safetensors [key=value ...]: one op or module, forward and backward, on tensors from a
 * file, so that any other framework can be held against this one.
 *
 *   in    x0, x1, ...     operands, in the order of the op's function (F16, BF16, F32 or F64); of a module: x, then its
 *                         weights
 *         grad            gradient of the output
 *         mask            0: hidden, else visible (U8); broadcasts
 *         ids, targets    (I32)
 *   out   y               in the program's precision, as are
 *         dx0, dx1, ...   the gradients of the operands
 *         weights         of attention that has them
 *
 * strided=1 sets each operand, mask and grad transposed and sliced inside a larger tensor with NaN around it; no bit of
 * the results may change, and the gradient around an operand must be 0. Without arguments: the ops, with an example
 * each. Status 0: done; 1: the file or the op's shapes are wrong, or it cannot be written; 2: wrong usage. */
/* clang-format on */
#include "conform.h"

int main(int argc, char **argv) { return conform(argc - 1, argv + 1); }
