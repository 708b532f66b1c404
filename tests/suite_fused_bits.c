/* Fused attention: no token sees what comes later, in any style, and no bit hangs on threads or instruction set. */
#include "fused_support.h"
#include "kernels.h"

#include <stdlib.h>

enum { TILE_ROW = ATTENTION_ROW };

/* -- Later tokens -------------------------------------------------------------------------------------------------- */

enum { T = TILE + BAND + 3, D = 4, KINDS_OF_MASK = 5 };

static gr_tensor *causal(int how, gr_tensor *const x[INPUTS]) {
    const gr_mask now = gr_mask_causal(), window = gr_mask_window(20);
    const gr_mask also[] = {gr_mask_all(), window, gr_mask_or(window, gr_mask_global(2)),
                            gr_mask_blocks(gr_layout_fixed(ctx, 1 + T / 8, 4), 8),
                            gr_mask_blocks(gr_layout_strided(ctx, 1 + T / 8, 3), 8)};
    if (how == KINDS_OF_MASK) return gr_linear_attention(x[Q], x[K], x[V], true);
    return gr_attention(x[Q], x[K], x[V], (gr_attention_options){.mask = gr_mask_and(now, also[how])});
}

/* x with other rows from t on: by, or random ones if it is 0. */
static gr_tensor *spoiled(gr_tensor *x, int64_t t, double by) {
    gr_shape rest = GR_SHAPE(gr_dim(x, -2) - t, gr_dim(x, -1));
    return gr_concat((gr_tensor *[]){rows(x, 0, t), by == 0 ? drawn(rest, -2, 2) : gr_full(ctx, rest, by)}, 2, -2);
}

static const int64_t times[] = {1, BAND - 1, BAND, BAND + 1, TILE - 1, TILE, TILE + 1, T - 1};
enum { TIMES = sizeof times / sizeof *times };

TEST(what_comes_later_changes_no_bit) {
    const double by[] = {0, NAN, INFINITY, 1e38};
    for (int n = 0; n < TIMES * 4; n++) {
        const int64_t t = times[n / 4];
        gr_tensor *x[INPUTS], *other[INPUTS];
        for (int i = 0; i < INPUTS; i++) x[i] = gr_requires_grad(drawn(GR_SHAPE(T, D), -2, 2));
        for (int i = 0; i < INPUTS; i++) other[i] = spoiled(gr_detach(x[i]), t, by[n % 4]);
        gr_tensor *y = causal(_i, x);
        ck_assert(same_rows(y, causal(_i, other), 0, t));
        backward_at_random(rows(y, 0, t));
        for (int i = 0; i < INPUTS; i++) ck_assert(is_zero(rows(gr_grad(x[i]), t, T)));
        if (t > 1) ck_assert(!is_zero(rows(gr_grad(x[Q]), t - 1, t)));
        gr_context_reset(ctx);
    }
}

/* The last id stands for another token, whose embedding is then changed. Its own logit is left out, as the head is the
 * embedding. */
enum { VOCAB = 9, CONTEXT = 2 * BAND + 6 };
static gr_tensor *logits(gr_gpt *gpt, int64_t t) {
    int32_t ids[CONTEXT];
    for (int32_t i = 0; i < CONTEXT; i++) ids[i] = i < t ? i * i % (VOCAB - 1) : VOCAB - 1;
    gr_tensor *y = gr_gpt_forward(gpt, (gr_tokens){ids, 1, CONTEXT});
    return rows(gr_slice(y, -1, 0, VOCAB - 1, 1), 0, t);
}

TEST(a_model_of_any_style_does_not_look_ahead) {
    const gr_attention_style style[] = {
        {GR_TEXTBOOK, 0, 0, 0}, {GR_FUSED, 0, 0, 0}, {GR_WINDOW, 5, 2, 0}, {GR_SPARSE, 0, 0, 4}, {GR_LINEAR, 0, 0, 0}};
    gr_gpt_config config = {.vocab = VOCAB, .context = CONTEXT, .layers = 2, .heads = 2, .width = 8, .bias = true};
    config.style = style[_i / 2], config.positions = _i % 2 ? GR_ROTARY : GR_LEARNED;
    gr_gpt *gpt = gr_gpt_new(ctx, config);
    gr_tensor *token = gr_select(gpt->wte.weight, 0, VOCAB - 1), *y;
    for (int n = 0; n < 4; n++) {
        const int64_t t = times[n];
        const double by[] = {3, 1e30, NAN};
        for (int64_t c = 0; c < 8; c++) gr_data(token)[c] = (gr_real)(c % 3) - 1;
        gr_zero_grad(ctx);
        backward_at_random(y = logits(gpt, t));
        ck_assert(is_zero(gr_slice(gr_grad(gpt->wte.weight), 0, VOCAB - 1, VOCAB, 1)));
        if (!(_i % 2)) ck_assert(is_zero(rows(gr_grad(gpt->wpe.weight), t, CONTEXT)));
        for (int k = 0; k < 3; k++) {
            for (int64_t c = 0; c < 8; c++) gr_data(token)[c] = (gr_real)(by[k] * (double)(1 - c % 2 * 3));
            ck_assert(same_tensors(y, logits(gpt, t)));
        }
    }
}

/* -- Threads and instruction sets ---------------------------------------------------------------------------------- */

enum { HEADS = 2, TQ = 2 * TILE + 5, TK = TILE + BAND + 1, W = 12, E = 16, MASKS = 8 };
enum { OF_MASK = HEADS * (TQ * (W + E) + TK * (W + E) + TQ * E), ROOM = MASKS * OF_MASK };
typedef struct outcome {
    gr_real number[ROOM];
    size_t count;
} outcome;
static outcome first, again;

static void note(outcome *o, gr_tensor *x) {
    ck_assert_msg(gr_ok(ctx), "%s", gr_error_message(ctx));
    ck_assert_uint_le(o->count + (size_t)gr_numel(x), ROOM);
    ck_assert(gr_to_array(x, o->number + o->count));
    o->count += (size_t)gr_numel(x);
}

static void run_masked(outcome *o, gr_mask mask, double dropout, bool garbage) {
    gr_tensor *x[] = {drawn(GR_SHAPE(HEADS, TQ, W), -2, 2), drawn(GR_SHAPE(HEADS, TK, W), -2, 2),
                      drawn(GR_SHAPE(HEADS, TK, E), -2, 2)};
    for (int i = 0; i < INPUTS; i++) gr_requires_grad(x[i]);
    if (garbage) gr_data(x[K])[0] = (gr_real)NAN, gr_data(x[V])[0] = (gr_real)INFINITY;
    gr_tensor *y = gr_attention(x[Q], x[K], x[V], (gr_attention_options){mask, 0, dropout, &rng, NULL, NULL});
    backward_at_random(y);
    note(o, y);
    for (int i = 0; i < INPUTS; i++) note(o, gr_grad(x[i]));
}

/* Rows of a tile are queries to one pair and keys to another of the same round. */
static void run_shared(outcome *o) {
    gr_tensor *x = gr_requires_grad(drawn(GR_SHAPE(TQ + 9, 3 * W), -1, 1)), *part[INPUTS];
    for (int n = 0; n < 4; n++) {
        gr_split(x, -1, INPUTS, part);
        gr_tensor *of[][INPUTS] = {{x, x, x},
                                   {rows(x, 0, TQ), rows(x, 9, GR_END), rows(x, 5, TQ + 5)},
                                   {part[0], part[1], part[2]},
                                   {part[1], part[1], part[0]}};
        gr_tensor *y = gr_attention(of[n][Q], of[n][K], of[n][V], (gr_attention_options){.mask = gr_mask_window(TQ)});
        backward_at_random(y);
        note(o, y), note(o, gr_grad(x));
    }
}

static void run(outcome *o) {
    gr_context_free(ctx);
    ctx = gr_context_new();
    rng = gr_rng_seed(11);
    o->count = 0;
    gr_tensor *allow = gr_relu(drawn(GR_SHAPE(HEADS, TQ, TK), -1, 1)),
              *holes = gr_full(ctx, GR_SHAPE(HEADS, TQ, TK), 1);
    for (int64_t i = 0; i < gr_numel(holes); i += TK) gr_data(holes)[i] = i % 7 == 3; /* some do not see the first */
    run_masked(o, gr_mask_all(), 0.1, false);
    run_masked(o, gr_mask_causal(), 0, true);
    run_masked(o, gr_mask_or(gr_mask_window(40), gr_mask_global(3)), 0.3, false);
    run_masked(o, gr_mask_tensor(allow), 0.2, true);
    run_masked(o, gr_mask_and(gr_mask_causal(), gr_mask_tensor(holes)), 0, true);
    run_shared(o);
}

static void expect_the_first_bits(const char *why) {
    size_t at;
    run(&again);
    ck_assert_uint_eq(again.count, first.count);
    ck_assert_msg(same_bits(first.count, again.number, first.number, &at), "%s: number %zu differs", why, at);
}

TEST(the_number_of_threads_changes_no_bit) {
    const int threads[] = {2, 3, 8};
    use_threads(1);
    run(&first);
    for (int i = 0; i < 3; i++) {
        char why[32];
        use_threads(threads[i]);
        snprintf(why, sizeof why, "%d threads", threads[i]);
        expect_the_first_bits(why);
    }
}

TEST(the_instruction_set_changes_no_bit) {
    setenv("GRADUS_ISA", "reference", 1);
    run(&first);
    for (int i = 0; i < fast_tables(); i++) {
        if (!table(i)->exact) continue;
        setenv("GRADUS_ISA", table(i)->name, 1);
        expect_the_first_bits(table(i)->name);
    }
}

/* -- Gradients ----------------------------------------------------------------------------------------------------- */

static void expect_near(gr_tensor *found, gr_tensor *wanted) {
    const double size = gr_item(gr_max(gr_abs(wanted), GR_ALL));
    ck_assert_double_le(gr_item(gr_max(gr_abs(gr_sub(found, wanted)), GR_ALL)), TOLERANCE * fmax(1, size));
}

static gr_tensor *gradient_of_one(gr_tensor *value, gr_tensor *(*make)(gr_tensor *x, bool fused), bool fused) {
    gr_tensor *x = gr_requires_grad(gr_detach(value));
    backward_at_random(make(x, fused));
    return gr_grad(x);
}

static gr_tensor *either(gr_tensor *q, gr_tensor *k, gr_tensor *v, bool fused) {
    gr_tensor *weights = NULL;
    gr_attention_options options = {.mask = gr_mask_causal(), .weights = fused ? NULL : &weights};
    return gr_attention(q, k, v, options);
}
static gr_tensor *of_itself(gr_tensor *x, bool fused) { return either(x, x, x, fused); }
static gr_tensor *of_two(gr_tensor *x, bool fused) { return either(gr_scale(x, 2), x, x, fused); }
static gr_tensor *of_crossed(gr_tensor *x, bool fused) { return either(x, gr_scale(x, 2), x, fused); }
static gr_tensor *of_inner(gr_tensor *x, bool fused) { /* their gradients come from the pool */
    return either(gr_scale(x, 0.1), gr_scale(x, 0.2), gr_scale(x, 3), fused);
}

static gr_tensor *of_overlapping(gr_tensor *x, bool fused) {
    return either(rows(x, 0, TQ), rows(x, 3, TQ + 3), rows(x, 2, TQ + 2), fused);
}
static gr_tensor *of_interleaved(gr_tensor *x, bool fused) {
    return either(gr_slice(x, -2, 0, TQ, 2), gr_slice(x, -2, 1, TQ, 2), gr_slice(x, -2, 2, TQ + 1, 2), fused);
}
static gr_tensor *of_turned(gr_tensor *x, bool fused) {
    gr_tensor *square = gr_slice(gr_slice(x, -2, 0, 2 * W, 1), -1, 0, 2 * W, 1);
    return either(square, gr_transpose(square, -1, -2), gr_transpose(square, -1, -2), fused);
}
static gr_tensor *of_parts(gr_tensor *x, bool fused) { /* (B, T, 3 C), cut before or after the heads are made */
    enum { C = 2 * W / 3, H = C / 4 };
    gr_tensor *part[INPUTS], *y;
    gr_split(gr_slice(x, -1, 0, 3 * C, 1), -1, INPUTS, part);
    for (int i = 0; i < INPUTS; i++) part[i] = gr_transpose(gr_reshape(part[i], GR_SHAPE(2, -1, H, 4)), 1, 2);
    y = either(part[Q], part[K], part[V], fused);
    x = gr_transpose(gr_reshape(gr_slice(x, -1, 0, 3 * C, 1), GR_SHAPE(2, -1, 3 * H, 4)), 1, 2);
    gr_split(x, 1, INPUTS, part);
    return gr_add(y, either(part[K], part[Q], part[V], fused));
}
static gr_tensor *(*const make[])(gr_tensor *, bool) = {of_itself,      of_two,    of_crossed, of_overlapping,
                                                        of_interleaved, of_turned, of_parts};

TEST(one_tensor_may_be_several_operands) {
    gr_tensor *x = drawn(GR_SHAPE(2, TQ + 3, 2 * W), -1, 1);
    for (int i = 0; i < 7; i++) expect_near(gradient_of_one(x, make[i], true), gradient_of_one(x, make[i], false));
}

/* The room of the tiles goes back to a pool of tensors of equal sizes: a gradient as large must not lie in it. */
TEST(gradients_as_large_as_the_tiles_are_not_among_them) {
    for (int threads = 1; threads <= 2; threads++) {
        use_threads(threads);
        gr_tensor *x = drawn(GR_SHAPE(2 * threads, TILE, TILE_ROW), -0.5, 0.5);
        gr_tensor *found = gradient_of_one(x, of_inner, true);
        expect_near(found, gradient_of_one(x, of_inner, false));
        gr_context_reset(ctx);
    }
}

TEST(gradients_add_up_where_they_are_wanted) {
    gr_tensor *x[INPUTS], *once[INPUTS];
    for (int wanted = 0; wanted < 1 << INPUTS; wanted++) {
        for (int i = 0; i < INPUTS; i++) {
            gr_rng_uniform(&rng);
            x[i] = drawn(GR_SHAPE(2, BAND + 1, D), -1, 1);
            if (wanted >> i & 1) gr_requires_grad(x[i]);
        }
        for (int i = 0; i < INPUTS; i++) once[i] = NULL;
        for (int pass = 1; pass <= 2 && wanted; pass++) {
            backward_at_random(either(x[Q], x[K], x[V], true));
            for (int i = 0; i < INPUTS; i++)
                if (wanted >> i & 1 && pass == 1)
                    once[i] = gr_keep(gr_grad(x[i]));
                else if (wanted >> i & 1)
                    expect_near(gr_grad(x[i]), gr_scale(once[i], 2));
        }
        if (wanted) continue;
        ck_assert(!gr_backward(gr_sum(either(x[Q], x[K], x[V], true), GR_ALL)));
        EXPECT_ERROR("depends on no parameter or variable");
    }
}

TEST(nothing_is_recorded_without_gradients_and_nothing_twice) {
    gr_tensor *x = gr_requires_grad(drawn(GR_SHAPE(T, D), -1, 1)), *seed = gr_zeros(ctx, GR_SHAPE(T, D));
    gr_tensor *y = either(x, x, x, true);
    ck_assert(gr_backward_from(y, seed));
    ck_assert(!gr_backward_from(y, seed));
    EXPECT_ERROR("which backward has gone through before");
    gr_no_grad_begin(ctx);
    gr_tensor *z = either(x, x, x, true);
    gr_no_grad_end(ctx);
    ck_assert(same_tensors(y, z) && !gr_backward_from(z, seed));
    EXPECT_ERROR("depends on no parameter or variable");
}

/* -- Memory and refusals ------------------------------------------------------------------------------------------- */

TEST(memory_is_linear_in_the_length) {
    enum { SIZE = 64, SHORT = 4096, LONG = 16384, ARRAYS = 10 }; /* q, k, v, y, their gradients, the seed, a spare */
    const double most = 16 << 20;
    double beyond[2];
    use_threads(2);
    for (int i = 0; i < 2; i++) {
        const int64_t n = i ? LONG : SHORT;
        const double before = (double)gr_context_bytes(ctx);
        gr_tensor *x[INPUTS];
        for (int k = 0; k < INPUTS; k++) x[k] = gr_requires_grad(drawn(GR_SHAPE(n, SIZE), -1, 1));
        gr_attention_options options = {.mask = gr_mask_and(gr_mask_window(64), gr_mask_causal())};
        backward_at_random(gr_attention(x[Q], x[K], x[V], options));
        beyond[i] = (double)gr_context_bytes(ctx) - before - ARRAYS * (double)(n * SIZE) * (double)sizeof(gr_real);
        ck_assert_double_le(beyond[i], most);
        gr_context_reset(ctx);
    }
    ck_assert_double_le(beyond[1], 4 * fmax(beyond[0], 1 << 20));
}

TEST(what_does_not_fit_is_refused) {
    gr_tensor *x = gr_zeros(ctx, GR_SHAPE(3, 2)), *wide = gr_zeros(ctx, GR_SHAPE(3, 4)), *w = x, *l = x;
    gr_tensor *tall = gr_named(gr_zeros(ctx, GR_SHAPE(5, 2)), "tall"), *two = gr_zeros(ctx, GR_SHAPE(2, 3, 2));
    gr_tensor *four = gr_zeros(ctx, GR_SHAPE(4, 3, 2)), *row = gr_zeros(ctx, GR_SHAPE(3));
    const char *axes = "all need two axes or more, and the same leading ones";
    const struct {
        gr_tensor *q, *k, *v;
        gr_attention_options options;
        const char *shapes, *why;
    } bad[] = {
        {x, wide, x, {.scale = 0}, "q (3, 2), k (3, 4), v (3, 2)", "sizes 2 of q and 4 of k differ"},
        {x, tall, x, {.scale = 0}, "q (3, 2), tall (5, 2), v (3, 2)", "5 keys, 3 values"},
        {two, two, four, {.scale = 0}, "q (2, 3, 2), k (2, 3, 2), v (4, 3, 2)", axes},
        {four, two, two, {.scale = 0}, "q (4, 3, 2), k (2, 3, 2), v (2, 3, 2)", axes},
        {x, two, x, {.scale = 0}, "q (3, 2), k (2, 3, 2), v (3, 2)", axes},
        {row, row, row, {.scale = 0}, "q (3,), k (3,), v (3,)", axes},
        {x, x, x, {.dropout = 1}, "q (3, 2), k (3, 2), v (3, 2)", "dropout is 1; it must be in [0, 1)"},
        {x, x, x, {.dropout = NAN}, "q (3, 2), k (3, 2), v (3, 2)", "dropout is"},
        {x, x, x, {.dropout = 0.1}, "q (3, 2), k (3, 2), v (3, 2)", "dropout without rng"},
        {x, x, x, {.scale = INFINITY}, "q (3, 2), k (3, 2), v (3, 2)", "scale is inf"},
        {x,
         x,
         x,
         {.weights = &w, .logsumexp = &l},
         "q (3, 2), k (3, 2), v (3, 2)",
         "weights and logsumexp cannot both be had"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[160];
        snprintf(text, sizeof text, "attention: %s: %s", bad[i].shapes, bad[i].why);
        ck_assert(gr_is_inert(gr_attention(bad[i].q, bad[i].k, bad[i].v, bad[i].options)));
        EXPECT_ERROR(text);
    }
    ck_assert(gr_is_inert(w) && gr_is_inert(l));
    ck_assert(gr_is_inert(gr_attention(x, NULL, x, (gr_attention_options){0})));
    EXPECT_ERROR("attention: k (operand 1) is NULL");
}

Suite *fused_bits_suite(void) {
    Suite *suite = suite_create("fused_bits");
    add_rows(suite, "later tokens", what_comes_later_changes_no_bit, KINDS_OF_MASK + 1);
    add_rows(suite, "models", a_model_of_any_style_does_not_look_ahead, 10);
    GROUP(suite, "same bits", the_number_of_threads_changes_no_bit, the_instruction_set_changes_no_bit);
    GROUP(suite, "gradients", one_tensor_may_be_several_operands, gradients_as_large_as_the_tiles_are_not_among_them,
          gradients_add_up_where_they_are_wanted, nothing_is_recorded_without_gradients_and_nothing_twice);
    GROUP(suite, "other", memory_is_linear_in_the_length, what_does_not_fit_is_refused);
    return suite;
}
