"""Writes tests/golden/lite_read/: .tflite files with operators that other converters' files have, and
what TensorFlow's interpreter computes from them.

    python tests/golden/make_lite_read.py        onnx, onnxruntime, tensorflow

NAME.tflite and NAME.npz: inputs x0, … and outputs p0, …, whose axis 0 are runs one after another.
pools.onnx, and what the ONNX runtime computes: windows that LiteRT does not have.
"""
import os
import pathlib
import platform
from importlib.metadata import version

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import flatbuffers
import numpy as np
import onnx
import onnxruntime
import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema

FOLDER = pathlib.Path(__file__).resolve().parent / "lite_read"
RNG = np.random.default_rng(3)


def f32(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def converted(function, *shapes, dtype=tf.float32, **settings):
    made = tf.function(function, input_signature=[tf.TensorSpec(s, dtype) for s in shapes])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([made.get_concrete_function()], made)
    for name, value in settings.items():
        setattr(converter, name, value)
    return converter.convert()


def changed(data, change):
    """The file after a change of its tables."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))
    change(model)
    builder = flatbuffers.Builder(0)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def keep(name, data, *runs, reference=False):
    """Each run is a list of inputs."""
    kernels = tf.lite.experimental.OpResolverType
    interpreter = tf.lite.Interpreter(
        model_content=data, experimental_op_resolver_type=kernels.BUILTIN_REF if reference
        else kernels.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    interpreter.allocate_tensors()
    outputs = []
    for run in runs:
        for place, array in zip(interpreter.get_input_details(), run):
            interpreter.set_tensor(place["index"], array)
        interpreter.invoke()
        outputs.append([interpreter.get_tensor(p["index"])
                        for p in interpreter.get_output_details()])
    made = {f"x{i}": np.stack([r[i] for r in runs]) for i in range(len(runs[0]))}
    made |= {f"p{i}": np.stack([o[i] for o in outputs]) for i in range(len(outputs[0]))}
    kept = {k: a.astype(np.int32) if a.dtype in (np.int8, np.int16, np.uint8) else a
            for k, a in made.items()}
    (FOLDER / f"{name}.tflite").write_bytes(data)
    np.savez_compressed(FOLDER / f"{name}.npz", **kept)
    print(name, len(data))


def operator(name, function, *shapes, **settings):
    keep(name, converted(function, *shapes, **settings), [f32(*s) for s in shapes])


# ---- Operators ----

operator("pads", lambda x: (tf.pad(x, [[0, 0], [2, 1], [0, 2]], "REFLECT") * 2.0,
                            tf.pad(x, [[0, 0], [3, 2], [1, 0]], "SYMMETRIC")), [1, 6, 3])
operator("blocks", lambda x: (tf.nn.depth_to_space(x, 2) + 1.0,
                              tf.nn.space_to_depth(tf.tile(x, [1, 2, 2, 1]), 2),
                              tf.space_to_batch_nd(x, [2, 2], [[1, 0], [0, 1]])[1:2]),
         [1, 3, 3, 8])
operator("splits", lambda x: tf.concat(tf.split(x, [1, 3, 2], axis=1)[::-1] +
                                       tf.unstack(x[:, :, None], axis=1)[:2], 1), [1, 6])
operator("slices", lambda x: (x[..., 1:3], x[:, tf.newaxis, 2, ..., ::2], x[:, -1], x[:, 1::2, ...],
                              tf.reverse_sequence(x, [3], 1, 0)), [1, 5, 4])
operator("lookups", lambda x: (tf.gather(x, [[2, 0, 1]], axis=1, batch_dims=1),
                               tf.gather(tf.transpose(x, [0, 2, 1]), [[1, 3]], axis=2,
                                         batch_dims=1),
                               tf.cast(tf.argmax(x, 1), tf.float32),
                               tf.cast(tf.argmin(x, 2), tf.float32),
                               tf.math.top_k(x, 2)[0], tf.cumsum(x, 1, exclusive=True, reverse=True),
                               tf.one_hot(tf.argmax(x, 1), 4, 2.0, -1.0),
                               tf.gather_nd(x, [[[0, 1], [0, 3]]])), [1, 4, 3])
operator("arithmetic", lambda x: (tf.math.floordiv(x, 0.3), tf.math.floormod(x, 0.7),
                                  tf.round(x), tf.math.ceil(x), tf.sign(x), tf.exp(tf.zeros_like(tf.round(x))) + x,
                                  tf.add_n([x, x * 2.0, x * x]), tf.minimum(tf.nn.relu(x), 1.0),
                                  tf.nn.l2_normalize(x, -1),
                                  tf.cast(tf.reduce_any(x > 0.0, 1), tf.float32),
                                  tf.cast(tf.reduce_all(x > -1.0, 1), tf.float32)), [1, 5])
operator("windows", lambda x: (tf.nn.local_response_normalization(x, 2, 1.5, 0.3, 0.7),
                               tf.nn.avg_pool2d(x, [6, 6], 1, "VALID")), [1, 6, 6, 5])
operator("spectrum", lambda x: (tf.abs(tf.signal.rfft(x, [8])), tf.math.real(tf.signal.rfft2d(x)),
                                tf.math.imag(tf.signal.rfft2d(x))), [1, 4, 16])
volume = f32(2, 3, 2, 3, 4)
operator("volumes", lambda x: tf.nn.conv3d(x, volume, [1, 2, 1, 2, 1], "SAME"), [1, 4, 5, 6, 3])


def extents(x):
    """Shapes that the graph computes: a row in frames that overlap, by its number of samples."""
    count = tf.shape(x)[1]
    frames = tf.maximum((count - 4) // 3 + 1, 1)
    places = tf.range(frames)[:, None] * 3 + tf.range(4)[None]
    return tf.gather(x[:, : (count // 2) * 2], places, axis=1) + tf.cast(count % 5, tf.float32)


operator("extents", extents, [1, 14])
dilated = f32(3, 3, 2, 2)
operator("atrous", lambda x: tf.batch_to_space(tf.nn.conv2d(
    tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]]), dilated, 1, "SAME"), [2, 2],
    [[0, 0], [1, 0]]), [1, 8, 8, 2])


# ---- Constants ----

sparse = f32(64, 64)
sparse[RNG.random((64, 64)) < 0.9] = 0
operator("sparse", lambda x: tf.matmul(x, tf.constant(sparse)), [1, 64],
         optimizations=[tf.lite.Optimize.EXPERIMENTAL_SPARSITY])
cube = f32(2, 3, 4)
cube[RNG.random((2, 3, 4)) < 0.6] = 0


def sparse_cube(model):
    """The constant with two dense axes and then a sparse one, made dense by an operator."""
    graph = model.subgraphs[0]
    add = graph.operators[0]
    held = next(t for t in graph.tensors if list(t.shape) == [2, 3, 4] and
                model.buffers[t.buffer].data is not None and len(model.buffers[t.buffer].data))
    rows = cube.reshape(6, 4)
    indices = np.concatenate([np.flatnonzero(r) for r in rows]).astype(np.uint8)
    segments = np.cumsum([0] + [np.count_nonzero(r) for r in rows]).astype(np.uint8)
    model.buffers[held.buffer].data = np.frombuffer(rows[rows != 0].tobytes(), np.uint8)
    held.sparsity = schema.SparsityParametersT()
    held.sparsity.traversalOrder, held.sparsity.blockMap = [0, 1, 2], []
    held.sparsity.dimMetadata = []
    for size in (2, 3, None):
        dimension = schema.DimensionMetadataT()
        if size:
            dimension.format, dimension.denseSize = schema.DimensionType.DENSE, size
        else:
            dimension.format = schema.DimensionType.SPARSE_CSR
            for kind, values in (("Segments", segments), ("Indices", indices)):
                vector = schema.Uint8VectorT()
                vector.values = values
                setattr(dimension, "array" + kind, vector)
                setattr(dimension, "array" + kind + "Type", schema.SparseIndexVector.Uint8Vector)
        held.sparsity.dimMetadata.append(dimension)
    dense, code, densify = schema.TensorT(), schema.OperatorCodeT(), schema.OperatorT()
    dense.name, dense.shape, dense.type, dense.buffer = b"dense", [2, 3, 4], held.type, 0
    graph.tensors.append(dense)
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.DENSIFY
    code.version = 1
    model.operatorCodes.append(code)
    number = graph.tensors.index(held)
    densify.opcodeIndex, densify.inputs = len(model.operatorCodes) - 1, [number]
    densify.outputs = [len(graph.tensors) - 1]
    densify.builtinOptionsType = schema.BuiltinOptions.DensifyOptions
    densify.builtinOptions = schema.DensifyOptionsT()
    add.inputs = [len(graph.tensors) - 1 if i == number else i for i in add.inputs]
    graph.operators = [densify, add]


keep("sparse_cube", changed(converted(lambda x: x + cube, [1, 2, 3, 4]), sparse_cube),
     [f32(1, 2, 3, 4)])
transposed, bias = f32(2, 2, 3, 4), f32(3)


def with_bias(model):
    """TRANSPOSE_CONV as the custom operator Convolution2DTransposeBias."""
    graph = model.subgraphs[0]
    for o in graph.operators:
        code = model.operatorCodes[o.opcodeIndex]
        if code.builtinCode != schema.BuiltinOperator.TRANSPOSE_CONV:
            continue
        code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.CUSTOM
        code.customCode, code.version = b"Convolution2DTransposeBias", 1
        held, tensor = schema.BufferT(), schema.TensorT()
        held.data = np.frombuffer(bias.tobytes(), np.uint8)
        model.buffers.append(held)
        tensor.name, tensor.shape, tensor.type = b"bias", [3], schema.TensorType.FLOAT32
        tensor.buffer = len(model.buffers) - 1
        graph.tensors.append(tensor)
        o.inputs = [o.inputs[2], o.inputs[1], len(graph.tensors) - 1]
        o.builtinOptionsType, o.builtinOptions = schema.BuiltinOptions.NONE, None
        o.customOptions = np.frombuffer(np.array([1, 2, 2], np.int32).tobytes(), np.uint8)


def deconvolution(x):
    return tf.nn.conv2d_transpose(x, transposed, [1, 8, 8, 3], 2, "SAME")


custom = changed(converted(deconvolution, [1, 4, 4, 4]), with_bias)
try:
    from ai_edge_litert.interpreter import Interpreter   # has the operator
    tf.lite.Interpreter = Interpreter
    keep("transpose_bias", custom, [f32(1, 4, 4, 4)])
except (ImportError, TypeError, ValueError, RuntimeError):   # by the builtin one, and the bias
    x = f32(1, 4, 4, 4)
    (FOLDER / "transpose_bias.tflite").write_bytes(custom)
    np.savez_compressed(FOLDER / "transpose_bias.npz", x0=x[None],
                        p0=(deconvolution(x).numpy() + bias)[None])


# ---- Variables, branches ----

class Ring(tf.Module):
    """Two states, one of them with a first value, which read each other's past."""

    def __init__(self):
        super().__init__()
        self.past = tf.Variable(tf.zeros([1, 2, 3]))
        self.level = tf.Variable([[0.5, -1.0, 2.0]])

    @tf.function(input_signature=[tf.TensorSpec([1, 1, 3], tf.float32)])
    def __call__(self, x):
        both = tf.concat([self.past, x + self.level[:, None]], 1)
        level = 0.5 * self.level + tf.reduce_sum(both, 1)
        self.past.assign(both[:, 1:])
        self.level.assign(level)
        return tf.reduce_sum(both, 1), level * 2.0


ring = Ring()
converter = tf.lite.TFLiteConverter.from_concrete_functions(
    [ring.__call__.get_concrete_function()], ring)
converter.experimental_enable_resource_variables = True
keep("variables", converter.convert(), *[[f32(1, 1, 3)] for _ in range(5)])


def branch(x):
    return tf.cond(tf.reduce_sum(x) > 0.0, lambda: tf.nn.relu(x) * 2.0, lambda: x - 1.0)


keep("branch", converted(branch, [1, 4]), [np.float32([[1, 2, -1, 0]])],
     [np.float32([[-1, -2, 1, 0]])])


def recurrence(x):
    """An RNN, step by step, and nested in it a loop of two turns."""
    states = tf.TensorArray(tf.float32, 5, element_shape=[1, 3])

    def step(t, h, states):
        h = tf.tanh(x[:, t] @ kernel_x + h @ kernel_h)
        h = tf.while_loop(lambda i, h: i < 2, lambda i, h: (i + 1, h * 1.25 - 0.1),
                          [tf.constant(0), h])[1]
        return t + 1, h, states.write(t, h)
    _, h, states = tf.while_loop(lambda t, h, states: t < 5, step,
                                 [tf.constant(0), tf.zeros([1, 3]), states])
    return tf.transpose(states.stack(), [1, 0, 2]), h


kernel_x, kernel_h = f32(4, 3), f32(3, 3)
operator("loops", recurrence, [1, 5, 4])
(FOLDER / "loop_by_data.tflite").write_bytes(converted(
    lambda x: tf.while_loop(lambda a: tf.reduce_sum(a) < 10.0, lambda a: [a + 1.0], [x])[0],
    [1, 4]))


# ---- Quantized ----

kernel = f32(3, 3, 2, 4)
images = [f32(1, 6, 6, 2) for _ in range(8)]


def convolution(x):
    y = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))
    return tf.nn.softmax(tf.reshape(tf.nn.max_pool2d(y, 2, 2, "VALID"), [1, 36]))


INT8 = {"optimizations": [tf.lite.Optimize.DEFAULT],
        "representative_dataset": lambda: ([i] for i in images)}
for dtype, ops in (("int8", "TFLITE_BUILTINS_INT8"), ("int16", None)):
    settings = dict(INT8, inference_input_type=getattr(tf, dtype),
                    inference_output_type=getattr(tf, dtype))
    specs = tf.lite.OpsSet
    settings["target_spec"] = tf.lite.TargetSpec([
        specs.TFLITE_BUILTINS_INT8 if ops else
        specs.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8])
    data = converted(convolution, [1, 6, 6, 2], **settings)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = RNG.integers(low, high + 1, (1, 6, 6, 2)).astype(dtype)
    keep(dtype, data, [x], reference=True)
keep("requantized", converted(       # to scales of which one is almost half of the other
    lambda x: tf.concat([tf.nn.tanh(x), tf.nn.softmax(x)], -1), [1, 6, 6, 2],
    optimizations=[tf.lite.Optimize.DEFAULT], representative_dataset=INT8["representative_dataset"],
    inference_input_type=tf.int8, inference_output_type=tf.int8),
    [RNG.integers(-128, 128, (1, 6, 6, 2)).astype(np.int8)], reference=True)
wide = f32(3, 3, 4, 32)   # fewer than 1,024 numbers are not quantized
keep("dynamic", converted(lambda x: tf.nn.relu(tf.nn.conv2d(x, wide, 2, "SAME")), [1, 6, 6, 4],
                          optimizations=[tf.lite.Optimize.DEFAULT]), [f32(1, 6, 6, 4)])


def bytes_of_2019(model):
    """As TensorFlow 1 quantized: unsigned bytes, a scale and a zero point for each tensor."""
    graph = model.subgraphs[0]

    def tensor(name, shape, scale, zero, dtype=schema.TensorType.UINT8, data=None):
        t = schema.TensorT()
        t.name, t.shape, t.type, t.buffer = name, list(shape), dtype, 0
        t.quantization = schema.QuantizationParametersT()
        t.quantization.scale, t.quantization.zeroPoint = [scale], [zero]
        if data is not None:
            held = schema.BufferT()
            held.data = np.frombuffer(data.tobytes(), np.uint8)
            t.buffer = len(model.buffers)
            model.buffers.append(held)
        graph.tensors.append(t)
        return len(graph.tensors) - 1
    graph.tensors = []
    x = tensor(b"x", [1, 6], 0.05, 131)
    w = tensor(b"w", [4, 6], 0.02, 117, data=RNG.integers(0, 256, (4, 6)).astype(np.uint8))
    b = tensor(b"b", [4], 0.05 * 0.02, 0, schema.TensorType.INT32,
               RNG.integers(-900, 900, 4).astype(np.int32))
    y = tensor(b"y", [1, 4], 0.02, 120)
    p = tensor(b"p", [1, 4], 1 / 256, 0)
    dense, softmax = graph.operators[0], schema.OperatorT()
    dense.inputs, dense.outputs = [x, w, b], [y]
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.SOFTMAX
    code.version = 1
    model.operatorCodes.append(code)
    softmax.opcodeIndex, softmax.inputs, softmax.outputs = len(model.operatorCodes) - 1, [y], [p]
    softmax.builtinOptionsType = schema.BuiltinOptions.SoftmaxOptions
    softmax.builtinOptions = schema.SoftmaxOptionsT()
    softmax.builtinOptions.beta = 1.0
    graph.operators, graph.inputs, graph.outputs = [dense, softmax], [x], [p]
    model.signatureDefs = []


matrix = f32(6, 4)
legacy = changed(converted(lambda x: tf.matmul(x, matrix), [1, 6]), bytes_of_2019)
keep("bytes", legacy, *[[RNG.integers(0, 256, (1, 6)).astype(np.uint8)] for _ in range(3)],
     reference=True)

# ---- ONNX ----

def pools():
    """Padding that no SAME has, in means with and without it, and in maxima."""
    value = onnx.helper.make_tensor_value_info
    window = {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}
    nodes = [onnx.helper.make_node("AveragePool", ["x"], ["a"], **window),
             onnx.helper.make_node("AveragePool", ["x"], ["b"], count_include_pad=1, **window),
             onnx.helper.make_node("MaxPool", ["x"], ["c"], **window),
             onnx.helper.make_node("Concat", ["a", "b", "c"], ["y"], axis=1)]
    graph = onnx.helper.make_graph(
        nodes, "pools", [value("x", onnx.TensorProto.FLOAT, ["N", 2, 6, 7])],
        [value("y", onnx.TensorProto.FLOAT, ["N", 6, 3, 4])])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)],
                                  ir_version=9)


model, x = pools().SerializeToString(), f32(3, 2, 6, 7)
(FOLDER / "pools.onnx").write_bytes(model)
y = onnxruntime.InferenceSession(model).run(None, {"x": x})[0]
np.savez_compressed(FOLDER / "pools.npz", x0=x[None], p0=y[None])
print("pools", len(model))

(FOLDER / "VERSIONS").write_text(f"python {platform.python_version()}\n" + "".join(
    f"{name} {version(name)}\n" for name in ("flatbuffers", "numpy", "onnx", "onnxruntime", "tensorflow")))
