#!/bin/sh
# run.sh BUILD: runs all tests in the build directory, one program after another. The first that fails ends the run with
# its status; else the last line is the number of checks.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}" # threads that spin are slow beside other work
build=${1:?the build directory}
passed=0

run() { # title, program, its arguments
    title=$1 program=$2
    shift 2
    echo "== $title"
    output=$(mktemp) || exit 1
    "$build/$program" "$@" > "$output" 2>&1
    status=$?
    cat "$output"
    # Check sums up its tests as "100%: Checks: 120, Failures: 0, Errors: 0"
    checks=$(sed -n 's/^[0-9]*%: Checks: \([0-9]*\),.*/\1/p' "$output")
    rm -f "$output"
    if [ "$status" -ne 0 ]; then
        echo "FAILED: $title ($build/$program, status $status)"
        exit "$status"
    fi
    passed=$((passed + ${checks:-0}))
}

run "float tests" check
run "double tests" check64
run "elementary functions, errors in ulp, every 1001st float" ulp --step 1001
run "elementary functions in double" ulp64 --step 10
run "the bits of a training, float" bits --check tests/golden.txt
run "the bits of a training, double" bits64 --check tests/golden.txt
run "gradients against difference quotients, in double" gradcheck
echo "$passed passed, 0 failed"
