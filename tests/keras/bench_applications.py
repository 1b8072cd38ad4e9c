"""Times and memory of the networks of keras.applications: Cornu, and Keras on TensorFlow and on JAX.

    make bench-keras-applications [ONLY='VGG16 ResNet50'] [SIDES='cornu tensorflow'] PYTHON=...

Each side is a process of its own on one and the same core, and they take turns: each loads the file
and predicts for the first time, ROUNDS times; then each predicts a batch and trains a step on it,
STEPS times in turn after one to warm up. A figure is the median, in seconds of the processor, which
other work on the machine hardly changes; on one core that is what an idle machine needs. Memory is
the largest resident set after all that, less that of the process before it loads the network.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

# The smallest of each family.
NETWORKS = """VGG16 ResNet50 ResNet50V2 InceptionV3 InceptionResNetV2 Xception MobileNet MobileNetV2
MobileNetV3Small DenseNet121 NASNetMobile EfficientNetB0 EfficientNetV2B0 ConvNeXtTiny""".split()
SIDES = os.environ.get("SIDES", "cornu tensorflow jax").split()
ROWS, CLASSES, ROUNDS, STEPS = 8, 10, 3, 3


class Keras:
    """A model in Keras, called as Cornu."""

    def __init__(self, path):
        import keras
        self.model = keras.models.load_model(path)

    def predict(self, x, shape):
        return np.asarray(self.model.predict_on_batch(x))

    def train(self, x, y):
        return float(self.model.train_on_batch(x, y))

    def free(self):
        import keras
        keras.utils.clear_session()


def work(side, core):
    """Answers each command on stdin with its processor time and this process' memory."""
    os.sched_setaffinity(0, {core})
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)     # what libraries print
    if side == "cornu":
        from cornu_library import Cornu as Model
    else:
        os.environ.update(KERAS_BACKEND=side, JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3")
        import keras                                                         # noqa: F401
        Model = Keras
    model = None
    for line in sys.stdin:
        task = json.loads(line)
        if task["do"] == "load":
            if model:
                model.free()
            random = np.random.default_rng(1)
            x = random.uniform(-1, 1, (ROWS, *task["shape"])).astype(np.float32)
            y = np.eye(CLASSES, dtype=np.float32)[np.arange(ROWS)]
        start = time.process_time()
        if task["do"] == "load":
            model = Model(task["path"])
        elif task["do"] == "predict":
            model.predict(x, y.shape)
        elif task["do"] == "train":
            model.train(x, y)
        seconds = time.process_time() - start
        with open("/proc/self/status") as status:     # ru_maxrss would be the parent's, if larger
            memory = int(re.search(r"VmHWM:\s+(\d+) kB", status.read()).group(1)) / 1024
        answers.write(json.dumps({"seconds": seconds, "MiB": memory}) + "\n")
        answers.flush()


class Side:
    """A process that works, and its times by name."""

    def __init__(self, side, core):
        self.process = subprocess.Popen([sys.executable, __file__, "--work", side, str(core)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.times = {}
        self.before = self.ask({"do": "nothing"})["MiB"]

    def ask(self, task):
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def time(self, name, task):
        answer = self.ask(task)
        self.times.setdefault(name, []).append(answer["seconds"])
        self.most = answer["MiB"]

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        return {name: statistics.median(times) for name, times in self.times.items()} | \
            {"MiB": self.most - self.before}


def bench(name, path, shape, core):
    sides = {side: Side(side, core) for side in SIDES}
    for _ in range(ROUNDS):
        for side in sides.values():
            side.time("load", {"do": "load", "path": path, "shape": shape})
            side.time("first", {"do": "predict"})
    for side in sides.values():
        side.ask({"do": "predict"})
        side.ask({"do": "train"})
    for _ in range(STEPS):
        for task in "predict", "train":
            for side in sides.values():
                side.time(task, {"do": task})
    return {side: worker.end() for side, worker in sides.items()}


def row(name, size, found):
    cells = [" / ".join(f"{found[side][key] * scale:{form}}" for side in SIDES)
             for key, scale, form in (("load", 1, ".2f"), ("first", 1, ".2f"),
                                      ("predict", 1e3, ".0f"), ("train", 1e3, ".0f"),
                                      ("MiB", 1, ".0f"))]
    return f"| {name} {size} | " + " | ".join(cells) + " |"


def main():
    if sys.argv[1:2] == ["--work"]:
        return work(sys.argv[2], int(sys.argv[3]))
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import keras

    import applications
    core = max(os.sched_getaffinity(0))
    print(f"{', '.join(SIDES)}; medians\n")
    print("| network, pixels | load, s | first prediction, s | prediction, ms | training step, ms "
          "| memory, MiB |\n| --- | --- | --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or NETWORKS:
            keras.utils.clear_session()
            path = os.path.join(folder, "a.keras")
            model = applications.make(name)
            model.save(path)
            shape = model.input_shape[1:]
            del model
            print(row(name, shape[0], bench(name, path, shape, core)), flush=True)


if __name__ == "__main__":
    main()
