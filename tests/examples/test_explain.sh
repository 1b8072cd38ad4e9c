# build/explain: the page of every network on each kind of device, its JSON, its errors.
# tests/run: in check
. tests/checks.sh

explain() { timeout "${CORNU_TEST_TIMEOUT:-300}" "$programs/explain" "$@" >out 2>err </dev/null; }
says() { grep -q -- "$1" out; }
fails_with() { ! explain "${@:2}" && grep -q -- "$1" err && [ ! -e no ]; }
fits() { ! grep -qE '^.{121}' out; }
rows() { grep -cE '^ {0,2}[0-9]+ [ *=] ' out; }
steps() { sed -n 's/^compiled: .* ops to \([0-9]*\) steps.*/\1/p' out; }
unnamed() { grep -cE '^ {0,2}[0-9]+ [ *=]  ' out; }
collectives() { grep -cE '^ {0,2}[0-9]+ = ' out; }

models=$("$programs/explain" --help | tr -s '\n ' ' ' |
    sed -n 's/.*--model NAME network: \(.*\) (default mnist_cnn).*/\1/p' | tr -d ,)
check "the models are listed" [ "$(wc -w <<<"$models")" -ge 3 ]
batch=64
case $BUILD in *sanitize*) batch=8 ;; esac   # where a step of the LSTM takes minutes
for model in $models; do
    explain --model "$model" --device tpu:v3-8 --batch-size $batch --steps 1 --all
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
    explain --model mnist_cnn_bn --device $device --batch-size $batch --steps 1
    # except for the first line, which is as long as the processor's name
    check "the first page of $device is a screen" eval '[ "$(wc -l <out)" -le 24 ] && ! sed 1d out | grep -qE "^.{81}"'
    check "it says what a step does" says '^mnist_cnn_bn: a training step takes '
    check "it says where the time goes" says '^  part  *forward ms  *backward ms  *percent$'
    check "it says what rules" says '-bound here: '
    check "it says where the rest is" says '^--all shows every step'
done

explain --model shakespeare_lstm_quick --device tpu --batch-size 64 --steps 1 --all
check "a text's characters are told" says 'samples/s, [0-9]* characters/s$'
check "a recurrence has a product per time step" says '^ *[0-9]* \* lstm  *lstm  *100x8x256x1024  *1600 100 '
check "an epoch is as long as the text" says 'an epoch is 9939 samples in 156 steps'

explain --model mnist_convnet --device tpu --shards 16 --batch-size 16 --steps 1
check "more shards than a board's are modelled on a larger slice" says 'Modelled on a TPU v2-32: '

# Slices of pods: nothing is measured.
explain --model mnist_cnn --device tpu:v3-8 --batch-size 1024 --scaling 8,32,128,512,2048 \
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
explain --model mnist_cnn --device tpu:v2-512 --batch-size 64 --scaling 1,512
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

explain --device cpu --batch-size 32 --steps 2 --all --json cpu.json
check "cpu is native" says 'native, float32, 1 shard,'
check "cpu has a row per step" [ "$(rows)" = "$(steps)" ]
check "cpu has nothing modelled" eval '! says odelled'
check "cpu fits 120 columns" fits

explain --device tpu:v4-8 --shards 2 --threads 3 --policy float32 --batch-size 40 --steps 2 --all \
    --json tpu.json
check "the policy and the shards are heeded" says 'emulated, float32, 2 shards, 3 threads'
check "advice on passes" says 'Products of float32 take the MXU 6 passes'
check "advice on rows" says "A shard's 20 rows are padded to 24"
check "v4-8 has no 8 replicas" [ "$(grep -cE '^v4-8 +[1248] ' out)" = 4 ]
check "three passes by their name" eval 'explain --device tpu --policy float32 --precision high --batch-size 8 --steps 1 --all && says "take the MXU 3 passes"'
check "one pass has no such advice" eval 'explain --device tpu --policy float32 --precision default --batch-size 8 --steps 1 --all && ! says "take the MXU"'
explain --device reference --batch-size 2 --steps 1 --all
check "the reference device falls back, and says so" says '[1-9][0-9]* ops fell back to the reference kernels'

# How each op is computed: nothing runs.
placed() { grep -cE "^ *[0-9.]+  .* $1 " out; }
explain --device cpu --batch-size 32 --check --json check.json
check "the ops of a step are placed" says '^mnist_cnn, a training step of 32 samples: [0-9]* ops, of which [0-9]* native, [0-9]* decomposed, 0 by reference kernels, 0 refused$'
check "each has a row" [ "$(grep -cE '^ *[0-9]+  ' out)" = "$(sed -n 's/^mnist_cnn,.*: \([0-9]*\) ops.*/\1/p' out)" ]
check "the optimizer's are among them" says '^ *[0-9]*  adam_update  *[^ ]*  *f32 .* native  *loop adam_update  \['
check "a kernel is named with the step that joins it" says '  conv2d  *conv2d_1  *f32 .* native  *kernel conv2d  \[[0-9]* conv2d+max_pool2d+bias+relu\]$'
check "an op is decomposed into others" says '  dropout  *dropout .* decomposed random_uniform, '
check "and why" says '^  *no kernel$'
explain --model shakespeare_lstm_quick --device reference --batch-size 2 --check
check "on reference all are by reference" [ "$(placed native)" = 0 ]
check "which is said" says 'reference  reference kernel lstm  \[[0-9]* lstm\]$'
check "check needs a file that can be written" fails_with 'no/e.json: cannot be written' --check --json no/e.json
explain --device pjrt:cpu --batch-size 32 --check
if [ $? != 0 ] && grep -q 'no PJRT plugin' err; then
    skip 1 "pjrt: make deps-pjrt"
else
    check "XLA's ops are named" says '  matmul  *dense_1  .* native  *[a-z_, ]*dot_general'
    check "an op that XLA lacks is decomposed" says '  dropout  *dropout .* decomposed random_uniform, '
    check "which is why" says '^  *XLA has no such op$'
fi

if command -v python3 >/dev/null; then
    python3 - >out 2>err <<'PYTHON'
import json
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

check "refuses an unknown model" fails_with 'did you mean mnist_cnn' --model mnist_cn
check "refuses an unknown profile" fails_with 'tpu:v3-8' --device tpu:v3-9
check "refuses a batch below the shards" fails_with 'a batch of 4 rows for 8 shards' --device tpu --batch-size 4
check "refuses more shards than a board without pods has" fails_with '8 shards, expected 1 to the 4 replicas of v4-8' --device tpu:v4-8 --shards 8 --batch-size 16
check "refuses a file that cannot be written" fails_with 'no/e.json: cannot be written' --json no/e.json
check "a topology needs a device that compiles for it" fails_with 'expected --device pjrt:tpu' --topology v3:2x2
check "so does one in a longer name" fails_with 'v3-8, which' --device tpu:v3-8 --topology v3:2x2
if [ -e "${TPU_LIBRARY_PATH:-}" ]; then   # libtpu compiles without a TPU
    export ALLOW_MULTIPLE_LIBTPU_LOAD=1
    explain --device pjrt:tpu --topology v3:2x2 --model mnist_cnn --batch-size 64
    check "libtpu compiles the step" [ $? = 0 ]
    check "XLA counts its FLOPs" says '^  FLOPs *[0-9.]* [MG]FLOP *[0-9.]* [MG]FLOP'
    check "XLA aliases the weights" says '^    of these into arguments *[1-9]'
    check "XLA fuses ops" says '^  fusions; kernels *[1-9][0-9]* *[1-9]'
    check "the table is narrow" eval '! sed 1d out | grep -qE "^.{81}"'
    check "a topology that does not exist" fails_with 'v3:9x9' --device pjrt:tpu --topology v3:9x9
fi

# The plugin for NVIDIA's GPUs compiles without one.
explain --device pjrt:cuda --topology h100 --model mnist_cnn --batch-size 64
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
        --device pjrt:cuda --topology t4 --model mnist_cnn --batch-size 200000
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
