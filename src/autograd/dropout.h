/* Which elements dropout keeps, as a function of a key and an index, for the ops that do it on their way. */
#ifndef GR_DROPOUT_H
#define GR_DROPOUT_H

#include "../tensor/real.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gr_dropout_key {
    uint64_t key;
    double p; /* an element stays, as x / (1 - p), with probability 1 - p */
} gr_dropout_key;

/* Elements first, first + 1, ... of a tensor: y = the kept x, or y += it. x and y may be the same. */
void gr_keep_elements(gr_dropout_key kept, size_t first, size_t n, const gr_real *x, gr_real *y, bool accumulate);

#endif
