"""Random networks for random_models.py: programs in Python that build Keras models.

A `Program` is a list of lines and what they have made so far: each line runs as soon as it is
drawn, so that the shapes of its tensors are known, and a line that Keras refuses is dropped.
"""

import keras
import numpy as np

import random_layers as layers
from random_layers import Source, call


class Refused(Exception):
    """Keras takes none of several drawn lines."""


class Program:
    def __init__(self, draw):
        self.d = draw
        self.lines = []
        self.space = {"keras": keras, "L": keras.layers, "np": np, "ops": keras.ops}
        self.count = 0
        self.inputs = []     # (name, how its values are drawn)
        self.rows = draw.randint(2, 6)

    def run(self, line):
        exec(line, self.space)
        self.lines.append(line)

    def name(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    def make(self, source, letter="t"):
        name = self.name(letter)
        self.run(f"{name} = {source}")
        return name

    def shape(self, name):
        return tuple(self.space[name].shape[1:])

    def dtype(self, name):
        return str(self.space[name].dtype)

    def input(self, shape, kind="normal", **options):
        """A new input; kind: normal, unit, image, or how many integers there are."""
        if isinstance(kind, int):
            options["dtype"] = "int32"
        if self.d.maybe(0.2):
            options["name"] = self.name("input_")
        name = self.make(call("keras.Input", tuple(shape), **options), "x")
        self.inputs.append((name, kind))
        return name

    def apply(self, tensor, source):
        """The name of layer(tensor), or None if Keras refuses it or it grows too large."""
        try:
            name = self.make(f"{source}({tensor})")
        except Exception:
            return None
        result = self.space[name]
        if not hasattr(result, "shape") or 0 in result.shape[1:] or np.prod(
                [e or 5 for e in result.shape[1:]]) > 5000:
            self.lines.pop()
            return None
        return name

    def layer(self, tensor, names=None):
        """The tensor after a random layer of those names."""
        for _ in range(12):
            source = layers.layer(self.d, self.shape(tensor), names)
            made = source and self.apply(tensor, source)
            if made:
                return made
        return tensor

    def layers(self, tensor, count, names=None):
        for _ in range(count):
            tensor = self.layer(tensor, names)
        return tensor

    def must(self, tensor, source):
        made = self.apply(tensor, source)
        if not made:
            raise Refused(source)
        return made


# ---- Parts ----

VECTOR = ("Dense", "BatchNormalization", "LayerNormalization", "Activation", "Dropout", "LeakyReLU",
          "ReLU", "PReLU", "ELU", "GaussianNoise", "GaussianDropout", "AlphaDropout", "Rescaling",
          "UnitNormalization", "RMSNormalization", "GroupNormalization", "Normalization",
          "SpectralNormalization", "EinsumDense", "Identity", "ActivityRegularization")
IMAGE = ("Conv2D", "DepthwiseConv2D", "SeparableConv2D", "MaxPooling2D", "AveragePooling2D",
         "BatchNormalization", "Activation", "LeakyReLU", "ReLU", "PReLU", "Dropout",
         "SpatialDropout2D", "ZeroPadding2D", "Cropping2D", "UpSampling2D", "Conv2DTranspose",
         "LayerNormalization", "GroupNormalization", "Resizing", "GaussianNoise",
         "AdaptiveAveragePooling2D", "AdaptiveMaxPooling2D", "Rescaling", *layers.RANDOM)
SERIES = ("Conv1D", "LSTM", "GRU", "SimpleRNN", "Bidirectional", "TimeDistributed", "Dense",
          "MaxPooling1D", "AveragePooling1D", "SeparableConv1D", "DepthwiseConv1D", "Dropout",
          "SpatialDropout1D", "BatchNormalization", "LayerNormalization", "Activation", "RNN",
          "ZeroPadding1D", "Cropping1D", "UpSampling1D", "Conv1DTranspose", "Masking")


def vector(p, tensor):
    """A tensor of one axis: pooled, flattened or the last state."""
    shape = p.shape(tensor)
    if len(shape) == 1:
        return tensor
    known = None not in shape
    if len(shape) == 2 and (p.d.maybe(0.6) or not known):
        source = p.d.weighted({"L.GlobalAveragePooling1D()": 3, "L.GlobalMaxPooling1D()": 2,
                               "L.LSTM(4)": 2, "L.GRU(3)": 1})
        return p.must(tensor, source)
    if len(shape) == 3 and (p.d.maybe(0.5) or not known):
        return p.must(tensor, p.d.choice(["L.GlobalAveragePooling2D()", "L.GlobalMaxPooling2D()"]))
    return p.must(tensor, "L.Flatten()")


def alike(p, tensor):
    """A branch from tensor to another of its shape."""
    shape = p.shape(tensor)
    d = p.d
    if len(shape) == 3 and d.maybe(0.8):
        made = p.apply(tensor, call("L.Conv2D", shape[-1], d.choice([1, 3, (3, 1)]),
                                    padding="same", **layers.activation(d)))
    elif len(shape) == 2 and d.maybe(0.4):
        made = p.apply(tensor, call("L.Conv1D", shape[-1], d.choice([1, 3]), padding=d.choice(
            ["same", "causal"])))
    elif len(shape) == 2 and d.maybe(0.4):
        made = p.apply(tensor, call(d.choice(["L.LSTM", "L.GRU"]), shape[-1],
                                    return_sequences=True))
    else:
        made = p.apply(tensor, call("L.Dense", shape[-1], **layers.activation(d),
                                    **layers.weights(d)))
    if made and d.maybe(0.4):
        made = p.layer(made, ("BatchNormalization", "LayerNormalization", "Activation", "Dropout"))
    return made or tensor


def merge(p, tensors):
    """One tensor of several of one shape."""
    d = p.d
    names = {"Add": 10, "Concatenate": 8, "Multiply": 4, "Average": 2, "Maximum": 2, "Minimum": 1}
    if len(tensors) == 2:
        names["Subtract"] = 2
    name = d.weighted(names)
    options = {}
    if name == "Concatenate" and d.maybe(0.3):
        options["axis"] = d.choice([1, -1])
    if len(tensors) == 2 and name in ("Add", "Multiply", "Subtract") and not d.only and d.maybe(
            0.15):
        sign = {"Add": "+", "Multiply": "*", "Subtract": "-"}[name]
        return p.make(f"{tensors[0]} {sign} {tensors[1]}")
    return p.must(f"[{', '.join(tensors)}]", call("L." + name, **options))


def dot(p, a, b):
    """Dot of two tensors, along axes that fit."""
    first, second = p.shape(a), p.shape(b)
    pairs = [(i, j) for i in range(len(first)) for j in range(len(second))
             if first[i] == second[j]]
    p.d.shuffle(pairs)
    for i, j in pairs:
        axes = (i + 1, j + 1)
        if p.d.maybe(0.3):
            axes = (i - len(first), j - len(second))
        if axes[0] == axes[1] and p.d.maybe(0.7):
            axes = axes[0]
        made = p.apply(f"[{a}, {b}]", call("L.Dot", axes=axes, **p.d.some(0.3, normalize=[True])))
        if made:
            return made
    return None


def attention(p, query, value=None):
    """Attention of a series over itself or another."""
    d = p.d
    value = value or query
    kinds = {"MultiHeadAttention": 10, "Attention": 2, "AdditiveAttention": 1,
             "GroupQueryAttention": 1}
    kind = d.weighted({k: v for k, v in kinds.items() if layers.available(d, k)})
    if kind in ("Attention", "AdditiveAttention"):
        if p.shape(query)[-1] != p.shape(value)[-1]:
            return None
        return p.apply(f"[{query}, {value}]", call("L." + kind, **d.some(
            0.3, use_scale=[True, False]), **({"score_mode": "concat"}
                                              if kind == "Attention" and d.maybe(0.2) else {})))
    if kind == "GroupQueryAttention":
        source = call("L.GroupQueryAttention", d.choice([2, 3]), 4, 2)
    else:
        source = call("L.MultiHeadAttention", d.randint(1, 3), d.randint(2, 4),
                      **d.some(0.15, value_dim=[3, 2], use_bias=[False], output_shape=[4]))
    more = ", use_causal_mask=True" if d.maybe(0.2) and query == value else ""
    name = p.name("t")
    try:
        p.run(f"{name} = {source}({query}, {value}{more})")
    except Exception:
        return None
    return name


# ---- Whole networks: functions that return the names of the outputs ----

def mlp(p):
    d = p.d
    tensor = p.input((d.randint(2, 9),), d.choice(["normal", "unit"]))
    return [p.layers(tensor, d.randint(1, 6), VECTOR)]


def cnn(p):
    d = p.d
    side = lambda: d.randint(6, 14)
    tensor = p.input((side(), side(), d.choice([1, 3, 2])), d.choice(["image", "normal", "unit"]))
    if d.maybe(0.3):
        tensor = p.must(tensor, call("L.Rescaling", Source("1.0 / 255")))
    for _ in range(d.randint(1, 3)):
        tensor = p.layer(tensor, ("Conv2D", "SeparableConv2D", "DepthwiseConv2D"))
        tensor = p.layers(tensor, d.randint(0, 3), IMAGE)
    if d.maybe(0.15):
        return [tensor]
    return [p.layers(vector(p, tensor), d.randint(0, 2), VECTOR)]


def residual(p):
    d = p.d
    side = d.randint(6, 10)
    tensor = p.input((side, side + d.randint(0, 2), 3), "unit")
    tensor = p.must(tensor, call("L.Conv2D", 4, 3, padding="same", use_bias=False))
    for _ in range(d.randint(1, 3)):
        shortcut = tensor
        y = p.layers(tensor, d.randint(0, 2), ("BatchNormalization", "Activation", "ReLU"))
        branches = [shortcut] + [alike(p, y) for _ in range(d.randint(1, 2))]
        if d.maybe(0.3):
            pooled = p.must(y, call("L." + d.choice(["MaxPooling2D", "AveragePooling2D"]), 3,
                                    strides=1, padding="same"))
            branches.append(p.must(pooled, call("L.Conv2D", p.shape(y)[-1], 1)))
        tensor = merge(p, branches)
        if d.maybe(0.4):   # squeeze and excite
            channels = p.shape(tensor)[-1]
            scale = p.must(tensor, "L.GlobalAveragePooling2D()")
            if d.maybe(0.6):
                scale = p.must(scale, f"L.Reshape((1, 1, {channels}))")
            if d.maybe(0.3):
                scale = p.layer(scale, ("LayerNormalization", "GroupNormalization"))
            scale = p.must(scale, "L.Dense(2, activation='relu')")
            scale = p.must(scale, f"L.Dense({channels}, activation='sigmoid')")
            tensor = p.must(f"[{tensor}, {scale}]", "L.Multiply()")
        if d.maybe(0.5):
            tensor = p.layer(tensor, IMAGE)
    return [p.layers(vector(p, tensor), d.randint(0, 2), VECTOR)]


def unet(p):
    d = p.d
    tensor = p.input((8, d.choice([8, 12]), d.choice([1, 3])), "unit")
    skips = []
    for depth in range(d.randint(1, 2)):
        tensor = p.must(tensor, call("L.Conv2D", 2 + 2 * depth, 3, padding="same",
                                     **layers.activation(d)))
        tensor = p.layer(tensor, ("BatchNormalization", "Dropout", "Activation"))
        skips.append(tensor)
        tensor = p.must(tensor, d.choice(["L.MaxPooling2D()", "L.AveragePooling2D(2)",
                                          "L.Conv2D(3, 3, strides=2, padding='same')"]))
    tensor = alike(p, tensor)
    for skip in reversed(skips):
        tensor = p.must(tensor, d.choice([
            "L.UpSampling2D()", "L.UpSampling2D(2, interpolation='bilinear')",
            "L.Conv2DTranspose(3, 2, strides=2)",
            "L.Conv2DTranspose(3, 3, strides=2, padding='same', activation='relu')"]))
        if d.maybe(0.8):
            tensor = p.must(f"[{tensor}, {skip}]", "L.Concatenate()")
        tensor = p.layer(tensor, ("Conv2D",) if d.maybe(0.1) else ("BatchNormalization", "ReLU"))
    return [tensor]


def text(p):
    """Integers, an embedding, then what reads a series."""
    d = p.d
    words = d.randint(5, 30)
    steps = None if d.maybe(0.15) and not d.only else d.randint(4, 9)
    tensor = p.input((steps,), words)
    tensor = p.must(tensor, call("L.Embedding", words, d.randint(2, 6), **d.some(
        0.3, mask_zero=[True]), **d.some(0.08, embeddings_regularizer=["l2"],
                                         embeddings_initializer=["random_normal"],
                                         embeddings_constraint=["max_norm"])))
    return [series(p, tensor)]


def series(p, tensor):
    d = p.d
    for _ in range(d.randint(1, 4)):
        if len(p.shape(tensor)) != 2:
            break
        if d.maybe(0.15):
            tensor = attention(p, tensor) or tensor
        elif d.maybe(0.2):
            tensor = merge(p, [tensor, alike(p, tensor)])
        else:
            tensor = p.layer(tensor, SERIES)
    if len(p.shape(tensor)) == 2 and d.maybe(0.7):
        tensor = vector(p, tensor)
    if len(p.shape(tensor)) == 1 and d.maybe(0.5):
        tensor = p.layers(tensor, d.randint(1, 2), VECTOR)
    return tensor


def steps(p):
    """A series of numbers."""
    d = p.d
    length = None if d.maybe(0.1) and not d.only else d.randint(4, 10)
    tensor = p.input((length, d.randint(1, 5)), "steps")
    if d.maybe(0.25):
        tensor = p.must(tensor, "L.Masking()")
    return [series(p, tensor)]


def transformer(p):
    """Blocks of attention as written by hand."""
    d = p.d
    length, width, words = d.randint(4, 8), d.choice([4, 6, 8]), d.randint(6, 20)
    kind = d.choice(["text", "series", "image"])
    if kind == "text":
        tokens = p.input((length,), words)
        x = p.must(tokens, call("L.Embedding", words, width, **d.some(0.3, mask_zero=[True])))
        if not d.only and d.maybe(0.5):
            positions = p.make(f"L.Embedding({length}, {width})(ops.arange({length}))")
            x = p.make(f"{x} + {positions}")
    elif kind == "series":
        x = p.must(p.input((length, 3), "normal"), f"L.Dense({width})")
    else:
        image = p.input((8, 8, 1), "unit")
        x = p.must(image, f"L.Conv2D({width}, 4, strides=4, padding='valid')")
        x = p.must(x, f"L.Reshape((-1, {width}))")
    for _ in range(d.randint(1, 2)):
        before = d.maybe(0.5)
        norm = d.choice(["L.LayerNormalization(epsilon=1e-6)", "L.LayerNormalization()",
                         "L.RMSNormalization()"])
        y = p.must(x, norm) if before else x
        y = attention(p, y) or y
        if p.shape(y) != p.shape(x):
            y = p.must(y, f"L.Dense({width})")
        y = p.layer(y, ("Dropout",)) if d.maybe(0.4) else y
        x = p.must(f"[{x}, {y}]", "L.Add()")
        y = x = p.must(x, norm) if not before else x
        if before:
            y = p.must(x, norm)
        y = p.must(y, call("L.Dense", 2 * width, **layers.activation(d, 1.0)))
        y = p.must(y, f"L.Dense({width})")
        x = p.must(f"[{x}, {y}]", "L.Add()")
    if d.maybe(0.7):
        x = p.make(f"{x}[:, 0]") if not d.only and d.maybe(0.2) else vector(p, x)
    return [x]


def translate(p):
    """An encoder's states begin a decoder's."""
    d = p.d
    name = d.choice(["LSTM", "GRU", "SimpleRNN"])
    units = d.randint(2, 5)
    words = d.randint(5, 12)
    source = p.input((d.randint(3, 6),), words)
    target = p.input((d.randint(3, 6),), words)
    mask = d.some(0.3, mask_zero=[True])
    x = p.must(source, call("L.Embedding", words, 4, **mask))
    y = p.must(target, call("L.Embedding", words, 4, **mask))
    states = p.name("s")
    p.run(f"{states} = L.{name}({units}, return_state=True)({x})[1:]")
    y_name = p.name("t")
    p.run(f"{y_name} = L.{name}({units}, return_sequences=True)({y}, initial_state={states})")
    y = y_name
    if d.maybe(0.3):
        code = p.must(x, f"L.{name}({units}, return_sequences=True)")
        y = attention(p, y, code) or y
    return [p.layers(y, d.randint(0, 1), ("Dense", "TimeDistributed"))]


def encoder(p, tensor):
    """A nested model that is called on a tensor; returns its name."""
    d = p.d
    shape = p.shape(tensor)
    if d.maybe(0.4):    # Sequential
        made = []
        t = tensor
        for _ in range(d.randint(1, 3)):
            for _ in range(8):
                source = layers.layer(d, p.shape(t), VECTOR + IMAGE + SERIES)
                applied = source and p.apply(t, source)
                if applied:
                    p.lines.pop()
                    made.append(source)
                    t = applied
                    break
        name = d.some(0.4, name=[p.name("encoder_")])
        listed = ", ".join([call("keras.Input", shape)] + made)
        return p.make(call("keras.Sequential", Source(f"[{listed}]"), **name), "m")
    inner = p.make(call("keras.Input", shape))
    t = p.layers(inner, d.randint(1, 3), VECTOR + IMAGE + SERIES)
    if d.maybe(0.3):
        t = merge(p, [t, alike(p, t)])
    return p.make(call("keras.Model", Source(inner), Source(t),
                       **d.some(0.4, name=[p.name("encoder_")])), "m")


def towers(p):
    """Siamese networks: one encoder of two inputs, or two."""
    d = p.d
    shape = d.choice([(d.randint(3, 6),), (8, 8, 1), (5, 3)])
    kind = "unit" if len(shape) == 3 else "normal"
    a, b = p.input(shape, kind), p.input(shape, kind)
    shared = encoder(p, a)
    left, right = p.make(f"{shared}({a})"), p.make(f"{shared}({b})")
    how = d.random()
    if how < 0.3 and p.shape(left) == p.shape(right):
        made = dot(p, left, right)
        if made:
            return [p.layers(made, 1, VECTOR)]
    if how < 0.45 and not d.only:
        merged = p.make(f"ops.absolute({left} - {right})")
    else:
        merged = merge(p, [left, right])
    return [p.layers(vector(p, merged), d.randint(0, 2), VECTOR)]


def shared(p):
    """Layers called several times, on several tensors."""
    d = p.d
    width = d.randint(3, 6)
    shape = d.choice([(width,), (5, width), (6, 6, width)])
    tensors = [p.input(shape, "normal") for _ in range(d.randint(1, 3))]
    for _ in range(d.randint(1, 3)):
        source = d.weighted({
            call("L.Dense", width, **layers.activation(d)): 6, "L.BatchNormalization()": 4,
            "L.LayerNormalization()": 2, "L.Activation('relu')": 1, "L.PReLU()": 1,
            "L.Dropout(0.0)": 1, "L.BatchNormalization(momentum=0.8)": 2,
            **({f"L.Conv2D({width}, 3, padding='same')": 4} if len(shape) == 3 else {}),
            **({f"L.LSTM({width}, return_sequences=True)": 4,
                f"L.GRU({width}, return_sequences=True)": 2} if len(shape) == 2 else {})})
        layer = p.make(source, "layer")
        for i, tensor in enumerate(tensors):
            if i == 0 or d.maybe(0.8):
                tensors[i] = p.make(f"{layer}({tensor})")
        if d.maybe(0.5):
            tensors.append(p.make(f"{layer}({d.choice(tensors)})"))
    result = merge(p, tensors) if len(tensors) > 1 else tensors[0]
    return [p.layers(vector(p, result), d.randint(0, 1), VECTOR)]


def tabular(p):
    """Numbers and categories, several inputs and outputs."""
    d = p.d
    parts = []
    for _ in range(d.randint(1, 4)):
        kind = d.choice(["number", "number", "category", "text", "bucket"])
        if kind == "number":
            x = p.input((d.randint(1, 5),), "normal")
            parts.append(p.layers(x, d.randint(0, 2), VECTOR + ("Normalization",)))
        elif kind == "category":
            count = d.randint(2, 9)
            x = p.input((1,) if d.maybe(0.7) else (), count)
            if not d.only and d.maybe(0.3):
                made = p.must(x, call("L.CategoryEncoding", num_tokens=count, output_mode=d.choice(
                    ["one_hot", "multi_hot"])))
            else:
                made = p.must(x, call("L.Embedding", count, d.randint(1, 4)))
            parts.append(made if len(p.shape(made)) == 1 else p.must(made, "L.Flatten()"))
        elif kind == "bucket" and not d.only:
            x = p.input((1,), "normal")
            parts.append(p.must(x, call("L.Discretization", bin_boundaries=[-0.5, 0.0, 0.7],
                                        output_mode="one_hot")))
        elif kind == "bucket" and d.maybe(0.5):
            x = p.input((2,), "normal")
            parts.append(p.must(x, "L.Normalization(axis=None, mean=0.3, variance=1.7)"))
        else:
            words = d.randint(3, 9)
            x = p.must(p.input((d.randint(2, 5),), words), f"L.Embedding({words}, 3)")
            parts.append(p.must(x, "L.GlobalAveragePooling1D()"))
    x = p.must(f"[{', '.join(parts)}]", "L.Concatenate()") if len(parts) > 1 else parts[0]
    x = p.layers(x, d.randint(1, 3), VECTOR)
    outputs = [p.layers(x, d.randint(0, 2), VECTOR)]
    while d.maybe(0.4) and len(outputs) < 4:
        outputs.append(p.layers(x, d.randint(1, 2), ("Dense", "Activation")))
    return outputs


def stateful(p):
    """Recurrent layers that keep their states."""
    d = p.d
    x = p.make(call("keras.Input", (d.randint(3, 6), 2), batch_size=p.rows), "x")
    p.inputs.append((x, "normal"))
    name = d.choice(["LSTM", "GRU", "SimpleRNN"])
    x = p.must(x, f"L.{name}(4, stateful=True, return_sequences=True)")
    x = p.must(x, d.choice([f"L.{name}(3, stateful=True)", "L.LSTM(3)", "L.Dense(3)"]))
    return [x]


def video(p):
    """Images over time, or volumes."""
    d = p.d
    x = p.input((d.randint(3, 4), 6, 6, d.choice([1, 2])), "unit")
    if d.maybe(0.6) or d.only:
        if d.maybe(0.4):
            inner = p.make(call("keras.Input", p.shape(x)[1:]))
            t = p.layers(inner, d.randint(1, 2), ("Conv2D", "MaxPooling2D", "BatchNormalization"))
            model = p.make(f"keras.Model({inner}, {vector(p, t)})", "m")
            x = p.must(x, f"L.TimeDistributed({model})")
        else:
            x = p.must(x, f"L.TimeDistributed({layers.call('L.Conv2D', 2, 3)})")
            x = p.layers(x, d.randint(0, 2), ("TimeDistributed",))
            while len(p.shape(x)) > 2:
                if len(p.shape(x)) == 4:
                    x = p.must(x, d.choice(["L.TimeDistributed(L.Flatten())",
                                            "L.TimeDistributed(L.GlobalAveragePooling2D())",
                                            "L.TimeDistributed(L.GlobalMaxPooling2D())"]))
                else:
                    x = p.must(x, "L.TimeDistributed(L.Flatten())")
        return [series(p, x) if len(p.shape(x)) == 2 else vector(p, x)]
    x = p.layers(x, d.randint(1, 3), ("Conv3D", "MaxPooling3D", "AveragePooling3D", "ConvLSTM2D",
                                      "BatchNormalization", "UpSampling3D", "ZeroPadding3D"))
    return [vector(p, x)]


def walk(p):
    """Any layers that fit one another."""
    d = p.d
    shape = d.choice([(6,), (7, 4), (7, 7, 2), (3, 5, 5, 2)])
    pool = [p.input(shape, "normal")]
    for _ in range(d.randint(2, 6)):
        tensor = d.choice(pool[-2:])
        pool.append(p.layer(tensor))
        same = [t for t in pool if p.shape(t) == p.shape(pool[-1]) and t != pool[-1]]
        if same and d.maybe(0.3):
            pool.append(merge(p, [pool[-1], d.choice(same)]))
        elif len(pool) > 2 and d.maybe(0.1):
            made = dot(p, pool[-1], d.choice(pool[:-1]))
            if made:
                pool.append(made)
    return [pool[-1]]


def nested(p):
    """A model whose layers are models."""
    d = p.d
    shape = d.choice([(6,), (6, 4), (8, 8, 3)])
    x = p.input(shape, "unit")
    for _ in range(d.randint(1, 2)):
        model = encoder(p, x)
        if d.maybe(0.15):
            p.run(f"{model}.trainable = False")
        x = p.make(f"{model}({x})")
    return [p.layers(vector(p, x) if d.maybe(0.7) else x, d.randint(0, 2), VECTOR)]


NETWORKS = {mlp: 8, cnn: 14, residual: 8, unet: 6, text: 10, steps: 10, transformer: 8,
            translate: 4, towers: 6, shared: 6, tabular: 9, video: 4, walk: 8, nested: 6,
            stateful: 1}


def chain(p, output):
    """The lines of a network that is one chain, as a Sequential model; None for others."""
    if len(p.inputs) != 1:
        return None
    start = p.inputs[0][0]
    known, before = [], start
    for line in p.lines:
        name, source = line.split(" = ", 1)
        if name == start:
            known.append(source)
        elif source.endswith(f")({before})") and source.startswith("L."):
            known.append(source[: -len(before) - 2])
            before = name
        else:
            return None
    return known if before == output else None
