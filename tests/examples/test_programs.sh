# The commands of cornu as users run them: errors have a message and the right exit status, and leave no
# files; the same command gives the same bytes again.
#
# Under a sanitizer every run is also checked for leaks, after errors as well.
# tests/run: in check
programs=$(realpath "$BUILD")
folder=$(mktemp -d) || exit 1
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
passed=0 failed=0 skipped=0
mkdir "$folder/work" && cd "$folder/work" || exit 1
export LC_ALL=C.UTF-8
unset BLIS_ARCH_TYPE NO_COLOR CORNU_DATA_URL XDG_CACHE_HOME
real=${CORNU_DATA:-}
[ -d "$real/mnist" ] || real=
unset CORNU_DATA
small="--data synthetic --limit 200 --batch-size 64 --epochs 1"

report() { # report STATUS NAME: shows the output of a failure
    if [ "$1" = 0 ]; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1))
    printf 'not ok: %s\n--- stdout, stderr (status %s)\n' "$2" "$status"
    tail -n 20 "$folder/out"
    cat "$folder/err"
}

skip() { # skip N WHAT: REMEDY, as in checks.sh
    echo "skipping $1: $2"
    skipped=$((skipped + $1))
}

# run [VARIABLE=VALUE...] COMMAND ARGUMENT...: sets status, out and err.
run() {
    local settings=()
    while [[ $1 == *=* ]]; do settings+=("$1"); shift; done
    timeout "${CORNU_TEST_TIMEOUT:-300}" env "${settings[@]}" "$programs/cornu" "$@" >"$folder/out" 2>"$folder/err" </dev/null
    status=$?
}

succeeds() { # as run
    run "$@"
    [ $status = 0 ]
    report $? "$* succeeds"
}

# refuses STATUS MESSAGE [VARIABLE=VALUE...] COMMAND ARGUMENT...: that exit status, MESSAGE (a
# pattern of grep -E) on stderr, no score on stdout, no new file.
refuses() {
    local expected=$1 message=$2 before
    shift 2
    before=$(find "$folder/work" | sort)
    run "$@"
    [ $status = "$expected" ] && grep -Eq -- "$message" "$folder/err" &&
        ! grep -q accuracy "$folder/out" && [ "$before" = "$(find "$folder/work" | sort)" ]
    report $? "$* exits with $expected and says \"$message\""
}

same() { # same NAME FILE FILE
    cmp -s "$2" "$3"
    report $? "$1"
}

differ() { # differ NAME FILE FILE
    [ -s "$2" ] && [ -s "$3" ] && ! cmp -s "$2" "$3"
    report $? "$1"
}

# ---- Command lines: status 2, what was expected and what came, the nearest word ----

refuses 2 'unknown flag --epoch; did you mean --epochs' train mnist_cnn --epoch 3
refuses 2 'did you mean cpu' train mnist_cnn --device cpuu
refuses 2 'no command "trian", did you mean "train"' trian mnist_cnn
refuses 1 '^cornu train: mnist_cn: no such file, nor a network of models/; did you mean mnist_cnn' train mnist_cn
refuses 2 '--epochs is "0", expected a whole number from 1' train mnist_cnn --epochs 0
refuses 2 '--learning-rate is "fast", expected a number' train mnist_cnn --learning-rate fast
refuses 2 '--threads is "0", expected a whole number from 1' train mnist_cnn --threads 0
refuses 2 'expected MODEL, got 2 arguments' train mnist_cnn digits
refuses 2 'unexpected argument "digits"' recommend digits
refuses 2 'unknown flag --save' evaluate mnist_cnn --save x.safetensors
refuses 2 'expected MODEL' predict
refuses 2 '--threads is "-1"' demo --threads -1
for command in train compare explain; do
    refuses 1 "^cornu $command: shakespeare: no such file, nor a network of models/" $command shakespeare
done
refuses 2 'unknown flag --device; did you mean --devices' compare mnist_cnn --device cpu
refuses 2 '--augment-shift is "28", expected a whole number from 0 to 27' train fashion_mnist_cnn --augment-shift 28
refuses 2 '--augment-shift is "-1"' train fashion_mnist_cnn --augment-shift -1
refuses 2 '--augment-flip takes no value, got "yes"' train fashion_mnist_cnn --augment-flip=yes

# ---- The machine ----

refuses 1 "BLIS_ARCH_TYPE is '12', expected" BLIS_ARCH_TYPE=12 train mnist_cnn $small
refuses 1 "BLIS_ARCH_TYPE is '12', expected" BLIS_ARCH_TYPE=12 cartpole --episodes 1
refuses 1 "CORNU_ISA is 'nonsense', expected portable" CORNU_ISA=nonsense train mnist_cnn $small

# ---- The emulated TPU ----

tpu="--device tpu $small"
refuses 2 '--device is "tpu:v9-8", expected cpu, tpu, tpu:v2-8, tpu:v3-8.*did you mean tpu:v' train mnist_cnn --device tpu:v9-8
refuses 2 '--shards is "0", expected a whole number from 1 to 1024' train mnist_cnn --device tpu --shards 0
refuses 2 '--shards is "1025", expected a whole number from 1 to 1024' train mnist_cnn --shards 1025
refuses 2 '--shards is "2", expected 1 on device reference' train mnist_cnn --device reference --shards 2
refuses 1 'a batch of 5 rows for 8 shards, expected at least one row' train mnist_cnn $tpu --batch-size 5
refuses 1 'the loss became nan in epoch 1.*float16 overflows beyond 65504; mixed_bfloat16 does not' \
    train mnist_cnn $tpu --policy mixed_float16 --learning-rate 1e30
succeeds train mnist_cnn $tpu
! grep -q 'fell back' "$folder/out"
report $? "nothing is said of ops that fell back where none did"
exact="--device tpu --policy float32 --data synthetic --limit 400 --batch-size 80 --epochs 2"
for shards in 1 8; do
    succeeds train mnist_cnn $exact --shards $shards --verbose 2
    grep -o ' loss: [0-9.]*' "$folder/out" >"$folder/loss$shards"
done
same "the same losses on 1 and on 8 shards" "$folder/loss1" "$folder/loss8"

# ---- Files to write: checked before anything is trained ----

refuses 1 'no/such/m.safetensors: cannot be written: No such file' train mnist_cnn $small --save no/such/m.safetensors
refuses 1 'no/h.json: cannot be written: No such file' train mnist_cnn $small --history no/h.json
refuses 1 'cannot be written: Is a directory' train mnist_cnn $small --history .
refuses 1 'no/t.json: cannot be written: No such file' train mnist_cnn $small --trace no/t.json
refuses 1 'no/p: the folder cannot be made: No such file' train mnist_cnn $small --plots no/p
: >file
refuses 1 'file: is a file, expected a folder' train fashion_mnist_cnn $small --plots file
mkdir -p pictures/filters.png
refuses 1 'pictures/filters.png: cannot be written: Is a directory' train mnist_cnn $small --plots pictures
rmdir pictures/filters.png
if [ "$(id -u)" != 0 ]; then
    chmod a-w pictures
    refuses 1 'pictures/curves.png: cannot be written: Permission denied' train mnist_cnn $small --plots pictures
    chmod u+w pictures
elif unshare -rm true 2>/dev/null; then
    timeout "${CORNU_TEST_TIMEOUT:-300}" unshare -m sh -c 'mount -t tmpfs -o ro none pictures || exit 99; "$@" --plots pictures' \
        sh "$programs/cornu" train mnist_cnn $small >"$folder/out" 2>"$folder/err"
    status=$?
    if [ $status = 99 ]; then
        skip 1 "mounts: root, or unprivileged user namespaces"
    else
        [ $status = 1 ] && ! grep -q accuracy "$folder/out" &&
            grep -q 'pictures/curves.png: cannot be written: Read-only' "$folder/err"
        report $? "pictures where nothing can be written are refused"
    fi
else
    skip 1 "mounts: root, or unprivileged user namespaces"
fi
rmdir pictures && rm file
refuses 1 'the loss became nan' train mnist_cnn $small --learning-rate 1e30 --plots pictures
for optimizer in sgd lars lamb; do
    succeeds train mnist_cnn $small --large-batch $optimizer --warmup-epochs 0.5
done
refuses 2 '--warmup-epochs 2: expected a --large-batch' train mnist_cnn $small --warmup-epochs 2
refuses 2 '--warmup-epochs 1: expected less than the 1 epochs' train mnist_cnn $small --warmup-epochs 1 \
    --large-batch lamb
# A second run overwrites the plots, with the same bytes.
for model in mnist_cnn fashion_mnist_cnn; do
    succeeds train $model $small --plots pictures/
    [ "$(cd pictures && echo *)" = "confusion.png curves.png filters.png predictions.png" ]
    report $? "$model: four pictures"
    cat pictures/*.png >first
    succeeds train $model $small --plots pictures --threads 1
    cat pictures/*.png >second
    same "$model: the same pictures with one thread" first second
    rm -r pictures
done
rm first second
refuses 1 'm.npz: whole models cannot be saved as .npz, expected one of .safetensors .keras .h5' \
    train mnist_cnn $small --save m.npz
refuses 1 'expected one of .safetensors' train mnist_cnn $small --save model
if [ -c /dev/full ]; then
    ln -s /dev/full full.safetensors
    refuses 1 'full.safetensors: cannot be written: No space left' train mnist_cnn $small --save full.safetensors
    refuses 1 '/dev/full: cannot be written: No space left' train mnist_cnn $small --history /dev/full
    rm full.safetensors
    "$programs/cornu" train mnist_cnn $small >/dev/full 2>"$folder/err"
    status=$?
    [ $status = 1 ] && grep -q 'standard output cannot be written' "$folder/err"
    report $? "a full standard output is not a success"
else
    skip 1 "/dev/full: Linux"
fi
# A disk that is full only when the model is written: no partial file.
if unshare -rm true 2>/dev/null && [ "$(id -u)" = 0 ]; then
    mkdir disk
    timeout "${CORNU_TEST_TIMEOUT:-300}" unshare -m sh -c 'mount -t tmpfs -o size=100k none disk || exit 99
        "$@" --save disk/m.safetensors; status=$?; ls -A disk >&2; exit $status' sh \
        "$programs/cornu" train mnist_cnn $small >"$folder/out" 2>"$folder/err"
    status=$?
    if [ $status = 99 ]; then
        skip 1 "mounts: root, or unprivileged user namespaces"
    else
        [ $status = 1 ] && grep -q 'No space left' "$folder/err" && [ "$(wc -l <"$folder/err")" = 1 ]
        report $? "a disk that fills up is said and left empty"
    fi
    rmdir disk
else
    skip 1 "mounts: root, or unprivileged user namespaces"
fi

# ---- Garments ----

small_garments="--data synthetic --limit 64 --batch-size 32 --epochs 1"
succeeds train fashion_mnist_cnn --help
grep -q -- '--augment-shift N' "$folder/out" && grep -q -- '--labels NAMES' "$folder/out"
report $? "the help of train has the flags of pictures"
refuses 1 'labels: 2 names, expected 10' train fashion_mnist_cnn $small_garments --labels a,b
refuses 1 'labels: name 3 is empty' train fashion_mnist_cnn $small_garments --labels a,b,,d,e,f,g,h,i,j
refuses 1 'labels: names 1 and 10 are both "a"' train fashion_mnist_cnn $small_garments --labels a,b,c,d,e,f,g,h,i,a
refuses 1 'labels.txt: cannot be opened: No such file' train mnist_cnn $small --labels labels.txt
seq -f 'sort %.0f' 10 >labels.txt
succeeds train fashion_mnist_cnn $small_garments --labels labels.txt --augment-shift 2 --augment-flip \
    --save g.safetensors --threads 1
grep -q '^ *sort 10  ' "$folder/out" && grep -q '^Per-class report on the synthetic test garments:' "$folder/out" &&
    [ "$(sed -n 's/^Test accuracy on synthetic garments: //p' "$folder/out")" = \
      "$(awk '$1 == "accuracy" { print $2 }' "$folder/out")" ]
report $? "the report has the given names and the accuracy of the test"
succeeds train fashion_mnist_cnn $small_garments --augment-shift 2 --augment-flip --save h.safetensors --verbose 0 \
    --labels labels.txt
! grep -q 'precision' "$folder/out" && same "augmented garments: other threads, the same bytes" g.safetensors h.safetensors
succeeds train fashion_mnist_cnn $small_garments --save h.safetensors
grep -q '^ *ankle_boots  ' "$folder/out"
report $? "garments have their names"
differ "augmentation changes what is learned" g.safetensors h.safetensors
rm g.safetensors h.safetensors labels.txt

# ---- Less memory, and larger batches ----

refuses 2 '--remat larger_than=0: expected larger_than=N' train mnist_cnn $small --remat larger_than=0
refuses 2 '--remat larger_than=5x: expected larger_than=N' train mnist_cnn $small --remat larger_than=5x
refuses 2 'mnist_cnn has none called "nope"' train mnist_cnn $small --remat dense,nope
refuses 2 '--accumulate-steps is "0"' train mnist_cnn $small --accumulate-steps 0
succeeds train mnist_cnn $small --save p.safetensors
for mode in full activations larger_than=1000 dense,conv2d_1; do
    succeeds train mnist_cnn $small --save q.safetensors --remat $mode
    same "--remat $mode changes no byte" p.safetensors q.safetensors
done
succeeds train mnist_cnn $small --save q.safetensors --accumulate-steps 2
differ "accumulated gradients change what is learned" p.safetensors q.safetensors
rm p.safetensors q.safetensors
succeeds explain mnist_cnn --no-run --remat
grep -q '^Rematerialization, at most at once: none [0-9.]* MB, full' "$folder/out"
report $? "explain says what rematerialization saves"

# ---- Several devices ----

refuses 1 'no/r.json: cannot be written: No such' compare mnist_cnn $small --json no/r.json
refuses 1 'no/r.png: cannot be written: No such' compare mnist_cnn $small --chart no/r.png
refuses 1 '"gpu" is unknown, expected "cpu"' compare mnist_cnn $small --devices cpu,gpu --json r.json
refuses 1 'a device without a name' compare mnist_cnn $small --devices cpu,,tpu --chart r.png
succeeds compare mnist_cnn $small --devices cpu,tpu:v3-8 --json r.json --chart r.png
for text in '^Measured: mnist_cnn on SYNTHETIC data, 200 samples' '^tpu:v3-8 *emulated' \
            '^Modelled: ' '^v2-8 ' '^v3-8 ' '^Published: '; do
    grep -q "$text" "$folder/out"
    report $? "compare prints $text"
done
[ "$(head -c 4 r.png | tail -c 3)" = PNG ] && grep -q '"label": "published"' r.json
report $? "compare leaves its file and its picture"
rm -f r.json r.png
text="shakespeare_lstm_quick --data synthetic --limit 16 --batch-size 8 --epochs 1"
succeeds compare $text --devices cpu,tpu --json r.json
for text in '^cpu: [0-9]* characters/s, 100 for each sample' '^Modelled: ' '^v2-8 .* 8 *2 ' \
            '^Published: no times of shakespeare_lstm_quick'; do
    grep -q "$text" "$folder/out"
    report $? "compare prints $text for a text"
done
grep -q '"targets_per_sample": 100' r.json
report $? "the file says how many characters a sequence has"
rm -f r.json
refuses 1 'nowhere/shakespeare/input.txt is missing; --data must name' \
    compare shakespeare_lstm --data nowhere
[ "$(wc -l <"$folder/err")" = 2 ] && tail -n 1 "$folder/err" | grep -q 'https://.* has it; --data synthetic'
report $? "which is two lines: the second says what helps"
refuses 1 'a batch of 4 rows for 8 shards' compare shakespeare_lstm_quick \
    --data synthetic --limit 16 --batch-size 4 --epochs 1 --devices tpu
mkdir -p d/shakespeare
head -c 900 /dev/zero | tr '\0' x >d/shakespeare/input.txt
refuses 1 'd/shakespeare/input.txt: 900 characters, .*expected at least 101' \
    compare shakespeare_lstm --data d
rm -r d

# ---- Data ----

refuses 1 'nowhere/mnist/train-images-idx3-ubyte.gz is missing; --data must name' train mnist_cnn --data nowhere
refuses 1 'is missing; CORNU_DATA must name' CORNU_DATA=nowhere train mnist_cnn
refuses 1 'is missing; CORNU_DATA must name' CORNU_DATA=nowhere train fashion_mnist_cnn

idx() { # idx RANK EXTENT... : a header for u8; the elements come from stdin
    printf "\\0\\0\\10\\$1"
    shift
    for extent; do printf "\\0\\0\\$(printf %o $((extent / 256)))\\$(printf %o $((extent % 256)))"; done
    cat
}
labels() { # labels N LAST: N labels 0 to 9, the last one LAST
    { head -c $(($1 - 1)) /dev/zero; printf "\\$(printf %o "$2")"; } | idx 1 "$1"
}
images() { head -c $(($1 * 784)) /dev/zero | idx 3 "$1" 28 28; }
good() {
    mkdir -p d/mnist
    images 20 | gzip >d/mnist/train-images-idx3-ubyte.gz
    labels 20 9 | gzip >d/mnist/train-labels-idx1-ubyte.gz
    images 10 | gzip >d/mnist/t10k-images-idx3-ubyte.gz
    labels 10 9 | gzip >d/mnist/t10k-labels-idx1-ubyte.gz
}
bad_data() { refuses 1 "d/mnist/$1" train mnist_cnn --data d --epochs 1; good; }

good
succeeds train mnist_cnn --data d --epochs 1
head -c 60 d/mnist/train-images-idx3-ubyte.gz >short && mv short d/mnist/train-images-idx3-ubyte.gz
bad_data 'train-images-idx3-ubyte.gz: the compressed file is truncated after 60 bytes'
printf 'no idx at all' | gzip >d/mnist/train-images-idx3-ubyte.gz
bad_data 'train-images-idx3-ubyte.gz: begins with 6e 6f 20 69, expected 00 00'
images 19 | gzip >d/mnist/train-images-idx3-ubyte.gz
bad_data 'train-labels-idx1-ubyte.gz: has 20 labels, expected 19'
labels 10 10 | gzip >d/mnist/t10k-labels-idx1-ubyte.gz
bad_data 't10k-labels-idx1-ubyte.gz: label 9 is 10, expected 0 to 9'
head -c 7840 /dev/zero | idx 3 10 56 14 | gzip >d/mnist/t10k-images-idx3-ubyte.gz
bad_data 't10k-images-idx3-ubyte.gz: holds u8.*expected u8 \(N, 28, 28\)'
images 21 | head -c 15700 | gzip >d/mnist/train-images-idx3-ubyte.gz
bad_data 'train-images-idx3-ubyte.gz: ends after 15684 bytes of elements'
: >d/mnist/t10k-labels-idx1-ubyte.gz
bad_data 't10k-labels-idx1-ubyte.gz: has 0 bytes, too few'
rm d/mnist/t10k-labels-idx1-ubyte.gz
bad_data 't10k-labels-idx1-ubyte.gz is missing'
rm -r d

# ---- Without network and data ----

if unshare -rn true 2>/dev/null; then
    log=error
    alone() { timeout "${CORNU_TEST_TIMEOUT:-300}" unshare -rn env -i HOME= PATH="$PATH" CORNU_LOG="$log" "$programs/cornu" "$@" >"$folder/out" 2>"$folder/err"; status=$?; }
    alone train mnist_cnn
    [ $status = 1 ] && grep -q 'train-images-idx3-ubyte.gz is neither in ./data/mnist' "$folder/err" &&
        grep -q 'https://' "$folder/err" && [ "$(wc -l <"$folder/err")" = 2 ] &&
        grep -q -- '--data synthetic' "$folder/err" && ! grep -q accuracy "$folder/out"
    report $? "without data train names file, folder, address and --data synthetic in two lines"
    log=info alone train mnist_cnn
    grep -q 'has 9912422 bytes and SHA-256 440fcabf73cc546f' "$folder/err"
    report $? "the log has size and checksum"
    mkdir build
    alone demo --limit 200
    [ $status = 0 ] && grep -q 'goes on with SYNTHETIC digits' "$folder/out" &&
        grep -q 'Test accuracy on synthetic digits' "$folder/out" && [ -s build/demo.safetensors ]
    report $? "without data the demo goes on with synthetic digits, and says so"
    ! grep -i 'test accuracy' "$folder/out" | grep -qv synthetic
    report $? "no accuracy without the word synthetic"
    rm -r build data 2>/dev/null
else
    skip 1 "networks of its own: root, or unprivileged user namespaces"
fi
mkdir -p build/demo.safetensors
refuses 1 'build/demo.safetensors: cannot be written' demo --data synthetic --limit 200
rm -r build
succeeds demo --data synthetic --limit 200
[ -s demo.safetensors ] && grep -q '^    cornu predict demo.safetensors IMAGE.png' "$folder/out"
report $? "outside the source tree the demo leaves its model in the working folder"
rm demo.safetensors

# The demo says first what it will do. It is then ended, as its epochs take a minute.
mkdir build
"$programs/cornu" demo --data synthetic >"$folder/out" 2>"$folder/err" </dev/null &
demo=$!
while kill -0 $demo 2>/dev/null && ! grep -q 'up to 8 times' "$folder/out"; do sleep 0.05; done
kill $demo
wait $demo 2>/dev/null
grep -Eq '^Each learns from all 60000 digits 3 times, about [1-9][0-9]* (s|minutes) here' "$folder/out" &&
    grep -q 'less than 98.5 % of the 10000 test digits' "$folder/out"
report $? "the demo tells its time before it begins, and learns from all digits"
run demo --data synthetic --limit 200
grep -q '^--limit 200: each learns from 200 digits' "$folder/out" && grep -q '^Epoch 3/3' "$folder/out" &&
    ! grep -q 'less than 98\.5 %' "$folder/out"
report $? "the demo with --limit promises nothing"
rm -r build

# ---- The same seed, the same bytes ----

train="--data synthetic --limit 300 --batch-size 64 --epochs 2 --verbose 0"
succeeds train mnist_cnn $train --save a.safetensors --threads 1
succeeds train mnist_cnn $train --save b.safetensors --threads 1
same "the same run gives the same bytes" a.safetensors b.safetensors
for threads in 2 3; do
    succeeds train mnist_cnn $train --save b.safetensors --threads $threads
    same "$threads threads give the same bytes" a.safetensors b.safetensors
done
for isa in avx2 portable; do
    run CORNU_ISA=$isa train mnist_cnn $train --save c.safetensors --threads 1
    if [ $status != 0 ]; then skip 1 "instruction set: a processor that has it"; continue; fi
    succeeds CORNU_ISA=$isa train mnist_cnn $train --save b.safetensors --threads 3
    same "CORNU_ISA=$isa: 3 threads give the same bytes" b.safetensors c.safetensors
done
succeeds train mnist_cnn $train --save b.safetensors --seed 1
differ "another seed gives other bytes" a.safetensors b.safetensors

# Training resumes from a loaded model, optimizer state included, whose step is a scalar.
succeeds train mnist_cnn $train --load a.safetensors --save b.safetensors
differ "a loaded model goes on learning" a.safetensors b.safetensors
begin_of() { # begin_of NAME FILE: the offset of an array's bytes in a safetensors file
    local header
    header=$(od -An -tu8 -N8 "$2" | tr -d ' ')
    echo $((8 + header + $(head -c $((header + 8)) "$2" | tail -c +9 |
        sed 's|.*"'"$1"'": *{\([^}]*\)}.*|\1|; s|.*"data_offsets": *\[\([0-9]*\).*|\1|')))
}
iteration() { od -An -td8 -j "$(begin_of adam/iteration "$1")" -N8 "$1" | tr -d ' '; }
[ "$(iteration a.safetensors)" = 10 ] && [ "$(iteration b.safetensors)" = 20 ]
report $? "the optimizer goes on counting (10 steps: $(iteration a.safetensors), 20: $(iteration b.safetensors))"

# ---- Files to load ----

hostile() { # hostile LENGTH HEADER: a file that states this length; 16 bytes follow the header
    printf "$(printf '\\x%02x' $(($1 & 255)) $(($1 >> 8 & 255)) $(($1 >> 16 & 255)) $(($1 >> 24 & 255)))\\0\\0\\0\\0%s" "$2"
    head -c 16 /dev/zero
}
hostile 2147483647 '{}' >huge.safetensors
hostile 4 '{"a"' >json.safetensors
header='{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,99999999]}}'
hostile ${#header} "$header" >beyond.safetensors
header='{"conv2d/kernel":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}'
hostile ${#header} "$header" >shape.safetensors
printf 'abc' >tiny.safetensors
: >empty.safetensors
head -c 4000 a.safetensors >cut.safetensors
for file in huge json beyond shape tiny empty cut absent; do
    refuses 1 "$file.safetensors: " train mnist_cnn $small --load $file.safetensors
    refuses 1 "$file.safetensors: " predict $file.safetensors x.png
done
refuses 1 'a.safetensors: .*(weights|model)' train mnist_convnet $small --load a.safetensors

# ---- NaN and infinity ----

refuses 1 'the loss became nan in epoch 1' train mnist_cnn $small --learning-rate 1e30 --save nan.safetensors
begin=$(begin_of conv2d/bias a.safetensors)
{ head -c "$begin" a.safetensors
  head -c 128 /dev/zero | tr '\0' '\377'
  tail -c +$((begin + 129)) a.safetensors; } >changed.safetensors
refuses 1 'changed.safetensors: the checksum does not match' train mnist_cnn $small \
    --load changed.safetensors
LC_ALL=C sed 's/"sha256":"/"sum":"xxx/' changed.safetensors >nan.safetensors   # as without one
refuses 1 'the loss became nan in epoch 1' train mnist_cnn $small --load nan.safetensors

# ---- Pictures ----

png='\211PNG\r\n\032\n'
printf "$png" >short.png
printf 'GIF89a not a picture' >gif.png
: >empty.png
refuses 1 'absent.png: cannot be opened: No such file' predict a.safetensors absent.png
refuses 1 'short.png: not a readable PNG image' predict a.safetensors short.png
refuses 1 'gif.png: a damaged GIF image, byte 20' predict a.safetensors gif.png
refuses 1 'empty.png: not a readable image, expected one of PNG' predict a.safetensors empty.png
refuses 1 'expected one of .safetensors' predict short.png a.safetensors
if [ -n "$real" ] && [ -d "$real/digit-images" ]; then
    picture=$(ls "$real"/digit-images/*.png | head -n 1)
    refuses 1 "$picture: .*is not finite" predict nan.safetensors "$picture"
    refuses 1 'a batch of 1 rows for 2 shards' predict --device tpu --shards 2 a.safetensors "$picture"
    succeeds predict --device tpu a.safetensors "$picture"
    run predict a.safetensors absent.png "$picture"
    [ $status = 1 ] && [ "$(wc -l <"$folder/out")" = 1 ]
    report $? "one unreadable picture does not keep predict from the next"
else
    skip 1 "data sets: CORNU_DATA=FOLDER with the published files"
fi

# ---- The record ----

succeeds train mnist_cnn --data synthetic --limit 300 --batch-size 64 --epochs 2 --history h.json --threads 2
if command -v python3 >/dev/null; then
    python3 - h.json >"$folder/out" 2>"$folder/err" <<'PYTHON'
import json, sys
record = json.load(open(sys.argv[1]))
epochs = record.pop("epochs")
assert record.pop("test").keys() == {"loss", "accuracy"}
assert record == {"model": "mnist_cnn", "device": "cpu", "policy": "float32", "threads": 2,
                  "shards": 1, "processes": 1, "label": "measured", "parameters": 93322,
                  "data": {"name": "mnist", "synthetic": True, "train": 300, "test": 300}}, record
assert [epoch["epoch"] for epoch in epochs] == [1, 2]
for epoch in epochs:
    assert set(epoch) == {"epoch", "seconds", "samples_per_second", "gflops", "loss", "accuracy",
                          "val_loss", "val_accuracy", "infeed"}, epoch
    infeed = epoch["infeed"]
    assert (infeed["batches"], infeed["bytes"]) == (5, 5 * 64 * 785), infeed
    assert 0 < infeed["wait_seconds"] + infeed["copy_seconds"] < epoch["seconds"], infeed
    assert abs(epoch["seconds"] * epoch["samples_per_second"] - 300) < 0.01
    assert 0 < epoch["gflops"] < 10000 and 0 < epoch["loss"] < 5 and 0 < epoch["val_loss"] < 5
    assert 0 <= epoch["accuracy"] <= 1 and 0 <= epoch["val_accuracy"] <= 1
PYTHON
    status=$?
    report $status "the record has the promised fields"
else
    skip 1 "python3: make deps-test"
fi

# ---- TensorBoard ----

: >file
refuses 1 'file/: the folder cannot be made: Not a directory|file/: cannot be written' \
    train mnist_cnn $small --tensorboard file
refuses 1 'file/logs: the folder cannot be made: Not a directory' train mnist_cnn $small --tensorboard file/logs
rm file
for model in mnist_cnn fashion_mnist_cnn; do
    succeeds train $model $small --tensorboard logs/$model
    [ "$(ls logs/$model/*/events.out.tfevents.*.v2 | wc -l)" = 2 ] &&
        grep -aq epoch_learning_rate logs/$model/train/* &&
        grep -aq kernel/histogram logs/$model/train/* &&
        grep -aq evaluation_accuracy_vs_iterations logs/$model/validation/*
    report $? "$model: events"
done
rm -r logs

# ---- The trace ----

succeeds train mnist_cnn --device tpu --data synthetic --limit 300 --batch-size 64 --epochs 2 --verbose 0 \
    --trace t.json
if command -v python3 >/dev/null; then
    python3 - t.json >"$folder/out" 2>"$folder/err" <<'PYTHON'
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
assert len(names) == 2 and "modelled: v2-8, one replica" in names, names
step, = (event for event in events if event["name"] == "training step")
assert step["args"] == {"epoch": 2, "step": 4}, step
assert all(event["ts"] >= 0 and event["dur"] >= 0 for event in events if event["ph"] == "X")
PYTHON
    status=$?
    report $status "the trace is of a late step, measured and modelled"
else
    skip 1 "python3: make deps-test"
fi

# ---- What is printed ----

escape=$(printf '\033')
succeeds train mnist_cnn $train --verbose auto
[ $status = 0 ] && [ "$(grep -c '^5/5 - ' "$folder/out")" = 2 ] && ! grep -q "$escape" "$folder/out"
report $? "not on a terminal: a line per epoch, no escape codes"
succeeds LC_ALL=C train mnist_cnn $train --verbose 1
! LC_ALL=C grep -q '[^ -~[:space:]]' <(tr -d '\b' <"$folder/out")
report $? "the C locale gets ASCII alone"
if command -v script >/dev/null && script -qec true /dev/null >/dev/null 2>&1; then
    terminal() { script -qec "env $* $programs/cornu train mnist_cnn $train --verbose auto" /dev/null >"$folder/out" 2>&1 </dev/null; status=$?; }
    terminal TERM=xterm-256color
    [ $status = 0 ] && grep -q "$(printf '\342\224\201')" "$folder/out" && grep -q "$escape\[32m" "$folder/out"
    report $? "a terminal gets a bar in colours"
    terminal TERM=xterm-256color NO_COLOR=1
    [ $status = 0 ] && ! grep -Eq "$escape\[[0-9;]*(3[0-9]|38)" "$folder/out"
    report $? "NO_COLOR is respected"
    terminal TERM=xterm-256color LC_ALL=C
    [ $status = 0 ] && ! LC_ALL=C grep -q "$(printf '\342')" "$folder/out"
    report $? "a terminal in the C locale gets ASCII"
else
    skip 1 "script: apt-get install bsdutils"
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
