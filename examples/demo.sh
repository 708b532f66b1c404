#!/bin/sh
# Trains a small model on the tales, within a minute on two cores, and draws how it went: `make demo` calls it with the
# build directory.
set -eu
build=${1:-build}
out=$build/demo
rm -f "$out"/*.png "$out"/*.svg

"$build/lm" train --data "$(dirname "$0")/corpora/tales.txt" --out "$out" \
    --steps 1000 --prompt "There was once a " --attend "Once upon a time"

echo
for picture in loss attention; do
    for file in "$out/$picture.png" "$out/$picture.svg"; do
        [ ! -f "$file" ] || echo "see $file"
    done
done
