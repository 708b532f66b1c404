#!/bin/sh
# valgrind.sh BUILD: memcheck over the library and lm: no read of memory that is not set or not ours, not a byte lost.
# Suites of tests/check, each test a process of its own, then a training of three steps and a sample from it. valgrind
# tells a program of no AVX-512: the AVX2 kernels run, and the plain ones. Before, the proof that this can fail. Status 1
# at an error.
. "$(dirname "$0")/support.sh"
build=${1:?the build directory}
suites="tensor views products rows mask errors corpus saving"
has valgrind || missing valgrind
export OMP_NUM_THREADS=1 CK_TIMEOUT_MULTIPLIER=20

# "possible" leaks are the stacks of OpenMP's threads, which live as long as the process.
memcheck() { # a program and its arguments
    logged valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect \
        --errors-for-leak-kinds=definite,indirect --trace-children=no "$@"
}

runs=0
clean() { # what it is, a program and its arguments
    title=$1
    shift
    memcheck "$@" || fail "$title (status $?)"
    ! grep -q '^==[0-9]*== ' "$room/log" || fail "$title"
    echo "$title: 0 errors, 0 bytes lost"
    runs=$((runs + 1))
}

cat > "$room/fault.c" <<'EOF'
#include <stdlib.h>

int main(int count, char **words) {
    (void)words;
    int *lost = malloc(sizeof *lost), *read = malloc(sizeof *read);
    int status = 0;
    if (*read > 5) status = 1; /* not set */
    free(read);
    lost = count > 9 ? lost : NULL;
    return status & (lost != NULL);
}
EOF
${CC:-cc} -O0 -g "$room/fault.c" -o "$room/fault" || exit 1
memcheck "$room/fault"
for told in "depends on uninitialised" "4 bytes in 1 blocks are definitely lost"; do
    grep -q "$told" "$room/log" || fail "valgrind does not say \"$told\""
done
echo "refused, as it should be: a value that is not set, a block that is lost"

tests=0
for suite in $suites; do
    export CK_RUN_SUITE="$suite"
    clean "$suite" "$build/check"
    count=$(tests_logged)
    [ "$count" -gt 0 ] || fail "$suite has no test"
    tests=$((tests + count))
done
lm="$build/lm"
clean "lm train, 3 steps" "$lm" train --data examples/corpora/tales.txt --out "$room/run" --steps 3 --layers 1 --width 16 \
    --context 32 --batch 2 --eval-interval 2 --eval-batches 1 --sample-interval 0 --threads 1
clean "lm sample" "$lm" sample --model "$room/run" --bytes 60
export GRADUS_ISA=reference
clean "lm sample, plain kernels" "$lm" sample --model "$room/run" --bytes 60
echo "$runs runs, $tests tests of $(echo "$suites" | wc -w) suites: 0 errors, 0 bytes lost (memcheck)"
