"""The networks that are measured, in PyTorch: those of models/ and of tests/bench/networks.c.

NETWORKS[name] is a Network: build() gives the module, x(batch) its input, labels and logits have as
many rows as `rows(batch)`, `parameters` is the number that is trained, as Cornu counts it.
"""

import torch
from torch import nn
from torch.nn import functional as F

SEQUENCE, VOCABULARY = 100, 256
FIELDS, FIELD_ROWS = 26, 100000


# ---- Models that are published: models/ ----

def mnist_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(576, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 10),
    )


def without_scale(norm):
    norm.weight.requires_grad_(False)           # and stays 1
    return norm


def mnist_cnn_bn():
    def normalized(channels, kind=nn.BatchNorm2d):
        return without_scale(kind(channels, eps=1e-3, momentum=0.01))
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1, bias=False), normalized(12), nn.ReLU(),
        nn.Conv2d(12, 24, 6, 2, padding=2, bias=False), normalized(24), nn.ReLU(),
        nn.Conv2d(24, 32, 6, 2, padding=2, bias=False), normalized(32), nn.ReLU(),
        nn.Flatten(), nn.Linear(1568, 200, bias=False), normalized(200, nn.BatchNorm1d),
        nn.ReLU(), nn.Dropout(0.4), nn.Linear(200, 10),
    )


def mnist_convnet():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.5), nn.Linear(1600, 10),
    )


def fashion_mnist_cnn():
    layers, channels = [], 1
    for filters in (64, 128, 256):
        layers += [nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01),
                   nn.Conv2d(channels, filters, 5, padding=2), nn.ELU(), nn.MaxPool2d(2),
                   nn.Dropout(0.25)]
        channels = filters
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(2304, 256), nn.ELU(), nn.Dropout(0.5),
                         nn.Linear(256, 10))


class Residual(nn.Module):
    def __init__(self, before, filters, stride):
        super().__init__()
        self.first = nn.Conv2d(before, filters, 3, stride, padding=1)
        self.second = nn.Conv2d(filters, filters, 3, padding=1)
        self.norms = nn.ModuleList(nn.BatchNorm2d(filters, eps=1e-3, momentum=0.01)
                                   for _ in range(2))
        self.shortcut = nn.Conv2d(before, filters, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        y = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.shortcut(x) + self.norms[1](self.second(y)))


def resnet20():
    blocks, before = [], 16
    for filters in (16, 32, 64):
        for i in range(3):
            blocks.append(Residual(before, filters, 2 if filters > 16 and i == 0 else 1))
            before = filters
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16, eps=1e-3, momentum=0.01),
                         nn.ReLU(), *blocks, nn.AvgPool2d(7), nn.Flatten(), nn.Linear(64, 10))


class Recurrent(nn.Module):
    """Logits of each step."""

    def __init__(self, kind, layers, units=512):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, units)
        self.recurrent = kind(units, units, num_layers=layers, batch_first=True)
        self.dense = nn.Linear(units, VOCABULARY)

    def forward(self, x):
        return self.dense(self.recurrent(self.embedding(x))[0]).flatten(0, 1)


class Attention(nn.Module):
    def __init__(self, channels, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.all = nn.Linear(channels, 3 * channels)
        self.out = nn.Linear(channels, channels)

    def forward(self, x):
        batch, steps, channels = x.shape
        q, k, v = self.all(x).view(batch, steps, 3, self.heads, channels // self.heads).permute(
            2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(batch, steps, channels))


class Before(nn.Module):
    """A block of char_gpt or vit: normalized before attention and before the dense layers."""

    def __init__(self, channels, heads, causal=True, dropout=0.1, eps=1e-5):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(channels, eps=eps) for _ in range(2))
        self.attention = Attention(channels, heads, causal)
        self.up, self.down = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()

    def forward(self, x):
        x = x + self.dropout(self.attention(self.norms[0](x)))
        return x + self.dropout(self.down(F.gelu(self.up(self.norms[1](x)))))


class CharGpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, 128), nn.Embedding(SEQUENCE, 128)
        self.dropout = nn.Dropout(0.1)
        self.blocks = nn.Sequential(*[Before(128, 4) for _ in range(4)], nn.LayerNorm(128),
                                    nn.Linear(128, VOCABULARY))

    def forward(self, x):
        return self.blocks(self.dropout(self.tokens(x) + self.places.weight)).flatten(0, 1)


# ---- Those of tests/bench/networks.c ----

def mlp():
    return nn.Sequential(nn.Linear(784, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(),
                         nn.Linear(4096, 10))


def embeddings():
    return nn.Sequential(nn.Embedding(FIELDS * FIELD_ROWS, 16), nn.Flatten(),
                         nn.Linear(16 * FIELDS, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(),
                         nn.Linear(128, 2))


def network_length(i, steps):
    least = steps // 4
    return least + i * 37 % (steps - least + 1)


class MaskedLstm(nn.Module):
    """Rows of different lengths, packed; both directions of the last valid step."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20000, 128)
        self.lstm = nn.LSTM(128, 64, num_layers=2, bidirectional=True, batch_first=True)
        self.dense = nn.Linear(128, 2)

    def forward(self, x):
        lengths = torch.tensor([network_length(i, x.shape[1]) for i in range(len(x))])
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding(x), lengths, batch_first=True,
                                                   enforce_sorted=False)
        last = self.lstm(packed)[1][0]
        return self.dense(torch.cat((last[-2], last[-1]), 1))


class After(nn.Module):
    """A block of the encoder: normalized after attention and after the dense layers."""

    def __init__(self, channels, heads):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(channels, eps=1e-3) for _ in range(2))
        self.attention = Attention(channels, heads, causal=False)
        self.up, self.down = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)

    def forward(self, x):
        x = self.norms[0](x + self.attention(x))
        return self.norms[1](x + self.down(F.relu(self.up(x))))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(20000, 256), nn.Embedding(128, 256)
        self.blocks = nn.Sequential(After(256, 4), After(256, 4))
        self.dense = nn.Linear(256, 2)

    def forward(self, x):
        return self.dense(self.blocks(self.tokens(x) + self.places.weight).mean(1))


def waves():
    layers, channels = [], 1
    for filters, kernel, stride in ((128, 80, 4), (128, 3, 1), (256, 3, 1), (512, 3, 1)):
        layers += [nn.Conv1d(channels, filters, kernel, stride),
                   nn.BatchNorm1d(filters, eps=1e-3, momentum=0.01), nn.ReLU(), nn.MaxPool1d(4)]
        channels = filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(512, 10))


def normalized(before, filters, kernel, stride=1, groups=1, activation=None):
    layers = [nn.Conv2d(before, filters, kernel, stride, kernel // 2, groups=groups, bias=False),
              nn.BatchNorm2d(filters, eps=1e-3, momentum=0.01)]
    return nn.Sequential(*layers, *[activation()] if activation else [])


def depthwise():
    layers, before = [normalized(3, 32, 3, 2, activation=nn.ReLU)], 32
    for filters, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)):
        layers += [normalized(before, before, 3, stride, before, nn.ReLU),
                   normalized(before, filters, 1, activation=nn.ReLU)]
        before = filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


class Unet(nn.Module):
    """Logits of each pixel."""

    def __init__(self, levels=3, channels=32):
        super().__init__()
        def twice(before, filters):
            return nn.Sequential(nn.Conv2d(before, filters, 3, padding=1), nn.ReLU(),
                                 nn.Conv2d(filters, filters, 3, padding=1), nn.ReLU())
        widths = [channels << i for i in range(levels + 1)]
        self.down = nn.ModuleList(twice(widths[i - 1] if i else 1, widths[i])
                                  for i in range(levels + 1))
        self.enlarge = nn.ModuleList(nn.ConvTranspose2d(widths[i + 1], widths[i], 2, 2)
                                     for i in range(levels))
        self.up = nn.ModuleList(twice(2 * widths[i], widths[i]) for i in range(levels))
        self.classes = nn.Conv2d(channels, 2, 1)

    def forward(self, x):
        maps = []
        for i, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if i else x)
            maps.append(x)
        for i in reversed(range(len(self.up))):
            x = self.up[i](torch.cat((maps[i], self.enlarge[i](x)), 1))
        return self.classes(x)


class PatchTransformer(nn.Module):
    """vit."""

    def __init__(self, patches=64, channels=192):
        super().__init__()
        self.patch = nn.Conv2d(3, channels, 8, 8)
        self.places = nn.Embedding(patches, channels)
        blocks = [Before(channels, 3, False, 0.0, 1e-3) for _ in range(4)]
        self.blocks = nn.Sequential(*blocks, nn.LayerNorm(channels, eps=1e-3))
        self.dense = nn.Linear(channels, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.places.weight
        return self.dense(self.blocks(x).mean(1))


class ChannelNorm(nn.LayerNorm):
    """A layer normalization over the channels of an image."""

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class NextBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-3)
        self.up, self.down = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        return x + self.down(F.gelu(self.up(y))).permute(0, 3, 1, 2)


def convnext():
    layers, before = [], 3
    for i, channels in enumerate((64, 128, 256)):
        patch = 2 if i else 4
        layers += [ChannelNorm(before, eps=1e-3)] if i else []
        layers += [nn.Conv2d(before, channels, patch, patch), NextBlock(channels),
                   NextBlock(channels)]
        before = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10))


class Aggregated(nn.Module):
    def __init__(self, before, channels, stride):
        super().__init__()
        self.branch = nn.Sequential(
            normalized(before, channels, 1, activation=nn.ReLU),
            normalized(channels, channels, 3, stride, groups=8, activation=nn.ReLU),
            normalized(channels, 2 * channels, 1))
        self.shortcut = normalized(before, 2 * channels, 1, stride)

    def forward(self, x):
        return F.relu(self.shortcut(x) + self.branch(x))


def resnext():
    return nn.Sequential(normalized(3, 64, 3, activation=nn.ReLU), Aggregated(64, 64, 1),
                         Aggregated(128, 128, 2), Aggregated(256, 256, 2),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


class Excitation(nn.Module):
    def __init__(self, channels, few, activation):
        super().__init__()
        self.scale = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, few, 1),
                                   activation(), nn.Conv2d(few, channels, 1), nn.Sigmoid())

    def forward(self, x):
        return x * self.scale(x)


class Inverted(nn.Module):
    def __init__(self, before, filters, kernel, stride, activation, squeeze):
        super().__init__()
        wide = 6 * before
        layers = [normalized(before, wide, 1, activation=activation),
                  normalized(wide, wide, kernel, stride, groups=wide, activation=activation)]
        layers += [Excitation(wide, before // 4, activation)] if squeeze else []
        self.branch = nn.Sequential(*layers, normalized(wide, filters, 1))
        self.residual = stride == 1 and before == filters

    def forward(self, x):
        return x + self.branch(x) if self.residual else self.branch(x)


def inverted_residuals(activation, squeeze):
    layers, before = [normalized(3, 16, 3, 2, activation=activation)], 16
    for i, (filters, stride) in enumerate(((24, 2), (24, 1), (40, 2), (40, 1), (80, 2), (80, 1))):
        kernel = 5 if squeeze and i // 2 == 1 else 3
        layers.append(Inverted(before, filters, kernel, stride, activation, squeeze))
        before = filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(80, 10))


def generator():
    layers, before = [nn.Linear(128, 8 * 8 * 128), nn.Unflatten(1, (128, 8, 8))], 128
    for filters in (128, 256, 256):
        layers += [nn.ConvTranspose2d(before, filters, 4, 2, padding=1), nn.ReLU()]
        before = filters
    return nn.Sequential(*layers, nn.Conv2d(256, 2, 5, padding=2))


# ---- All ----

class Network:
    """A network with its data. `shape` is that of x without the batch: of images if it has three
    extents, of indices below `vocabulary` if that is given."""

    def __init__(self, build, parameters, shape, classes=10, vocabulary=0, predictions=(),
                 optimizer="adam", padded=False):
        self.build, self.parameters, self.shape, self.classes = build, parameters, shape, classes
        self.vocabulary, self.predictions, self.optimizer = vocabulary, predictions, optimizer
        self.padded = padded

    def data(self, batch, shape=None):
        """x, and labels: (batch), or one for each step, flattened, or one for each pixel."""
        shape = shape or self.shape
        x = (torch.randint(1, self.vocabulary, (batch, *shape)) if self.vocabulary
             else torch.rand(batch, *shape))
        if self.padded:
            for i in range(batch):
                x[i, network_length(i, shape[0]):] = 0
        labels = torch.randint(0, self.classes, (batch, *self.predictions))
        return x, labels.flatten() if len(self.predictions) == 1 else labels

    def optimize(self, parameters):
        if self.optimizer == "rmsprop":
            return torch.optim.RMSprop(parameters, lr=1e-2, alpha=0.9)
        if self.optimizer == "adamw":
            return torch.optim.AdamW(parameters, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.01)
        return torch.optim.Adam(parameters)


IMAGE = (1, 28, 28)
TEXT = {"shape": (SEQUENCE,), "classes": VOCABULARY, "vocabulary": VOCABULARY,
        "predictions": (SEQUENCE,)}

# Parameters that are trained. PyTorch's LSTM has two biases for each gate where Keras' has one.
NETWORKS = {
    "mnist_cnn": Network(mnist_cnn, 93322, IMAGE),
    "mnist_cnn_bn": Network(mnist_cnn_bn, 354002, IMAGE),
    "mnist_convnet": Network(mnist_convnet, 34826, IMAGE),
    "fashion_mnist_cnn": Network(fashion_mnist_cnn, 1619084, IMAGE),
    "resnet20": Network(resnet20, 272778, IMAGE),
    "shakespeare_lstm": Network(lambda: Recurrent(nn.LSTM, 2), 4460800 + 4096,
                                optimizer="rmsprop", **TEXT),
    "char_gpt": Network(CharGpt, 871936, optimizer="adamw", **TEXT),
    "mlp": Network(mlp, 20037642, (784,)),
    "embeddings": Network(embeddings, 41739906, (FIELDS,), 2, FIELDS * FIELD_ROWS),
    "masked_lstm": Network(MaskedLstm, 2757890 + 1024, (200,), 2, 20000, padded=True),
    "gru": Network(lambda: Recurrent(nn.GRU, 1), 1838336, **TEXT),
    "encoder": Network(Encoder, 6732802, (128,), 2, 20000),
    "waves": Network(waves, 559114, (1, 16000)),
    "depthwise": Network(depthwise, 274250, (3, 96, 96)),
    "unet": Network(Unet, 1925058, (1, 128, 128), 2, predictions=(128, 128)),
    "simple_rnn": Network(lambda: Recurrent(nn.RNN, 1, 256), 262656 + 256, **TEXT),
    "vit": Network(PatchTransformer, 1831114, (3, 64, 64)),
    "convnext": Network(convnext, 1597642, (3, 64, 64)),
    "resnext": Network(resnext, 539210, (3, 32, 32)),
    "mobile": Network(lambda: inverted_residuals(nn.ReLU6, False), 164090, (3, 96, 96)),
    "efficient": Network(lambda: inverted_residuals(nn.SiLU, True), 204658, (3, 96, 96)),
    "generator": Network(generator, 2905218, (128,), 2, predictions=(64, 64)),
}
