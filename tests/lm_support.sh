# What the end-to-end tests of lm share: lm.sh BUILD sets up, checks with `check` and ends with `finish`.
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 LC_ALL=C
lm=$(cd "${1:?the build directory}" && pwd)/lm
tests=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
checks=0 failures=0

cp "$tests/../examples/corpora/tales.txt" . || exit 1 # options go through the shell: their words have no spaces
text=tales.txt
model="--layers 1 --heads 2 --width 16 --context 16 --batch 4" # a step of it takes half a millisecond
run="--data $text $model --eval-interval 5 --eval-batches 2 --bytes 40 --overwrite"

# Pictures take time: most tests have a gnuplot that draws nothing.
mkdir bin no-programs
printf '#!/bin/sh\necho "<svg></svg>" > "${1%%.gp}.svg"\n' > bin/gnuplot
chmod +x bin/gnuplot
real_path=$PATH
PATH=$dir/bin:$PATH

check() { # title, a command that must be true
    title=$1
    shift
    checks=$((checks + 1))
    "$@" > check.out 2>&1 && return
    failures=$((failures + 1))
    echo "FAILED: $title: $*"
    cat check.out
}

# Runs lm: status, output in out, errors in err.
call() {
    "$lm" "$@" > out 2> err
    status=$?
    return "$status"
}
has_gnuplot() (PATH=$real_path; command -v gnuplot > /dev/null)
really() (PATH=$real_path; call "$@") # with the gnuplot that is installed
fails() { # status, words that are in the one line on standard error, arguments of lm
    wanted=$1 words=$2
    shift 2
    call "$@"
    [ "$status" = "$wanted" ] && [ "$(wc -l < err)" = 1 ] && grep -q -e "$words" err && return
    echo "status $status, not $wanted, or not one line with \"$words\":"
    cat err
    return 1
}
same() { # the files of two runs: weights, state, log
    for file in model.safetensors last.safetensors state.safetensors log.tsv; do cmp "$1/$file" "$2/$file" || return; done
}
says() { grep -q -e "$1" "${2:-out}"; }
lines() { [ "$(wc -l < "$2")" -eq "$1" ]; }
no_leftovers() { ! ls "$1" | grep -q -e '\.tmp$' -e '\.new$'; }
wait_for() { # a file, up to ten seconds
    tries=0
    while [ ! -e "$1" ] && [ $tries -lt 1000 ]; do
        sleep 0.01
        tries=$((tries + 1))
    done
}

finish() {
    [ "$failures" = 0 ] && percent=100 || percent=0
    echo "$percent%: Checks: $checks, Failures: $failures, Errors: 0"
    exit "$((failures > 0))"
}
