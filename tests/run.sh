#!/bin/sh
# run.sh BUILD: runs all tests in the build directory, one program after another. The first that fails ends the run with
# its status; else the last line is the number of checks. WITHOUT names programs and suites, each between blanks, that
# are left out.
. "$(dirname "$0")/support.sh"
build=${1:?the build directory}
passed=0

run() { # title, program in the build directory or path of a script, its arguments
    title=$1 program=$2
    case $WITHOUT in *" $program "*) echo "== left out: $title"; return ;; esac
    case $program in */*) ;; *) program=$build/$program ;; esac
    shift 2
    echo "== $title"
    logged "$program" "$@"
    status=$?
    cat "$room/log"
    if [ "$status" -ne 0 ]; then
        echo "FAILED: $title ($program, status $status)"
        exit "$status"
    fi
    passed=$((passed + $(tests_logged)))
}

run "float tests" check
run "double tests" check64
run "elementary functions, errors in ulp, every 1001st float" ulp --step 1001
run "elementary functions in double" ulp64 --step 10
run "the bits of a training, float" bits --check tests/golden.txt
run "the bits of a training, double" bits64 --check tests/golden.txt
run "gradients against difference quotients, in double" gradcheck
run "the first inputs of the fuzz corpora" tests/seeds.sh "$build"
for program in "$build"/fuzz/*; do
    target=${program##*/}
    run "fuzz corpus of $target" "$program" "tests/fuzz/corpora/${target%64}"
    run "random bytes for $target" "$program" --seeds 1 1000
done
run "lm, every command" tests/lm.sh "$build"
run "lm, stopped, killed, and where it cannot write" tests/lm_files.sh "$build"
run "lm, where calls of the system fail; make check-faults lets each" tests/lm_faults.sh "$build" 1
run "the textbook against its lessons" docs/refresh.sh --check "$build"
run "the manual pages against the sources" docs/man.sh --check "$build"
echo "$passed passed, 0 failed"
