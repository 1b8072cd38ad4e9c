# cornu explain: the page of every network on each kind of device, and of files; its JSON, its errors.
# tests/run: takes 60 s, in check
golden=$PWD/tests/golden
. tests/checks.sh

explain() { timeout "${CORNU_TEST_TIMEOUT:-300}" "$programs/cornu" explain "$@" >out 2>err </dev/null; }
says() { grep -q -- "$1" out; }
fails_with() { ! explain mnist_cnn "${@:2}" && grep -q -- "$1" err && [ ! -e no ]; }
fits() { ! grep -qE '^.{121}' out; }
rows() { grep -cE '^ {0,2}[0-9]+ [ *=] ' out; }
steps() { sed -n 's/^compiled: .* ops to \([0-9]*\) steps.*/\1/p' out; }
unnamed() { grep -cE '^ {0,2}[0-9]+ [ *=]  ' out; }
collectives() { grep -cE '^ {0,2}[0-9]+ = ' out; }

fails_on() { ! explain "${@:2}" && grep -q -- "$1" err && [ "$(wc -l <err)" = 1 ]; }
narrow() { ! sed 1d out | grep -qE '^.{81}'; }   # the first line is as long as the processor's name

models="mnist_cnn mnist_cnn_bn mnist_convnet fashion_mnist_cnn resnet20 shakespeare_lstm
        shakespeare_lstm_quick char_gpt"
batch=64
case $BUILD in *sanitize*) batch=8 ;; esac   # where a step of the LSTM takes minutes
for model in $models; do
    explain "$model" --device tpu:v3-8 --batch-size $batch --steps 1 --all
    check "$model on tpu:v3-8" [ $? = 0 ]
    check "$model fits 120 columns" fits
    check "$model has a row per step" [ "$(rows)" = "$(steps)" ]
    check "$model says which layer each step is of" [ "$(unnamed)" = 0 ]
    check "$model shows collectives" [ "$(collectives)" -ge 1 ]
    check "$model runs without fallbacks" eval '! says "fell back"'
    check "$model on 1 to 8 shards" [ "$(grep -cE '^v3-8 +[1248] ' out)" = 5 ]
    check "$model on every profile" [ "$(grep -cE '^v[0-9]' out)" = 10 ]
done

for device in cpu tpu; do
    explain mnist_cnn_bn --device $device --batch-size $batch --steps 1
    check "the first page of $device is a screen" eval '[ "$(wc -l <out)" -le 40 ] && narrow'
    check "it says what a step does" says '^mnist_cnn_bn: a training step takes '
    check "it says where the time goes" says '^  part  *forward ms  *backward ms  *percent\( *modelled us\)\?$'
    check "it says how the ops are placed" says '^Ops: [0-9]*, of which [0-9]* native, [0-9]* decomposed, 0 by reference kernels, 0 refused'
    check "it says how it trains" says '^It trains as the model was compiled: loss sparse_categorical_crossentropy,$'
    check "it says what memory is used for" says '^Memory.*: at most [1-9].* MB'
    check "it says what rules" says '-bound here: '
    check "it says where the rest is" says '^--all shows every step'
done

explain shakespeare_lstm_quick --device tpu --batch-size 64 --steps 1 --all
check "a text's characters are told" says 'samples/s, [0-9]* characters/s$'
check "a recurrence has a product per time step" says '^ *[0-9]* \* lstm  *lstm  *100x8x256x1024  *1600 100 '
check "an epoch is as long as the text" says 'an epoch is 9939 samples in 156 steps'

explain mnist_convnet --device tpu --shards 16 --batch-size 16 --steps 1
check "more shards than a board's are modelled on a larger slice" says 'Modelled on a TPU v2-32: '

# Slices of pods: nothing is measured.
explain mnist_cnn --device tpu:v3-8 --batch-size 1024 --scaling 8,32,128,512,2048 \
    --json scaling.json
check "a step is modelled on slices" [ $? = 0 ]
check "the tables say that they are modelled" [ "$(grep -c odelled out)" = 3 ]
check "no time is measured" eval '! says easured'
check "each slice has a row of weak scaling" [ "$(sed '/^Strong/,$d' out | grep -cE '^v3-(8|32|128|512|2048) ')" = 5 ]
check "those with a sample for each shard have one of strong scaling" \
    [ "$(sed '1,/^Strong/d' out | grep -cE '^v3-(8|32|128|512) ')" = 4 ]
check "the others are told" says '^From 2048 shards on, some have no sample'
check "the pod is a torus" says '^v3-2048 32x32 torus  *2048 '
check "a slice is not" says '^v3-512  16x16  *512 '
check "what is assumed is marked" says "assumed are those as long as the pod's (?)"
check "the tables are narrow" eval '! grep -qE "^.{81}" out'
explain mnist_cnn --device tpu:v2-512 --batch-size 64 --scaling 1,512
check "a pod is a device" says '^v2-512  16x16 torus  *512 '
check "one shard exchanges nothing" says '^v2-8    2x2  *1  *[0-9.]*  *0.0  *0.00  *100.0  *100.0$'
scaling_fails() { fails_with "$1" --device tpu:v3-8 --batch-size "${3:-64}" --scaling "$2"; }
check "scaling refuses more than a pod" scaling_fails '2049 shards, expected 1 to the 2048 of v3-2048' 8,2049
for list in 8,8 32,8 8, ,8 0,8 8x 8,-1 "" 1234567890 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17; do
    check "scaling refuses $list" scaling_fails "expected up to 16 ascending numbers\|needs a value" "$list"
done
check "scaling refuses a batch below the shards" scaling_fails 'a batch of 4 samples for 8 shards' 8,32 4
check "scaling needs a TPU" fails_with 'expected --device tpu' --device cpu --scaling 8
check "scaling has its own shards" fails_with 'expected only one of them' --device tpu --shards 8 --scaling 8

# Meshes: nothing is measured.
cut='--layout dense/kernel=,model --layout dense/bias=model --layout dense_1/kernel=model'
explain mnist_cnn --mesh batch=4,model=2 $cut --batch-size 64 --json mesh.json
check "a step is modelled on a mesh" says '^mnist_cnn on the mesh (batch=4, model=2): a training step of 64 samples, in mixed_bfloat16\.$'
check "on the TPU that is the default" says '^8 shards on 4 chips of a TPU v3-8, 2x2'
check "a weight has its slice" says '^dense/kernel  *f32 (576, 64)  *(-, model)  *(576, 32)  *73.7$'
check "the next one that of its rows" says '^dense_1/kernel  *f32 (64, 10)  *(model, -)  *(32, 10)  *1.3$'
check "16 rows of 10 sums are exchanged once forward" says '^dense_1  *all_reduce  *model  *1  *2  *0.6 '
check "and gradients over the batch" says '^adam  *reduce_scatter  *batch  '
check "the memory is that of a shard" says '^Memory of a shard, MB: .* weights 0\.30, '
check "the time is modelled" says '^Modelled step: [0-9.]* ms on the device'
check "the page fits 100 columns" eval '! grep -qE "^.{101}" out'
check "the JSON has it, too" grep -q '"slice": "f32 (576, 32)"' mesh.json
explain mnist_cnn --mesh auto --profile v5e-8 --batch-size 64
check "a mesh is chosen, and told of in five lines" [ "$(wc -l <out)" = 5 ]
check "beside data parallelism" says '^Data parallelism [0-9.]* ms'
explain mnist_cnn --mesh batch=2,model=4 --batch-size 64
check "without layouts it is cut as by cornu train" says '^dense/kernel  *f32 (576, 64)  *(model, -)  *(144, 64) '
check "and the layer before" says '^conv2d_2/kernel  *f32 (3, 3, 64, 64)  *(-, -, -, model)  *(3, 3, 64, 16) '
explain mnist_cnn --mesh batch=1,model=8 --layout auto --batch-size 64
check "layouts are chosen for a mesh" says '^1\. (batch=1, model=8) [0-9.]* ms'
check "and shown" says '^mnist_cnn on the mesh (batch=1, model=8)'
check "a mesh has axes and shards" fails_with 'expected AXIS=SHARDS, such as model=4' --mesh batch=x
check "of which there are so many" fails_with 'of 1 to 1024' --mesh batch=0
check "layouts need a mesh" fails_with 'layout without --mesh' --layout dense/kernel=model
check "layouts name axes of it" fails_with 'has no axis "m"' --mesh batch=8 --layout dense/kernel=m
check "and weights" fails_with 'is for none of its 10' --mesh batch=8 --layout tense/kernel=batch
check "what is chosen is not given" fails_with 'expected only one of them' --mesh auto --layout dense/kernel=model
check "a mesh has its own shards" fails_with 'expected only one of them' --mesh batch=8 --shards 8
for flag in --check --remat --all "--scaling 8"; do
    check "the page of a mesh is no other: $flag" fails_with "--mesh and --[a-z]*: expected only one" \
        --mesh batch=2,model=4 $flag
done
check "a mesh cuts something" fails_with 'expected batch=1,model=2' --mesh model=2
check "a mesh is of TPUs" fails_with 'expected --device tpu' --mesh batch=8 --device reference

explain mnist_cnn --device cpu --batch-size 32 --steps 2 --all --json cpu.json
check "cpu is native" says 'native, float32, 1 shard,'
check "cpu has a row per step" [ "$(rows)" = "$(steps)" ]
check "each step names its kernel" [ "$(grep -cE '^ *[0-9]+   conv2d(_[12])?  .* conv2d_(winograd|few|padded|direct) ' out)" -ge 3 ]
check "the convolution of most filters is Winograd's" says '  conv2d_1  *conv2d+max_pool2d+bias.. conv2d_winograd '
check "so does the JSON" grep -q '"kernel": "conv2d_winograd"' cpu.json
check "and which kernels were asked first, and why they declined" says '^- [0-9, ]* by conv2d_direct, as conv2d_winograd needs at least 12 channels, has 1; '
check "in the JSON, too" grep -q '"why": "needs at least 12 channels, has 1"' cpu.json
check "cpu has nothing modelled" eval '! says odelled'
check "cpu fits 120 columns" fits

explain mnist_cnn --device tpu:v4-8 --shards 2 --threads 3 --policy float32 --batch-size 40 --steps 2 --all \
    --json tpu.json
check "the policy and the shards are heeded" says 'emulated, float32, 2 shards, 3 threads'
check "advice on passes" says 'Products of float32 take the MXU 6 passes'
check "advice on rows" says "A shard's 20 rows are padded to 24"
check "v4-8 has no 8 replicas" [ "$(grep -cE '^v4-8 +[1248] ' out)" = 4 ]
check "three passes by their name" eval 'explain mnist_cnn --device tpu --policy float32 --precision high --batch-size 8 --steps 1 --all && says "take the MXU 3 passes"'
check "one pass has no such advice" eval 'explain mnist_cnn --device tpu --policy float32 --precision default --batch-size 8 --steps 1 --all && ! says "take the MXU"'
explain mnist_cnn --device tpu --policy float32 --batch-size 8 --steps 1 --all
check "an emulated step names the kernels that ran here" says '^kernels here: .* [0-9]* matmul'
CORNU_DUMP=plan explain mnist_cnn --batch-size 32 --no-run
check "what else was asked only where somebody asks" eval '! grep -q "^ *not conv2d" err'
CORNU_DUMP=kernels explain mnist_cnn --batch-size 32 --no-run
check "or which kernels declined, and why" grep -qx '     not conv2d_winograd: needs at least 12 channels, has 1' err
CORNU_DUMP=plan explain mnist_cnn --batch-size 32 --no-run
check "the plan names Winograd where it runs" [ "$(grep -cE '^ *[0-9]+ kernel conv2d.* by conv2d_winograd :' err)" -ge 2 ]
explain mnist_cnn --device reference --batch-size 2 --steps 1 --all
check "the reference device falls back, and says so" says '[1-9][0-9]* ops fell back to the reference kernels'

# How each op is computed: nothing runs.
placed() { grep -cE "^ *[0-9.]+  .* $1 " out; }
explain mnist_cnn --device cpu --batch-size 32 --check --json check.json
check "the ops of a step are placed" says '^mnist_cnn, a training step of 32 samples: [0-9]* ops, of which [0-9]* native, [0-9]* decomposed, 0 by reference kernels, 0 refused$'
check "each has a row" [ "$(grep -cE '^ *[0-9]+  ' out)" = "$(sed -n 's/^mnist_cnn,.*: \([0-9]*\) ops.*/\1/p' out)" ]
check "the optimizer's are among them" says '^ *[0-9]*  adam_update  *[^ ]*  *f32 .* native  *loop adam_update  \['
check "a kernel is named with the step that joins it" says '  conv2d  *conv2d_1  *f32 .* native  *kernel conv2d  \[[0-9]* conv2d+max_pool2d+bias+relu\]$'
check "an op is decomposed into others" says '  dropout  *dropout .* decomposed random_uniform, '
check "and why" says '^  *no kernel$'
explain shakespeare_lstm_quick --device reference --batch-size 2 --check
check "on reference all are by reference" [ "$(placed native)" = 0 ]
check "which is said" says 'reference  reference kernel lstm  \[[0-9]* lstm\]$'
check "check needs a file that can be written" fails_with 'no/e.json: cannot be written' --check --json no/e.json
explain mnist_cnn --device pjrt:cpu --batch-size 32 --check
if [ $? != 0 ] && grep -q 'no PJRT plugin' err; then
    skip 1 "pjrt: make deps-pjrt"
else
    check "XLA's ops are named" says '  matmul  *dense_1  .* native  *[a-z_, ]*dot_general'
    check "an op that XLA lacks is decomposed" says '  dropout  *dropout .* decomposed random_uniform, '
    check "which is why" says '^  *XLA has no such op$'
fi

# Files of others: PyTorch, Keras, TensorFlow's converter.
explain "$golden/onnx_read/torch_cnn_18.onnx" --device tpu:v3-8 --steps 1 --json onnx.json
check "an .onnx file trains with a loss that fits" says '^torch_cnn_18.onnx: a training step takes$\|^Nothing says what it is trained with. Taken are Adam and mean_squared_error as'
check "it says why" says 'ends in neither softmax nor sigmoid'
check "it says what to change" says '^To fit better:$'
check "it says where it lies in the TPU" says 'VMEM: at most [0-9.]* of 16'
check "it says what fills the MXU" says '^MXU: [1-9][0-9]* tiles of 128 x 128 weights'
check "it is narrow" narrow
explain "$golden/onnx_read/torch_cnn_18.onnx" --steps 1 --predict --batch-size 3
check "it predicts when asked to" says 'a prediction step takes 3'
explain "$golden/onnx_rows/apart_lstm.onnx" --steps 1 --extent 5
check "open extents are those asked for" says 'leaves extents of its inputs open; here they are f32 (32, 5, 4)'
explain "$golden/onnx_rows/function_state.onnx" --device tpu:v3-8 --steps 1
check "a graph without a batch runs on one shard" says 'a run of the function\|^It runs on 1 shard, not 8: '
check "it is run, not trained" says '^It is run and not trained: axis 0'
explain "$golden/lite_read/int8.tflite" --device tpu:v3-8 --steps 1
check "a .tflite file of one row runs on one shard" says '^It runs on 1 shard, not 8: the model has a batch of fewer rows'
explain "$golden/files/branches.keras" --device tpu:v3-8 --steps 1 --json branches.json
if [ $? != 0 ] && grep -q libhdf5 err; then
    skip 3 "libhdf5: make deps"
else
    check "a .keras file trains as it was compiled" says '^It trains as the model was compiled: loss sparse_categorical_crossentropy,'
    check "it is narrow, too" narrow
    explain "$golden/files/branches.keras" --loss mse --check
    check "a loss can be given" says 'branches.keras, a training step of 32 samples: '
fi
explain mnist_cnn --device tpu:v3-8 --no-run --json modelled.json
check "a step can be modelled alone" eval '! says easured && says "^Nothing ran: times are modelled" && says "modelled us"'
check "extents that do not fit are told" fails_on 'open extents, which --extent gives' "$golden/onnx_rows/apart_height.onnx"
echo "no model" >bad.onnx
echo "no model" >bad.keras
check "refuses a file that is no model" fails_on 'bad.onnx' bad.onnx
check "refuses another" fails_on 'bad.keras' bad.keras
check "refuses a file of another kind" fails_on 'expected one of .safetensors' err
check "refuses a loss that it does not know" fails_on 'mean_squared_error' mnist_cnn --loss mean_squared_eror
check "needs a model" eval '! explain && grep -q MODEL err'

if command -v python3 >/dev/null; then
    python3 - >out 2>err <<'PYTHON'
import json, os
cpu, tpu = json.load(open("cpu.json")), json.load(open("tpu.json"))
assert cpu["kind"] == "native" and not cpu["modelled"], cpu["kind"]
assert tpu["kind"] == "emulated" and len(tpu["modelled"]) == 3 + 6, len(tpu["modelled"])
for page in cpu, tpu:
    here = sum(step["measured"]["seconds"] for step in page["steps"])
    assert 0 < here <= 1.01 * page["measured"]["step_s"], (here, page["measured"])
own = [row for row in tpu["modelled"] if row["profile"] == "v4-8" and row["shards"] == 2][0]
device = sum(step["modelled"]["seconds"] for step in tpu["steps"])
assert abs(device - own["device_s"]) < 1e-6 * device, (device, own)
assert abs(own["epoch_s"] - 1500 * own["step_s"]) < 1e-6 * own["epoch_s"]
assert own["infeed_bytes"] == 40 * (784 + 1) + 2 * 2 * 8, own     # pixels, labels, two counts
for step in tpu["steps"]:
    op = step["modelled"]
    assert (op["product"][0] > 0) == (op["vmem"]["bytes"] > 0) and op["vmem"]["bytes"] <= 16 << 20, step
    assert op["useful_macs"] <= op["padded_macs"] and 0 <= op["use"]["overlapped"] <= 1, step
    assert op["seconds"] == max(op[unit] for unit in ("mxu_s", "vector_s", "hbm_s", "links_s"))
    assert step["kind"] == "collective" or op["link_bytes"] == 0
check = json.load(open("check.json"))
assert check["model"] == "mnist_cnn" and check["batch_size"] == 32, check
assert {op["placed"] for op in check["ops"]} == {"native", "decomposed"}
assert [op["op"] for op in check["ops"]] == [str(i) for i in range(len(check["ops"]))]
assert all(op["how"] and op["fallbacks"] == 0 for op in check["ops"])
onnx = json.load(open("onnx.json"))
assert onnx["step"] == "training" and onnx["loss"] == "mean_squared_error", onnx["loss"]
assert sum(onnx["placed"].values()) == len(onnx["ops"]) and onnx["placed"]["refused"] == 0
assert onnx["mxu"]["useful_macs"] <= onnx["mxu"]["padded_macs"]
assert onnx["padding"] and all(row["padding"] > 0.25 and row["next"] % 128 == 0 and
                               row["padding"] == 1 - row["extent"] / row["next"]
                               for row in onnx["padding"]), onnx["padding"]
worst = [row["mxu_time"] for row in onnx["padding"]]
assert worst == sorted(worst, reverse=True) and sum(set(worst)) <= 1.0
assert 0 < onnx["vmem"]["bytes"] <= onnx["vmem"]["capacity"] == 16 << 20
assert onnx["advice"] and onnx["reasons"]
if os.path.exists("branches.json"):
    two = json.load(open("branches.json"))
    assert [row["name"] for row in two["inputs"]] == ["source", "side"], two["inputs"]
    assert two["loss"] == "sparse_categorical_crossentropy, mean_squared_error", two["loss"]
scaling = json.load(open("scaling.json"))["modelled"]
assert scaling["rows_of_a_shard"] == 128
assert [row["shards"] for row in scaling["weak"]] == [8, 32, 128, 512, 2048]
assert [row["batch_size"] for row in scaling["weak"]] == [128 * n for n in (8, 32, 128, 512, 2048)]
assert [row["batch_size"] for row in scaling["strong"]] == [1024] * 4
assert [row["chips"] for row in scaling["weak"]] == [[2, 2], [4, 4], [8, 8], [16, 16], [32, 32]]
assert [row["closed"] for row in scaling["weak"]] == [[False] * 2] * 4 + [[True] * 2]
first = scaling["strong"][0]
assert first["efficiency"] == 1 and first["step_s"] == scaling["weak"][0]["step_s"]
for row in scaling["weak"]:
    assert abs(row["efficiency"] * row["step_s"] / scaling["alone_s"] - 1) < 1e-6, row
    assert 0 < row["links_s"] < row["step_s"] and row["efficiency_wrapped"] >= row["efficiency"]
for row in scaling["strong"]:
    speed_up = first["step_s"] / row["step_s"]
    assert abs(row["efficiency"] * row["shards"] / 8 / speed_up - 1) < 1e-6, row
PYTHON
    check "what the JSON says agrees" [ $? = 0 ]
else
    skip 1 "python3: make deps-test"
fi

check "refuses an unknown model" fails_on 'did you mean mnist_cnn' mnist_cn
check "refuses an unknown profile" fails_with 'tpu:v3-8' --device tpu:v3-9
check "refuses a batch below the shards" fails_with 'a batch of 4 rows for 8 shards' --device tpu --batch-size 4
check "refuses more shards than a board without pods has" fails_with '8 shards, expected 1 to the 4 replicas of v4-8' --device tpu:v4-8 --shards 8 --batch-size 16
check "refuses a file that cannot be written" fails_with 'no/e.json: cannot be written' --json no/e.json
check "a topology needs a device that compiles for it" fails_with 'expected --device pjrt:tpu' --topology v3:2x2
check "so does one in a longer name" fails_with 'v3-8, which' --device tpu:v3-8 --topology v3:2x2
if [ -e "${TPU_LIBRARY_PATH:-}" ]; then   # libtpu compiles without a TPU
    export ALLOW_MULTIPLE_LIBTPU_LOAD=1
    explain mnist_cnn --device pjrt:tpu --topology v3:2x2 --batch-size 64
    check "libtpu compiles the step" [ $? = 0 ]
    check "XLA counts its FLOPs" says '^  FLOPs *[0-9.]* [MG]FLOP *[0-9.]* [MG]FLOP'
    check "XLA aliases the weights" says '^    of these into arguments *[1-9]'
    check "XLA fuses ops" says '^  fusions; kernels *[1-9][0-9]* *[1-9]'
    check "the table is narrow" eval '! sed 1d out | grep -qE "^.{81}"'
    check "a topology that does not exist" fails_with 'v3:9x9' --device pjrt:tpu --topology v3:9x9
fi

# The plugin for NVIDIA's GPUs compiles without one.
explain mnist_cnn --device pjrt:cuda --topology h100 --batch-size 64
if [ $? != 0 ] && grep -q 'no PJRT plugin' err; then
    skip 1 "pjrt for GPUs: pip install jax-cuda12-plugin"
else
    check "XLA compiles the step for a GPU" says '^pjrt: cuda, NVIDIA H100 SXM5 80GB .* compiles only'
    check "its memory is that of the plugin" says '^  temporaries *[1-9][0-9.]* [kMG]B  *-$'
    check "its FLOPs are counted here" says '^  FLOPs .* 9[0-9][0-9] MFLOP$'
    check "it aliases the weights" says '^    of these into arguments *[1-9]'
    check "the table has no third column" says 'XLA says   counted here$'
    check "it says what the plugin does not" says 'does not say how much work a step is'
    check "a GPU that is not known" fails_with 'expected "a10", "t4"' --device pjrt:cuda --topology h10
    check "a step that does not fit" fails_with 'out of memory: a program takes [1-9].* GB of a shard.s 17.18 GB' \
        --device pjrt:cuda --topology t4 --batch-size 200000
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
