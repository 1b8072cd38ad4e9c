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

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8"}


class Network:
    """A model in Keras' JSON, made layer by layer of the entries of a state_dict."""

    def __init__(self, name, state, same):
        self.name, self.state, self.same = name, dict(state), same
        self.layers, self.weights, self.taken, self.problems, self.notes = [], {}, {}, [], []
        self.last = self.output_of = None
        self.scale = 1.0

    def add(self, class_name, weights=(), inputs=None, kwargs=None, path="", **config):
        """Adds a layer after `inputs`, by default the last one; returns its name."""
        snake = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=2D)(?=[A-Z])", "_", class_name).lower()
        count = sum(layer["class_name"] == class_name for layer in self.layers)
        name = snake + (f"_{count}" if count else "")
        inputs = inputs or ([self.last] if self.last else [])
        tensors = [{"class_name": "__keras_tensor__", "config": {"keras_history": [i, 0, 0]}}
                   for i in inputs]
        kwargs = {key: tensors[0] if value == "input" else value
                  for key, value in (kwargs or {}).items()}
        nodes = [{"args": tensors if len(inputs) == 1 else [tensors], "kwargs": kwargs}]
        self.layers.append({"class_name": class_name, "module": "keras.layers", "name": name,
                            "registered_name": None, "config": {"name": name, **config},
                            "inbound_nodes": nodes if inputs else []})
        for key, value in weights:
            self.weights[f"{name}/{path}{key}"] = np.ascontiguousarray(value, "<f4")
        self.last = name
        return name

    def input(self, *shape, scale=1.0):
        self.scale = scale
        self.add("InputLayer", batch_shape=[None, *shape], dtype="float32")

    def has(self, entry):
        return entry in self.state

    def shape(self, entry, default):
        return self.state[entry].shape if len(self.state.get(entry, np.zeros(())).shape) == len(
            default) else default

    def take(self, entry, *shape, optional=False):
        """The entry's array; zeros, and a problem noted, if it is not as expected."""
        self.taken[entry] = shape
        if entry in self.state and self.state[entry].shape == shape:
            return self.state[entry]
        if entry in self.state:
            self.problems.append(f"{entry} has shape {self.state[entry].shape}, expected {shape}")
        elif not optional:
            self.problems.append(f"{entry} is missing, expected with shape {shape}")
        return np.zeros(shape, np.float32)

    def conv(self, entry, channels, filters, kernel, stride=1, padding="valid", bias=True, **rest):
        """OIHW to HWIO. `padding` is Keras' or the number of PyTorch, of zeros on each side."""
        if isinstance(padding, int):
            if padding:
                self.add("ZeroPadding2D", padding=[[padding] * 2] * 2)
            padding = "valid"
        weights = [("kernel", self.take(entry + ".weight", filters, channels, kernel, kernel)
                    .transpose(2, 3, 1, 0))]
        if bias:
            weights.append(("bias", self.take(entry + ".bias", filters, optional=bias == "may")))
        return self.add("Conv2D", weights, filters=filters, kernel_size=[kernel] * 2,
                        strides=[stride] * 2, padding=padding, use_bias=bool(bias), **rest)

    def norm(self, entry, channels, scale=True):
        """Batch normalization with PyTorch's epsilon and momentum; scale "may": 1 is left out."""
        gamma = self.take(entry + ".weight", channels)
        scale = bool(scale is True or np.any(gamma != 1.0))
        weights = [("gamma", gamma)] if scale else []
        for key, name in (("beta", ".bias"), ("moving_mean", ".running_mean"),
                          ("moving_variance", ".running_var")):
            weights.append((key, self.take(entry + name, channels)))
        self.state.pop(entry + ".num_batches_tracked", None)
        return self.add("BatchNormalization", weights, epsilon=1e-5, momentum=0.9, scale=scale)

    def dense(self, entry, features, units, activation="linear", flat=None, bias=True, **rest):
        """(out, in) to (in, out); the rows after a flatten of (C, H, W) in the order of H, W, C."""
        kernel = self.take(entry + ".weight", units, features)
        if flat:
            kernel = kernel.reshape(units, *flat).transpose(0, 2, 3, 1).reshape(units, features)
        weights = [("kernel", kernel.T)]
        if bias:
            weights.append(("bias", self.take(entry + ".bias", units, optional=bias == "may")))
        return self.add("Dense", weights, units=units, activation=activation, use_bias=bool(bias),
                        **rest)

    def relu(self):
        return self.add("Activation", activation="relu")


def mnist_cnn(n):
    n.input(28, 28, 1, scale=1 / 255)
    n.conv("conv1", 1, 32, 3, activation="relu")
    n.add("MaxPooling2D", pool_size=[2, 2])
    n.conv("conv2", 32, 64, 3, activation="relu")
    n.add("MaxPooling2D", pool_size=[2, 2])
    n.conv("conv3", 64, 64, 3, activation="relu")
    n.add("Flatten")
    n.dense("fc1", 576, 64, "relu", flat=(64, 3, 3))
    n.add("Dropout", rate=0.5)
    n.dense("fc2", 64, 10, "softmax")


def mnist_cnn_bn(n):
    n.input(784, scale=1 / 256)
    n.add("Reshape", target_shape=[28, 28, 1])
    channels = 1
    for i, (filters, kernel, stride) in enumerate(((12, 3, 1), (24, 6, 2), (32, 6, 2)), 1):
        n.conv(f"conv{i}", channels, filters, kernel, stride, "same", bias=False)
        n.norm(f"bn{i}", filters, scale="may")
        n.relu()
        channels = filters
    n.add("Flatten")
    n.dense("fc1", 1568, 200, flat=(32, 7, 7), bias=False)
    n.norm("bn4", 200, scale="may")
    n.relu()
    n.add("Dropout", rate=0.4)
    n.dense("fc2", 200, 10, "softmax")
    n.notes.append("PyTorch's padding=2 of a 6x6 kernel with stride 2 is \"same\" here")
    if any(name.endswith("gamma") for name in n.weights):
        n.notes.append("the normalizations keep their scales, which the published network lacks: "
                       "--load of its programs refuses the file")


def mnist_convnet(n):
    n.input(28, 28, 1, scale=1 / 255)
    n.conv("conv1", 1, 32, 3, activation="relu")
    n.add("MaxPooling2D", pool_size=[2, 2])
    n.conv("conv2", 32, 64, 3, activation="relu")
    n.add("MaxPooling2D", pool_size=[2, 2])
    n.add("Flatten")
    n.add("Dropout", rate=0.5)
    n.dense("fc", 1600, 10, "softmax", flat=(64, 5, 5))


def fashion_mnist_cnn(n):
    n.input(28, 28, 1)
    for i, (channels, filters) in enumerate(((1, 64), (64, 128), (128, 256)), 1):
        n.norm(f"bn{i}", channels)
        n.conv(f"conv{i}", channels, filters, 5, padding="same", activation="elu")
        n.add("MaxPooling2D", pool_size=[2, 2])
        n.add("Dropout", rate=0.25)
    n.add("Flatten")
    n.dense("fc1", 2304, 256, "elu", flat=(256, 3, 3))
    n.add("Dropout", rate=0.5)
    n.dense("fc2", 256, 10, "softmax")
    n.notes.append("PyTorch's padding=2 of a 5x5 kernel is \"same\" here; pixels are not scaled")


def residual(n, entry, channels, filters, stride, bias, expansion):
    """A block of two convolutions, or of three with the stride in the second (torchvision's)."""
    pad = "same" if n.same or stride == 1 else 1
    x, out = n.last, filters * expansion
    plan = [(filters, 3, stride, pad), (out, 3, 1, "same")]
    if expansion > 1:
        plan = [(filters, 1, 1, 0), (filters, 3, stride, pad), (out, 1, 1, 0)]
    before = channels
    for i, (count, kernel, step, padding) in enumerate(plan, 1):
        if i == len(plan) and (stride > 1 or channels != out):
            # Keras lists weights by depth: the shortcut's stand beside those of the last two.
            y, n.last, first = n.last, x, f"{entry}.downsample"
            if n.has(first + ".1.weight") or n.name != "resnet20":
                x = n.conv(first + ".0", channels, out, 1, stride, bias=False)
                n.last = y
                y = n.conv(f"{entry}.conv{i}", before, count, kernel, step, padding, bias)
                n.last = x
                x = n.norm(first + ".1", out)
            else:
                n.last = y
                y = n.conv(f"{entry}.conv{i}", before, count, kernel, step, padding, bias)
                n.last = x
                x = n.conv(first + ".0", channels, out, 1, stride, bias=bias)
            n.last = y
        else:
            n.conv(f"{entry}.conv{i}", before, count, kernel, step, padding, bias)
        y = n.norm(f"{entry}.bn{i}", count)
        if i < len(plan):
            n.relu()
        before = count
    n.add("Add", inputs=[x, y])
    n.relu()
    return out


def resnet20(n):
    n.input(28, 28, 1, scale=1 / 255)
    n.conv("conv1", 1, 16, 3, padding="same", bias="may")
    n.norm("bn1", 16)
    n.relu()
    channels = 16
    for stage, filters in enumerate((16, 32, 64), 1):
        for i in range(3):
            stride = 2 if stage > 1 and i == 0 else 1
            channels = residual(n, f"layer{stage}.{i}", channels, filters, stride, "may", 1)
    n.add("GlobalAveragePooling2D")
    n.dense("fc", 64, 10, "softmax")
    n.notes.append("strided 3x3 convolutions pad as Keras, by 0 before and 1 after" if n.same else
                   "strided 3x3 convolutions pad 1 on each side, as PyTorch's padding=1; Keras "
                   "would pad 0 before and 1 after: --same for a network that did so")


def torchvision(n, blocks, expansion):
    """The stride of a bottleneck is in its 3x3 convolution; in keras.applications' ResNet50 it is
    in the first 1x1, so that the weights would fit there but not compute the same."""
    n.input(224, 224, 3, scale=1 / 255)
    n.conv("conv1", 3, 64, 7, 2, 3, bias=False)
    n.norm("bn1", 64)
    n.relu()
    n.add("ZeroPadding2D", padding=[[1, 1], [1, 1]])     # as with -inf, after a relu
    n.add("MaxPooling2D", pool_size=[3, 3], strides=[2, 2])
    channels = 64
    for stage, count in enumerate(blocks, 1):
        for i in range(count):
            channels = residual(n, f"layer{stage}.{i}", channels, 32 << stage,
                                2 if stage > 1 and i == 0 else 1, False, expansion)
    n.add("GlobalAveragePooling2D")
    n.dense("fc", channels, n.shape("fc.weight", (1000, channels))[0], "softmax")
    n.notes.append("images are expected as in training, (pixels / 255 - mean) / std; padding is "
                   "PyTorch's, on both sides")


def recurrent(n, kind):
    """Sizes are those of the state_dict. PyTorch's gates: LSTM i f g o, as Keras' i f c o; GRU
    r z n, Keras' z r h. Of two biases the LSTM has the sum, the GRU both (reset_after)."""
    vocabulary, channels = n.shape("embedding.weight", (256, 64))
    n.input(100)
    n.add("Embedding", [("embeddings", n.take("embedding.weight", vocabulary, channels))],
          input_dim=vocabulary, output_dim=channels)
    units = n.shape(f"{kind}.weight_hh_l0", (0, 256))[1]
    layers = max(1, sum(entry.startswith(f"{kind}.weight_hh_l") for entry in n.state))
    gates = 4 if kind == "lstm" else 3
    order = [0, 1, 2, 3] if kind == "lstm" else [1, 0, 2]

    def part(entry, *shape):
        array = n.take(f"{kind}.{entry}", gates * units, *shape).reshape(gates, units, *shape)
        return array[order].reshape(gates * units, *shape)

    for i in range(layers):
        kernel, recurrent_kernel = part(f"weight_ih_l{i}", channels), part(f"weight_hh_l{i}", units)
        biases = np.stack([part(f"bias_ih_l{i}"), part(f"bias_hh_l{i}")])
        rest = {} if kind == "lstm" else {"reset_after": True}
        n.add(kind.upper(), [("kernel", kernel.T), ("recurrent_kernel", recurrent_kernel.T),
                             ("bias", biases.sum(axis=0) if kind == "lstm" else biases)],
              path=f"{kind}_cell/", units=units, return_sequences=True, **rest)
        channels = units
    n.dense("fc", units, vocabulary, "softmax")
    n.notes.append("the gates are PyTorch's sigmoids" + (
        "; the published network has hard ones" if n.name == "shakespeare_lstm" else ""))


NETWORKS = {
    "mnist_cnn": mnist_cnn, "mnist_cnn_bn": mnist_cnn_bn, "mnist_convnet": mnist_convnet,
    "fashion_mnist_cnn": fashion_mnist_cnn, "resnet20": resnet20,
    "shakespeare_lstm": lambda n: recurrent(n, "lstm"),
    "shakespeare_lstm_quick": lambda n: recurrent(n, "lstm"),
    "shakespeare_gru": lambda n: recurrent(n, "gru"),
    "resnet18": lambda n: torchvision(n, (2, 2, 2, 2), 1),
    "resnet34": lambda n: torchvision(n, (3, 4, 6, 3), 1),
    "resnet50": lambda n: torchvision(n, (3, 4, 6, 3), 4),
    "resnet101": lambda n: torchvision(n, (3, 4, 23, 3), 4),
    "resnet152": lambda n: torchvision(n, (3, 8, 36, 3), 4),
}


def read_state(path):
    """Arrays by name, floats as f32, without the prefix that wrappers give to all of them."""
    if path.endswith(".safetensors"):
        with open(path, "rb") as file:
            header = json.loads(file.read(*struct.unpack("<Q", file.read(8))))
            data = file.read()
        header.pop("__metadata__", None)
        state = {}
        for name, entry in header.items():
            if entry["dtype"] not in DTYPES:
                sys.exit(f"{path}: {name} is {entry['dtype']}, expected {', '.join(DTYPES)}")
            begin, end = entry["data_offsets"]
            array = np.frombuffer(data[begin:end], DTYPES[entry["dtype"]]).reshape(entry["shape"])
            if entry["dtype"] == "BF16":
                array = (array.astype("<u4") << 16).view("<f4")
            state[name] = array.astype(np.float32)
    else:
        import torch
        state = torch.load(path, map_location="cpu", weights_only=True)
        for key in ("state_dict", "model"):
            state = state[key] if isinstance(state.get(key), dict) else state
        wrong = [name for name, value in state.items() if not isinstance(value, torch.Tensor)]
        if wrong:
            sys.exit(f"{path}: {wrong[0]} is not a tensor: expected a state_dict")
        state = {name: value.detach().float().numpy() for name, value in state.items()}
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


def build(name, state, same):
    network = Network(name, state, same)
    NETWORKS[name](network)
    return network


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
