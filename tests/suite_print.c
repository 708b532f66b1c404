/* Printing, as numpy does: exact texts. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void expect_print(int line, gr_tensor *x, const char *wanted) {
    static char text[8192];
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    gr_fprint(file, x);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    ck_assert_msg(contains(text, wanted) && contains(wanted, text), "line %d: printed\n%s\nnot\n%s", line, text,
                  wanted);
}
#define EXPECT_PRINT(x, wanted) expect_print(__LINE__, x, wanted)

TEST(a_scalar_is_a_number) {
    EXPECT_PRINT(gr_scalar(ctx, 2.5), "()\n2.5\n");
    EXPECT_PRINT(gr_named(gr_scalar(ctx, -3), "loss"), "loss ()\n-3\n");
}

TEST(a_vector_is_one_row) {
    EXPECT_PRINT(counting(GR_SHAPE(4)), "(4,)\n[0 1 2 3]\n");
    EXPECT_PRINT(gr_full(ctx, GR_SHAPE(1), 7), "(1,)\n[7]\n");
}

TEST(numbers_are_aligned_to_the_longest) {
    EXPECT_PRINT(tensor(GR_SHAPE(2, 2), NUMBERS(1, -22.5, 333, 4)), "(2, 2)\n[[    1 -22.5]\n [  333     4]]\n");
}

TEST(four_digits_are_shown) {
    EXPECT_PRINT(tensor(GR_SHAPE(4), NUMBERS(3.14159265, 123456, 1e-7, 0.5)),
                 "(4,)\n[    3.142 1.235e+05     1e-07       0.5]\n");
}

TEST(numbers_that_are_none_are_named) {
    EXPECT_PRINT(tensor(GR_SHAPE(3), NUMBERS(INFINITY, -INFINITY, 1)), "(3,)\n[ inf -inf    1]\n");
    EXPECT_PRINT(gr_full(ctx, GR_SHAPE(1), fabs(NAN)), "(1,)\n[nan]\n");
}

TEST(a_matrix_has_a_line_per_row) {
    EXPECT_PRINT(gr_named(counting(GR_SHAPE(2, 3)), "q"), "q (2, 3)\n[[0 1 2]\n [3 4 5]]\n");
    EXPECT_PRINT(gr_transpose(counting(GR_SHAPE(2, 3)), 0, 1), "(3, 2)\n[[0 3]\n [1 4]\n [2 5]]\n");
}

TEST(matrices_are_separated_by_an_empty_line) {
    EXPECT_PRINT(counting(GR_SHAPE(2, 2, 2)), "(2, 2, 2)\n[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]\n");
}

TEST(a_4_dimensional_tensor_has_two_empty_lines) {
    EXPECT_PRINT(counting(GR_SHAPE(2, 1, 1, 2)), "(2, 1, 1, 2)\n[[[[0 1]]]\n\n\n [[[2 3]]]]\n");
}

TEST(a_tensor_without_elements_is_a_pair_of_brackets) {
    EXPECT_PRINT(gr_zeros(ctx, GR_SHAPE(0)), "(0,)\n[]\n");
    EXPECT_PRINT(gr_zeros(ctx, GR_SHAPE(3, 0)), "(3, 0)\n[]\n");
}

TEST(a_thousand_elements_are_shown_and_more_are_not) {
    EXPECT_PRINT(counting(GR_SHAPE(1001)), "(1001,)\n[   0    1    2 ...  998  999 1000]\n");
    EXPECT_PRINT(gr_slice(counting(GR_SHAPE(2500)), 0, 0, GR_END, 2), "(1250,)\n[   0    2    4 ... 2494 2496 2498]\n");
    char text[8192];
    size_t at = (size_t)snprintf(text, sizeof text, "(1000,)\n[");
    for (int i = 0; i < 1000; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%3d%s", i, i < 999 ? " " : "]\n");
    EXPECT_PRINT(counting(GR_SHAPE(1000)), text);
}

TEST(long_axes_are_shortened_and_short_ones_are_not) {
    EXPECT_PRINT(counting(GR_SHAPE(2, 600)),
                 "(2, 600)\n[[   0    1    2 ...  597  598  599]\n [ 600  601  602 ... 1197 1198 1199]]\n");
    EXPECT_PRINT(gr_zeros(ctx, GR_SHAPE(600, 2)), "(600, 2)\n[[0 0]\n [0 0]\n [0 0]\n ...\n [0 0]\n [0 0]\n [0 0]]\n");
    EXPECT_PRINT(gr_zeros(ctx, GR_SHAPE(1100, 1, 1)),
                 "(1100, 1, 1)\n[[[0]]\n\n [[0]]\n\n [[0]]\n\n ...\n\n [[0]]\n\n [[0]]\n\n [[0]]]\n");
}

TEST(an_inert_tensor_shows_its_error) {
    gr_tensor *inert = gr_add(counting(GR_SHAPE(2)), counting(GR_SHAPE(3)));
    EXPECT_PRINT(inert, "(inert) add: a (2,), b (3,): shapes do not broadcast\n");
    EXPECT_PRINT(NULL, "(inert) \n");
}

TEST(printing_keeps_the_error) {
    ck_assert(gr_is_inert(gr_reshape(gr_scalar(ctx, 1), GR_SHAPE(2))));
    FILE *file = tmpfile();
    gr_fprint(file, gr_scalar(ctx, 1));
    fclose(file);
    ck_assert(!gr_ok(ctx));
}

TEST(print_writes_to_the_screen) {
    FILE *screen = tmpfile();
    ck_assert(screen && dup2(fileno(screen), STDOUT_FILENO) == STDOUT_FILENO);
    gr_print(gr_scalar(ctx, 2.5));
    fflush(stdout);
    char text[32] = "";
    rewind(screen);
    ck_assert_uint_eq(fread(text, 1, sizeof text - 1, screen), strlen("()\n2.5\n"));
    ck_assert_str_eq(text, "()\n2.5\n");
    fclose(screen);
}

TEST(printing_to_no_file_is_no_error) {
    gr_fprint(NULL, gr_scalar(ctx, 1));
    ck_assert(gr_ok(ctx));
}

Suite *print_suite(void) {
    Suite *suite = suite_create("print");
    GROUP(suite, "print", a_scalar_is_a_number, a_vector_is_one_row, numbers_are_aligned_to_the_longest,
          four_digits_are_shown, numbers_that_are_none_are_named, a_matrix_has_a_line_per_row,
          matrices_are_separated_by_an_empty_line, a_4_dimensional_tensor_has_two_empty_lines,
          a_tensor_without_elements_is_a_pair_of_brackets, a_thousand_elements_are_shown_and_more_are_not,
          long_axes_are_shortened_and_short_ones_are_not, an_inert_tensor_shows_its_error, printing_keeps_the_error,
          print_writes_to_the_screen, printing_to_no_file_is_no_error);
    return suite;
}
