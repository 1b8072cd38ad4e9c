"""Processes that take turns: one for each side of a comparison, all on one and the same core.

A script that compares calls `Side(__file__, side, core)` for each side, and `answer` where it is
started with --work. Times are in seconds of the processor, which other work on the machine hardly
changes; on one core that is what an idle machine needs.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time


def answer(prepare, tasks):
    """The process of a side: makes ready by `prepare(side)` and then, for each line on stdin,
    {"do": name, ...}, calls tasks[name](task) and answers with its time and memory, and with what
    the task returns, if that is a dictionary."""
    side, core = sys.argv[2:4]
    os.sched_setaffinity(0, {int(core)})
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)     # what libraries print
    os.environ.update(KERAS_BACKEND=side if side != "cornu" else "jax", JAX_PLATFORMS="cpu",
                      TF_CPP_MIN_LOG_LEVEL="3")
    prepare(side)
    for line in sys.stdin:
        task = json.loads(line)
        start = time.process_time()
        more = tasks[task["do"]](task) if task["do"] in tasks else None
        seconds = time.process_time() - start
        with open("/proc/self/status") as status:     # ru_maxrss would be the parent's, if larger
            memory = int(re.search(r"VmHWM:\s+(\d+) kB", status.read()).group(1)) / 1024
        answers.write(json.dumps({"seconds": seconds, "MiB": memory} | (more or {})) + "\n")
        answers.flush()


class Side:
    """A process that works, and its times by name."""

    def __init__(self, script, side, core):
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen([sys.executable, script, "--work", side, str(core)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True)
        self.times = {}
        self.before = self.most = self.ask({"do": "nothing"})["MiB"]

    def ask(self, task):
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.log.seek(0)
            raise RuntimeError(self.log.read().strip().split("\n")[-1])
        return json.loads(line)

    def time(self, name, task):
        answer = self.ask(task)
        self.times.setdefault(name, []).append(answer["seconds"])
        self.most = answer["MiB"]

    def end(self):
        """Medians by name, and the memory beside that of before the first task."""
        self.process.stdin.close()
        self.process.wait()
        return {name: statistics.median(times) for name, times in self.times.items()} | \
            {"MiB": self.most - self.before}
