#!/bin/sh
# coverage.sh BUILD [GCC]: what of src/ the test suite runs. Builds with gcc's counters in BUILD/coverage, runs
# tests/run.sh there, asks gcov about each object of src/ and adds up: below 97 % of the lines or 90 % of the branches
# it fails.
#
# A line is one that gcov counts. A branch is one way out of a line, as gcov -b lists them: both ways of each condition
# of an if, ?:, && and loop, and those that the compiler makes of an OpenMP pragma. None is left out. A line or a branch
# counts as run when it ran in any object: a file is compiled once per precision, the kernels once per instruction set.
# -Og, because it keeps each line and branch as written; atomic counters, because threads count, too.
#
# Left out: what links nothing of src/ (ulp); the lessons and manual pages, whose text is in question; the scripts in
# which lm may not write or its calls fail, for gcov's files fail there, too; and two suites that take minutes: bench,
# which measures, and training, which learns. What they alone would run counts as never run.
. "$(dirname "$0")/support.sh"
export WITHOUT=" bench training ulp ulp64 tests/lm_files.sh tests/lm_faults.sh docs/refresh.sh docs/man.sh "
export CK_TIMEOUT_MULTIPLIER=20 # counters are slow
lines_wanted=97 branches_wanted=90

build=${1:?the build directory}/coverage gcc=${2:-gcc}
gcov=$(echo "${gcc##* }" | sed 's/gcc/gcov/') # gcc-12 has gcov-12
for tool in "${gcc##* }" "$gcov"; do has "$tool" || missing "$tool"; done
rm -rf "$build" # counts of an older build would be added
make --no-print-directory -j"$cores" CC="$gcc" B="$build" CFLAGS="-Og -g --coverage -fprofile-update=atomic" test || exit 1

find "$build/float/src" "$build/double/src" -name '*.gcno' -exec "$gcov" -t -b -c -r {} \; 2> /dev/null |
    awk -v lines_wanted=$lines_wanted -v branches_wanted=$branches_wanted -f tests/coverage.awk
