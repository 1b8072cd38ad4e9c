"""Training steps, predictions and memory of the five networks in PyTorch.

    /usr/bin/python3 tests/bench/peers/bench_torch.py --models mnist_cnn --batches 128 --json FILE

One step is forward, loss, backward, optimizer, with dropout on, on a batch that stays where it is;
gradients are cleared by set_to_none. Each setting is a fresh model: float32 or autocast to
bfloat16; eager, or torch.compile where there is one; images channels_last or contiguous; so many
threads. All settings that are asked for take turns, so that a busy moment of the machine falls on
all of them; `compare` takes the best of a dtype. Memory is the process' largest resident set, which
means something if one setting alone was run.
"""

import itertools
import os

import settings
import torch
from settings import numbers, words
from torch import nn

SEQUENCE, VOCABULARY = 100, 256


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


class Shakespeare(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 512)
        self.lstm = nn.LSTM(512, 512, num_layers=2, batch_first=True)
        self.dense = nn.Linear(512, VOCABULARY)

    def forward(self, x):
        return self.dense(self.lstm(self.embedding(x))[0]).flatten(0, 1)


def shakespeare_lstm():
    return Shakespeare()


# Parameters that are trained. PyTorch's LSTM has two biases where Keras' has one: 2 x 2048 more.
MODELS = {f.__name__: (f, trained) for f, trained in
          ((mnist_cnn, 93322), (mnist_cnn_bn, 354002), (mnist_convnet, 34826),
           (fashion_mnist_cnn, 1619084), (shakespeare_lstm, 4460800 + 4096))}


class Setting(settings.Setting):
    """A model in PyTorch, and its optimizer."""

    def __init__(self, name, batch, dtype, mode, layout, threads, predicts=False):
        super().__init__(name, batch, dtype, mode, layout, threads, predicts)
        build, trained = MODELS[name]
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        text = name == "shakespeare_lstm"
        form = getattr(torch, "channels_last" if layout == "channels_last"
                       else "contiguous_format")
        self.model = build()
        counted = sum(p.numel() for p in self.model.parameters() if p.requires_grad)
        assert counted == trained, (name, counted, trained)
        self.model.train(not predicts)
        if text:
            length = 1 if predicts else SEQUENCE
            self.x = torch.randint(0, VOCABULARY, (batch, length))
            self.labels = torch.randint(0, VOCABULARY, (batch * length,))
            self.optimizer = torch.optim.RMSprop(self.model.parameters(), lr=1e-2, alpha=0.9)
        else:
            self.model.to(memory_format=form)
            self.x = torch.rand(batch, 1, 28, 28).to(memory_format=form)
            self.labels = torch.randint(0, 10, (batch,))
            self.optimizer = torch.optim.Adam(self.model.parameters())
        self.forward = torch.compile(self.model) if mode == "compile" else self.model

    def prepare(self):
        torch.set_num_threads(self.threads)

    def once(self):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.dtype == "bf16"):
            if self.predicts:
                with torch.inference_mode():
                    return self.forward(self.x)
            loss = nn.functional.cross_entropy(self.forward(self.x), self.labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()


def main():
    cores = len(os.sched_getaffinity(0))
    newest = hasattr(torch, "compile")
    options = settings.parser(__doc__.splitlines()[0], MODELS)
    options.add_argument("--dtypes", type=words, default=["fp32", "bf16"])
    options.add_argument("--modes", type=words, default=["eager", "compile"] if newest
                         else ["eager"])
    options.add_argument("--layouts", type=words, default=["channels_last", "contiguous"])
    options.add_argument("--threads", type=numbers, default=sorted({1, cores}))
    options.add_argument("--latency", action="store_true", help="predictions, not training steps")
    arguments = settings.parse(options, MODELS)

    built = torch.__config__.show().splitlines()
    about = [line.strip(" -") for line in built
             if "MKL-DNN" in line or "oneDNN" in line or "capability" in line]
    print(f"torch {torch.__version__}; {'; '.join(about)}")
    rows = []
    for name, batch in itertools.product(arguments.models, arguments.batches):
        layouts = arguments.layouts[:1] if name == "shakespeare_lstm" else arguments.layouts
        rows += settings.measure([Setting(name, batch, *choice, predicts=arguments.latency)
                                  for choice in itertools.product(
                                      arguments.dtypes, arguments.modes, layouts,
                                      arguments.threads)], arguments.seconds)
    settings.finish(arguments, {"torch": torch.__version__, "about": about,
                                "latency" if arguments.latency else "steps": rows})


if __name__ == "__main__":
    main()
