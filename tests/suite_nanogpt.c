/* A state dict of nanoGPT's GPT, saved to safetensors: the same names and layouts, and what its writer may add, leave
 * out, or hold in another type. And a file that is damaged anywhere. */
#include "nn/files.h"
#include "file_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROOM = 1 << 17, LENGTH = 8, VOCAB = 5, CONTEXT = 4, WIDTH = 4, LAYERS = 2 };

/* How the file is written. */
typedef struct writing {
    const char *notes; /* the inside of __metadata__ */
    const char *type;  /* F16, BF16, F32 or F64 */
    const char *mask;  /* type of the causal masks; NULL: none */
    gr_shape mask_shape;
    enum { NO_HEAD, SAME_HEAD, OTHER_HEAD, HEAD_ALONE } head;
    bool no_bias;
} writing;

#define SIZES      "\"layers\":\"2\",\"heads\":\"2\",\"width\":\"4\",\"context\":\"4\",\"vocab\":\"5\",\"gelu\":\"erf\""
#define VOCABULARY ",\"vocabulary\":\"6162636465\""

static size_t size_of(const char *type) {
    return strcmp(type, "F64") == 0 ? 8 : strstr(type, "16") ? 2 : strcmp(type, "F32") == 0 ? 4 : 1;
}

/* Values are k / 8 with |k| <= 5: exact in every type; the bits are those of a float, or cut from them. */
static void put(const char *type, double value, void *out) {
    const float f = (float)value;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    const int exponent = (int)(bits >> 23 & 0xFF) - 127 + 15;
    const uint32_t half = value == 0 ? 0 : (bits >> 31 << 15) | (uint32_t)exponent << 10 | (bits >> 13 & 0x3FF);
    const uint16_t two = (uint16_t)(strcmp(type, "F16") == 0 ? half : bits >> 16);
    const size_t size = size_of(type);
    memcpy(out, size == 2 ? (const void *)&two : size == 4 ? (const void *)&f : &value, size);
}

static void add(const char *name, const char *type, gr_tensor *x, double more) {
    static uint8_t values[ROOM];
    ck_assert((size_t)gr_numel(x) * size_of(type) <= ROOM);
    for (int64_t i = 0; i < gr_numel(x); i++)
        put(type, (double)gr_data(x)[i] + (i == 7 ? more : 0), values + (size_t)i * size_of(type));
    file_add(name, type, size_of(type), gr_shape_of(x), values);
}

/* The model's parameters as the writing says; the path. */
static const char *written(gr_gpt *gpt, writing how) {
    file_begin_with(how.notes);
    for (int i = 0; i < gpt->count; i++) {
        gr_tensor *x = gr_parameter_at(ctx, gpt->first + i);
        if (i > 0 || how.head != HEAD_ALONE) add(gr_name(x), how.type, x, 0);
    }
    for (int i = 0; how.mask && i < LAYERS; i++) {
        char name[64];
        snprintf(name, sizeof name, "transformer.h.%d.attn.bias", i);
        file_add(name, how.mask, size_of(how.mask), how.mask_shape, NULL);
    }
    if (how.head != NO_HEAD) add("lm_head.weight", how.type, gpt->wte.weight, how.head == OTHER_HEAD ? 0.5 : 0);
    return file_end();
}

static gr_gpt *model(bool bias) {
    gr_gpt *gpt = gr_gpt_new(ctx, (gr_gpt_config){.vocab = VOCAB,
                                                  .context = CONTEXT,
                                                  .layers = LAYERS,
                                                  .heads = 2,
                                                  .width = WIDTH,
                                                  .bias = bias,
                                                  .gelu = GR_GELU_ERF});
    fill_parameters();
    return gpt;
}

static const writing good[] = {
    {SIZES VOCABULARY, "F32", NULL, {0, {0}}, NO_HEAD, false},
    {SIZES VOCABULARY, "F32", NULL, {0, {0}}, NO_HEAD, true},
    {SIZES VOCABULARY, "F64", "F32", {4, {1, 1, 4, 4}}, SAME_HEAD, false},
    {SIZES VOCABULARY, "F16", "BOOL", {4, {1, 1, 4, 4}}, SAME_HEAD, true},
    {SIZES VOCABULARY, "BF16", "U8", {4, {1, 1, 4, 4}}, HEAD_ALONE, false},
    {SIZES VOCABULARY ",\"tokenizer\":\"chars\",\"format\":\"pt\"", "F32", NULL, {0, {0}}, HEAD_ALONE, true},
};
enum { GOOD = sizeof good / sizeof *good };

TEST(a_state_dict_of_nanogpt_is_this_model) {
    static const int32_t ids[] = {0, 4, 2, 2};
    gr_gpt *gpt = model(!good[_i].no_bias);
    const char *path = written(gpt, good[_i]);
    gr_tokenizer letters;
    gr_gpt *loaded = gr_gpt_load(ctx, path, &letters);
    unlink(path);
    ck_assert_msg(gr_ok(ctx), "%s", gr_error_message(ctx));
    ck_assert(letters.size == VOCAB && letters.byte[4] == 'e' && loaded->config.gelu == GR_GELU_ERF);
    ck_assert(loaded->config.bias == !good[_i].no_bias && loaded->count == gpt->count);
    for (int i = 0; i < gpt->count; i++)
        ck_assert(same_tensors(gr_parameter_at(ctx, i), gr_parameter_at(ctx, loaded->first + i)));
    const gr_tokens tokens = {ids, 1, 4};
    ck_assert(same_tensors(gr_gpt_forward(gpt, tokens), gr_gpt_forward(loaded, tokens)));
}

/* The class GPT of nanoGPT in PyTorch 1.13, in double, on ids 0 4 2 2. */
TEST(its_logits_are_those_of_pytorch) {
    static const digest with = {-0.23488308913989056, 0.04101815080879702, 3.7864501733738085},
                        without = {-0.3404704051825168, 0.22779029277712076, -0.5801603064124962};
    static const int32_t ids[] = {0, 4, 2, 2};
    EXPECT_DIGEST(gr_gpt_forward(model(_i), (gr_tokens){ids, 1, 4}), _i ? with : without);
}

TEST(a_form_of_gelu_that_is_none_is_refused) {
    gr_gpt *gpt = gr_gpt_new(ctx, (gr_gpt_config){.vocab = 5, .context = 4, .width = 4, .gelu = (gr_gelu_form)2});
    ck_assert(!gpt->h && gr_parameter_count(ctx) == 0);
    EXPECT_ERROR("gpt: GELU has no form 2");
    gr_mlp_new(ctx, "mlp", (gr_mlp_config){.width = 4, .gelu = (gr_gelu_form)-1}, &rng);
    EXPECT_ERROR("mlp: GELU has no form -1");
}

TEST(an_id_is_its_byte_where_nothing_is_said_and_there_are_256) {
    gr_gpt *gpt = gr_gpt_new(ctx, (gr_gpt_config){.vocab = 256, .context = 4, .layers = 2, .width = 4, .heads = 2});
    fill_parameters();
    const char *path = written(gpt, (writing){.notes = "\"layers\":\"2\",\"heads\":\"2\",\"width\":\"4\",\"context\":"
                                                       "\"4\",\"vocab\":\"256\",\"gelu\":\"tanh\"",
                                              .type = "F32"});
    gr_tokenizer bytes;
    ck_assert(gr_gpt_load(ctx, path, &bytes)->config.gelu == GR_GELU_TANH && gr_ok(ctx));
    ck_assert(bytes.size == 256 && bytes.id[200] == 200);
    unlink(path);
}

static const struct {
    writing how;
    const char *message;
} bad[] = {
    {{SIZES VOCABULARY, "F32", NULL, {0, {0}}, OTHER_HEAD, false},
     "lm_head.weight (5, 4) differs from transformer.wte.weight: heads that are not tied to the embedding are not "
     "supported"},
    {{SIZES VOCABULARY, "F32", "F32", {2, {4, 4}}, NO_HEAD, false},
     "transformer.h.0.attn.bias is (4, 4); by the file's own configuration it must be (1, 1, 4, 4)"},
    {{SIZES, "F32", NULL, {0, {0}}, NO_HEAD, false},
     "the metadata have no \"vocabulary\": which bytes the 5 ids are (only 256 ids need none)"},
    {{SIZES VOCABULARY ",\"bias\":\"0\"", "F32", NULL, {0, {0}}, NO_HEAD, false},
     "transformer.h.0.attn.c_attn.bias (12,) does not belong to a model of 2 layers without biases"},
    {{SIZES VOCABULARY ",\"bias\":\"1\"", "F32", NULL, {0, {0}}, NO_HEAD, true},
     "transformer.h.0.ln_1.bias (4,) is missing"},
    {{SIZES VOCABULARY ",\"bias\":\"2\"", "F32", NULL, {0, {0}}, NO_HEAD, true},
     "metadata: bias is \"2\"; it must be a whole number in [0, 1]"},
    {{SIZES VOCABULARY ",\"positions\":\"rotary\"", "F32", NULL, {0, {0}}, NO_HEAD, true},
     "transformer.wpe.weight (4, 4) does not belong to a model"},
    {{"\"layers\":\"2\",\"heads\":\"4\",\"width\":\"4\",\"context\":\"4\",\"vocab\":\"5\",\"gelu\":\"erf\"" VOCABULARY
      ",\"positions\":\"rotary\"",
      "F32",
      NULL,
      {0, {0}},
      NO_HEAD,
      true},
     ": rotary positions turn pairs: heads of size 1 are odd"},
    {{SIZES VOCABULARY ",\"attention\":\"fast\"", "F32", NULL, {0, {0}}, NO_HEAD, true},
     "metadata: attention is \"fast\"; it can be textbook, fused, ..."},
    {{SIZES ",\"vocabulary\":\"6162636564\"", "F32", NULL, {0, {0}}, NO_HEAD, true},
     "metadata: vocabulary must be 5 ascending bytes in hexadecimal"},
    {{SIZES VOCABULARY ",\"tokenizer\":\"bpe\"", "F32", NULL, {0, {0}}, NO_HEAD, true},
     "metadata: tokenizer is \"bpe\"; it can be \"chars\" or \"bytes\""},
};
enum { BAD = sizeof bad / sizeof *bad };

TEST(a_state_dict_that_is_another_model_is_refused) {
    gr_gpt *gpt = model(!bad[_i].how.no_bias);
    const char *path = written(gpt, bad[_i].how);
    ck_assert_ptr_null(gr_gpt_load(ctx, path, NULL)->h);
    EXPECT_ERROR(bad[_i].message);
    ck_assert_int_eq(gr_parameter_count(ctx), gpt->count);
    unlink(path);
}

static uint8_t file[ROOM];

/* -- Damage -------------------------------------------------------------------------------------------------------- */

TEST(a_file_cut_off_at_any_byte_is_refused_and_nothing_changes) {
    gr_gpt *gpt = model(false);
    const char *path = written(gpt, good[3]);
    gr_tensor *before = snapshot(ctx);
    for (size_t cut = file_read(path, file, ROOM); cut-- > 0;) {
        ck_assert_int_eq(truncate(path, (off_t)cut), 0);
        DEMAND(!gr_gpt_load(ctx, path, NULL)->h && !gr_ok(ctx) && contains(gr_error_message(ctx), path));
        gr_error_clear(ctx);
        gr_context_reset(ctx);
        DEMAND(gr_parameter_count(ctx) == gpt->count);
    }
    ck_assert(same_tensors(before, snapshot(ctx)));
    unlink(path);
}

/* A bit of the header turned over: an error, or a model of this size; with the sanitizers, also no misstep. */
TEST(a_header_with_a_false_bit_anywhere_does_no_harm) {
    gr_gpt *gpt = model(false);
    const char *path = written(gpt, good[3]);
    const size_t size = file_read(path, file, ROOM), end = LENGTH + (size_t)gr_load_little(file, LENGTH);
    for (size_t at = 0; at < end; at++) {
        const uint8_t bit = (uint8_t)(1 << gr_rng_below(&rng, 8));
        const char *name;
        file[at] ^= bit;
        unlink(path);
        path = temporary_file(file, size);
        file[at] ^= bit;
        gr_gpt *loaded = gr_gpt_load(ctx, path, NULL);
        name = gr_error_message(ctx);
        if (!(loaded->h ? gr_ok(ctx) && loaded->count == gpt->count : !gr_ok(ctx) && contains(name, path)))
            ck_abort_msg("byte %zu: %s", at, name);
        gr_error_clear(ctx);
        gr_context_reset(ctx);
    }
    unlink(path);
}

Suite *nanogpt_suite(void) {
    Suite *suite = suite_create("nanogpt");
    add_rows(suite, "good", a_state_dict_of_nanogpt_is_this_model, GOOD);
    add_rows(suite, "bad", a_state_dict_that_is_another_model_is_refused, BAD);
    add_rows(suite, "logits", its_logits_are_those_of_pytorch, 2); /* without biases (0), with (1) */
    GROUP(suite, "files", a_form_of_gelu_that_is_none_is_refused,
          an_id_is_its_byte_where_nothing_is_said_and_there_are_256,
          a_file_cut_off_at_any_byte_is_refused_and_nothing_changes, a_header_with_a_false_bit_anywhere_does_no_harm);
    return suite;
}
