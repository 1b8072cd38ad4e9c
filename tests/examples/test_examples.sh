# The examples that one reads: each is one file, includes <cornu/cornu.h> and the standard library
# alone, builds outside the tree, takes no flags, and runs on little data.
. tests/checks.sh

root=$OLDPWD
examples=$(grep -L '#include "' "$root"/examples/*.c | xargs -n 1 basename -s .c)

# 2,000 pictures to learn from and 400 for the test, of digits that are a bright bar each.
cat >draw.py <<'EOF'
import gzip, os, random, struct
random.seed(3)
def write(path, rank, data):
    with gzip.open(path, "wb") as file: file.write(struct.pack(">4B", 0, 0, 8, len(rank)) +
        b"".join(struct.pack(">I", n) for n in rank) + data)
for folder in ("mnist", "fashion-mnist"):
    os.makedirs("data/" + folder)
    for part, count in (("train", 2000), ("t10k", 400)):
        labels = bytes(i * 7 % 10 for i in range(count))
        images = b"".join(bytes(random.randrange(160, 256) if (i // 28 - 4) // 2 == label else
                                random.randrange(0, 60) for i in range(784)) for label in labels)
        write("data/%s/%s-labels-idx1-ubyte.gz" % (folder, part), [count], labels)
        write("data/%s/%s-images-idx3-ubyte.gz" % (folder, part), [count, 28, 28], images)
os.makedirs("data/shakespeare")
with open("data/shakespeare/input.txt", "w") as file:
    for i in range(1500):
        file.write("ROMEO:\nO %s night and love of light\n\nMENENIUS:\nThe %s common people of Rome\n\n"
                   % (i, i))
EOF
python3 draw.py >out 2>err || { cat err; exit 1; }
export CORNU_DATA=$folder/data

reads() {
    local lines=$(wc -l <"$root/examples/$1.c")
    [ "$lines" -le 90 ] || { echo "$1.c has $lines lines, expected at most 90" >err; return 1; }
    head -n 1 "$root/examples/$1.c" | grep -q '^/\*' || { echo "$1.c begins with no comment" >err; return 1; }
}
builds() {
    ${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Werror "$root/examples/$1.c" -I"$root/build/include" \
        -L"$programs" -lcornu -Wl,-rpath,"$programs" -lm -o "example_$1" >out 2>err
}
runs() { timeout "${CORNU_TEST_TIMEOUT:-300}" "./example_$1" >out 2>err </dev/null; }
says() { tail -n 3 out | grep -qE "$1"; }

for name in $examples; do
    check "$name is short, and says what it shows" reads "$name"
    check "$name builds from <cornu/cornu.h>" builds "$name"
    [ "$name" = infer ] && continue   # whose arguments tests/nn/prediction/test_inference.sh has
    check "$name runs" runs "$name"
    case $name in
        mnist_convnet) check "$name learns" says 'Test accuracy: (1|0\.9)' ;;
        transfer) check "$name learns" says 'has not seen: (1|0\.[6-9])' ;;
        text_classification) check "$name learns" says '^0\.[89].* Coriolanus: The common people' ;;
        timeseries) check "$name foretells" says 'ahead: 0\.0[0-9]*; .* now: 0\.1' ;;
        own_layer) check "$name finds the line" says '^y = (1\.9|2\.0).* x \+ (0\.9|1\.0)' ;;
        tpu_strategy) check "$name runs on eight replicas" grep -qx 'REPLICAS: 8' out ;;
    esac
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
