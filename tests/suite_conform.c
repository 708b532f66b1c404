/* conform as a whole: from its arguments and a file to a file. */
#include "conform.h"

#include "autograd/registry.h"
#include "file_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* -- The file it reads --------------------------------------------------------------------------------------------- */

enum { DRAWN = 4096, CLASSES = 7 }; /* of an example: elements of a tensor at most; ids are below it */

static void add_numbers(const char *name, gr_shape shape, const double *x) {
    file_add(name, "F64", sizeof *x, shape, x);
}
#define ADD(name, shape, ...) add_numbers(name, shape, NUMBERS(__VA_ARGS__))

/* Normal numbers, every fifth 0; of a mask every third place hidden. */
static void add_drawn(const char *name, gr_shape shape) {
    static double x[DRAWN];
    static int32_t ids[DRAWN];
    static uint8_t mask[DRAWN];
    ck_assert(gr_shape_numel(shape) <= DRAWN);
    for (int64_t i = 0; i < gr_shape_numel(shape); i++) {
        x[i] = i % 5 == 4 ? 0 : gr_rng_normal(&rng);
        ids[i] = (int32_t)gr_rng_below(&rng, CLASSES);
        mask[i] = i % 3 != 1;
    }
    if (strcmp(name, "mask") == 0)
        file_add(name, "U8", sizeof *mask, shape, mask);
    else if (strcmp(name, "ids") == 0 || strcmp(name, "targets") == 0)
        file_add(name, "I32", sizeof *ids, shape, ids);
    else
        add_numbers(name, shape, x);
}

/* The word at *text, "x0=2,3", and its end; false after the last. */
static bool next_tensor(const char **text, char name[16], gr_shape *shape) {
    const char *equals = strchr(*text, '=');
    if (!equals) return false;
    snprintf(name, 16, "%.*s", (int)(equals - *text), *text);
    *shape = GR_SCALAR;
    *text = equals + 1;
    while (**text && **text != ' ') {
        char *end;
        shape->dim[shape->ndim++] = strtol(*text, &end, 10);
        *text = end + (*end == ',');
    }
    *text += **text == ' ';
    return true;
}

/* -- A call and what it gives -------------------------------------------------------------------------------------- */

enum { WORDS = 16, LINE = 512 };

static char *word[WORDS], in[32], out[32];
static int words, status;

static void run(void) { status = conform(words, word); }

/* The answers are in the file `out` until the next call; what was said is returned. */
static const char *call(const char *op, const char *keys) {
    static char line[LINE];
    strcpy(in, file_end());
    strcpy(out, temporary_file("", 0));
    snprintf(line, sizeof line, "%s %s %s %s", op, in, out, keys);
    words = 0;
    for (char *at = strtok(line, " "); at && words < WORDS; at = strtok(NULL, " ")) word[words++] = at;
    const char *said = captured_stderr(run);
    unlink(in);
    return said;
}

static void expect_done(const char *said) { ck_assert_msg(status == 0 && !*said, "status %d: %s", status, said); }

/* A tensor of the answers; NULL: there is none. */
static gr_tensor *answer(const char *name) {
    gr_safetensors file;
    ck_assert_msg(gr_safetensors_open(ctx, out, &file), "%s", gr_error_message(ctx));
    const gr_stored *t = gr_safetensors_find(&file, name);
    gr_tensor *x = t ? gr_zeros(ctx, t->shape) : NULL;
    if (t) ck_assert(t->type == (sizeof(gr_real) == sizeof(double) ? GR_F64 : GR_F32));
    if (t) ck_assert_msg(gr_safetensors_read(&file, t, x), "%s", gr_error_message(ctx));
    gr_safetensors_close(&file);
    return x;
}

#define CALL(op, keys) expect_done(call(op, keys))
#define ANSWER(name, ...)            \
    do {                             \
        gr_tensor *x = answer(name); \
        ck_assert_ptr_nonnull(x);    \
        EXPECT(x, __VA_ARGS__);      \
    } while (0)

/* -- Every op ------------------------------------------------------------------------------------------------------ */

TEST(every_op_of_the_registry_is_in_the_table) {
    int found = 0;
    for (int i = 0; i < conform_op_count; i++) found += strcmp(conform_ops[i].name, gr_ops[_i]->name) == 0;
    ck_assert_msg(found > 0, "%s is not", gr_ops[_i]->name);
}

static const char *const answers[] = {"y", "weights", "dx0", "dx1", "dx2", "dx3", "dx4"};
enum { ANSWERS = sizeof answers / sizeof *answers };

TEST(operands_that_are_not_row_major_change_no_bit) {
    const conform_op *op = &conform_ops[_i];
    gr_tensor *plain[ANSWERS];
    char name[16], gradient[20], keys[LINE / 2];
    gr_shape shape;
    file_begin();
    for (const char *at = op->tensors; next_tensor(&at, name, &shape);) add_drawn(name, shape);
    CALL(op->name, op->keys);
    for (int i = 0; i < ANSWERS; i++) plain[i] = answer(answers[i]);
    for (const char *at = op->tensors; next_tensor(&at, name, &shape);) {
        if (*name != 'x' && strcmp(name, "grad") != 0) continue;
        snprintf(gradient, sizeof gradient, "d%s", name);
        gr_tensor *like = answer(*name == 'x' ? gradient : "y");
        ck_assert_msg(like && gr_shape_equal(gr_shape_of(like), shape), "%s: %s", op->name, name);
    }
    unlink(out);
    snprintf(keys, sizeof keys, "%s strided=1", op->keys);
    CALL(op->name, keys);
    for (int i = 0; i < ANSWERS; i++) {
        gr_tensor *x = answer(answers[i]);
        ck_assert_msg(!x == !plain[i] && (!x || same_tensors(x, plain[i])), "%s: %s", op->name, answers[i]);
    }
    unlink(out);
}

/* Else strided=1 would show nothing. */
TEST(a_strided_operand_is_transposed_and_has_nan_around_it) {
    conform_call c = {.ctx = ctx, .op = &conform_ops[0], .strided = true};
    file_begin();
    ADD("x0", GR_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    ADD("x1", GR_SCALAR, 7);
    strcpy(in, file_end());
    ck_assert(gr_safetensors_open(ctx, in, &c.file) && conform_read_operands(&c));
    EXPECT(c.x[0], 1, 2, 3, 4, 5, 6);
    EXPECT(c.x[1], 7);
    EXPECT(c.leaf[1], NAN, 7, NAN, NAN);
    ck_assert(gr_stride(c.x[0], 0) == 2 && gr_stride(c.x[0], 1) == gr_dim(c.leaf[0], 1));
    int holes = 0;
    for (int64_t i = 0; i < gr_numel(c.leaf[0]); i++) holes += isnan(gr_data(c.leaf[0])[i]);
    ck_assert_int_eq(holes, gr_numel(c.leaf[0]) - 6);
    gr_safetensors_close(&c.file);
    unlink(in);
}

/* A product too small for gr_real is -0, which a view adds to 0. */
TEST(a_gradient_of_0_has_no_sign) {
    const double tiny = sizeof(gr_real) == sizeof(double) ? 0x1p-600 : 0x1p-100;
    for (int i = 0; i < 2; i++) {
        file_begin();
        ADD("x0", GR_SCALAR, 1);
        ADD("x1", GR_SCALAR, tiny);
        ADD("grad", GR_SCALAR, -tiny);
        CALL("mul", i ? "strided=1" : "");
        ANSWER("dx0", 0);
        ck_assert(!signbit(*gr_data(answer("dx0"))));
        unlink(out);
    }
}

/* -- Answers by hand ----------------------------------------------------------------------------------------------- */

TEST(a_product) {
    file_begin();
    ADD("x0", GR_SHAPE(2, 2), 1, 2, 3, 4);
    ADD("x1", GR_SHAPE(2, 1), 5, 6);
    ADD("grad", GR_SHAPE(2, 1), 1, 10);
    CALL("matmul", "");
    ANSWER("y", 17, 39);
    ANSWER("dx0", 5, 6, 50, 60);
    ANSWER("dx1", 31, 42);
    unlink(out);
}

/* keys, then y and dx of x = 1 2 3 4 5 6 in (2, 3) from grad = 1 2 3 ... */
static const struct {
    const char *op, *keys;
    gr_shape shape; /* of y */
    double y[6], dx[6];
} one[] = {
    {"scale", "value=0.5", {2, {2, 3}}, {0.5, 1, 1.5, 2, 2.5, 3}, {0.5, 1, 1.5, 2, 2.5, 3}},
    {"add_scalar", "value=0.5", {2, {2, 3}}, {1.5, 2.5, 3.5, 4.5, 5.5, 6.5}, {1, 2, 3, 4, 5, 6}},
    {"pow", "exponent=2", {2, {2, 3}}, {1, 4, 9, 16, 25, 36}, {2, 8, 18, 32, 50, 72}},
    {"dropout", "p=0 seed=1", {2, {2, 3}}, {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}},
    {"sum", "", {0, {0}}, {21}, {1, 1, 1, 1, 1, 1}},
    {"sum", "axes=-2 keepdim=1", {2, {1, 3}}, {5, 7, 9}, {1, 2, 3, 1, 2, 3}},
    {"variance", "axes=0 unbiased=0", {1, {3}}, {2.25, 2.25, 2.25}, {-1.5, -3, -4.5, 1.5, 3, 4.5}},
    {"reshape", "shape=3,2", {2, {3, 2}}, {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}},
    {"transpose", "axes=0,-1", {2, {3, 2}}, {1, 4, 2, 5, 3, 6}, {1, 3, 5, 2, 4, 6}},
    {"permute", "perm=1,0", {2, {3, 2}}, {1, 4, 2, 5, 3, 6}, {1, 3, 5, 2, 4, 6}},
    {"slice", "axis=1 start=0 stop=3 step=2", {2, {2, 2}}, {1, 3, 4, 6}, {1, 0, 2, 3, 0, 4}},
    {"slice", "axis=0 start=-1", {2, {1, 3}}, {4, 5, 6}, {0, 0, 0, 1, 2, 3}},
    {"expand", "shape=1,2,3", {3, {1, 2, 3}}, {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}},
};

TEST(keys_mean_what_they_say) {
    file_begin();
    ADD("x0", GR_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    add_numbers("grad", one[_i].shape, NUMBERS(1, 2, 3, 4, 5, 6));
    CALL(one[_i].op, one[_i].keys);
    expect_shape(__LINE__, answer("y"), one[_i].shape);
    expect_elements(__LINE__, answer("y"), TOLERANCE, (size_t)gr_shape_numel(one[_i].shape), one[_i].y);
    expect_elements(__LINE__, answer("dx0"), TOLERANCE, 6, one[_i].dx);
    unlink(out);
}

TEST(joins_are_along_the_axis) {
    file_begin();
    ADD("x0", GR_SHAPE(2), 1, 2);
    ADD("x1", GR_SHAPE(2), 3, 4);
    ADD("grad", GR_SHAPE(2, 2), 1, 2, 3, 4);
    CALL("stack", "axis=1");
    ANSWER("y", 1, 3, 2, 4);
    ANSWER("dx1", 2, 4);
    unlink(out);
}

TEST(softmax_is_along_any_axis) {
    file_begin();
    ADD("x0", GR_SHAPE(2, 3), 0, 0, 0, 0, 0, 0);
    ADD("grad", GR_SHAPE(2, 3), 1, 0, 0, 0, 0, 0);
    CALL("softmax", "axis=0");
    ANSWER("y", .5, .5, .5, .5, .5, .5);
    ANSWER("dx0", .25, 0, 0, -.25, 0, 0);
    unlink(out);
}

TEST(ids_and_targets_are_whole_numbers) {
    file_begin();
    ADD("x0", GR_SHAPE(3, 2), 1, 2, 3, 4, 5, 6);
    file_add("ids", "I32", sizeof(int32_t), GR_SHAPE(1, 3), (const int32_t[]){2, 0, 2});
    ADD("grad", GR_SHAPE(1, 3, 2), 1, 2, 3, 4, 5, 6);
    CALL("gather_rows", "");
    ANSWER("y", 5, 6, 1, 2, 5, 6);
    ANSWER("dx0", 3, 4, 0, 0, 6, 8);
    unlink(out);
    file_begin();
    ADD("x0", GR_SHAPE(2, 2), 0, 0, 0, 0);
    file_add("targets", "I32", sizeof(int32_t), GR_SHAPE(2), (const int32_t[]){-100, 1});
    ADD("grad", GR_SCALAR, 3);
    CALL("cross_entropy", "ignore=-100");
    ANSWER("dx0", 0, 0, 1.5, -1.5);
    unlink(out);
}

/* The one key that the mask shows has the value 9. */
TEST(a_mask_is_1_where_one_may_look) {
    static const char *const kinds[] = {"kind=textbook", "kind=fused"};
    file_begin();
    ADD("x0", GR_SHAPE(1, 2), 1, 2);
    ADD("x1", GR_SHAPE(2, 2), 1, 2, 3, 4);
    ADD("x2", GR_SHAPE(2, 1), 7, 9);
    file_add("mask", "U8", 1, GR_SHAPE(1, 2), (const uint8_t[]){0, 255});
    ADD("grad", GR_SHAPE(1, 1), 5);
    CALL("attention", kinds[_i]);
    ANSWER("y", 9);
    ANSWER("dx0", 0, 0);
    ANSWER("dx1", 0, 0, 0, 0);
    ANSWER("dx2", 0, 5);
    if (_i == 0)
        ANSWER("weights", 0, 1);
    else
        ck_assert_ptr_null(answer("weights"));
    unlink(out);
}

/* -- Wrong usage --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *op, *keys, *words;
    int status;
} wrong[] = {
    {"sun", "", "no op sun; conform without arguments lists them", 2},
    {"sum", "axes=0,x", "sum: axes=0,x is not a list of at most 6 numbers, such as 0,2", 2},
    {"sum", "axes=0,", "axes=0, is not a list", 2},
    {"sum", "axes=0,1,2,3,4,5,6", "is not a list of at most 6", 2},
    {"sum", "axes=0 axes=1", "axes= is there twice", 2},
    {"sum", "keepdim=2", "keepdim=2; it is 0 or 1", 2},
    {"sum", "strided=yes", "strided=yes is not a whole number", 2},
    {"sum", "axis=0", "axis=0 is not read here; an example of what is: axes=0,2 keepdim=1 strided=1", 2},
    {"sum", "axes", "\"axes\" is not of the form key=value", 2},
    {"sum", "=1", "\"=1\" is not of the form key=value", 2},
    {"scale", "", "value= is missing; an example: value=0.5", 2},
    {"scale", "value=half", "value=half is not a number", 2},
    {"scale", "value=nan", "value=nan is not a number", 2},
    {"slice", "axis=4294967296", "axis=4294967296 is not a whole number below 2^31", 2},
    {"transpose", "axes=0", "axes= names 1 axes; two are swapped", 2},
    {"variance", "unbiased=1", "unbiased=1: the sum is divided by n", 2},
    {"cross_entropy", "ignore=0", "ignore=0; what is ignored is -100", 2},
    {"attention", "kind=flash", "kind=flash is none of default, textbook, fused, window, sparse, linear", 2},
    {"attention", "kind=linear window=2", "window=2 is not read here", 2},
    {"sum", "axes=0\nsum\033", "sum: axes=0\\x0asum\\x1b is not a list", 2},
    {"su\nm", "", "no op su\\x0am;", 2},
    {"sum", "", "ids is not read by sum; for example, x0=2,3,4 grad=1,3,1 are", 1},
    {"sum", "axes=5", "sum: x (2, 3)", 1},
    {"attention_module", "", "x3 is missing; attention_module reads, for example, x0=", 1},
    {"cross_entropy", "", "targets is missing", 1},
    {"masked_softmax", "", "mask: values of type F64; they must be U8", 1},
    {"gather_rows", "", "ids (1, 1, 1); it must be (B, T)", 1},
};

TEST(what_is_wrong_is_told_in_a_line) {
    file_begin();
    for (const char *const *name = (const char *const[]){"x0", "x1", "x2", "mask", "grad", NULL}; *name; name++)
        ADD(*name, GR_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    file_add("ids", "I32", sizeof(int32_t), GR_SHAPE(1, 1, 1), (const int32_t[]){0});
    const char *said = call(wrong[_i].op, wrong[_i].keys);
    ck_assert_msg(status == wrong[_i].status && contains(said, wrong[_i].words), "%d: %s", status, said);
    ck_assert_msg(strncmp(said, "conform: ", 9) == 0 && strchr(said, '\n') == said + strlen(said) - 1, "%s", said);
    ck_assert_int_eq(unlink(out), 0);
}

TEST(usage_lists_the_ops) {
    words = 0;
    const char *said = captured_stderr(run);
    ck_assert(status == 2 && contains(said, "usage: conform OP in.safetensors out.safetensors"));
    ck_assert(contains(said, "  add               2    x0=2,3,4 x1=3,1 grad=2,3,4\n"));
}

TEST(files_that_cannot_be_read_or_written_are_named) {
    static char op[] = "neg", none[] = "/tmp/gradus-none/x";
    file_begin();
    ADD("x0", GR_SCALAR, 1);
    ADD("grad", GR_SCALAR, 1);
    strcpy(in, file_end());
    for (int i = 1; i < 3; i++) {
        word[0] = op, word[1] = word[2] = in, word[i] = none, words = 3;
        const char *said = captured_stderr(run);
        ck_assert_msg(status == 1 && contains(said, none), "%d: %s", status, said);
    }
    unlink(in);
}

Suite *conform_suite(void) {
    Suite *suite = suite_create("conform");
    add_rows(suite, "the table", every_op_of_the_registry_is_in_the_table, gr_op_count);
    add_rows(suite, "strided", operands_that_are_not_row_major_change_no_bit, conform_op_count);
    GROUP(suite, "by hand", a_strided_operand_is_transposed_and_has_nan_around_it, a_gradient_of_0_has_no_sign,
          a_product, joins_are_along_the_axis, softmax_is_along_any_axis, ids_and_targets_are_whole_numbers);
    add_rows(suite, "keys", keys_mean_what_they_say, sizeof one / sizeof *one);
    add_rows(suite, "masks", a_mask_is_1_where_one_may_look, 2);
    add_rows(suite, "wrong", what_is_wrong_is_told_in_a_line, sizeof wrong / sizeof *wrong);
    GROUP(suite, "usage", usage_lists_the_ops, files_that_cannot_be_read_or_written_are_named);
    return suite;
}
