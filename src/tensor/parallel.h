/* The one place that knows threads. */
#ifndef GR_PARALLEL_H
#define GR_PARALLEL_H

#include <stddef.h>

typedef void gr_range_function(size_t begin, size_t end, int thread, void *arg);

/* Calls run on pieces of [0, n), on as many threads as the work is worth: cost is the work of one item, roughly in
 * floating-point operations. thread is below gr_max_threads(). Results must not depend on how [0, n) is cut. */
void gr_parallel_for(size_t n, size_t cost, gr_range_function *run, void *arg);

/* The threads that a large gr_parallel_for uses. */
int gr_max_threads(void);

#endif
