#!/bin/sh
# bits.sh [--write]: the numbers of a small training (tests/bits.c) are the bits of tests/golden.txt whatever the
# compiler, its optimisation, OpenMP, the number of threads, the instruction set and the machine. One line a
# combination; status 1 at the first that differs. What is not installed is skipped, and said.
#
#   --write     writes tests/golden.txt anew, with the reference kernels on one thread: after a change of a formula or
#               of the order of a sum, and only then
cd "$(dirname "$0")/.." || exit 1
unset MAKEFLAGS MAKELEVEL MFLAGS # each build below has settings of its own
export OMP_WAIT_POLICY=passive   # threads that spin are slow beside other work
golden=tests/golden.txt
room=$(mktemp -d) || exit 1
trap 'rm -rf "$room"' EXIT
trap 'exit 1' HUP INT TERM
checked=0
mkdir "$room/tree" && cp -R Makefile src tests "$room/tree" || exit 1 # one state of the source for all

has() { command -v "$1" >/dev/null 2>&1; }

build() { # compiler, CFLAGS, OPENMP: bits and bits64 into $room/build
    rm -rf "$room/build"
    make -s -C "$room/tree" -j"$(nproc 2>/dev/null || echo 2)" CC="$1" CFLAGS="$2" OPENMP="$3" B="$room/build" \
        "$room/build/bits" "$room/build/bits64" >"$room/log" 2>&1 && return
    cat "$room/log"
    echo "FAILED: $1 $2 $3 builds nothing"
    exit 1
}

# title, binary, precision, instruction set, threads, emulator: status 2 when the processor lacks the instructions.
compare() {
    OMP_NUM_THREADS=$5 GRADUS_ISA=$4 $6 "$2" >"$room/found" 2>"$room/errors"
    status=$?
    grep -q "GRADUS_ISA is" "$room/errors" && return 2
    title="$1 $3 $4 $5 thread$([ "$5" -eq 1 ] || echo s)"
    if [ $status -ne 0 ] || ! cmp "$room/found" "$room/$3"; then
        cat "$room/errors"
        diff "$room/$3" "$room/found"
        echo "$title: OTHER BITS (status $status)"
        exit 1
    fi
    echo "$title: same bits"
    checked=$((checked + 1))
}

compare_all() { # title, emulator, instruction sets, numbers of threads
    for precision in float double; do
        binary="$room/build/bits$([ $precision = float ] || echo 64)"
        for isa in $3; do
            for threads in $4; do
                compare "$1" "$binary" $precision "$isa" "$threads" "$2" && continue
                echo "skipped: $1 $precision $isa, which does not run here"
                break
            done
        done
    done
}

if [ "$1" = --write ]; then
    build cc -O2 ""
    export GRADUS_ISA=reference
    { "$room/build/bits" && "$room/build/bits64"; } >"$room/golden" || exit 1
    cp "$room/golden" $golden
    echo "wrote $golden"
    exit 0
fi

for precision in float double; do grep "^$precision " $golden >"$room/$precision"; done

for cc in gcc clang; do
    has $cc || { echo "skipped: no $cc"; continue; }
    for openmp in -fopenmp ""; do
        if [ "$openmp" ] && ! echo 'int main(void){return 0;}' | $cc $openmp -x c - -o "$room/probe" 2>/dev/null; then
            echo "skipped: $cc has no OpenMP"
            continue
        fi
        [ "$openmp" ] && counts="1 2 3 8" || counts=1 # without OpenMP there is one thread
        isas="reference avx2 avx512"
        [ "$(uname -m)" = x86_64 ] || isas="reference"
        [ "$(uname -m)" = aarch64 ] && isas="reference neon"
        for level in -O0 -O2 -O3; do
            build $cc $level "$openmp"
            compare_all "$cc $level $([ "$openmp" ] && echo openmp || echo serial)" "" "$isas" "$counts"
        done
    done
done

cross=aarch64-linux-gnu-gcc
if ! has $cross; then
    echo "skipped: no $cross"
elif ! has qemu-aarch64; then
    echo "skipped: no qemu-aarch64"
else
    for level in -O2 -O3; do
        build $cross "$level -static" -fopenmp
        compare_all "$cross $level openmp" qemu-aarch64 "reference neon" "1 3"
        sh "$room/tree/tests/assembly.sh" "$room/build" $cross || exit 1
    done
fi
[ "$checked" -gt 0 ] || { echo "no compiler: nothing could be checked"; exit 1; }
echo "$checked combinations, the same bits"
