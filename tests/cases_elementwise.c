/* Elementwise ops: ranks 0 to 6, a row with a vector's tail, strided operands; of two, every way to broadcast. */
#include "cases.h"

/* clang-format off */
#define ONE_OPERAND(op, call, v)                                               \
    CASE(op, "scalar",         call, ON(POINT(v))),                            \
    CASE(op, "one element",    call, ON(OPERAND(v, WHOLE, 1))),                \
    CASE(op, "matrix",         call, ON(OPERAND(v, WHOLE, 3, 5))),             \
    CASE(op, "row of 67",      call, ON(OPERAND(v, WHOLE, 67))),               \
    CASE(op, "six axes",       call, ON(OPERAND(v, WHOLE, 1, 2, 1, 3, 1, 2))), \
    CASE(op, "transposed",     call, ON(OPERAND(v, TRANSPOSED, 5, 3))),        \
    CASE(op, "sliced",         call, ON(OPERAND(v, SLICED, 3, 4))),            \
    CASE(op, "expanded",       call, ON(OPERAND(v, EXPANDED, 3, 4))),          \
    CASE(op, "twice, rotated", call, TWICE, ON(OPERAND(v, ROTATED, 2, 3, 2))), \
    CASE(op, "empty",          call, ON(OPERAND(v, WHOLE, 3, 0)))

#define TWO_OPERANDS(op, call, v, w)                                                                               \
    CASE(op, "scalars",                call, ON(POINT(v), POINT(w))),                                              \
    CASE(op, "one element each",       call, ON(OPERAND(v, WHOLE, 1), OPERAND(w, WHOLE, 1))),                      \
    CASE(op, "equal shapes",           call, ON(OPERAND(v, WHOLE, 3, 5), OPERAND(w, WHOLE, 3, 5))),                \
    CASE(op, "rows of 67",             call, ON(OPERAND(v, WHOLE, 67), OPERAND(w, WHOLE, 67))),                    \
    CASE(op, "matrix and scalar",      call, ON(OPERAND(v, WHOLE, 3, 5), POINT(w))),                               \
    CASE(op, "scalar and matrix",      call, ON(POINT(v), OPERAND(w, WHOLE, 3, 5))),                               \
    CASE(op, "matrix and row",         call, ON(OPERAND(v, WHOLE, 3, 5), OPERAND(w, WHOLE, 5))),                   \
    CASE(op, "row and matrix",         call, ON(OPERAND(v, WHOLE, 5), OPERAND(w, WHOLE, 3, 5))),                   \
    CASE(op, "matrix and column",      call, ON(OPERAND(v, WHOLE, 3, 5), OPERAND(w, WHOLE, 3, 1))),                \
    CASE(op, "column and matrix",      call, ON(OPERAND(v, WHOLE, 3, 1), OPERAND(w, WHOLE, 3, 5))),                \
    CASE(op, "column and row",         call, ON(OPERAND(v, WHOLE, 3, 1), OPERAND(w, WHOLE, 1, 5))),                \
    CASE(op, "row and column",         call, ON(OPERAND(v, WHOLE, 7), OPERAND(w, WHOLE, 2, 1))),                   \
    CASE(op, "middle axis of b",       call, ON(OPERAND(v, WHOLE, 2, 3, 4), OPERAND(w, WHOLE, 2, 1, 4))),          \
    CASE(op, "outer axes of a",        call, ON(OPERAND(v, WHOLE, 1, 3, 1), OPERAND(w, WHOLE, 2, 3, 4))),          \
    CASE(op, "axes of both",           call, ON(OPERAND(v, WHOLE, 2, 1, 3), OPERAND(w, WHOLE, 4, 1))),             \
    CASE(op, "six axes and three",     call, ON(OPERAND(v, WHOLE, 2, 1, 2, 3, 1, 2), OPERAND(w, WHOLE, 3, 2, 1))), \
    CASE(op, "transposed and sliced",  call, ON(OPERAND(v, TRANSPOSED, 3, 4), OPERAND(w, SLICED, 3, 4))),          \
    CASE(op, "spaced and rotated",     call, ON(OPERAND(v, SPACED, 2, 3), OPERAND(w, ROTATED, 2, 2, 3))),          \
    CASE(op, "expanded and spread",    call, ON(OPERAND(v, EXPANDED, 3, 4), OPERAND(w, SPREAD, 3, 4))),            \
    CASE(op, "twice, matrix and row",  call, TWICE, ON(OPERAND(v, TRANSPOSED, 3, 4), OPERAND(w, SLICED, 4))),      \
    CASE(op, "variable and constant",  call, ON(OPERAND(v, WHOLE, 3, 5), CONSTANT(3, 1))),                         \
    CASE(op, "constant and variable",  call, ON(CONSTANT(3, 5), OPERAND(w, WHOLE, 5))),                            \
    CASE(op, "empty and scalar",       call, ON(OPERAND(v, WHOLE, 0, 3), POINT(w)))

#define UNARY(op, v)     ONE_OPERAND(op, ONE(gr_##op), v)
#define BINARY(op, v, w) TWO_OPERANDS(op, TWO(gr_##op), v, w), \
                         CASE(op, "of x and x", SAME(gr_##op), ON(OPERAND(w, WHOLE, 3, 4)))
/* clang-format on */

/* exp makes 0 of the -inf that a masked score is. */
static gr_tensor *exp_of_masked(const gradient_case *c, gr_tensor **x) {
    (void)c;
    return gr_exp(gr_mask_scores(x[0], x[1]));
}

#define WHERE  THREE(gr_where)
#define MASKED .apply = exp_of_masked

static const gradient_case cases[] = {
    /* clang-format off */
    BINARY(add, NORMAL, NORMAL),
    BINARY(sub, NORMAL, NORMAL),
    BINARY(mul, NORMAL, NORMAL),
    BINARY(div, NORMAL, AWAY),
    BINARY(minimum, GRID, BETWEEN),
    BINARY(maximum, GRID, BETWEEN),

    CASE(where, "scalars, condition true",  WHERE, ON(POINT(MASK), POINT(NORMAL), POINT(NORMAL))),
    CASE(where, "scalars, condition false", WHERE, ON(POINT(NO_ROW), POINT(NORMAL), POINT(NORMAL))),
    CASE(where, "equal shapes",             WHERE, ON(OPERAND(MASK, WHOLE, 4, 5), IN(4, 5), IN(4, 5))),
    CASE(where, "condition a row",          WHERE, ON(OPERAND(MASK, WHOLE, 5), IN(3, 5), IN(3, 5))),
    CASE(where, "condition the widest",     WHERE, ON(OPERAND(MASK, WHOLE, 2, 3, 5), IN(3, 1), IN(5))),
    CASE(where, "a the widest",             WHERE, ON(OPERAND(MASK, WHOLE, 3, 1), IN(2, 3, 5), IN(5))),
    CASE(where, "b the widest",             WHERE, ON(OPERAND(MASK, WHOLE, 1, 5), POINT(NORMAL), IN(2, 3, 5))),
    CASE(where, "all strided",              WHERE, ON(OPERAND(MASK, SLICED, 3, 4), SEEN(TRANSPOSED, 3, 4),
                                                      SEEN(EXPANDED, 3, 4))),
    CASE(where, "twice",                    WHERE, TWICE, ON(OPERAND(MASK, SPREAD, 3, 4), IN(3, 4), IN(4))),
    CASE(where, "a constant",               WHERE, ON(OPERAND(MASK, WHOLE, 4, 5), CONSTANT(5), IN(4, 5))),
    CASE(where, "a variable as condition",  WHERE, ON(OPERAND(AWAY, WHOLE, 3, 5), IN(3, 5), IN(3, 5))),
    CASE(where, "empty",                    WHERE, ON(OPERAND(MASK, WHOLE, 0, 3), IN(3), POINT(NORMAL))),

    CASE(mask_scores, "scalar, visible",      MASKED, ON(POINT(NORMAL), POINT(MASK))),
    CASE(mask_scores, "scalar, hidden",       MASKED, ON(POINT(NORMAL), POINT(NO_ROW))),
    CASE(mask_scores, "equal shapes",         MASKED, ON(IN(3, 5), OPERAND(MASK, WHOLE, 3, 5))),
    CASE(mask_scores, "a mask for all heads", MASKED, ON(IN(2, 2, 3, 4), OPERAND(NO_ROW, WHOLE, 3, 4))),
    CASE(mask_scores, "a mask for all rows",  MASKED, ON(IN(3, 2, 5), OPERAND(MASK, WHOLE, 3, 1, 5))),
    CASE(mask_scores, "scores broadcast",     MASKED, ON(IN(4), OPERAND(MASK, WHOLE, 5, 4))),
    CASE(mask_scores, "both strided",         MASKED, ON(SEEN(TRANSPOSED, 4, 5), OPERAND(MASK, SLICED, 4, 5))),
    CASE(mask_scores, "twice, spaced",        MASKED, TWICE, ON(SEEN(SPACED, 2, 5), OPERAND(MASK, WHOLE, 2, 5))),

    UNARY(neg, NORMAL),
    ONE_OPERAND(scale, WITH(gr_scale, -1.75), NORMAL),
    CASE(scale, "by 0", WITH(gr_scale, 0), ON(IN(3, 5))),
    ONE_OPERAND(add_scalar, WITH(gr_add_scalar, 0.3), NORMAL),
    UNARY(square, NORMAL),
    UNARY(sqrt, POSITIVE),
    UNARY(exp, NORMAL),
    UNARY(log, POSITIVE),
    UNARY(abs, AWAY),
    UNARY(relu, AWAY),
    UNARY(sigmoid, NORMAL),
    UNARY(tanh, NORMAL),
    UNARY(gelu, NORMAL),
    UNARY(gelu_erf, NORMAL),
    UNARY(silu, NORMAL),

    ONE_OPERAND(pow, WITH(gr_pow, 3), NORMAL),
    CASE(pow, "square",                  WITH(gr_pow, 2), ON(IN(3, 5))),
    CASE(pow, "square, twice",           WITH(gr_pow, 2), TWICE, ON(SEEN(TRANSPOSED, 5, 3))),
    CASE(pow, "first power",             WITH(gr_pow, 1), ON(IN(3, 5))),
    CASE(pow, "power 0",                 WITH(gr_pow, 0), ON(IN(3, 5))),
    CASE(pow, "root",                    WITH(gr_pow, 0.5), ON(OPERAND(POSITIVE, WHOLE, 3, 5))),
    CASE(pow, "root, sliced",            WITH(gr_pow, 0.5), ON(OPERAND(POSITIVE, SLICED, 3, 4))),
    CASE(pow, "reciprocal",              WITH(gr_pow, -1), ON(OPERAND(AWAY, WHOLE, 3, 5))),
    CASE(pow, "reciprocal of the root",  WITH(gr_pow, -0.5), ON(OPERAND(POSITIVE, WHOLE, 3, 5))),
    CASE(pow, "power 2.7",               WITH(gr_pow, 2.7), ON(OPERAND(POSITIVE, WHOLE, 67))),
    /* clang-format on */
};

const case_list elementwise_cases = CASE_LIST(cases);
