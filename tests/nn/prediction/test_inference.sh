# The library of `make inference` answers with the bits of libcornu, needs the C library alone, is
# no larger than it was, and lacks what trains. Prints how long its example takes.
# tests/run: in check
case $BUILD in
*sanitize*) printf '%s\n' "skipping 1: sanitizer: a build without SANITIZE" "0 passed, 0 failed, 1 skipped"; exit ;;
esac
root=$(pwd)
. tests/checks.sh
include=$(realpath "$root/build/include")
library=$programs/libcornu-inference.a
flags="-O1 -std=c11 -Wall -Wextra -Wpedantic -Werror -I$include"

# Half a percent above what it is on x86-64 with gcc 12: text and data, no debugging information.
most_bytes=1990000

# No limit is known for other processors and compilers.
fits() {
    bash "$root/nn/prediction/inference_sizes.sh" "$programs" >out 2>err || return 1
    cp out sizes
    cat out >&3
    [ "$(uname -m)" != x86_64 ] || ! "${CC:-gcc}" --version | grep -q Debian ||
        awk -v most=$most_bytes '/libcornu-inference/ { fits = $2 <= most } END { exit !fits }' out
}
check "its size" fits

compile() { "${CC:-gcc}" $flags "$@" >out 2>err; }
with_inference() { compile "$1.c" "$library" -o "$1-small" -Wl,--gc-sections -lm; }
with_all() { compile "$1.c" "$programs/libcornu.a" -o "$1-full" -lz -ljansson -lm -lpthread; }

cp "$root/tests/install/answers.c" .
check "a program that loads and predicts links with it and libm" with_inference answers
check "and with libcornu" with_all answers

"$programs/cornu" train mnist_cnn --data synthetic --limit 2000 --epochs 1 --save digits.safetensors \
    >out 2>err || cat err

# same_bits ISA: both libraries' answers, of models with every kind of layer.
same_bits() {
    CORNU_ISA=$1 ./answers-full "$root"/tests/golden/architectures/*.json digits.safetensors \
        >full 2>err || { cat full; return 1; }
    CORNU_ISA=$1 ./answers-small "$root"/tests/golden/architectures/*.json digits.safetensors \
        >small 2>err || { cat small; return 1; }
    [ "$(grep -c predictor full)" -ge 11 ] && diff full small >out
}
check "its answers have the bits of libcornu's" same_bits ""
check "with portable code, too" same_bits portable
[ "$(uname -m)" != x86_64 ] || ! grep -qw avx2 /proc/cpuinfo ||
    check "with AVX2, too" same_bits avx2

# lacks FUNCTION CODE: a program that calls it does not link, and the linker names it.
lacks() {
    printf '#include <cornu/cornu.h>\nint main(void) { CornuModel *model = NULL; %s }\n' "$2" \
        >trains.c
    with_all trains || return 1
    ! with_inference trains && grep -q "undefined reference to .$1'" err
}
check "no fit" lacks cornu_fit_from 'return !cornu_fit(model, NULL);'
check "no compile" lacks cornu_compile_from 'return cornu_compile(model, .metrics = { NULL });'
check "no gradients" lacks cornu_gradients 'return cornu_gradients(NULL, NULL, 0, NULL) + !model;'
check "no optimizers" lacks cornu_adam_from 'return !cornu_adam() + !model;'
check "no losses" lacks cornu_huber_from 'return !cornu_huber() + !model;'
check "no saving" lacks cornu_model_save 'return cornu_model_save(model, "a.safetensors");'
check "no data sets" lacks cornu_mnist_load_from 'return !cornu_mnist_load() + !model;'

# Other formats are refused by name.
refuses() {
    : >model.keras
    ! ./answers-small model.keras >out 2>err &&
        grep -q 'model.keras: the name has no known suffix, expected one of .safetensors' out
}
check "a file of another format" refuses

# A picture of 28 x 28, a stroke downwards.
base64 -d >one.png <<'PNG'
iVBORw0KGgoAAAANSUhEUgAAABwAAAAcCAAAAABXZoBIAAAAF0lEQVR42mNgGGDwHwhGJUclKZGkEwAAa65PsZyBXroAAAAA
SUVORK5CYII=
PNG

# A picture in, a digit out, as by the example with libcornu.
example() {
    "$programs/infer-small" digits.safetensors one.png >small 2>err &&
        "$programs/infer" digits.safetensors one.png >out 2>err &&
        grep -qE '^[0-9] 0\.[0-9]+$' small && cmp small out 2>err
}
check "the example" example

# The command of nn/saving/README.md, in a copy of the tree's top.
readme() {
    local command
    command=$(sed -n 's/^    \(cc examples\/infer.c .*\)$/\1/p' "$root/nn/saving/README.md")
    [ -n "$command" ] && mkdir top && ln -s "$root/examples" top && mkdir top/build &&
        ln -s "$include" top/build/include && ln -s "$library" top/build &&
        (cd top && eval "$command") >out 2>err && top/a.out digits.safetensors one.png >out 2>err &&
        cmp small out
}
check "the command of nn/saving/README.md" readme

# With the layers that are chosen: smaller, the same digit, and others are refused by name.
some_layers() {
    make -s -C "$root" BUILD="$programs/inference" INFERENCE="$folder/some" HDF5= CFLAGS=-Os \
        LAYERS="conv2d max_pooling2d flatten dropout dense" "$folder/some/libcornu-inference.a" \
        "$folder/some/infer-small" >out 2>err || return 1
    bash "$root/nn/prediction/inference_sizes.sh" some >out && cat out >&3
    cat sizes out | awk '/libcornu-inference/ { bytes[++n] = $2 }
                         END { exit !(n == 2 && bytes[2] < 0.85 * bytes[1]) }' || return 1
    some/infer-small digits.safetensors one.png >out 2>err && cmp small out || return 1
    compile answers.c some/libcornu-inference.a -o some/answers -Wl,--gc-sections -lm || return 1
    ! some/answers "$root/tests/golden/architectures/stack.json" >out 2>err &&
        grep -q 'there is no layer class "Add"' out
}
mkdir some
check "the library of some layers" some_layers
unknown_layer() {
    ! make -s -C "$root" BUILD="$programs/inference" INFERENCE="$folder/some" HDF5= CFLAGS=-Os \
        LAYERS="conv2d convex" >out 2>err && grep -q 'layers.def has no convex' err
}
check "an unknown layer is refused" unknown_layer

# The median of 20 processes, from fork to exit.
start() {
    local i begin
    for i in {1..20}; do
        begin=${EPOCHREALTIME/./}
        "$programs/infer-small" digits.safetensors one.png >out 2>err || return 1
        echo $((${EPOCHREALTIME/./} - begin))
    done | sort -n | sed -n 10p >micros
    [ -s micros ] || return 1
    echo "start to answer, measured: $(cat micros) us, median of 20 processes," \
        "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)" >&3
}
check "it starts" start
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
