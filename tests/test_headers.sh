# Every public header compiles by itself, as C11 and as C++17, with each installed compiler, and
# <cornu/cornu.h> includes it.
# tests/run: in check
passed=0 failed=0 skipped=0
source=$BUILD/tests/header.c
warnings="-Wall -Wextra -Wpedantic -Werror"
mkdir -p "${source%/*}"
headers=$(find device tensor datasets nn models -name '*.h' ! -name '*_internal.h' \
               ! \( -path 'device/host/*' ! -path 'device/host/machine/*' \) \
               -exec grep -L cornu__ {} +)
[ "$(wc -w <<<"$headers")" -gt 60 ] || { echo "public headers not found"; exit 1; }

# check LANGUAGE STANDARD COMPILER: a test, skipped if there is no such compiler.
check() {
    if ! echo 'int main(void) { return 0; }' |
            "$3" -x "$1" -fsyntax-only - >/dev/null 2>&1; then
        echo "skipping 1: $3: apt-get install $3"
        skipped=$((skipped + 1))
        return
    fi
    local bad=0
    for header in cornu.h $headers; do
        printf '#include <cornu/%s>\nextern int other;\n' "$header" >"$source"   # not an empty file
        "$3" -x "$1" -std="$2" $warnings -Ibuild/include -fsyntax-only "$source" || bad=1
    done
    if [ $bad = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

# all_reached: cornu.h includes every public header, directly or not.
all_reached() {
    echo '#include <cornu/cornu.h>' >"$source"
    local header missing=0 reached
    reached=$(${CC:-cc} -Ibuild/include -M "$source" | tr ' \\' '\n\n' | grep build/include |
              xargs -r realpath --relative-to=.)
    for header in $headers; do
        grep -qxF "$header" <<<"$reached" && continue
        echo "cornu.h includes no $header"
        missing=1
    done
    if [ $missing = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

all_reached
check c c11 gcc
check c c11 clang
check c++ c++17 g++
check c++ c++17 clang++
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
