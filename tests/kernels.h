/* What the suites of the kernels share: tables to compare, and numbers to try them on. */
#ifndef TESTS_KERNELS_H
#define TESTS_KERNELS_H

#include "support.h"
#include "tables.h"

#include <float.h>

/* As tests have it, table(_i): a row for each, or for each but the reference. */
static inline int fast_tables(void) { return tables() - 1; }

/* TAME numbers stay in [-3, 3]; SPECIAL adds NaN, infinities and zeros of both signs; WILD adds denormals and numbers
 * of every size up to the largest. */
typedef enum kind { TAME, SPECIAL, WILD, KINDS } kind;

static inline gr_real draw_number(kind of) {
#ifdef GR_DOUBLE
    const gr_real odd[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 1, -1, DBL_MAX, -DBL_MAX, DBL_MIN, -DBL_MIN / 8, 5e-324};
    enum { EXPONENTS = 2000 };
#else
    const gr_real odd[] = {NAN, INFINITY, -INFINITY, 0, -0.0f, 1, -1, FLT_MAX, -FLT_MAX, FLT_MIN, -FLT_MIN / 8, 1e-45f};
    enum { EXPONENTS = 250 };
#endif
    enum { ODD = sizeof odd / sizeof odd[0], WITHOUT_SIZES = 7 };
    double u = 6 * gr_rng_uniform(&rng) - 3;
    uint64_t choice = gr_rng_below(&rng, 16);
    if (of == TAME || choice > 3) return (gr_real)u;
    if (choice > 1 && of == WILD) return (gr_real)ldexp(u, (int)gr_rng_below(&rng, EXPONENTS) - EXPONENTS / 2);
    return odd[gr_rng_below(&rng, of == WILD ? ODD : WITHOUT_SIZES)];
}

static inline void draw_numbers(size_t n, gr_real *out, kind of) {
    for (size_t i = 0; i < n; i++) out[i] = draw_number(of);
}

/* Equal bit for bit, or nearly for the table that rounds differently. */
static inline void expect_same(const gr_kernels *k, const char *what, size_t n, const gr_real *found,
                               const gr_real *wanted) {
    for (size_t i = 0; i < n; i++) {
        bool same = found[i] == wanted[i] || (found[i] != found[i] && wanted[i] != wanted[i]);
        if (k->exact) same = same && (found[i] != found[i] || memcmp(&found[i], &wanted[i], sizeof *found) == 0);
        double error = fabs((double)found[i] - (double)wanted[i]);
        if (!k->exact) same = same || error <= 10 * TOLERANCE * (1 + fabs((double)wanted[i]));
        if (!same)
            ck_abort_msg("%s, %s: element %zu of %zu is %.17g, not %.17g", k->name, what, i, n, (double)found[i],
                         (double)wanted[i]);
    }
}

#endif
