# tests/circles.sh finds calls and includes upward, circles of more than three files, and circles of
# folders except through a table, in a small tree made here.
case $BUILD in
*sanitize*) printf '%s\n' "skipping 1: sanitizer: a build without SANITIZE" "0 passed, 0 failed, 1 skipped"; exit ;;
esac
script=$(pwd)/tests/circles.sh
. tests/checks.sh
cc=${CC:-cc}

# file PATH LINE...: a source file of these lines.
file() {
    mkdir -p "$(dirname "$1")"
    printf '%s\n' "${@:2}" >"$1"
}

# calls PATH SYMBOL...: a file that defines the function named after it and calls these.
calls() {
    local name other
    name=$(basename "$1" .c)
    file "$1" "void $name(void);"
    for other in "${@:2}"; do echo "void $other(void);" >>"$1"; done
    echo "void $name(void)" "{" >>"$1"
    for other in "${@:2}"; do echo "    $other();" >>"$1"; done
    echo "}" >>"$1"
}

# begin: a correct tree, with a circle of three files and a table.
begin() {
    rm -rf tree
    mkdir -p tree/{device,tensor,datasets,nn,models}
    cd tree || exit 1
    calls device/status.c
    calls tensor/graph.c status
    calls nn/layers/layer.c graph status
    calls nn/layers/core/dense.c layer
    calls nn/layers/core/first.c second
    calls nn/layers/core/second.c third
    calls nn/layers/core/third.c first layer
    calls nn/model/model.c layer
    file nn/layers/layer.h '#include "../../tensor/graph.h"' '#include "device/status.h"'
    file nn/layers/table.c '#include "core/dense.h"' 'void dense(void);' \
        'extern void (*const layers[])(void);' 'void (*const layers[])(void) = { dense };'
    file nn/layers/core/dense.h '#include "../layer.h"'
    : >tensor/graph.h
    : >device/status.h
    : >nn/model/model.h
    cd ..
}

# finds STATUS PATTERN: the script exits with STATUS and prints a line with PATTERN.
finds() {
    (
        cd tree && rm -rf build && find . -name '*.c' | while read -r source; do
            mkdir -p "build/obj/$(dirname "$source")"
            $cc -fPIC -c "$source" -o "build/obj/${source%.c}.o" -Inn/layers -I. || exit 1
        done && bash "$script" build $(find build/obj -name '*.o' | sed 's,obj/\./,obj/,')
    ) >out 2>err
    [ $? = "$1" ] && grep -q "$2" out
}

begin
check "a circle of three files is printed and passes" finds 0 '^3 files in a circle:'

begin
calls tree/tensor/graph.c status model
check "a call upward" finds 1 '^circles: tensor/graph.c calls model of nn/model/model.c: tensor may'

begin
echo '#include "../../model/model.h"' >>tree/nn/layers/core/dense.h
check "an include upward" finds 1 '^circles: nn/layers/core/dense.h includes nn/model/model.h: '

begin
calls tree/nn/layers/core/third.c fourth
calls tree/nn/layers/core/fourth.c first
check "a circle of four files" finds 1 '^circles: 4 files in a circle, expected at most 3:'

begin
calls tree/nn/layers/layer.c graph dense
check "a circle of two folders" finds 1 '^    nn/layers -> nn/layers/core: '

begin
calls tree/nn/layers/helpers.c
cat tree/nn/layers/helpers.c >>tree/nn/layers/table.c
rm tree/nn/layers/helpers.c
check "a file with a function is no table" finds 1 '^    nn/layers -> nn/layers/core: '

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
