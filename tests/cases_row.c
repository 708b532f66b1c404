/* Ops along rows: softmax, losses, normalisation; and dropout. */
#include "cases.h"

static gr_tensor *masked_softmax(const gradient_case *c, gr_tensor **x) {
    return gr_masked_softmax(x[0], x[1], c->number);
}

static gr_tensor *cross_entropy(const gradient_case *c, gr_tensor **x) { return gr_cross_entropy(x[0], c->tokens); }
static gr_tensor *layernorm(const gradient_case *c, gr_tensor **x) { return gr_layernorm(x[0], x[1], x[2], c->number); }
static gr_tensor *layernorm_of_same(const gradient_case *c, gr_tensor **x) {
    return gr_layernorm(x[0], x[1], x[1], c->number);
}
static gr_tensor *rmsnorm(const gradient_case *c, gr_tensor **x) { return gr_rmsnorm(x[0], x[1], c->number); }

/* The generator begins anew in each call: a difference quotient needs a pure function. */
static gr_tensor *dropout(const gradient_case *c, gr_tensor **x) {
    gr_rng rng = gr_rng_seed(7);
    return gr_dropout(x[0], c->number, &rng);
}

static const int32_t zeros[] = {0, 0}, targets[] = {2, 0, 4, 4, 1, 3}, far[] = {300, 0},
                     some_ignored[] = {GR_IGNORE, 0, 4, GR_IGNORE, GR_IGNORE, 3},
                     all_ignored[] = {GR_IGNORE, GR_IGNORE, GR_IGNORE};

/* clang-format off */
#define SOFTMAX(op)                                                              \
    CASE(op, "scalar",         ONE(gr_##op), ON(POINT(NORMAL))),                 \
    CASE(op, "one element",    ONE(gr_##op), ON(IN(1))),                         \
    CASE(op, "vector",         ONE(gr_##op), ON(IN(7))),                         \
    CASE(op, "matrix",         ONE(gr_##op), ON(IN(3, 5))),                      \
    CASE(op, "rows of 1",      ONE(gr_##op), ON(IN(5, 1))),                      \
    CASE(op, "six axes",       ONE(gr_##op), ON(IN(2, 1, 2, 1, 2, 3))),          \
    CASE(op, "rows of 301",    ONE(gr_##op), ON(IN(2, 301))),                    \
    CASE(op, "transposed",     ONE(gr_##op), ON(SEEN(TRANSPOSED, 5, 3))),        \
    CASE(op, "sliced",         ONE(gr_##op), ON(SEEN(SLICED, 3, 4))),            \
    CASE(op, "expanded",       ONE(gr_##op), ON(SEEN(EXPANDED, 3, 4))),          \
    CASE(op, "spread",         ONE(gr_##op), ON(SEEN(SPREAD, 3, 4))),            \
    CASE(op, "twice, rotated", ONE(gr_##op), TWICE, ON(SEEN(ROTATED, 2, 3, 2))), \
    CASE(op, "empty rows",     ONE(gr_##op), ON(IN(3, 0)))

#define MASKED(s)          .apply = masked_softmax, .number = s
#define ENTROPY(ids, b, t) .apply = cross_entropy, .tokens = {ids, b, t}
#define MSE                TWO(gr_mse)
#define LAYERNORM          .apply = layernorm
#define RMSNORM            .apply = rmsnorm
#define EPS(e)             .number = e
#define DROPOUT(p)         .apply = dropout, .number = p

static const gradient_case cases[] = {
    SOFTMAX(softmax),
    SOFTMAX(log_softmax),

    CASE(masked_softmax, "scalar",              MASKED(1), ON(POINT(NORMAL))),
    CASE(masked_softmax, "no mask",             MASKED(0.5), ON(IN(3, 5))),
    CASE(masked_softmax, "no mask, transposed", MASKED(0.5), ON(SEEN(TRANSPOSED, 5, 3))),
    CASE(masked_softmax, "mask of each score",  MASKED(0.7), ON(IN(3, 5), OPERAND(MASK, WHOLE, 3, 5))),
    CASE(masked_softmax, "mask for all heads",  MASKED(0.7), ON(IN(2, 2, 3, 4), OPERAND(MASK, WHOLE, 3, 4))),
    CASE(masked_softmax, "mask of keys",        MASKED(0.7), ON(IN(2, 3, 4), OPERAND(MASK, WHOLE, 2, 1, 4))),
    CASE(masked_softmax, "mask of queries",     MASKED(0.7), ON(IN(4, 3), OPERAND(MASK, WHOLE, 4, 1))),
    CASE(masked_softmax, "a row wholly masked", MASKED(0.7), ON(IN(2, 3, 4), OPERAND(NO_ROW, WHOLE, 3, 4))),
    CASE(masked_softmax, "all masked",          MASKED(1), ON(IN(3, 4), OPERAND(NO_ROW, WHOLE, 1, 4))),
    CASE(masked_softmax, "rows of 301",         MASKED(1), ON(IN(2, 301), OPERAND(MASK, WHOLE, 301))),
    CASE(masked_softmax, "both strided",        MASKED(-1.5), ON(SEEN(SLICED, 4, 5), OPERAND(MASK, TRANSPOSED, 4, 5))),
    CASE(masked_softmax, "twice",               MASKED(0.7), TWICE, ON(SEEN(SPACED, 2, 5), OPERAND(MASK, WHOLE, 5))),
    CASE(masked_softmax, "scale 0",             MASKED(0), ON(IN(3, 5))),

    CASE(cross_entropy, "vector",               ENTROPY(targets, 1, 1), ON(IN(5))),
    CASE(cross_entropy, "one class",            ENTROPY(zeros, 1, 2), ON(IN(2, 1))),
    CASE(cross_entropy, "rows",                 ENTROPY(targets, 1, 6), ON(IN(6, 5))),
    CASE(cross_entropy, "batch and time",       ENTROPY(targets, 2, 3), ON(IN(2, 3, 7))),
    CASE(cross_entropy, "some ignored",         ENTROPY(some_ignored, 2, 3), ON(IN(2, 3, 5))),
    CASE(cross_entropy, "all ignored",          ENTROPY(all_ignored, 1, 3), ON(IN(3, 5))),
    CASE(cross_entropy, "301 classes",          ENTROPY(far, 1, 2), ON(IN(2, 301))),
    CASE(cross_entropy, "transposed",           ENTROPY(targets, 1, 6), ON(SEEN(TRANSPOSED, 6, 5))),
    CASE(cross_entropy, "sliced",               ENTROPY(targets, 3, 2), ON(SEEN(SLICED, 3, 2, 5))),
    CASE(cross_entropy, "expanded",             ENTROPY(targets, 2, 3), ON(SEEN(EXPANDED, 2, 3, 5))),
    CASE(cross_entropy, "twice, rotated",       ENTROPY(some_ignored, 2, 3), TWICE, ON(SEEN(ROTATED, 2, 3, 5))),
    CASE(cross_entropy, "no rows",              ENTROPY(NULL, 0, 3), ON(IN(0, 3, 5))),

    CASE(mse, "scalars",                        MSE, ON(POINT(NORMAL), POINT(NORMAL))),
    CASE(mse, "one element",                    MSE, ON(IN(1), IN(1))),
    CASE(mse, "matrices",                       MSE, ON(IN(3, 5), IN(3, 5))),
    CASE(mse, "301 elements",                   MSE, ON(IN(301), IN(301))),
    CASE(mse, "transposed and sliced",          MSE, ON(SEEN(TRANSPOSED, 3, 4), SEEN(SLICED, 3, 4))),
    CASE(mse, "expanded and rotated",           MSE, ON(SEEN(EXPANDED, 3, 4), SEEN(ROTATED, 3, 4))),
    CASE(mse, "twice",                          MSE, TWICE, ON(IN(3, 2), SEEN(SPACED, 3, 2))),
    CASE(mse, "of x and x",                     SAME(gr_mse), ON(IN(3, 5))),
    CASE(mse, "target a constant",              MSE, ON(IN(3, 5), CONSTANT(3, 5))),

    CASE(layernorm, "x alone",                  LAYERNORM, ON(IN(3, 5))),
    CASE(layernorm, "weight",                   LAYERNORM, ON(IN(3, 5), IN(5))),
    CASE(layernorm, "bias",                     LAYERNORM, ON(IN(3, 5), NOTHING, IN(5))),
    CASE(layernorm, "weight and bias",          LAYERNORM, ON(IN(3, 5), IN(5), IN(5))),
    CASE(layernorm, "vector",                   LAYERNORM, ON(IN(7), IN(7), IN(7))),
    CASE(layernorm, "rows of 1",                LAYERNORM, ON(IN(3, 1), IN(1), IN(1))),
    CASE(layernorm, "rows of 2",                LAYERNORM, EPS(0.1), ON(IN(3, 2), IN(2), IN(2))),
    CASE(layernorm, "six axes",                 LAYERNORM, ON(IN(2, 1, 2, 1, 1, 5), IN(5), IN(5))),
    CASE(layernorm, "rows of 301",              LAYERNORM, ON(IN(2, 301), IN(301), IN(301))),
    CASE(layernorm, "300 rows",                 LAYERNORM, EPS(0.1), ON(IN(300, 3), IN(3), IN(3))),
    CASE(layernorm, "x transposed",             LAYERNORM, ON(SEEN(TRANSPOSED, 3, 5), IN(5), IN(5))),
    CASE(layernorm, "all strided",              LAYERNORM, ON(SEEN(SLICED, 3, 5), SEEN(SLICED, 5), SEEN(EXPANDED, 5))),
    CASE(layernorm, "twice, x rotated",         LAYERNORM, TWICE, ON(SEEN(ROTATED, 2, 2, 5), IN(5), IN(5))),
    CASE(layernorm, "weight the bias too",      .apply = layernorm_of_same, ON(IN(3, 5), IN(5))),
    CASE(layernorm, "x a constant",             LAYERNORM, ON(CONSTANT(3, 5), IN(5), IN(5))),
    CASE(layernorm, "weight a constant",        LAYERNORM, ON(IN(3, 5), CONSTANT(5), IN(5))),
    CASE(layernorm, "no rows",                  LAYERNORM, ON(IN(0, 5), IN(5), IN(5))),

    CASE(rmsnorm, "x alone",                    RMSNORM, ON(IN(3, 5))),
    CASE(rmsnorm, "weight",                     RMSNORM, ON(IN(3, 5), IN(5))),
    CASE(rmsnorm, "vector",                     RMSNORM, ON(IN(7), IN(7))),
    CASE(rmsnorm, "rows of 1",                  RMSNORM, EPS(0.1), ON(OPERAND(AWAY, WHOLE, 3, 1), IN(1))),
    CASE(rmsnorm, "six axes",                   RMSNORM, ON(IN(2, 1, 2, 1, 1, 5), IN(5))),
    CASE(rmsnorm, "rows of 301",                RMSNORM, ON(IN(2, 301), IN(301))),
    CASE(rmsnorm, "300 rows",                   RMSNORM, EPS(0.1), ON(IN(300, 3), IN(3))),
    CASE(rmsnorm, "x transposed",               RMSNORM, ON(SEEN(TRANSPOSED, 3, 5), IN(5))),
    CASE(rmsnorm, "both strided",               RMSNORM, ON(SEEN(SLICED, 3, 5), SEEN(EXPANDED, 5))),
    CASE(rmsnorm, "twice, x rotated",           RMSNORM, TWICE, ON(SEEN(ROTATED, 2, 2, 5), IN(5))),
    CASE(rmsnorm, "x a constant",               RMSNORM, ON(CONSTANT(3, 5), IN(5))),
    CASE(rmsnorm, "no rows",                    RMSNORM, ON(IN(0, 5), IN(5))),

    CASE(dropout, "none dropped",               DROPOUT(0), ON(IN(3, 5))),
    CASE(dropout, "half dropped",               DROPOUT(0.5), ON(IN(3, 5))),
    CASE(dropout, "most dropped",               DROPOUT(0.9), ON(IN(67))),
    CASE(dropout, "scalar",                     DROPOUT(0.1), ON(POINT(NORMAL))),
    CASE(dropout, "transposed",                 DROPOUT(0.3), ON(SEEN(TRANSPOSED, 5, 3))),
    CASE(dropout, "sliced",                     DROPOUT(0.3), ON(SEEN(SLICED, 3, 4))),
    CASE(dropout, "twice, expanded",            DROPOUT(0.3), TWICE, ON(SEEN(EXPANDED, 3, 4))),
    CASE(dropout, "empty",                      DROPOUT(0.3), ON(IN(0, 3))),
};
/* clang-format on */

const case_list row_cases = CASE_LIST(cases);
