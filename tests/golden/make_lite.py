"""Writes tests/golden/lite/: .tflite files as TensorFlow's converter makes them of Keras' models,
and what TensorFlow's interpreter computes from them.

    python tests/golden/make_lite.py        keras, tensorflow

NAME.tflite and NAME.npz: inputs x0, … and outputs p0, …. outputs.npz there is another script's:
tests/golden/README.md.
"""
import os
import pathlib
import platform
from importlib.metadata import version

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf
from keras import layers as L

FOLDER = pathlib.Path(__file__).resolve().parent / "lite"
random = np.random.default_rng(1)


def keep(name, model, *arrays, halves=False, samples=None):
    """With samples the file is quantized to 8 bits for data like them, and computes with bytes."""
    for weight in model.weights:
        low = 0.1 if "variance" in weight.path else -0.5
        weight.assign(random.uniform(low, 0.7, weight.shape))
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if halves:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.target_spec.supported_types = [tf.float16]
    if samples is not None:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([x[None]] for x in samples)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    content = converter.convert()
    (FOLDER / f"{name}.tflite").write_bytes(content)
    kernels = tf.lite.experimental.OpResolverType
    interpreter = tf.lite.Interpreter(
        model_content=content, experimental_op_resolver_type=kernels.AUTO if samples is None
        else kernels.BUILTIN_REF)
    for place, array in zip(interpreter.get_input_details(), arrays):
        interpreter.resize_tensor_input(place["index"], array.shape)
    interpreter.allocate_tensors()
    for place, array in zip(interpreter.get_input_details(), arrays):
        interpreter.set_tensor(place["index"], array)
    interpreter.invoke()
    outputs = [interpreter.get_tensor(p["index"]) for p in interpreter.get_output_details()]
    np.savez(FOLDER / f"{name}.npz", **{f"x{i}": a for i, a in enumerate(arrays)},
             **{f"p{i}": a for i, a in enumerate(outputs)})
    print(name, len(content))


def draw(*shape):
    return random.uniform(-1, 1, shape).astype("f")


# What image networks are made of; the converter computes shapes of its batch.
images = keras.Sequential([
    keras.Input((8, 8, 3)), L.Conv2D(4, 3, padding="same", use_bias=False),
    L.BatchNormalization(), L.ReLU(), L.DepthwiseConv2D(3, activation="relu6"), L.MaxPooling2D(2),
    L.Conv2DTranspose(4, 2, 2), L.UpSampling2D(2), L.Flatten(), L.Dense(4, activation="gelu"),
    L.Dense(5, activation="softmax"),
])
keep("images", images, draw(3, 8, 8, 3))

x = keras.Input((8, 8, 3))
a = L.Conv2D(4, 3, 2, padding="same", activation="relu")(x)
b = L.Concatenate()([a, L.AveragePooling2D(2)(x)])
b = L.LayerNormalization()(b)
c = L.Add()([b, L.SeparableConv2D(7, 3, padding="same", activation="swish")(b)])
c = L.Cropping2D(((1, 0), (0, 1)))(L.ZeroPadding2D(1)(c))
d = L.Reshape((-1, 7))(L.Permute((2, 1, 3))(c))
d = L.GlobalMaxPooling1D()(L.Conv1D(6, 3, padding="causal", activation="elu")(d))
e = L.Dense(6, activation="leaky_relu")(L.Concatenate()([L.GlobalAveragePooling2D()(c), d]))
e = L.Dense(3, activation="sigmoid")(L.Activation("hard_silu")(L.LeakyReLU(0.1)(e)))
keep("branches", keras.Model(x, e), draw(3, 8, 8, 3))

x = keras.Input((3,))
y = L.LSTM(3, return_sequences=True, unroll=True)(L.Embedding(10, 4)(x))
keep("recurrence", keras.Model(x, L.Dense(3)(L.GRU(2, unroll=True)(y))),
     random.integers(0, 10, (3, 3)).astype("f"))

# Weights in 16 bits, which the file converts to f32.
halves = keras.Sequential([keras.Input((6, 6, 2)), L.Conv2D(40, 3, activation="tanh"),
                           L.Flatten(), L.Dense(3)])
keep("halves", halves, draw(3, 6, 6, 2), halves=True)

# 8 bits.
x = keras.Input((6, 6, 3))
a = L.Conv2D(4, 3, padding="same", activation="relu")(x)
b = L.BatchNormalization()(L.DepthwiseConv2D(3, padding="same")(a))
b = L.ReLU(6.0)(L.Add()([a, b]))
b = L.Concatenate()([L.MaxPooling2D(2)(b), L.AveragePooling2D(2)(b)])
c = L.Dense(4, activation="sigmoid")(L.Flatten()(L.Conv2DTranspose(3, 2, 2)(b)))
c = L.Concatenate()([L.GlobalAveragePooling2D()(b), c])
keep("bytes", keras.Model(x, L.Dense(5, activation="softmax")(c)),
     random.integers(-128, 128, (8, 6, 6, 3)).astype("i1"), samples=draw(64, 6, 6, 3))

(FOLDER / "VERSIONS").write_text(
    f"Python {platform.python_version()}\n" +
    "".join(f"{p} {version(p)}\n" for p in ("keras", "numpy", "tensorflow_cpu")))
