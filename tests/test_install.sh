# `make install` works without the source tree: a program compiles with pkg-config's flags, dynamic
# and static, and so do the examples; the headers are C and C++; every command has a manual page;
# and uninstall removes only what was installed. The folders have a space in their names. The lines
# of .packaging/README.md install into a user's folder, and compile there, as they are.
# tests/run: in check
case $BUILD in
*sanitize*) printf '%s\n' "skipping 1: sanitizer: a build without SANITIZE" "0 passed, 0 failed, 1 skipped"; exit ;;
esac
for tool in pkg-config make; do
    command -v $tool >/dev/null && continue
    printf '%s\n' "skipping 1: $tool: apt-get install $tool" "0 passed, 0 failed, 1 skipped"
    exit
done
root=$(pwd)
. tests/checks.sh
stage="$folder/a stage"
prefix="/opt/my cornu"
there="$stage$prefix"
warnings="-Wall -Wextra -Wpedantic -Werror"
export PKG_CONFIG_PATH="$there/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$stage"
export LD_LIBRARY_PATH="$there/lib"

make_it() { make -s -C "$root" BUILD="$BUILD" DESTDIR="$stage" PREFIX="$prefix" "$@" >out 2>err; }

files() { (cd "$stage" && find . ! -type d | sort); }

refuses() { ! make_it install PREFIX=here && grep -q 'PREFIX is "here"' out && [ ! -e "$stage" ]; }
check "a relative PREFIX is refused" refuses
folders() { (cd "$stage" && find . -type d | sort); }
mkdir -p "$there/share/man" "$stage/opt/other"   # they stay when everything else has gone
folders >folders_before
check "make install" make_it install
files >installed

small() { # less than 40 MB, of which nothing is for a debugger
    local file
    du -sm "$there" >out && [ "$(cut -f 1 out)" -lt 40 ] || return 1
    for file in "$there"/bin/* "$there"/lib/libcornu.so.0 "$there"/lib/libcornu.a; do
        readelf -SW "$file" 2>err | grep -q '\.debug_info' && { echo "$file" >err; return 1; }
    done
    return 0
}
check "it takes less than 40 MB" small
found_beside() { # where the run-time linker does not search, and wherever it is moved
    readelf -d "$there/bin/cornu" | grep -q 'NEEDED.*libcornu.so.0' || return 1
    env -u LD_LIBRARY_PATH "$there/bin/cornu" devices >out 2>err && grep -q '^This machine' out
}
check "cornu uses the library beside it" found_beside

# ---- A user's programs ----

cp "$root/examples/own_model.c" own_model.c
cp "$root/tests/install/residual.c" residual.c

# learns COMPILER SOURCE [STATIC]: SOURCE.c, compiled as a user would, learns.
learns() {
    rm -f my_model ./*.safetensors
    eval "$1" -std=c11 $warnings "$2.c" ${3:+-static} -o my_model \
        "$(pkg-config ${3:+--static} --cflags --libs cornu)" >out 2>err || return 1
    ./my_model >out 2>err || return 1
    [ -s ./*.safetensors ] &&
        tail -n 1 out | awk '{ for (i = 1; i < NF; i++) if ($i == "val_accuracy:") a = $(i + 1) }
                             END { exit !(a >= 0.95) }'
}

# includes COMPILER LANGUAGE STANDARD: a file with all installed headers compiles.
includes() {
    (cd "$there/include" && find cornu -name '*.h' | sort) | sed 's/.*/#include <&>/' >all.h
    [ "$(wc -l <all.h)" -gt 40 ] &&
        eval "$1" -x "$2" -std="$3" $warnings -fsyntax-only "$(pkg-config --cflags cornu)" \
            all.h -Wno-pragma-once-outside-header >out 2>err
}

# with COMPILER CHECK...: a test, skipped if there is no such compiler.
with() {
    if ! command -v "$1" >/dev/null; then
        skip 1 "$1: apt-get install $1"
        return
    fi
    check "$*" "$2" "$1" "${@:3}"
}

for source in own_model residual; do
    with gcc learns $source
    with gcc learns $source static
    with clang learns $source
    with clang learns $source static
done
with gcc includes c c11
with clang includes c c11
with g++ includes c++ c++17
with clang++ includes c++ c++17

needs_soname() { readelf -d my_model | grep -q 'NEEDED.*libcornu.so.0'; }
with gcc learns own_model
check "a program finds libcornu.so.0 when it starts" needs_soname

# ---- CMake ----

cmake_project() { # cmake_project VERSION: a program with each library
    rm -rf cmake && mkdir cmake && cp own_model.c cmake
    cat >cmake/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.13)
project(mine C)
find_package(Cornu $1 REQUIRED)
add_executable(mine own_model.c)
target_link_libraries(mine Cornu::cornu)
add_executable(mine_static own_model.c)
target_link_libraries(mine_static Cornu::static)
END
    env -u LD_LIBRARY_PATH cmake -S cmake -B cmake/build -DCMAKE_PREFIX_PATH="$there" >out 2>err
}
cmake_builds() {
    cmake_project "$(pkg-config --modversion cornu)" && cmake --build cmake/build >out 2>err &&
        (cd cmake && unset LD_LIBRARY_PATH && build/mine && build/mine_static) >out 2>err &&
        readelf -d cmake/build/mine | grep -q 'NEEDED.*libcornu.so.0' &&
        ! readelf -d cmake/build/mine_static | grep -q libcornu
}
cmake_refuses() {
    ! cmake_project "$1" && grep -q "requested version \"$1\"" err
}
if command -v cmake >/dev/null; then
    check "CMake finds both libraries, and programs find the shared one" cmake_builds
    check "CMake refuses another major version" cmake_refuses 9.0
    check "CMake refuses another minor version" cmake_refuses 0.0
else
    skip 3 "cmake: apt-get install cmake"
fi

# ---- The examples, outside the source tree ----

mkdir examples && cp "$root"/examples/*.c examples

# Each is one file, and includes nothing but <cornu/cornu.h> and the standard library.
examples_compile() {
    local example count=0
    ! grep -rnE 'cornu__|_internal\.h|CORNU__|#include "' examples || return 1
    for example in examples/*.c; do
        eval "${CC:-cc} -std=c11 $warnings $example" \
             "$(pkg-config --cflags --libs cornu) -o ${example%.c}" || return 1
        count=$((count + 1))
    done
    [ "$count" -ge 9 ]
}
compiled() { examples_compile >out 2>err; }
check "every example compiles from a copy" compiled
runs() { rm -f rings.safetensors; examples/own_model >out 2>err && [ -s rings.safetensors ]; }
check "an example compiled from a copy runs" runs

# ---- What is installed ----

only_ours() {
    grep -v '_internal\.h$' installed >out
    cmp -s installed out || return 1
    grep '/include/' installed | grep -v '/include/cornu/' >out
    [ ! -s out ]
}
check "no internal header, and none outside include/cornu" only_ours

same_version() {
    [ "Cornu $(pkg-config --modversion cornu)" = "$("$there/bin/cornu" --version)" ]
}
check "cornu.pc has cornu's version" same_version

named() {
    [ "$(cd "$there/bin" && echo *)" = cornu ] &&
        [ "$(ls "$there/share/bash-completion/completions")" = cornu ] &&
        ! "$there/bin/cornu" predict >out 2>&1 && grep -q '^cornu predict: expected MODEL' out
}
check "there is one program, cornu, which names its commands, and is completed" named

# Every command has a manual page, which lists its flags.
overview="$there/share/man/man7/cornu.7"
commands=$("$there/bin/cornu" --complete | grep -vx help)
pages() {
    local name page flag
    for name in $commands; do
        page="$there/share/man/man1/cornu-$name.1"
        [ -s "$page" ] || { echo "no page of $name" >err; return 1; }
        grep -qF "\\fBcornu $name\\fR " "$page" || { echo "cornu-$name.1: no synopsis" >err; return 1; }
        "$there/bin/cornu" "$name" --help | sed -n 's/^  --\([^ ]*\).*/\1/p' | sed 's/-/\\-/g' >flags
        while read -r flag; do
            grep -qF -- "\\-\\-$flag\\fR" "$page" || { echo "cornu-$name.1: no $flag" >err; return 1; }
        done <flags
        grep -qF "cornu-$name (1)" "$overview" || { echo "cornu.7: no $name" >err; return 1; }
    done
    [ "$(ls "$there/share/man/man1" | wc -l)" = $(($(wc -w <<<"$commands") + 1)) ]
}
check "manual pages list all commands and their flags" pages
page_of_all() { # cornu.1, which is made of cornu help
    local name page="$there/share/man/man1/cornu.1"
    grep -qF '\fBcornu\fR COMMAND ' "$page" && grep -qx '\.SH COMMANDS' "$page" || return 1
    for name in $commands; do
        grep -qF "\\fBcornu $name\\fR, \\fBcornu\\-$name\\fR(1)" "$page" || { echo "$name" >err; return 1; }
    done
}
check "cornu.1 has a section of commands" page_of_all

variables() {
    local name
    grep -rlwZ getenv "$root"/{device,tensor,datasets,nn,models} --include='*.c' |
        xargs -0 grep -hoE '"(CORNU|BLIS|COLAB|TPU)_[A-Z_]+"' | tr -d '"' | sort -u >names
    [ "$(wc -l <names)" -ge 5 ] || return 1
    while read -r name; do
        grep -qw "$name" "$overview" || { echo "cornu.7: no $name" >err; return 1; }
    done <names
}
check "cornu.7 lists all environment variables" variables

if command -v groff >/dev/null; then
    formatted() { groff -man -Tutf8 -ww -z "$there"/share/man/man?/* >out 2>err && [ ! -s err ]; }
    check "groff formats the manual pages without a warning" formatted
else
    skip 1 "groff: apt-get install groff"
fi

# ---- The page's lines, with a prefix that the run-time linker does not search ----

sed -n -e 's/^    \(make install .*\|export PKG_CONFIG_PATH=.*\|cc .*pkg-config.*\)$/\1/p' \
    "$root/.packaging/README.md" >lines
as_copied() {
    [ "$(wc -l <lines)" = 3 ] || return 1
    mkdir -p home work && cp "$root/examples/own_model.c" work
    (
        unset LD_LIBRARY_PATH PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
        export HOME="$folder/home"
        make() { command make -s -C "$root" BUILD="$BUILD" "$@"; }
        cd work && . ../lines
    ) >out 2>err && [ -s work/rings.safetensors ] &&
        (cd work && readelf -d a.out | grep -q "NEEDED.*libcornu.so.0")
}
check "the page's lines for a user's prefix" as_copied

# What `make install` prints for such a prefix is enough for a program without a run-time path.
two_lines() {
    make -s -C "$root" BUILD="$BUILD" PREFIX="$folder/home/cornu" install >out 2>err || return 1
    sed -n 's/^    \(export .*\)/\1/p' out >lines
    [ "$(wc -l <lines)" = 2 ] || return 1
    (
        unset LD_LIBRARY_PATH PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
        . ./lines
        flags=$(pkg-config --cflags --libs cornu | sed 's/-Wl,-rpath,[^ ]*//')
        ${CC:-cc} -std=c11 own_model.c $flags -o by_path && ./by_path
    ) >out 2>err
}
check "the two lines that make install prints" two_lines

# ---- Uninstalling ----

echo mine >"$there/include/cornu/nn/mine.h"
echo mine >"$there/bin/mine"
leaves_the_rest() {
    make_it uninstall || return 1
    files >out
    printf '.%s\n' "$prefix/bin/mine" "$prefix/include/cornu/nn/mine.h" | cmp -s - out &&
        [ ! -d "$there/include/cornu/device" ]
}
check "uninstall removes what was installed and nothing else" leaves_the_rest

# Installed twice, and with what a debugger reads.
leaves_no_folder() {
    rm -r "$there/bin" "$there/include" && make_it install && make_it install STRIP= &&
        readelf -SW "$there/lib/libcornu.so.0" | grep -q '\.debug_info' &&
        make_it uninstall || return 1
    folders | diff folders_before - >out
}
check "no folder that install made is left, and each other one" leaves_no_folder
none_above() {
    make -s -C "$root" BUILD="$BUILD" PREFIX="$folder/home/cornu" uninstall >out 2>err &&
        [ -d "$folder/home" ] && [ ! -e "$folder/home/cornu" ]
}
check "nor the prefix itself" none_above

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
