"""The networks that from_torch.py knows, with the names that their modules have in PyTorch."""

import numpy as np

from torch_layers import Network


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
    """A block of two convolutions, or of three with the stride in the second, in torchvision's
    names. The shortcut of models/resnet20.c is not normalized."""
    pad = "same" if n.same or stride == 1 else 1
    x, out = n.last, filters * expansion
    plan = [(filters, 3, stride, pad), (out, 3, 1, "same")]
    if expansion > 1:
        plan = [(filters, 1, 1, 0), (filters, 3, stride, pad), (out, 1, 1, 0)]
    before = channels
    for i, (count, *how) in enumerate(plan[:-1], 1):
        n.conv(f"{entry}.conv{i}", before, count, *how, bias=bias)
        n.norm(f"{entry}.bn{i}", count)
        n.relu()
        before = count
    main = [lambda: n.conv(f"{entry}.conv{len(plan)}", before, *plan[-1], bias=bias),
            lambda: n.norm(f"{entry}.bn{len(plan)}", out)]
    short = []
    if stride > 1 or channels != out:
        first = f"{entry}.downsample"
        normalized = n.name != "resnet20" or first + ".1.weight" in n.state
        short = [lambda: n.conv(first + ".0", channels, out, 1, stride, bias=bias)]
        short += [lambda: n.norm(first + ".1", out)] if normalized else []
    # Keras lists the weights by their distance to the end, of equal ones those of x first.
    y = n.last
    for i in (2, 1):
        if len(short) >= i:
            n.last = x
            x = short[len(short) - i]()
        n.last = y
        y = main[2 - i]()
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
    n.dense("fc", channels, n.shape("fc.weight", (1000, 0))[0], "softmax")
    n.notes.append("floats are expected as in training, (pixels / 255 - mean) / std, and integers "
                   "are only divided by 255: normalize them before predicting; padding is "
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


def char_gpt(n):
    """nanoGPT's names and sizes, with 4 heads; its head has no bias."""
    length, channels = n.shape("transformer.wpe.weight", (128, 128))
    vocabulary, heads = n.shape("transformer.wte.weight", (256, 128))[0], 4
    n.input(length)
    text = n.add("Embedding", [("embeddings", n.take("transformer.wte.weight", vocabulary,
                                                     channels))],
                 input_dim=vocabulary, output_dim=channels)
    place = n.add("PositionEmbedding", [("embeddings", n.take("transformer.wpe.weight", length,
                                                              channels))], sequence_length=length)
    n.add("Add", inputs=[text, place])
    x = n.add("Dropout", rate=0.1)
    layers = max(1, sum(entry.endswith(".attn.c_attn.weight") for entry in n.state))
    for i in range(layers):
        block = f"transformer.h.{i}"
        n.state.pop(f"{block}.attn.bias", None)     # the mask, in older versions
        n.layer_norm(f"{block}.ln_1", channels)
        n.attention(f"{block}.attn", channels, heads)
        y = n.add("Dropout", rate=0.1)
        x = n.add("Add", inputs=[x, y])
        n.layer_norm(f"{block}.ln_2", channels)
        n.dense(f"{block}.mlp.c_fc", channels, 4 * channels, "gelu", bias="may")
        n.dense(f"{block}.mlp.c_proj", 4 * channels, channels, bias="may")
        y = n.add("Dropout", rate=0.1)
        x = n.add("Add", inputs=[x, y])
    n.layer_norm("transformer.ln_f", channels)
    n.dense("lm_head", channels, vocabulary, "softmax", bias="may")


NETWORKS = {
    "mnist_cnn": mnist_cnn, "mnist_cnn_bn": mnist_cnn_bn, "mnist_convnet": mnist_convnet,
    "fashion_mnist_cnn": fashion_mnist_cnn, "resnet20": resnet20,
    "shakespeare_lstm": lambda n: recurrent(n, "lstm"),
    "shakespeare_lstm_quick": lambda n: recurrent(n, "lstm"),
    "shakespeare_gru": lambda n: recurrent(n, "gru"),
    "char_gpt": char_gpt,
    "resnet18": lambda n: torchvision(n, (2, 2, 2, 2), 1),
    "resnet34": lambda n: torchvision(n, (3, 4, 6, 3), 1),
    "resnet50": lambda n: torchvision(n, (3, 4, 6, 3), 4),
    "resnet101": lambda n: torchvision(n, (3, 4, 23, 3), 4),
    "resnet152": lambda n: torchvision(n, (3, 8, 36, 3), 4),
}


def build(name, state, same):
    network = Network(name, state, same)
    NETWORKS[name](network)
    if any(layer["class_name"] == "BatchNormalization" for layer in network.layers):
        network.notes.append("batch normalization has PyTorch's epsilon, 1e-5; the programs' own "
                             "networks, into which --load reads weights alone, have 1e-3")
    return network
