#!/bin/sh
# seeds.sh BUILD: the first inputs of the fuzz corpora are those that build/seeds writes.
. "$(dirname "$0")/support.sh"
build=${1:?the build directory}
mkdir "$room/corpora"
logged "$build/seeds" "$room/corpora" || fail "build/seeds"
cat "$room/log"
(cd "$room/corpora" && find ./*/*) > "$room/inputs"
[ -s "$room/inputs" ] || { echo "FAILED: build/seeds writes nothing"; exit 1; }
while read -r input; do
    logged cmp "$room/corpora/$input" "tests/fuzz/corpora/$input" || fail "a first input is not what build/seeds writes"
done < "$room/inputs"
