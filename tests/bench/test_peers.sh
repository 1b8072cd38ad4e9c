# tests/bench/peers: compare_files on two files beside whoever reads them, and its errors;
# compare_generation beside whoever is installed.
# tests/run: in check
source=$PWD
. tests/python/find_python.sh
. tests/checks.sh

find_python "numpy, onnx, onnxruntime"
if [ -z "$python" ]; then
    skip_all 6 "ONNX Runtime: PYTHON=/path/to/python with numpy, onnx and onnxruntime"
fi
export PYTHONPATH=$source/nn/python CORNU_LIBRARY=$programs/libcornu.so
compare() {
    timeout "${CORNU_TEST_TIMEOUT:-300}" "$source/tests/bench/peers/compare_files" \
        --python "$python" --rounds 1 --seconds 0.01 "$@" >out 2>err </dev/null
}

compare "$source/tests/golden/onnx_read/keras_cnn.onnx" --batches 1,3 --memory --json rows.json
check "an .onnx file" [ $? = 0 ]
"$python" - >out 2>err <<'PYTHON'
import json
rows = json.load(open("rows.json"))
assert [(row["batch"], row["threads"]) for row in rows] == [(1, 1), (3, 1)], rows
for row in rows:
    ours, theirs = row["sides"]["cornu"], row["sides"]["onnxruntime"]
    assert ours["ms"] > 0 and theirs["ms"] > 0 and theirs["differs"] < 1e-5, row
    assert ours["peak_mib"] >= 0 and "reads no such file" in row["sides"]["litert"]["error"], row
PYTHON
check "times, memory, and that both compute the same" [ $? = 0 ]
compare "$source/tests/golden/onnx_read/keras_cnn.onnx"
check "the last line counts rows" grep -q '^1 rows beside the faster peer: median' out
compare nowhere.onnx
check "refuses a file that is not there" grep -q 'compare_files: nowhere.onnx' err
printf 'no model' >broken.onnx
compare broken.onnx
check "refuses one that is no model" grep -q 'compare_files: broken.onnx' err
"$python" "$source/tests/bench/peers/compare_generation" --sizes char_gpt --batches 2 --rounds 1 \
    >out 2>err
check "tokens one by one, and that all predict the same" \
    grep -qE '^char_gpt +2 sequences, ms a token: cornu [0-9.]+' out

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
