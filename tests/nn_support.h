/* What the suites of src/nn share: inputs from a formula, results as digests, a model as one tensor. The numbers that
 * tests compare with were computed once by PyTorch 1.13 in double. There a module (its parameters in the order in which
 * gradus makes them) gave the digests of its output and of all gradients so:
 *
 *     def seq(shape, start=0):
 *         i = torch.arange(math.prod(shape), dtype=torch.float64)
 *         return (((7 * i + 3 + start) % 11 - 5) / 8).reshape(shape)
 *     def digest(x):
 *         x = x.flatten(); i = torch.arange(len(x), dtype=torch.float64)
 *         return x[0], x[-1], ((5 * i + 1) % 13 - 6) / 4 @ x
 *     for k, p in enumerate(parameters): p.copy_(seq(p.shape, k + 2))
 *     x = seq(shape).requires_grad_(); y = module(x); y.backward(seq(y.shape, 1))
 *     for t in [y, x.grad] + [p.grad for p in parameters]: print(digest(t)) */
#ifndef TESTS_NN_SUPPORT_H
#define TESTS_NN_SUPPORT_H

#include "support.h"

/* ((7 i + 3 + start) mod 11 - 5) / 8: exact in both precisions. */
gr_tensor *sequence(gr_shape shape, int start);

/* Parameter number k of ctx becomes sequence(its shape, k + 2). */
void fill_parameters(void);

/* First element, last element, sum_i c_i x_i with c_i = ((5 i + 1) mod 13 - 6) / 4. */
typedef struct digest {
    double first, last, sum;
} digest;
#define EXPECT_DIGEST(x, wanted) expect_digest(__LINE__, x, wanted)
void expect_digest(int line, gr_tensor *x, digest wanted);

/* y has this shape; the digests of y and then, after a backward pass from sequence(shape, 1), of the gradient of x
 * (unless x is NULL) and of every parameter of ctx, are these. */
#define EXPECT_MODULE(y, shape, x, wanted) expect_module(__LINE__, y, shape, x, sizeof(wanted) / sizeof(digest), wanted)
void expect_module(int line, gr_tensor *y, gr_shape shape, gr_tensor *x, size_t count, const digest *wanted);

/* All weights and all gradients of a context, one after the other, kept. */
gr_tensor *snapshot(gr_context *c);

/* A model of 2 layers and 2 heads with biases, and what it learns a text's letters with; the seed is the model's and
 * that of rng. */
enum { LEARNER_TIME = 32 }; /* its context */
typedef struct learner {
    gr_context *c;
    gr_corpus *corpus;
    gr_gpt *gpt;
    gr_adamw *adamw;
    gr_rng rng;
} learner;
learner new_learner(gr_context *c, const char *text, size_t size, double dropout, uint64_t seed);

/* Threads of this process from now on; nothing without OpenMP. */
void use_threads(int threads);

/* gr_backward from a fixed random seed over y. */
void backward_at_random(gr_tensor *y);

/* A new file with this text, to be removed by the test: its path. */
const char *temporary_file(const void *text, size_t size);

#endif
