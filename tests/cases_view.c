/* Views, joining and picking; what select, split and stack are made of. */
#include "cases.h"

static gr_tensor *swap(const gradient_case *c, gr_tensor **x) {
    return gr_transpose(x[0], c->axes.axis[0], c->axes.axis[1]);
}

static gr_tensor *slice(const gradient_case *c, gr_tensor **x) {
    return gr_slice(x[0], c->axes.axis[0], c->start, c->stop, c->step);
}

/* Two slices that share elements. */
static gr_tensor *neighbours(const gradient_case *c, gr_tensor **x) {
    (void)c;
    return gr_mul(gr_slice(x[0], 0, 0, -1, 1), gr_slice(x[0], 0, 1, GR_END, 1));
}

static gr_tensor *select(const gradient_case *c, gr_tensor **x) { return gr_select(x[0], c->axes.axis[0], c->start); }

/* The parts in another order; the middle one is not used. */
static gr_tensor *split(const gradient_case *c, gr_tensor **x) {
    gr_tensor *part[3];
    gr_split(x[0], c->axes.axis[0], 3, part);
    return gr_mul(part[2], part[0]);
}

static gr_tensor *join_same(const gradient_case *c, gr_tensor **x) {
    return c->join((gr_tensor *[]){x[0], x[1], x[0]}, 3, c->axes.axis[0]);
}

static gr_tensor *gather(const gradient_case *c, gr_tensor **x) { return gr_gather_rows(x[0], c->tokens); }

static const int32_t each_once[] = {2, 0, 3, 1}, repeated[] = {3, 0, 3, 3, 1, 0}, one_row[] = {1, 1, 1, 1};

/* clang-format off */
#define SWAP(i, j)                .apply = swap, .axes = AXES(i, j)
#define PERMUTE(...)              OVER(gr_permute, AXES(__VA_ARGS__))
#define SLICE(along, a, b, every) .apply = slice, .axes = AXES(along), .start = a, .stop = b, .step = every
#define SELECT(along, i)          .apply = select, .axes = AXES(along), .start = i
#define SPLIT(along)              .apply = split, .axes = AXES(along)
#define JOIN_SAME(f, along)       .apply = join_same, .join = f, .axes = AXES(along)
#define GATHER(ids, b, t)         .apply = gather, .tokens = {ids, b, t}

static const gradient_case cases[] = {
    CASE(reshape, "scalar to three axes",    TO(gr_reshape, 1, 1, 1), ON(POINT(NORMAL))),
    CASE(reshape, "one element to scalar",   .apply = apply_to, .to = gr_reshape, ON(IN(1, 1))),
    CASE(reshape, "matrix to vector",        TO(gr_reshape, 15), ON(IN(3, 5))),
    CASE(reshape, "vector to six axes",      TO(gr_reshape, 1, 2, 1, 3, 1, 2), ON(IN(12))),
    CASE(reshape, "size inferred",           TO(gr_reshape, 2, -1), ON(IN(2, 3, 3))),
    CASE(reshape, "transposed: a copy",      TO(gr_reshape, 3, 4), ON(SEEN(TRANSPOSED, 4, 3))),
    CASE(reshape, "sliced: a copy",          TO(gr_reshape, 6), ON(SEEN(SLICED, 2, 3))),
    CASE(reshape, "expanded: a copy",        TO(gr_reshape, 2, 6), ON(SEEN(EXPANDED, 4, 3))),
    CASE(reshape, "twice",                   TO(gr_reshape, 5, 3), TWICE, ON(SEEN(SPACED, 3, 5))),
    CASE(reshape, "empty",                   TO(gr_reshape, 5, 0), ON(IN(0, 3))),

    CASE(transpose, "1 x 1",                 SWAP(0, 1), ON(IN(1, 1))),
    CASE(transpose, "matrix",                SWAP(-2, -1), ON(IN(3, 5))),
    CASE(transpose, "first and last",        SWAP(0, 2), ON(IN(2, 3, 4))),
    CASE(transpose, "neighbours of four",    SWAP(1, 2), ON(IN(2, 3, 2, 2))),
    CASE(transpose, "an axis and itself",    SWAP(1, 1), ON(IN(3, 5))),
    CASE(transpose, "of a transpose",        SWAP(0, 1), ON(SEEN(TRANSPOSED, 3, 5))),
    CASE(transpose, "of a slice",            SWAP(0, 1), ON(SEEN(SLICED, 3, 4))),
    CASE(transpose, "twice, expanded",       SWAP(0, 1), TWICE, ON(SEEN(EXPANDED, 3, 4))),

    CASE(permute, "one axis",                PERMUTE(0), ON(IN(5))),
    CASE(permute, "three axes forward",      PERMUTE(2, 0, 1), ON(IN(2, 3, 4))),
    CASE(permute, "three axes backward",     PERMUTE(-1, -2, -3), ON(IN(2, 3, 4))),
    CASE(permute, "in place",                PERMUTE(0, 1, 2), ON(IN(2, 3, 2))),
    CASE(permute, "heads out of width",      PERMUTE(0, 2, 1, 3), ON(IN(2, 3, 2, 2))),
    CASE(permute, "six axes",                PERMUTE(3, 5, 1, 0, 4, 2), ON(IN(2, 1, 3, 2, 1, 2))),
    CASE(permute, "of a rotation",           PERMUTE(2, 0, 1), ON(SEEN(ROTATED, 2, 3, 2))),
    CASE(permute, "twice, sliced",           PERMUTE(1, 0), TWICE, ON(SEEN(SLICED, 3, 4))),

    CASE(slice, "whole",                     SLICE(0, 0, GR_END, 1), ON(IN(5))),
    CASE(slice, "tail",                      SLICE(0, 2, GR_END, 1), ON(IN(5))),
    CASE(slice, "one element",               SLICE(0, -1, GR_END, 1), ON(IN(5))),
    CASE(slice, "first axis",                SLICE(0, 1, 3, 1), ON(IN(4, 3))),
    CASE(slice, "middle axis",               SLICE(1, 0, -1, 1), ON(IN(2, 4, 3))),
    CASE(slice, "last axis, from the end",   SLICE(-1, -3, -1, 1), ON(IN(3, 5))),
    CASE(slice, "every second",              SLICE(-1, 0, GR_END, 2), ON(IN(3, 5))),
    CASE(slice, "every third, a part left",  SLICE(0, 1, GR_END, 3), ON(IN(9, 2))),
    CASE(slice, "step beyond the end",       SLICE(0, 1, GR_END, 100), ON(IN(4, 2))),
    CASE(slice, "of a transpose",            SLICE(0, 1, 4, 2), ON(SEEN(TRANSPOSED, 5, 3))),
    CASE(slice, "of a slice",                SLICE(1, 1, GR_END, 2), ON(SEEN(SLICED, 3, 4))),
    CASE(slice, "of an expansion",           SLICE(0, 1, 3, 1), ON(SEEN(EXPANDED, 4, 3))),
    CASE(slice, "twice",                     SLICE(0, 1, GR_END, 2), TWICE, ON(SEEN(ROTATED, 4, 3))),
    CASE(slice, "two that overlap",          .apply = neighbours, ON(IN(5, 2))),
    CASE(slice, "none",                      SLICE(0, 2, 2, 1), ON(IN(4, 3))),
    CASE(slice, "select, first axis",        SELECT(0, 1), ON(IN(3, 4))),
    CASE(slice, "select, from the end",      SELECT(-1, -1), ON(IN(3, 4))),
    CASE(slice, "select of a vector",        SELECT(0, 2), ON(IN(5))),
    CASE(slice, "select, rotated",           SELECT(1, 1), ON(SEEN(ROTATED, 2, 3, 2))),
    CASE(slice, "split, first axis",         SPLIT(0), ON(IN(6, 3))),
    CASE(slice, "split, last axis",          SPLIT(-1), ON(SEEN(TRANSPOSED, 4, 3))),

    CASE(expand, "scalar to matrix",         TO(gr_expand, 2, 3), ON(POINT(NORMAL))),
    CASE(expand, "one element",              TO(gr_expand, 7), ON(IN(1))),
    CASE(expand, "to its own shape",         TO(gr_expand, 3, 5), ON(IN(3, 5))),
    CASE(expand, "new axes in front",        TO(gr_expand, 2, 3, 5), ON(IN(5))),
    CASE(expand, "first axis",               TO(gr_expand, 4, 3), ON(IN(1, 3))),
    CASE(expand, "middle axis",              TO(gr_expand, 2, 4, 3), ON(IN(2, 1, 3))),
    CASE(expand, "last axis",                TO(gr_expand, 3, 4), ON(IN(3, 1))),
    CASE(expand, "axes apart, and a new one", TO(gr_expand, 2, 3, 2, 2), ON(IN(3, 1, 2))),
    CASE(expand, "300 rows",                 TO(gr_expand, 300, 2), ON(IN(2))),
    CASE(expand, "of a transpose",           TO(gr_expand, 2, 3, 4), ON(SEEN(TRANSPOSED, 3, 4))),
    CASE(expand, "of a slice",               TO(gr_expand, 3, 4), ON(SEEN(SLICED, 1, 4))),
    CASE(expand, "twice",                    TO(gr_expand, 3, 4), TWICE, ON(SEEN(TRANSPOSED, 3, 1))),
    CASE(expand, "to nothing",               TO(gr_expand, 0, 3), ON(IN(1, 3))),

    CASE(concat, "one",                      JOIN(gr_concat, 0), ON(IN(3, 2))),
    CASE(concat, "vectors",                  JOIN(gr_concat, 0), ON(IN(2), IN(3))),
    CASE(concat, "first axis",               JOIN(gr_concat, 0), ON(IN(2, 3), IN(1, 3), IN(4, 3))),
    CASE(concat, "middle axis",              JOIN(gr_concat, 1), ON(IN(2, 1, 3), IN(2, 2, 3), IN(2, 1, 3))),
    CASE(concat, "last axis",                JOIN(gr_concat, -1), ON(IN(3, 2), IN(3, 1), IN(3, 3))),
    CASE(concat, "strided",                  JOIN(gr_concat, 0), ON(SEEN(TRANSPOSED, 2, 3), SEEN(SLICED, 1, 3),
                                                                    SEEN(EXPANDED, 3, 3))),
    CASE(concat, "one of them twice",        JOIN_SAME(gr_concat, 1), ON(IN(2, 3), IN(2, 2))),
    CASE(concat, "twice",                    JOIN(gr_concat, 0), TWICE, ON(IN(2, 3), SEEN(ROTATED, 1, 3))),
    CASE(concat, "a constant in between",    JOIN(gr_concat, 0), ON(IN(2, 3), CONSTANT(1, 3), IN(1, 3))),
    CASE(concat, "an empty one",             JOIN(gr_concat, 0), ON(IN(2, 3), IN(0, 3), IN(1, 3))),
    CASE(concat, "stack, scalars",           JOIN(gr_stack, 0), ON(POINT(NORMAL), POINT(NORMAL), POINT(NORMAL))),
    CASE(concat, "stack, first axis",        JOIN(gr_stack, 0), ON(IN(2, 3), IN(2, 3))),
    CASE(concat, "stack, middle axis",       JOIN(gr_stack, 1), ON(IN(2, 3), SEEN(TRANSPOSED, 2, 3))),
    CASE(concat, "stack, last axis",         JOIN(gr_stack, -1), ON(IN(2, 3), SEEN(SPREAD, 2, 3))),
    CASE(concat, "stack, one of them twice", JOIN_SAME(gr_stack, 0), ON(IN(2, 3), IN(2, 3))),

    CASE(gather_rows, "one of one",          GATHER(each_once + 1, 1, 1), ON(IN(1, 1))),
    CASE(gather_rows, "each row once",       GATHER(each_once, 2, 2), ON(IN(4, 3))),
    CASE(gather_rows, "rows repeated",       GATHER(repeated, 2, 3), ON(IN(4, 3))),
    CASE(gather_rows, "one row only",        GATHER(one_row, 1, 4), ON(IN(3, 5))),
    CASE(gather_rows, "width 1",             GATHER(repeated, 3, 2), ON(IN(5, 1))),
    CASE(gather_rows, "width 67",            GATHER(repeated, 1, 3), ON(IN(4, 67))),
    CASE(gather_rows, "table transposed",    GATHER(repeated, 2, 3), ON(SEEN(TRANSPOSED, 4, 3))),
    CASE(gather_rows, "table sliced",        GATHER(repeated, 6, 1), ON(SEEN(SLICED, 4, 2))),
    CASE(gather_rows, "twice, expanded",     GATHER(repeated, 2, 3), TWICE, ON(SEEN(EXPANDED, 4, 3))),
    CASE(gather_rows, "no ids",              GATHER(NULL, 0, 3), ON(IN(4, 3))),
};
/* clang-format on */

const case_list view_cases = CASE_LIST(cases);
