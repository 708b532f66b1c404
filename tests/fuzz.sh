#!/bin/sh
# fuzz.sh BUILD SECONDS: builds the fuzz targets with clang, libFuzzer and the address and undefined-behaviour sanitizers
# in BUILD/fuzz-build, and runs each for so many seconds from its corpus; new inputs go to BUILD/fuzz-build/found. Where
# clang has no libFuzzer, those that any bytes are an input for run on random ones instead, built as the rest.
build=${1:?the build directory} seconds=${2:?seconds for each target}
export OMP_WAIT_POLICY=passive
compiler=${FUZZ_CC:-clang}
total=0 crashes=0

room=$(mktemp -d) || exit 1
trap 'rm -rf "$room"' EXIT

random_bytes() {
    for target in corpus mask graph graph64; do
        make --no-print-directory B="$build" "$build/fuzz/$target" || exit 1
        TMPDIR=$room "$build/fuzz/$target" --seeds 1 1000000000 "$seconds" > "$room/output" 2>&1 || crashes=$((crashes + 1))
        runs=$(sed -n 's/ inputs, .*//p' "$room/output")
        echo "$target: $(cat "$room/output")"
        total=$((total + ${runs:-0}))
    done
}

build_targets() {
    flags="-O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all"
    for target in $targets; do echo "$build/fuzz-build/fuzz/$target"; done |
        xargs make --no-print-directory CC="$compiler" B="$build/fuzz-build" CFLAGS="$flags" WARN=-w OPENMP= \
            FUZZ_ENGINE=-fsanitize=fuzzer
}

# Counts its executions; of a crash it shows all, and the command that runs the input again.
run_target() {
    found=$build/fuzz-build/found/$1 crash=$build/fuzz-build/crashes
    mkdir -p "$found" "$crash"
    program=$build/fuzz-build/fuzz/$1
    TMPDIR=$room "$program" "$found" "tests/fuzz/corpora/${1%64}" -max_total_time="$seconds" -max_len=4096 -timeout=30 \
        -rss_limit_mb=4096 -print_final_stats=1 -artifact_prefix="$crash/$1-" < /dev/null > "$room/output" 2>&1
    status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$room/output")
    edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$room/output" | tail -n 1)
    total=$((total + ${runs:-0}))
    echo "$1: ${runs:-0} executions, ${edges:-0} edges"
    [ "$status" -eq 0 ] && return
    crashes=$((crashes + 1))
    cat "$room/output"
    file=$(sed -n 's/.*Test unit written to //p' "$room/output" | tail -n 1)
    echo "CRASH: $file; replay it: $program $file"
}

if echo 'int LLVMFuzzerTestOneInput(const char *x, long n) { return x && n < 0; }' |
    "$compiler" -x c - -fsanitize=fuzzer,address,undefined -o "$room/probe" 2> /dev/null; then
    targets="safetensors config options corpus mask graph graph64"
    build_targets || exit 1
    for target in $targets; do run_target "$target"; done
else
    echo "no clang with libFuzzer: random bytes alone, without sanitizers"
    random_bytes
fi
echo "$total executions, $crashes crashes"
[ "$crashes" -eq 0 ]
