"""The networks of keras.applications, with random weights, in Keras and in Cornu.

    make check-keras-applications [ONLY='VGG16 ResNet50'] PYTHON=...    KERAS_BACKEND as usual

Keras makes and saves each, with statistics of batch normalization that are not trivial. Cornu loads
it, and a line says what was found:

    names      those of layers and weights, shapes and parameters are Keras'
    predicts   the largest difference of its predictions, at most 1e-4
    step       that of the weights after a step of SGD, at most 8 times that of Keras' from a step in
               float64 (both round), or 1e-5; and the two losses, within 1e-3 of each other
    again      saved by Cornu and loaded by Keras, it predicts the same

and seconds, Cornu's and Keras': to load it, to predict a batch, medians of runs in turn.
"""

import os
import re
import statistics
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np

from cornu_library import Cornu

FAMILIES = """VGG16 VGG19 ResNet50 ResNet101 ResNet152 ResNet50V2 ResNet101V2 ResNet152V2 InceptionV3
InceptionResNetV2 Xception MobileNet MobileNetV2 MobileNetV3Small MobileNetV3Large DenseNet121
DenseNet169 DenseNet201 NASNetMobile NASNetLarge EfficientNetB0 EfficientNetB1 EfficientNetV2B0
EfficientNetV2S ConvNeXtTiny ConvNeXtSmall""".split()
ROWS, CLASSES, RUNS = 4, 10, 3


def make(name):
    """The compiled network. Random numbers of dropout cannot agree, so there are none."""
    size = {"NASNetMobile": 224, "NASNetLarge": 331}.get(name, 96)
    model = getattr(keras.applications, name)(weights=None, classes=CLASSES,
                                              input_shape=(size, size, 3))
    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.Dropout):
            layer.rate = 0.0
    model.compile(keras.optimizers.SGD(1e-3), "categorical_crossentropy")
    return model


def statistics_of(model, random):
    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.BatchNormalization):
            count = layer.moving_mean.shape[0]
            layer.moving_mean.assign(0.1 * random.standard_normal(count))
            layer.moving_variance.assign(random.uniform(0.5, 1.5, count))


def paths(model):
    """Keras numbers weights without a name, as those of LayerScale, over all models."""
    return [re.sub(r"/variable(_\d+)?$", "/variable", w.path) for w in model.weights]


def most(a, b):
    """The largest difference of two lists of arrays."""
    return max(float(np.max(np.abs(np.asarray(x, np.float64) - np.asarray(y, np.float64))))
               for x, y in zip(a, b, strict=True))


def timed(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def in_double(name, weights, x, y):
    """The weights after a step in float64."""
    keras.config.set_floatx("float64")
    try:
        model = make(name)
        model.set_weights(weights)
        model.train_on_batch(x.astype(np.float64), y.astype(np.float64))
        return model.get_weights()
    finally:
        keras.config.set_floatx("float32")


def check(name, folder):
    keras.utils.clear_session()
    keras.utils.set_random_seed(1)
    random = np.random.default_rng(1)
    model = make(name)
    statistics_of(model, random)
    rescales = any(isinstance(l, (keras.layers.Rescaling, keras.layers.Normalization))
                   for l in model.layers)
    x = random.uniform(0, 255, (ROWS, *model.input_shape[1:])).astype(np.float32)
    x = x if rescales else x / np.float32(127.5) - np.float32(1)
    y = np.eye(CLASSES, dtype=np.float32)[np.arange(ROWS)]
    path, again = os.path.join(folder, "a.keras"), os.path.join(folder, "b.keras")
    model.save(path)
    weights, want = model.get_weights(), np.asarray(model.predict_on_batch(x))

    loads, predicts = ([], []), ([], [])
    ours = None
    for _ in range(RUNS):
        if ours:
            ours.free()
        seconds, ours = timed(lambda: Cornu(path))
        loads[0].append(seconds)
        loads[1].append(timed(lambda: keras.models.load_model(path))[0])
    for _ in range(RUNS + 1):
        seconds, got = timed(lambda: ours.predict(x, want.shape))
        predicts[0].append(seconds)
        predicts[1].append(timed(lambda: model.predict_on_batch(x))[0])
    problems = []
    if ours.parameters() != model.count_params():
        problems.append(f"{ours.parameters()} parameters, Keras has {model.count_params()}")
    off = most([got], [want])
    if not off <= 1e-4:
        problems.append("predictions")
    loss, wanted = ours.train(x, y), float(model.train_on_batch(x, y))
    if not abs(loss - wanted) <= 1e-3 * max(1.0, abs(wanted)):
        problems.append(f"loss {loss:.6f}, Keras {wanted:.6f}")
    ours.save(again)
    other = keras.models.load_model(again)
    if [l.name for l in other.layers] != [l.name for l in model.layers]:
        problems.append("names of layers")
    if paths(other) != paths(model):
        problems.append("names of weights")
    after, exact = other.get_weights(), in_double(name, weights, x, y)
    step, bound = most(after, exact), max(8 * most(model.get_weights(), exact), 1e-5)
    if not step <= bound:
        problems.append(f"weights off by {step:.1e}, expected at most {bound:.1e}")
    back = most([other.predict_on_batch(x)], [ours.predict(x, want.shape)])
    if not back <= 1e-4:
        problems.append(f"saved again, predictions off by {back:.1e}")
    ours.free()
    median = statistics.median
    print(f"{name:18s} {model.count_params():>10d} parameters  predicts {off:.0e}  step {step:.0e} "
          f"of {bound:.0e}  load {median(loads[0]):.2f} / {median(loads[1]):.2f} s  predict "
          f"{median(predicts[0][1:]):.3f} / {median(predicts[1][1:]):.3f} s  "
          f"{'; '.join(problems) or 'ok'}", flush=True)
    return not problems


def main():
    names, failed = sys.argv[1:] or FAMILIES, []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            try:
                if not check(name, folder):
                    failed.append(name)
            except RuntimeError as error:
                print(f"{name:18s} {error}", flush=True)
                failed.append(name)
    sys.exit(f"{len(failed)} of {len(names)} differ: {' '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
