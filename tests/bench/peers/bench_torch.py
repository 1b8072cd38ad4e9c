"""Eager PyTorch training steps of mnist_cnn and mnist_convnet, float32, in several settings.

    /usr/bin/python3 tests/bench/peers/bench_torch.py [--steps N] [--batch B] [--model NAME]

One step is forward, cross-entropy, backward, Adam, with dropout on. The settings: memory
format (channels_last or contiguous), 1 or 2 threads, oneDNN (mkldnn) on or off; each is a
fresh model. Settings are visited in rounds, so a busy moment of the machine falls on all of
them; printed are the median and the fastest step of all rounds, in ms, best setting first.
Gradients are cleared by set_to_none, the faster of PyTorch's two ways.
"""

import argparse
import itertools
import statistics
import time

import torch
from torch import nn


def mnist_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(576, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 10),
    )


def mnist_convnet():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.5), nn.Linear(1600, 10),
    )


MODELS = {f.__name__: (f, parameters) for f, parameters in
          ((mnist_cnn, 93322), (mnist_convnet, 34826))}


class Setting:
    """A model with its optimizer and batch under one choice of format, threads and oneDNN."""

    def __init__(self, build, batch, layout, threads, onednn):
        self.name = f"{layout:13s} {threads} thread{'s'[:threads - 1]:1s} mkldnn {onednn}"
        self.threads, self.onednn, self.times = threads, onednn == "on", []
        torch.manual_seed(0)
        form = getattr(torch, "channels_last" if layout == "channels_last"
                       else "contiguous_format")
        self.model = build().to(memory_format=form).train()
        self.x = torch.rand(batch, 1, 28, 28).to(memory_format=form)
        self.labels = torch.randint(0, 10, (batch,))
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def steps(self, count):
        torch.set_num_threads(self.threads)
        with torch.backends.mkldnn.flags(enabled=self.onednn):
            for _ in range(count):
                start = time.perf_counter()
                loss = nn.functional.cross_entropy(self.model(self.x), self.labels)
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                self.optimizer.step()
                self.times.append((time.perf_counter() - start) * 1e3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60, help="steps per setting")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--model", choices=MODELS, action="append")
    arguments = parser.parse_args()

    built = torch.__config__.show().splitlines()
    about = [line.strip(" -") for line in built if "MKL-DNN" in line or "capability" in line]
    print(f"torch {torch.__version__}; {'; '.join(about)}")
    print(f"batch {arguments.batch}, float32, {arguments.steps} steps per setting")
    for name in arguments.model or MODELS:
        build, parameters = MODELS[name]
        assert sum(p.numel() for p in build().parameters()) == parameters
        choices = itertools.product(("contiguous", "channels_last"), (1, 2), ("on", "off"))
        settings = [Setting(build, arguments.batch, *choice) for choice in choices]
        for setting in settings:
            setting.steps(3)                    # primitives are created, memory is touched
            setting.times.clear()
        for _ in range(arguments.rounds):
            for setting in settings:
                setting.steps(max(1, arguments.steps // arguments.rounds))
        print(f"\n{name} ({parameters:,} parameters)           median ms   fastest ms")
        for s in sorted(settings, key=lambda s: statistics.median(s.times)):
            print(f"  {s.name:36s} {statistics.median(s.times):10.2f} {min(s.times):12.2f}")


if __name__ == "__main__":
    main()
