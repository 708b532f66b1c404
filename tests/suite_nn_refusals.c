/* Models and layers that cannot be, and input that does not fit them: refused, and nothing is made or changed. */
#include "nn_support.h"

enum { V = 7, T = 5, C = 6, H = 3, L = 2, B = 2 };
static const gr_gpt_config tiny = {
    .vocab = V, .context = T, .layers = L, .heads = H, .width = C, .bias = true, .seed = 5};
static const int32_t some_ids[] = {1, 4, 1, 0, 6, 0, 2, 1, 3, 5, 0};
static const gr_tokens tokens = {some_ids, B, T};

static gr_gpt *sound; /* a model that bad calls must leave as it is */

#define REFUSED(call, message) \
    if (at-- == 0) return (void)(call), message;

static gr_gpt *model(int64_t vocab, int64_t context, int64_t layers, int64_t heads, int64_t width, double dropout) {
    return gr_gpt_new(ctx, (gr_gpt_config){.vocab = vocab,
                                           .context = context,
                                           .layers = layers,
                                           .heads = heads,
                                           .width = width,
                                           .dropout = dropout,
                                           .seed = 1});
}

static const char *bad_model(int at) {
    REFUSED(model(0, 8, 1, 1, 4, 0), "gpt: vocab is 0; it must be at least 1")
    REFUSED(model(3, 0, 1, 1, 4, 0), "gpt: context is 0; it must be at least 1")
    REFUSED(model(3, 8, 1, 1, 0, 0), "gpt: width is 0; it must be at least 1")
    REFUSED(model(3, 8, -1, 1, 4, 0), "gpt: layers is -1; it must be at least 1")
    REFUSED(model(3, 8, 1, -2, 4, 0), "gpt: heads is -2; it must be at least 1")
    REFUSED(model(3, 8, 1, 5, 128, 0), "gpt: heads 5 does not divide width 128")
    REFUSED(model(3, 8, 1, 1, 4, 1), "gpt: dropout 1 is not in [0, 1)")
    REFUSED(model(3, 8, 1, 1, 4, -0.5), "gpt: dropout -0.5 is not in [0, 1)")
    REFUSED(model(3, 8, 1, 1, 4, NAN), "gpt: dropout nan is not in [0, 1)")
    REFUSED(model(3, 8, INT64_MAX, 1, 4, 0), "gpt: 9223372036854775807 layers are too many")
    REFUSED(model(3, 8, (int64_t)(PTRDIFF_MAX / sizeof(gr_block_layer)), 1, 4, 0), "out of memory")
    REFUSED(model(3, INT64_MAX, 1, 1, 4, 0), "too many elements")
    REFUSED(model(INT64_MAX, 8, 1, 1, INT64_MAX, 0), "too many elements")
    return NULL;
}

static const char *bad_layer(int at) {
    const gr_linear_config no_in = {.in = 0, .out = 2}, no_out = {.in = 2, .out = -1};
    const gr_linear_config wild = {.in = 2, .out = 2, .std = NAN}, fine = {.in = 2, .out = 2};
    const gr_multihead_config uneven = {.width = 6, .heads = 4}, headless = {.width = 6}, none = {.heads = 1};
    const gr_multihead_config huge = {.width = INT64_MAX, .heads = 1};
    const gr_attention_config narrow = {.d_model = 4, .d_v = -1}, empty = {.d_k = 2}, thin = {.d_model = 4, .d_k = -1};
    REFUSED(gr_linear_new(ctx, "fc", no_in, &rng), "linear: fc: sizes 0 and 2; they must be at least 1")
    REFUSED(gr_linear_new(ctx, NULL, no_out, &rng), "linear: : sizes 2 and -1; they must be at least 1")
    REFUSED(gr_linear_new(ctx, "fc", wild, &rng), "linear: fc: std nan; it must be finite and not negative")
    REFUSED(gr_linear_new(ctx, "fc", fine, NULL), "rng is NULL")
    REFUSED(gr_embedding_new(ctx, "wte", (gr_embedding_config){.vocab = 3}, &rng), "embedding: wte: sizes 3 and 0")
    REFUSED(gr_layernorm_new(ctx, "ln", 0, true), "layernorm: ln: sizes 0 and 0")
    REFUSED(gr_rmsnorm_new(ctx, "ln", -3), "rmsnorm: ln: sizes -3 and -3")
    REFUSED(gr_mlp_new(ctx, "mlp", (gr_mlp_config){.width = 0}, &rng), "linear: mlp.c_fc: sizes 0 and 0")
    REFUSED(gr_mlp_new(ctx, "mlp", (gr_mlp_config){.width = INT64_MAX / 3}, &rng), "too many elements")
    REFUSED(gr_multihead_new(ctx, "a", uneven, &rng), "multihead: heads 4 does not divide width 6")
    REFUSED(gr_multihead_new(ctx, "a", headless, &rng), "multihead: heads 0, width 6; both must be at least 1")
    REFUSED(gr_multihead_new(ctx, "a", none, &rng), "multihead: heads 1, width 0; both must be at least 1")
    REFUSED(gr_multihead_new(ctx, "a", huge, &rng), "too many elements")
    REFUSED(gr_block_new(ctx, "h", uneven, &rng), "multihead: heads 4 does not divide width 6")
    REFUSED(gr_attention_new(ctx, "a", empty, &rng), "d_model 0")
    REFUSED(gr_attention_new(ctx, "a", narrow, &rng), "d_v -1")
    REFUSED(gr_attention_projections_new(ctx, "a", narrow, &rng), "d_v -1")
    REFUSED(gr_attention_new(ctx, "a", thin, &rng), "d_k -1")
    REFUSED(gr_linear_new(ctx, NULL, wild, &rng), "linear: : std nan; it must be finite and not negative")
    return NULL;
}

static gr_attention_layer head_of(gr_attention_style style) {
    return gr_attention_new(ctx, "a", (gr_attention_config){.d_model = 4, .style = style}, &rng);
}

static const char *bad_style(int at) {
    const int64_t most = INT32_MAX;
    REFUSED(head_of((gr_attention_style){.kind = (gr_attention_kind)(GR_LINEAR + 1)}), "no attention is of kind 6")
    REFUSED(head_of((gr_attention_style){.kind = GR_WINDOW, .window = -1}), "attention: window -1, global 0, block ")
    REFUSED(head_of((gr_attention_style){.kind = GR_WINDOW, .global = -1}), "attention: window 64, global -1, block ")
    REFUSED(head_of((gr_attention_style){.kind = GR_SPARSE, .block = -2}),
            "block -2; at least 1, 0 and 1, at most 2147")
    REFUSED(head_of((gr_attention_style){.kind = GR_WINDOW, .window = most + 1}), "window 2147483648, global 0")
    REFUSED(head_of((gr_attention_style){.kind = GR_WINDOW, .global = most + 1}), "global 2147483648, block")
    REFUSED(head_of((gr_attention_style){.kind = GR_SPARSE, .block = most + 1}), "block 2147483648; at least")
    REFUSED(gr_gpt_new(ctx, (gr_gpt_config){.vocab = V,
                                            .context = T,
                                            .layers = L,
                                            .heads = H,
                                            .width = C,
                                            .positions = (gr_positions)(GR_ROTARY + 1)}),
            "gpt: no positions are of kind 2")
    return NULL;
}

/* Linear attention keeps no weights that a mask could hide. */
static const char *bad_mask(int at) {
    gr_multihead_layer heads = sound->h->attn;
    heads.style.kind = GR_LINEAR;
    gr_tensor *x = gr_zeros(ctx, GR_SHAPE(1, T, C));
    REFUSED(gr_multihead_forward(&heads, x, gr_causal_mask(ctx, T)).output, "attention: linear attention takes no mask")
    REFUSED(gr_attention_projections_forward(NULL, x), "linear: the layer is NULL")
    return NULL;
}

static gr_tensor *of_ids(int32_t id, int64_t batch, int64_t time) {
    static int32_t ids[2 * T];
    ids[3] = id;
    return gr_gpt_forward(sound, (gr_tokens){ids, batch, time});
}

static const char *bad_forward(int at) {
    gr_block_layer *h = sound->h;
    REFUSED(of_ids(V, 2, T), "gather_rows: transformer.wte.weight (7, 6): id 7 at position 3; valid are 0 to 6")
    REFUSED(of_ids(-1, 2, T), "id -1 at position 3")
    REFUSED(of_ids(0, 1, T + 1), "gpt: 6 tokens, the context is 5")
    REFUSED(of_ids(0, 1, 0), "gpt: 0 tokens, the context is 5")
    REFUSED(of_ids(0, -1, T), "gather_rows")
    REFUSED(gr_gpt_forward(sound, (gr_tokens){NULL, 1, T}), "ids are NULL")
    REFUSED(gr_linear_forward(NULL, gr_scalar(ctx, 1)), "linear: the layer is NULL")
    REFUSED(gr_layernorm_forward(NULL, gr_scalar(ctx, 1)), "layernorm: the layer is NULL")
    REFUSED(gr_rmsnorm_forward(NULL, gr_scalar(ctx, 1)), "rmsnorm: the layer is NULL")
    REFUSED(gr_dropout_forward(NULL, gr_scalar(ctx, 1)), "dropout: the layer is NULL")
    REFUSED(gr_mlp_forward(NULL, gr_scalar(ctx, 1)), "linear: the layer is NULL")
    REFUSED(gr_block_forward(NULL, gr_scalar(ctx, 1), NULL).output, "block: the layer is NULL")
    REFUSED(gr_multihead_forward(NULL, gr_scalar(ctx, 1), NULL).output, "multihead: the layer is NULL")
    REFUSED(gr_attention_forward(NULL, gr_scalar(ctx, 1), NULL).output, "attention: the layer is NULL")
    REFUSED(gr_multihead_forward(&h->attn, gr_zeros(ctx, GR_SHAPE(4, 6)), NULL).output, "x (4, 6) is not (B, T, C)")
    REFUSED(gr_multihead_forward(&h->attn, gr_zeros(ctx, GR_SHAPE(1, 4, 5)), NULL).output, "linear: x (1, 4, 5)")
    REFUSED(gr_linear_forward(&h->mlp.c_fc, gr_zeros(ctx, GR_SHAPE(2, 5))),
            "linear: x (2, 5), transformer.h.0.mlp.c_fc")
    return NULL;
}

/* Every call of the list fails with its message; no parameter, no gradient and no generator has changed. */
static void expect_refusals(const char *(*call)(int at)) {
    sound = gr_gpt_new(ctx, tiny);
    gr_tensor *before = snapshot(ctx);
    for (int at = 0;; at++) {
        const gr_rng untouched = rng;
        const char *message = call(at);
        if (!message) break;
        EXPECT_ERROR(message);
        gr_context_reset(ctx);
        ck_assert_msg(same_tensors(before, snapshot(ctx)), "after \"%s\" a parameter is another", message);
        ck_assert_msg(rng.counter == untouched.counter, "after \"%s\" the generator is another", message);
    }
    EXPECT_SHAPE(gr_gpt_forward(sound, tokens), GR_SHAPE(B, T, V));
}

TEST(a_bad_model_is_refused_and_nothing_is_made) { expect_refusals(bad_model); }
TEST(a_bad_layer_is_refused_and_nothing_is_made) { expect_refusals(bad_layer); }
TEST(bad_input_is_refused_and_changes_nothing) { expect_refusals(bad_forward); }
TEST(a_style_that_cannot_be_is_refused) { expect_refusals(bad_style); }
TEST(a_mask_that_cannot_be_is_refused) { expect_refusals(bad_mask); }

TEST(a_model_that_was_refused_stays_inert) {
    gr_gpt *gpt = gr_gpt_new(ctx, (gr_gpt_config){.vocab = 0});
    gr_gpt_training(gpt, false);
    ck_assert(gr_is_inert(gr_gpt_forward(gpt, tokens)));
    gr_error_clear(ctx);
    ck_assert(gr_is_inert(gr_gpt_forward(gpt, tokens)));
    EXPECT_ERROR("after an error that has been cleared since");
}

TEST(a_model_that_was_made_after_an_error_says_so) {
    int32_t ids[2] = {1};
    gr_fail(ctx, "test", "an error");
    gr_gpt *gpt[] = {gr_gpt_new(ctx, (gr_gpt_config){.vocab = 5, .context = 4, .width = 2}), NULL};
    gr_error_clear(ctx);
    gpt[1] = gr_gpt_load(ctx, "/nonexistent/model", NULL);
    gr_error_clear(ctx);
    for (int i = 0; i < 2; i++) {
        ck_assert(!gr_backward(gr_cross_entropy(gr_gpt_forward(gpt[i], tokens), tokens)));
        EXPECT_ERROR("gpt: the model could not be made, after an error that has been cleared since");
        ck_assert(!gr_gpt_generate(gpt[i], ids, 1, (gr_generation){.total = 2}));
        EXPECT_ERROR("generate: the model could not be made, after an error that has been cleared since");
        ck_assert(!gr_gpt_save(gpt[i], NULL, "/nonexistent/model"));
        EXPECT_ERROR("the model could not be made, after an error that has been cleared since");
    }
}

TEST(without_a_context_layers_and_models_are_inert) {
    ck_assert(gr_is_inert(gr_embedding_forward(NULL, tokens)));
    gr_gpt *gpt = gr_gpt_new(NULL, tiny);
    ck_assert_ptr_nonnull(gpt);
    gpt->keep_weights = false; /* as its header has it set */
    gr_gpt_training(gpt, true), gr_gpt_training(NULL, true);
    ck_assert(gr_is_inert(gr_gpt_forward(gpt, tokens)) && gr_is_inert(gr_gpt_forward(NULL, tokens)));
    gr_linear_layer layer = gr_linear_new(NULL, "fc", (gr_linear_config){.in = 2, .out = 2, .bias = true}, &rng);
    ck_assert(gr_is_inert(layer.weight) && gr_is_inert(layer.bias));
    gr_block_layer block = gr_block_new(NULL, "h", (gr_multihead_config){.width = 4, .heads = 2}, &rng);
    ck_assert(gr_is_inert(gr_block_forward(&block, NULL, NULL).output));
    ck_assert(gr_is_inert(gr_attention_new(NULL, "a", (gr_attention_config){.d_model = 4}, &rng).w_o.weight));
}

Suite *nn_refusals_suite(void) {
    Suite *suite = suite_create("nn_refusals");
    GROUP(suite, "bad use", a_bad_model_is_refused_and_nothing_is_made, a_bad_layer_is_refused_and_nothing_is_made,
          bad_input_is_refused_and_changes_nothing, a_style_that_cannot_be_is_refused, a_mask_that_cannot_be_is_refused,
          a_model_that_was_refused_stays_inert, a_model_that_was_made_after_an_error_says_so,
          without_a_context_layers_and_models_are_inert);
    return suite;
}
