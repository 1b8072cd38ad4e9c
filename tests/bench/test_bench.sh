# build/bench: its limits, a tiny step, its JSON and its errors; not how good its figures are.
# tests/run: in check
. tests/checks.sh

bench() { timeout "${CORNU_TEST_TIMEOUT:-300}" "$programs/bench" "$@" >out 2>err </dev/null; }
refuses() { bench "${@:2}"; [ $? = 2 ] && grep -q -- "$1" err; }

CORNU_ISA=portable bench --filter limits --seconds 0.01 --json limits.json
check "limits, of portable kernels" [ $? = 0 ]
bench --filter steps,latency,overhead --models mnist_convnet,mnist_cnn_bn --batches 8 \
    --seconds 0.001 --json steps.json
check "steps, latency and overhead" [ $? = 0 ]
bench --filter int8 --models mnist_convnet --seconds 0.001 --json int8.json
check "models of 8 bits" [ $? = 0 ]
bench --filter images --seconds 0.001 --json images.json
check "folders of JPEG files" [ $? = 0 ]
bench --filter layouts --models mlp --seconds 0.01 --json layouts.json
check "layouts over two processes" [ $? = 0 ]

if command -v python3 >/dev/null; then
    python3 - >out 2>err <<'PYTHON'
import json
limits = json.load(open("limits.json"))
assert list(limits) == ["machine", "limits"], list(limits)
assert limits["machine"]["isa"] == "portable" and not limits["limits"]["bf16_instructions"]
rates = ("fp32", "bf16", "l1_read", "l2_read", "dram_read", "dram_copy")
for row in [limits["limits"]] + limits["limits"]["by_threads"]:
    assert all(row[name] > 0 for name in rates), row
page = json.load(open("steps.json"))
models = ("mnist_cnn_bn", "mnist_convnet")
assert [(r["model"], r["device"], r["shards"]) for r in page["steps"]] == [
    (m, *d) for m in models for d in (("cpu", 1), ("tpu", 8))]
# Multiply-adds of the products for one image. For mnist_cnn_bn without products of padding: along
# an axis 82 of 3 * 28 are inside, 80 of 6 * 14, 38 of 6 * 7. The first layer has no input gradient.
macs = {"mnist_cnn_bn": 2 * 82**2 * 12 + 3 * (80**2 * 12 * 24 + 38**2 * 24 * 32) + 3 * 315600,
        "mnist_convnet": 2 * 26**2 * 9 * 32 + 3 * (10**2 * 9 * 32 * 64 + 16000)}
for row in page["steps"]:
    assert row["batch"] == 8
    least = 1e-9 * 2 * 8 * macs[row["model"]]
    assert least < row["gflop_needed"] < 1.06 * least, (row, least)
    assert 0 < row["ms_low"] <= row["ms"] <= row["ms_high"]
    assert row["percent"] > 0 and row["fallbacks"] == 0 and row["allocations"] in (0, None), row
    assert row["classes"]["convolution"]["ms"] > 0 and row["classes"]["convolution"]["mb"] > 0
calls = [(r["model"], r["device"], r["call"], r["batch"]) for r in page["latency"]]
assert len(set(calls)) == 16 and {call[-1] for call in calls} == {1, 1024}, calls
for row in page["latency"]:
    assert 0 < row["ms"] <= row["ms_p95"] <= row["ms_p99"], row
assert [(r["device"], r["what"]) for r in page["overhead"]] == [
    (d, w) for d in ("cpu", "tpu") for w in ("run", "step")]
assert all(0 < r["us_low"] <= r["us"] and "bare_us" not in r for r in page["overhead"])
rows = json.load(open("int8.json"))["int8"]
assert [(r["batch"], r["threads"]) for r in rows] == [(1, 1), (1, 2), (256, 1), (256, 2)], rows
assert all(r["ms"] > 0 and r["float_ms"] > 0 and r["cpu_ms"] > 0 for r in rows), rows
rows = json.load(open("images.json"))["images"]
assert [(r["height"], r["threads"]) for r in rows] == [(224, 1), (224, 2), (375, 1), (375, 2)], rows
assert all(r["images_per_s"] > 0 and r["stb_images_per_s"] > 0 for r in rows), rows
page = json.load(open("layouts.json"))
assert all(figure > 0 for figure in page["layouts_here"].values()), page["layouts_here"]
assert [(r["model"], r["layout"]) for r in page["layouts"]] == [
    ("mlp", l) for l in ("data", "fully", "turns", "columns", "rows")]
# Halves of all weights: as much to multiply as with half of the rows, but no gradients to sum.
data, fully, turns = page["layouts"][:3]
assert abs(turns["products_ms"] / data["products_ms"] - 1) < 0.02
assert turns["links_ms"] < data["links_ms"] < fully["links_ms"], page["layouts"]
assert all(r["ms"] > 0 and r["modelled_ms"] > 0 for r in page["layouts"])
PYTHON
    check "what the JSON says" [ $? = 0 ]
else
    skip 1 "python3: make deps-test"
fi

# A plugin's device, if one is installed.
device=pjrt:cpu
[[ ${CORNU_PJRT:-} == *.so ]] && device=pjrt:$CORNU_PJRT
bench --filter steps,overhead --models mnist_convnet --batches 8 --seconds 0.001 \
    --devices "cpu,$device" --json plugin.json
if [ $? = 1 ] && grep -q 'no PJRT plugin' err || ! command -v python3 >/dev/null; then
    skip 1 "pjrt and python3: make deps-pjrt deps-test"
else
    python3 - >out 2>err <<'PYTHON'
import json
page = json.load(open("plugin.json"))
cpu, plugin = page["steps"]
assert cpu["device"] == "cpu" and plugin["device"].startswith("pjrt:")
assert abs(cpu["gflop_needed"] / plugin["gflop_needed"] - 1) < 0.01 and plugin["cpu_ms"] > 0
assert plugin["allocations"] in (0, None) and cpu["allocations"] in (0, None), page["steps"]
assert cpu["classes"] and not plugin["classes"]
rows = [row for row in page["overhead"] if row["device"] != "cpu"]
assert [row["what"] for row in rows] == ["run", "step"]
assert all(row["bare_us"] > 0 and abs(row["us"] - row["bare_us"] - row["overhead_us"])
           < 1e-3 * row["us"] for row in rows), rows
PYTHON
    check "steps and overhead of a plugin" [ $? = 0 ]
fi

check "refuses an unknown group" refuses 'expected a list of limits, threads' --filter step
check "refuses an unknown network" refuses 'expected a list of mnist_cnn,' --models mnist_cnn,lenet
check "refuses an unknown device" refuses 'expected a list of cpu, tpu, and pjrt:NAME' --devices gpu
check "refuses too many devices" refuses 'at most four' --devices cpu,tpu,cpu,tpu,cpu
check "refuses an unknown instruction set" refuses 'expected a list of portable' --isas sse9
check "refuses batches of nothing" refuses 'whole numbers from 1' --batches 128,0
check "refuses no time" refuses 'a number from' --seconds 0
check "refuses an unknown flag" refuses 'did you mean --batches' --batchs 3

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
