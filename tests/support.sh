# What the scripts of the checks share; each sources it first, before a relative path of its arguments is used (install.sh
# resolves one). They work from the top of the tree, with a room for temporary files, and fail where nothing could be checked.
# shellcheck shell=sh disable=SC2034
cd "$(dirname "$0")/.." || exit 1
unset MAKEFLAGS MAKELEVEL MFLAGS                     # a build of a script has settings of its own
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}" # threads that spin are slow beside other work
cores=$(nproc 2> /dev/null || echo 2)
room=$(mktemp -d) || exit 1
trap 'rm -rf "$room"' EXIT
trap 'exit 1' HUP INT TERM

has() { command -v "$1" > /dev/null 2>&1; }
has_or_says() { has "$1" || { echo "skipped: no $1"; false; }; }
missing() { # what
    echo "skipped: no $1; nothing could be checked"
    exit 1
}
logged() { "$@" > "$room/log" 2>&1; }
fail() { # what; shows what was logged
    cat "$room/log"
    echo "FAILED: $1"
    exit 1
}
# How many tests of Check the log tells of: "100%: Checks: 120, Failures: 0, Errors: 0".
tests_logged() { awk -F '[ ,]+' '/^[0-9]+%: Checks: [0-9]/ { n += $3 } END { print n + 0 }' "$room/log"; }
