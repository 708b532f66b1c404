#!/bin/sh
# Keeps the textbook true: blocks and figures come from running the lessons, excerpts from the tree.
#
#   docs/refresh.sh BUILD [NAME...]     runs the lessons in BUILD (or only those named), rewrites blocks and figures
#   docs/refresh.sh --check BUILD       changes nothing; names every stale block and fails if there is one
#
# In docs/*.md and README.md a marker on a line of its own says what the next fenced block is:
#
#   <!-- output 03_name -->             all that BUILD/03_name prints
#   <!-- output 03_name "a" "b" -->     from the first line that contains a to the next one that contains b
#   <!-- code src/x.c "a" "b" -->       the same of a file of the tree, moved to the left; without b: one line;
#                                       a b of "}" is the brace at the margin that ends a function
#   <!-- timing -->                     a measurement: never compared
#
# Lines that begin with "time:" are measurements too. A lesson that took more than SLOW seconds is not run by --check: its
# output is kept in docs/outputs/03_name.txt, headed by the checksum of its source, and both are compared instead.
# docs/figures/sums.txt holds the checksum of each figure's data and script (not of data that begin with "# time").
set -u
SLOW=10
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}" LC_ALL=C

check=no
[ "${1:-}" = --check ] && check=yes && shift
build=${1:?usage: docs/refresh.sh [--check] BUILD [NAME...]}
shift
only=" $* "
cd "$(dirname "$0")/.." || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 2' INT TERM
mkdir "$work/out" "$work/figures" || exit 2
failed=0
fail() { echo "$*" >&2; failed=1; }
# Of a lesson and the headers of its own; those that only draw change no output.
sum_of() {
    own=$(sed -n 's/^#include "\(.*\)"$/examples\/\1/p' "examples/$1.c" | grep -v -e plot.h -e gnuplot.h)
    # shellcheck disable=SC2086
    cat "examples/$1.c" $own | cksum | awk '{print $1}'
}

# -- The lessons: $work/out/NAME is what each prints ----------------------------------------------------------------
# Sets $seconds.
run() {
    begun=$(date +%s)
    "$build/$1" "$work/figures" > "$work/out/$1" 2> "$work/errors" || {
        fail "$build/$1 fails:"
        cat "$work/errors" >&2
    }
    seconds=$(($(date +%s) - begun))
}

pages=$(ls docs/*.md README.md)
# shellcheck disable=SC2086
lessons=$(sed -n 's/^<!-- output \([A-Za-z0-9_]*\).*-->$/\1/p' $pages | sort -u)
[ $check = yes ] && export GRADUS_DRAW=no
for name in $lessons; do
    kept=docs/outputs/$name.txt
    if [ $check = yes ] && [ -f "$kept" ]; then
        [ "$(sed -n '1s/^cksum \([0-9]*\) .*/\1/p' "$kept")" = "$(sum_of "$name")" ] ||
            fail "$kept: examples/$name.c has changed since it was run; \"make docs\" runs it again"
        sed 1d "$kept" > "$work/out/$name"
    elif [ $check = no ] && [ "$only" != "  " ] && [ "${only#* "$name" }" = "$only" ]; then
        continue # not asked for: its blocks stay as they are
    elif [ ! -x "$build/$name" ]; then
        fail "$build/$name is not there: \"make\" builds it"
    else
        run "$name"
        [ $check = no ] && echo "$name: $seconds s"
        if [ $check = no ] && { [ "$seconds" -gt $SLOW ] || [ -f "$kept" ]; }; then
            mkdir -p docs/outputs
            { echo "cksum $(sum_of "$name") of examples/$name.c, which took over $SLOW s"; cat "$work/out/$name"; } > "$kept"
        fi
    fi
done

# -- Figures: new ones take the place of the old, or the data they were drawn from are compared -----------------------
sums=docs/figures/sums.txt
touch "$work/sums"
for script in "$work"/figures/*.gp; do
    [ -f "$script" ] || continue
    base=${script%.gp}
    figure=$(basename "$base")
    drawn=$base
    [ $check = no ] || drawn=docs/figures/$figure
    if [ ! -f "$drawn.svg" ] && [ ! -f "$drawn.png" ]; then
        fail "docs/figures/$figure: not drawn; gnuplot is needed"
        continue
    fi
    measured=$(awk 'NR == 1 && /^# time/ {print "yes"}' "$base.tsv")
    sum=$(cat "$base.tsv" "$script" | cksum | awk '{print $1}')
    was=$(awk -v f="$figure" '$1 == f {print $2}' "$sums" 2> /dev/null)
    [ "$measured" = yes ] || echo "$figure $sum" >> "$work/sums"
    if [ $check = yes ]; then
        [ "$measured" = yes ] || [ "$sum" = "$was" ] || fail "docs/figures/$figure: the lesson's data or script differ from those it was drawn from"
        continue
    fi
    for picture in "$base.svg" "$base.png"; do
        [ -f "$picture" ] || continue
        [ "$measured" = yes ] || [ "$sum" != "$was" ] || [ ! -f "docs/figures/$(basename "$picture")" ] || continue
        cp "$picture" docs/figures/ && echo "docs/figures/$(basename "$picture")"
    done
done
if [ $check = no ]; then # the sums of figures that were not drawn now stay
    [ ! -f $sums ] || awk 'NR == FNR {new[$1]; next} !($1 in new)' "$work/sums" $sums > "$work/rest"
    cat "$work/sums" "$work/rest" 2> /dev/null | sort > "$work/all"
    [ ! -s "$work/all" ] || cp "$work/all" $sums
fi

# -- Blocks -----------------------------------------------------------------------------------------------------------
# Copies a page to standard output with every block as it should be; complains of those that are not. `wrong` gets a line each.
cat > "$work/blocks.awk" <<'AWK'
function complain(what) { print page ": " what >> wrong }
# The parts of: kind name "a" "b"
function parse(text,    n, part) {
    sub(/^<!-- /, "", text); sub(/ -->$/, "", text)
    marker = text
    n = split(text, part, "\"")
    from = n > 1 ? part[2] : ""; to = n > 3 ? part[4] : ""
    split(part[1], word, " ")
    kind = word[1]; name = word[2]
}
function ends(line) { return to == "}" ? line ~ /^}/ : to != "" && index(line, to) }
# Lines of a file into want[1..wants].
function excerpt(path,    line, inside, got, cut, i, n) {
    wants = 0; inside = from == "" ? 1 : 0
    while ((got = (getline line < path)) > 0) {
        if (!inside && index(line, from)) { inside = 1; want[++wants] = line; if (to == "") { inside = 2; break } else continue }
        if (inside) { want[++wants] = line; if (ends(line)) { inside = 2; break } }
    }
    close(path)
    if (got < 0) { complain("\"" marker "\": there is no " path); return 0 }
    if (inside == 0) { complain("\"" marker "\": no line contains \"" from "\""); return 0 }
    if (inside == 1 && to != "") { complain("\"" marker "\": no later line contains \"" to "\""); return 0 }
    if (kind != "code") return 1
    cut = 1000
    for (i = 1; i <= wants; i++)
        if (want[i] != "") { match(want[i], /^ */); if (RLENGTH < cut) cut = RLENGTH }
    for (i = 1; i <= wants; i++) want[i] = substr(want[i], cut + 1)
    return 1
}
function same(    i, j) {
    i = j = 1
    for (;;) {
        while (i <= wants && want[i] ~ /^time:/) i++
        while (j <= haves && have[j] ~ /^time:/) j++
        if (i > wants || j > haves) return i > wants && j > haves
        if (want[i] != have[j]) return 0
        i++; j++
    }
}
# The block that the marker speaks of, from its opening fence on.
function block(    i, path, known) {
    if ((getline) <= 0 || $0 !~ /^```/) { complain("\"" marker "\" has no fenced block on the next line"); print; return }
    print
    haves = 0
    while ((getline) > 0 && $0 !~ /^```/) have[++haves] = $0
    path = kind == "output" ? out "/" name : name
    known = kind == "output" && (getline line < path) < 0 ? 0 : kind != "timing"
    if (kind == "output") close(path)
    if (known) known = excerpt(path)
    if (known && !same()) {
        complain("\"" marker "\" is stale")
        for (i = 1; i <= wants; i++) print want[i]
    } else
        for (i = 1; i <= haves; i++) print have[i]
    print # the closing fence
}
{ print }
/^<!-- (output|code|timing)( .*)? -->$/ { parse($0); block() }
AWK

stale=0
for page in $pages; do
    : > "$work/wrong"
    awk -v page="$page" -v out="$work/out" -v wrong="$work/wrong" -f "$work/blocks.awk" "$page" > "$work/page" || exit 2
    [ -s "$work/wrong" ] || continue
    if [ $check = no ]; then
        cmp -s "$work/page" "$page" || { cp "$work/page" "$page" && echo "$page"; }
        grep -v 'is stale$' "$work/wrong" >&2 && failed=1
    else
        cat "$work/wrong" >&2
        stale=1
    fi
done
[ $stale = 0 ] || fail "\"make docs\" writes the blocks anew; look at what has changed"
[ $check = no ] || [ $failed = 1 ] || echo "the textbook says what its lessons print"
exit $failed
