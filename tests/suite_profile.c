/* The profile charges every moment of a step to some row, and counts what was done. */
#include "support.h"

#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A product large enough that its time is not that of the clock. */
static void one_step(gr_tensor *w) {
    gr_tensor *x = gr_full(ctx, GR_SHAPE(100, 200), 0.5);
    gr_backward(gr_sum(gr_matmul(x, w), GR_ALL));
    gr_zero_grad(ctx);
    gr_context_reset(ctx);
}

TEST(the_rows_add_up_to_the_time_of_the_steps) {
    gr_tensor *w = gr_parameter(gr_full(ctx, GR_SHAPE(200, 300), 1), "w");
    const double begin = now();
    gr_profile_begin(ctx);
    for (int i = 0; i < 20; i++) one_step(w);
    const double whole = now() - begin;
    ck_assert_double_le(gr_profile_seconds(ctx), whole);
    ck_assert_double_ge(gr_profile_seconds(ctx), 0.95 * whole);
}

TEST(a_row_tells_calls_and_direction) {
    gr_tensor *w = gr_parameter(gr_full(ctx, GR_SHAPE(200, 300), 1), "w");
    gr_profile_begin(ctx);
    for (int i = 0; i < 3; i++) one_step(w);
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    gr_profile_print(ctx, file);
    rewind(file);
    char line[256], name[32], direction[32];
    int forward = 0, backward = 0;
    while (fgets(line, sizeof line, file)) {
        double ms, share;
        long calls;
        if (sscanf(line, "%31s %31s %lf %lf%% %ld", name, direction, &ms, &share, &calls) != 5) continue;
        if (strcmp(name, "matmul") != 0) continue;
        ck_assert_int_eq(calls, 3);
        forward += strcmp(direction, "forward") == 0;
        backward += strcmp(direction, "backward") == 0;
    }
    ck_assert_int_eq(forward, 1);
    ck_assert_int_eq(backward, 1);
    fclose(file);
}

TEST(without_a_profile_nothing_is_printed) {
    ck_assert_double_eq(gr_profile_seconds(ctx), 0);
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    gr_profile_print(ctx, file);
    ck_assert_int_eq(ftell(file), 0);
    fclose(file);
}

TEST(no_file_and_no_context_are_harmless_and_an_error_stays) {
    gr_profile_begin(ctx);
    gr_profile_print(ctx, NULL), gr_profile_print(NULL, stderr);
    ck_assert(gr_ok(ctx));
    gr_fail(ctx, "profile", "on purpose");
    gr_profile_begin(ctx);
    EXPECT_ERROR("profile: on purpose");
}

Suite *profile_suite(void) {
    Suite *suite = suite_create("profile");
    GROUP(suite, "profile", the_rows_add_up_to_the_time_of_the_steps, a_row_tells_calls_and_direction,
          without_a_profile_nothing_is_printed, no_file_and_no_context_are_harmless_and_an_error_stays);
    return suite;
}
