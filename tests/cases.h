/* The gradient cases. A case says which op, how it is called, and on what:
 *
 *     CASE(sum, "first and last axis", OVER(gr_sum, AXES(0, -1)), ON(IN(3, 4, 5)))
 *     CASE(div, "a column divides", TWO(gr_div), ON(IN(3, 5), OPERAND(AWAY, WHOLE, 3, 1)))
 *
 * Each is checked as a whole by gr_gradcheck, in every element of every operand. Which operands of which op a case
 * reaches is not declared but read off the tape. The check is checked by mutants, wrong backwards that it must find. */
#ifndef GR_CASES_H
#define GR_CASES_H

#include "autograd/registry.h"

/* The numbers an operand is made of. A kink must lie further away than a difference quotient reaches, 1/16 in float. */
typedef enum values {
    ABSENT,   /* no operand: NULL */
    NORMAL,   /* standard normal */
    POSITIVE, /* in [3/4, 2) */
    AWAY,     /* the same, of either sign: away from 0 */
    GRID,     /* multiples of 1/2, and ... */
    BETWEEN,  /* ... odd multiples of 1/4: never near each other */
    APART,    /* all different, by 1/8 or more */
    HOLED,    /* normal; every third is exactly 0 */
    FIXED,    /* odd multiples of 1/8, a constant, as are the masks: no gradient is wanted */
    MASK,     /* every third is 0, the others 1 */
    NO_ROW,   /* the same, its first row wholly 0 */
} values;

/* How the op sees an operand. The variable is the whole tensor under the view. */
typedef enum view {
    WHOLE,
    TRANSPOSED, /* its last two axes swapped */
    ROTATED,    /* its axes moved up by one, the first to the end */
    SLICED,     /* every second of its last axis, from 1 on */
    SPACED,     /* every second of its first axis, from 1 on */
    EXPANDED,   /* its first axis of 1 repeated */
    SPREAD,     /* its last axis of 1 repeated */
} view;

typedef struct operand {
    gr_shape shape; /* as the op sees it */
    values values;
    view view;
} operand;

enum { MOST_OPERANDS = 3 };

typedef struct gradient_case gradient_case;
struct gradient_case {
    const gr_op *op;
    const char *name;
    gr_tensor *(*apply)(const gradient_case *c, gr_tensor **x); /* calls one of these, or an op by name */
    union {
        gr_tensor *(*one)(gr_tensor *);
        gr_tensor *(*two)(gr_tensor *, gr_tensor *);
        gr_tensor *(*three)(gr_tensor *, gr_tensor *, gr_tensor *);
        gr_tensor *(*with)(gr_tensor *, double);
        gr_tensor *(*over)(gr_tensor *, gr_axes);
        gr_tensor *(*to)(gr_tensor *, gr_shape);
        gr_tensor *(*join)(gr_tensor **, int, int);
    };
    double number;
    gr_axes axes; /* also: of a join or a slice, the one axis */
    gr_shape shape;
    int64_t start, stop, step;
    gr_tokens tokens;
    bool twice; /* the sum of two such calls: the second adds to a gradient that exists */
    operand in[MOST_OPERANDS];
};

gr_tensor *apply_one(const gradient_case *c, gr_tensor **x);
gr_tensor *apply_two(const gradient_case *c, gr_tensor **x);
gr_tensor *apply_same(const gradient_case *c, gr_tensor **x); /* two(x, x) */
gr_tensor *apply_three(const gradient_case *c, gr_tensor **x);
gr_tensor *apply_with(const gradient_case *c, gr_tensor **x);
gr_tensor *apply_over(const gradient_case *c, gr_tensor **x);
gr_tensor *apply_to(const gradient_case *c, gr_tensor **x);
gr_tensor *apply_join(const gradient_case *c, gr_tensor **x);
int operand_count(const gradient_case *c);

/* The words of the table. */
/* clang-format off */
#define CASE(operation, what, ...) {.op = &gr_op_##operation, .name = what, __VA_ARGS__}
#define ONE(f)                     .apply = apply_one, .one = f
#define TWO(f)                     .apply = apply_two, .two = f
#define SAME(f)                    .apply = apply_same, .two = f
#define THREE(f)                   .apply = apply_three, .three = f
#define WITH(f, t)                 .apply = apply_with, .with = f, .number = t
#define OVER(f, set)               .apply = apply_over, .over = f, .axes = set
#define TO(f, ...)                 .apply = apply_to, .to = f, .shape = SIZES(__VA_ARGS__)
#define JOIN(f, along)             .apply = apply_join, .join = f, .axes = AXES(along)
#define TWICE                      .twice = true
#define ON(...)                    .in = {__VA_ARGS__}
#define OPERAND(made, seen, ...)   {SIZES(__VA_ARGS__), made, seen}
#define IN(...)                    OPERAND(NORMAL, WHOLE, __VA_ARGS__)
#define SEEN(as, ...)              OPERAND(NORMAL, as, __VA_ARGS__)
#define CONSTANT(...)              OPERAND(FIXED, WHOLE, __VA_ARGS__)
#define POINT(made)                {NO_SIZES, made, WHOLE}
#define NOTHING                    {NO_SIZES, ABSENT, WHOLE}
#define SIZES(...)                 {GR_NARGS(__VA_ARGS__), {__VA_ARGS__}}
#define NO_SIZES                   {0, {0}}
#define AXES(...)                  {GR_NARGS(__VA_ARGS__), false, {__VA_ARGS__}}
#define KEEP(...)                  {GR_NARGS(__VA_ARGS__), true, {__VA_ARGS__}}
#define ALL                        {-1, false, {0}}
#define KEEP_ALL                   {-1, true, {0}}
#define NO_AXES                    {0, false, {0}}
#define CASE_LIST(table)           {table, sizeof table / sizeof table[0]}
/* clang-format on */

/* The table, one file a family. */
typedef struct case_list {
    const gradient_case *cases;
    int count;
} case_list;
extern const case_list elementwise_cases, reduction_cases, product_cases, view_cases, row_cases, attention_cases;
const gradient_case *case_at(int i); /* NULL after the last */

/* A backward with one fault: what it adds to the gradient of one operand is altered. */
typedef enum fault { SOUND, SCALED, FLIPPED, ZEROED, TAILLESS, OVERWRITING, FAULTS } fault;
typedef struct mutant {
    gr_op op; /* first: a node's op is the mutant */
    const gr_op *original;
    int operand;
    fault fault;
} mutant;
mutant mutant_of(const gr_op *op, int place, fault kind); /* in the gradient of operand number place */
const char *fault_name(fault kind);                       /* "x 1.01", "sign flipped", ... */

/* Gives every node of the mutant's original from last back to end, excluded, the mutant's backward. */
void infect(const mutant *m, gr_node *last, const gr_node *end);

/* Runs a case, with a mutant or NULL. *reached, if not NULL, gets a bit for each operand of the op whose gradient was
 * wanted. Ends the step. */
gr_gradcheck_result check_case(gr_context *ctx, const gradient_case *c, const mutant *m, unsigned *reached);

/* What a case gives, of operands that are variables where a gradient is wanted; NULL behind the last. */
gr_tensor *result_of_case(gr_context *ctx, const gradient_case *c, gr_tensor *inputs[MOST_OPERANDS]);

/* What the cases of an op show. A variadic op counts as three operands: first, middle, last. */
typedef struct survey {
    int cases, operands;
    unsigned unreached; /* operands without a case */
    double worst;
    int caught, made; /* mutants */
    char complaint[2048];
} survey;
void survey_gradients(const gr_op *op, survey *s);
void survey_mutants(const gr_op *op, survey *s);

#endif
