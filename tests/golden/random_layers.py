"""Random layers for random_models.py: constructors of keras.layers as Python source.

`RECIPES` has for each class how often users write it, the ranks of the inputs it takes (without
the batch) and a function that draws its arguments. Classes of keras.layers without a recipe are
drawn with the arguments that their constructors require, so that none is left out.
"""

import inspect
import random

import keras


class Source(str):
    """A string that is Python already."""


def text(value):
    return str(value) if isinstance(value, Source) else repr(value)


def call(name, *positional, **named):
    arguments = [text(v) for v in positional]
    arguments += [f"{k}={text(v)}" for k, v in named.items()]
    return f"{name}({', '.join(arguments)})"


class Draw(random.Random):
    """The random choices of one model."""

    only = False    # draws nothing that Cornu is known to lack
    noise = False   # draws layers that are random in training

    def maybe(self, chance):
        return self.random() < chance

    def weighted(self, table):
        return self.choices(list(table), list(table.values()))[0]

    def some(self, chance, **named):
        """Each argument with that chance, drawn from its list."""
        return {k: self.choice(v) for k, v in named.items() if self.maybe(chance)}

    def number(self, low, high):
        return round(self.uniform(low, high), 3)


ACTIVATIONS = {
    "relu": 30, "tanh": 10, "sigmoid": 8, "elu": 4, "selu": 4, "gelu": 8, "silu": 4, "swish": 3,
    "softmax": 3, "leaky_relu": 4, "relu6": 2, "softplus": 2, "softsign": 2, "exponential": 0.3,
    "hard_sigmoid": 2, "hard_silu": 1, "hard_swish": 1, "linear": 2, "mish": 2, "log_softmax": 1,
    "celu": 1, "hard_tanh": 1, "log_sigmoid": 1, "sparse_sigmoid": 1, "hard_shrink": 1,
    "soft_shrink": 1, "tanh_shrink": 1, "sparse_plus": 1, "squareplus": 1, "sparsemax": 0.5,
    "threshold": 0.3,
}
OBJECTS = ["L.LeakyReLU(0.2)", "L.ReLU(max_value=4.0)", "L.PReLU()", "L.ELU(0.7)", "L.Softmax()"]
INITIALIZERS = [
    "he_normal", "he_uniform", "glorot_normal", "lecun_normal", "lecun_uniform", "random_normal",
    "random_uniform", "truncated_normal", "orthogonal", "uniform", "normal",
    "keras.initializers.RandomNormal(mean=0.0, stddev=0.05, seed=4)",
    "keras.initializers.VarianceScaling(2.0, 'fan_out', 'uniform')",
    "keras.initializers.TruncatedNormal(stddev=0.1)", "keras.initializers.HeNormal(seed=3)",
    "keras.initializers.RandomUniform(-0.2, 0.2)",
]
BIASES = ["ones", "random_normal", "keras.initializers.Constant(0.1)", "zeros"]
REGULARIZERS = ["l1", "l2", "l1_l2", "keras.regularizers.L2(0.001)", "keras.regularizers.L1(1e-4)",
                "keras.regularizers.L1L2(l1=1e-5, l2=1e-4)", "keras.regularizers.l2(0.01)"]
CONSTRAINTS = ["max_norm", "non_neg", "unit_norm", "keras.constraints.MaxNorm(2.0)",
               "keras.constraints.MinMaxNorm(0.2, 1.5, rate=0.9)",
               "keras.constraints.UnitNorm(axis=0)", "keras.constraints.NonNeg()"]


def object_or_name(value):
    return Source(value) if "(" in value else value


def activation(d, chance=0.7, recurrent=False):
    if not d.maybe(chance):
        return {}
    if d.maybe(0.04) and not recurrent and not d.only:
        return {"activation": Source(d.choice(OBJECTS))}
    table = {k: v for k, v in ACTIVATIONS.items() if not (d.only and k == "threshold")}
    if recurrent:
        table = {k: table[k] for k in ("relu", "tanh", "sigmoid", "elu", "softsign", "selu",
                                       "hard_sigmoid", "gelu", "silu", "linear")}
    return {"activation": d.weighted(table)}


def weights(d, kinds=("kernel",), bias=True, chance=0.07):
    """The arguments about weights that most layers share."""
    options = {}
    for kind in kinds:
        if d.maybe(chance):
            options[f"{kind}_initializer"] = object_or_name(d.choice(INITIALIZERS))
        if d.maybe(chance):
            options[f"{kind}_regularizer"] = object_or_name(d.choice(REGULARIZERS))
        if d.maybe(chance / 2):
            options[f"{kind}_constraint"] = object_or_name(d.choice(CONSTRAINTS))
    if bias and d.maybe(1.5 * chance):
        options["use_bias"] = False
    elif bias:
        if d.maybe(chance):
            options["bias_initializer"] = object_or_name(d.choice(BIASES))
        if d.maybe(chance / 2):
            options["bias_regularizer"] = object_or_name(d.choice(REGULARIZERS))
        if d.maybe(chance / 3):
            options["bias_constraint"] = object_or_name(d.choice(CONSTRAINTS))
    if d.maybe(chance / 3):
        options["activity_regularizer"] = object_or_name(d.choice(REGULARIZERS))
    if d.maybe(chance / 3):
        options["trainable"] = False
    return options


def channels_first(d, rank):
    first = not d.only and rank > 1 and d.maybe(0.03)
    return {"data_format": "channels_first"} if first else {}


# ---- Core ----

def dense(d, shape):
    return call("L.Dense", d.choice([1, 2, 3, 4, 5, 6, 8]), **activation(d), **weights(d))


def einsum_dense(d, shape):
    out = d.choice([3, 4, 6])
    if len(shape) == 1:
        equation, output = "ab,bc->ac", out
    else:
        axes = "abcdef"[: len(shape) + 1]
        equation, output = d.choice([
            (f"{axes},{axes[-1]}z->{axes[:-1]}z", (None,) * (len(shape) - 1) + (out,)),
            (f"...x,xy->...y", out if len(shape) == 1 else (None,) * (len(shape) - 1) + (out,)),
        ])
    bias = {"bias_axes": "z" if "z" in equation else "y" if "y" in equation else "c"}
    return call("L.EinsumDense", equation, output_shape=output,
                **(bias if d.maybe(0.5) else {}), **activation(d, 0.4))


def masking(d, shape):
    return call("L.Masking", **d.some(0.5, mask_value=[0.0, -1.0, 0.5]))


def activation_layer(d, shape):
    return call("L.Activation", activation(d, 1.0)["activation"])


def leaky(d, shape):
    return call("L.LeakyReLU", **d.some(0.6, negative_slope=[0.1, 0.2, 0.0]))


def prelu(d, shape):
    shared = {"shared_axes": list(range(1, len(shape)))} if len(shape) > 1 and d.maybe(0.5) else {}
    return call("L.PReLU", **shared, **(
        {"alpha_initializer": "random_normal"} if d.maybe(0.5) else {}))


def relu(d, shape):
    return call("L.ReLU", **d.some(0.4, max_value=[1.0, 6.0, 0.5], negative_slope=[0.1, 0.3],
                                   threshold=[0.2, 0.1]))


def softmax(d, shape):
    axis = d.choice([1, -1] + ([[-1, -2]] if len(shape) > 1 else []))
    return call("L.Softmax", **({"axis": axis} if d.maybe(0.5) else {}))


# ---- Convolutions and pooling ----

def spatial(d, rank, high=3):
    """An extent for all axes, or one for each."""
    return d.randint(1, high) if d.maybe(0.6) else tuple(d.randint(1, high) for _ in range(rank))


def convolution(name, rank, transpose=False, depthwise=False, separable=False):
    def recipe(d, shape):
        options = {}
        if d.maybe(0.5):
            options["padding"] = "causal" if (rank == 1 and not (transpose or depthwise)
                                              and d.maybe(0.3)) else "same"
        if d.maybe(0.35):
            strides = d.choice([2, 3, 2])
            options["strides"] = strides if d.maybe(0.7) or depthwise or separable else tuple(
                d.choice([1, 2]) for _ in range(rank))
        elif d.maybe(0.2) and not transpose:
            options["dilation_rate"] = 2
        if transpose and options.get("strides", 1) != 1 and d.maybe(0.2):
            options["output_padding"] = 1 if options["strides"] == 2 else 0
            if options["strides"] != 2:
                options.pop("output_padding")
        filters = d.choice([2, 3, 4, 6])
        positional = [spatial(d, rank)] if depthwise else [filters, spatial(d, rank)]
        kinds = ("kernel",)
        if depthwise or separable:
            kinds = ("depthwise",)
            options |= d.some(0.3, depth_multiplier=[2, 3])
        if separable:
            kinds = ("depthwise", "pointwise")
        elif not depthwise and not transpose and shape[-1] and shape[-1] % 2 == 0 and d.maybe(0.1):
            options["groups"] = 2
            positional[0] = 4
        return call("L." + name, *positional, **options, **activation(d, 0.6),
                    **weights(d, kinds), **channels_first(d, rank))
    return recipe


def pooling(name, rank):
    def recipe(d, shape):
        options = d.some(0.35, padding=["same", "valid"], strides=[1, 2, 3])
        return call("L." + name, **({"pool_size": spatial(d, rank)} if d.maybe(0.6)
                                    or name.startswith("Av") else {}),
                    **options, **channels_first(d, rank))
    return recipe


def global_pooling(name, rank):
    return lambda d, shape: call("L." + name, **d.some(0.3, keepdims=[True]),
                                 **channels_first(d, rank))


def adaptive(name, rank):
    return lambda d, shape: call("L." + name, spatial(d, rank, 4))


def padding(name, rank):
    def recipe(d, shape):
        pair = lambda: (d.randint(0, 2), d.randint(0, 1))
        amount = d.randint(1, 2)
        if d.maybe(0.5):
            amount = pair() if rank == 1 else tuple(pair() for _ in range(rank))
        elif rank > 1 and d.maybe(0.4):
            amount = tuple(d.randint(0, 2) for _ in range(rank))
        return call("L." + name, amount, **channels_first(d, rank))
    return recipe


def up_sampling(name, rank):
    def recipe(d, shape):
        options = {}
        if rank == 2 and d.maybe(0.5):
            options["interpolation"] = d.choice(["bilinear", "nearest"] if d.only else [
                "bilinear", "nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"])
        return call("L." + name, d.choice([2, 3, 1] if rank == 1 else [2, 3, (2, 1), (1, 2)]
                                          if rank == 2 else [2, (1, 2, 2)]), **options)
    return recipe


def resizing(d, shape):
    kinds = ["bilinear", "nearest"] if d.only else [
        "bilinear", "nearest", "bicubic", "lanczos3", "lanczos5", "area"]
    aspect = d.weighted({"": 6, "crop_to_aspect_ratio": 2, "pad_to_aspect_ratio": 1})
    return call("L.Resizing", d.randint(3, 12), d.randint(3, 12),
                **d.some(0.3, interpolation=kinds, antialias=[True]),
                **({aspect: True} if aspect else {}))


# ---- Shapes ----

def reshape(d, shape):
    count = 1
    for extent in shape:
        if extent is None:
            return None
        count *= extent
    rank = d.randint(1, 3)
    target = []
    for _ in range(rank - 1):
        divisors = [k for k in range(1, count + 1) if count % k == 0]
        target.append(d.choice(divisors))
        count //= target[-1]
    target.append(count)
    d.shuffle(target)
    if d.maybe(0.4):
        target[d.randrange(rank)] = -1
    return call("L.Reshape", tuple(target))


def permute(d, shape):
    axes = list(range(1, len(shape) + 1))
    d.shuffle(axes)
    return call("L.Permute", tuple(axes))


# ---- Normalization ----

def batch_normalization(d, shape):
    options = d.some(0.12, momentum=[0.9, 0.5, 0.99], epsilon=[1e-5, 1e-4], center=[False],
                     scale=[False], gamma_initializer=["random_normal", "ones"],
                     beta_regularizer=["l2"], trainable=[False],
                     moving_mean_initializer=["ones"])
    if d.maybe(0.06):
        axes = [len(shape)] if d.only else [1, len(shape)]
        options["axis"] = d.choice(axes)
    if d.maybe(0.03) and not d.only:
        options["renorm"] = True
    return call("L.BatchNormalization", **options)


def layer_normalization(d, shape):
    options = d.some(0.12, epsilon=[1e-6, 1e-5], center=[False], scale=[False],
                     gamma_regularizer=["l2"])
    if len(shape) > 1 and d.maybe(0.2):
        options["axis"] = d.choice([1, [-2, -1], [1, 2], list(range(1, len(shape) + 1))])
    if d.maybe(0.03):
        options["rms_scaling"] = True
    return call("L.LayerNormalization", **options)


def group_normalization(d, shape):
    if not shape[-1]:
        return None
    groups = [g for g in range(1, shape[-1] + 1) if shape[-1] % g == 0] + [-1]
    return call("L.GroupNormalization", d.choice(groups), **d.some(
        0.12, epsilon=[1e-5], center=[False], scale=[False]))


def normalization(d, shape):
    if d.maybe(0.5) and shape[-1] and not d.only:
        values = lambda low: [d.number(low, low + 2) for _ in range(shape[-1])]
        return call("L.Normalization", mean=values(-1), variance=values(0.5))
    return call("L.Normalization", axis=None, mean=d.number(-1, 1), variance=d.number(0.5, 2),
                **d.some(0.2, invert=[True]))


def rescaling(d, shape):
    if d.maybe(0.1) and shape[-1] and not d.only:
        return call("L.Rescaling", [d.number(0.1, 2) for _ in range(shape[-1])])
    return call("L.Rescaling", d.number(0.1, 2), **d.some(0.5, offset=[-1.0, 0.5, 0]))


# ---- Recurrent layers ----

def recurrent(name, sequences=None, states=False):
    def recipe(d, shape, sequences=sequences):
        sequences = d.maybe(0.5) if sequences is None else sequences
        options = {"return_sequences": True} if sequences else {}
        options |= activation(d, 0.12, True)
        if name != "SimpleRNN" and d.maybe(0.1):
            options["recurrent_activation"] = d.choice(
                ["hard_sigmoid", "tanh", "relu", "sigmoid"])
        options |= d.some(0.08, go_backwards=[True], unroll=[True])
        if name == "LSTM":
            options |= d.some(0.1, unit_forget_bias=[False])
        if name == "GRU":
            options |= d.some(0.15, reset_after=[False])
        options |= weights(d, ("kernel", "recurrent"), chance=0.05)
        options.pop("activity_regularizer", None)
        if d.noise and d.maybe(0.2):
            options |= d.some(0.6, dropout=[0.2], recurrent_dropout=[0.3])
        if states:
            options["return_state"] = True
        return call("L." + name, d.randint(1, 6), **options)
    return recipe


def bidirectional(d, shape):
    name = d.weighted({"LSTM": 5, "GRU": 4, "SimpleRNN": 1})
    inner = recurrent(name)(d, shape)
    options = d.some(0.3, merge_mode=["sum", "mul", "ave", "concat"])
    if d.maybe(0.05) and "go_backwards" not in inner:
        back = inner[:-1] + (", " if not inner.endswith("()") else "") + "go_backwards=True)"
        options["backward_layer"] = Source(back)
    return call("L.Bidirectional", Source(inner), **options)


def cell(d):
    return Source(call(d.choice(["L.LSTMCell", "L.GRUCell", "L.SimpleRNNCell"]), d.randint(1, 5)))


def rnn(d, shape):
    cells = cell(d)
    if d.maybe(0.4):
        cells = Source(f"[{cell(d)}, {cell(d)}]")
        if d.maybe(0.5):
            cells = Source(f"L.StackedRNNCells({cells})")
    return call("L.RNN", cells, **d.some(0.5, return_sequences=[True]))


def conv_lstm(rank):
    def recipe(d, shape):
        return call(f"L.ConvLSTM{rank}D", d.choice([2, 3]), d.choice([1, 2, 3]), **d.some(
            0.4, padding=["same"], return_sequences=[True]), **d.some(
            0.15, strides=[2], recurrent_activation=["hard_sigmoid"], unit_forget_bias=[False]))
    return recipe


def time_distributed(d, shape):
    inner = shape[1:]
    names = [n for n, (share, ranks, _) in RECIPES.items()
             if len(inner) in ranks and n not in NOT_DISTRIBUTED and share > 0 and available(d, n)]
    name = d.choices(names, [RECIPES[n][0] for n in names])[0]
    source = RECIPES[name][2](d, inner)
    return source and call("L.TimeDistributed", Source(source))


# ---- Random in training ----

def dropout(name):
    def recipe(d, shape):
        rate = d.number(0.1, 0.6) if d.noise else 0.0
        return call("L." + name, rate, **d.some(0.1, seed=[3]))
    return recipe


def augmentation(name, *arguments, **named):
    def recipe(d, shape):
        return call("L." + name, *(d.choice(a) for a in arguments),
                    **{k: d.choice(v) for k, v in named.items()})
    return recipe


def seeded(name, low=0.1, high=0.4):
    return lambda d, shape: call("L." + name, d.number(low, high))


ANY = (1, 2, 3, 4)
RECIPES = {
    "Dense": (30, (1, 2, 3), dense), "EinsumDense": (2, (1, 2, 3), einsum_dense),
    "Activation": (8, ANY, activation_layer), "Identity": (1, ANY, lambda d, s: "L.Identity()"),
    "ActivityRegularization": (0.5, ANY, lambda d, s: "L.ActivityRegularization(l2=0.01)"),
    "ReLU": (3, ANY, relu), "LeakyReLU": (4, ANY, leaky), "PReLU": (2, ANY, prelu),
    "ELU": (2, ANY, lambda d, s: call("L.ELU", **d.some(0.5, alpha=[0.5, 1.0]))),
    "Softmax": (2, ANY, softmax), "Rescaling": (3, ANY, rescaling), "Masking": (2, (2,), masking),
    "Flatten": (4, (1, 2, 3, 4), lambda d, s: call("L.Flatten", **channels_first(d, len(s)))),
    "Reshape": (4, ANY, reshape), "Permute": (2, (2, 3), permute),
    "RepeatVector": (3, (1,), lambda d, s: call("L.RepeatVector", d.randint(1, 5))),
    "BatchNormalization": (12, ANY, batch_normalization),
    "LayerNormalization": (8, ANY, layer_normalization),
    "GroupNormalization": (3, (1, 2, 3), group_normalization),
    "RMSNormalization": (2, ANY, lambda d, s: call("L.RMSNormalization", **d.some(
        0.3, epsilon=[1e-5]))),
    "UnitNormalization": (1, ANY, lambda d, s: call("L.UnitNormalization", **d.some(
        0.3, axis=[1, -1]))),
    "Normalization": (2, ANY, normalization),
    "SpectralNormalization": (0.5, (1, 2), lambda d, s: "L.SpectralNormalization(L.Dense(4))"),
    "Conv1D": (14, (2,), convolution("Conv1D", 1)),
    "Conv2D": (30, (3,), convolution("Conv2D", 2)),
    "Conv3D": (8, (4,), convolution("Conv3D", 3)),
    "Conv1DTranspose": (3, (2,), convolution("Conv1DTranspose", 1, True)),
    "Conv2DTranspose": (5, (3,), convolution("Conv2DTranspose", 2, True)),
    "Conv3DTranspose": (2, (4,), convolution("Conv3DTranspose", 3, True)),
    "DepthwiseConv1D": (2, (2,), convolution("DepthwiseConv1D", 1, depthwise=True)),
    "DepthwiseConv2D": (5, (3,), convolution("DepthwiseConv2D", 2, depthwise=True)),
    "SeparableConv1D": (2, (2,), convolution("SeparableConv1D", 1, separable=True)),
    "SeparableConv2D": (5, (3,), convolution("SeparableConv2D", 2, separable=True)),
    "LSTM": (14, (2,), recurrent("LSTM")), "GRU": (9, (2,), recurrent("GRU")),
    "SimpleRNN": (4, (2,), recurrent("SimpleRNN")), "Bidirectional": (8, (2,), bidirectional),
    "RNN": (2, (2,), rnn), "ConvLSTM1D": (1, (3,), conv_lstm(1)),
    "ConvLSTM2D": (4, (4,), conv_lstm(2)),
    "TimeDistributed": (6, (2, 3, 4), time_distributed),
    "Resizing": (2, (3,), resizing),
    "CenterCrop": (1, (3,), lambda d, s: call("L.CenterCrop", d.randint(2, 6), d.randint(2, 6))),
    "UpSampling1D": (2, (2,), up_sampling("UpSampling1D", 1)),
    "UpSampling2D": (4, (3,), up_sampling("UpSampling2D", 2)),
    "UpSampling3D": (2, (4,), up_sampling("UpSampling3D", 3)),
    "Dropout": (10, ANY, dropout("Dropout")), "AlphaDropout": (1, ANY, dropout("AlphaDropout")),
    "GaussianDropout": (1, ANY, dropout("GaussianDropout")),
    "GaussianNoise": (1, ANY, dropout("GaussianNoise")),
    "SpatialDropout1D": (1, (2,), dropout("SpatialDropout1D")),
    "SpatialDropout2D": (1, (3,), dropout("SpatialDropout2D")),
    "SpatialDropout3D": (0.5, (4,), dropout("SpatialDropout3D")),
}
for rank in (1, 2, 3):
    for kind, share in ("ZeroPadding", (2, 4, 1)), ("Cropping", (1, 2, 1)):
        RECIPES[f"{kind}{rank}D"] = (share[rank - 1], (rank + 1,),
                                     padding(f"{kind}{rank}D", rank))
    for kind, share in ("Max", (4, 10, 2)), ("Average", (3, 5, 2)):
        name = f"{kind}Pooling{rank}D"
        RECIPES[name] = (share[rank - 1], (rank + 1,), pooling(name, rank))
        name = f"Global{name}"
        RECIPES[name] = (share[rank - 1], (rank + 1,), global_pooling(name, rank))
        name = f"Adaptive{kind}Pooling{rank}D"
        RECIPES[name] = (0.6, (rank + 1,), adaptive(name, rank))

# Augmentations and other layers that change nothing where they are not trained, or draw numbers.
RANDOM = {
    "RandomFlip": augmentation("RandomFlip", ["horizontal", "vertical", "horizontal_and_vertical"]),
    "RandomRotation": seeded("RandomRotation"), "RandomZoom": seeded("RandomZoom"),
    "RandomTranslation": augmentation("RandomTranslation", [0.1, 0.2], [0.1, (-0.1, 0.2)]),
    "RandomContrast": seeded("RandomContrast"), "RandomBrightness": seeded("RandomBrightness"),
    "RandomCrop": augmentation("RandomCrop", [4, 5, 6], [4, 5, 6]),
    "RandomShear": seeded("RandomShear"), "RandomHue": seeded("RandomHue"),
    "RandomSaturation": seeded("RandomSaturation"), "RandomErasing": seeded("RandomErasing"),
    "RandomGrayscale": seeded("RandomGrayscale"), "RandomInvert": seeded("RandomInvert"),
    "RandomPerspective": seeded("RandomPerspective"),
    "RandomPosterization": augmentation("RandomPosterization", [3, 5]),
    "RandomSharpness": seeded("RandomSharpness"),
    "RandomColorDegeneration": seeded("RandomColorDegeneration"),
    "RandomColorJitter": augmentation("RandomColorJitter"),
    "RandomGaussianBlur": augmentation("RandomGaussianBlur"),
    "RandomElasticTransform": augmentation("RandomElasticTransform"),
    "AutoContrast": augmentation("AutoContrast"), "Equalization": augmentation("Equalization"),
    "Solarization": augmentation("Solarization"), "AugMix": augmentation("AugMix"),
    "RandAugment": augmentation("RandAugment"), "MixUp": augmentation("MixUp"),
    "CutMix": augmentation("CutMix"),
}
USUAL = ("RandomFlip", "RandomRotation", "RandomZoom", "RandomTranslation", "RandomContrast")
for name, recipe in RANDOM.items():
    RECIPES[name] = (1.5 if name in USUAL else 0.1, (3,), recipe)

NOT_DISTRIBUTED = {"Masking", "Dropout", "GaussianNoise", "GaussianDropout", "AlphaDropout",
                   "BatchNormalization", "SpectralNormalization", *RANDOM}
# Random in training whatever their rates are, or not the same in training on the two sides.
TRAINED_AT_RANDOM = set(RANDOM) - {"AutoContrast", "Equalization"}

# Drawn elsewhere: merges, attention, inputs; without a numerical input; or of other frameworks.
ELSEWHERE = {
    "Add", "Average", "Concatenate", "Dot", "Maximum", "Minimum", "Multiply", "Subtract",
    "MultiHeadAttention", "Attention", "AdditiveAttention", "GroupQueryAttention", "Embedding",
    "ReversibleEmbedding", "InputLayer", "InputSpec", "Layer", "Wrapper", "Lambda", "FlaxLayer",
    "JaxLayer", "TFSMLayer", "TorchModuleWrapper", "LSTMCell", "GRUCell", "SimpleRNNCell",
    "StackedRNNCells", "Pipeline", "MaxNumBoundingBoxes", "ConvLSTM3D",
    "CategoryEncoding", "Discretization", "Hashing", "HashedCrossing", "IntegerLookup",
    "StringLookup", "TextVectorization",
}


def plain(name):
    """A recipe for a class without one: what its constructor requires, as small numbers."""
    def recipe(d, shape):
        needed = [p for p in inspect.signature(getattr(keras.layers, name)).parameters.values()
                  if p.default is p.empty and p.kind == p.POSITIONAL_OR_KEYWORD]
        return call("L." + name, *(2 for _ in needed))
    return recipe


def complete():
    """Adds the classes of keras.layers that have no recipe."""
    names = {}
    for name in dir(keras.layers):
        found = getattr(keras.layers, name)
        if isinstance(found, type) and found.__name__ == name:
            names[name] = found
    for name in sorted(set(names) - set(RECIPES) - ELSEWHERE):
        RECIPES[name] = (0.1, ANY, plain(name))


SUPPORTED = set()    # the names of Cornu's layers in lower case, without underscores


def available(d, name):
    return not d.only or name.lower() in SUPPORTED


def layer(d, shape, names=None):
    """The source of a random layer for inputs of a shape, or None."""
    fits = [n for n, (share, ranks, _) in RECIPES.items()
            if len(shape) in ranks and (names is None or n in names) and available(d, n)
            and (d.noise or n not in TRAINED_AT_RANDOM)]
    if not fits:
        return None
    name = d.choices(fits, [RECIPES[n][0] for n in fits])[0]
    return RECIPES[name][2](d, shape)
