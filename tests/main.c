/* check: runs the suites but for those that WITHOUT names, each test in a process of its own; CK_RUN_SUITE: one. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A new suite is a file tests/suite_NAME.c with a function NAME_suite, and a name here. */
/* clang-format off */
#define SUITES(X)                                                            \
    X(tensor) X(views) X(random) X(print)                                    \
    X(kernels) X(sums) X(matmul) X(threads) X(concurrent) X(guard) X(memory) X(steps) \
    X(faults_memory) X(faults_files)                                         \
    X(ops) X(products) X(rows) X(conventions)                                \
    X(autograd) X(gradients) X(errors) X(refusals) X(depth)                  \
    X(layers) X(gpt) X(nn_refusals)                                          \
    X(attention) X(linear_attention) X(rotary) X(mask) X(mask_refusals)      \
    X(fused) X(fused_hidden) X(fused_bits) X(in_place)                       \
    X(optim) X(schedule) X(text) X(corpus) X(generate) X(training)           \
    X(checkpoint) X(loading) X(nanogpt) X(saving) X(state)                   \
    X(profile) X(explain) X(bench) X(conform)
/* clang-format on */

#define DECLARE(name) Suite *name##_suite(void);
SUITES(DECLARE)

/* WITHOUT: names, each between blanks (tests/run.sh). */
static int left_out(const char *suite) {
    const char *names = getenv("WITHOUT");
    char name[64];
    snprintf(name, sizeof name, " %s ", suite);
    return names && strstr(names, name);
}

int main(void) {
    SRunner *runner = srunner_create(NULL);
#define ADD(name) \
    if (!left_out(#name)) srunner_add_suite(runner, name##_suite());
    SUITES(ADD)
    srunner_run(runner, NULL, NULL, CK_NORMAL);
    int failed = srunner_ntests_failed(runner), ran = srunner_ntests_run(runner);
    srunner_free(runner);
    return failed == 0 && ran > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
