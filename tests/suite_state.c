/* A run in a file: stopped and continued, it is the run that was not. */
#include "nn/files.h"
#include "file_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 20, BATCH = 3, TIME = 12 };

static const char rhyme[] = "the quick brown fox jumps over the lazy dog, and the dog sleeps on in the sun.\n";

typedef struct run {
    gr_context *c;
    gr_corpus *corpus;
    gr_gpt *gpt;
    gr_adamw *adamw;
    gr_resume at;
} run;

static run start_as(gr_gpt_config config, gr_adamw_config how) {
    run r = {.c = gr_context_new(), .at = {.rng = gr_rng_seed(7), .best = 4}};
    r.corpus = gr_corpus_from(r.c, (const uint8_t *)rhyme, sizeof rhyme - 1, GR_CHARS);
    config.vocab = gr_corpus_vocab(r.corpus);
    config.context = TIME;
    r.gpt = gr_gpt_new(r.c, config);
    r.adamw = gr_adamw_new(r.c, how);
    return r;
}

static const gr_gpt_config usual = {
    .layers = 2, .heads = 2, .width = 16, .bias = true, .dropout = 0.2, .gelu = GR_GELU_ERF, .seed = 3};

static run start(void) { return start_as(usual, (gr_adamw_config){.weight_decay = 0.1}); }

static double step(run *r) {
    const gr_batch b = gr_corpus_batch(r->corpus, GR_TRAIN, &r->at.rng, BATCH, TIME);
    gr_tensor *loss = gr_cross_entropy(gr_gpt_forward(r->gpt, b.inputs), b.targets);
    const double value = gr_item(loss);
    gr_backward(loss);
    gr_clip_grad_norm(r->c, 1);
    gr_adamw_step(r->adamw, gr_cosine(r->at.step, (gr_cosine_config){1e-2, 1e-3, 5, STEPS}));
    gr_zero_grad(r->c);
    gr_context_reset(r->c);
    ck_assert_msg(gr_ok(r->c), "%s", gr_error_message(r->c));
    r->at.step++;
    r->at.best = value < r->at.best ? value : r->at.best;
    return value;
}

static const int thread_counts[] = {1, 3};

TEST(ten_steps_and_ten_more_are_twenty_bit_for_bit) {
    use_threads(thread_counts[_i]);
    run whole = start(), first = start(), second = start();
    double loss[STEPS];
    for (int i = 0; i < STEPS; i++) loss[i] = step(&whole);
    for (int i = 0; i < STEPS / 2; i++) ck_assert(step(&first) == loss[i]);
    const char *path = temporary_file("", 0);
    ck_assert_msg(gr_state_save(first.gpt, first.adamw, first.at, path), "%s", gr_error_message(first.c));
    use_threads(thread_counts[1 - _i]); /* it goes on with another number */
    step(&second);                      /* what is loaded replaces all of it */
    ck_assert_msg(gr_state_load(second.gpt, second.adamw, &second.at, path), "%s", gr_error_message(second.c));
    unlink(path);
    gr_context_reset(second.c);
    ck_assert(second.at.step == STEPS / 2 && second.at.best == first.at.best);
    for (int i = STEPS / 2; i < STEPS; i++) ck_assert(step(&second) == loss[i]);
    ck_assert(same_tensors(snapshot(whole.c), snapshot(second.c)));
    ck_assert(memcmp(&whole.at.rng, &second.at.rng, sizeof(gr_rng)) == 0 && whole.at.best == second.at.best);
    gr_context_free(whole.c);
    gr_context_free(first.c);
    gr_context_free(second.c);
}

TEST(the_place_in_a_run_comes_back_whatever_its_numbers) {
    static const double best[] = {-0.0, 1e-310, (double)INFINITY, 0.1};
    run r = start();
    const char *path = temporary_file("", 0);
    for (size_t i = 0; i < sizeof best / sizeof *best; i++) {
        const gr_resume at = {INT64_MAX - (int64_t)i, {UINT64_MAX, 1, UINT64_MAX - 1}, best[i], (int64_t)i};
        gr_resume back = {0};
        ck_assert(gr_state_save(r.gpt, r.adamw, at, path) && gr_state_load(r.gpt, r.adamw, &back, path));
        ck_assert(back.step == at.step && back.text == at.text && memcmp(&back.rng, &at.rng, sizeof at.rng) == 0);
        ck_assert(memcmp(&back.best, &at.best, sizeof at.best) == 0);
    }
    ck_assert(gr_state_load(r.gpt, r.adamw, NULL, path));
    unlink(path);
    gr_context_free(r.c);
}

/* -- All or nothing ------------------------------------------------------------------------------------------------ */

static void expect_message(run *r, const char *part) {
    ck_assert_msg(!gr_ok(r->c) && contains(gr_error_message(r->c), part), "\"%s\" has not \"%s\"",
                  gr_error_message(r->c), part);
    gr_error_clear(r->c);
}

TEST(a_state_cut_off_anywhere_changes_nothing) {
    static uint8_t bytes[1 << 20];
    run r = start(), saved = start();
    for (int i = 0; i < 3; i++) step(&saved);
    const char *path = temporary_file("", 0);
    ck_assert(gr_state_save(saved.gpt, saved.adamw, saved.at, path));
    const size_t size = file_read(path, bytes, sizeof bytes);
    ck_assert_uint_gt(size, 1000);
    run twin = start();
    step(&r);
    step(&twin);
    for (size_t cut = size; cut > 0;) {
        cut -= cut < 4000 || cut > size - 64 ? (cut > 64 ? 7 : 1) : 1001;
        ck_assert_int_eq(truncate(path, (off_t)cut), 0);
        gr_resume at = {.step = 77};
        DEMAND(!gr_state_load(r.gpt, r.adamw, &at, path) && at.step == 77);
        expect_message(&r, path);
        gr_context_reset(r.c);
    }
    ck_assert(step(&r) == step(&twin)); /* moments, generators and weights are as they were */
    ck_assert(step(&r) == step(&twin));
    ck_assert(same_tensors(snapshot(r.c), snapshot(twin.c)));
    unlink(path);
    gr_context_free(r.c);
    gr_context_free(saved.c);
    gr_context_free(twin.c);
}

static const struct {
    const char *from, *to, *message; /* from and to: of one length */
} change[] = {
    {"[48,16]", "[16,48]", "transformer.h.0.attn.c_attn.weight: the file has the shape (16, 48), the model (48, 16)"},
    {"\"best\":\"4010", "\"best\":\"7ff8", "metadata: best is no loss: nan"},
    {"\"best\":\"4010000000000000", "\"best\":\"fff0000000000000", "metadata: best is no loss: -inf"},
    {"\"best\":\"4010000000000000", "\"best\":\"401000000000000g",
     "best is \"401000000000000g\"; it must be the 16 hexa"},
    {"\"best\":\"4010000000000000", "\"best\":\"401000000\",\"x\":\"",
     "best is \"401000000\"; it must be the 16 hexadecimal"},
    {"\"best\":\"4010000000000000", "\"best\":\" 010000000000000", "best is \" 010000000000000\"; it must be the 16"},
    {"\"best\":\"4010000000000000", "\"best\":\"\",\"x\":\"000000000", "best is \"\"; it must be the 16 hexadecimal"},
    {"\"rng\":\"7 0 0\"", "\"rng\":\"7 0  \"", "metadata: rng is \"7 0  \"; it must be seed, stream and counter"},
    {"\"rng\":\"7 0 0\"", "\"rng\":\"7 000\"", "metadata: rng is \"7 000\"; it must be seed, stream and counter"},
    {"\"rng\":\"7 0 0\"", "\"rng\":\"70000\"", "metadata: rng is \"70000\"; it must be seed, stream and counter"},
    {"\"rng\":\"7 0 0\"", "\"rng\":\"7 -10\"", "metadata: rng is \"7 -10\"; it must be seed, stream and counter"},
    {"\"rng\":\"7 0 0\"", "\"rng\":\"- 0 0\"", "metadata: rng is \"- 0 0\"; it must be seed, stream and counter"},
    {"\"rng\":\"7 0 0\"", "\"rng\":\"7 0 a\"", "metadata: rng is \"7 0 a\"; it must be seed, stream and counter"},
    {"\"rng\":\"7 0 0\"", "\"rng\":\"a 0 0\"", "metadata: rng is \"a 0 0\"; it must be seed, stream and counter"},
    {"\"rng\":\"7 0 0\",\"best\":\"40", "\"rng\":\"7 0 0x\",\"best\":\"4",
     "metadata: rng is \"7 0 0x\"; it must be seed"},
    {"\"step\":\"0\"", "\"step\":\"+\"", "metadata: step is \"+\"; it must be a whole number"},
    {"\"optimiser_step\":\"0\"", "\"optimiser_step\":\"-\"", "metadata: optimiser_step is \"-\"; it must be a whole"},
    {"\"v.transformer.wte.weight\"", "\"v.transformer.wte.height\"", "v.transformer.wte.weight (30, 16) is missing"},
};
enum { CHANGES = sizeof change / sizeof *change };

TEST(a_state_that_has_been_edited_is_refused) {
    static uint8_t bytes[1 << 20];
    run r = start();
    const char *path = temporary_file("", 0);
    ck_assert(gr_state_save(r.gpt, r.adamw, r.at, path));
    const size_t size = file_read(path, bytes, sizeof bytes);
    unlink(path);
    char *at = strstr((char *)bytes + sizeof(uint64_t), change[_i].from); /* behind the header's length */
    ck_assert_ptr_nonnull(at);
    memcpy(at, change[_i].to, strlen(change[_i].to));
    path = temporary_file(bytes, size);
    gr_tensor *before = snapshot(r.c);
    ck_assert(!gr_state_load(r.gpt, r.adamw, NULL, path));
    expect_message(&r, change[_i].message);
    ck_assert(same_tensors(before, snapshot(r.c)));
    unlink(path);
    gr_context_free(r.c);
}

TEST(a_state_with_a_tensor_too_many_is_refused) {
    static uint8_t bytes[1 << 20];
    static const char more[] = "{\"more\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},     ";
    enum { LENGTH = sizeof(uint64_t), MORE = sizeof more - 2 }; /* a multiple of 8; the old { is replaced */
    run r = start();
    const char *path = temporary_file("", 0);
    ck_assert(gr_state_save(r.gpt, r.adamw, r.at, path));
    const size_t size = file_read(path, bytes, sizeof bytes - MORE);
    unlink(path);
    memmove(bytes + LENGTH + MORE, bytes + LENGTH, size - LENGTH);
    memcpy(bytes + LENGTH, more, MORE + 1);
    gr_store_little(gr_load_little(bytes, LENGTH) + MORE, LENGTH, bytes);
    path = temporary_file(bytes, size + MORE);
    ck_assert(!gr_state_load(r.gpt, r.adamw, NULL, path));
    expect_message(&r, ": 85 tensors, the run has 84");
    unlink(path);
    gr_context_free(r.c);
}

TEST(a_state_of_another_run_is_refused_with_what_differs) {
    const char *path = temporary_file("", 0);
    run saved = start();
    ck_assert(gr_state_save(saved.gpt, saved.adamw, saved.at, path));
    const struct {
        const char *message;
        gr_gpt_config config;
    } other[] = {
        {": layers is 2 in the file, 3 in the run", {.layers = 3, .heads = 2, .width = 16, .bias = true}},
        {": heads is 2 in the file, 4 in the run", {.layers = 2, .heads = 4, .width = 16, .bias = true}},
        {": width is 16 in the file, 18 in the run", {.layers = 2, .heads = 2, .width = 18, .bias = true}},
        {": bias is 1 in the file, 0 in the run", {.layers = 2, .heads = 2, .width = 16}},
        {": gelu is erf in the file, tanh in the run", {.layers = 2, .heads = 2, .width = 16, .bias = true}},
    };
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        run r = start_as(other[i].config, (gr_adamw_config){.beta1 = 0});
        ck_assert(!gr_state_load(r.gpt, r.adamw, NULL, path));
        expect_message(&r, other[i].message);
        gr_context_free(r.c);
    }
    run r = start();
    gr_adamw *adam = gr_adam_new(r.c, (gr_adamw_config){.beta1 = 0});
    ck_assert(!gr_state_load(r.gpt, adam, NULL, path));
    expect_message(&r, ": optimiser is adamw in the file, adam in the run");
    ck_assert(!gr_state_load(r.gpt, r.adamw, NULL, NULL));
    expect_message(&r, "state: path is NULL");
    ck_assert(!gr_state_save(r.gpt, NULL, r.at, path));
    expect_message(&r, "the optimiser is NULL");
    const gr_tokenizer *letters = gr_corpus_tokenizer(r.corpus);
    ck_assert(gr_gpt_save(r.gpt, letters, path));
    ck_assert(!gr_state_load(r.gpt, r.adamw, NULL, path));
    expect_message(&r, ": the metadata have no \"optimiser\"");
    gr_parameter(gr_zeros(r.c, GR_SHAPE(3)), "other");
    ck_assert(!gr_state_save(r.gpt, r.adamw, r.at, path));
    expect_message(&r, ": the optimiser has 28 parameters, the model 28 of 29");
    ck_assert(!gr_state_save(NULL, r.adamw, r.at, path));
    unlink(path);
    gr_context_free(r.c);
    gr_context_free(saved.c);
}

Suite *state_suite(void) {
    Suite *suite = suite_create("state");
    add_rows(suite, "threads", ten_steps_and_ten_more_are_twenty_bit_for_bit,
             (int)(sizeof thread_counts / sizeof *thread_counts));
    add_rows(suite, "edited", a_state_that_has_been_edited_is_refused, CHANGES);
    GROUP(suite, "files", the_place_in_a_run_comes_back_whatever_its_numbers, a_state_cut_off_anywhere_changes_nothing,
          a_state_with_a_tensor_too_many_is_refused, a_state_of_another_run_is_refused_with_what_differs);
    return suite;
}
