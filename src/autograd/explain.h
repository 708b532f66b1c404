/* The tape made visible. */
#ifndef GR_EXPLAIN_H
#define GR_EXPLAIN_H

#include "../tensor/tensor.h"

/* Prints what loss was made of, in the order of the tape. First the leaves (parameters, variables, constants), then a
 * row per op: its number, the result's name, the op, its operands by name or number with their shapes, the result's
 * shape, FLOPs and bytes as in gr_profile_print, the norm of the gradient where one is kept (leaves; intermediates
 * after gr_retain_grad), and the milliseconds of forward and backward while a profile is kept. Changes nothing. */
void gr_explain(gr_tensor *loss, FILE *out);

/* Writes the same graph as mermaid text, which GitHub draws: a round box per leaf, a square one per op, with names and
 * shapes, and an arrow per operand. */
void gr_graph_mermaid(gr_tensor *y, FILE *out);

#endif
