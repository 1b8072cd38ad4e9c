"""Networks in PyTorch, with random weights, and what Cornu predicts after from_torch.py.

    check_from_torch.py SCRIPT KERAS_MODEL FOLDER NETWORK...

Prints a line for each network that differs by more than 1e-5, or whose conversion fails.
"""

import pathlib
import subprocess
import sys
from collections import OrderedDict

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def chain(**modules):
    return nn.Sequential(OrderedDict(modules))


def mnist_cnn():
    return chain(conv1=nn.Conv2d(1, 32, 3), a=nn.ReLU(), b=nn.MaxPool2d(2),
                 conv2=nn.Conv2d(32, 64, 3), c=nn.ReLU(), d=nn.MaxPool2d(2),
                 conv3=nn.Conv2d(64, 64, 3), e=nn.ReLU(), f=nn.Flatten(),
                 fc1=nn.Linear(576, 64), g=nn.ReLU(), h=nn.Dropout(0.5), fc2=nn.Linear(64, 10))


def mnist_cnn_bn():
    return chain(conv1=nn.Conv2d(1, 12, 3, padding=1, bias=False), bn1=nn.BatchNorm2d(12),
                 a=nn.ReLU(), conv2=nn.Conv2d(12, 24, 6, 2, 2, bias=False),
                 bn2=nn.BatchNorm2d(24), b=nn.ReLU(),
                 conv3=nn.Conv2d(24, 32, 6, 2, 2, bias=False), bn3=nn.BatchNorm2d(32),
                 c=nn.ReLU(), d=nn.Flatten(), fc1=nn.Linear(1568, 200, bias=False),
                 bn4=nn.BatchNorm1d(200), e=nn.ReLU(), fc2=nn.Linear(200, 10))


def mnist_convnet():      # whose modules have numbers
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3),
                         nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.5),
                         nn.Linear(1600, 10))


def fashion_mnist_cnn():
    modules, channels = OrderedDict(), 1
    for i, filters in enumerate((64, 128, 256), 1):
        modules[f"bn{i}"] = nn.BatchNorm2d(channels)
        modules[f"conv{i}"] = nn.Conv2d(channels, filters, 5, padding=2)
        modules[f"elu{i}"], modules[f"pool{i}"] = nn.ELU(), nn.MaxPool2d(2)
        channels = filters
    return nn.Sequential(modules | OrderedDict(flat=nn.Flatten(), fc1=nn.Linear(2304, 256),
                                               elu=nn.ELU(), fc2=nn.Linear(256, 10)))


class Block(nn.Module):
    """A residual block in torchvision's names: of two convolutions, or a bottleneck of three."""

    def __init__(self, channels, filters, stride, wide, plain, same):
        super().__init__()
        out = filters * (4 if wide else 1)
        plan = [(filters, 1, 1), (filters, 3, stride), (out, 1, 1)] if wide else \
               [(filters, 3, stride), (filters, 3, 1)]
        self.count, self.same = len(plan), same
        before = channels
        for i, (count, kernel, step) in enumerate(plan, 1):
            pad = 0 if same and step > 1 else kernel // 2
            self.add_module(f"conv{i}", nn.Conv2d(before, count, kernel, step, pad, bias=plain))
            self.add_module(f"bn{i}", nn.BatchNorm2d(count))
            before = count
        self.downsample = nn.Sequential()
        if stride > 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=plain))
            if not plain:
                self.downsample.append(nn.BatchNorm2d(out))

    def forward(self, x):
        y = x
        for i in range(1, self.count + 1):
            conv = getattr(self, f"conv{i}")
            if self.same and conv.stride[0] > 1:
                y = F.pad(y, (0, 1, 0, 1))
            y = getattr(self, f"bn{i}")(conv(y))
            y = F.relu(y) if i < self.count else y
        return F.relu(y + self.downsample(x))


class ResNet(nn.Module):
    def __init__(self, blocks, widths, wide=False, plain=False, same=False):
        super().__init__()
        small = len(blocks) == 3
        self.conv1 = nn.Conv2d(1, 16, 3, 1, 1) if small else \
            nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        channels = widths[0]
        self.bn1 = nn.BatchNorm2d(channels)
        self.pool = nn.Identity() if small else nn.MaxPool2d(3, 2, 1)
        self.stages = len(blocks)
        for stage, (count, width) in enumerate(zip(blocks, widths), 1):
            layers = []
            for i in range(count):
                layers.append(Block(channels, width, 2 if stage > 1 and i == 0 else 1, wide,
                                    plain, same))
                channels = width * (4 if wide else 1)
            self.add_module(f"layer{stage}", nn.Sequential(*layers))
        self.fc = nn.Linear(channels, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.bn1(self.conv1(x))))
        for stage in range(1, self.stages + 1):
            x = getattr(self, f"layer{stage}")(x)
        return self.fc(x.mean((2, 3)))


class Text(nn.Module):
    def __init__(self, kind, layers):
        super().__init__()
        self.kind = kind
        self.embedding = nn.Embedding(30, 12)
        cell = nn.LSTM if kind == "lstm" else nn.GRU
        self.add_module(kind, cell(12, 20, layers, batch_first=True))
        self.fc = nn.Linear(20, 30)

    def forward(self, x):
        return self.fc(getattr(self, self.kind)(self.embedding(x.long()))[0])


class Attention(nn.Module):
    """Causal attention of 4 heads, as nanoGPT's."""

    def __init__(self, channels):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)

    def forward(self, x):
        q, k, v = (part.unflatten(2, (4, -1)).transpose(1, 2)
                   for part in self.c_attn(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).flatten(2))


class GPT(nn.Module):
    def __init__(self, vocabulary=30, channels=16, length=20, blocks=2):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(vocabulary, channels), "wpe": nn.Embedding(length, channels),
            "h": nn.ModuleList(nn.ModuleDict({
                "ln_1": nn.LayerNorm(channels), "attn": Attention(channels),
                "ln_2": nn.LayerNorm(channels),
                "mlp": chain(c_fc=nn.Linear(channels, 4 * channels), gelu=nn.GELU(),
                             c_proj=nn.Linear(4 * channels, channels))}) for _ in range(blocks)),
            "ln_f": nn.LayerNorm(channels)})
        self.lm_head = nn.Linear(channels, vocabulary, bias=False)

    def forward(self, x):
        t = self.transformer
        x = t["wte"](x.long()) + t["wpe"].weight
        for block in t["h"]:
            x = x + block["attn"](block["ln_1"](x))
            x = x + block["mlp"](block["ln_2"](x))
        return self.lm_head(t["ln_f"](x))


NETWORKS = {
    "mnist_cnn": mnist_cnn, "mnist_cnn_bn": mnist_cnn_bn, "mnist_convnet": mnist_convnet,
    "fashion_mnist_cnn": fashion_mnist_cnn,
    "resnet20": lambda: ResNet((3, 3, 3), (16, 32, 64), plain=True),
    "resnet20--same": lambda: ResNet((3, 3, 3), (16, 32, 64), plain=True, same=True),
    "resnet18": lambda: ResNet((2, 2, 2, 2), (64, 128, 256, 512)),
    "resnet50": lambda: ResNet((3, 4, 6, 3), (64, 128, 256, 512), wide=True),
    "shakespeare_lstm": lambda: Text("lstm", 2), "shakespeare_gru": lambda: Text("gru", 2),
    "char_gpt": GPT,
}


def randomized(model, x):
    """Biases and scales away from 0 and 1; running statistics of x, so that values stay small."""
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
                module.weight.uniform_(0.5, 1.5)
                module.bias.uniform_(-0.5, 0.5)
                module.momentum = None
        model.train()(x)
        return model.eval()


def arguments_of(name):
    return name.split("--")[0], ["--" + flag for flag in name.split("--")[1:]]


def check(name, script, program, folder):
    torch.manual_seed(3)
    network, flags = arguments_of(name)
    if network == "char_gpt" or "shakespeare" in network:
        x = torch.randint(0, 30, (4, 20 if network == "char_gpt" else 100))
        given = x.numpy().astype(np.float32)
    else:
        x = torch.rand(4, *((3, 224, 224) if network in ("resnet18", "resnet50") else (1, 28, 28)))
        given = x.permute(0, 2, 3, 1).numpy()
        given = given.reshape(4, 784) if network == "mnist_cnn_bn" else given
    model = randomized(NETWORKS[name](), x)
    with torch.no_grad():
        expected = torch.softmax(model(x), -1).numpy()
    state, output = folder / f"{name}.pt", folder / f"{name}.safetensors"
    torch.save(model.state_dict(), state)
    subprocess.run([sys.executable, script, network, state, output, *flags], check=True,
                   stderr=subprocess.PIPE)
    np.savez(folder / "in.npz", x0=given)
    subprocess.run([program, output, folder / "in.npz", folder / "out.npz", "--uncompiled"],
                   check=True, stdout=subprocess.PIPE)
    difference = np.abs(np.load(folder / "out.npz")["p0"] - expected).max()
    spread = expected.std(axis=0).max()
    if not difference <= 1e-5 or spread < 1e-4:
        print(f"{name}: predictions differ by {difference:.2g}, {spread:.2g} among samples")
    return difference


def main():
    script, program, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    for name in sys.argv[4:] or NETWORKS:
        try:
            print(f"# {name}: {check(name, script, program, folder):.2g}", file=sys.stderr)
        except subprocess.CalledProcessError as error:
            print(f"{name}: {(error.stderr or b'').decode()}{error}")


if __name__ == "__main__":
    main()
