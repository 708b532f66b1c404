#!/bin/sh
# threads.sh: the thread sanitizer of clang over what shares memory between threads: two contexts in two threads, each
# with a team of its own; children of a process with threads; products, fused attention and whole trainings on four
# threads. The library's own memory accesses are watched; archer, of LLVM's OpenMP, tells the sanitizer what a team's
# start and end order. Then the proof that this can fail: a parallel loop with a race must be refused. Status 1 at a race.
cd "$(dirname "$0")/.." || exit 1
unset MAKEFLAGS MAKELEVEL MFLAGS
build=build/threads # of its own
suites="concurrent threads matmul fused_bits training:golden" # or SUITE:CASE, where the rest takes too long

skip() { echo "skipped: $1"; echo "nothing could be checked for races"; exit 1; }
command -v clang >/dev/null 2>&1 || skip "no clang"
room=$(mktemp -d) || exit 1
trap 'rm -rf "$room"' EXIT
trap 'exit 1' HUP INT TERM

cat >"$room/race.c" <<'EOF'
int main(void) {
    int sum = 0;
#pragma omp parallel for num_threads(4)
    for (int i = 0; i < 4000; i++) sum++;
    return sum == 0;
}
EOF
clang -O1 -g -fsanitize=thread -fopenmp "$room/race.c" -o "$room/race" 2>"$room/log" || {
    cat "$room/log"
    skip "clang has no thread sanitizer, or no OpenMP"
}
archer=$(dirname "$(clang -print-file-name=libomp.so)")/libarcher.so
[ -f "$archer" ] || skip "no libarcher.so beside clang's OpenMP"

# What is not compiled for the sanitizer, OpenMP itself, is left out; children of a process with threads go on.
export TSAN_OPTIONS="ignore_noninstrumented_modules=1 die_after_fork=0 exitcode=66"
export OMP_TOOL_LIBRARIES="$archer" OMP_NUM_THREADS=4 OMP_WAIT_POLICY=passive
export CK_TIMEOUT_MULTIPLIER=20 # slow under the sanitizer

"$room/race" >"$room/log" 2>&1
if ! grep -q "WARNING: ThreadSanitizer: data race" "$room/log"; then
    cat "$room/log"
    echo "FAILED: a race is not noticed"
    exit 1
fi
echo "refused, as it should be: a sum that four threads add to"

make -s -j"$(nproc 2>/dev/null || echo 2)" CC="${CLANG:-clang}" B=$build CFLAGS="-O1 -g -fsanitize=thread" $build/check || exit 1
tests=0
for suite in $suites; do
    case $suite in *:*) only=CK_RUN_CASE=${suite#*:} ;; *) only= ;; esac
    # shellcheck disable=SC2086
    env CK_RUN_SUITE="${suite%:*}" $only $build/check >"$room/log" 2>&1
    status=$?
    cat "$room/log"
    count=$(sed -n 's/^100%: Checks: \([0-9]*\),.*/\1/p' "$room/log")
    if [ $status -ne 0 ] || [ "${count:-0}" -eq 0 ] || grep -q "WARNING: ThreadSanitizer" "$room/log"; then
        echo "FAILED: $suite"
        exit 1
    fi
    tests=$((tests + count))
done
echo "$tests tests of $(echo "$suites" | wc -w) suites on 4 threads, 0 races (clang's thread sanitizer, archer)"
