#!/bin/sh
# threads.sh: the thread sanitizer of clang over what shares memory between threads: two contexts in two threads, each
# with a team of its own; children of a process with threads; products, fused attention and whole trainings on four
# threads. The library's own memory accesses are watched; archer, of LLVM's OpenMP, tells the sanitizer what a team's
# start and end order. Before, the proof that this can fail: products that share their room must be refused. Status 1 at a race.
. "$(dirname "$0")/support.sh"
build=build/threads # of its own
suites="concurrent threads matmul fused_bits training:curve" # or SUITE:CASE, where the rest takes too long

has clang || missing clang
echo 'int main(void){return 0;}' | logged clang -fsanitize=thread -fopenmp -x c - -o "$room/probe" || {
    cat "$room/log"
    missing "clang with a thread sanitizer and OpenMP"
}
archer=$(clang -print-resource-dir)/../../libarcher.so
[ -f "$archer" ] || missing "libarcher.so beside clang's OpenMP"

# What is not compiled for the sanitizer, OpenMP itself, is left out; children of a process with threads go on.
export TSAN_OPTIONS="ignore_noninstrumented_modules=1 die_after_fork=0 exitcode=66"
export OMP_TOOL_LIBRARIES="$archer" OMP_NUM_THREADS=4
export CK_TIMEOUT_MULTIPLIER=20 # slow under the sanitizer

make -s -j"$cores" CC=clang B=$build CFLAGS="-O1 -g -fsanitize=thread" $build/check || exit 1

# The sanitizer watches accesses of 16 bytes at most: the kernels of the x86-64 baseline, with such vectors.
case $(uname -m) in x86_64) export GRADUS_ISA=baseline ;; esac

cat > "$room/race.c" <<'EOF' # products on four threads, which pack their operands into one room
#include "tensor/internal.h"
#include "tensor/matrix.h"
#include "tensor/parallel.h"

enum { THREADS = 4, N = 32 };
static gr_context *ctx;
static gr_real *scratch;
static gr_matrix matrix[THREADS];

static void run(size_t from, size_t to, int thread, void *arg) {
    for (size_t i = from; i < to; i++)
        gr_multiply(ctx->kernels, scratch, matrix[thread], *(gr_matrix *)arg, *(gr_matrix *)arg, (gr_product_how){0});
}

int main(void) {
    ctx = gr_context_new();
    scratch = gr_product_scratch(ctx);
    for (int i = 0; i < THREADS; i++) matrix[i] = gr_matrix_of(gr_zeros(ctx, GR_SHAPE(N, N)), 0, 0, N);
    gr_matrix a = gr_matrix_of(gr_zeros(ctx, GR_SHAPE(N, N)), 0, 0, N);
    gr_parallel_for(THREADS, 1 << 30, run, &a);
    gr_context_free(ctx);
    return 0;
}
EOF
clang -std=c11 -D_POSIX_C_SOURCE=200809L -O1 -g -fsanitize=thread -fopenmp -Isrc "$room/race.c" $build/libgradus.a -lm \
    -o "$room/race" || exit 1
logged "$room/race"
grep -q "WARNING: ThreadSanitizer: data race" "$room/log" || fail "a race is not noticed"
echo "refused, as it should be: products on four threads that pack into one room"

tests=0
for suite in $suites; do
    case $suite in *:*) only=CK_RUN_CASE=${suite#*:} ;; *) only= ;; esac
    # shellcheck disable=SC2086 # nothing, or a word
    logged env CK_RUN_SUITE="${suite%:*}" $only $build/check || fail "$suite"
    cat "$room/log"
    count=$(tests_logged)
    if [ "$count" -eq 0 ] || grep -q "WARNING: ThreadSanitizer" "$room/log"; then fail "$suite"; fi
    tests=$((tests + count))
done
echo "$tests tests of $(echo "$suites" | wc -w) suites on 4 threads, 0 races (clang's thread sanitizer, archer)"
