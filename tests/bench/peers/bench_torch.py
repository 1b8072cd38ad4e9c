"""Training steps, predictions and memory of the networks in PyTorch (networks_torch.py).

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
from networks_torch import NETWORKS
from settings import numbers, words
from torch.nn import functional

class Setting(settings.Setting):
    """A model in PyTorch, and its optimizer."""

    def __init__(self, name, batch, dtype, mode, layout, threads, predicts=False):
        super().__init__(name, batch, dtype, mode, layout, threads, predicts)
        network = NETWORKS[name]
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        self.model = network.build()
        counted = sum(p.numel() for p in self.model.parameters() if p.requires_grad)
        assert counted == network.parameters, (name, counted, network.parameters)
        self.model.train(not predicts)
        step = (1,) if predicts and network.predictions == network.shape else None   # of text
        self.x, self.labels = network.data(batch, step)
        if len(network.shape) == 3:
            form = getattr(torch, "channels_last" if layout == "channels_last"
                           else "contiguous_format")
            self.model.to(memory_format=form)
            self.x = self.x.to(memory_format=form)
        self.optimizer = network.optimize(self.model.parameters())
        self.forward = torch.compile(self.model) if mode == "compile" else self.model

    def prepare(self):
        torch.set_num_threads(self.threads)

    def once(self):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.dtype == "bf16"):
            if self.predicts:
                with torch.inference_mode():
                    return self.forward(self.x)
            loss = functional.cross_entropy(self.forward(self.x), self.labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()


def main():
    cores = len(os.sched_getaffinity(0))
    newest = hasattr(torch, "compile")
    options = settings.parser(__doc__.splitlines()[0], NETWORKS)
    options.add_argument("--dtypes", type=words, default=["fp32", "bf16"])
    options.add_argument("--modes", type=words, default=["eager", "compile"] if newest
                         else ["eager"])
    options.add_argument("--layouts", type=words, default=["channels_last", "contiguous"])
    options.add_argument("--threads", type=numbers, default=sorted({1, cores}))
    options.add_argument("--latency", action="store_true", help="predictions, not training steps")
    arguments = settings.parse(options, NETWORKS)

    built = torch.__config__.show().splitlines()
    about = [line.strip(" -") for line in built
             if "MKL-DNN" in line or "oneDNN" in line or "capability" in line]
    print(f"torch {torch.__version__}; {'; '.join(about)}")
    rows = []
    for name, batch in itertools.product(arguments.models, arguments.batches):
        images = len(NETWORKS[name].shape) == 3
        layouts = arguments.layouts if images else arguments.layouts[:1]
        rows += settings.measure([Setting(name, batch, *choice, predicts=arguments.latency)
                                  for choice in itertools.product(
                                      arguments.dtypes, arguments.modes, layouts,
                                      arguments.threads)], arguments.seconds)
    settings.finish(arguments, {"torch": torch.__version__, "about": about,
                                "latency" if arguments.latency else "steps": rows})


if __name__ == "__main__":
    main()
