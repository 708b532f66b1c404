/* A random graph: leaves, then steps, each an op on earlier results. Every step draws from bytes of its own, so that
 * one can change without the others; what it draws depends on these and on shapes alone, so that a graph can be built
 * again: with other kernels, on other numbers. */
#ifndef TESTS_FUZZ_GRAPH_H
#define TESTS_FUZZ_GRAPH_H

#include "fuzz.h"

#include "autograd/registry.h"

enum { GRAPH_LEAVES = 4, GRAPH_STEPS = 12, GRAPH_POOL = GRAPH_LEAVES + GRAPH_STEPS };

typedef struct graph {
    fuzz_bytes in; /* of the step that is being drawn */
    gr_context *ctx;
    gr_tensor *pool[GRAPH_POOL]; /* leaves, and the results so far */
    int leaves, count;
    int64_t room;     /* elements of a tensor, at most */
    bool hostile;     /* shapes that do not fit, and operands that are none, may be drawn */
    bool smooth;      /* every number is bounded and far from a kink or a singularity ... */
    bool settled;     /* ... which has been seen to, on numbers near by */
    bool compare;     /* fused attention with the textbook's */
    bool none;        /* an operand of this step is none: the op must refuse */
    gr_context *away; /* whose tensors do not belong here */
} graph;

/* -- What is drawn first (graph_plan.c) ---------------------------------------------------------------------------- */

typedef enum values { TAME, SPECIAL, WILD, KINDS } values;

/* What a graph is, but for its context: the bytes of its steps, and its leaves. */
typedef struct plan {
    fuzz_bytes steps;
    gr_shape shape[GRAPH_LEAVES];
    gr_real *value[GRAPH_LEAVES]; /* malloc'd */
    bool variable[GRAPH_LEAVES], kept[GRAPH_STEPS];
    int leaves;
    bool hostile, smooth, drawn, differentiable; /* drawn: which steps are kept is known */
    values values;
    uint64_t seed;
} plan;
plan graph_plan(fuzz_bytes in);

/* -- Drawing operands (graph_draw.c) ------------------------------------------------------------------------------- */

static inline int64_t graph_below(graph *g, int64_t n) { return fuzz_below(&g->in, n); }
/* Now and then, where what is wrong may be drawn. */
static inline bool graph_wrong(graph *g) { return g->hostile && graph_below(g, 8) == 1; }

/* A tensor as it is. */
gr_tensor *graph_any(graph *g);
/* The same, or none, for an op's first operand. */
gr_tensor *graph_first(graph *g);
/* One of this shape, made of another by views, with any strides; hostile: now and then of another shape. */
gr_tensor *graph_sound(graph *g, gr_shape shape);
/* The same, or none, for an operand that is not the only one. */
gr_tensor *graph_operand(graph *g, gr_shape shape);
gr_tensor *graph_optional(graph *g, gr_shape shape); /* the same where NULL is allowed */
/* A mask of this shape: zeros and ones; where the graph need not be smooth, also any tensor. */
gr_tensor *graph_mask(graph *g, gr_shape shape);

/* A shape that broadcasts to this one: without leading axes, with sizes of 1. */
gr_shape graph_narrower(graph *g, gr_shape shape);
/* Any axes of a tensor; hostile: also those that it has not. */
gr_axes graph_axes(graph *g, const gr_tensor *x);
int graph_axis(graph *g, const gr_tensor *x);
int64_t graph_side(graph *g); /* a size */
gr_shape graph_with_last(gr_shape shape, int64_t last);
gr_shape graph_matrix(gr_shape shape, int64_t rows, int64_t columns); /* with other last two axes */
double graph_number(graph *g);
gr_rng graph_rng(graph *g);

/* All |x| at least, or all x at least; any two elements so far apart. True when the graph need not be smooth. */
bool graph_is_away(const graph *g, gr_tensor *x, double least);
bool graph_is_above(const graph *g, gr_tensor *x, double least);
bool graph_is_apart(const graph *g, gr_tensor *x, double least);

/* -- The ops: graph_ops.c, graph_rows.c, graph_attention.c --------------------------------------------------------- */

/* Calls an op: its result; NULL: there is none, as the graph would not be smooth. Of every op of the registry there
 * must be one. */
typedef gr_tensor *graph_call(graph *g);
#define GRAPH_DECLARE(name) graph_call graph_call_##name;
GR_OPS(GRAPH_DECLARE)
#undef GRAPH_DECLARE

extern long graph_compared; /* attentions, with the textbook's */

#endif
