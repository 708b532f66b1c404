#!/bin/sh
# assembly.sh BUILD [CC]: what the compiler made of the fast kernels that lie in the build directory. In each object of
# an instruction set with fma
#   - the matrix product has a fused multiply-add on whole vectors for every register of a tile,
#   - the exp map has one for every term of its series,
#   - neither calls a function that is not in the object, nor through a pointer; but the product may copy and clear its
#     panels by memcpy, memmove and memset, which gcc and clang make of such loops unless their size is known,
#   - row_sum_squares and softmax_dx, in whose formulas is no GR_FMA, have no fused multiply-add at all,
#   - no x86 function leaves the upper halves of registers as they are, for which SSE code would wait; at any -O.
# Then the proof that these checks can fail: fast.c compiled wrongly must be refused. Status 1 at the first that is not
# as it should be.
. "$(dirname "$0")/support.sh"
build=${1:?the build directory} cc=${2:-cc}
objdump=$($cc -print-prog-name=objdump)
has "$objdump" || missing objdump

# object, instruction set, precision: prints what is wrong; nothing is all right. Names are compared up to the first
# point, because compilers make clones ("full_tile.constprop.0"); what is inlined counts where it has gone.
faults() {
    case $2 in
    avx512) wide='%zmm' tile=16 ;; # TILE_M rows of two vectors, kernels/matmul.h
    avx2) wide='%ymm' tile=12 ;;
    neon) wide='v[0-9]+[.](4s|2d)' tile=12 ;;
    esac
    [ "$3" = float ] && terms=7 || terms=13 # K_EXP_TERMS, kernels/math.h
    "$objdump" -dr --no-show-raw-insn "$1" | awk -v wide="$wide" -v tile="$tile" -v terms="$terms" '
        BEGIN {
            split("matmul multiply multiply_few multiply_block tile full_tile edge_tile ragged_tile pack", names)
            for (i in names) part[names[i]] = "the product"
            part["exp_map"] = "exp"
            part["row_sum_squares"] = part["softmax_dx"] = "no fma"
        }
        function judge() { if (uses && returns && !clears) print name " does not clear its registers" }
        /^[0-9a-f]+ <.*>:$/ { # the head of a function
            judge()
            uses = returns = clears = 0
            name = $2
            gsub(/^<|>:$/, "", name)
            sub(/[.].*/, "", name)
            here = part[name]
            found[name] = 1
            next
        }
        /%[yz]mm/ { uses = 1 }
        $2 == "vzeroupper" || $2 ~ /^callq?$/ { clears = 1 } # or what it calls does
        $2 ~ /^retq?$/ { returns = 1 }
        here == "" { next }
        /: R_[A-Z0-9_]+/ { # what the instruction before refers to
            target = $3
            sub(/[-+]0x[0-9a-f]+$/, "", target)
            sub(/[.].*/, "", target)
            if (!jumps || here == "no fma" || (target in part && part[target] == here)) next
            if (here == "the product" && target ~ /^mem(cpy|move|set)$/) next
            print name " calls " target
            next
        }
        {
            jumps = $2 ~ /^(callq?|jmpq?|bl|b)$/
            if (($2 ~ /^callq?$/ && $3 ~ /^[*]/) || $2 == "blr") pointer = 1
            if (pointer && here != "no fma") print name " calls through a pointer"
            pointer = 0
            if ($2 !~ /^(vfn?m(add|sub)|fn?m(add|sub|la|ls)$)/) next
            if (here == "no fma") print name ": " $2 ", which its formula does not have"
            if ($0 ~ wide) fused[here]++
        }
        END {
            judge()
            for (name in part) if (part[name] != "the product" && !found[name]) print "there is no " name
            if (fused["the product"] < tile) print "the product has " fused["the product"] + 0 " vector fma, not " tile
            if (fused["exp"] < terms) print "exp has " fused["exp"] + 0 " vector fma, not " terms
        }' | sort | uniq
}

objects=0
for precision in float double; do
    for object in "$build/$precision"/src/tensor/kernels/fast_*.o; do
        isa=${object##*fast_}
        isa=${isa%.o}
        [ "$isa" = baseline ] && continue # it has no fma
        faults "$object" "$isa" $precision > "$room/log"
        [ ! -s "$room/log" ] || fail "$object"
        echo "$precision $isa: fma on whole vectors, no call in product and exp"
        objects=$((objects + 1))
    done
done
[ $objects -gt 0 ] || missing "instruction set with fma"

object="$room/build/float/src/tensor/kernels/fast_avx2.o"
compiles() { # CFLAGS, a variable of the Makefile
    rm -f "$object"
    logged make -s CC="$cc" B="$room/build" CFLAGS="$1" "$2" "$object" || fail "$*: does not build"
}

# title, what the complaint must say, CFLAGS, a variable of the Makefile as it should not be
refuses() {
    compiles "$3" "$4"
    faults "$object" avx2 float > "$room/log"
    grep -q "$2" "$room/log" || fail "$1 is not noticed"
    echo "refused, as it should be: $1 ($(grep -m 1 "$2" "$room/log"))"
}

case $($cc -dumpmachine) in
x86_64*)
    compiles -Os V= && faults "$object" avx2 float > "$room/log"
    [ ! -s "$room/log" ] || fail "$object at -Os"
    for level in -O0 -O1; do # there the product calls memcpy and its own tiles
        compiles $level V= && faults "$object" avx2 float > "$room/log"
        if grep "does not clear" "$room/log"; then fail "$object at $level"; fi
    done
    $cc --version | grep -q clang || refuses "registers that stay" "does not clear" -O1 kernel_flags=
    refuses "without -mfma" "the product has 0 vector fma" -O3 avx2_flags=-mavx2
    refuses "fma as a call" "calls fmaf" -O3 "avx2_flags=-mavx2 -D__FMA__"
    refuses "contraction" "row_sum_squares: vfmadd" -O3 \
        "BITS=-ffp-contract=fast -fopenmp-simd -fno-math-errno -fno-trapping-math"
    ;;
esac
echo "$objects objects as they should be"
