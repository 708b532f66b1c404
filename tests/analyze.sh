#!/bin/sh
# analyze.sh: the static analysers over every file of src/ and examples/, which must find nothing:
#   - gcc -fanalyzer, at -O0 in double and at -O2 in float; no frame above 16 KiB, no array of variable size, no alloca
#   - clang-tidy with .ci/clang-tidy
#   - cppcheck with .ci/cppcheck-suppressions
# Then the proof that each of them can fail: a file with a fault must be refused. Status 1 where anything is found. What
# is not installed is skipped, and said.
#
#   analyze.sh --file TOOL FILE    what one of them finds in one file
cd "$(dirname "$0")/.." || exit 1
frame=16384 # bytes, an eighth of the stack that tests/suite_depth.c gives

has() { command -v "$1" >/dev/null 2>&1; }

language="-std=c11 -D_POSIX_C_SOURCE=200809L -Isrc"
warnings="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wvla -Walloca -Wframe-larger-than=$frame"
# gcc 12 takes what memcpy put into a number of another type for not set, and what a loop has filled for not filled;
# clang's analyser, cppcheck and, as it runs, valgrind (check-valgrind) look for such reads.
warnings="$warnings -Wno-analyzer-use-of-uninitialized-value"

one_file() { # tool, file
    isa=
    [ "$2" = src/tensor/kernels/fast.c ] && isa=-DGR_ISA=baseline
    # shellcheck disable=SC2086
    case $1 in
    gcc)
        gcc -fanalyzer -O0 -DGR_DOUBLE $language $warnings -fopenmp $isa -c "$2" -o /dev/null 2>&1
        gcc -fanalyzer -O2 $language $warnings -fopenmp $isa -c "$2" -o /dev/null 2>&1
        ;;
    clang-tidy)
        # Programs have one thread of their own; a lesson recurses to show what is wrong with it.
        programs=
        case $2 in examples/*) programs=--checks=-concurrency-*,-misc-no-recursion ;; esac
        clang-tidy --quiet --config-file=.ci/clang-tidy $programs "$2" -- $language -fopenmp $isa 2>/dev/null
        ;;
    cppcheck)
        cppcheck --quiet --enable=warning,style,performance,portability --inline-suppr \
            --suppressions-list=.ci/cppcheck-suppressions --std=c11 -Isrc -D_POSIX_C_SOURCE=200809L $isa \
            --template='{file}:{line}: {severity}: {message} [{id}]' "$2" 2>&1
        ;;
    esac
}

if [ "$1" = --file ]; then
    one_file "$2" "$3"
    exit 0
fi

room=$(mktemp -d) || exit 1
trap 'rm -rf "$room"' EXIT
trap 'exit 1' HUP INT TERM

# Lines that tell of something; a header is told of once, whoever includes it.
finding='(error|warning|style|performance|portability): '
findings() { grep -E "$finding" "$1" | sort -u; }

ls src/*/*.c src/tensor/kernels/*.c examples/*.c examples/lm/*.c >"$room/files"
cat >"$room/fault.c" <<'EOF' # freed twice
#include <stdlib.h>

int main(void) {
    char *text = malloc(1);
    free(text);
    free(text);
    return 0;
}
EOF

found=0 tools=
for tool in gcc clang-tidy cppcheck; do
    has $tool || { echo "skipped: no $tool"; continue; }
    version=$($tool --version | sed -n 's/.*[^0-9.]\([0-9][0-9]*\)\(\.[0-9]*\)[0-9.]*.*/\1 \1\2/p' | head -n 1)
    xargs -P "$(nproc 2>/dev/null || echo 2)" -n 1 sh tests/analyze.sh --file $tool <"$room/files" >"$room/told"
    one_file $tool "$room/fault.c" >"$room/fault"
    if [ -z "$(findings "$room/fault")" ]; then
        cat "$room/fault"
        echo "FAILED: $tool does not notice a block that is freed twice"
        exit 1
    fi
    findings "$room/told" >"$room/findings"
    count=$(wc -l <"$room/findings")
    [ "$count" -eq 0 ] || cat "$room/told"
    found=$((found + count))
    case $tool in
    gcc) name="gcc -fanalyzer" ;;
    clang-tidy) name="clang-tidy ${version% *}" ;;
    cppcheck) name="cppcheck ${version#* }" ;;
    esac
    echo "$name: $((count)) findings; it refuses a block that is freed twice"
    tools="$tools${tools:+, }$name"
done
[ "$tools" ] || { echo "no analyser: nothing could be checked"; exit 1; }
echo "$(($(wc -l <"$room/files"))) files, $found findings ($tools)"
[ "$found" -eq 0 ]
