/* Learning rates: schedules at their corners. */
#include "support.h"

TEST(a_cosine_has_its_corners) {
    const gr_cosine_config c = {.peak = 1e-3, .warmup = 100, .total = 2000};
    const struct {
        int64_t step;
        double rate;
    } corner[] = {{-5, 1e-5},  {0, 1e-5},      {49, 5e-4},   {99, 1e-3},
                  {100, 1e-3}, {1050, 5.5e-4}, {2000, 1e-4}, {99999, 1e-4}};
    for (size_t i = 0; i < sizeof corner / sizeof *corner; i++)
        ck_assert_double_eq_tol(gr_cosine(corner[i].step, c), corner[i].rate, 1e-15);
    ck_assert_double_gt(gr_cosine(1999, c), 1e-4); /* the last step of the run has not quite reached it */
    ck_assert_double_eq_tol(gr_cosine(1999, c), 1e-4, 1e-8);
}

TEST(a_schedule_rises_then_falls_and_is_never_0) {
    const gr_cosine_config c = {.peak = 1e-3, .warmup = 100, .total = 2000};
    const gr_schedule_config l = {.peak = 1e-3, .warmup = 100, .total = 2000};
    for (int64_t step = 0; step < 2500; step++) {
        DEMAND(gr_cosine(step, c) > 0 && gr_linear_decay(step, l) > 0);
        if (step == 0) continue;
        const bool rises = step < 100;
        DEMAND(rises ? gr_cosine(step, c) > gr_cosine(step - 1, c) : gr_cosine(step, c) <= gr_cosine(step - 1, c));
        DEMAND(rises ? gr_linear_decay(step, l) > gr_linear_decay(step - 1, l)
                     : gr_linear_decay(step, l) <= gr_linear_decay(step - 1, l));
    }
}

TEST(a_line_has_its_corners) {
    const gr_schedule_config l = {.peak = 1, .min = 0.5, .warmup = 4, .total = 14};
    const double rate[] = {0.25, 0.5, 0.75, 1, 1, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.5};
    for (int step = 0; step < 16; step++) ck_assert_double_eq_tol(gr_linear_decay(step, l), rate[step], 1e-15);
}

TEST(schedules_may_lack_a_warmup_or_an_end) {
    ck_assert_double_eq(gr_constant(5, 3), 3);
    ck_assert_double_eq(gr_cosine(0, (gr_cosine_config){.peak = 1, .total = 10}), 1);
    ck_assert_double_eq(gr_cosine(1000000, (gr_cosine_config){.peak = 1, .warmup = 10}), 1);
    ck_assert_double_eq(gr_linear_decay(50, (gr_schedule_config){.peak = 2}), 2);
    ck_assert_double_eq(gr_cosine(5, (gr_cosine_config){.peak = 1, .warmup = 5, .total = 5}), 0.1);
    ck_assert_double_eq(gr_cosine(4, (gr_cosine_config){.peak = 1, .warmup = 5, .total = 5}), 1);
    ck_assert_double_eq(gr_cosine(9, (gr_cosine_config){.peak = 1, .min = 1, .total = 10}), 1);
}

TEST(a_warmup_below_0_is_none) {
    const gr_schedule_config c = {.peak = 1, .min = 0.5, .warmup = -3, .total = 10};
    ck_assert_double_eq(gr_linear_decay(0, c), 1);
    ck_assert_double_eq(gr_linear_decay(-7, c), 1);
    ck_assert_double_eq(gr_linear_decay(5, c), 0.75);
}

Suite *schedule_suite(void) {
    Suite *suite = suite_create("schedule");
    GROUP(suite, "schedules", a_cosine_has_its_corners, a_schedule_rises_then_falls_and_is_never_0,
          a_line_has_its_corners, schedules_may_lack_a_warmup_or_an_end, a_warmup_below_0_is_none);
    return suite;
}
