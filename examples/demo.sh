#!/bin/sh
# Trains a small model on the tales, within a minute on two cores, and draws how it went: `make demo` calls it with the
# build directory.
set -eu
build=${1:-build}
out=$build/demo
rm -f "$out"/*.png "$out"/*.svg

# Threads that sleep while they wait, so that a busy machine does not slow the training down many times.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"

"$build/lm" train --data "$(dirname "$0")/corpora/tales.txt" --out "$out" --overwrite \
    --layers 2 --heads 8 --width 128 --context 64 --batch 12 --steps 1500 --lr 6e-3 --min-lr 1e-4 \
    --temperature 0.5 --prompt "There was once a " --attend "the fox, the fox"

echo
for picture in loss attention; do
    for file in "$out/$picture.png" "$out/$picture.svg"; do
        [ ! -f "$file" ] || echo "look at $file"
    done
done
