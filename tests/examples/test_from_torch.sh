# What examples/python/from_torch.py makes of networks in PyTorch predicts what they predict; what it
# refuses. Needs torch in the interpreter that CORNU_PYTHON names (default python3), else it is
# skipped.
root=$(pwd)
. tests/checks.sh
python=${CORNU_PYTHON:-python3}
script=$root/examples/python/from_torch.py
if ! "$python" -c 'import torch, numpy' 2>/dev/null; then
    skip_all 1 "PyTorch: CORNU_PYTHON=an interpreter with torch"
fi
export PYTHONDONTWRITEBYTECODE=1

predicts() { # predicts NETWORK
    "$python" "$root/tests/examples/check_from_torch.py" "$script" "$programs/keras_model" . \
        "$1" >out 2>err && [ ! -s out ]
}
for network in mnist_cnn mnist_cnn_bn mnist_convnet fashion_mnist_cnn resnet20 resnet20--same \
               resnet18 resnet50 shakespeare_lstm shakespeare_gru char_gpt; do
    case $BUILD in *sanitize*) case $network in resnet18|resnet50) continue ;; esac ;; esac
    check "$network predicts what PyTorch predicts" predicts "$network"
done

# The files' weights fit the programs' networks.
loads() { # loads PROGRAM NETWORK
    "$programs/$1" --model "$2" --load "$2.safetensors" --data synthetic --limit 50 --epochs 1 \
        >out 2>err
}
check "mnist_cnn loads the weights" loads mnist_cnn mnist_cnn
check "fashion_mnist_cnn loads the weights" loads fashion_mnist_cnn fashion_mnist_cnn
check "resnet20 loads the weights" loads fashion_mnist_cnn resnet20

# Faults of a state_dict, and the same state_dict as .safetensors, in halves, behind a prefix.
cat >change.py <<'END'
import json, struct, sys, torch
state = torch.load("mnist_cnn.pt")
torch.save({k: v for k, v in state.items() if k != "conv2.bias"}, "missing.pt")
torch.save(state | {"more.weight": torch.zeros(2)}, "unknown.pt")
torch.save(state | {"fc1.weight": torch.zeros(64, 99), "fc2.bias": torch.zeros(9)}, "shape.pt")
torch.save({"state_dict": {"module." + k: v for k, v in state.items()}}, "wrapped.pt")
torch.save([1, 2], "list.pt")
header, data = {}, b""
for name, value in sorted(state.items()):
    bytes = value.numpy().astype("<f4").tobytes()
    header[name] = {"dtype": "F32", "shape": list(value.shape),
                    "data_offsets": [len(data), len(data) + len(bytes)]}
    data += bytes
text = json.dumps(header).encode()
open("state.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)
open("cut.safetensors", "wb").write((struct.pack("<Q", len(text)) + text + data)[:-4])
END
"$python" change.py || exit 1

refuses() { # refuses FILE PATTERN...
    local file=$1 pattern
    shift
    "$python" "$script" mnist_cnn "$file" no.safetensors >out 2>err && return 1
    [ ! -e no.safetensors ] && ! grep -q Traceback err || return 1
    for pattern; do grep -q "$pattern" err || return 1; done
}
check "a missing entry is named" refuses missing.pt \
    'conv2.bias is missing, expected with shape (64,)'
check "an unknown entry is named" refuses unknown.pt 'more.weight is unknown'
check "all entries of a wrong shape are named" refuses shape.pt \
    'fc1.weight has shape (64, 99), expected (64, 576)' 'fc2.bias has shape (9,), expected (10,)'
check "what is not a state_dict is refused" refuses list.pt 'expected a state_dict'
check "a truncated file is refused" refuses cut.safetensors 'truncated'
check "a file that is not there is refused" refuses none.pt 'No such file'
check "a string is refused" refuses change.py 'expected a state_dict'

same() { # same STATE: gives the bytes of mnist_cnn.pt
    "$python" "$script" mnist_cnn "$1" again.safetensors >out 2>err &&
        cmp again.safetensors mnist_cnn.safetensors 2>err
}
check "a state_dict in .safetensors gives the same model" same state.safetensors
check "a checkpoint of a wrapped module gives the same model" same wrapped.pt

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
