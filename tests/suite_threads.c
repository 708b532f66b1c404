/* A whole small computation gives the same bits for any number of threads and any instruction set. */
#include "hash.h"
#include "kernels.h"

#include <stdlib.h>

#ifdef _OPENMP
#    include <omp.h>
#endif

/* Large enough that the library uses several threads for most of it. */
enum { B = 4, T = 100, C = 64, H = 4, D = C / H, V = 101, PARAMETERS = 6, ROOM = V * C + 4 * C * C + 2 * C + V * C };

typedef struct outcome {
    gr_real loss, logits[B * T * V], gradient[ROOM];
    size_t gradients;
} outcome;

static int32_t ids[B * T], targets[B * T];

static gr_tensor *weights(int64_t rows, int64_t columns, const char *name) {
    return gr_parameter(gr_normal(ctx, GR_SHAPE(rows, columns), 0, 0.3, &rng), name);
}

static gr_tensor *heads(gr_tensor *x) { /* (B, T, C) -> (B, H, T, D) */
    return gr_transpose(gr_reshape(x, GR_SHAPE(B, T, H, D)), 1, 2);
}

static gr_tensor *attention(gr_tensor *x, gr_tensor *w_qkv, gr_tensor *mask) {
    gr_tensor *part[3];
    gr_split(gr_linear(x, w_qkv, NULL), -1, 3, part); /* (B, T, C) each */
    gr_tensor *scores = gr_attention_scores(heads(part[0]), heads(part[1]));
    gr_tensor *seen = gr_attention_output(gr_masked_softmax(scores, mask, 0.25), heads(part[2]));
    return gr_reshape(gr_transpose(seen, 1, 2), GR_SHAPE(B, T, C));
}

static gr_tensor *compute(void) {
    gr_tensor *table = weights(V, C, "table"), *w_qkv = weights(3 * C, C, "w_qkv"), *w = weights(C, C, "w");
    gr_tensor *g = gr_parameter(gr_full(ctx, GR_SHAPE(C), 1), "g"), *b = gr_parameter(gr_zeros(ctx, GR_SHAPE(C)), "b");
    gr_tensor *w_out = weights(V, C, "w_out"), *mask = gr_where(gr_uniform(ctx, GR_SHAPE(T, T), -1, 1, &rng),
                                                                gr_zeros(ctx, GR_SHAPE(T, 1)), gr_scalar(ctx, 1));
    mask = gr_relu(gr_add(mask, gr_uniform(ctx, GR_SHAPE(T, T), -0.5, 1, &rng)));
    for (int i = 0; i < B * T; i++) ids[i] = (int32_t)gr_rng_below(&rng, V), targets[i] = i % 9 ? ids[i] : GR_IGNORE;
    gr_tensor *x = gr_gather_rows(table, (gr_tokens){ids, B, T});
    x = gr_add(x, attention(gr_layernorm(x, g, b, 0), w_qkv, mask));
    x = gr_add(x, gr_dropout(gr_gelu(gr_matmul(gr_rmsnorm(x, g, 0), w)), 0.1, &rng));
    x = gr_sub(x, gr_tanh(gr_scale(gr_mean(gr_square(x), GR_KEEP(1)), 0.1)));
    return gr_linear(x, w_out, NULL);
}

static void run(outcome *o) {
    gr_context_free(ctx);
    ctx = gr_context_new();
    rng = gr_rng_seed(11);
    gr_tensor *logits = compute(), *loss = gr_cross_entropy(logits, (gr_tokens){targets, B, T});
    loss = gr_add(loss, gr_scale(gr_norm(logits, GR_ALL), 1e-3));
    ck_assert_msg(gr_backward(loss), "%s", gr_error_message(ctx));
    o->loss = (gr_real)gr_item(loss);
    ck_assert(gr_to_array(logits, o->logits));
    o->gradients = 0;
    for (int i = 0; i < PARAMETERS; i++) {
        gr_tensor *dw = gr_grad(gr_parameter_at(ctx, i));
        ck_assert_uint_le(o->gradients + (size_t)gr_numel(dw), ROOM);
        ck_assert(gr_to_array(dw, o->gradient + o->gradients));
        o->gradients += (size_t)gr_numel(dw);
    }
}

static outcome first, again;

static void expect_the_first_bits(const char *why) {
    size_t at;
    run(&again);
    ck_assert_msg(same_bits(1, &again.loss, &first.loss, &at), "%s: another loss", why);
    ck_assert_msg(same_bits(B * T * V, again.logits, first.logits, &at), "%s: logit %zu differs", why, at);
    ck_assert_msg(same_bits(first.gradients, again.gradient, first.gradient, &at), "%s: gradient %zu differs", why, at);
}

TEST(the_number_of_threads_changes_no_bit) {
#ifdef _OPENMP
    const int threads[] = {2, 3, 8, 1};
    omp_set_num_threads(1);
    run(&first);
    for (int i = 0; i < 4; i++) {
        char why[32];
        omp_set_num_threads(threads[i]);
        snprintf(why, sizeof why, "%d threads", threads[i]);
        expect_the_first_bits(why);
    }
#endif
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

/* Found with gcc 12 and clang 14, -O0 to -O3, with and without OpenMP. Another number here is right only after a
 * change of a formula or of the order of a sum. */
TEST(the_compiler_changes_no_bit) {
    const uint64_t wanted = sizeof(gr_real) == sizeof(float) ? 0xed0c53e8df8eb603 : 0x409d314071f3c2c3;
    setenv("GRADUS_ISA", "reference", 1);
    run(&first);
    uint64_t h = hash_numbers(hash_of_nothing, &first.loss, 1);
    h = hash_numbers(h, first.logits, B * T * V);
    h = hash_numbers(h, first.gradient, first.gradients);
    ck_assert_msg(h == wanted, "0x%llx", (unsigned long long)h);
}

TEST(without_fused_multiply_add_only_digits_change) {
    if (!gr_kernels_select("baseline")) return;
    setenv("GRADUS_ISA", "reference", 1);
    run(&first);
    setenv("GRADUS_ISA", "baseline", 1);
    run(&again);
    double largest = 0;
    for (size_t i = 0; i < first.gradients; i++) { /* with fmax gcc 12 breaks off, for aarch64 at -O3 */
        const double size = fabs((double)first.gradient[i]);
        if (size > largest) largest = size;
    }
    for (size_t i = 0; i < first.gradients; i++)
        DEMAND(fabs((double)first.gradient[i] - (double)again.gradient[i]) <= 10 * TOLERANCE * largest); /* no NaN */
    ck_assert_double_le(fabs((double)(first.loss - again.loss)), TOLERANCE * (double)first.loss);
}

Suite *threads_suite(void) {
    Suite *suite = suite_create("threads");
    GROUP(suite, "same bits", the_number_of_threads_changes_no_bit, the_instruction_set_changes_no_bit,
          the_compiler_changes_no_bit, without_fused_multiply_add_only_digits_change);
    return suite;
}
