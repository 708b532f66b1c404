/* Runs side by side: two threads of one process, a process and its child. None changes a bit of another. */
#include "nn_support.h"
#include "tensor/parallel.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char text[] = "Two at one table, each with a book of his own; neither reads aloud, and neither is alone. "
                           "One turns a page, and the other one too: what is not shared is not mixed by the two.";

enum { STEPS = 5, BATCH = 4, WRITTEN = 48, THREADS = 3, PATH = 32 };

/* -- A run of training --------------------------------------------------------------------------------------------- */

static learner begin(uint64_t seed) { return new_learner(gr_context_new(), text, sizeof text - 1, 0.1, seed); }

static void train(learner *r, double loss[STEPS]) {
    for (int i = 0; i < STEPS; i++) {
        const gr_batch batch = gr_corpus_batch(r->corpus, GR_TRAIN, &r->rng, BATCH, LEARNER_TIME);
        gr_tensor *l = gr_cross_entropy(gr_gpt_forward(r->gpt, batch.inputs), batch.targets);
        loss[i] = gr_item(l);
        gr_backward(l);
        gr_clip_grad_norm(r->c, 1);
        gr_adamw_step(r->adamw, 1e-2);
        gr_zero_grad(r->c);
        gr_context_reset(r->c);
    }
}

/* -- Two threads --------------------------------------------------------------------------------------------------- */

typedef struct job {
    uint64_t seed;
    char path[PATH];
    bool fine;
    double loss[STEPS];
    int32_t ids[WRITTEN];
} job;

/* Trains, saves, loads into another context, and writes with what was loaded. */
static void *work(void *arg) {
    job *j = arg;
    use_threads(THREADS);
    learner r = begin(j->seed);
    train(&r, j->loss);
    j->fine = gr_gpt_save(r.gpt, gr_corpus_tokenizer(r.corpus), j->path);
    gr_context *other = gr_context_new();
    gr_gpt *loaded = gr_gpt_load(other, j->path, NULL);
    j->fine = j->fine && gr_gpt_generate(loaded, j->ids, 1,
                                         (gr_generation){.total = WRITTEN, .how.temperature = 1, .rng = &r.rng});
    gr_context_free(other);
    gr_context_free(r.c);
    return NULL;
}

static job new_job(uint64_t seed) {
    job j = {.seed = seed, .ids = {1}};
    snprintf(j.path, sizeof j.path, "%s", temporary_file("", 0));
    return j;
}

TEST(two_threads_train_save_load_and_write_as_each_would_alone) {
    job together[2] = {new_job(1), new_job(2)}, alone[2] = {new_job(1), new_job(2)};
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) ck_assert_int_eq(pthread_create(&thread[i], NULL, work, &together[i]), 0);
    for (int i = 0; i < 2; i++) ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < 2; i++) {
        work(&alone[i]);
        ck_assert(alone[i].fine && together[i].fine);
        ck_assert_mem_eq(alone[i].loss, together[i].loss, sizeof alone[i].loss);
        ck_assert_mem_eq(alone[i].ids, together[i].ids, sizeof alone[i].ids);
        unlink(alone[i].path);
        unlink(together[i].path);
    }
    ck_assert(memcmp(alone[0].ids, alone[1].ids, sizeof alone[0].ids) != 0);
}

/* -- A process and its child --------------------------------------------------------------------------------------- */

/* After these a child that hangs is ended; Check multiplies its own limits alike. */
static unsigned patience(void) {
    const char *multiplier = getenv("CK_TIMEOUT_MULTIPLIER");
    const double seconds = 10 * (multiplier ? atof(multiplier) : 1);
    return seconds > 1 ? (unsigned)seconds : 1; /* alarm(0) would wait for ever */
}

static void count_piece(size_t from, size_t to, int thread, void *arg) {
    (void)from;
    (void)to;
    (void)thread;
    __atomic_fetch_add((int *)arg, 1, __ATOMIC_RELAXED);
}

/* Pieces that much work is cut into. */
static int pieces(void) {
    int count = 0;
    gr_parallel_for(THREADS, (size_t)1 << 30, count_piece, &count);
    return count;
}

/* What a child of fork() did with a copy of the run. */
typedef struct report {
    int pieces;
    double loss[STEPS];
} report;

/* The child's side; r NULL: a run of its own. */
static void be_a_child(learner *r, int out) {
    signal(SIGALRM, SIG_DFL); /* Check's handler would end the test with it */
    alarm(patience());
    use_threads(THREADS); /* LLVM's OpenMP forgets it in a child */
    report done = {.pieces = pieces()};
    learner own = r ? *r : begin(7);
    train(&own, done.loss);
    _exit(gr_ok(own.c) && write(out, &done, sizeof done) == sizeof done ? EXIT_SUCCESS : EXIT_FAILURE);
}

static pid_t fork_child(learner *r, int *in) {
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) be_a_child(r, ends[1]);
    close(ends[1]);
    *in = ends[0];
    return child;
}

static report report_of(pid_t child, int in) {
    report done = {0};
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS, "the child ended with status %d", status);
    ck_assert_int_eq(read(in, &done, sizeof done), sizeof done);
    close(in);
    return done;
}

TEST(a_child_of_a_process_with_threads_trains_on_with_the_same_bits) {
    double before[STEPS], after[STEPS];
    int in;
    use_threads(THREADS);
    learner r = begin(7);
    const int here = pieces();
    train(&r, before);
    const pid_t child = fork_child(&r, &in);
    train(&r, after); /* the parent goes on, too */
    const report done = report_of(child, in);
    ck_assert_mem_eq(done.loss, after, sizeof after);
    ck_assert_int_eq(done.pieces, 1);
    ck_assert_int_eq(pieces(), here);
#ifdef _OPENMP
    ck_assert_int_eq(here, THREADS);
#endif
    gr_context_free(r.c);
}

TEST(a_child_of_a_process_without_threads_has_threads_of_its_own) {
    double here[STEPS];
    int in;
    use_threads(THREADS);
    const pid_t child = fork_child(NULL, &in); /* before this process has opened a team */
    const report done = report_of(child, in);
    learner r = begin(7);
    train(&r, here);
    ck_assert_mem_eq(done.loss, here, sizeof here);
    ck_assert_int_eq(done.pieces, pieces());
    gr_context_free(r.c);
}

Suite *concurrent_suite(void) {
    Suite *suite = suite_create("concurrent");
    GROUP(suite, "two threads", two_threads_train_save_load_and_write_as_each_would_alone);
    GROUP(suite, "a child", a_child_of_a_process_with_threads_trains_on_with_the_same_bits,
          a_child_of_a_process_without_threads_has_threads_of_its_own);
    return suite;
}
