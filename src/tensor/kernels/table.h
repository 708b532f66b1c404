/* The members of the table that every instruction set shares. The including file has defined GR_SIMD and GR_FMA. */
#ifndef GR_TABLE_H
#define GR_TABLE_H

#include "kernels.h"
#include "math.h"
#include "maps.h"
#include "tree.h"
#include "rows.h"
#include "plain.h"

/* clang-format off */
#define GR_MAP_ENTRY(name) [GR_MAP_##name] = name##_map,
#define GR_ROW_ENTRIES                                                                                                 \
    .map = {GR_MAPS(GR_MAP_ENTRY) GR_GRADIENT_MAPS(GR_MAP_ENTRY)},                                                     \
    .sum = row_sum, .sum_squares = row_sum_squares, .sum_exp = row_sum_exp, .dot = row_dot, .max = row_max,            \
    .logsumexp = row_logsumexp, .sum_rows = sum_rows, .softmax = softmax, .softmax_dx = softmax_dx,                    \
    .log_softmax = log_softmax, .log_softmax_dx = log_softmax_dx, .cross_entropy_dx = cross_entropy_dx,                \
    .normalize = normalize, .normalize_dx = normalize_dx, .normalize_dw = normalize_dw, .adam = adam, .sgd = sgd
/* clang-format on */

#endif
