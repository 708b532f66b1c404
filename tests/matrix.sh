#!/bin/sh
# matrix.sh [--bits | --write]: every compiler, optimisation, target and precision, with OpenMP and without, builds
# gradus without a warning, passes the suites, trains a step with lm and gives the bits of tests/golden.txt (a small
# training, tests/bits.c) with every instruction set that runs here. One line a combination, which names the suites that
# were left out; status 1 at the first that fails. What is not installed is skipped, and said.
#
#   --bits      the bits alone, without the other tests
#   --write     writes tests/golden.txt anew, with the reference kernels on one thread: after a change of a formula or
#               of the order of a sum, and only then
#   ONLY        in the environment: a part of the lines that are wanted, such as "musl" or "clang -O2"
mode=$*
case $mode in "" | --bits | --write) ;; *) echo "matrix.sh [--bits | --write], not $mode"; exit 1 ;; esac
. "$(dirname "$0")/support.sh"
export CK_TIMEOUT_MULTIPLIER=20 # -O0 and emulated processors are slow
build=$room/build combinations=0 refusals=0
mkdir "$room/tree" && cp -R Makefile src tests examples "$room/tree" || exit 1 # one state of the source for all
cd "$room/tree" || exit 1
trap 'trap "" TERM; kill 0; exit 1' INT # which does not reach what runs in the background

# On an emulator these suites are left out: they measure memory and time (bench, profile), fork beside threads, which qemu does not
# follow (concurrent), or take minutes for numbers that the bits and the other suites have, too.
left_out="bench profile concurrent depth faults_memory faults_files fused_bits gradients"

wanted() { case "$1 " in *"$ONLY"*) ;; *) return 1 ;; esac; }
skip() { if wanted "$1"; then echo "skipped: $1: $2"; fi; }

build() { # title, compiler, CFLAGS, OPENMP, directory of check.h, programs
    title=$1 cc=$2 cflags=$3 openmp=$4 header=$5
    shift 5
    rm -rf "$build"
    for program; do set -- "$@" "$build/$program"; shift; done
    logged make -s V=1 -j"$cores" CC="$cc" CFLAGS="$cflags" OPENMP="$openmp" CHECK_HEADER="$header" B="$build" "$@" ||
        fail "$title: does not build"
}

run_tests() { # title, suffix of the precision, emulator; says what passed
    # shellcheck disable=SC2086 # no word
    logged env WITHOUT=" $without " $3 "$build/check$2" || fail "$1: a test"
    said=" $(tests_logged) tests${without:+, none of the suites: $without}${CK_EXCLUDE_TAGS:+, none that is $CK_EXCLUDE_TAGS},"
    [ "${said# 0 }" = "$said" ] || fail "$1: there is no test"
}

run_precision() { # title, suffix of the precision, emulator; with a room of its own
    begin=$(date +%s) said=""
    room=$room/precision$2
    mkdir -p "$room"
    [ "$mode" ] || run_tests "$1" "$2" "$3"
    # shellcheck disable=SC2086
    logged $3 "$build/bits$2" --check tests/golden.txt $counts || fail "$1: the bits"
    same=$(grep -c ": same bits" "$room/log")
    [ "$same" -gt 0 ] || fail "$1: no bits were compared"
    echo "$1:$said the same bits $same times, $(($(date +%s) - begin)) s"
}

combination() { # title, compiler, CFLAGS, OPENMP, directory of check.h, emulator
    wanted "$1" || return
    programs="bits bits64"
    [ "$mode" ] || programs="$programs lm check check64"
    # shellcheck disable=SC2086 # words
    build "$1" "$2" "$3 -Werror" "$4" "$5" $programs
    unset CK_EXCLUDE_TAGS
    without=""
    case "$6$3" in
    qemu*) without=$left_out ;;
    *-O0*) without=bench ;;
    esac
    [ -z "$without" ] || export CK_EXCLUDE_TAGS=slow
    # shellcheck disable=SC2086
    [ "$mode" ] || logged $6 "$build/lm" train --data Makefile --layers 1 --width 8 --heads 2 --context 8 --steps 1 \
        --eval-batches 1 --bytes 1 --quiet --out "$room/run" --overwrite || fail "$1: lm train"
    counts="1 2 3 8"
    [ "$4" ] || counts=1 # without OpenMP there is one thread
    [ -z "$6" ] || counts=3
    (run_precision "$1 double" 64 "$6") & # both at once, each on a processor
    double=$!
    (run_precision "$1 float" "" "$6") && passed=yes || passed=""
    wait $double && [ "$passed" ] || exit 1
    combinations=$((combinations + 2))
}

# kernels/fma.h does not compile: compiler, options.
refused() {
    if echo '#include "tensor/kernels/fma.h"' | logged "$@" -Isrc -fsyntax-only -x c -; then fail "$*: is not refused"; fi
    grep -q 'error.*gradus: ' "$room/log" || fail "$*: fails, but not by its #error"
    refusals=$((refusals + 1))
}

if [ "$mode" = --write ]; then
    build golden cc -O2 "" "" bits bits64
    export GRADUS_ISA=reference
    { "$build/bits" && "$build/bits64"; } > "$room/golden" || exit 1
    cd "$OLDPWD" && cp "$room/golden" tests/golden.txt && echo "wrote tests/golden.txt"
    exit
fi

# -- What changes the bits is refused; what clang has no macro for is undone by the Makefile's own flags ------------------

if wanted refusals; then
    if has gcc; then
        for option in -ffast-math -Ofast -ffinite-math-only -freciprocal-math -fno-signed-zeros \
            -funsafe-math-optimizations; do
            refused gcc $option
        done
        refused gcc -fassociative-math -fno-signed-zeros -fno-trapping-math
        case $(gcc -dumpmachine) in x86_64*) refused gcc -std=c11 -m32 -mno-sse ;; esac
    fi
    if has clang; then for option in -ffast-math -Ofast -ffinite-math-only; do refused clang $option; done; fi
    echo "refusals: $refusals options that change numbers are refused"
fi

# -- gcc and clang, here ---------------------------------------------------------------------------------------------------

here() { # title, compiler, CFLAGS: with OpenMP and without
    if echo 'int main(void){return 0;}' | $2 -fopenmp -x c - -o "$room/probe" 2> /dev/null; then
        combination "$1 openmp" "$2" "$3" -fopenmp "" ""
    else
        skip "$1 openmp" "it has no OpenMP"
    fi
    combination "$1 serial" "$2" "$3" "" "" ""
}

for cc in gcc clang; do
    has $cc || { skip $cc "not installed"; continue; }
    for level in -O0 -O2 -O3 -Os; do here "$cc $level" "$cc" $level; done
done
if has gcc; then combination "gcc -O2 -funsigned-char openmp" gcc "-O2 -funsigned-char" -fopenmp "" ""; fi
if has clang; then
    combination "clang -O2 -fsigned-char serial" clang "-O2 -fsigned-char" "" "" ""
    combination "clang -O2 unsafe serial" clang "-O2 -funsafe-math-optimizations -ffp-contract=fast" "" "" ""
fi

# -- Another C library, and other processors: there Check is not packaged ---------------------------------------------------

if has musl-gcc; then
    printf '#include <omp.h>\nint main(void){return omp_get_max_threads() < 1;}\n' > "$room/probe.c"
    openmp=""
    if musl-gcc -fopenmp "$room/probe.c" -o "$room/probe" 2> /dev/null && "$room/probe" 2> /dev/null; then
        openmp=-fopenmp
    else
        skip "musl openmp" "there is no libgomp for it"
    fi
    for level in -O0 -O2 -O3 -Os; do
        [ -z "$openmp" ] || combination "musl $level openmp" musl-gcc $level -fopenmp tests/check ""
        combination "musl $level serial" musl-gcc $level "" tests/check ""
    done
else
    skip musl "no musl-gcc"
fi

# The kernel's headers serve both; where the 32-bit compiler does not look for them, it is told.
if has gcc && echo 'int main(void){return 0;}' | gcc -m32 -x c - -o "$room/probe" 2> /dev/null && "$room/probe"; then
    m32=-m32
    if ! echo '#include <asm/errno.h>' | gcc -m32 -E - > /dev/null 2>&1; then
        m32="-m32 -idirafter /usr/include/$(gcc -print-multiarch)"
    fi
    combination "32-bit -O2 openmp" gcc "-O2 $m32" -fopenmp tests/check ""
    combination "32-bit -O0 serial" gcc "-O0 $m32" "" tests/check ""
else
    skip 32-bit "gcc -m32 makes no program that runs"
fi

emulated() { # processor, level
    cc=$1-linux-gnu-gcc
    has "$cc" || { skip "$1 $2" "no $cc"; return; }
    has "qemu-$1" || { skip "$1 $2" "no qemu-$1"; return; }
    QEMU_LD_PREFIX=$(dirname "$($cc -print-file-name=libc.so.6)")/..
    export QEMU_LD_PREFIX
    combination "$1 $2 openmp" "$cc" "$2" -fopenmp tests/check "qemu-$1"
}
for level in -O2 -O3; do
    emulated aarch64 $level
    if [ -d "$build" ] && wanted "aarch64 $level openmp" && has aarch64-linux-gnu-gcc && has qemu-aarch64; then
        sh tests/assembly.sh "$build" aarch64-linux-gnu-gcc || exit 1
    fi
done
emulated s390x -O2 # lowest byte last

[ $((combinations + refusals)) -gt 0 ] || missing "compiler${ONLY:+ for $ONLY}"
if [ "$mode" ]; then
    echo "$combinations combinations, no warning, the same bits"
else
    echo "$combinations combinations, no warning, no test fails, the same bits"
fi
