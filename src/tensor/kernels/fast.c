/* The fast table. The Makefile compiles this file once per instruction set, with its flags and GR_ISA set to its name.
 * Where the processor has no fused multiply-add a * b + c takes its place: only that table rounds differently. */
#define GR_SIMD _Pragma("omp simd")
#include "fma.h"
#if !GR_HAS_FMA
#    undef GR_FMA
#    define GR_FMA(a, b, c) ((a) * (b) + (c))
#endif
#include "table.h"
#include "matmul.h"

#define GR_PASTE_(prefix, isa) prefix##isa
#define GR_PASTE(prefix, isa)  GR_PASTE_(prefix, isa)
#define GR_TEXT_(isa)          #isa
#define GR_TEXT(isa)           GR_TEXT_(isa)

extern const gr_kernels GR_PASTE(gr_kernels_, GR_ISA);
const gr_kernels GR_PASTE(gr_kernels_, GR_ISA) = {
    .name = GR_TEXT(GR_ISA),
    .exact = GR_HAS_FMA,
    .matmul = matmul,
    .matmul_hiding = plain_matmul_hiding,
#include "entries.def"
};
