#include "parallel.h"

#ifdef _OPENMP
#    include <omp.h>
#    include <stdatomic.h>
#    include <stdbool.h>
#    include <unistd.h>
#endif

/* Waking a team costs some microseconds: each thread must have at least this much to do, about 10 us. */
enum { WORTH_A_THREAD = 100000 };

/* Every thread has scratch of its own in a context; more than these only a mistaken OMP_NUM_THREADS asks for. */
enum { MOST_THREADS = 256 };

int gr_max_threads(void) {
#ifdef _OPENMP
    int most = omp_get_max_threads();
    return most < MOST_THREADS ? most : MOST_THREADS;
#else
    return 1;
#endif
}

#ifdef _OPENMP
static size_t threads_for(size_t n, size_t cost) {
    size_t most = (size_t)gr_max_threads();
    if (most > n) most = n;
    size_t worth = cost > 0 && n > (size_t)-1 / cost ? most : n * cost / WORTH_A_THREAD;
    return most < worth ? most : worth;
}

/* A child of fork() inherits the record of its parent's team but not the threads, for which libgomp would wait for
 * ever: only the process that was the first to open a team opens any. */
static bool may_open_a_team(void) {
    static atomic_long first; /* its id; 0: there was none yet */
    const long here = getpid();
    long found = 0;
    return atomic_compare_exchange_strong(&first, &found, here) || found == here;
}

/* Where piece t begins when [0, n) is cut into pieces that differ by one at most. */
static size_t piece_start(size_t n, size_t pieces, size_t t) {
    return n / pieces * t + (t < n % pieces ? t : n % pieces);
}
#endif

void gr_parallel_for(size_t n, size_t cost, gr_range_function *run, void *arg) {
#ifdef _OPENMP
    const size_t threads = threads_for(n, cost);
    if (threads > 1 && may_open_a_team()) {
#    pragma omp parallel for num_threads((int)threads) schedule(static, 1)
        for (size_t t = 0; t < threads; t++)
            run(piece_start(n, threads, t), piece_start(n, threads, t + 1), (int)t, arg);
        return;
    }
#else
    (void)cost;
#endif
    if (n > 0) run(0, n, 0, arg);
}

typedef struct rows_job {
    gr_row_function *run;
    void *arg;
} rows_job;

static void run_rows(size_t begin, size_t end, int thread, void *arg) {
    (void)thread;
    const rows_job *job = arg;
    for (size_t row = begin; row < end; row++) job->run(row, job->arg);
}

void gr_parallel_rows(size_t rows, size_t cost, gr_row_function *run, void *arg) {
    gr_parallel_for(rows, cost, run_rows, &(rows_job){run, arg});
}
