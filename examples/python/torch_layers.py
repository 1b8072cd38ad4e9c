"""Layers in Keras' JSON and their weights in Keras' layouts, made of the entries of a state_dict of
PyTorch; for from_torch.py."""

import re

import numpy as np


class Network:
    """A model in Keras' JSON, made layer by layer of the entries of a state_dict."""

    def __init__(self, name, state, same):
        self.name, self.state, self.same = name, dict(state), same
        self.layers, self.weights, self.taken, self.problems, self.notes = [], {}, {}, [], []
        self.last = None
        self.scale = 1.0

    def add(self, class_name, weights=(), inputs=None, kwargs=None, path="", **config):
        """Adds a layer after `inputs`, by default the last one; returns its name."""
        snake = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=2D)(?=[A-Z])", "_", class_name).lower()
        count = sum(layer["class_name"] == class_name for layer in self.layers)
        name = snake + (f"_{count}" if count else "")
        inputs = inputs or ([self.last] if self.last else [])
        # Keras wants a shape, but takes that of the output which keras_history names.
        tensors = [{"class_name": "__keras_tensor__",
                    "config": {"shape": [None], "dtype": "float32", "keras_history": [i, 0, 0]}}
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

    def shape(self, entry, default):
        """The entry's, if it has the rank of the default one."""
        shape = self.state[entry].shape if entry in self.state else default
        return shape if len(shape) == len(default) else default

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

    def layer_norm(self, entry, channels):
        weights = [("gamma", self.take(entry + ".weight", channels)),
                   ("beta", self.take(entry + ".bias", channels, optional=True))]
        return self.add("LayerNormalization", weights, epsilon=1e-5)

    def attention(self, entry, channels, heads):
        """Causal; PyTorch's rows are all queries, all keys, all values, head by head."""
        if channels % heads:
            self.problems.append(f"{entry} has {channels} channels, expected a multiple of {heads}")
            channels = heads
        size = channels // heads
        kernel = self.take(entry + ".c_attn.weight", 3 * channels, channels)
        bias = self.take(entry + ".c_attn.bias", 3 * channels, optional=True)
        weights = []
        for i, part in enumerate(("query", "key", "value")):
            rows = slice(i * channels, (i + 1) * channels)
            weights += [(f"{part}/kernel", kernel[rows].T.reshape(channels, heads, size)),
                        (f"{part}/bias", bias[rows].reshape(heads, size))]
        kernel = self.take(entry + ".c_proj.weight", channels, channels)
        bias = self.take(entry + ".c_proj.bias", channels, optional=True)
        weights += [("attention_output/kernel", kernel.T.reshape(heads, size, channels)),
                    ("attention_output/bias", bias)]
        return self.add("MultiHeadAttention", weights, num_heads=heads, key_dim=size,
                        kwargs={"value": "input", "use_causal_mask": True})
