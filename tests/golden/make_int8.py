"""Operators of 8-bit models. Writes int8/OPERATORS.safetensors.

Each case is a .tflite model of one operator with random scales, zero points and weights, run by
LiteRT's interpreter with its reference kernels; its file is not kept, only what the graph holds.
Needs ai-edge-litert, numpy and safetensors:  python tests/golden/make_int8.py
"""

import json
import pathlib
import platform
from importlib.metadata import version

import flatbuffers
import numpy as np
import safetensors.numpy
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

HERE = pathlib.Path(__file__).resolve().parent / "int8"
RNG = np.random.default_rng(20)
DTYPES = {"i8": (schema.TensorType.INT8, np.int8), "u8": (schema.TensorType.UINT8, np.uint8),
          "i32": (schema.TensorType.INT32, np.int32), "f32": (schema.TensorType.FLOAT32, np.float32)}
# Fields of CornuLiteOptions by the schema's tables.
FIELDS = {"padding": "padding", "fused_activation": "fusedActivationFunction", "stride_h": "strideH",
          "stride_w": "strideW", "dilation_h": "dilationHFactor", "dilation_w": "dilationWFactor",
          "filter_h": "filterHeight", "filter_w": "filterWidth",
          "depth_multiplier": "depthMultiplier", "axis": "axis", "beta": "beta", "alpha": "alpha",
          "keep_dims": "keepDims", "approximate": "approximate", "align_corners": "alignCorners",
          "half_pixel_centers": "halfPixelCenters", "begin_mask": "beginMask",
          "end_mask": "endMask", "ellipsis_mask": "ellipsisMask", "new_axis_mask": "newAxisMask",
          "shrink_axis_mask": "shrinkAxisMask", "extents": "newShape"}
TABLES = {"FULLY_CONNECTED": "FullyConnectedOptions", "CONV_2D": "Conv2DOptions",
          "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions", "TRANSPOSE_CONV": "TransposeConvOptions",
          "MAX_POOL_2D": "Pool2DOptions", "AVERAGE_POOL_2D": "Pool2DOptions",
          "MEAN": "ReducerOptions", "ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions",
          "MAXIMUM": "MaximumMinimumOptions", "MINIMUM": "MaximumMinimumOptions",
          "CONCATENATION": "ConcatenationOptions", "PAD": "PadOptions", "PADV2": "PadV2Options",
          "RESHAPE": "ReshapeOptions", "TRANSPOSE": "TransposeOptions",
          "SOFTMAX": "SoftmaxOptions", "LEAKY_RELU": "LeakyReluOptions",
          "QUANTIZE": "QuantizeOptions", "GELU": "GeluOptions", "EXP": "ExpOptions",
          "REDUCE_MAX": "ReducerOptions", "DEQUANTIZE": "DequantizeOptions",
          "STRIDED_SLICE": "StridedSliceOptions",
          "RESIZE_NEAREST_NEIGHBOR": "ResizeNearestNeighborOptions"}
SAME, VALID = 0, 1
NONE, RELU, RELU6 = 0, 1, 3


def tensor(dtype, shape, data=None, scale=None, zero=0, axis=0):
    """A tensor; one with data is a constant. A list of scales is per index of an axis."""
    scales = [] if scale is None else list(np.atleast_1d(np.float32(scale)))
    return {"dtype": dtype, "shape": list(shape), "scales": [float(s) for s in scales],
            "zero_points": [int(z) for z in np.broadcast_to(zero, len(scales))], "axis": axis,
            "data": None if data is None else np.asarray(data, DTYPES[dtype][1]).reshape(shape)}


def activation(shape, scale=None, zero=None):
    scale = np.float32(RNG.uniform(0.005, 0.2)) if scale is None else scale
    zero = int(RNG.integers(-128, 128)) if zero is None else zero
    return tensor("i8", shape, None, scale, zero)


def like(x, shape):
    return tensor("i8", shape, None, x["scales"][0], x["zero_points"][0])


def filters(shape, axis, per_channel=True):
    count = shape[axis] if per_channel else 1
    return tensor("i8", shape, RNG.integers(-127, 128, shape),
                  RNG.uniform(0.002, 0.05, count).astype(np.float32), 0, axis)


def bias_of(x, w, count):
    scales = np.float32(x["scales"][0]) * np.float32(w["scales"])
    return tensor("i32", (count,), RNG.integers(-3000, 3000, count), scales, 0)


def integers(values):
    return tensor("i32", (len(values),), values)


def result(x, w, taps, shape, act=NONE):
    """An activation whose scale suits sums of so many products; for RELU6 the filter's as well."""
    scale = float(x["scales"][0]) * float(np.mean(w["scales"])) * 74 * 74 * np.sqrt(taps) / 60
    if act == RELU6:
        w["scales"] = [float(np.float32(s * 0.06 / scale)) for s in w["scales"]]
        return activation(shape, np.float32(0.03), -100)
    return activation(shape, np.float32(scale), int(RNG.integers(-128, 128)))


def flatbuffer(code, options, tensors, operands, results, inputs):
    model = schema.ModelT()
    model.version = 3
    opcode = schema.OperatorCodeT()
    opcode.builtinCode = getattr(schema.BuiltinOperator, code)
    opcode.deprecatedBuiltinCode = min(opcode.builtinCode, 127)
    product = code in ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED")
    opcode.version = {"RESIZE_NEAREST_NEIGHBOR": 3, "RESHAPE": 1, "PRELU": 1, "ELU": 1}.get(code, 5 if product else 2)
    model.operatorCodes = [opcode]
    model.buffers = [schema.BufferT()]
    graph = schema.SubGraphT()
    graph.tensors = []
    for t in tensors:
        to = schema.TensorT()
        to.shape, to.type = t["shape"], DTYPES[t["dtype"]][0]
        to.name = f"t{len(graph.tensors)}"
        if t["scales"]:
            to.quantization = schema.QuantizationParametersT()
            to.quantization.scale = t["scales"]
            to.quantization.zeroPoint = t["zero_points"]
            to.quantization.quantizedDimension = t["axis"]
        to.buffer = 0
        if t["data"] is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(t["data"].tobytes(), np.uint8)
            to.buffer = len(model.buffers)
            model.buffers.append(buffer)
        graph.tensors.append(to)
    operator = schema.OperatorT()
    operator.opcodeIndex, operator.inputs, operator.outputs = 0, operands, results
    if code in TABLES:
        table = getattr(schema, TABLES[code] + "T")()
        for name in ("dilationHFactor", "dilationWFactor", "strideH", "strideW"):
            if hasattr(table, name):
                setattr(table, name, 1)
        for name, value in options.items():
            setattr(table, FIELDS[name], value)
        operator.builtinOptions = table
        operator.builtinOptionsType = getattr(schema.BuiltinOptions, TABLES[code])
    graph.operators, graph.inputs, graph.outputs = [operator], inputs, results
    model.subgraphs = [graph]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


class Cases:
    def __init__(self):
        self.cases, self.arrays = {}, {}

    def add(self, name, code, operands, results, feeds=None, **options):
        """One operator on tensors; None is an omitted operand. Inputs are random unless given."""
        tensors = [t for t in operands if t is not None] + results
        number = {id(t): i for i, t in enumerate(tensors)}
        ins = [-1 if t is None else number[id(t)] for t in operands]
        outs = [number[id(t)] for t in results]
        inputs = [i for i in ins if i >= 0 and tensors[i]["data"] is None]
        content = flatbuffer(code, options, tensors, ins, outs, inputs)
        # ELU and GELU, tables in any case, are not among the reference kernels.
        resolver = (OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if code in ("ELU", "GELU")
                    else OpResolverType.BUILTIN_REF)
        interpreter = Interpreter(model_content=content, experimental_op_resolver_type=resolver)
        interpreter.allocate_tensors()
        for at, i in enumerate(inputs):
            t = tensors[i]
            if feeds:
                x = np.asarray(feeds[at], DTYPES[t["dtype"]][1]).reshape(t["shape"])
            elif t["dtype"] == "f32":
                x = RNG.normal(0, 2, t["shape"]).astype(np.float32)
            elif t["dtype"] == "u8":
                x = RNG.integers(0, 256, t["shape"]).astype(np.uint8)
            else:
                x = RNG.integers(-128, 128, t["shape"]).astype(np.int8)
            interpreter.set_tensor(i, x)
            self.arrays[f"{name}/in{at}"] = x
        interpreter.invoke()
        for at, i in enumerate(outs):
            self.arrays[f"{name}/out{at}"] = interpreter.get_tensor(i)
        for i, t in enumerate(tensors):
            if t["data"] is not None:
                self.arrays[f"{name}/constant{i}"] = t["data"]
        self.cases[name] = {
            "code": code, "in": ins, "out": outs, "inputs": inputs,
            "options": options | ({"extent_count": len(options["extents"])}
                                  if "extents" in options else {}),
            "tensors": [{k: v for k, v in t.items() if k != "data"} for t in tensors]}
        got = np.concatenate([self.arrays[f"{name}/out{at}"].ravel() for at in range(len(outs))])
        print(f"{name:32} {got.size:6} values, {len(np.unique(got)):4} different")

    def write(self, path):
        versions = {"python": platform.python_version()} | {
            n: version(n) for n in ("ai-edge-litert", "numpy", "safetensors")}
        text = json.dumps({"versions": versions, "cases": self.cases}, sort_keys=True)
        path.parent.mkdir(exist_ok=True)
        (path.parent / "VERSIONS").write_text("".join(f"{k} {v}\n" for k, v in versions.items()))
        arrays = {k: np.ascontiguousarray(v) for k, v in self.arrays.items()}   # int8 as its bytes
        arrays = {k: v.view(np.uint8) if v.dtype == np.int8 else v for k, v in arrays.items()}
        safetensors.numpy.save_file(arrays, str(path), metadata={"golden": text})


def out_extent(size, window, stride, dilation, padding):
    reach = (window - 1) * dilation + 1
    return -(-size // stride) if padding == SAME else (size - reach) // stride + 1


def conv(cases, name, x_shape, f, window, stride=(1, 1), dilation=(1, 1), padding=SAME, groups=1,
         act=NONE, per_channel=True):
    b, h, w, c = x_shape
    x = activation(x_shape)
    k = filters((f, *window, c // groups), 0, per_channel)
    shape = (b, *(out_extent(s, n, t, d, padding)
                  for s, n, t, d in zip((h, w), window, stride, dilation)), f)
    y = result(x, k, window[0] * window[1] * c // groups, shape, act)
    cases.add(name, "CONV_2D", [x, k, bias_of(x, k, f)], [y], padding=padding,
              stride_h=stride[0], stride_w=stride[1], dilation_h=dilation[0],
              dilation_w=dilation[1], fused_activation=act)


def depthwise(cases, name, x_shape, multiple, window, stride=(1, 1), dilation=(1, 1),
              padding=SAME, act=NONE, bias=True):
    b, h, w, c = x_shape
    x, f = activation(x_shape), c * multiple
    k = filters((1, *window, f), 3)
    shape = (b, *(out_extent(s, n, t, d, padding)
                  for s, n, t, d in zip((h, w), window, stride, dilation)), f)
    y = result(x, k, window[0] * window[1], shape, act)
    cases.add(name, "DEPTHWISE_CONV_2D", [x, k] + [bias_of(x, k, f)] * bias, [y],
              padding=padding, stride_h=stride[0], stride_w=stride[1], dilation_h=dilation[0],
              dilation_w=dilation[1], depth_multiplier=multiple, fused_activation=act)


def products(cases):
    conv(cases, "conv_3x3", (2, 7, 6, 3), 5, (3, 3))
    conv(cases, "conv_valid_relu", (1, 9, 8, 4), 18, (3, 2), padding=VALID, act=RELU)
    conv(cases, "conv_stride", (2, 9, 8, 1), 33, (5, 5), stride=(2, 3), act=RELU6)
    conv(cases, "conv_dilation", (1, 9, 10, 3), 4, (3, 3), dilation=(2, 3))
    conv(cases, "conv_1x1", (1, 5, 5, 37), 16, (1, 1))
    conv(cases, "conv_1x1_stride", (1, 6, 5, 8), 20, (1, 1), stride=(2, 2))
    conv(cases, "conv_groups", (1, 5, 6, 6), 9, (3, 3), groups=3)
    conv(cases, "conv_one_scale", (1, 5, 6, 6), 9, (3, 3), per_channel=False)
    conv(cases, "conv_large", (1, 6, 7, 70), 40, (3, 3))
    depthwise(cases, "depthwise_3x3", (2, 7, 6, 19), 1, (3, 3))
    depthwise(cases, "depthwise_stride", (1, 8, 9, 33), 1, (5, 3), stride=(2, 2), padding=VALID,
              act=RELU6)
    depthwise(cases, "depthwise_dilation", (1, 8, 9, 5), 1, (3, 3), dilation=(2, 2))
    depthwise(cases, "depthwise_multiple", (1, 6, 5, 4), 3, (3, 3), act=RELU, bias=False)
    for name, shape, window, stride, padding, act in [
            ("transpose_conv_same", (2, 4, 3, 5), (3, 3), (2, 2), SAME, NONE),
            ("transpose_conv_valid", (1, 3, 4, 2), (4, 2), (2, 3), VALID, RELU),
            ("transpose_conv_gaps", (1, 3, 3, 2), (2, 2), (3, 3), SAME, NONE)]:
        b, h, w, c = shape
        x, k = activation(shape), filters((6, *window, c), 0)
        to = [s * t if padding == SAME else (s - 1) * t + n
              for s, t, n in zip((h, w), stride, window)]
        y = result(x, k, c * 2, (b, *to, 6))
        cases.add(name, "TRANSPOSE_CONV", [integers([b, *to, 6]), k, x, bias_of(x, k, 6)], [y],
                  padding=padding, stride_h=stride[0], stride_w=stride[1], fused_activation=act)
    for name, rows, k, n, act, bias, per_channel in [
            ("dense", 3, 40, 10, NONE, True, True), ("dense_relu", 13, 7, 33, RELU, True, True),
            ("dense_one_scale", 2, 129, 17, RELU6, True, False),
            ("dense_no_bias", 5, 12, 3, NONE, False, True)]:
        x, w = activation((rows, k)), filters((n, k), 0, per_channel)
        y = result(x, w, k, (rows, n), act)
        cases.add(name, "FULLY_CONNECTED", [x, w, bias_of(x, w, n) if bias else None], [y],
                  fused_activation=act)


def pools(cases):
    for name, code in [("max", "MAX_POOL_2D"), ("average", "AVERAGE_POOL_2D")]:
        for kind, window, stride, padding, act in [
                ("2x2", (2, 2), (2, 2), VALID, NONE), ("same", (3, 3), (2, 2), SAME, NONE),
                ("wide", (2, 4), (1, 3), SAME, RELU)]:
            x = activation((2, 7, 9, 5), None, int(RNG.integers(-60, 0)))
            to = [out_extent(s, n, t, 1, padding) for s, n, t in zip((7, 9), window, stride)]
            cases.add(f"{name}_pool_{kind}", code, [x], [like(x, (2, *to, 5))], padding=padding,
                      filter_h=window[0], filter_w=window[1], stride_h=stride[0],
                      stride_w=stride[1], fused_activation=act)
    for name, axes, keep, shape in [("mean_image", [1, 2], False, (2, 6)),
                                    ("mean_keep", [1, 2], True, (2, 1, 1, 6)),
                                    ("mean_last", [-1], False, (2, 5, 7)),
                                    ("mean_first", [0, 2], False, (5, 6))]:
        x = activation((2, 5, 7, 6), None, int(RNG.integers(-30, 30)))
        y = activation(shape, np.float32(x["scales"][0] * 0.4), int(RNG.integers(-30, 30)))
        cases.add(name, "MEAN", [x, integers(axes)], [y], keep_dims=keep)
        cases.add(name.replace("mean", "reduce_max"), "REDUCE_MAX", [x, integers(axes)],
                  [like(x, shape)], keep_dims=keep)


def elementwise(cases):
    for code in ["ADD", "SUB", "MUL"]:
        for kind, shape1, shape2, act in [
                ("same", (2, 3, 4, 5), (2, 3, 4, 5), NONE), ("row", (2, 3, 4, 5), (5,), RELU),
                ("scalar", (3, 7), (), RELU6), ("both", (2, 1, 4, 1), (1, 3, 1, 5), NONE)]:
            x1, x2 = activation(shape1), activation(shape2)
            shape = np.broadcast_shapes(shape1, shape2)
            s1, s2 = x1["scales"][0], x2["scales"][0]
            y = activation(shape, np.float32(s1 * s2 * 60 if code == "MUL" else (s1 + s2) * 0.7),
                           int(RNG.integers(-100, 20)))
            cases.add(f"{code.lower()}_{kind}", code, [x1, x2], [y], fused_activation=act)
    for code in ["MAXIMUM", "MINIMUM"]:
        x1 = activation((2, 3, 4))
        cases.add(f"{code.lower()}", code, [x1, like(x1, (3, 1))], [like(x1, (2, 3, 4))])
    slope = tensor("i8", (1, 1, 5), RNG.integers(-128, 128, 5), np.float32(0.01), -30)
    cases.add("prelu", "PRELU", [activation((2, 3, 4, 5), 0.03, 5), slope],
              [activation((2, 3, 4, 5), 0.025, 2)])
    constant = tensor("i8", (5,), RNG.integers(-128, 128, 5), np.float32(0.03), 7)
    cases.add("add_constant", "ADD", [activation((2, 4, 5)), constant], [activation((2, 4, 5))])
    every = [np.arange(-128, 128)]
    for i, (scale, zero) in enumerate([(0.05, -128), (0.1, 3), (0.013, 127), (0.7, -20)]):
        x = activation((256,), np.float32(scale), zero)
        cases.add(f"logistic_{i}", "LOGISTIC", [x], [activation((256,), np.float32(1 / 256), -128)],
                  every)
        cases.add(f"tanh_{i}", "TANH", [x], [activation((256,), np.float32(1 / 128), 0)], every)
        y = activation((256,), np.float32(scale * 0.8), int(RNG.integers(-128, 20)))
        cases.add(f"relu_{i}", "RELU", [x], [y], every)
        cases.add(f"relu6_{i}", "RELU6", [x], [y], every)
        cases.add(f"leaky_relu_{i}", "LEAKY_RELU", [x], [y], every, alpha=[0.1, 0.3, 1.5, 0.0][i])
        wide = activation((256,), np.float32(scale * 1.1), int(RNG.integers(-128, 0)))
        cases.add(f"elu_{i}", "ELU", [x], [wide], every)
        cases.add(f"gelu_{i}", "GELU", [x], [wide], every, approximate=i % 2 == 0)
        cases.add(f"exp_{i}", "EXP", [x], [activation((256,), np.float32(0.05), -128)], every)
        cases.add(f"requantize_{i}", "QUANTIZE", [x], [activation((256,))], every)
        u8 = tensor("u8", (256,), None, np.float32(scale), zero + 128)
        cases.add(f"from_u8_{i}", "QUANTIZE", [u8], [x], [np.arange(256)])
        cases.add(f"quantize_{i}", "QUANTIZE", [tensor("f32", (300,))],
                  [activation((300,), np.float32(scale), zero)])
        cases.add(f"dequantize_{i}", "DEQUANTIZE", [x], [tensor("f32", (256,))], every)
    for i, (scale, beta, depth) in enumerate([(0.05, 1.0, 10), (0.2, 1.0, 3), (0.6, 1.0, 40),
                                             (0.004, 1.0, 7), (0.1, 0.5, 10), (2.0, 1.0, 5),
                                             (0.05, 1.0, 300)]):
        cases.add(f"softmax_{i}", "SOFTMAX", [activation((20, depth), np.float32(scale))],
                  [activation((20, depth), np.float32(1 / 256), -128)], beta=beta)


def moves(cases):
    x = activation((2, 3, 4, 5))
    cases.add("pad", "PAD", [x, tensor("i32", (4, 2), [[0, 0], [1, 2], [3, 0], [0, 1]])],
              [like(x, (2, 6, 7, 6))])
    value = tensor("i8", (1,), [-128], x["scales"][0], x["zero_points"][0])
    cases.add("pad_value", "PADV2", [x, tensor("i32", (4, 2), [[0, 0], [1, 0], [0, 2], [0, 0]]),
                                     value], [like(x, (2, 4, 6, 5))])
    cases.add("reshape", "RESHAPE", [x, integers([2, 60])], [like(x, (2, 60))], extents=[2, 60])
    cases.add("transpose", "TRANSPOSE", [x, integers([0, 3, 1, 2])], [like(x, (2, 5, 3, 4))])
    for axis, shape, to in [(1, (2, 2, 4, 5), (2, 5, 4, 5)), (-1, (2, 3, 4, 2), (2, 3, 4, 7))]:
        cases.add(f"concatenation_{axis}", "CONCATENATION", [x, like(x, shape)], [like(x, to)],
                  axis=axis)
    cases.add("slice", "STRIDED_SLICE", [x, integers([0, 1, -1, 0]), integers([2, 3, -5, 5]),
                                         integers([1, 1, -2, 3])], [like(x, (2, 2, 2, 2))])
    cases.add("slice_open", "STRIDED_SLICE", [x, integers([1, 1, 1, 1]), integers([1, 2, 3, 3]),
                                              integers([1, 1, 1, 1])], [like(x, (2, 1, 2, 4))],
              begin_mask=1, end_mask=9)
    for name, to, corners, half in [("floor", (7, 6), False, False), ("up", (6, 8), False, True),
                                    ("corners", (5, 9), True, False)]:
        cases.add(f"resize_{name}", "RESIZE_NEAREST_NEIGHBOR", [x, integers(to)],
                  [like(x, (2, *to, 5))], align_corners=corners, half_pixel_centers=half)


if __name__ == "__main__":
    cases = Cases()
    products(cases)
    pools(cases)
    elementwise(cases)
    moves(cases)
    cases.write(HERE / "operators.safetensors")
