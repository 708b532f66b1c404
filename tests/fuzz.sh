#!/bin/sh
# fuzz.sh BUILD SECONDS TARGET...: builds the fuzz targets with clang, libFuzzer and the address and undefined-behaviour
# sanitizers in BUILD/fuzz-build, and runs each for so many seconds from its corpus; new inputs go to
# BUILD/fuzz-build/found. Where clang has no libFuzzer, those in BUILD/fuzz run on random bytes, and the last line says so.
. "$(dirname "$0")/support.sh"
build=${1:?the build directory} seconds=$2
[ "$seconds" -ge 1 ] 2> /dev/null || { echo "FUZZ_SECONDS is \"$seconds\"; it must be a whole number, 1 or more"; exit 1; }
shift 2
export TMPDIR="$room"
total=0 crashes=0 skipped="" fuzz_build=$build/fuzz-build

build_targets() {
    flags="-O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all"
    for target; do set -- "$@" "$fuzz_build/fuzz/$target"; shift; done
    make --no-print-directory -j"$cores" CC=clang B="$fuzz_build" CFLAGS="$flags" WARN=-w OPENMP= \
        FUZZ_ENGINE=-fsanitize=fuzzer "$@"
}

# Of a crash it shows all, and the command that runs the input again.
run_target() { # target
    found=$fuzz_build/found/$1 crash=$fuzz_build/crashes program=$fuzz_build/fuzz/$1
    mkdir -p "$found" "$crash"
    logged "$program" "$found" "tests/fuzz/corpora/${1%64}" -max_total_time="$seconds" -max_len=4096 -timeout=30 \
        -rss_limit_mb=4096 -print_final_stats=1 -artifact_prefix="$crash/$1-" < /dev/null
    status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$room/log")
    edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$room/log" | tail -n 1)
    echo "$1: ${runs:-0} executions, ${edges:-0} edges"
    [ "$status" -eq 0 ] && return
    cat "$room/log"
    file=$(sed -n 's/.*Test unit written to //p' "$room/log" | tail -n 1)
    echo "CRASH: $file; replay it: $program $file"
    return 1
}

random_bytes() { # target
    logged "$build/fuzz/$1" --seeds 1 1000000000 "$seconds"
    status=$?
    runs=$(sed -n 's/ inputs, .*//p' "$room/log")
    echo "$1: $(cat "$room/log")"
    return $status
}

if echo 'int LLVMFuzzerTestOneInput(const char *x, long n) { return x && n < 0; }' |
    logged clang -x c - -fsanitize=fuzzer,address,undefined -o "$room/probe"; then
    build_targets "$@" || exit 1
    run=run_target
else
    skipped="; skipped: no clang with libFuzzer and sanitizers; random bytes alone for $*"
    run=random_bytes
fi
for target; do
    $run "$target" || crashes=$((crashes + 1))
    total=$((total + ${runs:-0}))
done
echo "$total executions, $crashes crashes$skipped"
[ "$crashes" -eq 0 ] && [ "$total" -gt 0 ]
