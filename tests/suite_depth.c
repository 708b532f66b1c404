/* Nothing in the library is recursive in its data: a graph of any depth, in a small stack and in linear time. */
#include "nn_support.h"

#include <pthread.h>
#include <time.h>

/* A sixty-fourth of the usual stack; no frame of src/ is above 16 KiB (tests/analyze.sh). */
enum { STACK = 128 << 10 };

static void in_a_small_stack(void *(*run)(void *), void *arg) {
    pthread_attr_t small;
    pthread_t thread;
    ck_assert_int_eq(pthread_attr_init(&small), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&small, STACK), 0);
    ck_assert_int_eq(pthread_create(&thread, &small, run, arg), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&small);
}

/* -- Depth --------------------------------------------------------------------------------------------------------- */

enum { DEEP = 1000000, SHALLOW = DEEP / 4 };

typedef struct chain {
    int nodes;
    double value, slope, seconds;
} chain;

static double seconds_of_thread(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* y = x + x + ... at x = 1: y and dy/dx are nodes + 1, exact in float up to 2^24. */
static void *climb(void *arg) {
    chain *c = arg;
    const double begin = seconds_of_thread();
    gr_context *own = gr_context_new();
    gr_tensor *x = gr_parameter(gr_scalar(own, 1), "x"), *y = x;
    for (int i = 0; i < c->nodes; i++) y = gr_add(y, x);
    c->value = gr_item(y);
    if (gr_backward(y)) c->slope = gr_item(gr_grad(x));
    gr_context_reset(own);
    gr_context_free(own);
    c->seconds = seconds_of_thread() - begin;
    return NULL;
}

/* About 0.5 us a node; what is not linear would be four times as slow a node, or worse, in the deep one. The best of
 * some runs is compared: others may disturb one. */
TEST(a_million_nodes_are_made_walked_and_freed_in_a_small_stack_in_linear_time) {
    enum { RUNS = 3 };
    const double slowest = 20e-6; /* under a sanitizer, on a slow machine */
    double ratio = INFINITY;
    for (int run = 0; run < RUNS && ratio > 2; run++) {
        chain shallow = {.nodes = SHALLOW}, deep = {.nodes = DEEP};
        in_a_small_stack(climb, &shallow);
        in_a_small_stack(climb, &deep);
        ck_assert_double_eq(shallow.value, SHALLOW + 1);
        ck_assert_double_eq(shallow.slope, SHALLOW + 1);
        ck_assert_double_eq(deep.value, DEEP + 1);
        ck_assert_double_eq(deep.slope, DEEP + 1);
        ck_assert_double_le(deep.seconds / DEEP, slowest);
        ratio = fmin(ratio, deep.seconds / DEEP / (shallow.seconds / SHALLOW));
    }
    ck_assert_double_le(ratio, 2);
}

/* -- A model ------------------------------------------------------------------------------------------------------- */

static const gr_attention_kind kinds[] = {GR_FUSED, GR_TEXTBOOK, GR_WINDOW, GR_SPARSE, GR_LINEAR};
enum { KINDS = sizeof kinds / sizeof kinds[0], TIME = 300, BATCH = 2, VOCAB = 64 }; /* more than two tiles of keys */

typedef struct use {
    int threads;
    bool fine;
} use;

/* A step of training and some text, with every style of attention. */
static void *use_a_model(void *arg) {
    use *u = arg;
    static int32_t ids[BATCH * TIME], text[TIME + 8];
    gr_rng drawing = gr_rng_seed(5);
    u->fine = true;
    use_threads(u->threads); /* OpenMP keeps the number by thread */
    for (int i = 0; i < BATCH * TIME; i++) ids[i] = (int32_t)gr_rng_below(&drawing, VOCAB);
    for (int i = 0; i < KINDS; i++) {
        gr_context *own = gr_context_new();
        gr_gpt *gpt = gr_gpt_new(own, (gr_gpt_config){.vocab = VOCAB,
                                                      .context = TIME,
                                                      .heads = 2,
                                                      .width = 64,
                                                      .dropout = 0.1,
                                                      .bias = true,
                                                      .style = {.kind = kinds[i]},
                                                      .positions = i % 2 ? GR_ROTARY : GR_LEARNED});
        gr_adamw *adamw = gr_adamw_new(own, (gr_adamw_config){0});
        gr_tensor *logits = gr_gpt_forward(gpt, (gr_tokens){ids, BATCH, TIME});
        u->fine = gr_backward(gr_cross_entropy(logits, (gr_tokens){ids, BATCH, TIME})) && u->fine;
        gr_clip_grad_norm(own, 1);
        u->fine = gr_adamw_step(adamw, 1e-3) && u->fine;
        gr_context_reset(own);
        text[0] = 1;
        u->fine = gr_gpt_generate(gpt, text, 1, (gr_generation){.total = 20}) && u->fine;
        gr_context_free(own);
    }
    return NULL;
}

TEST(a_model_of_any_style_trains_and_writes_in_a_small_stack) {
    use by_one = {.threads = 1}, by_three = {.threads = 3}; /* one does all the work in the small stack */
    in_a_small_stack(use_a_model, &by_one);
    in_a_small_stack(use_a_model, &by_three);
    ck_assert(by_one.fine && by_three.fine);
}

Suite *depth_suite(void) {
    Suite *suite = suite_create("depth");
    GROUP(suite, "a small stack", a_million_nodes_are_made_walked_and_freed_in_a_small_stack_in_linear_time,
          a_model_of_any_style_trains_and_writes_in_a_small_stack);
    return suite;
}
