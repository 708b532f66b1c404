/* What the parts of bench share: a clock, rows of output, and the repetitions of one measurement. */
#ifndef GR_BENCH_H
#define GR_BENCH_H

#include <gradus.h>

enum { REPETITIONS = 9 };

typedef struct timing {
    double median, best; /* seconds a call */
} timing;

/* Runs work(arg) until each of the repetitions has lasted long enough for the clock, after one to warm up. */
timing bench_time(void (*work)(void *arg), void *arg);

/* name \t case \t threads \t value \t unit; kept for the table that ends `bench all`. */
void bench_row(const char *name, const char *what, double value, const char *unit);

double bench_peak(void);                 /* GFLOP/s of fused multiply-adds, all threads */
double bench_bandwidth(bool one_thread); /* GB/s of a copy larger than the caches, read and written bytes */
void bench_rows(void);                   /* every row kernel, in and out of the cache */

#endif
