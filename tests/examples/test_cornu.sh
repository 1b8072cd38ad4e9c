# build/cornu: commands on models in files of any format, and on data in NumPy's files.
. tests/checks.sh

cornu() { timeout "${CORNU_TEST_TIMEOUT:-300}" "$programs/cornu" "$@" >out 2>err </dev/null; }
fails() { # fails STATUS MESSAGE ARGUMENT...
    local status=$1 message=$2
    shift 2
    cornu "$@"
    [ $? = "$status" ] && grep -qFe "$message" err
}
says() { cornu "${@:2}" && grep -qE "$1" out; }

cat >arrays.py <<'EOF'
import struct, zipfile, random
random.seed(1)
def npy(descr, shape, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + data
rows = [[random.random() for _ in range(784)] for _ in range(64)]
x = npy("<f4", "(64, 28, 28, 1)", b"".join(struct.pack("<784f", *row) for row in rows))
y = npy("<i4", "(64,)", b"".join(struct.pack("<i", i % 10) for i in range(64)))
open("x.npy", "wb").write(x)
open("y.npy", "wb").write(y)
open("narrow.npy", "wb").write(npy("<f4", "(2, 5)", struct.pack("<10f", *range(10))))
with zipfile.ZipFile("both.npz", "w") as file:
    file.writestr("x.npy", x)
    file.writestr("y.npy", y)
with zipfile.ZipFile("other.npz", "w") as file:
    file.writestr("a.npy", x)
    file.writestr("b.npy", y)
EOF
python3 arrays.py >out 2>err || { cat err; exit 1; }

check "without a command it says how it is used" fails 2 'usage: cornu COMMAND'
check "help lists the commands" says '^  convert ' help
check "help of one" says '^usage: cornu train \[FLAG\]\.\.\. MODEL' help train
check "an unknown command has a nearest one" fails 2 'did you mean "summary"' sumary
check "so has an unknown network" fails 1 'did you mean mnist_convnet?' summary mnist_convnt
check "a file that is no model" fails 1 'x.npy' summary x.npy

check "a network by its name" says '^Input 0: .* f32 \(None, 28, 28, 1\)$' summary mnist_convnet
check "it becomes a .safetensors file" cornu convert mnist_convnet a.safetensors
for format in onnx tflite safetensors; do
    check "that a .$format file" cornu convert a.safetensors "b.$format"
    check "of which the layers are shown" says '^Output 0: .* f32 \(None, 10\)$' summary "b.$format"
    check "and which predicts" says '^0\.[0-9]*	' predict "b.$format" --x x.npy
    head -n 1 out | tr '\t' '\n' | awk '{ printf "%.4f ", $1 }' >"row.$format"
done
check "the same numbers by each" cmp row.onnx row.tflite
check "and by the first" cmp row.onnx row.safetensors
check "opsets may be chosen" cornu convert a.safetensors c.onnx --opset 15
check "another suffix is refused" fails 1 '.doc' convert a.safetensors d.doc

check "training on arrays" says 'loss: ' train a.safetensors --x x.npy --y y.npy --verbose 2 \
    --loss sparse_categorical_crossentropy --metrics accuracy --epochs 2 --save trained.safetensors
check "evaluating what was trained" says '^accuracy: ' evaluate trained.safetensors --x both.npz \
    --loss sparse_categorical_crossentropy --metrics accuracy
check "predictions as a file" cornu predict trained.safetensors --x both.npz:x --save p.npz
check "which is named as the output" fails 1 'no array "q", expected one of: dense' \
    predict trained.safetensors --x p.npz:q
check "shapes that do not fit are both named" fails 1 \
    'narrow.npy is f32 (2, 5), expected rows of (None, 28, 28, 1)' predict a.safetensors --x narrow.npy
check "an archive without that array" fails 1 'no array "x", expected one of: a, b' \
    predict a.safetensors --x other.npz
check "a loss is asked for" fails 1 'expected --loss NAME' train a.safetensors --x x.npy --y y.npy
check "an unknown loss has a nearest one" fails 1 '"mse"' train a.safetensors --x x.npy --y y.npy \
    --loss msee
check "an input that is missing" fails 1 'expected --x FILE for its input input_layer' predict a.safetensors

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
