/* The tape made visible: exact texts, and that looking changes nothing. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void show(gr_tensor *, FILE *);

static const char *shown(show *what, gr_tensor *y) {
    static char text[16384];
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    what(y, file);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void expect_shown(int line, show *what, gr_tensor *y, const char *wanted) {
    const char *text = shown(what, y);
    ck_assert_msg(strcmp(text, wanted) == 0, "line %d: shown\n%s\nnot\n%s", line, text, wanted);
}
#define EXPECT_SHOWN(what, y, wanted) expect_shown(__LINE__, what, y, wanted)

/* L = sum (x W^T + b)^2 of (2, 3), (4, 3), (4) */
static gr_tensor *small_loss(void) {
    gr_tensor *w = gr_parameter(gr_full(ctx, GR_SHAPE(4, 3), 1), "w"), *b = variable(GR_SHAPE(4), NUMBERS(0, 0, 0, 0));
    gr_tensor *x = gr_named(gr_full(ctx, GR_SHAPE(2, 3), 1), "x");
    gr_tensor *y = gr_retain_grad(gr_named(gr_add(gr_matmul(x, gr_transpose(w, 0, 1)), b), "y"));
    return gr_named(gr_sum(gr_square(y), GR_ALL), "loss");
}

TEST(a_row_tells_number_name_op_operands_shape_and_cost) {
    gr_tensor *loss = small_loss();
    ck_assert(gr_backward(loss)); /* y = 3: dy = 6, dw = 12, db = 12 */
#ifdef GR_DOUBLE
    EXPECT_SHOWN(gr_explain, loss,
                 "#  name  op         operands                  shape   FLOPs  bytes  |gradient|\n"
                 "   w     parameter                            (4, 3)            96       41.57\n"
                 "   x     constant                             (2, 3)            48\n"
                 "         variable                             (4,)              32          24\n"
                 "1        transpose  w (4, 3)                  (3, 4)      0      0\n"
                 "2        matmul     x (2, 3), #1 (3, 4)       (2, 4)     48    208\n"
                 "3  y     add        #2 (2, 4), variable (4,)  (2, 4)      8    160       16.97\n"
                 "4        square     y (2, 4)                  (2, 4)      8    128\n"
                 "5  loss  sum        #4 (2, 4)                 ()          8     72\n"
                 "   sum                                                   72    568\n");
#else
    EXPECT_SHOWN(gr_explain, loss,
                 "#  name  op         operands                  shape   FLOPs  bytes  |gradient|\n"
                 "   w     parameter                            (4, 3)            48       41.57\n"
                 "   x     constant                             (2, 3)            24\n"
                 "         variable                             (4,)              16          24\n"
                 "1        transpose  w (4, 3)                  (3, 4)      0      0\n"
                 "2        matmul     x (2, 3), #1 (3, 4)       (2, 4)     48    104\n"
                 "3  y     add        #2 (2, 4), variable (4,)  (2, 4)      8     80       16.97\n"
                 "4        square     y (2, 4)                  (2, 4)      8     64\n"
                 "5  loss  sum        #4 (2, 4)                 ()          8     36\n"
                 "   sum                                                   72    284\n");
#endif
}

TEST(the_graph_as_mermaid_has_a_box_a_tensor_and_an_arrow_an_operand) {
    gr_tensor *a = gr_named(variable(GR_SCALAR, NUMBERS(1)), "a"), *b = gr_named(gr_add(a, a), "b");
    EXPECT_SHOWN(gr_graph_mermaid, gr_mul(b, gr_full(ctx, GR_SHAPE(2), 1)),
                 "flowchart LR\n"
                 "    x1([\"a<br/>()\"])\n"
                 "    x2([\"constant<br/>(2,)\"])\n"
                 "    n1[\"b = add<br/>()\"]\n"
                 "    x1 --> n1\n"
                 "    x1 --> n1\n"
                 "    n2[\"mul<br/>(2,)\"]\n"
                 "    n1 --> n2\n"
                 "    x2 --> n2\n");
}

TEST(what_would_end_mermaids_quotes_is_spelled_out) {
    gr_tensor *x = gr_named(variable(GR_SCALAR, NUMBERS(1)), "a \"b\" <c> #1\nd");
    EXPECT_SHOWN(gr_graph_mermaid, x, "flowchart LR\n    x1([\"a #quot;b#quot; #lt;c#gt; #35;1 d<br/>()\"])\n");
}

TEST(looking_changes_nothing) {
    gr_tensor *loss = small_loss(), *w = gr_parameter_at(ctx, 0);
    const size_t bytes = gr_context_bytes(ctx);
    shown(gr_explain, loss);
    shown(gr_graph_mermaid, loss);
    ck_assert_uint_eq(gr_context_bytes(ctx), bytes);
    ck_assert(gr_backward(loss));
    EXPECT(gr_grad(w), 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12);
    shown(gr_explain, loss);
    ck_assert(!gr_backward(loss)); /* the second walk is still an error */
    EXPECT_ERROR("gone through before");
}

TEST(only_what_the_loss_depends_on_is_shown) {
    gr_tensor *a = gr_named(variable(GR_SCALAR, NUMBERS(2)), "a"), *loss = gr_square(a);
    gr_tensor *other = gr_exp(a);
    const char *text = shown(gr_explain, loss);
    ck_assert(contains(text, "square") && !contains(text, "exp"));
    text = shown(gr_explain, other);
    ck_assert(contains(text, "exp") && !contains(text, "square"));
}

TEST(an_optional_operand_that_is_absent_has_no_place) {
    gr_tensor *x = gr_named(variable(GR_SHAPE(2), NUMBERS(1, 2)), "x");
    ck_assert(contains(shown(gr_explain, gr_layernorm(x, NULL, NULL, 0)), "layernorm  x (2,)    (2,)"));
}

TEST(a_long_list_of_operands_is_cut_short) {
    gr_tensor *many[20];
    for (int i = 0; i < 20; i++) many[i] = variable(GR_SHAPE(1), NUMBERS(1));
    const char *text = shown(gr_explain, gr_concat(many, 20, 0));
    ck_assert(contains(text, "concat    variable (1,), variable (1,)") && contains(text, ", ..."));
}

TEST(with_a_profile_every_op_has_its_milliseconds) {
    gr_profile_begin(ctx);
    gr_tensor *w = gr_named(gr_requires_grad(gr_full(ctx, GR_SHAPE(200, 200), 1)), "w");
    gr_tensor *loss = gr_sum(gr_matmul(w, w), GR_ALL);
    ck_assert(gr_backward(loss));
    static char text[16384];
    char *line;
    snprintf(text, sizeof text, "%s", shown(gr_explain, loss));
    ck_assert(contains(text, "|gradient|") && contains(text, "ms\n"));
    ck_assert_ptr_nonnull(line = strstr(text, "matmul"));
    *strchr(line, '\n') = '\0';
    const double ms = atof(strrchr(line, ' '));
    ck_assert_double_gt(ms, 0);
    ck_assert_double_le(ms, 1e3 * gr_profile_seconds(ctx) + 0.001);
}

TEST(large_amounts_have_a_unit) {
    gr_tensor *w = gr_requires_grad(gr_zeros(ctx, GR_SHAPE(100, 500)));
    ck_assert(contains(shown(gr_explain, gr_matmul(w, gr_transpose(w, 0, 1))), "10M"));
}

TEST(an_inert_tensor_shows_its_error_and_null_shows_nothing) {
    EXPECT_SHOWN(gr_explain, NULL, "");
    EXPECT_SHOWN(gr_graph_mermaid, NULL, "");
    gr_explain(gr_scalar(ctx, 1), NULL);
    EXPECT_ERROR("explain: out is NULL");
    gr_tensor *bad = gr_add(counting(GR_SHAPE(2)), counting(GR_SHAPE(3)));
    EXPECT_SHOWN(gr_explain, bad, "(inert) add: a (2,), b (3,): shapes do not broadcast\n");
    EXPECT_SHOWN(gr_graph_mermaid, bad, "(inert) add: a (2,), b (3,): shapes do not broadcast\n");
}

TEST(a_huge_tensor_has_a_unit_too) {
    if (sizeof(size_t) == 4) return; /* there is none of 2^62 or 2^63 bytes */
    const char *text = shown(gr_explain, gr_expand(gr_scalar(ctx, 1), GR_SHAPE(INT64_C(1) << 60)));
    ck_assert_msg(contains(text, sizeof(gr_real) == 8 ? "9.22e+03P" : "4.61e+03P"), "%s", text);
}

TEST(a_list_of_operands_that_just_fits_is_whole) {
    char name[61];
    gr_tensor *part[2];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (int i = 0; i < 2; i++) part[i] = gr_named(gr_requires_grad(counting(GR_SHAPE(3))), name);
    const char *text = shown(gr_explain, gr_concat(part, 2, 0)); /* the second fills the cell to its end */
    ck_assert_msg(contains(text, "n (3,), nnn") && !contains(text, "..."), "%s", text);
}

TEST(a_box_without_a_name_has_op_and_shape) {
    gr_tensor *y = gr_linear(counting(GR_SHAPE(1, 3)), gr_requires_grad(counting(GR_SHAPE(2, 3))), NULL);
    const char *text = shown(gr_graph_mermaid, y);
    ck_assert_msg(contains(text, "linear<br/>(1, 2)"), "%s", text);
}

Suite *explain_suite(void) {
    Suite *suite = suite_create("explain");
    GROUP(suite, "explain", a_row_tells_number_name_op_operands_shape_and_cost,
          the_graph_as_mermaid_has_a_box_a_tensor_and_an_arrow_an_operand,
          what_would_end_mermaids_quotes_is_spelled_out, looking_changes_nothing,
          only_what_the_loss_depends_on_is_shown, an_optional_operand_that_is_absent_has_no_place,
          a_long_list_of_operands_is_cut_short, with_a_profile_every_op_has_its_milliseconds, large_amounts_have_a_unit,
          an_inert_tensor_shows_its_error_and_null_shows_nothing, a_huge_tensor_has_a_unit_too,
          a_list_of_operands_that_just_fits_is_whole, a_box_without_a_name_has_op_and_shape);
    return suite;
}
