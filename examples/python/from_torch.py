#!/usr/bin/env python3
"""Makes a Cornu model of what PyTorch trained.

    from_torch.py NETWORK STATE.pt MODEL.safetensors [--same]
    from_torch.py NETWORK --entries

STATE.pt holds a state_dict of torch.save (which needs PyTorch to be read), STATE.safetensors one
that the safetensors package wrote. NETWORK is one of models/models.h, shakespeare_gru (the same
with GRUs), or torchvision's resnet18, resnet34, resnet50, resnet101, resnet152. --entries prints
what the state_dict must contain; the modules of an nn.Sequential may have its numbers instead, in
that order. Entries that are missing, unknown or of a wrong shape are named, and nothing is written.
"""

import argparse
import json
import os
import re
import struct
import sys

import numpy as np

from torch_networks import NETWORKS, build

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8"}


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    try:
        (length,) = struct.unpack_from("<Q", data)
        header = json.loads(data[8 : 8 + length])
    except (ValueError, struct.error) as error:
        sys.exit(f"{path}: not a .safetensors file: {error}")
    header.pop("__metadata__", None)
    state = {}
    for name, entry in header.items():
        if entry["dtype"] not in DTYPES:
            sys.exit(f"{path}: {name} is {entry['dtype']}, expected {', '.join(DTYPES)}")
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        if end > len(data):
            sys.exit(f"{path}: truncated, {name} ends after {end} bytes of {len(data)}")
        array = np.frombuffer(data[begin:end], DTYPES[entry["dtype"]]).reshape(entry["shape"])
        if entry["dtype"] == "BF16":       # the upper half of an f32
            array = (array.astype("<u4") << 16).view("<f4")
        state[name] = array.astype(np.float32)
    return state


def read_pt(path):
    import torch

    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:             # of many classes, after the kind of damage
        sys.exit(f"{path}: expected a state_dict of torch.save: {str(error).splitlines()[0]}")
    for key in ("state_dict", "model"):
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
    if not isinstance(state, dict):
        sys.exit(f"{path}: expected a state_dict, is a {type(state).__name__}")
    for name, value in state.items():
        if not isinstance(value, torch.Tensor):
            sys.exit(f"{path}: {name} is not a tensor, expected a state_dict")
    return {name: value.detach().float().numpy() for name, value in state.items()}


def read_state(path):
    """Arrays in f32 by name, without the prefix that wrappers give to all of them."""
    try:
        state = read_safetensors(path) if path.endswith(".safetensors") else read_pt(path)
    except OSError as error:
        sys.exit(str(error))
    for prefix in ("module.", "_orig_mod."):
        if state and all(name.startswith(prefix) for name in state):
            state = {name[len(prefix):]: value for name, value in state.items()}
    return state


def named(state, expected):
    """The state with the expected modules' names, if its modules have numbers alone."""
    numbers = {re.match(r"(.*\.)?(\d+)\.\w+$", name) for name in state}
    if None in numbers or len({match[1] for match in numbers}) != 1:
        return state
    modules = list(dict.fromkeys(entry.rsplit(".", 1)[0] for entry in expected))
    given = sorted({int(match[2]) for match in numbers})
    if len(given) != len(modules):
        return state
    names = dict(zip(given, modules))
    return {f"{names[int(name.split('.')[-2])]}.{name.split('.')[-1]}": value
            for name, value in state.items()}


def write(path, network):
    """The file appears whole or not at all."""
    config = {"name": network.name, "layers": network.layers,
              "input_layers": [network.layers[0]["name"], 0, 0],
              "output_layers": [network.last, 0, 0]}
    header = {"__metadata__": {
        "architecture": json.dumps({"class_name": "Functional", "config": config,
                                    "module": "keras.src.models.functional",
                                    "registered_name": "Functional"}),
        "input": json.dumps({"scale": network.scale}), "optimizer": "[]",
        "weights": json.dumps(list(network.weights))}}
    offset = 0
    for name, array in network.weights.items():
        header[name] = {"dtype": "F32", "shape": array.shape,
                        "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".part", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in network.weights.values():
            file.write(array.tobytes())
    os.replace(path + ".part", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", choices=NETWORKS, metavar="NETWORK", help=", ".join(NETWORKS))
    parser.add_argument("state", nargs="?", metavar="STATE", help="a .pt or .safetensors file")
    parser.add_argument("output", nargs="?", metavar="MODEL", help="the .safetensors to write")
    parser.add_argument("--same", action="store_true",
                        help="resnet20: strided convolutions were padded as in Keras")
    parser.add_argument("--entries", action="store_true", help="print what STATE must contain")
    arguments = parser.parse_args()
    expected = build(arguments.network, {}, arguments.same).taken
    if arguments.entries:
        print("\n".join(f"{entry} {shape}" for entry, shape in expected.items()))
        return
    if not arguments.output or not arguments.output.endswith(".safetensors"):
        parser.error("expected STATE and MODEL.safetensors")
    if arguments.same and arguments.network != "resnet20":
        parser.error("--same is for resnet20")
    network = build(arguments.network, named(read_state(arguments.state), expected),
                    arguments.same)
    problems = network.problems + [f"{entry} is unknown" for entry in network.state
                                   if entry not in network.taken]
    if problems:
        sys.exit("\n".join(f"{arguments.state}: {problem}" for problem in problems))
    write(arguments.output, network)
    print(f"{arguments.output}: {network.name}, {sum(w.size for w in network.weights.values()):,} "
          "parameters; the output is the softmax of PyTorch's", file=sys.stderr)
    for note in network.notes:
        print(f"note: {note}", file=sys.stderr)


if __name__ == "__main__":
    main()
