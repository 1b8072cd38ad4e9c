"""The networks of keras.applications, with random weights, in Keras and in Cornu.

    make check-keras-applications [ONLY='VGG16 ResNet50'] PYTHON=...    KERAS_BACKEND as usual
    SMOOTH=1 make check-keras-applications ...

Keras makes and saves each, with statistics of batch normalization that are not trivial. Cornu loads
it, and a line says what was found:

    names      those of layers and weights, as Keras loads them, shapes and parameters
    predicts   the largest difference of its predictions, at most 1e-4
    step       that of the weights after a step of SGD from those of Keras in float64: at most 1e-5,
               or 8 times that of Keras in float32, or of disturbed weights in float64; and the two
               losses, within 1e-3 of each other
    again      saved by Cornu and loaded by Keras, it predicts the same

ReLU and max pooling make the bound of a step large (step_bound below). SMOOTH=1 puts tanh and
average pooling in their place: gradients through the rest then agree within 1e-5, or are wrong.
"""

import os
import re
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("JAX_ENABLE_X64", "1")     # the steps in float64
import keras
import numpy as np

from cornu_library import Cornu

FAMILIES = """VGG16 VGG19 ResNet50 ResNet101 ResNet152 ResNet50V2 ResNet101V2 ResNet152V2 InceptionV3
InceptionResNetV2 Xception MobileNet MobileNetV2 MobileNetV3Small MobileNetV3Large DenseNet121
DenseNet169 DenseNet201 NASNetMobile NASNetLarge EfficientNetB0 EfficientNetB1 EfficientNetV2B0
EfficientNetV2S ConvNeXtTiny ConvNeXtSmall""".split()
# The others have 96 x 96 pixels. NASNet takes no others; Inception would end with 1 x 1 pixel, where
# a batch of few rows says little about batch normalization.
SIZES = {"NASNetMobile": 224, "NASNetLarge": 331, "InceptionV3": 160, "InceptionResNetV2": 160}
ROWS, CLASSES, CONTROLS = 4, 10, 2


def smooth(layer):
    """The layer, or one without kinks in its place."""
    config = layer.get_config()
    if isinstance(layer, keras.layers.ReLU):
        return keras.layers.Activation("tanh", name=layer.name)
    if isinstance(layer, keras.layers.MaxPooling2D):
        return keras.layers.AveragePooling2D.from_config(config)
    if config.get("activation") in ("relu", "relu6"):
        config["activation"] = "tanh"
    return type(layer).from_config(config)


def make(name):
    """The compiled network. Random numbers of dropout cannot agree, so there are none."""
    size = SIZES.get(name, 96)
    model = getattr(keras.applications, name)(weights=None, classes=CLASSES,
                                              input_shape=(size, size, 3))
    if os.environ.get("SMOOTH"):
        model = keras.models.clone_model(model, clone_function=smooth)
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


def in_double(name, runs):
    """The weights after a step in float64, for each weights, x, y of the runs."""
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")     # floatx alone leaves the policy as it was
    try:
        model, after = make(name), []
        model.run_eagerly = True
        for weights, x, y in runs:
            model.set_weights(weights)
            model.train_on_batch(x.astype(np.float64), y.astype(np.float64))
            after.append(model.get_weights())
        return after
    finally:
        keras.config.set_floatx("float32")
        keras.config.set_dtype_policy("float32")


def disturbed(values, random):
    """The values, each moved by up to 2^-23, one unit in the last place of a float32."""
    values = np.asarray(values, np.float64)
    return values * (1 + random.uniform(-1, 1, values.shape) * 2.0 ** -23)


def step_bound(name, weights, x, y, after, random):
    """The weights after a step without rounding, and how far those of float32 may be from them.

    A value near a kink of ReLU or near the maximum of a pooling window takes either side of it as
    rounding will have it, and the gradient of all layers before it jumps; so do those of
    normalizations over few values. The bound is what such disturbances do to Keras itself.
    """
    runs = [(weights, x, y)]
    runs += [([disturbed(w, random) for w in weights], disturbed(x, random), y)
             for _ in range(CONTROLS)]
    exact, *others = in_double(name, runs)
    moved = [most([o - (d - w) for o, d, w in zip(other, start, weights)], exact)
             for other, (start, _, _) in zip(others, runs[1:])]
    return exact, max(1e-5, 8 * max(moved + [most(after, exact)]))


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
    model.run_eagerly = True     # compiling takes longer than the few steps
    weights, want = model.get_weights(), np.asarray(model.predict_on_batch(x))

    ours = Cornu(path)
    got = ours.predict(x, want.shape)
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
    other.run_eagerly = True
    if [l.name for l in other.layers] != [l.name for l in model.layers]:
        problems.append("names of layers")
    if paths(other) != paths(keras.models.load_model(path)):     # NASNet's scopes are in no file
        problems.append("names of weights")
    exact, bound = step_bound(name, weights, x, y, model.get_weights(), random)
    step = most(other.get_weights(), exact)
    if not step <= bound:
        problems.append(f"weights off by {step:.1e}, expected at most {bound:.1e}")
    back = most([other.predict_on_batch(x)], [ours.predict(x, want.shape)])
    if not back <= 1e-4:
        problems.append(f"saved again, predictions off by {back:.1e}")
    ours.free()
    print(f"{name:18s} {model.count_params():>10d} parameters  predicts {off:.0e}  step {step:.0e} "
          f"of {bound:.0e}  {'; '.join(problems) or 'ok'}", flush=True)
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
