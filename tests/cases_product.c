/* Products: sizes around the tiles of the kernels, vectors, batches broadcast on either side, strided operands. */
#include "cases.h"

static gr_tensor *linear_of_same(const gradient_case *c, gr_tensor **x) {
    (void)c;
    return gr_linear(x[0], x[0], gr_select(x[0], 0, 1));
}

/* clang-format off */
#define MATMUL TWO(gr_matmul)
#define LINEAR THREE(gr_linear)

/* A B^T or A B: right operands are square, so that both fit. */
#define ATTENTION(op)                                                                                                  \
    CASE(op, "1 x 1",                    TWO(gr_##op), ON(IN(1, 1), IN(1, 1))),                                        \
    CASE(op, "square",                   TWO(gr_##op), ON(IN(3, 3), IN(3, 3))),                                        \
    CASE(op, "zeros on the left",        TWO(gr_##op), ON(OPERAND(HOLED, WHOLE, 5, 4), IN(4, 4))),                     \
    CASE(op, "batch and heads",          TWO(gr_##op), ON(IN(2, 3, 4, 2), IN(2, 3, 2, 2))),                            \
    CASE(op, "one batch for all heads",  TWO(gr_##op), ON(IN(2, 3, 3, 2), IN(2, 1, 2, 2))),                            \
    CASE(op, "left matrix for all",      TWO(gr_##op), ON(IN(3, 3), IN(2, 3, 3))),                                     \
    CASE(op, "right matrix for all",     TWO(gr_##op), ON(OPERAND(HOLED, WHOLE, 2, 3, 3), IN(3, 3))),                  \
    CASE(op, "over the tiles",           TWO(gr_##op), ON(OPERAND(HOLED, WHOLE, 13, 17), IN(17, 17))),                 \
    CASE(op, "transposed and sliced",    TWO(gr_##op), ON(SEEN(TRANSPOSED, 2, 4, 3), SEEN(SLICED, 2, 3, 3))),          \
    CASE(op, "expanded and rotated",     TWO(gr_##op), ON(OPERAND(HOLED, EXPANDED, 2, 3, 3), SEEN(ROTATED, 2, 3, 3))), \
    CASE(op, "twice",                    TWO(gr_##op), TWICE, ON(OPERAND(HOLED, SPACED, 3, 2), IN(2, 2))),             \
    CASE(op, "of x and x",               SAME(gr_##op), ON(IN(3, 3))),                                                 \
    CASE(op, "left a constant",          TWO(gr_##op), ON(CONSTANT(2, 3, 2), IN(2, 2))),                               \
    CASE(op, "right a constant",         TWO(gr_##op), ON(IN(2, 3, 2), CONSTANT(2, 2)))

static const gradient_case cases[] = {
    CASE(matmul, "1 x 1",                        MATMUL, ON(IN(1, 1), IN(1, 1))),
    CASE(matmul, "2 x 3 x 4",                    MATMUL, ON(IN(2, 3), IN(3, 4))),
    CASE(matmul, "outer product",                MATMUL, ON(IN(5, 1), IN(1, 3))),
    CASE(matmul, "inner product",                MATMUL, ON(IN(1, 7), IN(7, 1))),
    CASE(matmul, "vector and vector",            MATMUL, ON(IN(7), IN(7))),
    CASE(matmul, "vector and matrix",            MATMUL, ON(IN(3), IN(3, 5))),
    CASE(matmul, "matrix and vector",            MATMUL, ON(IN(5, 3), IN(3))),
    CASE(matmul, "vector and batch",             MATMUL, ON(IN(3), IN(2, 3, 4))),
    CASE(matmul, "batch and vector",             MATMUL, ON(IN(2, 4, 3), IN(3))),
    CASE(matmul, "batch",                        MATMUL, ON(IN(3, 2, 3), IN(3, 3, 2))),
    CASE(matmul, "two batch axes",               MATMUL, ON(IN(2, 3, 2, 3), IN(2, 3, 3, 2))),
    CASE(matmul, "no matrix",                    MATMUL, ON(IN(0, 2, 3), IN(0, 3, 2))),
    CASE(matmul, "left matrix for all",          MATMUL, ON(IN(2, 3), IN(4, 3, 2))),
    CASE(matmul, "right matrix for all",         MATMUL, ON(IN(4, 2, 3), IN(3, 2))),
    CASE(matmul, "right matrix for two axes",    MATMUL, ON(IN(2, 2, 2, 3), IN(3, 2))),
    CASE(matmul, "left batch of 1",              MATMUL, ON(IN(1, 2, 3), IN(4, 3, 2))),
    CASE(matmul, "right batch of 1",             MATMUL, ON(IN(4, 2, 3), IN(1, 3, 2))),
    CASE(matmul, "batches across",               MATMUL, ON(IN(2, 1, 2, 3), IN(3, 3, 2))),
    CASE(matmul, "batches both ways",            MATMUL, ON(IN(3, 1, 2, 2), IN(1, 2, 2, 3))),
    CASE(matmul, "six axes",                     MATMUL, ON(IN(2, 1, 2, 1, 2, 3), IN(1, 2, 1, 2, 3, 1))),
    CASE(matmul, "below a tile, 5 x 5 x 11",     MATMUL, ON(IN(5, 5), IN(5, 11))),
    CASE(matmul, "a tile, 6 x 16 x 16",          MATMUL, ON(IN(6, 16), IN(16, 16))),
    CASE(matmul, "over a tile, 7 x 5 x 33",      MATMUL, ON(IN(7, 5), IN(5, 33))),
    CASE(matmul, "12 x 6 x 32",                  MATMUL, ON(IN(12, 6), IN(6, 32))),
    CASE(matmul, "13 x 17 x 33",                 MATMUL, ON(IN(13, 17), IN(17, 33))),
    CASE(matmul, "over a block, 2 x 300 x 3",    MATMUL, ON(IN(2, 300), IN(300, 3))),
    CASE(matmul, "left transposed",              MATMUL, ON(SEEN(TRANSPOSED, 5, 3), IN(3, 4))),
    CASE(matmul, "right transposed",             MATMUL, ON(IN(5, 3), SEEN(TRANSPOSED, 3, 4))),
    CASE(matmul, "sliced and spaced",            MATMUL, ON(SEEN(SLICED, 2, 3, 4), SEEN(SPACED, 4, 2))),
    CASE(matmul, "rotated and transposed",       MATMUL, ON(SEEN(ROTATED, 2, 3, 4), SEEN(TRANSPOSED, 2, 4, 2))),
    CASE(matmul, "expanded and spread",          MATMUL, ON(SEEN(EXPANDED, 3, 2, 4), SEEN(SPREAD, 4, 3))),
    CASE(matmul, "strided vectors",              MATMUL, ON(SEEN(SLICED, 5), SEEN(EXPANDED, 5))),
    CASE(matmul, "twice",                        MATMUL, TWICE, ON(IN(2, 3), IN(3, 2))),
    CASE(matmul, "twice, transposed",            MATMUL, TWICE, ON(SEEN(TRANSPOSED, 3, 4), SEEN(ROTATED, 4, 2))),
    CASE(matmul, "twice, batches across",        MATMUL, TWICE, ON(SEEN(SLICED, 2, 2, 3), SEEN(TRANSPOSED, 3, 2))),
    CASE(matmul, "of x and x",                   SAME(gr_matmul), ON(IN(4, 4))),
    CASE(matmul, "of x and x, batch",            SAME(gr_matmul), ON(SEEN(TRANSPOSED, 2, 3, 3))),
    CASE(matmul, "of vector x and x",            SAME(gr_matmul), ON(IN(5))),
    CASE(matmul, "left a constant",              MATMUL, ON(CONSTANT(2, 3), IN(3, 4))),
    CASE(matmul, "right a constant",             MATMUL, ON(IN(2, 2, 3), CONSTANT(3, 4))),
    CASE(matmul, "nothing to sum",               MATMUL, ON(IN(2, 0), IN(0, 3))),
    CASE(matmul, "no rows",                      MATMUL, ON(IN(0, 3), IN(3, 2))),

    CASE(linear, "1 x 1",                        LINEAR, ON(IN(1, 1), IN(1, 1), IN(1))),
    CASE(linear, "matrix",                       LINEAR, ON(IN(2, 3), IN(4, 3), IN(4))),
    CASE(linear, "matrix, no bias",              LINEAR, ON(IN(2, 3), IN(4, 3))),
    CASE(linear, "vector",                       LINEAR, ON(IN(3), IN(5, 3), IN(5))),
    CASE(linear, "vector, no bias",              LINEAR, ON(IN(3), IN(5, 3))),
    CASE(linear, "batch",                        LINEAR, ON(IN(2, 3, 4), IN(5, 4), IN(5))),
    CASE(linear, "batch, no bias",               LINEAR, ON(IN(2, 3, 4), IN(5, 4))),
    CASE(linear, "six axes",                     LINEAR, ON(IN(2, 1, 2, 1, 2, 3), IN(2, 3), IN(2))),
    CASE(linear, "over the tiles",               LINEAR, ON(IN(13, 17), IN(33, 17), IN(33))),
    CASE(linear, "300 rows",                     LINEAR, ON(IN(2, 150, 2), IN(1, 2), IN(1))),
    CASE(linear, "x transposed",                 LINEAR, ON(SEEN(TRANSPOSED, 2, 3, 4), IN(5, 4), IN(5))),
    CASE(linear, "weight transposed",            LINEAR, ON(IN(2, 3, 4), SEEN(TRANSPOSED, 5, 4), IN(5))),
    CASE(linear, "all sliced",                   LINEAR, ON(SEEN(SLICED, 3, 4), SEEN(SPACED, 2, 4), SEEN(SLICED, 2))),
    CASE(linear, "all expanded",                 LINEAR, ON(SEEN(EXPANDED, 3, 4), SEEN(SPREAD, 2, 4),
                                                            SEEN(EXPANDED, 2))),
    CASE(linear, "twice, x rotated",             LINEAR, TWICE, ON(SEEN(ROTATED, 2, 3, 2), IN(2, 2), IN(2))),
    CASE(linear, "of x, x and its row",          .apply = linear_of_same, ON(IN(3, 3))),
    CASE(linear, "x a constant",                 LINEAR, ON(CONSTANT(2, 3, 2), IN(3, 2), IN(3))),
    CASE(linear, "weight a constant",            LINEAR, ON(IN(3, 2), CONSTANT(3, 2), IN(3))),
    CASE(linear, "only the bias",                LINEAR, ON(CONSTANT(3, 2), CONSTANT(3, 2), IN(3))),
    CASE(linear, "no rows",                      LINEAR, ON(IN(0, 3), IN(2, 3), IN(2))),

    ATTENTION(attention_scores),
    CASE(attention_scores, "queries and keys differ", TWO(gr_attention_scores), ON(IN(2, 3, 5), IN(2, 4, 5))),
    ATTENTION(attention_output),
    CASE(attention_output, "values wider than keys",  TWO(gr_attention_output), ON(IN(2, 3, 4), IN(2, 4, 7))),
};
/* clang-format on */

const case_list product_cases = CASE_LIST(cases);
