/* Files that other programs wrote: every type of value, nanoGPT's state dict, JSON as it may be; and files that mean
 * harm. */
#include "nn/files.h"
#include "nn/safetensors.h"
#include "file_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROOM = 1 << 20 };

/* -- Values -------------------------------------------------------------------------------------------------------- */

/* Reads n values of a type from raw. */
static void read_as(const char *type, size_t n, const void *raw, size_t bytes, double *out) {
    char header[128];
    gr_safetensors in;
    snprintf(header, sizeof header, "{\"x\":{\"dtype\":\"%s\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}", type, n,
             bytes);
    const char *path = file_of(header, strlen(header), raw, bytes);
    gr_tensor *x = gr_zeros(ctx, GR_SHAPE((int64_t)n));
    ck_assert(gr_safetensors_open(ctx, path, &in));
    ck_assert_msg(gr_safetensors_read(&in, gr_safetensors_find(&in, "x"), x), "%s", gr_error_message(ctx));
    gr_safetensors_close(&in);
    unlink(path);
    read_values(x, out);
}

/* (-1)^sign 1.fraction 2^(exponent - bias), 0.fraction 2^(1 - bias) for the lowest exponent; IEEE 754, 3.4. */
static double by_definition(unsigned bits, int exponent_bits, int fraction_bits) {
    const unsigned fraction = bits & ((1U << fraction_bits) - 1), most = (1U << exponent_bits) - 1;
    const unsigned exponent = bits >> fraction_bits & most;
    const int bias = (1 << (exponent_bits - 1)) - 1;
    double size = ldexp(fraction + (exponent > 0 ? ldexp(1, fraction_bits) : 0),
                        (exponent > 0 ? (int)exponent : 1) - bias - fraction_bits);
    if (exponent == most) size = fraction ? (double)NAN : (double)INFINITY;
    return bits >> (exponent_bits + fraction_bits) ? -size : size;
}

TEST(every_value_of_sixteen_bits_is_read_exactly) {
    enum { ALL = 1 << 16 };
    static uint8_t raw[2 * ALL];
    static double value[ALL];
    const struct {
        const char *name;
        int exponent, fraction;
    } type[] = {{"F16", 5, 10}, {"BF16", 8, 7}};
    for (unsigned i = 0; i < ALL; i++) raw[2 * i] = (uint8_t)(i & 0xFF), raw[2 * i + 1] = (uint8_t)(i >> 8);
    for (int t = 0; t < 2; t++) {
        read_as(type[t].name, ALL, raw, sizeof raw, value);
        for (unsigned i = 0; i < ALL; i++) {
            const double wanted = by_definition(i, type[t].exponent, type[t].fraction);
            const bool same =
                isnan(wanted) ? isnan(value[i]) : value[i] == wanted && !signbit(value[i]) == !signbit(wanted);
            if (!same) ck_abort_msg("%s 0x%04x is %.17g, not %.17g", type[t].name, i, value[i], wanted);
        }
    }
}

TEST(float_and_double_values_are_read_exactly_where_gr_real_can) {
    static const float f[] = {0, -0.0F, 1, -0.1F, 1e-45F, 1.17549435e-38F, 3.40282347e38F, INFINITY, -INFINITY, NAN};
    static const double d[] = {0, -0.0, 1, -0.1, 5e-324, 2.2e-308, 1.7976931348623157e308, INFINITY, -INFINITY, NAN};
    enum { N = sizeof f / sizeof *f };
    uint8_t of_f[sizeof f], of_d[sizeof d];
    double value[N];
    for (size_t i = 0; i < N; i++) {
        uint32_t single;
        uint64_t twice;
        memcpy(&single, &f[i], sizeof single), memcpy(&twice, &d[i], sizeof twice);
        gr_store_little(single, sizeof single, of_f + i * sizeof single);
        gr_store_little(twice, sizeof twice, of_d + i * sizeof twice);
    }
    read_as("F32", N, of_f, sizeof f, value);
    for (int i = 0; i < N; i++)
        ck_assert(i == N - 1 ? isnan(value[i]) : value[i] == (double)f[i] && !signbit(value[i]) == !signbit(f[i]));
    read_as("F64", N, of_d, sizeof d, value);
    for (int i = 0; i < N; i++) ck_assert(i == N - 1 ? isnan(value[i]) : value[i] == (double)(gr_real)d[i]);
}

TEST(values_that_are_no_numbers_of_a_model_are_refused) {
    static const char header[] = "{\"x\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[0,16]}}";
    gr_safetensors in;
    const char *path = file_of(header, sizeof header - 1, NULL, 16);
    ck_assert(gr_safetensors_open(ctx, path, &in));
    gr_safetensors_read(&in, gr_safetensors_find(&in, "x"), gr_zeros(ctx, GR_SHAPE(2)));
    EXPECT_ERROR("x (2,): values of type I64; they can be F16, BF16, F32 or F64");
    ck_assert(!gr_safetensors_read(&in, gr_safetensors_find(&in, "x"), gr_zeros(ctx, GR_SHAPE(3))));
    EXPECT_ERROR("the file has the shape (2,), the model (3,)");
    gr_safetensors_close(&in);
    unlink(path);
}

/* -- JSON ---------------------------------------------------------------------------------------------------------- */

#define U8_OF_0 ":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}"

TEST(strings_have_all_escapes_of_json) {
    static const char header[] =
        "{ \"__metadata__\" : {\"\\\"\\\\\\/\\b\\f\\n\\r\\t\":\"\\u0041\\u00e9\\u20AC\\ud83d\\uDe00\"},\t"
        "\"\\u0074r\xC3\xA9s\"" U8_OF_0 "}\r\n  ";
    gr_safetensors in;
    const char *path = file_of(header, sizeof header - 1, NULL, 0);
    ck_assert_msg(gr_safetensors_open(ctx, path, &in), "%s", gr_error_message(ctx));
    ck_assert_str_eq(gr_safetensors_note(&in, "\"\\/\b\f\n\r\t"), "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
    ck_assert_ptr_nonnull(gr_safetensors_find(&in, "tr\xC3\xA9s"));
    gr_safetensors_close(&in);
    unlink(path);
}

TEST(names_and_notes_may_hold_any_byte) {
    const char *path = temporary_file("", 0);
    gr_tensor *x = counting(GR_SHAPE(2)), *y = gr_zeros(ctx, GR_SHAPE(2));
    const gr_note note = {"a \"note\"", "line\n\ttab \\ \x01"};
    const gr_safetensors_entry entry = {"x\r\"\\", x};
    gr_safetensors in;
    ck_assert(gr_safetensors_write(ctx, path, (gr_safetensors_content){&note, 1, &entry, 1}));
    ck_assert_msg(gr_safetensors_open(ctx, path, &in), "%s", gr_error_message(ctx));
    ck_assert_str_eq(gr_safetensors_note(&in, note.key), note.value);
    const gr_stored *stored = gr_safetensors_find(&in, entry.name);
    ck_assert_ptr_nonnull(stored);
    ck_assert(gr_safetensors_read(&in, stored, y));
    EXPECT(y, 0, 1);
    gr_safetensors_close(&in);
    unlink(path);
}

/* A tensor with its offsets, and what makes two of them. */
#define X(name, type, shape, begin, end) \
    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":[" shape "],\"data_offsets\":[" begin "," end "]}"

static const struct {
    const char *header, *message;
    size_t values; /* bytes */
} hostile[] = {
    {"", "header, character 0: expected '{'", 0},
    {"null", "header, character 0: expected '{'", 0},
    {"{\"x\":{\"dtype\":[[[[[[[[[[[[[[[[[[[[", "of x: expected '\"'", 0},
    {"{\"x\":[{\"y\":", "of x: expected '{'", 0},
    {"{\"x", "expected the end of a string", 0},
    {"{\"x\\", "expected one of \"\\/bfnrtu after a backslash", 0},
    {"{\"\\x\"", "expected one of \"\\/bfnrtu after a backslash", 0},
    {"{\"\\u12", "expected four hexadecimal digits after \\u", 0},
    {"{\"\\u12g4\"", "expected four hexadecimal digits after \\u", 0},
    {"{\"\\u0000\"" U8_OF_0 "}", "expected another character than NUL", 0},
    {"{\"\\ud83d\"" U8_OF_0 "}", "expected a low surrogate after a high one", 0},
    {"{\"\\ud83d\\u0041\"" U8_OF_0 "}", "expected a low surrogate after a high one", 0},
    {"{\"\\ude00\"" U8_OF_0 "}", "expected a high surrogate before this low one", 0},
    {"{\"a\nb\"" U8_OF_0 "}", "expected a string without control characters", 0},
    {"{\"x\"" U8_OF_0 "} x", "expected nothing after the last }", 0},
    {"{\"x\"" U8_OF_0 ",}", "expected '\"'", 0},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", "expected no second __metadata__", 0},
    {"{\"__metadata__\":{\"a\":\"1\",\"b\":\"2\",\"a\":\"1\"}}", "metadata: \"a\" is there twice", 0},
    {"{\"__metadata__\":{\"a\":1}}", "expected '\"'", 0},
    {"{" X("x", "F32", "1", "0", "4") "," X("x", "F32", "2", "4", "12") "}", "x is there twice: (", 12},
    {"{\"x\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[0]}}", "of x: expected another field than before", 0},
    {"{\"x\":{\"dtype\":\"U8\",\"shape\":[0]}}", "of x: expected ','", 0},
    {"{\"x\":{\"dtype\":\"U8\",\"size\":[0]}}", "of x: expected dtype, shape or data_offsets before this", 0},
    {"{" X("x", "Q7", "1", "0", "4") "}", "x: values of type Q7, which is none that is known", 4},
    {"{" X("x", "F32", "1,1,1,1,1,1,1", "0", "4") "}", "of x: expected a shorter list", 4},
    {"{" X("x", "F32", "-1", "0", "4") "}", "of x: expected a whole number", 4},
    {"{" X("x", "F32", "1.5", "0", "4") "}", "of x: expected ']'", 4},
    {"{" X("x", "F32", "01", "0", "4") "}", "of x: expected a number without leading zeros", 4},
    {"{" X("x", "F32", "9223372036854775808", "0", "4") "}", "of x: expected a number below 2^63", 4},
    {"{" X("x", "F32", "1", "0", "4,4") "}", "of x: expected a shorter list", 4},
    {"{" X("x", "F32", "4294967296,4294967296", "0", "0") "}", "x: offsets 0 to 0 do not fit F32 values of the shape",
     0},
    {"{" X("x", "F64", "4611686018427387904", "0", "0") "}", "x: offsets 0 to 0 do not fit F64 values of the shape", 0},
    {"{" X("x", "F32", "2,3", "0", "20") "}", "x: offsets 0 to 20 do not fit F32 values of the shape (2, 3)", 20},
    {"{" X("x", "F32", "2", "8", "0") "}", "x: offsets 8 to 0 do not fit F32 values of the shape (2,)", 8},
    {"{" X("x", "F32", "2", "0", "8") "," X("y", "F32", "2", "4", "12") "}",
     "y (2,): begins at byte 4, the tensor before it ends at 8", 12},
    {"{" X("x", "F32", "2", "0", "8") "," X("y", "F32", "1", "12", "16") "}",
     "y (1,): begins at byte 12, the tensor before it ends at 8", 16},
    {"{" X("x", "F32", "2", "0", "8") "}", "x (2,): cut off; it ends at byte 8 of the values, the file has 7", 7},
    {"{" X("x", "U8", "9223372036854775807", "0", "9223372036854775807") "}", ": cut off; it ends at byte", 7},
    {"{" X("x", "F32", "2", "0", "8") "}", "9 bytes of values, by the header 8", 9},
    {"{" X("a\\u001bb\\n", "F32", "2", "0", "8") "}", "a?b? (2,): cut off", 7},
    {"{}", "the metadata have no \"layers\"", 0},
};
enum { HOSTILES = sizeof hostile / sizeof *hostile };

TEST(a_header_that_is_wrong_is_refused) {
    const char *path = file_of(hostile[_i].header, strlen(hostile[_i].header), NULL, hostile[_i].values);
    gr_tensor *before = (gr_parameter(gr_zeros(ctx, GR_SHAPE(3)), "own"), snapshot(ctx));
    gr_gpt *gpt = gr_gpt_load(ctx, path, NULL);
    ck_assert(gpt && !gpt->h && gr_parameter_count(ctx) == 1);
    EXPECT_ERROR(hostile[_i].message);
    ck_assert(same_tensors(before, snapshot(ctx)));
    unlink(path);
}

/* -- Memory -------------------------------------------------------------------------------------------------------- */

static const char *const filling[] = {"\"%06d\"" U8_OF_0 ",", "\"\":{\"", "[", "{\"a\":", " ", "\"", "\\",
                                      "\"__metadata__\":{"};
enum { FILLINGS = sizeof filling / sizeof *filling };

static void expect_little(const char *header, size_t length) {
    const char *path = file_of(header, length, NULL, 0);
    gr_context_reset(ctx);
    const size_t before = gr_context_bytes(ctx);
    gr_gpt_load(ctx, path, NULL);
    ck_assert(!gr_ok(ctx));
    gr_error_clear(ctx);
    ck_assert_uint_lt(gr_context_bytes(ctx) - before, 8 + length + (1 << 20));
    unlink(path);
}

TEST(a_huge_header_takes_no_more_than_the_file_and_a_mib) {
    static char header[ROOM / 2];
    size_t at = 0;
    header[at++] = '{';
    for (int i = 0; at + 128 < sizeof header; i++) {
        const char *text = filling[_i];
        at += (size_t)(_i == 0 ? snprintf(header + at, 128, "\"%06d\"" U8_OF_0 ",", i)
                               : snprintf(header + at, 128, "%s", text));
    }
    expect_little(header, at);
    at = (size_t)snprintf(header, sizeof header, "{\"__metadata__\":{");
    for (int i = 0; at + 128 < sizeof header; i++)
        at += (size_t)snprintf(header + at, 128, "\"%x\":\"\",", (unsigned)i);
    expect_little(header, at);
}

TEST(a_length_of_the_header_beyond_the_file_is_refused) {
    static const uint64_t length[] = {1, 100, 100000001, (uint64_t)1 << 63, UINT64_MAX, UINT64_MAX - 7};
    for (size_t i = 0; i < sizeof length / sizeof *length; i++) {
        const char *path = temporary_file(&length[i], 8);
        gr_gpt_load(ctx, path, NULL);
        EXPECT_ERROR("not a safetensors file, or cut off: a header of");
        unlink(path);
    }
    const char *path = temporary_file("1234567", 7);
    gr_gpt_load(ctx, path, NULL);
    EXPECT_ERROR("not a safetensors file: shorter than 8 bytes");
    unlink(path);
}

/* The limit of the format's own reader. The file has no block on the disk but its first. */
TEST(a_header_of_100_million_bytes_is_read_and_no_longer_one) {
    enum { MOST_HEADER = 100000000, LENGTH = 8 };
    for (int more = 0; more < 2; more++) {
        uint8_t length[LENGTH];
        gr_safetensors in;
        gr_store_little(MOST_HEADER + (uint64_t)more, LENGTH, length);
        const char *path = temporary_file(length, LENGTH);
        ck_assert_int_eq(truncate(path, LENGTH + MOST_HEADER + more), 0);
        ck_assert(!gr_safetensors_open(ctx, path, &in));
        EXPECT_ERROR(more ? "a header of 100000001 bytes" : "header, character 0: expected '{'");
        unlink(path);
    }
}

Suite *loading_suite(void) {
    Suite *suite = suite_create("loading");
    GROUP(suite, "values", every_value_of_sixteen_bits_is_read_exactly,
          float_and_double_values_are_read_exactly_where_gr_real_can,
          values_that_are_no_numbers_of_a_model_are_refused);
    GROUP(suite, "json", strings_have_all_escapes_of_json, names_and_notes_may_hold_any_byte,
          a_length_of_the_header_beyond_the_file_is_refused, a_header_of_100_million_bytes_is_read_and_no_longer_one);
    add_rows(suite, "headers", a_header_that_is_wrong_is_refused, HOSTILES);
    add_rows(suite, "memory", a_huge_header_takes_no_more_than_the_file_and_a_mib, FILLINGS);
    return suite;
}
