/* Layers: against PyTorch (see nn_support.h), and what they promise. */
#include "nn_support.h"

/* -- Against PyTorch ----------------------------------------------------------------------------------------------- */

static gr_tensor *input(gr_shape shape) { return gr_requires_grad(sequence(shape, 0)); }

TEST(linear_agrees_with_pytorch) { /* nn.Linear(5, 4) on (2, 3, 5) */
    static const digest wanted[] = {{-0.40625, 0.09375, 0.47265625},
                                    {0.125, 0.109375, -1.41796875},
                                    {-0.171875, -0.703125, -0.53515625},
                                    {-0.5, 0.125, 1}};
    gr_linear_layer layer = gr_linear_new(ctx, "fc", (gr_linear_config){.in = 5, .out = 4, .bias = true}, &rng);
    gr_tensor *x = input(GR_SHAPE(2, 3, 5));
    fill_parameters();
    EXPECT_MODULE(gr_linear_forward(&layer, x), GR_SHAPE(2, 3, 4), x, wanted);
}

TEST(embedding_agrees_with_pytorch) { /* nn.Embedding(7, 3) on [[1, 4, 1], [6, 0, 1]] */
    static const digest wanted[] = {{-0.125, 0.25, 1.96875}, {-0.625, -0.125, 0.125}};
    static const int32_t ids[] = {1, 4, 1, 6, 0, 1};
    gr_embedding_layer layer = gr_embedding_new(ctx, "wte", (gr_embedding_config){.vocab = 7, .width = 3}, &rng);
    fill_parameters();
    EXPECT_MODULE(gr_embedding_forward(&layer, (gr_tokens){ids, 2, 3}), GR_SHAPE(2, 3, 3), NULL, wanted);
}

TEST(layernorm_agrees_with_pytorch) { /* nn.LayerNorm(5) on (2, 3, 5) */
    static const digest wanted[] = {{0.125, -1.0929080885262976, 5.5609220059137279},
                                    {-0.030830765279096235, -0.16129406984222877, 2.4788261759941546},
                                    {2.1415409083659904, 2.0661072004641969, -1.367233626157458},
                                    {0.25, 0.625, 0.0625}};
    gr_layernorm_layer layer = gr_layernorm_new(ctx, "ln", 5, true);
    gr_tensor *x = input(GR_SHAPE(2, 3, 5));
    fill_parameters();
    EXPECT_MODULE(gr_layernorm_forward(&layer, x), GR_SHAPE(2, 3, 5), x, wanted);
}

TEST(rmsnorm_agrees_with_pytorch) { /* x / sqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w on (2, 3, 5) */
    static const digest wanted[] = {{0, -0.59290808852629751, 1.8119544729983703},
                                    {0, -0.43007906997415041, 1.9831756519058714},
                                    {2.1585847328851444, 2.3393529141157243, -1.7365052951480235}};
    gr_rmsnorm_layer layer = gr_rmsnorm_new(ctx, "rms", 5);
    gr_tensor *x = input(GR_SHAPE(2, 3, 5));
    fill_parameters();
    EXPECT_MODULE(gr_rmsnorm_forward(&layer, x), GR_SHAPE(2, 3, 5), x, wanted);
}

TEST(mlp_agrees_with_pytorch) { /* c_proj(F.gelu(c_fc(x), approximate="tanh")) on (2, 3, 4) */
    static const digest wanted[] = {{1.1650159488713145, 0.39168470323066357, -2.3240216846694097},
                                    {-0.096967595676953913, -0.15891380622561463, 1.0719903236880979},
                                    {0.035612232304211941, 0.011919448019966812, -0.78329378112609094},
                                    {-0.7801872901088549, 0.083088212158052233, 2.1764650357178859},
                                    {0.09699446256622879, -0.022651553000687986, 1.8786434111346697},
                                    {-0.5, 0.125, 1}};
    gr_mlp_layer layer = gr_mlp_new(ctx, "mlp", (gr_mlp_config){.width = 4, .bias = true}, &rng);
    gr_tensor *x = input(GR_SHAPE(2, 3, 4));
    fill_parameters();
    EXPECT_MODULE(gr_mlp_forward(&layer, x), GR_SHAPE(2, 3, 4), x, wanted);
}

/* x + attn(h, h, h), h = ln_1(x), attn = nn.MultiheadAttention(6, 3, batch_first=True) with a causal attn_mask, then
 * x + mlp(ln_2(x)), on (2, 4, 6) */
TEST(block_agrees_with_pytorch) {
    static const digest wanted[] = {{-1.1470792314470701, -0.66536778825881304, 6.6529998955508063},
                                    {-0.20339689218243268, -0.43239324843423294, 3.6192968738775555},
                                    {0.24579668216407929, -2.4435946272014757, 5.4664811093855636},
                                    {0.35288783681058378, -0.090783867334922358, -1.6115728332381489},
                                    {-0.037933973405782043, -0.84365291890898053, -6.9573412949777325},
                                    {-0.30347178724625634, -1.1316114228656147, -0.88955075234321646},
                                    {-1.4948173980970854, -0.24646870916006003, 0.57935311204832474},
                                    {0.89170912699888005, -0.28405494593442615, -0.28311964580927573},
                                    {1.6353520568361126, 1.3818860974207876, -6.9756897381751823},
                                    {-1.7449255547668832, -0.20154918930409932, 3.8749269843966361},
                                    {0.67090339792516496, 0.27568361004988767, 5.635921983159311},
                                    {0.32653118234456113, 0.17336638226764484, -0.66694748294972594},
                                    {-0.83857542252136152, -0.75092269746235019, 0.17087310816608792},
                                    {-1.125, -0.5, 3.71875}};
    gr_multihead_config config = {.width = 6, .heads = 3, .causal = true, .bias = true};
    gr_block_layer block = gr_block_new(ctx, "h", config, &rng);
    gr_tensor *x = input(GR_SHAPE(2, 4, 6));
    fill_parameters();
    EXPECT_MODULE(gr_block_forward(&block, x, NULL).output, GR_SHAPE(2, 4, 6), x, wanted);
}

/* -- What a layer is made of --------------------------------------------------------------------------------------- */

TEST(a_name_may_have_no_prefix) {
    ck_assert_str_eq(gr_name(gr_rmsnorm_new(ctx, NULL, 2).weight), "weight");
    ck_assert_str_eq(gr_name(gr_rmsnorm_new(ctx, "", 2).weight), "weight");
    ck_assert_str_eq(gr_name(gr_rmsnorm_new(ctx, "a.b", 2).weight), "a.b.weight");
}

static double root_mean_square(gr_tensor *w) { return gr_item(gr_norm(w, GR_ALL)) / sqrt((double)gr_numel(w)); }

TEST(layers_begin_with_the_spread_they_document) {
    gr_linear_layer linear = gr_linear_new(ctx, "a", (gr_linear_config){.in = 100, .out = 100}, &rng);
    gr_embedding_layer embedding = gr_embedding_new(ctx, "b", (gr_embedding_config){.vocab = 100, .width = 50}, &rng);
    ck_assert_double_eq_tol(root_mean_square(linear.weight), 0.1, 0.005); /* 1 / sqrt(in) */
    ck_assert_double_eq_tol(root_mean_square(embedding.weight), 1, 0.05);
    gr_multihead_layer heads =
        gr_multihead_new(ctx, "m", (gr_multihead_config){.width = 100, .heads = 4, .bias = true, .std = 0.5}, &rng);
    ck_assert_double_eq_tol(root_mean_square(heads.c_attn.weight), 0.5, 0.025);
    ck_assert_double_eq_tol(root_mean_square(heads.c_proj.weight), 0.5, 0.025); /* std, unless proj_std is given */
    gr_mlp_layer mlp = gr_mlp_new(ctx, "f", (gr_mlp_config){.width = 25, .std = 0.5}, &rng);
    ck_assert_double_eq_tol(root_mean_square(mlp.c_fc.weight), 0.5, 0.025);
    ck_assert_double_eq_tol(root_mean_square(mlp.c_proj.weight), 0.1, 0.005);
    ck_assert_ptr_null(linear.bias);
    ck_assert_ptr_null(gr_layernorm_new(ctx, "c", 3, false).bias);
}

TEST(layers_take_any_leading_axes) {
    gr_linear_layer linear = gr_linear_new(ctx, "fc", (gr_linear_config){.in = 5, .out = 4}, &rng);
    gr_layernorm_layer norm = gr_layernorm_new(ctx, "ln", 5, true);
    EXPECT_SHAPE(gr_linear_forward(&linear, sequence(GR_SHAPE(5), 0)), GR_SHAPE(4));
    EXPECT_SHAPE(gr_linear_forward(&linear, sequence(GR_SHAPE(2, 1, 3, 5), 0)), GR_SHAPE(2, 1, 3, 4));
    EXPECT_SHAPE(gr_layernorm_forward(&norm, sequence(GR_SHAPE(5), 0)), GR_SHAPE(5));
    EXPECT_SHAPE(gr_layernorm_forward(&norm, sequence(GR_SHAPE(0, 5), 0)), GR_SHAPE(0, 5));
}

/* -- Dropout ------------------------------------------------------------------------------------------------------- */

TEST(a_dropout_layer_acts_only_while_training) {
    gr_dropout_layer drop = gr_dropout_new(0.25, 1), same = drop, none = gr_dropout_new(0, 1);
    gr_tensor *x = gr_full(ctx, GR_SHAPE(100), 3);
    gr_tensor *y = gr_dropout_forward(&drop, x), *z = gr_dropout_forward(&drop, x);
    ck_assert(same_tensors(gr_dropout_forward(&same, x), y));
    ck_assert(!same_tensors(y, z)); /* the generator moves on */
    ck_assert_double_eq_tol(gr_item(gr_max(y, GR_ALL)), 4, 1e-6);
    drop.training = false;
    ck_assert_ptr_eq(gr_dropout_forward(&drop, x), x);
    ck_assert_ptr_eq(gr_dropout_forward(&none, x), x);
}

/* With the last weights of the other half at 0, what a half adds to x is all that a block adds; the half is given 0s.
 */
TEST(both_halves_of_a_block_are_dropped) {
    enum { B = 2, C = 6, H = 3 };
    gr_multihead_config config = {.width = C, .heads = H, .std = 0.5};
    gr_block_layer block = gr_block_new(ctx, "h", config, &rng);
    gr_tensor *x = drawn(GR_SHAPE(B, 4, C), -1, 1), *silent[] = {block.attn.c_proj.weight, block.mlp.c_proj.weight};
    block.drop = gr_dropout_new(0.5, 1);
    for (int half = 0; half < 2; half++) {
        gr_tensor *kept = gr_keep(silent[half]);
        ck_assert(gr_to_array(gr_zeros(ctx, gr_shape_of(kept)), gr_data(silent[half])));
        gr_tensor *added = gr_sub(gr_block_forward(&block, x, NULL).output, x);
        int zeros = 0;
        for (int64_t i = 0; i < gr_numel(added); i++) zeros += gr_data(added)[i] == 0;
        ck_assert(zeros > 10 && zeros < 38); /* of 48: 24 are expected, 4 sigma are 14 */
        ck_assert(gr_to_array(kept, gr_data(silent[half])));
    }
}

Suite *layers_suite(void) {
    Suite *suite = suite_create("layers");
    GROUP(suite, "PyTorch", linear_agrees_with_pytorch, embedding_agrees_with_pytorch, layernorm_agrees_with_pytorch,
          rmsnorm_agrees_with_pytorch, mlp_agrees_with_pytorch, block_agrees_with_pytorch);
    GROUP(suite, "layers", a_name_may_have_no_prefix, layers_begin_with_the_spread_they_document,
          layers_take_any_leading_axes);
    GROUP(suite, "dropout", a_dropout_layer_acts_only_while_training, both_halves_of_a_block_are_dropped);
    return suite;
}
