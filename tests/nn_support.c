#include "nn_support.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef _OPENMP
#    include <omp.h>
#endif

gr_tensor *sequence(gr_shape shape, int start) {
    gr_tensor *x = gr_zeros(ctx, shape);
    for (int64_t i = 0; i < gr_numel(x); i++) gr_data(x)[i] = (gr_real)((7 * i + 3 + start) % 11 - 5) / 8;
    return x;
}

void fill_parameters(void) {
    for (int k = 0; k < gr_parameter_count(ctx); k++) {
        gr_tensor *w = gr_parameter_at(ctx, k);
        ck_assert(gr_to_array(sequence(gr_shape_of(w), k + 2), gr_data(w)));
    }
}

static void expect_number(int line, const char *tensor_name, const char *what, double found, double wanted) {
    ck_assert_msg(fabs(found - wanted) <= TOLERANCE * fmax(1, fabs(wanted)), "line %d: %s of %s is %.17g, not %.17g",
                  line, what, tensor_name, found, wanted);
}

void expect_digest(int line, gr_tensor *x, digest wanted) {
    static double value[1 << 16];
    read_values(x, value);
    const int64_t n = gr_numel(x);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)((5 * i + 1) % 13 - 6) / 4 * value[i];
    expect_number(line, gr_name(x), "first element", value[0], wanted.first);
    expect_number(line, gr_name(x), "last element", value[n - 1], wanted.last);
    expect_number(line, gr_name(x), "sum", sum, wanted.sum);
}

void expect_module(int line, gr_tensor *y, gr_shape shape, gr_tensor *x, size_t count, const digest *wanted) {
    size_t at = 0, of_x = x ? 1 : 0;
    ck_assert_uint_eq(count, 1 + of_x + (size_t)gr_parameter_count(ctx));
    expect_shape(line, y, shape);
    expect_digest(line, gr_named(y, "y"), wanted[at++]);
    ck_assert_msg(gr_backward_from(y, sequence(shape, 1)), "%s", gr_error_message(ctx));
    if (x) expect_digest(line, gr_named(gr_grad(x), "dx"), wanted[at++]);
    for (int k = 0; at < count; k++) {
        gr_tensor *w = gr_parameter_at(ctx, k);
        expect_digest(line, gr_named(gr_grad(w), gr_name(w)), wanted[at++]);
    }
}

gr_tensor *snapshot(gr_context *c) {
    const int count = gr_parameter_count(c);
    gr_tensor **part = calloc((size_t)count, 2 * sizeof *part);
    ck_assert_ptr_nonnull(part);
    for (int k = 0; k < count; k++) {
        gr_tensor *w = gr_parameter_at(c, k);
        part[2 * k] = gr_reshape(gr_detach(w), GR_SHAPE(-1));
        part[2 * k + 1] = gr_reshape(gr_grad(w), GR_SHAPE(-1));
    }
    gr_tensor *all = gr_keep(gr_concat(part, 2 * count, 0));
    free(part);
    ck_assert_msg(gr_ok(c), "%s", gr_error_message(c));
    return all;
}

learner new_learner(gr_context *c, const char *text, size_t size, double dropout, uint64_t seed) {
    learner l = {.c = c, .rng = gr_rng_seed(seed)};
    l.corpus = gr_corpus_from(c, (const uint8_t *)text, size, GR_CHARS);
    l.gpt = gr_gpt_new(c, (gr_gpt_config){.vocab = gr_corpus_vocab(l.corpus),
                                          .context = LEARNER_TIME,
                                          .layers = 2,
                                          .heads = 2,
                                          .width = 32,
                                          .dropout = dropout,
                                          .bias = true,
                                          .seed = seed});
    l.adamw = gr_adamw_new(c, (gr_adamw_config){.weight_decay = 0.1});
    return l;
}

void use_threads(int threads) {
#ifdef _OPENMP
    omp_set_num_threads(threads);
#else
    (void)threads;
#endif
}

void backward_at_random(gr_tensor *y) {
    gr_rng seed = gr_rng_seed(99);
    gr_tensor *dy = gr_normal(gr_context_of(y), gr_shape_of(y), 0, 1, &seed);
    ck_assert_msg(gr_backward_from(y, dy), "%s", gr_error_message(gr_context_of(y)));
}

const char *temporary_file(const void *text, size_t size) {
    static char path[32];
    strcpy(path, "/tmp/gradus_test_XXXXXX");
    const int file = mkstemp(path);
    ck_assert(file >= 0 && write(file, text, size) == (ssize_t)size && close(file) == 0);
    return path;
}
