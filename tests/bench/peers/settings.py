"""What the scripts of all peers share: settings that take turns, their times, and the JSON."""

import argparse
import json
import resource
import statistics
import time


class Setting:
    """A network with its optimizer and batch under one choice of dtype, mode, layout, threads.
    Subclasses define once()."""

    def __init__(self, name, batch, dtype, mode, layout, threads, predicts=False):
        self.name, self.batch, self.dtype, self.mode = name, batch, dtype, mode
        self.layout, self.threads, self.predicts = layout, threads, predicts
        self.times, self.busy = [], []          # of each run: passed, and of all processors

    def prepare(self):
        """Called before each run, outside the time."""

    def once(self):
        """One step, or one prediction."""
        raise NotImplementedError

    def run(self, keep=True):
        self.prepare()
        busy, start = time.process_time(), time.perf_counter()
        self.once()
        if keep:
            self.times.append(1e3 * (time.perf_counter() - start))
            self.busy.append(1e3 * (time.process_time() - busy))

    def row(self):
        ordered = sorted(self.times)
        at = lambda part: ordered[round(part * (len(ordered) - 1))]
        row = {"model": self.name, "batch": self.batch, "dtype": self.dtype, "mode": self.mode,
               "layout": self.layout, "threads": self.threads, "rounds": len(ordered),
               "ms": statistics.median(ordered), "ms_low": ordered[0], "ms_high": at(0.9),
               "cpu_ms": statistics.median(self.busy)}
        if self.predicts:
            row.update(ms_p95=at(0.95), ms_p99=at(0.99))
        row["samples_per_s"] = 1e3 * self.batch / row["ms"]
        return row


def measure(settings, seconds):
    """Rows of those that work here, fastest first; failures are printed and left out."""
    working = []
    for setting in settings:
        try:
            for _ in range(3):                  # compiles, creates primitives, touches memory
                setting.run(keep=False)
            working.append(setting)
        except (RuntimeError, TypeError, NotImplementedError) as error:
            print(f"  {setting.name} {setting.dtype} {setting.mode}: not here, "
                  f"{str(error).strip().splitlines()[0][:80]}")
    begin, rounds = time.perf_counter(), 0
    while working and (rounds < 3 or time.perf_counter() - begin < seconds * len(working)):
        for setting in working:
            setting.run()
        rounds += 1
    rows = sorted((s.row() for s in working), key=lambda row: row["ms"])
    for row in rows:
        print("  {model:22s} {batch:5d} {dtype:4s} {mode:7s} {layout:13s} {threads:2d} threads "
              "{ms:10.3f} ms, fastest {ms_low:.3f}, processors {cpu_ms:.3f}".format(**row),
              flush=True)
    return rows


def words(text):
    return text.split(",")


def numbers(text):
    return [int(word) for word in text.split(",")]


def parser(purpose, models):
    """The options that every peer has. Call parse() with the result."""
    result = argparse.ArgumentParser(description=purpose)
    result.add_argument("--models", type=words, default=list(models))
    result.add_argument("--batches", type=numbers, default=[128, 1024])
    result.add_argument("--seconds", type=float, default=2.0, help="for each setting, about")
    result.add_argument("--json", metavar="FILE")
    return result


def parse(options, models):
    arguments = options.parse_args()
    for name in arguments.models:
        if name not in models:
            options.error(f"--models has {name}, expected {', '.join(models)}")
    return arguments


def finish(arguments, page):
    """Prints the peak of memory, and writes the page."""
    page["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  at most {page['peak_mib']:.0f} MiB resident")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(page, file, indent=1)
