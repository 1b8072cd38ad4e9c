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

# Data of a model with two inputs, of one with three classes, and with faults.
import json, os, zlib
a = npy("<f4", "(8, 2)", struct.pack("<16f", *[0.1 * i for i in range(16)]))
b = npy("<f4", "(8, 3)", struct.pack("<24f", *[0.1 * i for i in range(24)]))
open("a.npy", "wb").write(a)
open("b.npy", "wb").write(b)
open("t.npy", "wb").write(npy("<f4", "(8, 1)", struct.pack("<8f", *range(8))))
open("classes.npy", "wb").write(npy("<i4", "(8,)", struct.pack("<8i", 0, 1, 2, 0, 1, 2, 0, 1)))
open("seventh.npy", "wb").write(npy("<i4", "(8,)", struct.pack("<8i", 0, 1, 2, 0, 7, 2, 0, 1)))
open("half.npy", "wb").write(npy("<f4", "(8, 1)", struct.pack("<8f", 0, 0.5, 1, 0, 1, 2, 0, 1)))
open("hollow.json", "w").write("")
open("nan.npy", "wb").write(npy("<f4", "(8, 2)", struct.pack("<16f", *[float("nan") if i == 7 else i
                                                                       for i in range(16)])))
with zipfile.ZipFile("two.npz", "w") as file:
    for name, content in (("a", a), ("b", b), ("out", open("t.npy", "rb").read())):
        file.writestr(name + ".npy", content)
with open("table.csv", "w") as file:
    file.write("height,width,kind\n")
    for i in range(12): file.write("%d,%d,%s\n" % (i, 2 * i, "abc"[i % 3]))

def layer(kind, name, inbound=(), **config):
    return {"module": "keras.layers", "class_name": kind, "config": dict(name=name, **config),
            "registered_name": None, "name": name, "inbound_nodes": list(inbound)}
def tensor(shape, name):
    return {"class_name": "__keras_tensor__",
            "config": {"shape": shape, "dtype": "float32", "keras_history": [name, 0, 0]}}
def functional(name, layers, inputs, output):
    config = {"name": name, "trainable": True, "layers": layers, "output_layers": [output, 0, 0],
              "input_layers": [[i, 0, 0] for i in inputs]}
    json.dump({"module": "keras.src.models.functional", "class_name": "Functional", "config": config,
               "registered_name": "Functional"}, open(name + ".json", "w"))
functional("two", [
    layer("InputLayer", "a", batch_shape=[None, 2], dtype="float32"),
    layer("InputLayer", "b", batch_shape=[None, 3], dtype="float32"),
    layer("Concatenate", "both", [{"args": [[tensor([None, 2], "a"), tensor([None, 3], "b")]],
                                   "kwargs": {}}]),
    layer("Dense", "out", [{"args": [tensor([None, 5], "both")], "kwargs": {}}], units=1)], "ab", "out")
functional("three", [
    layer("InputLayer", "a", batch_shape=[None, 2], dtype="float32"),
    layer("Dense", "out", [{"args": [tensor([None, 2], "a")], "kwargs": {}}], units=3,
          activation="softmax")], "a", "out")
functional("wide", [
    layer("InputLayer", "a", batch_shape=[None, 500], dtype="float32"),
    layer("Dense", "out", [{"args": [tensor([None, 500], "a")], "kwargs": {}}], units=1)], "a",
    "out")
with open("words.csv", "w") as file:   # one-hot they are 160 MB
    file.write("word,y\n")
    for i in range(80000): file.write("w%d,%g\n" % (i % 500, i % 500 * 0.002))
functional("logits", [
    layer("InputLayer", "a", batch_shape=[None, 2], dtype="float32"),
    layer("Dense", "out", [{"args": [tensor([None, 2], "a")], "kwargs": {}}], units=3)], "a", "out")
functional("open", [
    layer("InputLayer", "a", batch_shape=[None, None, 4], dtype="float32"),
    layer("MaxPooling1D", "p", [{"args": [tensor([None, None, 4], "a")], "kwargs": {}}],
          pool_size=[100], strides=[100], padding="valid"),
    layer("Dense", "out", [{"args": [tensor([None, None, 4], "p")], "kwargs": {}}], units=1)],
    "a", "out")
def characters(name, recurrent, *args):
    functional(name, [
        layer("InputLayer", "a", batch_shape=[None, None], dtype="int32"),
        layer("Embedding", "e", [{"args": [tensor([None, None], "a")], "kwargs": {}}], input_dim=256,
              output_dim=4),
        layer(recurrent, "r", [{"args": [tensor([None, None, 4], "e")], "kwargs": {}}], **args[0]),
        layer("Dense", "out", [{"args": [tensor([None, None, 8], "r")], "kwargs": {}}], units=256)],
        "a", "out")
gru = {"units": 8, "return_sequences": True}
characters("writer", "GRU", gru)
characters("backwards", "GRU", dict(gru, go_backwards=True))
characters("once", "GRU", {"units": 8})

def png(path, level):
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
    rows = b"".join(b"\0" + bytes([level] * 20) for _ in range(20))
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" +
                           chunk(b"IHDR", struct.pack(">IIBBBBB", 20, 20, 8, 0, 0, 0, 0)) +
                           chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
for kind in range(10):
    os.makedirs("pictures/kind%d" % kind)
    for i in range(2): png("pictures/kind%d/%d.png" % (kind, i), 20 * kind + i)
os.makedirs("empty")
os.makedirs("hollow/kind")
EOF
python3 arrays.py >out 2>err || { cat err; exit 1; }

check "without a command it says how it is used" fails 2 'usage: cornu COMMAND'
check "help lists the commands" says '^  convert ' help
wide() { # help beyond 80 columns, and a purpose that goes on in another line
    local name
    for name in $("$programs/cornu" --complete | grep -vx help); do
        "$programs/cornu" help "$name" | awk -v name="$name" 'length > 80 { print name ": " $0 }
            NR == 2 && NF && !/[.]$/ { print name ": " $0 }'
    done >out
    [ ! -s out ]
}
check "help is of 80 columns" wide
check "only flags that are read" fails 2 'unknown flag --data-dir' translate --data-dir .
full() { "$programs/cornu" "$@" >/dev/full 2>err; [ $? = 1 ] && grep -q 'cannot be written' err; }
check "help that cannot be written" full help
check "nor that of one" full help train
check "nor the version" full --version
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

# A model as C source, and the loop of examples/embedded around it: four pictures, two corrected.
root=$OLDPWD
pictures() { for label in 3 255 7 255; do head -c 784 "$root/README.md"; printf "\\$(printf %o $label)"; done; }
embedded() {
    ${CC:-cc} -std=c99 -Wall -Wextra -Wconversion -Werror -O1 -I. -I"$root/examples/embedded" \
        "$root"/examples/embedded/*.c digits.c -lm -o digits >err 2>&1 && pictures >embedded.bytes &&
        ./digits <embedded.bytes >out && [ "$(grep -cE '^[0-9] \([01]\.[0-9]{2}\)$' out)" = 4 ] && [ -s weights.bin ]
}
check "a model becomes C source" cornu compile a.safetensors -o plain.c
check "which is named for its file" grep -q 'void plain_predict(' plain.h
check "with a step of training" cornu compile mnist_convnet -o digits.c --train --batch-size 1 \
    --optimizer sgd
check "that runs in a loop" embedded
check "and goes on with what it saved" embedded
check "another name is refused" fails 1 'expected an identifier' compile a.safetensors --name 'a b'
check "so is another suffix" fails 1 'ends in .c' compile a.safetensors -o a.o
check "weights do not replace their model" fails 2 'would be lost' compile a.safetensors -o plain.c \
    --weights ./a.safetensors
check "what is no quantized file cannot be of 8 bits" fails 1 'a.safetensors' compile a.safetensors --int8

check "training on arrays" says 'loss: ' train a.safetensors --x x.npy --y y.npy --verbose 2 \
    --loss sparse_categorical_crossentropy --metrics accuracy --epochs 2 --save trained.safetensors
# 314 MB of zeros, of which the file system has none.
few_pages() {
    python3 - "$programs/cornu" >out 2>err <<'END'
import resource, subprocess, sys
for name, dtype, shape, size in (("zeros.npy", "<f4", "(100000, 28, 28, 1)", 313600000),
                                 ("zero.npy", "<i4", "(100000,)", 400000)):
    text = ("{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (dtype, shape)).ljust(117)
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\0\x76\0" + text.encode() + b"\n")
        file.truncate(128 + size)
x, y = ["--x", "zeros.npy"], ["--y", "zero.npy"]
loss, few = ["--loss", "sparse_categorical_crossentropy"], ["--limit", "1000"]
for most, command in (   # kB of the largest until then; compare measures the machine with 280 MB
        (150000, ["train", *x, *y, *loss, "--steps-per-epoch", "2"]), (150000, ["predict", *x]),
        (150000, ["predict", *x, *few, "--save", "few.npz"]),
        (150000, ["quantize", *x, *y, *few]),
        (330000, ["compare", *x, *y, *loss, "--steps-per-epoch", "2", "--devices", "cpu"])):
    subprocess.run([sys.argv[1], command[0], "a.safetensors", *command[1:]], check=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(command[0], peak, "kB")
    if peak > most: sys.exit(1)
END
}
check "on files that are larger than memory" few_pages
rm -f zeros.npy few.npz
check "evaluating what was trained" says '^accuracy: ' evaluate trained.safetensors --x both.npz \
    --loss sparse_categorical_crossentropy --metrics accuracy
check "predictions as a file" cornu predict trained.safetensors --x both.npz:x --save p.npz
check "which is named as the output" fails 1 'has no array "q", it has dense' \
    predict trained.safetensors --x p.npz:q
check "shapes that do not fit are both named" fails 1 \
    'narrow.npy is f32 (2, 5), expected rows of (None, 28, 28, 1)' predict a.safetensors --x narrow.npy
check "an archive without that array" fails 1 'has no array "x", it has a, b' \
    predict a.safetensors --x other.npz
check "a network of models/ knows its loss, from its file as well" says 'loss: ' train a.safetensors \
    --x x.npy --y y.npy
check "of others a loss is asked for" fails 1 'expected --loss NAME' train three.json --x a.npy --y classes.npy
check "an unknown loss has a nearest one" fails 1 '"mse"' train a.safetensors --x x.npy --y y.npy \
    --loss msee
check "an input that is missing" fails 1 'expected --x FILE' predict a.safetensors

# ---- Data ----

crossentropy="--loss sparse_categorical_crossentropy --metrics accuracy"
check "a set by its name" says '^synthetic digits, .*; pixels 0 to 255$' train a.safetensors \
    --data synthetic --limit 40 --verbose 2
check "for a model that does not scale, pixels are scaled" says 'pixels scaled to 0 to 1$' \
    evaluate b.onnx --data synthetic --limit 40 $crossentropy
check "unless one says so" says 'pixels scaled to -1 to 1$' \
    evaluate b.onnx --data synthetic --limit 40 $crossentropy --scale 0.00784313725490196 --offset -1
check "both have the same accuracy" eval 'says "^accuracy: " evaluate a.safetensors --data synthetic \
    --limit 40 && tail -n 1 out >first && says "^accuracy: " evaluate b.onnx --data synthetic \
    --limit 40 $crossentropy && tail -n 1 out | cmp - first'
check "a folder of pictures" says '^20 pictures of 10 classes in pictures, as 28 x 28' train mnist_convnet \
    --data pictures --epochs 1 --save kinds.keras
check "whose names the model keeps" says '^pictures/kind3/0.png	kind[0-9]	0\.[0-9]*	kind' \
    predict kinds.keras pictures/kind3/0.png
check "a table" says '^table.csv: 12 rows of 2 numbers$' train three.json --data table.csv \
    --target kind $crossentropy --epochs 2
check "labels one-hot, as a loss wants them" says 'loss: ' train three.json --data table.csv \
    --target kind --loss categorical_crossentropy
larger() { # larger MOST ARGUMENT...: what it takes of memory, in kilobytes, is less than MOST
    python3 -c 'import resource, subprocess, sys
code = subprocess.call(sys.argv[2:], stdout=open("out", "w"), stderr=open("err", "w"))
used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print("status", code, "and", used, "KB", file=open("err", "a"))
sys.exit(code or used > int(sys.argv[1]))' "$1" "$programs/cornu" "${@:2}"
}
[[ $programs = *sanitize* ]] || check "a table that is larger than memory" larger 130000 \
    train wide.json --data words.csv --target y --loss mse --batch-size 500 --validation-split 0.1 \
    --epochs 3 --learning-rate 0.01 --verbose 2
[[ $programs = *sanitize* ]] || check "which is learnt, out of order" eval 'tail -n 1 out | grep -q "^144/144 .*val_loss: .*e-"'
check "an archive of all inputs and outputs" says 'loss: ' train two.json --data two.npz --loss mse
check "of all inputs" says 'loss: ' evaluate two.json --x two.npz --y t.npy --loss mse
check "inputs by order" says 'loss: ' train two.json --x a.npy --x b.npy --y t.npy --loss mse
mv out first
check "or by name" says 'loss: ' train two.json --x b=b.npy --x a=a.npy --y t.npy --loss mse
check "are the same" eval 'diff <(grep -o "loss: .*" first) <(grep -o "loss: .*" out)'
check "predictions of both" says '^-?[0-9.]+$' predict two.json --x a.npy --x b=b.npy
check "a text" says '^.*arrays.py' train writer.json --data arrays.py \
    --loss sparse_categorical_crossentropy --limit 8
check "8 bits by an archive" says '^int8: .* from float.s values in the mean' quantize two.json \
    --data two.npz --save two.tflite
check "by arrays with labels" says '^int8: +accuracy' quantize three.json --x a.npy --y classes.npy

# A network's files remember how its pixels are scaled: the accuracy is that of the training.
check "training on digits" says '^Test accuracy on synthetic digits: ' train mnist_cnn --data synthetic \
    --limit 200 --epochs 3 --batch-size 20 --save digits.safetensors
accuracy=$(sed -n 's/^Test accuracy.*: \(0\.[0-9]*[1-9]\)0*$/accuracy: \1/p' out)
for format in keras onnx tflite; do
    check "as .$format" cornu convert digits.safetensors "digits.$format"
done
for format in safetensors keras onnx tflite; do
    check "is as accurate by .$format" says "^$accuracy$" evaluate "digits.$format" --data synthetic \
        --limit 200 $crossentropy
done

# A model that ends in no softmax, as PyTorch's do: its crossentropy is that of logits, as Python's math
# has it of what it predicts.
check "a model of logits" cornu convert logits.json logits.keras
check "predicts them" cornu predict logits.keras --x a.npy
mv out rows
check "is told to be one" says '^out is not between 0 and 1: sparse_categorical_crossentropy takes it' \
    evaluate logits.keras --x a.npy --y classes.npy $crossentropy
logits_loss() {
    python3 - "$(sed -n 's/^loss: //p' out)" <<'END'
import math, sys
rows = [list(map(float, line.split())) for line in open("rows")]
labels = [0, 1, 2, 0, 1, 2, 0, 1]
right = sum(math.log(sum(map(math.exp, row))) - row[y] for row, y in zip(rows, labels)) / 8
sys.exit(abs(right - float(sys.argv[1])) > 1e-4)
END
}
check "and its loss is right" logits_loss
check "it learns so" says 'loss: ' train logits.keras --x a.npy --y classes.npy --verbose 2 \
    --loss sparse_categorical_crossentropy --save learnt.keras
check "which its file remembers" eval 'says "^loss: " evaluate learnt.keras --x a.npy --y classes.npy &&
    tail -n 1 out >first && says "^loss: " evaluate learnt.keras --x a.npy --y classes.npy \
    --loss sparse_categorical_crossentropy && tail -n 1 out | cmp - first'
check "devices are compared by it" says '^out is not between 0 and 1' compare logits.keras --x a.npy \
    --y classes.npy --loss sparse_categorical_crossentropy --epochs 1 --devices cpu
check "probabilities stay probabilities" eval '! says "is not between" evaluate three.json --x a.npy \
    --y classes.npy $crossentropy'

# ---- What does not fit, in one sentence ----

a_line() { [ "$(wc -l <err)" = 1 ] && grep -q '^cornu [a-z]*: ' err; }
refuses() { fails 1 "$@" && a_line; }     # refuses MESSAGE ARGUMENT...: in a line, with status 1
misused() { fails 2 "$@" && a_line; }     # likewise, with that of a wrong flag
check "labels beyond the classes" refuses \
    "seventh.npy: label 7 in row 4 is not a class of the model's output, whose 3 classes are 0 to 2" \
    train three.json --x a.npy --y seventh.npy --loss sparse_categorical_crossentropy
check "class numbers for a loss of vectors" refuses \
    'classes.npy: the labels are i32 (8,), expected (None, 3) for categorical_crossentropy' \
    train three.json --x a.npy --y classes.npy --loss categorical_crossentropy
check "fewer labels than rows" refuses 'y.npy: i32 (64,) has 64 rows, expected 8 like the first one' \
    train three.json --x a.npy --y y.npy $crossentropy
check "labels that are missing" refuses 'expected --y FILE, the labels of --x a.npy' \
    evaluate three.json --x a.npy $crossentropy
check "NaN" refuses 'nan.npy: a has NaN in row 3' train three.json --x nan.npy --y classes.npy $crossentropy
check "an input without a file" refuses 'expected --x FILE 2 times, for a, b, got 1' \
    train two.json --x a.npy --y t.npy --loss mse
check "two files for one" misused '--x a=a.npy: a has a file already' \
    train two.json --x a.npy --x a=a.npy --y t.npy --loss mse
check "a set of other shapes" refuses 'synthetic is u8 (40, 28, 28), expected rows of (None, 2)' \
    evaluate three.json --data synthetic --limit 40 $crossentropy
check "a set nobody knows" refuses 'did you mean mnist?' evaluate a.safetensors --data mnits
check "an empty folder" refuses '--data empty: has no folders' evaluate a.safetensors --data empty
check "folders without pictures" refuses 'hollow' evaluate a.safetensors --data hollow
check "a column nobody knows" refuses 'kind' train three.json --data table.csv --target kinds $crossentropy
check "no column" misused 'expected --target COLUMN' train three.json --data table.csv $crossentropy
printf 'PAR1....PAR1' >table.parquet
check "a Parquet file needs a library, or is damaged" refuses 'table.parquet: ' train three.json \
    --data table.parquet --target kind $crossentropy
check "whose target is named" misused 'expected --target COLUMN' train three.json \
    --data table.parquet $crossentropy
check "also as a table" refuses 'table.parquet: ' table table.parquet --target kind
check "an address has a name, too" refuses 'http://127.0.0.1:9/t.csv: ' train three.json \
    --data 'http://127.0.0.1:9/t.csv?key=letters' --target kind $crossentropy
check "data twice" misused 'expected only one of them' evaluate three.json --data table.csv --x a.npy \
    $crossentropy
check "flags that nothing reads" misused '--scale and --offset are for pictures alone' \
    evaluate three.json --data table.csv --target kind --scale 2 $crossentropy
check "an input nobody knows" misused '--x c=b.npy: the model has no input of that name, and' \
    predict two.json --x a=a.npy --x c=b.npy
check "labels that are no classes" refuses 'half.npy: label 0.5 in row 1, expected a whole number' \
    train three.json --x a.npy --y half.npy $crossentropy
check "a folder" refuses 'empty: is a folder' summary empty
check "JSON that is no architecture" refuses 'hollow.json: ' summary hollow.json
check "an unknown flag has a nearest one" fails 2 'did you mean --epochs?' train a.safetensors --epocs 2
for command in summary train evaluate predict compare quantize generate; do
    check "$command: a file that is no model" refuses 'arrays.py' $command arrays.py --
done
cp arrays.py broken.keras
check "a file that only looks like one" refuses 'broken.keras' summary broken.keras

# ---- Texts ----

check "any causal model of characters writes" cornu generate writer.json --length 12 --seed 3
check "as many characters" [ "$(wc -m <out)" = 13 ]
check "one that sees later ones does not" refuses 'is not causal' generate backwards.json
check "and says which layer" refuses '(GRU) goes backwards' generate backwards.json
check "nor one of a single prediction" refuses 'one prediction for a whole sequence' generate once.json
check "nor one of pictures" refuses 'expected one input of characters' generate a.safetensors

# ---- Devices ----

check "a file without data and loss" says '^RANDOM data, f32 \(256, 2\) and so on: times count' compare two.json \
    --devices cpu,tpu --epochs 2 --json c.json
check "says what it is trained on" grep -q '^two.json has no loss in it: mean squared error$' out
check "and that it is random" grep -q '^Measured: two.json on RANDOM data, 256 samples' out
check "no accuracy is claimed" eval 'grep -q "\"accuracy\": null" c.json && ! grep -q "val_accuracy: " out'
check "extents that are open are chosen to fit" says '^RANDOM data, f32 \(8, 128, 4\): ' \
    compare open.json --devices cpu --epochs 1 --limit 8
check "little memory is told in kB" says '^Memory: at most [0-9.]+ kB' explain two.json --no-run
check "a file on a set" says '^Epoch 2/2 .* val_accuracy: ' compare a.safetensors --devices cpu \
    --data synthetic --limit 64 --epochs 2
check "modelled, too" says '^v3-8 +8 +32 +2 ' compare kinds.keras --data synthetic --limit 64 --epochs 1 \
    --devices cpu,tpu:v3-8 $crossentropy
check "on arrays" says '^Epoch 1/1  cpu .* loss: ' compare three.json --x a.npy --y classes.npy \
    --devices cpu --epochs 1 $crossentropy
check "advice is for networks of models/" misused 'cornu explain two.json' compare two.json --advise
check "an end needs a validation" misused '--until: random has no data for validation' compare two.json \
    --until 0.5

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
