/* The one place that knows threads. */
#ifndef GR_PARALLEL_H
#define GR_PARALLEL_H

#include <stddef.h>

typedef void gr_range_function(size_t begin, size_t end, int thread, void *arg);

/* Calls run on pieces of [0, n), on as many threads as the work is worth: cost is the work of one item, roughly in
 * floating-point operations. thread is below gr_max_threads(). Results must not depend on how [0, n) is cut.
 * One thread does it all in a child of fork() whose parent has used several: the threads are not inherited. */
void gr_parallel_for(size_t n, size_t cost, gr_range_function *run, void *arg);

/* The same for the kernels that do one row at a time; cost is the work of a row. */
typedef void gr_row_function(size_t row, void *arg);
void gr_parallel_rows(size_t rows, size_t cost, gr_row_function *run, void *arg);

/* Work of one element in these loops, in floating-point operations: with an elementary function, or of plain arithmetic
 * (memory counts for more there). */
enum { GR_COST_OF_EXP = 16, GR_COST_OF_TERM = 8 };

/* The threads that a large gr_parallel_for uses. */
int gr_max_threads(void);

#endif
