/* Stand-in for the test library Check (libcheck.github.io/check) on targets where it is not packaged, musl and the
 * emulated processors: the words of it that the suites use, under its names. `make CHECK_HEADER=tests/check` takes it;
 * else nothing here is compiled. As there, a test is a process of its own that ends within a time limit. */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <inttypes.h>
#include <string.h>

/* -- Tests, and what holds them ------------------------------------------------------------------------------------ */

typedef struct TTest {
    const char *name;
    void (*run)(int i);
    const char *file;
    int line;
} TTest;
typedef struct ck_node TCase, Suite, SRunner; /* Check tells them apart */

#define START_TEST(test)                                                    \
    static void test##_run(int _i __attribute__((unused)));                 \
    static const TTest test##_is = {#test, test##_run, __FILE__, __LINE__}; \
    static const TTest *const test __attribute__((unused)) = &test##_is;    \
    static void test##_run(int _i __attribute__((unused)))

Suite *suite_create(const char *name);
TCase *tcase_create(const char *name);
void suite_add_tcase(Suite *suite, TCase *group);
void tcase_set_timeout(TCase *group, double seconds); /* times the environment's CK_TIMEOUT_MULTIPLIER */
void tcase_add_checked_fixture(TCase *group, void (*before)(void),
                               void (*after)(void)); /* one; in the test's process */
void tcase_set_tags(TCase *group, const char *tag);  /* one; left out if it is the environment's CK_EXCLUDE_TAGS */
void tcase_add_test(TCase *group, const TTest *test);
void tcase_add_loop_test(TCase *group, const TTest *test, int first, int end);
void tcase_add_test_raise_signal(TCase *group, const TTest *test, int signal);

/* Runs the suite of a name (or of CK_RUN_SUITE in the environment; neither: all). */
typedef enum { CK_NORMAL } print_output;
SRunner *srunner_create(Suite *suite);
void srunner_add_suite(SRunner *runner, Suite *suite);
void srunner_run(SRunner *runner, const char *suite, const char *group, print_output mode); /* group: NULL */
int srunner_ntests_failed(SRunner *runner);
int srunner_ntests_run(SRunner *runner);
void srunner_free(SRunner *runner);

/* -- What a test demands ------------------------------------------------------------------------------------------- */

_Noreturn void ck_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

#define ck_abort_msg(...)             ck_fail(__FILE__, __LINE__, __VA_ARGS__)
#define ck_assert_msg(condition, ...) ((condition) ? (void)0 : ck_fail(__FILE__, __LINE__, __VA_ARGS__))
#define ck_assert(condition)          ck_assert_msg(condition, "Assertion '%s' failed", #condition)

/* a and b are evaluated once. */
#define CK_COMPARE(type, format, a, op, b)                                                                          \
    do {                                                                                                            \
        type const ck_a = (a);                                                                                      \
        type const ck_b = (b);                                                                                      \
        ck_assert_msg(ck_a op ck_b, "Assertion '%s' failed: %" format ", %" format, #a " " #op " " #b, ck_a, ck_b); \
    } while (0)
#define ck_assert_int_eq(a, b)    CK_COMPARE(intmax_t, PRIdMAX, a, ==, b)
#define ck_assert_int_ne(a, b)    CK_COMPARE(intmax_t, PRIdMAX, a, !=, b)
#define ck_assert_int_lt(a, b)    CK_COMPARE(intmax_t, PRIdMAX, a, <, b)
#define ck_assert_int_le(a, b)    CK_COMPARE(intmax_t, PRIdMAX, a, <=, b)
#define ck_assert_int_gt(a, b)    CK_COMPARE(intmax_t, PRIdMAX, a, >, b)
#define ck_assert_int_ge(a, b)    CK_COMPARE(intmax_t, PRIdMAX, a, >=, b)
#define ck_assert_uint_eq(a, b)   CK_COMPARE(uintmax_t, PRIuMAX, a, ==, b)
#define ck_assert_uint_ne(a, b)   CK_COMPARE(uintmax_t, PRIuMAX, a, !=, b)
#define ck_assert_uint_lt(a, b)   CK_COMPARE(uintmax_t, PRIuMAX, a, <, b)
#define ck_assert_uint_le(a, b)   CK_COMPARE(uintmax_t, PRIuMAX, a, <=, b)
#define ck_assert_uint_gt(a, b)   CK_COMPARE(uintmax_t, PRIuMAX, a, >, b)
#define ck_assert_uint_ge(a, b)   CK_COMPARE(uintmax_t, PRIuMAX, a, >=, b)
#define ck_assert_double_eq(a, b) CK_COMPARE(double, ".17g", a, ==, b)
#define ck_assert_double_ne(a, b) CK_COMPARE(double, ".17g", a, !=, b)
#define ck_assert_double_lt(a, b) CK_COMPARE(double, ".17g", a, <, b)
#define ck_assert_double_le(a, b) CK_COMPARE(double, ".17g", a, <=, b)
#define ck_assert_double_gt(a, b) CK_COMPARE(double, ".17g", a, >, b)
#define ck_assert_double_ge(a, b) CK_COMPARE(double, ".17g", a, >=, b)
#define ck_assert_ptr_eq(a, b)    CK_COMPARE(const void *, "p", a, ==, b)
#define ck_assert_ptr_ne(a, b)    CK_COMPARE(const void *, "p", a, !=, b)
#define ck_assert_ptr_null(a)     ck_assert((a) == NULL)
#define ck_assert_ptr_nonnull(a)  ck_assert((a) != NULL)
#define ck_assert_str_eq(a, b)    CK_TEXTS(a, ==, b)
#define ck_assert_str_ne(a, b)    CK_TEXTS(a, !=, b)
#define ck_assert_mem_eq(a, b, n) ck_assert(memcmp(a, b, n) == 0)
#define ck_assert_double_eq_tol(a, b, tolerance)                                                                  \
    do {                                                                                                          \
        const double ck_x = (a), ck_y = (b), ck_apart = ck_x > ck_y ? ck_x - ck_y : ck_y - ck_x;                  \
        ck_assert_msg(ck_apart < (tolerance), "Assertion '%s' failed: %.17g, %.17g", #a " near " #b, ck_x, ck_y); \
    } while (0)
#define CK_TEXTS(a, op, b)                                                                                \
    do {                                                                                                  \
        const char *ck_a = (a), *ck_b = (b);                                                              \
        ck_assert_msg(ck_a != NULL && ck_b != NULL && strcmp(ck_a, ck_b) op 0,                            \
                      "Assertion '%s' failed: \"%s\", \"%s\"", #a " " #op " " #b, ck_a ? ck_a : "(NULL)", \
                      ck_b ? ck_b : "(NULL)");                                                            \
    } while (0)

#endif
