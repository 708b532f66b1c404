/* What `bench attention` says of memory is what the process takes. */
#include "bench_support.h"
#include "support.h"

#include <sys/resource.h>

static double peak_mib(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
    return (double)usage.ru_maxrss / (1 << 20);
#else
    return (double)usage.ru_maxrss / (1 << 10);
#endif
}

static attention_job job_of(attention_kind kind, long n) {
    return attention_job_new(
        ctx, (attention_case){.kind = (long)kind, .n = n, .d = 32, .heads = 1, .batch = 1, .window = 128});
}

/* The pages of a block's end, of a sanitizer, of a huge page: what the process may take beyond, or had already. */
static const double slack_mib = 8, slack = 1.25;

static void expect_grown(attention_kind kind, long n) {
    attention_job small = job_of(kind, 8);
    attention_extra_bytes(&small); /* packing buffers and threads are there from now on */
    attention_job job = job_of(kind, n);
    const double before = peak_mib();
    const double extra = (double)attention_extra_bytes(&job) / (1 << 20), grown = peak_mib() - before;
    ck_assert(gr_ok(ctx));
    ck_assert_double_le(grown, slack * extra + slack_mib);
    ck_assert_double_ge(grown, extra / slack - slack_mib);
}

/* Scores, weights, mask and two gradients of 1500 x 1500, 43 MiB in float; and a fraction of one, n = 6000. */
TEST(extra_memory_is_what_the_process_grows_by) {
    expect_grown(FUSED, 6000);
    expect_grown(TEXTBOOK, 1500);
}

TEST(extra_memory_is_counted_by_hand) {
    attention_job small = job_of(TEXTBOOK, 100), large = job_of(TEXTBOOK, 200);
    const double grown = (double)attention_extra_bytes(&large) - (double)attention_extra_bytes(&small);
    const double five = 5.0 * (200 * 200 - 100 * 100) * sizeof(gr_real); /* mask, scores, weights, two gradients */
    ck_assert_double_ge(grown, five);
    ck_assert_double_le(grown, five + 1000); /* arenas hand out lines of 64 bytes */
}

TEST(visible_pairs_are_counted_by_hand) {
    attention_job causal = job_of(FUSED, 300), window = job_of(WINDOW, 300), sparse = job_of(SPARSE, 300);
    ck_assert_double_eq(attention_visible_pairs(&causal), 300 * 301 / 2);
    ck_assert_double_eq(attention_visible_pairs(&window), 128 * 129 / 2 + (300 - 128) * 128);
    /* 256 keys to a group: the second sees its own and, of the first, the last block of 64. */
    ck_assert_double_eq(attention_visible_pairs(&sparse), 256 * 257 / 2 + 44 * 45 / 2 + 44 * 64);
}

Suite *bench_suite(void) {
    Suite *suite = suite_create("bench");
    GROUP(suite, "attention", extra_memory_is_what_the_process_grows_by, extra_memory_is_counted_by_hand,
          visible_pairs_are_counted_by_hand);
    return suite;
}
