/* Reductions: every kind of axis set, rows longer than a block of the summation tree, strided operands. */
#include "cases.h"

/* clang-format off */
#define REDUCTION(op, v)                                                                                            \
    CASE(op, "scalar",                      OVER(gr_##op, ALL), ON(POINT(v))),                                      \
    CASE(op, "one element",                 OVER(gr_##op, AXES(0)), ON(OPERAND(v, WHOLE, 1))),                      \
    CASE(op, "vector",                      OVER(gr_##op, AXES(0)), ON(OPERAND(v, WHOLE, 7))),                      \
    CASE(op, "first axis",                  OVER(gr_##op, AXES(0)), ON(OPERAND(v, WHOLE, 3, 2, 5))),                \
    CASE(op, "middle axis",                 OVER(gr_##op, AXES(1)), ON(OPERAND(v, WHOLE, 3, 4, 2))),                \
    CASE(op, "last axis",                   OVER(gr_##op, AXES(-1)), ON(OPERAND(v, WHOLE, 3, 2, 5))),               \
    CASE(op, "first two",                   OVER(gr_##op, AXES(0, 1)), ON(OPERAND(v, WHOLE, 3, 2, 5))),             \
    CASE(op, "last two",                    OVER(gr_##op, AXES(-1, -2)), ON(OPERAND(v, WHOLE, 3, 2, 5))),           \
    CASE(op, "first and last",              OVER(gr_##op, AXES(2, 0)), ON(OPERAND(v, WHOLE, 3, 2, 5))),             \
    CASE(op, "two of six, apart",           OVER(gr_##op, AXES(1, 4)), ON(OPERAND(v, WHOLE, 2, 3, 1, 2, 2, 1))),    \
    CASE(op, "three of six",                OVER(gr_##op, AXES(0, 3, 5)), ON(OPERAND(v, WHOLE, 2, 1, 2, 3, 1, 2))), \
    CASE(op, "all axes",                    OVER(gr_##op, ALL), ON(OPERAND(v, WHOLE, 3, 2, 5))),                    \
    CASE(op, "all axes, by name",           OVER(gr_##op, AXES(0, 1)), ON(OPERAND(v, WHOLE, 3, 5))),                \
    CASE(op, "no axis",                     OVER(gr_##op, NO_AXES), ON(OPERAND(v, WHOLE, 3, 5))),                   \
    CASE(op, "axis of 1",                   OVER(gr_##op, AXES(1)), ON(OPERAND(v, WHOLE, 3, 1, 5))),                \
    CASE(op, "first axis kept",             OVER(gr_##op, KEEP(0)), ON(OPERAND(v, WHOLE, 3, 2, 5))),                \
    CASE(op, "middle axis kept",            OVER(gr_##op, KEEP(-2)), ON(OPERAND(v, WHOLE, 3, 4, 2))),               \
    CASE(op, "last axis kept",              OVER(gr_##op, KEEP(2)), ON(OPERAND(v, WHOLE, 3, 2, 5))),                \
    CASE(op, "outer axes kept",             OVER(gr_##op, KEEP(0, -1)), ON(OPERAND(v, WHOLE, 3, 2, 5))),            \
    CASE(op, "all axes kept",               OVER(gr_##op, KEEP_ALL), ON(OPERAND(v, WHOLE, 3, 5))),                  \
    CASE(op, "row of 301",                  OVER(gr_##op, AXES(-1)), ON(OPERAND(v, WHOLE, 2, 301))),                \
    CASE(op, "column of 301",               OVER(gr_##op, AXES(0)), ON(OPERAND(v, WHOLE, 301, 2))),                 \
    CASE(op, "transposed",                  OVER(gr_##op, AXES(-1)), ON(OPERAND(v, TRANSPOSED, 5, 3))),             \
    CASE(op, "transposed, all axes",        OVER(gr_##op, ALL), ON(OPERAND(v, TRANSPOSED, 2, 5, 3))),               \
    CASE(op, "rotated, first axis",         OVER(gr_##op, AXES(0)), ON(OPERAND(v, ROTATED, 3, 2, 4))),              \
    CASE(op, "sliced",                      OVER(gr_##op, AXES(-1)), ON(OPERAND(v, SLICED, 3, 4))),                 \
    CASE(op, "spaced, first axis kept",     OVER(gr_##op, KEEP(0)), ON(OPERAND(v, SPACED, 3, 4))),                  \
    CASE(op, "expanded, last axis",         OVER(gr_##op, AXES(-1)), ON(OPERAND(v, EXPANDED, 3, 4))),               \
    CASE(op, "expanded, expanded axis",     OVER(gr_##op, AXES(0)), ON(OPERAND(v, EXPANDED, 3, 4))),                \
    CASE(op, "twice, rotated",              OVER(gr_##op, AXES(1)), TWICE, ON(OPERAND(v, ROTATED, 2, 3, 2))),       \
    CASE(op, "no rows",                     OVER(gr_##op, AXES(1)), ON(OPERAND(v, WHOLE, 0, 3)))

static const gradient_case cases[] = {
    REDUCTION(sum, NORMAL),
    CASE(sum, "of nothing", OVER(gr_sum, AXES(1)), ON(IN(3, 0))),
    REDUCTION(mean, NORMAL),
    REDUCTION(max, APART),
    REDUCTION(variance, NORMAL),
    REDUCTION(logsumexp, NORMAL),
    CASE(logsumexp, "of nothing", OVER(gr_logsumexp, AXES(1)), ON(IN(3, 0))),
    REDUCTION(norm, AWAY),
    CASE(norm, "of nothing", OVER(gr_norm, AXES(1)), ON(IN(3, 0))),
};
/* clang-format on */

const case_list reduction_cases = CASE_LIST(cases);
