#!/bin/sh
# install.sh BUILD [CC]: what a user gets from `make install` and `make dist`, tried as a user would. The tree is copied
# to a path with spaces, with the objects that BUILD has, and installed to another one that is no easier to quote; then
#   - every installed header compiles alone without a warning, in C11 and C++17,
#   - the shared libraries export the functions of the headers and nothing else, and need libc, libm and OpenMP alone,
#   - programs in C11 and C++17 are compiled by what pkg-config says, shared and static, float and double, and run,
#   - the manual pages render without a warning,
#   - uninstall takes away what install has put there, and no more,
#   - two clones in different places pack the same tarball, which holds the files of the commit.
# What cannot be tried for want of a tool is skipped, and said. Status 1 at the first that is not as it should be.
begun=$(date +%s)
build=$(cd "${1:?the build directory}" && pwd) || exit 1
cc=${2:-cc}
. "$(dirname "$0")/support.sh"
checkout=$(pwd)
export OMP_NUM_THREADS=2 LC_ALL=C
tree="$room/a tree" prefix="$room/R&D | it's #1" stage="$room/a stage" checked=0
strict="-Wall -Wextra -Wpedantic -Werror"

demand() { # title, a command that must be true
    title=$1
    shift
    logged "$@" || fail "$title"
    checked=$((checked + 1))
}
silent() { "$@" 2> "$room/errors" && ! grep . "$room/errors"; } # nothing on standard error
listed() { (cd "$1" && find . ! -type d | sort); }
in_tree() { make -s -C "$tree" CC="$cc" "$@"; }
refuses() { # what it says, arguments of make
    said=$1
    shift
    ! in_tree "$@" 2> "$room/errors" && grep -q "$said" "$room/errors"
}

# -- Build and install
mkdir -p "$tree/build" "$room/full/bin/gradus-lm" "$room/full/lib" && cp -Rp Makefile src examples tests docs "$tree" &&
    cp -Rp "$build/float" "$build/double" "$tree/build" && rm "$tree/build/float/src/tensor/context.o" || exit 1
demand "make, one object at least" in_tree -j2
demand "a second make does nothing" in_tree -q
demand "a relative PREFIX" refuses "PREFIX=here must be an absolute path" install PREFIX=here
demand "an empty PREFIX" refuses "PREFIX= must be an absolute path" install PREFIX=
for sign in '"' '$' '`' '\\'; do
    demand "a path with $sign" refuses "LIBDIR=.* must be a path without" install "LIBDIR=$room/$(echo "$sign" | sed 's/[$]/$$/')"
    demand "DESTDIR with $sign" refuses "DESTDIR=.* must be a path without" uninstall "DESTDIR=$room/$(echo "$sign" | sed 's/[$]/$$/')"
done
demand "a directory in the place of a file" refuses "gradus-lm: a directory is in the way" install PREFIX="$room/full"
demand "nothing beside it" [ -z "$(listed "$room/full")" ]
demand "make install" in_tree install PREFIX="$prefix"
demand "make install with DESTDIR" in_tree install PREFIX=/usr DESTDIR="$stage"
listed "$prefix" > "$room/installed"
listed "$stage/usr" > "$room/staged"
demand "the same files with DESTDIR" cmp "$room/installed" "$room/staged"
demand "which know nothing of it" grep -q '^prefix=/usr$' "$stage/usr/lib/pkgconfig/gradus.pc"
version=$(sed -n 's/.*define GR_VERSION *"\(.*\)"/\1/p' src/tensor/context.h)
demand "gradus-lm tells the version" [ "$("$prefix/bin/gradus-lm" --version)" = "lm of gradus $version" ]

# -- Headers, each alone
standards="c11 c++17"
echo | $cc -x c++ -std=c++17 -fsyntax-only - 2> /dev/null || { standards=c11; echo "skipped: no C++ of $cc"; }
for header in $(cd "$prefix/include" && find gradus* -name '*.h'); do
    for standard in $standards; do
        for double in "" -DGR_DOUBLE; do
            demand "$header alone in $standard $double" $cc -x "${standard%??}" -std=$standard $strict $double -fsyntax-only \
                -I"$prefix/include" -include "$header" /dev/null
        done
    done
done

# -- Shared libraries
libraries="gradus gradus64" hows="shared static"
[ -e "$prefix/lib/libgradus.so" ] || { hows=static; echo "skipped: no shared libraries on this system"; }
declared() { # the functions of the headers, for a library
    echo '#include <gradus.h>' | $cc $([ $1 = gradus ] || echo -DGR_DOUBLE) -E -P -I"$prefix/include" -x c - | sed /^typedef/d |
        tr -c 'A-Za-z0-9_(' '\n' | sed -n 's/^\(gr_[a-z0-9_]*\)(.*/\1/p' | sort -u
}
for name in $libraries; do
    [ "$hows" != static ] && has_or_says readelf || break
    library="$prefix/lib/lib$name.so" major=${version%%.*}
    demand "links to links to $name" \
        [ "$(readlink "$library") $(readlink "$library.$major")" = "lib$name.so.$major lib$name.so.$version" ]
    readelf -W -d --dyn-syms "$library" > "$room/dynamic"
    awk '$5 ~ /GLOBAL|WEAK/ && $7 ~ /^[0-9]/ {sub(/@.*/, "", $8); print $8}' "$room/dynamic" | sort -u > "$room/exported"
    declared $name > "$room/declared"
    demand "$name exports what the headers declare" diff "$room/declared" "$room/exported"
    demand "the soname of $name" grep -q "SONAME.*\[lib$name\.so\.$major\]" "$room/dynamic"
    demand "$name has no text relocation" [ -z "$(grep TEXTREL "$room/dynamic")" ]
    demand "$name needs libc, libm, OpenMP" \
        [ -z "$(grep NEEDED "$room/dynamic" | grep -v -E '\[(lib(c|m|gomp|omp|iomp5)[.-]|ld-)')" ]
done

# -- Programs
has_or_says pkg-config || hows=
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig" LD_LIBRARY_PATH="$prefix/lib:$room"
program() { # shared or static, library, standard, file and more
    how=$1 name=$2 standard=$3
    shift 3
    pkg-config $([ $how = shared ] || echo --static) --cflags --libs $name |
        xargs $cc -x "${standard%??}" -std=$standard $strict -o "$room/program" "$@"
}
run() { "$room/program" > "$room/said"; }
for how in $hows; do
    [ $how = shared ] || rm -f "$prefix"/lib/*.so*
    for name in $libraries; do
        [ $name = gradus ] && precision=float || precision=double
        demand "the version of $name" [ "$(pkg-config --modversion $name)" = "$version" ]
        for standard in $standards; do
            demand "$name, $how, $standard" program $how $name $standard tests/install/consumer.c
            demand "$name, $how, $standard: trains" run
            demand "$name, $how, $standard: version and precision" grep -q "^$version $precision " "$room/said"
            [ -e "$room/$name" ] || cp "$room/said" "$room/$name"
            demand "$name, $how, $standard: the same bits" cmp "$room/$name" "$room/said"
            # A function of C++ with C's name: every declaration is extern "C".
            [ $standard != c11 ] || continue
            { echo '#include <gradus.h>'; echo 'void (*const all[])() = {'
              declared $name | sed 's/.*/    reinterpret_cast<void (*)()>(\&&),/'
              echo '}; int main() { for (auto f : all) if (!f) return 1; }'; } > "$room/all.cc"
            demand "every function of $name, $how, from C++" program $how $name $standard "$room/all.cc"
            demand "every function of $name, $how, from C++: runs" run
        done
    done
    [ $how = shared ] || continue
    # Double in a library of its own, float in the program: each calls its own gradus.
    demand "a library with double" program shared gradus64 c11 tests/install/consumer.c -shared -fPIC -Dmain=in_double
    mv "$room/program" "$room/libother.so"
    printf '#define main in_float\n#include "consumer.c"\n#undef main\nint in_double(void);\n%s\n' \
        'int main(void) { return in_float() || in_double() || in_float(); }' > "$room/both.c"
    demand "both precisions in a program" program shared gradus c11 "$room/both.c" -Itests/install -L"$room" -lother
    demand "both precisions in a program: train" run
    demand "as they do alone" [ "$(cut -d ' ' -f 2 "$room/said" | tr '\n' ' ')" = "float double float " ]
done

# -- Manual pages
for renderer in "groff -ww -mandoc -Tutf8" "mandoc -T lint -W warning"; do
    has_or_says ${renderer%% *} || continue
    for page in man1/gradus-lm.1 man3/gradus.3; do
        demand "$page by $renderer" silent $renderer "$prefix/share/man/$page"
    done
done

# -- Install again, and uninstall
demand "make -j4 install over it" in_tree -j4 install PREFIX="$prefix"
listed "$prefix" > "$room/again"
demand "the same files again" diff "$room/installed" "$room/again"
echo mine > "$prefix/include/gradus/mine.h"
echo mine > "$prefix/lib/libgradus.so.0"
demand "make uninstall" in_tree uninstall PREFIX="$prefix"
demand "leaves what is not ours" [ "$(listed "$prefix" | tr '\n' ' ')" = "./include/gradus/mine.h ./lib/libgradus.so.0 " ]
demand "make uninstall with DESTDIR" in_tree uninstall PREFIX=/usr DESTDIR="$stage"
demand "leaves no file" [ -z "$(listed "$stage")" ]
demand "nor a directory of ours" [ ! -e "$stage/usr/include/gradus" ]
demand "make uninstall of nothing" in_tree uninstall PREFIX="$room/nowhere"

# -- A release
if ! git rev-parse -q --verify HEAD > /dev/null 2>&1; then
    echo "skipped: no git checkout"
else
    for clone in "$room/a clone" "$room/another/clone of it"; do
        demand "a clone" git clone -q "$checkout" "$clone"
        [ "$clone" = "$room/a clone" ] || git -C "$clone" config core.autocrlf true # this user's, elsewhere
        demand "make dist" make -s -C "$clone" dist
    done
    tarball=build/gradus-$version.tar.gz
    demand "the same tarball twice" cmp "$room/a clone/$tarball" "$clone/$tarball"
    (cd "$room" && gzip -dc "$clone/$tarball" | tar -xf -)
    rm -rf "$clone/.git" "$clone/build"
    demand "the tarball is the commit" diff -r "$clone" "$room/gradus-$version"
    demand "which builds" make -s -C "$room/gradus-$version" CC="$cc" build/float/src/tensor/shape.o
fi
echo "$checked checks in $(($(date +%s) - begun)) s"
