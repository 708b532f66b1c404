/* The reference table: the same formulas without vectors, and the matrix product in three loops. It is what the fast
 * tables are tested against, bit for bit. */
#define GR_SIMD
#include "table.h"

extern const gr_kernels gr_kernels_reference;
const gr_kernels gr_kernels_reference = {
    .name = "reference",
    .exact = true,
    .matmul = plain_matmul,
    .matmul_hiding = plain_matmul_hiding,
#include "entries.def"
};
