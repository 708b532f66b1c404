#!/bin/sh
# analyze.sh: the static analysers over every file of src/, examples/ and tests/, which must find nothing:
#   - gcc -fanalyzer, at -O0 in double and at -O2 in float; no frame above 16 KiB, also of the libraries as they are built
#     for each instruction set; no array of variable size, no alloca
#   - clang-tidy with .ci/clang-tidy; not over tests/
#   - cppcheck with .ci/cppcheck-suppressions; over tests/ for errors alone
# Before, the proof that each of them can fail: a file with a fault must be refused. Status 1 where anything is found, or
# a tool breaks off. What is not installed is skipped, and said.
#
#   analyze.sh --file TOOL FILE    one of them over one file: what it tells, and status 1, or nothing
frame=16384 # bytes, an eighth of the stack that tests/suite_depth.c gives
language="-D_POSIX_C_SOURCE=200809L -Isrc -Itests/check"
# gcc 12 takes what memcpy put into a number of another type for not set, and what a loop has filled for not filled;
# clang's analyser, cppcheck and, as it runs, valgrind (check-valgrind) look for such reads.
warnings="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wvla -Walloca -Wframe-larger-than=$frame -Werror
    -Wno-analyzer-use-of-uninitialized-value"

one_file() { # tool, file
    more="" isa=""
    case $2 in */fast.c) isa=-DGR_ISA=baseline ;; esac
    # shellcheck disable=SC2086 # words
    case $1:$2 in
    gcc:*)
        # Of what a test loses or finds at NULL, its run tells (check-sanitize).
        case $2 in tests/*) more="-Wno-analyzer-malloc-leak -Wno-analyzer-null-dereference" ;; esac
        gcc -fanalyzer -O0 -DGR_DOUBLE -std=c11 $language $warnings -fopenmp $isa $more -c "$2" -o /dev/null &&
            gcc -fanalyzer -O2 -std=c11 $language $warnings -fopenmp $isa $more -c "$2" -o /dev/null
        ;;
    clang-tidy:tests/*) ;;
    clang-tidy:*)
        # Programs have one thread of their own; a lesson recurses to show what is wrong with it.
        case $2 in examples/*) more="--checks=-concurrency-*,-misc-no-recursion" ;; esac
        clang-tidy --quiet --config-file=.ci/clang-tidy $more "$2" -- -std=c11 $language -fopenmp $isa
        ;;
    cppcheck:*)
        case $2 in tests/*) ;; *) more=--enable=warning,style,performance,portability ;; esac
        cppcheck --quiet --error-exitcode=1 $more --inline-suppr --std=c11 $language $isa \
            --suppressions-list=.ci/cppcheck-suppressions --template='{file}:{line}: {severity}: {message} [{id}]' "$2"
        ;;
    esac
}

if [ "$1" = --file ]; then
    told=$(one_file "$2" "$3" 2>&1) && exit 0
    printf '%s\n== %s: %s, status %s\n' "$told" "$2" "$3" "$?"
    exit 1
fi

. "$(dirname "$0")/support.sh"
ls src/*/*.c src/*/*/*.c examples/*.c examples/*/*.c tests/*.c tests/*/*.c > "$room/files"
cat > "$room/fault.c" << 'EOF' # freed twice
#include <stdlib.h>

int main(void) {
    char *text = malloc(1);
    free(text);
    free(text);
    return 0;
}
EOF

frames() { # bytes that none is above
    make -s -j"$cores" CC=gcc B="$room/build" WARN="-Werror -Wframe-larger-than=$1" "$room/build/libgradus.a" \
        "$room/build/libgradus64.a"
}
if has gcc; then
    if logged frames 16; then fail "a frame above 16 bytes is not noticed"; fi
    logged frames $frame || fail "a frame above $frame bytes"
    echo "no frame of the libraries is above $frame bytes"
fi

tools="" failed=""
for tool in gcc clang-tidy cppcheck; do
    has_or_says $tool || continue
    $tool --version | head -n 1
    logged one_file $tool "$room/fault.c"
    grep -q 'double-free\|doubleFree\|free released memory' "$room/log" || fail "$tool misses a block that is freed twice"
    echo "refused, as it should be: a block that is freed twice"
    if ! logged xargs -P "$cores" -n 1 sh tests/analyze.sh --file $tool < "$room/files"; then
        cat "$room/log"
        failed="$failed $tool"
    fi
    tools="$tools $tool"
done
[ "$tools" ] || missing "gcc, clang-tidy or cppcheck"
[ -z "$failed" ] || { echo "FAILED:$failed"; exit 1; }
echo "$(wc -l < "$room/files") files, 0 findings:$tools"
