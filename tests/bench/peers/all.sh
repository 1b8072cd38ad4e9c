#!/bin/bash
# Cornu beside PyTorch, JAX, ONNX Runtime, LiteRT, OpenVINO and llama.cpp, one comparison after the
# other; their results also as JSON in BUILD/peers/. The others are installed where PEERS says, by
# default in the user's cache.
#
#     tests/bench/peers/all.sh BENCH BUILD [CASES]
#
# Files of your own: FILES='a.onnx b.tflite' in the environment, which compare_files reads.
#
# CASES is NETWORK:BATCH,... for training steps; by default all that have a target. An hour or more
# on two cores that have nothing else to do.
set -e
bench=$1 build=$2 cases=$3
here=${0%/*}
folder=${PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/cornu/peers}
python=$folder/bin/python

if ! "$python" -c 'import torch, jax, onnx, onnxruntime, openvino, ai_edge_litert' 2>/dev/null; then
    echo "installing PyTorch, JAX, ONNX Runtime, LiteRT and OpenVINO into $folder"
    python3 -m venv "$folder" || {
        echo "bench-peers: needs python3 with venv; on Debian apt-get install python3-venv" >&2
        exit 1
    }
    # PyTorch's own index has packages without a GPU's libraries, which are a tenth of the size.
    "$python" -m pip install -q --retries 0 torch --index-url https://download.pytorch.org/whl/cpu \
        || "$python" -m pip install -q torch
    "$python" -m pip install -q numpy jax onnx onnxruntime ai-edge-litert openvino
    "$python" -m pip install -q gguf xllamacpp || echo "llama.cpp left out: no package of it here"
fi
"$python" -c 'import torch, jax, onnxruntime
print("PyTorch", torch.__version__, " JAX", jax.__version__, " ONNX Runtime",
      onnxruntime.__version__)'

mkdir -p "$build/peers"
export CORNU_LIBRARY=${CORNU_LIBRARY:-$(realpath "$build/libcornu.so")}
export PYTHONPATH=$here/../../../nn/python
echo "training steps beside PyTorch"
"$here/compare" --bench "$bench" --python "$python" ${cases:+--cases "$cases"} \
    --json "$build/peers/steps.json"
plugin=$(find "${XDG_CACHE_HOME:-$HOME/.cache}/cornu/pjrt" -name '*.so' 2>/dev/null | sort | head -1)
if [ -n "$plugin" ]; then
    echo "training steps beside JAX, both by $plugin"
    "$here/compare" --bench "$bench" --jax "$python" --plugin "$plugin" --json "$build/peers/jax.json"
else
    echo "JAX left out: no PJRT plugin for both to run on; make deps-pjrt downloads one"
fi
echo "tables with a sparse gradient beside PyTorch"
"$here/compare_embedding" --bench "$bench" --python "$python" --json "$build/peers/embedding.json"
echo "predictions beside ONNX Runtime"
"$here/compare_onnxruntime" --bench "$bench" --python "$python"
echo "models of 8 bits beside LiteRT and OpenVINO"
"$here/compare_int8" --bench "$bench" --litert "$python" --openvino "$python"
echo "generation beside PyTorch and llama.cpp"
"$python" "$here/compare_generation" --json "$build/peers/generation.json"
if [ -n "$FILES" ]; then
    echo "your files beside ONNX Runtime, LiteRT and OpenVINO"
    # shellcheck disable=SC2086   # FILES is a list
    "$here/compare_files" --python "$python" --memory \
        --json "$build/peers/files.json" $FILES
fi
