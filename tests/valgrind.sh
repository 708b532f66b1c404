#!/bin/sh
# valgrind.sh BUILD: memcheck over the library and lm: no read of memory that is not set or not ours, not a byte lost.
# Suites of tests/check, each test a process of its own, then a training of three steps and a sample from it. valgrind
# knows no AVX-512: the AVX2 kernels run, and the plain ones. Then the proof that this can fail. Status 1 at an error.
cd "$(dirname "$0")/.." || exit 1
build=${1:?the build directory}
suites="tensor views products rows mask errors corpus saving"
command -v valgrind >/dev/null 2>&1 || { echo "skipped: no valgrind"; echo "nothing could be checked"; exit 1; }
room=$(mktemp -d) || exit 1
trap 'rm -rf "$room"' EXIT
trap 'exit 1' HUP INT TERM
export OMP_NUM_THREADS=1 CK_TIMEOUT_MULTIPLIER=20 GRADUS_ISA=avx2
case $(uname -m) in x86_64) ;; *) unset GRADUS_ISA ;; esac

# "possible" leaks are the stacks of OpenMP's threads, which live as long as the process.
memcheck() { # a program and its arguments
    valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect \
        --errors-for-leak-kinds=definite,indirect --trace-children=no "$@" >"$room/log" 2>&1
}

runs=0
clean() { # what it is, a program and its arguments
    title=$1
    shift
    memcheck "$@"
    status=$?
    if [ $status -ne 0 ] || grep -q '^==[0-9]*== ' "$room/log"; then
        cat "$room/log"
        echo "FAILED: $title (status $status)"
        exit 1
    fi
    echo "$title: 0 errors, 0 bytes lost"
    runs=$((runs + 1))
}

cat >"$room/fault.c" <<'EOF'
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
if ! grep -q "depends on uninitialised" "$room/log" || ! grep -q "4 bytes in 1 blocks are definitely lost" "$room/log"; then
    cat "$room/log"
    echo "FAILED: valgrind does not notice a value that is not set and a block that is lost"
    exit 1
fi
echo "refused, as it should be: a value that is not set, a block that is lost"

tests=0
for suite in $suites; do
    CK_RUN_SUITE=$suite
    export CK_RUN_SUITE
    clean "$suite" "$build/check"
    count=$(sed -n 's/^100%: Checks: \([0-9]*\),.*/\1/p' "$room/log")
    tests=$((tests + ${count:-0}))
done
lm="$build/lm"
clean "lm train, 3 steps" "$lm" train --data examples/corpora/tales.txt --out "$room/run" --steps 3 --layers 1 --width 16 \
    --context 32 --batch 2 --eval-interval 2 --eval-batches 1 --sample-interval 0 --threads 1
clean "lm sample" "$lm" sample --model "$room/run" --bytes 60
export GRADUS_ISA=reference
clean "lm sample, plain kernels" "$lm" sample --model "$room/run" --bytes 60
echo "$runs runs, $tests tests of $(echo "$suites" | wc -w) suites: 0 errors, 0 bytes lost (memcheck)"
