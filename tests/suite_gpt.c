/* The model: against PyTorch (see nn_support.h), against its modules, against difference quotients. */
#include "nn_support.h"

#include <string.h>

/* -- Against PyTorch ----------------------------------------------------------------------------------------------- */

/* ln_f(two blocks, as in suite_layers.c, of nn.Embedding(7, 6)(ids) + nn.Embedding(5, 6)(arange(4))) @ wte.weight.T */
TEST(gpt_agrees_with_pytorch) {
    static const digest wanted[] = {{-0.58805594177106069, -0.52192270388382123, -1.9570976327482881},
                                    {0.19602002468275473, -0.015298178230875953, 4.317912621758194},
                                    {0.032155273062182632, 0, 0.3535701785390436},
                                    {0.072795505200620669, -0.10759913498107393, -0.025725038897411318},
                                    {-0.041268598372534042, -0.14597350981010865, 0.21990005002593987},
                                    {0.0068892024060741115, -0.034645763722700382, -0.088219413588024348},
                                    {0.021644748603601726, -0.037548499275706318, -0.1054306336402677},
                                    {0.098670340521587699, -0.027741414709712142, -0.43861607553132331},
                                    {0.17033486864611294, -0.046621647786344589, -0.035284745095910994},
                                    {-0.49561246676883858, 0.0010663493119067095, 0.52347087730764219},
                                    {0.28169611200794786, 0.047491162013981097, -0.7564774092288451},
                                    {0.0060832785087230803, -0.00056087297369250512, 0.089792320107704354},
                                    {0.019375624715221171, -0.05167159131384548, -0.29428627392746926},
                                    {0.00087794464357167173, -0.010178413620377203, 0.070985374664452164},
                                    {0.12070337776326262, -0.13513678044306945, 0.044484304567870683},
                                    {0.044602394912050945, -0.002394834025611265, -0.08620457488452743},
                                    {-0.033572408927894933, 0.0066076954916233794, 0.046686713943054022},
                                    {0.00010585167239856498, 0.019694608265393179, -0.17606593578581597},
                                    {-0.00018257447688887601, -0.045276772490998984, -0.0069715298755763239},
                                    {0.10932972449817845, -0.2520675317985635, -0.88808238679054663},
                                    {0.12305187390805164, -0.14071384938330045, 0.060689323747886659},
                                    {0.10534470665145988, -0.020876483903707794, 0.16426326924353227},
                                    {-0.060518275250035392, 0.053618564948037822, 0.029249671149162784},
                                    {0.03829850426050023, -0.00050894628829150344, 0.32304049003206758},
                                    {0.13416616586433272, -0.0040715703063320258, -0.54138646108401478},
                                    {0.0177615505147346, 0.014811721957103365, 0.097451161893149618},
                                    {0.099682361928411484, -0.15288816579811365, 0.12886299915096944},
                                    {1.0161092916480743, -0.55456262941667844, -0.20921104743172719},
                                    {-0.4375, 0.90625, -0.59375}};
    static const int32_t ids[] = {1, 4, 1, 0, 6, 0, 2, 1};
    gr_gpt_config config = {.vocab = 7, .context = 5, .layers = 2, .heads = 3, .width = 6, .bias = true};
    gr_gpt *gpt = gr_gpt_new(ctx, config);
    fill_parameters();
    EXPECT_MODULE(gr_gpt_forward(gpt, (gr_tokens){ids, 2, 4}), GR_SHAPE(2, 4, 7), NULL, wanted);
}

/* -- What a model is made of --------------------------------------------------------------------------------------- */

enum { V = 7, T = 5, C = 6, H = 3, L = 2, B = 2 };
static const gr_gpt_config tiny = {
    .vocab = V, .context = T, .layers = L, .heads = H, .width = C, .bias = true, .seed = 5};
static const int32_t some_ids[] = {1, 4, 1, 0, 6, 0, 2, 1, 3, 5, 0};
static const gr_tokens tokens = {some_ids, B, T}, next_tokens = {some_ids + 1, B, T};

static void expect_next(int *at, const char *prefix, const char *name, int64_t rows, int64_t columns) {
    char full[64];
    gr_tensor *w = gr_parameter_at(ctx, (*at)++);
    snprintf(full, sizeof full, "transformer.%s%s", prefix, name);
    ck_assert_str_eq(gr_name(w), full);
    EXPECT_SHAPE(w, columns ? GR_SHAPE(rows, columns) : GR_SHAPE(rows));
}

TEST(parameters_have_the_names_and_shapes_of_gpt2_in_pytorch) { /* _i: with biases? */
    static const struct {
        const char *name;
        int rows, columns;
    } of_block[] = {
        {"ln_1.weight", C, 0},
        {"ln_1.bias", C, 0},
        {"attn.c_attn.weight", 3 * C, C},
        {"attn.c_attn.bias", 3 * C, 0},
        {"attn.c_proj.weight", C, C},
        {"attn.c_proj.bias", C, 0},
        {"ln_2.weight", C, 0},
        {"ln_2.bias", C, 0},
        {"mlp.c_fc.weight", 4 * C, C},
        {"mlp.c_fc.bias", 4 * C, 0},
        {"mlp.c_proj.weight", C, 4 * C},
        {"mlp.c_proj.bias", C, 0},
    };
    gr_gpt_config config = tiny;
    config.bias = _i;
    gr_gpt_new(ctx, config);
    int at = 0;
    expect_next(&at, "", "wte.weight", V, C);
    expect_next(&at, "", "wpe.weight", T, C);
    for (int layer = 0; layer < L; layer++)
        for (size_t i = 0; i < sizeof of_block / sizeof *of_block; i++)
            if (config.bias || !contains(of_block[i].name, "bias"))
                expect_next(&at, layer ? "h.1." : "h.0.", of_block[i].name, of_block[i].rows, of_block[i].columns);
    expect_next(&at, "", "ln_f.weight", C, 0);
    if (config.bias) expect_next(&at, "", "ln_f.bias", C, 0);
    ck_assert_int_eq(gr_parameter_count(ctx), at); /* and no lm_head: it is wte */
}

static double root_mean_square(gr_tensor *w) { return gr_item(gr_norm(w, GR_ALL)) / sqrt((double)gr_numel(w)); }

TEST(the_first_weights_are_those_of_gpt2) {
    enum { LAYERS = 3, WIDTH = 64 }; /* a matrix has 4096 elements or more: its spread is within 5 % at 4 sigma */
    const gr_gpt_config config = {.vocab = 64, .context = 64, .layers = LAYERS, .width = WIDTH, .bias = true};
    const gr_gpt *gpt = gr_gpt_new(ctx, config);
    for (int k = 0; k < gr_parameter_count(ctx); k++) {
        gr_tensor *w = gr_parameter_at(ctx, k);
        if (gr_ndim(w) == 2) {
            const double std = contains(gr_name(w), "c_proj") ? 0.02 / sqrt(2 * LAYERS) : 0.02;
            ck_assert_double_eq_tol(root_mean_square(w) / std, 1, 0.05);
            ck_assert_double_eq_tol(gr_item(gr_mean(w, GR_ALL)) / std, 0, 0.0625);
        } else {
            const double value = contains(gr_name(w), "bias") ? 0 : 1;
            ck_assert(same_tensors(w, gr_full(ctx, gr_shape_of(w), value)));
        }
    }
    ck_assert(!same_tensors(gpt->h[0].attn.c_attn.weight, gpt->h[1].attn.c_attn.weight));
}

TEST(one_seed_gives_one_model_and_another_another) {
    gr_context *other = gr_context_new();
    gr_gpt_config config = tiny;
    gr_gpt_new(ctx, config), gr_gpt_new(other, config);
    gr_tensor *first = snapshot(ctx);
    ck_assert(same_tensors(first, snapshot(other)));
    gr_context_free(other);
    other = gr_context_new();
    config.seed++;
    gr_gpt_new(other, config);
    ck_assert(!same_tensors(first, snapshot(other)));
    gr_context_free(other);
}

/* -- What a model computes ----------------------------------------------------------------------------------------- */

TEST(every_length_up_to_the_context_has_its_shapes) {
    gr_gpt *gpt = gr_gpt_new(ctx, tiny);
    gpt->keep_weights = true;
    for (int64_t time = 1; time <= T; time++) {
        EXPECT_SHAPE(gr_gpt_forward(gpt, (gr_tokens){some_ids, B, time}), GR_SHAPE(B, time, V));
        for (int layer = 0; layer < L; layer++) EXPECT_SHAPE(gpt->weights[layer], GR_SHAPE(B, H, time, time));
    }
}

TEST(the_first_loss_is_that_of_guessing) {
    enum { VOCAB = 65, TIME = 64 };
    static int32_t ids[4 * TIME + 1];
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) ids[i] = (int32_t)gr_rng_below(&rng, VOCAB);
    gr_gpt *gpt = gr_gpt_new(ctx, (gr_gpt_config){.vocab = VOCAB, .context = TIME, .layers = 2, .width = 64});
    gr_tensor *logits = gr_gpt_forward(gpt, (gr_tokens){ids, 4, TIME});
    ck_assert_double_eq_tol(gr_item(gr_cross_entropy(logits, (gr_tokens){ids + 1, 4, TIME})), log(VOCAB), 0.05);
}

static gr_tensor *composed(gr_gpt *gpt, gr_tensor *table, gr_tensor *head) {
    gr_tensor *x = gr_add(gr_gather_rows(table, tokens), gpt->wpe.weight), *mask = gr_causal_mask(ctx, T);
    for (int layer = 0; layer < L; layer++) x = gr_block_forward(&gpt->h[layer], x, mask).output;
    return gr_linear(gr_layernorm_forward(&gpt->ln_f, x), head, NULL);
}

TEST(a_model_is_its_modules_one_after_the_other) {
    gr_gpt *gpt = gr_gpt_new(ctx, tiny);
    ck_assert(same_tensors(gr_gpt_forward(gpt, tokens), composed(gpt, gpt->wte.weight, gpt->wte.weight)));
}

TEST(the_tied_table_gets_the_gradients_of_both_its_uses) {
    gr_gpt *gpt = gr_gpt_new(ctx, tiny);
    fill_parameters();
    gr_tensor *table = gr_requires_grad(gr_keep(gpt->wte.weight)), *head = gr_requires_grad(gr_keep(table));
    ck_assert(gr_backward(gr_cross_entropy(composed(gpt, table, head), next_tokens)));
    gr_zero_grad(ctx);
    ck_assert(gr_backward(gr_cross_entropy(gr_gpt_forward(gpt, tokens), next_tokens)));
    static double sum[V * C];
    read_values(gr_add(gr_grad(table), gr_grad(head)), sum);
    expect_elements(__LINE__, gr_grad(gpt->wte.weight), TOLERANCE, V * C, sum);
    ck_assert(root_mean_square(gr_grad(table)) > 1e-3 && root_mean_square(gr_grad(head)) > 1e-3);
}

/* gr_gradcheck varies copies of the parameters; they take the parameters' places in the model. */
static gr_tensor *logits_of(gr_context *c, gr_tensor **in, void *arg) {
    (void)c;
    gr_gpt *gpt = arg;
    gpt->wte.weight = *in++, gpt->wpe.weight = *in++;
    for (int layer = 0; layer < L; layer++) {
        gr_block_layer *b = &gpt->h[layer];
        gr_tensor **place[] = {&b->ln_1.weight,      &b->ln_1.bias,          &b->attn.c_attn.weight,
                               &b->attn.c_attn.bias, &b->attn.c_proj.weight, &b->attn.c_proj.bias,
                               &b->ln_2.weight,      &b->ln_2.bias,          &b->mlp.c_fc.weight,
                               &b->mlp.c_fc.bias,    &b->mlp.c_proj.weight,  &b->mlp.c_proj.bias};
        for (size_t i = 0; i < sizeof place / sizeof *place; i++) *place[i] = *in++;
    }
    gpt->ln_f.weight = *in++, gpt->ln_f.bias = *in++;
    return gr_gpt_forward(gpt, tokens);
}

TEST(the_gradient_of_a_whole_model_is_that_of_difference_quotients) {
    gr_tensor *parameters[64];
    gr_gpt *gpt = gr_gpt_new(ctx, tiny);
    const int count = gr_parameter_count(ctx);
    for (int k = 0; k < count; k++) {
        gr_tensor *w = parameters[k] = gr_parameter_at(ctx, k); /* far enough from the start that all of it counts */
        ck_assert(gr_to_array(gr_add(w, gr_normal(ctx, gr_shape_of(w), 0, 0.3, &rng)), gr_data(w)));
    }
    /* Two layers deep, the fifth derivative is larger than that of an op: a smaller step than usual. */
    const gr_gradcheck_config config = {.step = sizeof(gr_real) == 4 ? 0x1p-7 : 0x1p-11};
    gr_gradcheck_result r = gr_gradcheck(ctx, logits_of, gpt, count, parameters, NULL, config);
    ck_assert_msg(r.ok, "%s, element %lld: %.17g, by differences %.17g, error %g %s", r.input_name, (long long)r.index,
                  r.analytic, r.numeric, r.error, gr_error_message(ctx));
}

/* -- Dropout ------------------------------------------------------------------------------------------------------- */

TEST(a_model_drops_only_while_training) {
    gr_gpt_config config = tiny;
    config.dropout = 0.5;
    gr_gpt *gpt = gr_gpt_new(ctx, config);
    ck_assert(!same_tensors(gr_gpt_forward(gpt, tokens), gr_gpt_forward(gpt, tokens)));
    gr_gpt_training(gpt, false);
    gr_tensor *y = gr_gpt_forward(gpt, tokens);
    ck_assert(same_tensors(y, composed(gpt, gpt->wte.weight, gpt->wte.weight)));
    ck_assert(same_tensors(y, gr_gpt_forward(gr_gpt_new(ctx, tiny), tokens)));
    gr_gpt_training(gpt, true);
    ck_assert(!same_tensors(y, gr_gpt_forward(gpt, tokens)));
}

TEST(the_layers_of_a_model_drop_different_places) {
    gr_gpt_config config = tiny;
    config.dropout = 0.5;
    gr_gpt *gpt = gr_gpt_new(ctx, config);
    gr_tensor *x = gr_full(ctx, GR_SHAPE(64), 1), *first = gr_dropout_forward(&gpt->drop, x);
    gr_tensor *second = gr_dropout_forward(&gpt->h[0].drop, x), *third = gr_dropout_forward(&gpt->h[1].drop, x);
    ck_assert(!same_tensors(first, second) && !same_tensors(first, third) && !same_tensors(second, third));
}

Suite *gpt_suite(void) {
    Suite *suite = suite_create("gpt");
    GROUP(suite, "PyTorch", gpt_agrees_with_pytorch);
    add_rows(suite, "names", parameters_have_the_names_and_shapes_of_gpt2_in_pytorch, 2);
    GROUP(suite, "first weights", the_first_weights_are_those_of_gpt2, one_seed_gives_one_model_and_another_another);
    GROUP(suite, "forward", every_length_up_to_the_context_has_its_shapes, the_first_loss_is_that_of_guessing,
          a_model_is_its_modules_one_after_the_other);
    GROUP(suite, "gradients", the_tied_table_gets_the_gradients_of_both_its_uses,
          the_gradient_of_a_whole_model_is_that_of_difference_quotients);
    GROUP(suite, "dropout", a_model_drops_only_while_training, the_layers_of_a_model_drop_different_places);
    return suite;
}
