#!/bin/sh
# Keeps the manual pages true: what stands in them between `.\" begin NAME` and `.\" end` is made from the sources.
#
#   docs/man.sh BUILD            rewrites the pages
#   docs/man.sh --check BUILD    changes nothing; names every page that is stale and fails if there is one
#
#   gradus.3       loop        the training loop of examples/training_loop.c
#                  headers     each header that gradus.h includes: its first sentence and its functions
#   gradus-lm.1    synopsis, commands, examples: what `lm help` and `lm help COMMAND` print
set -u
export LC_ALL=C
check=no
[ "${1:-}" = --check ] && check=yes && shift
lm=$(cd "${1:?usage: docs/man.sh [--check] BUILD}" && pwd)/lm || exit 2
cd "$(dirname "$0")/.." || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM

# A minus that can be typed, and a backslash, as roff wants them.
literal() { sed 's/\\/\\e/g; s/-/\\-/g'; }

awk '/gr_context_new/ {on = 1} on {print substr($0, 5)} /gr_context_report/ {exit}' examples/training_loop.c |
    literal > "$work/loop"

# The first sentence of a header's comment, and the names before which a declaration opens its brackets.
headers=$(sed -n 's/^#include "\(.*\)"$/\1/p' src/gradus.h)
for header in $headers; do
    awk -v header="$header" '
        NR == 1 { print ".It Pa gradus/" header; comment = 1 }
        comment {
            line = $0
            sub(/^\/?[*] */, "", line); sub(/^ [*] ?/, "", line)
            if (line == "") comment = 0
            if (sub(/ ?[*]\/.*/, "", line)) comment = 0
            if (match(line, /[.] [A-Z]/)) { line = substr(line, 1, RSTART); comment = 0 }
            sub(/ +$/, "", line)
            if (line != "") text = text (text == "" ? "" : " ") line
            if (!comment) { sub(/:$/, ".", text); gsub(/-/, "\\-", text); print text }
            next
        }
        /^#define/ || /^typedef/ || /^ *[*]/ || /^\/[*]/ { next }
        match($0, /^[a-z][A-Za-z0-9_ *]*[ *]gr_[a-z0-9_]*[(]/) {
            name = substr($0, 1, RLENGTH - 1)
            sub(/.*[ *]/, "", name)
            names[++count] = name
        }
        END { for (i = 1; i <= count; i++) print (i == 1 ? ".Pp\n" : "") ".Fn " names[i] (i < count ? " ," : "") }
    ' "src/$header"
done > "$work/headers"

"$lm" help > "$work/help" || exit 2
commands=$(awk '/^  lm help/ {exit} /^  lm / {print $2}' "$work/help")
{
    for command in $commands; do echo ".Nm"; echo ".Cm $command"; echo ".Op Fl \\-option Ar value ..."; done
    echo ".Nm"; echo ".Cm help"; echo ".Op Ar command"
    echo ".Nm"; echo ".Fl \\-version"
} > "$work/synopsis"
awk '/^  lm .*--version/ {on = 1; next} on && /^  lm / {sub(/^  lm/, "gradus-lm"); print}' "$work/help" | literal > "$work/examples"

# "  --width N                128      meaning: [1, 65536]": name, a value's name in capitals, default, meaning.
for command in $commands; do
    "$lm" help "$command" | awk -v command="$command" '
        function roff(text) { gsub(/-/, "\\-", text); return text }
        NR == 1 { sub(/^[^:]*: /, ""); print ".Ss " command; print toupper(substr($0, 1, 1)) roff(substr($0, 2)) "."; print ".Bl -tag -width Ds"; next }
        /^presets:/ { print ".El\n.Pp\nThe presets stand for these options:\n.Bl -tag -width Ds"; presets = 1; next }
        presets && /^  [a-z]+ +[a-z]/ { name = $1; $1 = ""; sub(/^ /, ""); print ".It Cm " name; print roff($0); next }
        presets && /^$/ { presets = 0 }
        $1 ~ /^--/ {
            value = $2 ~ /^[A-Z]/ ? $2 : ""
            otherwise = value == "" ? $2 : $3
            meaning = $0
            sub(/^ *--[^ ]+ +/, "", meaning)
            if (value != "") meaning = substr(meaning, index(meaning, value) + length(value))
            meaning = substr(meaning, index(meaning, otherwise) + length(otherwise))
            sub(/^ +/, "", meaning)
            print ".It Fl " roff(substr($1, 2)) (value == "" ? "" : " Ar " value)
            print roff(meaning) (otherwise == "needed" ? "; needed." : otherwise == "none" ? "." : "; default " roff(otherwise) ".")
        }
        END { print ".El" }'
done > "$work/commands"

failed=0
for page in docs/man/gradus.3 docs/man/gradus-lm.1; do
    awk -v work="$work" '
        !inside { print }
        $2 == "begin" && $1 == ".\\\"" {
            inside = 1
            lines = 0
            while ((getline line < (work "/" $3)) > 0) { print line; lines++ }
            if (!lines) { print FILENAME ": nothing for \"" $3 "\"" > "/dev/stderr"; exit 1 }
        }
        $2 == "end" && $1 == ".\\\"" { print; inside = 0 }
    ' $page > "$work/page" || exit 2
    cmp -s "$work/page" $page && continue
    if [ $check = no ]; then
        cp "$work/page" $page && echo $page
    else
        diff $page "$work/page" >&2
        echo "$page: stale; \"sh docs/man.sh BUILD\" writes it anew" >&2
        failed=1
    fi
done
[ $check = no ] || [ $failed = 1 ] || echo "the manual pages say what the sources say"
exit $failed
