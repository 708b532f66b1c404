#!/bin/sh
# run.sh BUILD: runs all tests in the build directory, one program after another. The first that fails ends the run with
# its status; else the last line is the number of checks.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}" # threads that spin are slow beside other work
build=${1:?the build directory}
passed=0

run() { # title, program
    echo "== $1"
    output=$(mktemp) || exit 1
    "$build/$2" > "$output" 2>&1
    status=$?
    cat "$output"
    # Check sums up its tests as "100%: Checks: 120, Failures: 0, Errors: 0"
    checks=$(sed -n 's/^[0-9]*%: Checks: \([0-9]*\),.*/\1/p' "$output")
    rm -f "$output"
    if [ "$status" -ne 0 ]; then
        echo "FAILED: $1 ($build/$2, status $status)"
        exit "$status"
    fi
    passed=$((passed + ${checks:-0}))
}

run "float tests" check
run "double tests" check64
run "gradients against difference quotients, in double" gradcheck
echo "$passed passed, 0 failed"
