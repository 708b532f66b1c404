#!/bin/sh
# sanitizers.sh CC FLAGS: the proof that the sanitizers of the flags see what they are for: a read of a freed block, an
# overflow of int, a block that is lost. Status 1 where one of them sees nothing.
. "$(dirname "$0")/support.sh"

refuses() { # what, a statement, a word that is said of it
    cat > "$room/fault.c" << EOF
#include <limits.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int *volatile block = malloc(sizeof *block);
    if (!block || !argv) return 0;
    $2
    free(block);
    return 0;
}
EOF
    # shellcheck disable=SC2086 # words
    logged $cc $flags "$room/fault.c" -o "$room/fault" || fail "does not compile with $flags"
    if logged "$room/fault"; then fail "$1 is not noticed"; fi
    grep -q "$3" "$room/log" || fail "$1 ends otherwise"
    echo "refused, as it should be: $1"
}

cc=$1 flags=$2
refuses "a read of a freed block" "free(block); return *block == argc;" heap-use-after-free
refuses "an overflow of int" "*block = INT_MAX; argc += *block; free(block); return argc == 0;" "signed integer overflow"
refuses "a block that is lost" "block = NULL;" "detected memory leaks"
