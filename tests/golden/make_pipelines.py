"""What operations of tf.data (TensorFlow) yield: writes pipelines/elements.json, by case the
elements, each a list of components; pipelines/shares.json, how often elements drawn at random come
from each source or class, of many."""

import json
import pathlib
import platform

import numpy as np
import tensorflow as tf

from pipeline_cases import Cases, listed

HERE = pathlib.Path(__file__).resolve().parent / "pipelines"
Dataset = tf.data.Dataset
SEQUENCE = (tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.int32))


def shares():
    """Elements of each of several, of `of`; distributions are given in full."""
    of = 20000
    def count(dataset, classes):
        seen = np.zeros(classes, int)
        for element in dataset.take(of).as_numpy_iterator():
            seen[int(element)] += 1
        return seen.tolist()
    weights = [0.5, 0.2, 0.3]
    sources = [Dataset.from_tensors(i).repeat() for i in range(3)]
    yield "sample", count(Dataset.sample_from_datasets(sources, weights, seed=3), 3)
    initial, target = [0.6, 0.3, 0.1], [0.2, 0.3, 0.5]
    numbers = np.random.default_rng(0).choice(3, 200000, p=initial).astype(np.int32)
    given = Dataset.from_tensor_slices(numbers)
    for name, known in ("resample", initial), ("resample_estimated", None):
        made = given.rejection_resample(lambda i: i, target, known, seed=3)
        yield name, count(made.map(lambda c, i: c), 3)


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    made = {name: [listed(e) for e in dataset.as_numpy_iterator()]
            for name, dataset in Cases(Dataset, lambda x: tf.shape(x)[0], SEQUENCE)}
    lines = ",\n".join(" %s: %s" % (json.dumps(name), json.dumps(e)) for name, e in made.items())
    (HERE / "elements.json").write_text("{\n%s\n}\n" % lines)
    (HERE / "shares.json").write_text(json.dumps(dict(shares()), indent=1) + "\n")
    (HERE / "VERSIONS").write_text("Python %s\ntensorflow %s\nnumpy %s\n" % (
        platform.python_version(), tf.__version__, np.__version__))
