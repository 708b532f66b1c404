/* Attention: against PyTorch, against a loop over heads, and what must not be seen is not seen. */
#include "nn_support.h"

#include <string.h>

enum { B = 2, T = 5, C = 6, H = 3, D = C / H };

static gr_tensor *input(gr_shape shape, int start) { return gr_requires_grad(sequence(shape, start)); }
static gr_tensor *row(gr_tensor *x, int64_t b, int64_t i) { return gr_select(gr_select(x, 0, b), 0, i); }
static gr_tensor *rows(gr_tensor *x, int64_t begin, int64_t end) { return gr_slice(x, -2, begin, end, 1); }
static bool is_zero(gr_tensor *x) { return gr_item(gr_max(gr_abs(x), GR_ALL)) == 0; }

/* q, k, v as variables, what attention made of them, and their gradients after a random seed over `count` queries. */
typedef struct attended {
    gr_tensor *q, *k, *v, *output, *weights;
} attended;

static attended attend(gr_tensor *q, gr_tensor *k, gr_tensor *v, gr_tensor *mask, int64_t count) {
    attended a = {gr_requires_grad(gr_keep(q)), gr_requires_grad(gr_keep(k)), gr_requires_grad(gr_keep(v)), NULL, NULL};
    gr_attended y = gr_scaled_dot_product_attention(a.q, a.k, a.v, mask);
    a.output = y.output, a.weights = y.weights;
    backward_at_random(rows(y.output, 0, count));
    return a;
}

/* -- Against PyTorch ----------------------------------------------------------------------------------------------- */

/* q = seq((2, 3, 4)), k = seq((2, 5, 4), 2), v = seq((2, 5, 6), 4):
 *     w = (q @ k.transpose(-2, -1) / 2).masked_fill(mask == 0, -inf).softmax(-1)
 *     y = w @ v; y.backward(seq(y.shape, 1))
 * digests of y, w and the gradients of q, k, v */
static const struct {
    double mask[3 * T];
    digest wanted[5];
} known[] = {
    {{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
     {{-0.019781398780845172, 0.14130656953969936, 0.53393987922645136},
      {0.1768308386086023, 0.17390948873648107, -0.3170778454537726},
      {-0.020408951153942971, 0.0053268776014176837, -0.057683876785532232},
      {-0.020817493811533458, -0.0012185425971906541, -0.040638572867347622},
      {-0.23909032494463717, 0.073040399840468062, 2.0882884347561244}}},
    {{1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1}, /* causal: the last query sees every key */
     {{-0.0006224919549714103, 0.14130656953969936, -0.17446586520418644},
      {0.3174725181065684, 0.17390948873648107, 0.40322303834857504},
      {0, 0.0053268776014176837, -0.15506583302270641},
      {-0.031326214344276591, -0.026831960089082292, 0.11730809406126508},
      {-0.2754111874593615, 0.043477372184120268, 1.3353967509298588}}},
    {{1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1}, /* every third is hidden */
     {{-0.21350764745470563, 0.064818039204553812, 1.0640017396622088},
      {0.28593170500610232, 0.29629113727271394, -1.4645780071768353},
      {0, 0.056217755213289089, -0.043477102350832575},
      {-0.01995188952736876, -0.04907798344138832, 0.35633247785756278},
      {-0.1269935666417519, 0.23169182632310539, 4.2719117918071525}}},
};
enum { KNOWN = sizeof known / sizeof *known };

TEST(scaled_dot_product_agrees_with_pytorch) {
    gr_tensor *q = input(GR_SHAPE(2, 3, 4), 0), *k = input(GR_SHAPE(2, T, 4), 2), *v = input(GR_SHAPE(2, T, 6), 4);
    gr_attended y = gr_scaled_dot_product_attention(q, k, v, tensor(GR_SHAPE(3, T), known[_i].mask));
    EXPECT_SHAPE(y.output, GR_SHAPE(2, 3, 6));
    EXPECT_SHAPE(y.weights, GR_SHAPE(2, 3, T));
    ck_assert(gr_backward_from(y.output, sequence(GR_SHAPE(2, 3, 6), 1)));
    gr_tensor *found[] = {y.output, y.weights, gr_grad(q), gr_grad(k), gr_grad(v)};
    for (int i = 0; i < 5; i++) EXPECT_DIGEST(found[i], known[_i].wanted[i]);
}

TEST(a_head_of_other_sizes_agrees_with_pytorch) { /* the above of x @ w_q.T, ..., causal, @ w_o.T; on (2, 4, 6) */
    static const digest wanted[] = {{-0.357421875, 0.2245872965096487, 0.66578162187753809},
                                    {-0.36376450941068389, -0.0069618037791179602, 1.2201081524763102},
                                    {0.067170286114424299, -0.065785920878780407, -0.54775045557372626},
                                    {-0.0091342697751134738, -0.014571947641207027, -0.24373616266070941},
                                    {-0.1134271592678803, 0.056058032031807752, -4.1687208307523731},
                                    {0.64639370326937629, -0.46333010661443091, 3.1379624590890298}};
    gr_attention_config config = {.d_model = 6, .d_k = 3, .d_v = 5, .causal = true};
    gr_attention_layer a = gr_attention_new(ctx, "a", config, &rng);
    gr_tensor *x = input(GR_SHAPE(2, 4, 6), 0);
    fill_parameters();
    EXPECT_MODULE(gr_attention_forward(&a, x, NULL).output, GR_SHAPE(2, 4, 6), x, wanted);
}

/* -- Shapes and masks ---------------------------------------------------------------------------------------------- */

TEST(weights_are_a_distribution_over_what_is_seen) {
    gr_attended y = gr_causal_attention(drawn(GR_SHAPE(B, H, T, D), -3, 3), drawn(GR_SHAPE(B, H, T, D), -3, 3),
                                        drawn(GR_SHAPE(B, H, T, D), -3, 3));
    EXPECT_SHAPE(y.weights, GR_SHAPE(B, H, T, T));
    gr_tensor *off_by = gr_add_scalar(gr_sum(y.weights, GR_AXES(-1)), -1);
    ck_assert_double_le(gr_item(gr_max(gr_abs(off_by), GR_ALL)), TOLERANCE);
    ck_assert(gr_item(gr_max(gr_neg(y.weights), GR_ALL)) == 0);
    ck_assert(is_zero(gr_mul(y.weights, gr_add_scalar(gr_neg(gr_causal_mask(ctx, T)), 1))));
}

TEST(d_k_and_d_v_are_d_model_unless_given) {
    gr_attention_layer plain = gr_attention_new(ctx, "", (gr_attention_config){.d_model = C}, &rng);
    gr_attention_layer other =
        gr_attention_new(ctx, "b", (gr_attention_config){.d_model = C, .d_k = 2, .d_v = 9}, &rng);
    EXPECT_SHAPE(plain.w_k.weight, GR_SHAPE(C, C));
    EXPECT_SHAPE(plain.w_v.weight, GR_SHAPE(C, C));
    EXPECT_SHAPE(other.w_q.weight, GR_SHAPE(2, C));
    EXPECT_SHAPE(other.w_o.weight, GR_SHAPE(C, 9));
    EXPECT_SHAPE(gr_attention_forward(&other, drawn(GR_SHAPE(B, T, C), -1, 1), NULL).output, GR_SHAPE(B, T, C));
    static const char *const names[] = {"w_q.weight", "w_k.weight", "w_v.weight", "w_o.weight", "b.w_q.weight"};
    for (int k = 0; k < 5; k++) ck_assert_str_eq(gr_name(gr_parameter_at(ctx, k)), names[k]);
}

TEST(projections_are_the_three_linear_maps_of_the_head) {
    gr_rng same = rng;
    const gr_attention_config config = {.d_model = C, .d_k = 2, .d_v = 4};
    gr_attention_projections p = gr_attention_projections_new(ctx, "p", config, &rng);
    gr_attention_layer a = gr_attention_new(ctx, "a", config, &same);
    gr_tensor *x = drawn(GR_SHAPE(B, T, C), -1, 1);
    gr_qkv y = gr_attention_projections_forward(&p, x);
    ck_assert(same_tensors(y.q, gr_linear_forward(&a.w_q, x)));
    ck_assert(same_tensors(y.k, gr_linear_forward(&a.w_k, x)));
    ck_assert(same_tensors(y.v, gr_linear_forward(&a.w_v, x)));
    gr_tensor *mixed = gr_scaled_dot_product_attention(y.q, y.k, y.v, NULL).output;
    ck_assert(same_tensors(gr_linear_forward(&a.w_o, mixed), gr_attention_forward(&a, x, NULL).output));
}

TEST(the_causal_mask_is_aligned_bottom_right) {
    EXPECT(gr_causal_mask(ctx, 3), 1, 0, 0, 1, 1, 0, 1, 1, 1);
    EXPECT(gr_causal_mask_between(ctx, 2, 4), 1, 1, 1, 0, 1, 1, 1, 1);
    EXPECT(gr_causal_mask_between(ctx, 4, 2), 0, 0, 0, 0, 1, 0, 1, 1);
    EXPECT_SHAPE(gr_causal_mask_between(ctx, 0, 3), GR_SHAPE(0, 3));
    EXPECT_SHAPE(gr_causal_mask_between(ctx, 1LL << 62, 0), GR_SHAPE(1LL << 62, 0)); /* at once */
    gr_causal_mask(ctx, -1);
    EXPECT_ERROR("mask: shape (-1, -1)");
}

TEST(the_last_queries_alone_get_what_they_get_among_all) {
    gr_tensor *q = drawn(GR_SHAPE(B, T, D), -1, 1), *k = drawn(GR_SHAPE(B, T, D), -1, 1);
    gr_attended all = gr_causal_attention(q, k, q), last = gr_causal_attention(rows(q, T - 2, T), k, q);
    ck_assert(same_tensors(rows(all.output, T - 2, T), last.output));
    ck_assert(same_tensors(rows(all.weights, T - 2, T), last.weights));
}

TEST(a_further_mask_joins_the_causal_one_by_and) {
    gr_multihead_config config = {.width = C, .heads = H, .causal = true, .bias = true};
    gr_multihead_layer a = gr_multihead_new(ctx, "a", config, &rng), open = a;
    open.causal = false;
    gr_tensor *x = drawn(GR_SHAPE(B, T, C), -1, 1), *mask = gr_zeros(ctx, GR_SHAPE(T, T)), *joined = gr_keep(mask);
    for (int64_t i = 0; i < T * T; i++) gr_data(mask)[i] = i % 3 == 1 ? 0 : (gr_real)NAN; /* what is not 0 is visible */
    for (int64_t i = 0; i < T * T; i++) gr_data(joined)[i] = i % 3 != 1 && i % T <= i / T;
    gr_attended y = gr_multihead_forward(&a, x, mask), wanted = gr_multihead_forward(&open, x, joined);
    ck_assert(same_tensors(y.output, wanted.output) && same_tensors(y.weights, wanted.weights));
}

TEST(a_mask_may_differ_by_batch) { /* lengths 5 and 2, as padding */
    gr_tensor *q = drawn(GR_SHAPE(B, T, D), -1, 1);
    gr_tensor *mask = tensor(GR_SHAPE(B, 1, T), NUMBERS(1, 1, 1, 1, 1, 1, 1, 0, 0, 0));
    gr_attended y = gr_scaled_dot_product_attention(q, q, q, mask);
    gr_tensor *second = gr_slice(q, 0, 1, 2, 1), *shorter = rows(second, 0, 2);
    ck_assert(same_tensors(gr_slice(y.output, 0, 1, 2, 1),
                           gr_scaled_dot_product_attention(second, shorter, shorter, NULL).output));
    ck_assert(same_tensors(gr_slice(y.output, 0, 0, 1, 1),
                           gr_slice(gr_scaled_dot_product_attention(q, q, q, NULL).output, 0, 0, 1, 1)));
}

/* -- What is hidden ------------------------------------------------------------------------------------------------ */

TEST(a_query_that_sees_nothing_gets_exactly_0) {
    enum { BLIND = 2 };
    gr_tensor *q = drawn(GR_SHAPE(B, T, D), -1, 1), *mask = gr_full(ctx, GR_SHAPE(T, T), 1);
    for (int64_t j = 0; j < T; j++) gr_data(mask)[BLIND * T + j] = 0;
    attended a = attend(q, q, q, mask, T);
    for (int64_t b = 0; b < B; b++)
        ck_assert(is_zero(row(a.weights, b, BLIND)) && is_zero(row(a.output, b, BLIND)) &&
                  is_zero(row(gr_grad(a.q), b, BLIND)));
    a = attend(q, q, q, gr_scalar(ctx, 0), T);
    ck_assert(is_zero(a.output) && is_zero(gr_grad(a.q)) && is_zero(gr_grad(a.k)) && is_zero(gr_grad(a.v)));
}

TEST(queries_before_all_keys_see_nothing) {
    gr_tensor *q = drawn(GR_SHAPE(1, T, D), -1, 1), *k = drawn(GR_SHAPE(1, 2, D), -1, 1);
    gr_attended y = gr_causal_attention(q, k, k);
    ck_assert(is_zero(rows(y.output, 0, T - 2)) && is_zero(rows(y.weights, 0, T - 2)));
    ck_assert(same_tensors(row(y.output, 0, T - 2), row(k, 0, 0)));
}

TEST(a_layer_gives_0_where_nothing_is_seen) { /* W_O has no bias */
    gr_attention_layer a = gr_attention_new(ctx, "a", (gr_attention_config){.d_model = C, .causal = true}, &rng);
    gr_tensor *x = gr_requires_grad(drawn(GR_SHAPE(1, T, C), -1, 1)), *mask = gr_full(ctx, GR_SHAPE(T, T), 1);
    gr_data(mask)[0] = 0; /* the first query sees itself only */
    gr_attended y = gr_attention_forward(&a, x, mask);
    ck_assert(is_zero(row(y.output, 0, 0)) && is_zero(row(y.weights, 0, 0)));
    backward_at_random(rows(y.output, 0, 1));
    ck_assert(is_zero(gr_grad(x)) && is_zero(gr_grad(a.w_q.weight)) && is_zero(gr_grad(a.w_v.weight)));
}

static const double garbage[] = {NAN, INFINITY, -INFINITY, 1e38, -1e30, 2};
enum { GARBAGE = sizeof garbage / sizeof *garbage };

static gr_tensor *spoiled(gr_tensor *x, int64_t slot, double with) {
    gr_tensor *y = gr_keep(x);
    for (int64_t b = 0; b < gr_dim(x, 0); b++)
        for (int64_t i = 0; i < gr_dim(x, 2); i++)
            gr_data(y)[(b * gr_dim(x, 1) + slot) * gr_dim(x, 2) + i] = (gr_real)(i % 2 ? -with : with);
    return y;
}

TEST(garbage_in_a_hidden_slot_gives_the_bits_of_zeros_there) {
    enum { HIDDEN = 3 };
    gr_tensor *mask = gr_full(ctx, GR_SHAPE(T, T), 1), *q = drawn(GR_SHAPE(B, T, 4), -1, 1);
    for (int64_t i = 0; i < T; i++) gr_data(mask)[i * T + HIDDEN] = 0;
    gr_tensor *k = drawn(GR_SHAPE(B, T, 4), -1, 1), *v = drawn(GR_SHAPE(B, T, 3), -1, 1);
    attended clean = attend(q, spoiled(k, HIDDEN, 0), spoiled(v, HIDDEN, 0), mask, T);
    attended dirty = attend(q, spoiled(k, HIDDEN, garbage[_i]), spoiled(v, HIDDEN, garbage[_i]), mask, T);
    ck_assert(same_tensors(clean.output, dirty.output) && same_tensors(clean.weights, dirty.weights));
    ck_assert(same_tensors(gr_grad(clean.q), gr_grad(dirty.q)));
    ck_assert(same_tensors(gr_grad(clean.k), gr_grad(dirty.k)));
    ck_assert(same_tensors(gr_grad(clean.v), gr_grad(dirty.v)));
}

/* -- What is later ------------------------------------------------------------------------------------------------- */

typedef gr_tensor *forward(const void *layer, gr_tensor *x);
static gr_tensor *one_head(const void *layer, gr_tensor *x) { return gr_attention_forward(layer, x, NULL).output; }
static gr_tensor *many_heads(const void *layer, gr_tensor *x) { return gr_multihead_forward(layer, x, NULL).output; }

/* The outputs before each moment neither depend on what comes then, be it garbage, nor send a gradient to it or later.
 * (The gradients before it are compared only without garbage: the garbage is a query too, and 0 times NaN is NaN.) */
static void expect_causal(forward *f, const void *layer, double later) {
    gr_tensor *x = drawn(GR_SHAPE(B, T, C), -1, 1);
    for (int64_t t = 1; t < T; t++) {
        gr_tensor *a = gr_requires_grad(gr_keep(x)), *b = gr_requires_grad(spoiled(x, t, later));
        gr_tensor *ya = rows(f(layer, a), 0, t), *yb = rows(f(layer, b), 0, t);
        ck_assert(same_tensors(ya, yb));
        backward_at_random(ya), backward_at_random(yb);
        ck_assert(is_zero(rows(gr_grad(a), t, T)) && !is_zero(rows(gr_grad(a), t - 1, t)));
        if (fabs(later) < 1e3) ck_assert(same_tensors(rows(gr_grad(a), 0, t), rows(gr_grad(b), 0, t)));
    }
}

TEST(a_causal_head_does_not_look_ahead) {
    gr_attention_config config = {.d_model = C, .d_k = 4, .d_v = 5, .causal = true};
    gr_attention_layer a = gr_attention_new(ctx, "a", config, &rng);
    expect_causal(one_head, &a, garbage[_i]);
}

TEST(causal_heads_do_not_look_ahead) {
    gr_multihead_config config = {.width = C, .heads = H, .causal = true, .bias = true};
    gr_multihead_layer a = gr_multihead_new(ctx, "a", config, &rng);
    expect_causal(many_heads, &a, garbage[_i]);
}

TEST(without_causal_a_head_looks_ahead) {
    gr_attention_layer a = gr_attention_new(ctx, "a", (gr_attention_config){.d_model = C}, &rng);
    gr_tensor *x = gr_requires_grad(drawn(GR_SHAPE(1, T, C), -1, 1));
    backward_at_random(rows(gr_attention_forward(&a, x, NULL).output, 0, 1));
    ck_assert(!is_zero(rows(gr_grad(x), T - 1, T)));
}

TEST(a_model_does_not_look_ahead) {
    enum { VOCAB = 7 };
    gr_gpt *gpt = gr_gpt_new(ctx, (gr_gpt_config){.vocab = VOCAB, .context = T, .layers = 2, .heads = H, .width = C});
    int32_t ids[T] = {3, 1, 4, 1, 5};
    for (int64_t t = 1; t < T; t++) {
        int32_t other[T];
        memcpy(other, ids, sizeof ids);
        for (int64_t i = t; i < T; i++) other[i] = (ids[i] + 1) % VOCAB;
        gr_tensor *y = rows(gr_gpt_forward(gpt, (gr_tokens){ids, 1, T}), 0, t);
        ck_assert(same_tensors(y, rows(gr_gpt_forward(gpt, (gr_tokens){other, 1, T}), 0, t)));
        gr_zero_grad(ctx);
        backward_at_random(y);
        gr_tensor *of_positions = gr_grad(gpt->wpe.weight);
        ck_assert(is_zero(rows(of_positions, t, T)) && !is_zero(rows(of_positions, t - 1, t)));
    }
}

/* -- Other ways to write it ---------------------------------------------------------------------------------------- */

/* Head h has rows hD ... hD + D of each third of c_attn and as many columns of c_proj; what the heads give is added. */
TEST(many_heads_are_a_loop_over_heads) {
    gr_multihead_config config = {.width = C, .heads = H, .causal = true};
    gr_multihead_layer a = gr_multihead_new(ctx, "a", config, &rng);
    gr_tensor *x = drawn(GR_SHAPE(B, T, C), -1, 1), *w = a.c_attn.weight, *sum = gr_zeros(ctx, GR_SHAPE(B, T, C));
    gr_attended y = gr_multihead_forward(&a, x, NULL);
    for (int64_t h = 0; h < H; h++) {
        const int64_t first = h * D, end = first + D;
        gr_attention_layer head = {{rows(w, first, end), NULL},
                                   {rows(w, C + first, C + end), NULL},
                                   {rows(w, 2 * C + first, 2 * C + end), NULL},
                                   {gr_slice(a.c_proj.weight, 1, first, end, 1), NULL},
                                   D,
                                   true,
                                   {GR_TEXTBOOK, 0, 0, 0}};
        gr_attended one = gr_attention_forward(&head, x, NULL);
        ck_assert(same_tensors(one.weights, gr_select(y.weights, 1, h)));
        sum = gr_add(sum, one.output);
    }
    static double expected[B * T * C];
    read_values(sum, expected);
    expect_elements(__LINE__, y.output, TOLERANCE, B * T * C, expected);
}

TEST(attention_from_ops_is_the_module) { /* as examples/attention_by_hand.c and the course text write it */
    gr_attention_config config = {.d_model = C, .d_k = 4, .d_v = 5, .causal = true};
    gr_attention_layer layer = gr_attention_new(ctx, "a", config, &rng), *a = &layer;
    gr_tensor *values = drawn(GR_SHAPE(B, T, C), -1, 1), *x = gr_requires_grad(values), *mask = gr_causal_mask(ctx, T);

    gr_tensor *q = gr_linear_forward(&a->w_q, x);
    gr_tensor *k = gr_linear_forward(&a->w_k, x);
    gr_tensor *v = gr_linear_forward(&a->w_v, x);
    gr_tensor *scores = gr_scale(gr_matmul(q, gr_transpose(k, -2, -1)), 1 / sqrt((double)a->d_k));
    gr_tensor *weights = gr_softmax(gr_mask_scores(scores, mask));
    gr_tensor *output = gr_linear_forward(&a->w_o, gr_matmul(weights, v));

    gr_tensor *again = gr_requires_grad(gr_keep(values));
    gr_attended module = gr_attention_forward(a, again, NULL);
    ck_assert(same_tensors(weights, module.weights));
    ck_assert(same_tensors(output, module.output));
    backward_at_random(output), backward_at_random(module.output);
    static double expected[B * T * C];
    read_values(gr_grad(x), expected);
    expect_elements(__LINE__, gr_grad(again), TOLERANCE, B * T * C, expected);
}

Suite *attention_suite(void) {
    Suite *suite = suite_create("attention");
    add_rows(suite, "PyTorch", scaled_dot_product_agrees_with_pytorch, KNOWN);
    GROUP(suite, "sizes", a_head_of_other_sizes_agrees_with_pytorch, weights_are_a_distribution_over_what_is_seen,
          d_k_and_d_v_are_d_model_unless_given, projections_are_the_three_linear_maps_of_the_head);
    GROUP(suite, "masks", the_causal_mask_is_aligned_bottom_right, the_last_queries_alone_get_what_they_get_among_all,
          a_further_mask_joins_the_causal_one_by_and, a_mask_may_differ_by_batch);
    GROUP(suite, "hidden", a_query_that_sees_nothing_gets_exactly_0, queries_before_all_keys_see_nothing,
          a_layer_gives_0_where_nothing_is_seen);
    add_rows(suite, "garbage", garbage_in_a_hidden_slot_gives_the_bits_of_zeros_there, GARBAGE);
    add_rows(suite, "later, one head", a_causal_head_does_not_look_ahead, GARBAGE);
    add_rows(suite, "later, many heads", causal_heads_do_not_look_ahead, GARBAGE);
    GROUP(suite, "later", without_causal_a_head_looks_ahead, a_model_does_not_look_ahead);
    GROUP(suite, "other ways", many_heads_are_a_loop_over_heads, attention_from_ops_is_the_module);
    return suite;
}
