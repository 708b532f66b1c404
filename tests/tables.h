/* The tables of kernels that run here, in the order of gr_kernels_choices: the best first, the reference last. */
#ifndef TESTS_TABLES_H
#define TESTS_TABLES_H

#include "tensor/kernels/kernels.h"

#include <string.h>

/* Number i; NULL: there are no more. */
static inline const gr_kernels *table(int i) {
    char choices[256];
    gr_kernels_choices(choices, sizeof choices);
    const char *name = strtok(choices, ", ");
    for (; name && i > 0; i--) name = strtok(NULL, ", ");
    return name ? gr_kernels_select(name) : NULL;
}

static inline int tables(void) {
    int count = 0;
    while (table(count)) count++;
    return count;
}

#endif
