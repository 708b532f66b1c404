/* What conform is made of; what it does is told in conform.c. */
#ifndef TESTS_CONFORM_H
#define TESTS_CONFORM_H

#include "nn/safetensors.h"

enum { CONFORM_OPERANDS = 8, CONFORM_KEYS = 16 }; /* of a call, at most: a join has 8 operands */

typedef struct conform_call conform_call;

typedef struct conform_op {
    const char *name;
    gr_tensor *(*run)(conform_call *c);
    int least, most;     /* operands */
    const char *tensors; /* an example of a file: "x0=2,3 mask=3 grad=2,3", shapes */
    const char *keys;    /* "axes=0,2 keepdim=1", what it reads, with values for the example */
} conform_op;

extern const conform_op conform_ops[];
extern const int conform_op_count;

struct conform_call {
    gr_context *ctx;
    const conform_op *op;
    char **key; /* of the form key=value */
    int keys;
    bool used[CONFORM_KEYS];
    bool strided, misused; /* operands not row-major; the first error is one of usage */
    gr_safetensors file;
    int count;
    gr_tensor *leaf[CONFORM_OPERANDS], *x[CONFORM_OPERANDS]; /* what is differentiated; what the op gets */
    gr_tensor *weights;                                      /* of attention, or NULL */
};

/* The program: reads, runs, writes; the exit status. */
int conform(int count, char **arguments);

/* An error of usage, in the context and so final: "op: the text". */
void conform_misuse(conform_call *c, const char *format, ...) GR_PRINTF(2, 3);

/* The value of a key; it is an error of usage if it is missing or of another form. */
int conform_whole(conform_call *c, const char *key);
double conform_number(conform_call *c, const char *key);
gr_shape conform_list(conform_call *c, const char *key); /* whole numbers, such as 0,-1; nothing: none */
/* The same for a key that may be missing. */
int conform_whole_or(conform_call *c, const char *key, int value);
double conform_number_or(conform_call *c, const char *key, double value);
bool conform_flag(conform_call *c, const char *key);                             /* 0, 1; missing: 0 */
int conform_choice(conform_call *c, const char *key, const char *const *choice); /* an index; missing: 0 */
bool conform_has(const conform_call *c, const char *key);
/* The keys are of the form key=value and each is there once; all of them have been asked for. */
bool conform_check_keys(conform_call *c);
bool conform_check_used(conform_call *c);

/* Reads x0, x1, ... as variables; the context has the error if there is one. */
bool conform_read_operands(conform_call *c);
/* A constant; under strided=1 it lies as the operands do. */
gr_tensor *conform_read(conform_call *c, const char *name);
gr_tensor *conform_mask(conform_call *c); /* NULL: the file has none */
/* (B, T), or one axis as (1, T). */
gr_tokens conform_tokens(conform_call *c, const char *name);
/* The gradient of operand i, contiguous. What lies beside a strided operand must have none. */
gr_tensor *conform_gradient(conform_call *c, int i);
/* Every tensor of the file has been asked for. */
bool conform_check_file(conform_call *c);

#endif
