/* A steady training step asks the system for no memory, and leaves the floating-point environment as it found it. */
#include "faults.h"
#include "nn_support.h"

#include <fenv.h>

static int calls(void) { return faults_counted(FAULT_SYSTEM_MEMORY); }

/* -- A small training ---------------------------------------------------------------------------------------------- */

enum { THREADS = 3, WARM_UP = 3, STEPS = 5, BATCH = 4, TEXT_BYTES = 1000 };

static learner begin(void) {
    char text[TEXT_BYTES];
    for (int i = 0; i < TEXT_BYTES; i++) text[i] = (char)('a' + gr_rng_below(&rng, 20));
    return new_learner(ctx, text, sizeof text, 0.1, 1);
}

static void train(learner *t, int steps) {
    for (int i = 0; i < steps; i++) {
        gr_batch batch = gr_corpus_batch(t->corpus, GR_TRAIN, &t->rng, BATCH, LEARNER_TIME);
        gr_backward(gr_cross_entropy(gr_gpt_forward(t->gpt, batch.inputs), batch.targets));
        gr_clip_grad_norm(ctx, 1.0);
        gr_adamw_step(t->adamw, 1e-3);
        gr_zero_grad(ctx);
        gr_context_reset(ctx);
    }
}

TEST(a_steady_step_asks_the_system_for_nothing) {
    if (!faults_possible) return;
    learner t = begin();
    use_threads(_i + 1);
    train(&t, WARM_UP);
    const int before = calls();
    train(&t, STEPS);
    const int asked = calls() - before;
    ck_assert_msg(gr_ok(ctx), "%s", gr_error_message(ctx));
    ck_assert_msg(asked == 0, "%d calls in %d steps", asked, STEPS);
}

TEST(a_new_context_does_ask) {
    if (!faults_possible) return;
    const int before = calls();
    gr_context *other = gr_context_new();
    const int made = calls();
    gr_zeros(other, GR_SHAPE(3));
    const int filled = calls();
    gr_context_free(other);
    ck_assert_int_gt(made, before);
    ck_assert_int_gt(filled, made);
    ck_assert_int_gt(calls(), filled);
}

/* -- The floating-point environment -------------------------------------------------------------------------------- */

/* The control bits of the processor's floating-point unit, without the flags of what has happened. */
#if defined __x86_64__
#    include <xmmintrin.h>
enum { FLAGS = 0x3f, FLUSH = 0x8040 }; /* flush to zero, and denormals are zero */
static unsigned long control(void) { return _mm_getcsr() & ~(unsigned long)FLAGS; }
static void set_control(unsigned long bits) { _mm_setcsr((unsigned)bits); }
#elif defined __aarch64__
enum { FLUSH = 1 << 24 };
static unsigned long control(void) {
    unsigned long bits;
    __asm__ volatile("mrs %0, fpcr" : "=r"(bits));
    return bits;
}
static void set_control(unsigned long bits) { __asm__ volatile("msr fpcr, %0" : : "r"(bits)); }
#else
enum { FLUSH = 0 };
static unsigned long control(void) { return (unsigned long)fegetround(); }
static void set_control(unsigned long bits) { fesetround((int)bits); }
#endif

static void expect_left_alone(learner *t, const char *what) {
    const int rounding = fegetround();
    const unsigned long before = control();
    train(t, 1);
    const unsigned long after = control();
    ck_assert_msg(fegetround() == rounding && after == before, "%s: control bits 0x%lx, not 0x%lx", what, after,
                  before);
    ck_assert_msg(gr_ok(ctx), "%s: %s", what, gr_error_message(ctx));
}

TEST(the_floating_point_environment_is_left_alone) {
    const int rounding[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    learner t = begin();
    const unsigned long usual = control();
    for (size_t i = 0; i < sizeof rounding / sizeof rounding[0]; i++) {
        ck_assert_int_eq(fesetround(rounding[i]), 0);
        expect_left_alone(&t, "rounding");
        set_control(control() | FLUSH);
        expect_left_alone(&t, "denormals as zero");
        set_control(usual);
    }
    fesetround(FE_TONEAREST);
}

Suite *memory_suite(void) {
    Suite *suite = suite_create("memory");
    add_rows(suite, "steady", a_steady_step_asks_the_system_for_nothing, THREADS);
    GROUP(suite, "environment", a_new_context_does_ask, the_floating_point_environment_is_left_alone);
    return suite;
}
