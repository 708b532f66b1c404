/* What the parts of bench share: a clock, rows of output, and the repetitions of one measurement. */
#ifndef GR_BENCH_H
#define GR_BENCH_H

#include "bench_support.h"

/* Fewer when one call takes over a second. */
enum { REPETITIONS = 9, SLOW_REPETITIONS = 3 };

typedef struct timing {
    double median, best; /* seconds a call */
} timing;

/* Runs work(arg) until each of the repetitions has lasted long enough for the clock, after one to warm up. */
timing bench_time(void (*work)(void *arg), void *arg);

/* name \t case \t threads \t value \t unit; kept for the table that ends `bench all`. */
void bench_row(const char *name, const char *what, double value, const char *unit);

/* Sets the values of options, which end in a NULL name, from words "--n 64 --kind fused"; a number is at least 1, a
 * choice the index of its word. What is wrong is told in a line on standard error, and the program ends with status 2.
 */
typedef struct bench_option {
    const char *name;
    long *value;
    const char *const *choices; /* ending in NULL; NULL: a number */
} bench_option;
void bench_options(const char *bench, const bench_option *options, int count, char **words);

double bench_peak(void);                 /* GFLOP/s of fused multiply-adds, all threads */
double bench_bandwidth(bool one_thread); /* GB/s of a copy larger than the caches, read and written bytes */
void bench_rows(void);                   /* every row kernel, in and out of the cache */

void bench_attention(attention_case of);
void bench_attention_command(int count, char **words);

typedef struct generate_case {
    long layers, heads, width, context, tokens;
} generate_case;
void bench_generate(generate_case of);
void bench_generate_command(int count, char **words);

#endif
