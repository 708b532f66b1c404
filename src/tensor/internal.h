/* What a context and a tensor are made of: for the library's own files. */
#ifndef GR_INTERNAL_H
#define GR_INTERNAL_H

#include "arena.h"
#include "kernels/kernels.h"
#include "shape.h"
#include "tensor.h"

struct gr_node;

struct gr_tensor {
    gr_context *ctx;
    gr_real *data;
    gr_shape shape;
    int64_t stride[GR_MAX_DIMS]; /* in elements */
    const char *name;            /* NULL: none */
    bool persistent;             /* outlives gr_context_reset */

    /* Kept for src/autograd; a constant has false and NULL. */
    bool requires_grad, retain_grad;
    gr_tensor *grad;      /* contiguous, same shape; NULL: nothing has been added yet */
    struct gr_node *node; /* the tape's entry that made it; NULL: a leaf */

    gr_tensor *next_free; /* while it waits in the pool */
    gr_tensor *earlier;   /* made before it in the step */
};

/* Called when the context is freed: closes a file, unmaps a corpus. */
typedef struct gr_cleanup {
    void (*run)(void *arg);
    void *arg;
    struct gr_cleanup *next;
} gr_cleanup;

enum { GR_ERROR_TEXT = 512, GR_SHOW_TEXT = 160, GR_SHOW_SLOTS = 4 };

struct gr_context {
    bool failed, reported;
    char error[GR_ERROR_TEXT];
    char shown[GR_SHOW_SLOTS][GR_SHOW_TEXT]; /* gr_show's texts, in turn */
    int next_shown;
    gr_tensor inert;
    const gr_kernels *kernels;
    gr_arena forever, step;
    gr_arena tensors[2];     /* of this step and of the one before, in turn: without their numbers */
    int turn;                /* which is this step's */
    unsigned steps;          /* ended */
    gr_tensor *latest;       /* of this step */
    gr_tensor *free_tensors; /* the pool, of this step */
    gr_cleanup *cleanups;
    gr_real *scratch; /* of the matrix product, for scratch_threads threads */
    int scratch_threads;
    struct gr_profile *profile; /* NULL: nothing is timed */

    /* Kept for src/autograd. */
    struct gr_node *tape; /* the last entry */
    int no_grad;          /* depth of no-grad regions */
    bool gradients_torn;  /* a backward stopped half-way: no other, and no update, until gr_zero_grad */
    gr_tensor **parameters;
    int parameter_count, parameter_room;
};

/* The tensor that operations return after an error. Never NULL. */
gr_tensor *gr_inert(gr_context *ctx);

/* Memory of the step (or for ever), not cleared, aligned to a cache line; NULL after keeping an out-of-memory error. Of
 * count elements: also where their bytes are more than size_t counts. */
void *gr_alloc(gr_context *ctx, bool persistent, size_t bytes);
void *gr_alloc_array(gr_context *ctx, bool persistent, int64_t count, size_t size);

/* Memory for ever of a model's, an optimiser's or a corpus's handle, also after an error: when that is cleared, what
 * was not made says so where it is used. NULL without a context, or without memory. */
void *gr_alloc_handle(gr_context *ctx, size_t bytes);

/* made; or an error where a handle is used that an error has left empty. */
bool gr_check_made(gr_context *ctx, const char *where, const char *what, bool made);

/* A tensor that has its context and nothing else yet; NULL as above. Those of a step have memory of their own, which
 * rests for a step before it is used again: until then gr_context_reset has made them inert, and what still uses one
 * is told so. */
gr_tensor *gr_alloc_tensor(gr_context *ctx, bool persistent);

/* False for NULL, and after an error for a tensor that is inert: it was made after an error, or in an earlier step. */
bool gr_check_alive(const gr_tensor *x, const char *where, const char *label);

/* Takes back what the step has taken since; nothing if it is another step by now. */
typedef struct gr_mark {
    gr_arena step, tensors;
    gr_tensor *latest;
    unsigned steps;
} gr_mark;
gr_mark gr_mark_step(const gr_context *ctx);
void gr_rewind_step(gr_context *ctx, const gr_mark *since);

/* Calls run(arg) when the context is freed, the latest first; at once when there is no memory to remember it. */
void gr_on_free(gr_context *ctx, void (*run)(void *), void *arg);

/* A contiguous tensor of the step (or for ever), values not set; the inert tensor after an error. */
gr_tensor *gr_new(gr_context *ctx, const char *where, bool persistent, gr_shape shape);

/* A tensor that sees the data of x at an offset with another shape and strides. */
gr_tensor *gr_view(gr_tensor *x, gr_shape shape, const int64_t *stride, int64_t offset);

/* The numbers of a contiguous tensor under another shape of as many elements. */
gr_tensor *gr_view_as(gr_tensor *contiguous, gr_shape shape);

/* Sets every element of a contiguous tensor to zero. */
void gr_clear(gr_tensor *x);

/* A contiguous tensor with the values of x: x itself when it is contiguous. */
gr_tensor *gr_contiguous(gr_tensor *x);
bool gr_is_contiguous(const gr_tensor *x);

/* Contiguous tensors that go round: taken (values not set), given back, taken again under another shape, all within a
 * step. */
gr_tensor *gr_pool_take(gr_context *ctx, gr_shape shape);
void gr_pool_give(gr_tensor *x);

/* Charges the time since the last event to a row of the profile, if one is kept, and returns it in seconds. */
double gr_profile_event(gr_context *ctx, const char *name, const char *phase, double flops, double bytes);

/* "q (2, 3)" for messages; good for three more calls. label is used when x has no name of its own. */
const char *gr_show(const gr_tensor *x, const char *label);
const char *gr_show_shape(gr_context *ctx, gr_shape shape);

#endif
