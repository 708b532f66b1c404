#include "check.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 4 }; /* Check's limit of a test */

/* A runner has suites, a suite has groups, a group has tests. */
struct ck_node {
    const char *name, *tag;
    const TTest *test;
    int first, end; /* of _i */
    int signal;     /* by which the test must end; 0: none */
    double seconds;
    void (*before)(void), (*after)(void);
    int ran, failures, errors; /* an error: ended by a signal, or too late */
    struct ck_node *inside, *last, *next;
};

static struct ck_node *copy_of(struct ck_node values) {
    struct ck_node *node = malloc(sizeof *node);
    if (!node) abort();
    *node = values;
    return node;
}

static void append(struct ck_node *to, struct ck_node *node) {
    *(to->inside ? &to->last->next : &to->inside) = node;
    to->last = node;
}

Suite *suite_create(const char *name) { return copy_of((Suite){.name = name}); }
TCase *tcase_create(const char *name) { return copy_of((TCase){.name = name, .seconds = SECONDS}); }
void suite_add_tcase(Suite *suite, TCase *group) { append(suite, group); }
void tcase_set_timeout(TCase *group, double seconds) { group->seconds = seconds; }
void tcase_set_tags(TCase *group, const char *tag) { group->tag = tag; }
void tcase_add_checked_fixture(TCase *group, void (*before)(void), void (*after)(void)) {
    group->before = before, group->after = after;
}
void tcase_add_test(TCase *group, const TTest *test) { tcase_add_loop_test(group, test, 0, 1); }
void tcase_add_loop_test(TCase *group, const TTest *test, int first, int end) {
    append(group, copy_of((struct ck_node){.test = test, .first = first, .end = end}));
}
void tcase_add_test_raise_signal(TCase *group, const TTest *test, int signal) {
    append(group, copy_of((struct ck_node){.test = test, .end = 1, .signal = signal}));
}

/* -- Running ------------------------------------------------------------------------------------------------------- */

void ck_fail(const char *file, int line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    printf("%s:%d: ", file, line);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
    _exit(EXIT_FAILURE);
}

static _Noreturn void run_here(const TCase *group, const TTest *test, int i) {
    const char *times = getenv("CK_TIMEOUT_MULTIPLIER");
    alarm((unsigned)(group->seconds * (times ? strtod(times, NULL) : 1)));
    if (group->before) group->before();
    test->run(i);
    if (group->after) group->after();
    exit(EXIT_SUCCESS);
}

static void run_one(SRunner *runner, const TCase *group, const struct ck_node *entry, int i) {
    int status = 0;
    fflush(NULL); /* else the child would write it, too */
    const pid_t child = fork();
    if (child == 0) run_here(group, entry->test, i);
    if (child < 0 || waitpid(child, &status, 0) != child) abort();
    runner->ran++;
    const int ended_by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (ended_by == entry->signal && (ended_by || WEXITSTATUS(status) == EXIT_SUCCESS)) return;
    *(ended_by ? &runner->errors : &runner->failures) += 1;
    printf("%s:%d:%s:%s:%d: ", entry->test->file, entry->test->line, group->name, entry->test->name, i);
    printf(ended_by == SIGALRM ? "too slow\n" : ended_by ? "ended by signal %d\n" : "failed\n", ended_by);
}

SRunner *srunner_create(Suite *suite) {
    SRunner *runner = copy_of((SRunner){.name = "all"});
    if (suite) append(runner, suite);
    return runner;
}

void srunner_add_suite(SRunner *runner, Suite *suite) { append(runner, suite); }

void srunner_run(SRunner *runner, const char *only, const char *group, print_output mode) {
    (void)group, (void)mode;
    const char *without = getenv("CK_EXCLUDE_TAGS");
    if (!only) only = getenv("CK_RUN_SUITE");
    for (const Suite *suite = runner->inside; suite; suite = suite->next)
        for (const TCase *g = only && strcmp(only, suite->name) != 0 ? NULL : suite->inside; g; g = g->next)
            for (const struct ck_node *e = without && g->tag && strcmp(without, g->tag) == 0 ? NULL : g->inside; e;
                 e = e->next)
                for (int i = e->first; i < e->end; i++) run_one(runner, g, e, i);
    const int failed = srunner_ntests_failed(runner);
    printf("%d%%: Checks: %d, Failures: %d, Errors: %d\n",
           100 * (runner->ran - failed) / (runner->ran ? runner->ran : 1), runner->ran, runner->failures,
           runner->errors);
}

int srunner_ntests_failed(SRunner *runner) { return runner->failures + runner->errors; }
int srunner_ntests_run(SRunner *runner) { return runner->ran; }

static void free_inside(struct ck_node *node, void (*free_one)(struct ck_node *)) {
    for (struct ck_node *n = node->inside, *next; n; n = next) {
        next = n->next;
        if (free_one) free_one(n);
        free(n);
    }
}
static void free_group(TCase *group) { free_inside(group, NULL); }
static void free_suite(Suite *suite) { free_inside(suite, free_group); }
void srunner_free(SRunner *runner) {
    free_inside(runner, free_suite);
    free(runner);
}
