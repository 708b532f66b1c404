/* What the suites share: a context for every test, tensors from numbers, and comparisons. */
#ifndef TESTS_SUPPORT_H
#define TESTS_SUPPORT_H

#include "gradus.h"

#include <check.h>
#include <math.h>

/* Since Check 0.13 a test needs no END_TEST. */
#define TEST(name) START_TEST(name)

/* GROUP(suite, "views", test, test): every test runs in a process of its own, with a new context in `ctx`. */
#define GROUP(suite, title, ...) add_group(suite, title, (const TTest *[]){__VA_ARGS__, NULL})
void add_group(Suite *suite, const char *title, const TTest **tests);

/* The test runs once for each i in [0, count); inside, i is _i. */
void add_rows(Suite *suite, const char *title, const TTest *test, int count);

/* The test must end by the signal. */
void add_signal(Suite *suite, const char *title, const TTest *test, int signal);

/* ck_assert writes to a pipe each time it holds: in a loop over many numbers, this one. */
#define DEMAND(condition)                                               \
    do {                                                                \
        if (!(condition)) ck_abort_msg("%s does not hold", #condition); \
    } while (0)

extern gr_context *ctx;
extern gr_rng rng; /* begins anew with every test */

/* Relative error allowed where a result is compared with one computed in double. */
#ifdef GR_DOUBLE
#    define TOLERANCE 1e-12
#else
#    define TOLERANCE 1e-5
#endif

/* As many elements as a tensor may have: more than any memory has room for. */
#define MOST_IN_A_TENSOR ((int64_t)(PTRDIFF_MAX / sizeof(gr_real)))

/* A tensor from numbers: tensor(GR_SHAPE(2, 2), NUMBERS(1, 2, 3, 4)). */
#define NUMBERS(...) ((const double[]){__VA_ARGS__})
#define COUNT(...)   (sizeof(NUMBERS(__VA_ARGS__)) / sizeof(double))
gr_tensor *tensor(gr_shape shape, const double *numbers);
gr_tensor *variable(gr_shape shape, const double *numbers); /* with a gradient */
gr_tensor *drawn(gr_shape shape, double low, double high);  /* uniform random numbers */
gr_tensor *counting(gr_shape shape);                        /* 0, 1, 2, ... */

/* The same numbers under strides that are not row-major, with NaN between them. */
gr_tensor *strided(gr_tensor *x);

/* x has exactly these elements in row-major order (a NaN equals any NaN). */
#define EXPECT(x, ...) expect_elements(__LINE__, x, 0, COUNT(__VA_ARGS__), NUMBERS(__VA_ARGS__))
/* The same up to an error of `tolerance` times the number, or times 1 if that is larger. */
#define EXPECT_NEAR(x, tolerance, ...) expect_elements(__LINE__, x, tolerance, COUNT(__VA_ARGS__), NUMBERS(__VA_ARGS__))
void expect_elements(int line, gr_tensor *x, double tolerance, size_t count, const double *numbers);

#define EXPECT_SHAPE(x, ...) expect_shape(__LINE__, x, __VA_ARGS__)
void expect_shape(int line, gr_tensor *x, gr_shape shape);

/* The context has an error whose message contains the text. Forgets it. */
#define EXPECT_ERROR(text) expect_error(__LINE__, text)
void expect_error(int line, const char *text);

/* Equal bit for bit, except that a NaN equals any NaN; else the first place where they differ is put in *at. */
bool same_bits(size_t n, const gr_real *a, const gr_real *b, size_t *at);
bool same_tensors(gr_tensor *a, gr_tensor *b); /* shapes and bits */

/* All elements, row-major, as double; out has room for them. */
void read_values(gr_tensor *x, double *out);

bool contains(const char *text, const char *part);

/* What run prints to standard error, as a static text. */
const char *captured_stderr(void (*run)(void));

#endif
