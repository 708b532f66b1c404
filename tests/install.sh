#!/bin/sh
# install.sh BUILD [CC]: what a user gets from `make install` and `make dist`, tried as a user would. The tree is copied
# to a path with spaces, with the objects that BUILD has, and installed to another such path; then
#   - programs in C11 and C++17 are compiled against it by pkg-config, shared and static, float and double, and run,
#   - every installed header compiles alone without a warning,
#   - the shared libraries export the functions of the headers and nothing else, and need libc, libm and OpenMP alone,
#   - the manual pages render without a warning,
#   - uninstall takes away what install has put there, and no more,
#   - two clones in different places pack the same tarball, which holds the files of the commit.
# What is not installed here is skipped, and said. Status 1 at the first that is not as it should be.
begun=$(date +%s)
build=$(cd "${1:?the build directory}" && pwd) || exit 1
cc=${2:-cc}
cd "$(dirname "$0")/.." || exit 1
checkout=$(pwd)
unset MAKEFLAGS MAKELEVEL MFLAGS # the builds below have settings of their own
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=2 LC_ALL=C
room=$(mktemp -d) || exit 1
trap 'rm -rf "$room"' EXIT
trap 'exit 1' HUP INT TERM
tree="$room/a tree" prefix="$room/a prefix" stage="$room/a stage"
checked=0 programs=0

has() { command -v "$1" > /dev/null 2>&1; }
fail() {
    cat "$room/log" 2> /dev/null
    echo "FAILED: $*"
    exit 1
}
demand() { # title, a command that must be true
    title=$1
    shift
    "$@" > "$room/log" 2>&1 || fail "$title"
    checked=$((checked + 1))
}
silent() { # a command that must print nothing to standard error
    "$@" > /dev/null 2> "$room/errors"
    status=$?
    cat "$room/errors"
    [ $status = 0 ] && [ ! -s "$room/errors" ]
}

# -- Build and install, with spaces in every path
mkdir "$tree" "$tree/build" || exit 1
for file in .ci .gitignore *; do
    [ "$file" = build ] || [ ! -e "$file" ] || cp -Rp "$file" "$tree" || exit 1
done
for precision in float double; do
    cp -Rp "$build/$precision" "$tree/build" && rm -f "$tree/build/$precision/src/tensor/context.o" || exit 1
done
in_tree() { make -s -C "$tree" CC="$cc" "$@"; }
demand "make" in_tree -j2
demand "a second make does nothing" in_tree -q
demand "make install" in_tree install PREFIX="$prefix"
demand "make install with DESTDIR" in_tree install PREFIX=/usr DESTDIR="$stage"
listed() { (cd "$1" && find . ! -type d | sort); }
listed "$prefix" > "$room/installed"
listed "$stage/usr" > "$room/staged"
demand "the same files with DESTDIR" cmp "$room/installed" "$room/staged"
demand "which know nothing of it" grep -q '^prefix=/usr$' "$stage/usr/lib/pkgconfig/gradus.pc"
version=$(sed -n 's/.*define GR_VERSION *"\(.*\)"/\1/p' src/tensor/context.h)
demand "gradus-lm tells the version" [ "$("$prefix/bin/gradus-lm" --version)" = "lm of gradus $version" ]

# -- Shared libraries
words() { tr -c 'A-Za-z0-9_' '\n' | sort -u; }
shared=no
for name in gradus gradus64; do
    library="$prefix/lib/lib$name.so"
    [ -e "$library" ] || { echo "skipped: no shared libraries on this system"; break; }
    shared=yes
    major=${version%%.*}
    demand "links to links to $name" \
        [ "$(readlink "$library") $(readlink "$library.$major")" = "lib$name.so.$major lib$name.so.$version" ]
    nm -g "$prefix/lib/lib$name.a" 2> /dev/null | awk 'NF == 3 && $2 ~ /[TDRBiVW]/ {print $3}' | sort -u > "$room/defined"
    nm -D --defined-only "$library" | awk '$2 != "A" {sub(/@.*/, "", $3); print $3}' | sort -u > "$room/exported"
    [ $name = gradus ] && double= || double=-DGR_DOUBLE
    echo '#include <gradus.h>' | $cc $double -E -P -I"$prefix/include" -x c - | words > "$room/words"
    comm -12 "$room/defined" "$room/words" > "$room/public"
    sed -n 's/^    \(.*\);$/\1/p' "$tree/build/lib$name.map" | sort -u > "$room/declared"
    demand "$name exports what it defines of the headers' words" diff "$room/public" "$room/exported"
    demand "$name defines and exports all functions of the headers" diff "$room/declared" "$room/exported"
    demand "$name exports gr_* alone" eval '[ -s "$room/exported" ] && ! grep -v "^gr_" "$room/exported"'
    functions=$(wc -l < "$room/exported")
    has readelf || { echo "skipped: no readelf"; continue; }
    readelf -d "$library" > "$room/dynamic"
    demand "the soname of $name" grep -q "SONAME.*\[lib$name\.so\.$major\]" "$room/dynamic"
    demand "$name has no text relocation" eval '! grep TEXTREL "$room/dynamic"'
    demand "$name needs libc, libm, OpenMP" eval \
        '! grep NEEDED "$room/dynamic" | grep -v -E "\[(lib(c|m|gomp|omp|iomp5)[.-]|ld-)"'
done

# -- Headers, alone
cxx=
case $cc in *clang*) candidates="clang++ c++" ;; *) candidates="g++ c++" ;; esac
for candidate in ${CXX:-$candidates}; do
    has "$candidate" && cxx=$candidate && break
done
[ "$cxx" ] || echo "skipped: no C++ compiler"
strict="-Wall -Wextra -Wpedantic -Werror"
headers=$(cd "$prefix/include" && find . -name '*.h' | sort | sed 's/^\.\///')
for header in $headers; do
    for double in "" -DGR_DOUBLE; do
        echo "#include <$header>" > "$room/alone.c"
        demand "$header alone in C11" $cc -std=c11 $strict $double -fsyntax-only -I"$prefix/include" "$room/alone.c"
        [ ! "$cxx" ] || demand "$header alone in C++17" \
            "$cxx" -x c++ -std=c++17 $strict $double -fsyntax-only -I"$prefix/include" "$room/alone.c"
    done
done

# -- Programs
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig" LD_LIBRARY_PATH="$prefix/lib"
has pkg-config || echo "skipped: no pkg-config; flags by hand"
openmp=$(sed -n 's/^Libs.private: //p' "$prefix/lib/pkgconfig/gradus.pc")
flags() { # library, shared or static: what to compile and link with, quoted for the shell
    private=
    [ "$2" = shared ] || private=--static
    if has pkg-config; then
        pkg-config $private --cflags --libs "$1"
    else
        echo "-I'$prefix/include' $([ "$1" = gradus ] || echo -DGR_DOUBLE) -L'$prefix/lib' -l$1 ${private:+$openmp}"
    fi | if [ "$2" = shared ]; then cat; else sed "s|-l$1\( \|\$\)|'$prefix/lib/lib$1.a' |"; fi
}
program() { # compiler, its language, library, shared or static, file, more
    eval "$1 -std=$2 $strict \"\$5\" -x none $6 -o \"\$room/program\" $(flags "$3" "$4")"
}
run() { "$room/program" > "$room/said"; }
has pkg-config && for name in gradus gradus64; do
    demand "pkg-config knows the version" [ "$(pkg-config --modversion $name)" = "$version" ]
done
for name in gradus gradus64; do
    [ $name = gradus ] && precision=float || precision=double
    rm -f "$room/first"
    for how in shared static; do
        [ $how = static ] || [ $shared = yes ] || continue
        for language in c11 c++17; do
            compiler=$cc
            [ $language = c11 ] || compiler="$cxx -x c++"
            [ "$compiler" = " -x c++" ] && continue
            demand "$name, $how, $language" program "$compiler" $language $name $how tests/install/consumer.c
            demand "$name, $how, $language: trains" run
            [ -s "$room/first" ] || cp "$room/said" "$room/first"
            demand "$name, $how, $language: version and precision" grep -q "^$version $precision " "$room/said"
            demand "$name, $how, $language: the same bits" cmp "$room/first" "$room/said"
            programs=$((programs + 1))
        done
    done
done
if [ $shared = yes ]; then
    # Double in a library of its own, float in the program: each calls its own gradus.
    demand "a library with double" program "$cc" c11 gradus64 shared tests/install/consumer.c \
        "-shared -fPIC -Dmain=in_double -Wl,-soname,libother.so"
    cp "$room/program" "$prefix/lib/libother.so"
    printf 'int in_double(void);\n#define main in_float\n#include "%s"\n#undef main\n%s\n' "$checkout/tests/install/consumer.c" \
        'int main(void) { return in_float() || in_double() || in_float(); }' > "$room/both.c"
    demand "both precisions in a program" program "$cc" c11 gradus shared "$room/both.c" "-L\"\$prefix/lib\" -lother"
    demand "both precisions in a program: train" run
    demand "as they do alone" [ "$(cut -d ' ' -f 2 "$room/said" | tr '\n' ' ')" = "float double float " ]
    rm "$prefix/lib/libother.so"
    # A function of C++ with C's name: every declaration is extern "C".
    if [ "$cxx" ]; then
        { echo '#include <gradus.h>'; echo 'void (*const all[])() = {'
          sed 's/gr_context_new_double/gr_context_new/; s/.*/    reinterpret_cast<void (*)()>(\&&),/' "$room/exported"
          echo '}; int main() { for (auto f : all) if (!f) return 1; }'; } > "$room/all.cc"
        demand "every function from C++" program "$cxx" c++17 gradus64 shared "$room/all.cc"
        demand "every function from C++ is there" run
        programs=$((programs + 1))
    fi
    programs=$((programs + 1))
fi

# -- Manual pages
has groff || has mandoc || echo "skipped: neither groff nor mandoc"
for page in man1/gradus-lm.1 man3/gradus.3; do
    page="$prefix/share/man/$page"
    ! has groff || demand "${page##*/} by groff" silent groff -ww -mandoc -Tutf8 "$page"
    ! has mandoc || demand "${page##*/} by mandoc" mandoc -T lint -W warning "$page"
done

# -- Uninstall
echo mine > "$prefix/include/gradus/mine.h"
echo mine > "$prefix/lib/libgradus.so.0"
demand "make uninstall" in_tree uninstall PREFIX="$prefix"
demand "leaves what is not ours" [ "$(listed "$prefix" | tr '\n' ' ')" = "./include/gradus/mine.h ./lib/libgradus.so.0 " ]
demand "make uninstall with DESTDIR" in_tree uninstall PREFIX=/usr DESTDIR="$stage"
demand "leaves no file" [ -z "$(listed "$stage")" ]
demand "nor a directory of ours" [ ! -e "$stage/usr/include/gradus" ]
demand "make uninstall of nothing" in_tree uninstall PREFIX="$room/nowhere"

# -- A release
if ! has git || ! git rev-parse -q --verify HEAD > /dev/null 2>&1; then
    echo "skipped: no git checkout"
else
    for clone in "$room/a clone" "$room/another/clone of it"; do
        demand "a clone" git clone -q "$checkout" "$clone"
        demand "make dist" make -s -C "$clone" dist
        released=$(echo "$clone"/build/gradus-*.tar.gz)
        [ "$clone" != "$room/a clone" ] || first=$released
    done
    demand "the same tarball twice" cmp "$first" "$released"
    (cd "$room" && gzip -dc "$first" | tar -xf -)
    unpacked=$room/$(basename "$first" .tar.gz)
    rm -rf "$room/a clone/.git" "$room/a clone/build"
    demand "the tarball is the commit" diff -r "$room/a clone" "$unpacked"
    demand "which builds" make -s -C "$unpacked" CC="$cc" build/float/src/tensor/shape.o
fi
echo "$checked checks in $(($(date +%s) - begun)) s: $programs programs, $(echo "$headers" | wc -l) headers, $functions functions exported"
