#!/usr/bin/env python3
"""PyTorch's EmbeddingBag(sparse=True): a step on 4,096 of 10^5, 10^6, 10^7 rows of 32 columns, by
SGD, Adagrad and SparseAdam. What tests/bench/embedding.c does, with the same batches."""

import argparse
import gc
import json
import os
import statistics
import time

import torch

LOOKUPS, COLUMNS, BATCHES, STEPS = 4096, 32, 64, 8
SIZES = [100000, 1000000, 10000000]
OPTIMIZERS = {
    "sgd": lambda w: torch.optim.SGD(w, lr=0.01),
    "adagrad": lambda w: torch.optim.Adagrad(w, lr=0.001, initial_accumulator_value=0.1),
    "adam": lambda w: torch.optim.SparseAdam(w, lr=0.001),
}


def batches(rows):
    state, mask, result = 1, (1 << 64) - 1, []
    for _ in range(BATCHES * LOOKUPS):          # Knuth's MMIX generator
        state = (state * 6364136223846793005 + 1442695040888963407) & mask
        result.append((state >> 33) % rows)
    return list(torch.tensor(result).reshape(BATCHES, LOOKUPS))


class Table:
    def __init__(self, name, rows):
        weight = torch.zeros(rows, COLUMNS)
        self.bag = torch.nn.EmbeddingBag(rows, COLUMNS, sparse=True, mode="sum", _weight=weight)
        self.optimizer = OPTIMIZERS[name](list(self.bag.parameters()))
        self.batches, self.next = batches(rows), 0
        self.offsets = torch.arange(LOOKUPS)
        self.times = []

    def run(self, keep=True):
        start = time.perf_counter()
        for _ in range(STEPS):
            indices = self.batches[self.next % BATCHES]
            self.next += 1
            loss = (self.bag(indices, self.offsets) - 1).square().sum()
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
        if keep:
            self.times.append(1e6 * (time.perf_counter() - start) / STEPS)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=1.0, help="for each table, about")
    options.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    options.add_argument("--json", metavar="FILE")
    arguments = options.parse_args()
    torch.set_num_threads(arguments.threads)
    page = {"torch": torch.__version__, "embedding": []}
    for name in OPTIMIZERS:
        tables = [Table(name, rows) for rows in SIZES]
        for _ in range(BATCHES // STEPS):
            for table in tables:
                table.run(keep=False)
        begin = time.perf_counter()
        while time.perf_counter() - begin < arguments.seconds * len(tables):
            for table in tables:
                table.run()
        for rows, table in zip(SIZES, tables):
            row = {"optimizer": name, "rows": rows, "us": statistics.median(table.times),
                   "us_low": min(table.times)}
            page["embedding"].append(row)
            print("{optimizer:8s} {rows:10d} {us:9.1f} {us_low:9.1f}".format(**row), flush=True)
        del tables, table
        gc.collect()
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(page, file, indent=1)


if __name__ == "__main__":
    main()
