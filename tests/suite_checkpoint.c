/* A model in a file: it comes back bit for bit, or not at all. */
#include "nn/files.h"
#include "file_support.h"
#include "hash.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VOCAB = 7, ROOM = 1 << 16, LENGTH = 8 }; /* LENGTH: bytes before the header */

static gr_gpt *model(void) {
    return gr_gpt_new(ctx,
                      (gr_gpt_config){.vocab = VOCAB, .context = 8, .layers = 2, .heads = 2, .width = 8, .bias = true});
}

/* Its path, to be removed by the test. */
static const char *saved(gr_gpt *gpt) {
    const gr_tokenizer letters = gr_tokenizer_chars((const uint8_t *)"abcdefg", VOCAB);
    const char *path = temporary_file("", 0);
    ck_assert_msg(gr_gpt_save(gpt, &letters, path), "%s", gr_error_message(ctx));
    return path;
}

TEST(a_model_comes_back_bit_for_bit_without_dropout_among_other_parameters) {
    static uint8_t first[ROOM], second[ROOM];
    gr_gpt *gpt = model();
    const char *path = saved(gpt);
    const size_t size = file_read(path, first, ROOM);
    gr_parameter(gr_zeros(ctx, GR_SHAPE(3)), "other");
    gr_tokenizer tokenizer, alone;
    gr_gpt *loaded = gr_gpt_load(ctx, path, &tokenizer);
    ck_assert_msg(gr_ok(ctx), "%s", gr_error_message(ctx));
    ck_assert(tokenizer.size == VOCAB && tokenizer.id['g'] == VOCAB - 1 && !loaded->drop.training);
    ck_assert(loaded->count == gpt->count && loaded->first == gpt->count + 1);
    ck_assert(gr_tokenizer_load(ctx, path, &alone) && memcmp(&alone, &tokenizer, sizeof alone) == 0);
    for (int i = 0; i < gpt->count; i++) {
        gr_tensor *a = gr_parameter_at(ctx, gpt->first + i), *b = gr_parameter_at(ctx, loaded->first + i);
        ck_assert(same_tensors(a, b));
        ck_assert_str_eq(gr_name(a), gr_name(b));
    }
    ck_assert(gr_gpt_save(loaded, &tokenizer, path));
    ck_assert(file_read(path, second, ROOM) == size && memcmp(first, second, size) == 0);
    unlink(path);
}

/* The hash of a file from x86-64, other after a change of the format or of the initial weights. */
TEST(a_file_has_the_same_bytes_from_every_machine) {
    static uint8_t bytes[ROOM];
    const uint64_t wanted = sizeof(gr_real) == sizeof(float) ? 0x16e37089885d8091 : 0x31173141af8b5dd8;
    const char *path = saved(model());
    const size_t size = file_read(path, bytes, ROOM);
    const uint64_t hash = hash_bytes(hash_of_nothing, bytes, size);
    unlink(path);
    ck_assert_msg(hash == wanted, "0x%llx", (unsigned long long)hash);
}

static const struct {
    const char *from, *to, *message;
} change[] = {
    {"\"layers\":\"2\"", "\"layers\":\"1999999999\"", "transformer.h.2.ln_1.weight (8,) is missing"},
    {"\"layers\":\"2\"", "\"layers\":\"3\"", "transformer.h.2.ln_1.weight (8,) is missing"},
    {"\"layers\":\"2\"", "\"layers\":\"1\"",
     "transformer.h.1.attn.c_attn.bias (24,) does not belong to a model of 1 layers"},
    {"\"width\":\"8\"", "\"width\":\"6\"",
     "transformer.wte.weight is (7, 8); by the file's own configuration it must be (7, 6)"},
    {"\"width\":\"8\"", "\"width\":\"9\"", "heads 2 does not divide width 9"},
    {"\"context\":\"8\"", "\"context\":\"9\"",
     "transformer.wpe.weight is (8, 8); by the file's own configuration it must be (9, 8)"},
    {"\"vocab\":\"7\"", "\"vocab\":\"8\"", "vocabulary must be 8 ascending bytes"},
    {"\"bias\":\"1\"", "\"bias\":\"0\"", "does not belong to a model of 2 layers without biases"},
    {"[24,8]", "[8,24]",
     "transformer.h.0.attn.c_attn.weight is (8, 24); by the file's own configuration it must be (24, 8)"},
    {"wte.weight", "wtx.weight", "transformer.wte.weight (7, 8) is missing"},
    {"ln_f.bias", "ln_g.bias", "transformer.ln_f.bias (8,) is missing"},
    {"tanh", "erf ", "gelu is \"erf \"; it can be tanh, erf"},
};
enum { CHANGES = sizeof change / sizeof *change };

/* The file with another text in its header, and with the header's length made right: its size. */
static size_t edit(uint8_t bytes[ROOM], size_t size, const char *from, const char *to) {
    const size_t length = strlen(from), other = strlen(to);
    size_t at = LENGTH;
    while (at + length < size && memcmp(bytes + at, from, length) != 0) at++;
    ck_assert(at + length < size && size + other < ROOM);
    memmove(bytes + at + other, bytes + at + length, size - at - length);
    memcpy(bytes + at, to, other);
    gr_store_little(gr_load_little(bytes, LENGTH) + other - length, LENGTH, bytes);
    return size + other - length;
}

TEST(a_file_that_does_not_agree_with_itself_is_refused_and_nothing_changes) {
    static uint8_t bytes[ROOM];
    gr_gpt *gpt = model();
    const char *path = saved(gpt);
    const size_t size = edit(bytes, file_read(path, bytes, ROOM), change[_i].from, change[_i].to);
    unlink(path);
    path = temporary_file(bytes, size);
    gr_tensor *before = snapshot(ctx);
    gr_tokenizer tokenizer;
    gr_gpt *loaded = gr_gpt_load(ctx, path, &tokenizer);
    EXPECT_ERROR(change[_i].message);
    ck_assert(loaded && !loaded->h && tokenizer.size == 0);
    ck_assert_int_eq(gr_parameter_count(ctx), gpt->count);
    ck_assert(same_tensors(before, snapshot(ctx)));
    unlink(path);
}

TEST(what_is_no_model_file_is_refused_with_its_name) {
    static uint8_t bytes[ROOM];
    gr_gpt *gpt = model();
    const gr_tokenizer letters = gr_tokenizer_chars((const uint8_t *)"abcdefg", VOCAB),
                       none = gr_tokenizer_chars(NULL, 0);
    const char *path = saved(gpt);
    const size_t size = file_read(path, bytes, ROOM);
    unlink(path);
    path = temporary_file(bytes, size - 1);
    gr_gpt_load(ctx, path, NULL);
    EXPECT_ERROR("cut off");
    unlink(path);
    gr_gpt_load(ctx, path, NULL);
    EXPECT_ERROR("cannot open: No such file or directory");
    gr_tokenizer tokenizer;
    ck_assert(!gr_tokenizer_load(ctx, path, &tokenizer) && tokenizer.size == 0);
    EXPECT_ERROR("cannot open: No such file or directory");
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    gr_gpt_load(ctx, path, NULL); /* does not wait for a writer */
    EXPECT_ERROR("is not a regular file");
    unlink(path);
    gr_gpt_load(ctx, NULL, NULL);
    EXPECT_ERROR("load: path is NULL");
    ck_assert(!gr_tokenizer_load(ctx, NULL, &tokenizer));
    EXPECT_ERROR("load: path is NULL");
    ck_assert(!gr_gpt_save(gpt, &letters, NULL));
    EXPECT_ERROR("save: path is NULL");
    ck_assert(!gr_gpt_save(gpt, &letters, "/missing/model"));
    EXPECT_ERROR("/missing/model: cannot write: No such file or directory");
    ck_assert(!gr_gpt_save(gpt, &none, "model"));
    EXPECT_ERROR("model: a tokenizer of 0 bytes for a model of 7");
    ck_assert_int_eq(gr_parameter_count(ctx), gpt->count);
}

Suite *checkpoint_suite(void) {
    Suite *suite = suite_create("checkpoint");
    GROUP(suite, "files", a_model_comes_back_bit_for_bit_without_dropout_among_other_parameters,
          a_file_has_the_same_bytes_from_every_machine, what_is_no_model_file_is_refused_with_its_name);
    add_rows(suite, "changes", a_file_that_does_not_agree_with_itself_is_refused_and_nothing_changes, CHANGES);
    return suite;
}
