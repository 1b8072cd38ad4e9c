"""Times and memory of the networks of keras.applications: Cornu, and Keras on TensorFlow and on JAX.

    make bench-keras-applications [ONLY='VGG16 ResNet50'] [SIDES='cornu tensorflow'] PYTHON=...

The sides take turns (sides.py): each loads the file and predicts for the first time, ROUNDS times;
then each predicts a batch and trains a step on it, STEPS times in turn after one to warm up. A
figure is the median. Memory is the largest resident set after all that, less that of the process
before it loads the network.
"""

import os
import sys
import tempfile

import numpy as np

from sides import Side, answer

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


def work():
    """The tasks of a side: its network stands in `at`."""
    at = {}

    def prepare(side):
        if side == "cornu":
            from cornu_library import Cornu as Model
        else:
            import keras                                                     # noqa: F401
            Model = Keras
        at.update(Model=Model, model=None)

    def load(task):
        if at["model"]:
            at["model"].free()
        random = np.random.default_rng(1)
        at["x"] = random.uniform(-1, 1, (ROWS, *task["shape"])).astype(np.float32)
        at["y"] = np.eye(CLASSES, dtype=np.float32)[np.arange(ROWS)]
        at["model"] = at["Model"](task["path"])

    answer(prepare, {"load": load,
                     "predict": lambda task: at["model"].predict(at["x"], at["y"].shape),
                     "train": lambda task: at["model"].train(at["x"], at["y"])})


def bench(name, path, shape, core):
    sides = {side: Side(__file__, side, core) for side in SIDES}
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
        return work()
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
