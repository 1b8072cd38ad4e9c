"""Writes tests/golden/onnx_operators/: graphs of one operator of ONNX each, whose attributes decide
the numbers, and what onnxruntime computes from them.

    python tests/golden/make_onnx_operators.py        onnx, onnxruntime, numpy

operators.npz holds for each case NAME.model, the bytes of the .onnx file, its inputs NAME.x0, ... and
its outputs NAME.p0, .... Axis 0 of inputs and outputs is the batch, of ROWS rows.
"""
import pathlib
import platform
import zipfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ROWS = 3
FOLDER = pathlib.Path(__file__).resolve().parent / "onnx_operators"
random = np.random.default_rng(7)
CASES = {}


def draw(*shape):
    return random.normal(size=shape).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


def computed(model, fed):
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    return session.run(None, fed)


def case(name, operator, *operands, opset=18, outputs=1, inputs=None, want=None, **attributes):
    """A node whose operands are arrays: the first is an input of the graph, or those whose places
    `inputs` has; the others are constants. None is an absent one. `want` is the output where
    onnxruntime lacks the case."""
    inputs = {0} if inputs is None else set(inputs)
    names = ["" if array is None else "x%d" % i if i in inputs else "c%d" % i
             for i, array in enumerate(operands)]
    results = ["p%d" % i if i in (outputs if isinstance(outputs, tuple) else range(outputs)) else ""
               for i in range(max(outputs) + 1 if isinstance(outputs, tuple) else outputs)]
    node = helper.make_node(operator, names, results, **attributes)
    kind = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        [node], name,
        [helper.make_tensor_value_info("x%d" % i, kind(operands[i].dtype),
                                       ["batch"] + list(operands[i].shape[1:]))
         for i in sorted(inputs)],
        [onnx.ValueInfoProto(name=result) for result in results if result],
        [numpy_helper.from_array(array, "c%d" % i) for i, array in enumerate(operands)
         if array is not None and i not in inputs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 10
    fed = {"x%d" % i: operands[i] for i in sorted(inputs)}
    assert name not in CASES, name
    found = [want] if want is not None else computed(model, fed)
    assert all(np.isfinite(array).all() for array in found), name
    CASES[name] = (model, list(fed.values()), found)


def elementwise():
    whole = np.array([[7, -7, 7, -7, 9], [6, -6, 5, -5, 0], [1, -1, 2, 3, -3]], np.int32)
    by = np.array([2, 2, -2, -2, 4], np.int32)
    case("div_whole", "Div", whole, by)
    case("mod", "Mod", whole, by)
    case("fmod", "Mod", draw(ROWS, 6) * 5, np.array([2, -2, 0.7, -0.7, 3, -3], np.float32), fmod=1)
    case("pow_whole", "Pow", whole, np.array(3, np.int32))
    case("pow_root", "Pow", np.abs(draw(ROWS, 4)), np.array(0.5, np.float32))
    case("round", "Round", np.array([[0.5, 1.5, -0.5], [2.5, -2.5, 0.49], [-1.5, 3.7, -3.2]],
                                    np.float32))
    case("clip_low", "Clip", draw(ROWS, 5), np.array(-0.5, np.float32))
    case("clip_high", "Clip", draw(ROWS, 5), None, np.array(0.5, np.float32))
    case("celu", "Celu", draw(ROWS, 5), alpha=2.0)
    case("hard_sigmoid", "HardSigmoid", draw(ROWS, 5) * 3, alpha=0.3, beta=0.4)
    case("hard_swish", "HardSwish", draw(ROWS, 5) * 3)
    case("shrink", "Shrink", draw(ROWS, 5) * 2, lambd=0.7, bias=0.2)
    case("thresholded", "ThresholdedRelu", draw(ROWS, 5), alpha=0.3)
    case("gelu", "Gelu", draw(ROWS, 5), opset=20)
    case("gelu_tanh", "Gelu", draw(ROWS, 5), opset=20, approximate="tanh")
    case("mish", "Mish", draw(ROWS, 5))
    case("prelu", "PRelu", draw(ROWS, 2, 3), draw(2, 1))
    case("mean", "Mean", draw(ROWS, 3), draw(3), draw(1), inputs=(0,))


def reductions():
    x = np.array([[3, 1, 3, 2], [1, 1, 0, 0], [5, 5, 5, 4]], np.float32)
    case("top_k", "TopK", x, ints(3), outputs=2)
    case("top_k_least", "TopK", x, ints(2), outputs=2, largest=0)
    case("top_k_axis", "TopK", draw(ROWS, 4, 2), ints(2), outputs=2, axis=1)
    case("arg_max_last", "ArgMax", x, axis=1, select_last_index=1)
    case("arg_min", "ArgMin", x, axis=1, keepdims=0)
    case("arg_min_bytes", "ArgMin", np.array([[0, 5], [7, 0], [255, 1]], np.uint8), axis=1)
    for word, more in (("", {}), ("_exclusive", {"exclusive": 1}), ("_reverse", {"reverse": 1}),
                       ("_both", {"exclusive": 1, "reverse": 1})):
        case("cum_sum" + word, "CumSum", draw(ROWS, 4), ints(1), opset=14, **more)
    for operator in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum",
                     "SumSquare"):
        x = np.abs(draw(ROWS, 2, 3, 2)) + 0.1
        case("reduce_" + operator.lower(), "Reduce" + operator, x, ints(1, -1), keepdims=0)
    case("reduce_none", "ReduceSum", draw(ROWS, 2), ints(), noop_with_empty_axes=1)


def lookups():
    case("gather", "Gather", draw(ROWS, 4, 2), ints(-1, 0, -4), axis=1)
    case("gather_one", "Gather", draw(ROWS, 4, 2), np.array(-2, np.int64), axis=1)
    case("gather_rows", "Gather", draw(5, 2), np.array([[0, -1], [3, -5], [4, 1]], np.int64),
         inputs=(1,))
    case("gather_elements", "GatherElements", draw(ROWS, 4),
         np.array([[0, -1], [3, -4], [1, 1]], np.int64), inputs=(0, 1), axis=1)
    case("gather_nd", "GatherND", draw(ROWS, 3, 2), np.array([[[0], [-1]], [[2], [1]], [[1], [0]]],
                                                          np.int64), inputs=(0, 1), batch_dims=1)
    at = np.array([[0, -1], [3, -4], [1, 2]], np.int64)
    for how in ("none", "add", "mul", "max", "min"):
        case("scatter_" + how, "ScatterElements", draw(ROWS, 4), at, draw(ROWS, 2),
             inputs=(0, 1, 2), axis=1, reduction=how)
    case("one_hot", "OneHot", np.array([[0, -1], [2, 5], [-3, 1]], np.int64), ints(3),
         np.array([-1, 2], np.float32))
    case("one_hot_axis", "OneHot", np.array([[0, 1], [2, 2], [1, 0]], np.int64), ints(3),
         np.array([0, 1], np.float32), axis=1)


def shapes():
    x = draw(ROWS, 5, 4)
    case("slice_backwards", "Slice", x, ints(-1, 10), ints(-6, 0), ints(1, 2), ints(-2, -3))
    for mode in ("constant", "reflect", "edge", "wrap"):
        case("pad_" + mode, "Pad", x, ints(0, 2, 1, 0, 1, 3), opset=19, mode=mode)
    case("split_uneven", "Split", x, outputs=3, num_outputs=3, axis=1)
    case("tile", "Tile", x, ints(1, 2, 3))
    case("expand", "Expand", draw(ROWS, 1, 2), ints(1, 3, 1))
    case("trilu", "Trilu", x, np.array(1, np.int64), upper=0)
    case("depth_to_space", "DepthToSpace", draw(ROWS, 8, 2, 3), blocksize=2)
    case("depth_to_space_crd", "DepthToSpace", draw(ROWS, 8, 2, 3), blocksize=2, mode="CRD")
    case("space_to_depth", "SpaceToDepth", draw(ROWS, 2, 4, 6), blocksize=2)
    case("einsum", "Einsum", draw(ROWS, 2, 3), draw(4, 3), equation="bij,kj->bki")
    case("einsum_dots", "Einsum", draw(ROWS, 2, 3), draw(3, 2), equation="...ij,jk->...ki")
    case("einsum_diagonal", "Einsum", draw(ROWS, 3, 3), equation="bii->b")


def convolutions():
    case("conv_groups", "Conv", draw(ROWS, 4, 6, 5), draw(6, 2, 3, 2), draw(6), group=2,
         strides=[2, 1], dilations=[1, 2], pads=[1, 0, 2, 1])
    case("conv_same_lower", "Conv", draw(ROWS, 2, 6, 7), draw(3, 2, 2, 4), auto_pad="SAME_LOWER",
         strides=[1, 2])
    case("conv_same_upper", "Conv", draw(ROWS, 2, 7), draw(3, 2, 4), auto_pad="SAME_UPPER",
         strides=[3])
    case("conv_3d", "Conv", draw(ROWS, 2, 4, 5, 3), draw(2, 2, 3, 2, 2), strides=[2, 1, 1],
         pads=[1, 0, 0, 1, 1, 0])
    x, w = draw(ROWS, 3, 4, 5), draw(3, 2, 3, 3)
    case("transposed", "ConvTranspose", x, w, draw(2), strides=[2, 3], output_padding=[1, 2],
         pads=[1, 0, 0, 1])
    for mode in ("SAME_UPPER", "SAME_LOWER"):
        case("transposed_" + mode.lower(), "ConvTranspose", x, draw(3, 2, 2, 3), strides=[1, 2],
             auto_pad=mode)
    case("transposed_shape", "ConvTranspose", x, w, strides=[2, 2], output_shape=[8, 9])
    case("transposed_groups", "ConvTranspose", draw(ROWS, 4, 3, 3), draw(4, 2, 2, 2), group=2,
         dilations=[2, 1])
    case("transposed_1d", "ConvTranspose", draw(ROWS, 2, 5), draw(2, 3, 4), strides=[3], pads=[1, 2])


def pools():
    x = draw(ROWS, 2, 5, 6)
    case("max_places", "MaxPool", x, outputs=2, kernel_shape=[2, 3], strides=[2, 2])
    case("max_places_columns", "MaxPool", x, outputs=2, kernel_shape=[2, 2], storage_order=1)
    case("max_dilated", "MaxPool", x, kernel_shape=[2, 2], dilations=[2, 3], ceil_mode=1)
    for counted in (0, 1):
        case("average_%d" % counted, "AveragePool", x, kernel_shape=[3, 2], strides=[2, 2],
             pads=[1, 0, 1, 1], count_include_pad=counted, ceil_mode=1)
    case("average_1d", "AveragePool", draw(ROWS, 2, 7), kernel_shape=[3], pads=[1, 1])
    case("lp", "LpPool", x, kernel_shape=[2, 2], p=3)
    case("global_lp", "GlobalLpPool", x, p=3)


def norms():
    x = draw(ROWS, 4, 3, 2)
    case("group_norm", "GroupNormalization", x, draw(4), draw(4), opset=21, num_groups=2)
    case("group_norm_of_groups", "GroupNormalization", x, draw(2), draw(2), opset=18, num_groups=2)
    case("instance_norm", "InstanceNormalization", x, draw(4), draw(4), epsilon=0.1)
    case("lrn", "LRN", x, size=3, alpha=0.3, beta=0.6, bias=1.5)
    sums = x * x
    sums[:, :3] += x[:, 1:] ** 2      # of two neighbours the second one lies behind
    case("lrn_of_two", "LRN", x, size=2, alpha=0.3, beta=0.6, bias=1.5,
         want=x / (1.5 + 0.3 / 2 * sums) ** np.float32(0.6))
    case("layer_norm", "LayerNormalization", x, draw(3, 2), draw(3, 2), axis=-2, epsilon=0.01)
    case("lp_norm", "LpNormalization", x, axis=1, p=1)
    case("mean_variance", "MeanVarianceNormalization", x, axes=[2, 3])
    case("softmax_of_old", "Softmax", x, opset=12, axis=1)
    case("log_softmax_axis", "LogSoftmax", x, axis=2)
    case("hardmax", "Hardmax", np.array([[1, 3, 3], [2, 2, 1], [0, 0, 0]], np.float32))


def graph_case(name, nodes, inputs, outputs, constants, opset=18):
    """Several nodes, each (operator, inputs, outputs, attributes): for operators that have the
    batch elsewhere than in axis 0, between transposes."""
    kind = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        [helper.make_node(operator, i.split(","), o.split(","), **more)
         for operator, i, o, more in nodes], name,
        [helper.make_tensor_value_info(key, kind(value.dtype), ["batch"] + list(value.shape[1:]))
         for key, value in inputs.items()], [onnx.ValueInfoProto(name=key) for key in outputs],
        [numpy_helper.from_array(value, key) for key, value in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 10
    CASES[name] = (model, list(inputs.values()), computed(model, inputs))


def recurrences():
    """(B, T, C) turned to (T, B, C) and back."""
    u = 3
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}

    def one(name, operator, directions, peepholes=False, **more):
        n = gates[operator]
        constants = {"w": draw(directions, n * u, 2), "r": draw(directions, n * u, u),
                     "b": draw(directions, 2 * n * u)}
        operands = "t,w,r,b"
        if peepholes:
            constants["p"] = draw(directions, 3 * u)
            operands += ",,,,p"
        nodes = [("Transpose", "x0", "t", {"perm": [1, 0, 2]}),
                 (operator, operands, "ys", dict(hidden_size=u, **more)),
                 ("Transpose", "ys", "p0", {"perm": [2, 0, 1, 3]})]
        graph_case(name, nodes, {"x0": draw(ROWS, 4, 2)}, ["p0"], constants)

    one("rnn_reverse", "RNN", 1, direction="reverse", activations=["Relu"])
    one("rnn_both", "RNN", 2, direction="bidirectional", activations=["Tanh", "Softsign"])
    one("gru", "GRU", 1)
    one("gru_before_reset", "GRU", 2, direction="bidirectional", linear_before_reset=1)
    one("gru_activations", "GRU", 1, activations=["HardSigmoid", "LeakyRelu"],
        activation_alpha=[0.3, 0.1], activation_beta=[0.4])
    one("lstm_peepholes", "LSTM", 2, peepholes=True, direction="bidirectional")
    one("lstm_clip", "LSTM", 1, clip=0.4)
    one("lstm_input_forget", "LSTM", 1, input_forget=1)
    one("lstm_activations", "LSTM", 1, activations=["HardSigmoid", "Elu", "ScaledTanh"],
        activation_alpha=[0.3, 0.5, 0.8], activation_beta=[0.4, 1.2])


def attention():
    q, k, v = draw(ROWS, 2, 4, 6), draw(ROWS, 2, 5, 6), draw(ROWS, 2, 5, 3)
    three = (0, 1, 2)
    case("attention", "Attention", q, k, v, opset=23, inputs=three, scale=0.5)
    case("attention_causal", "Attention", q, draw(ROWS, 2, 4, 6), draw(ROWS, 2, 4, 3), opset=23,
         inputs=three, is_causal=1)
    case("attention_cap", "Attention", q, k, v, opset=23, inputs=three, softcap=1.5)
    case("attention_mask", "Attention", q, k, v, draw(4, 5), opset=23, inputs=three)
    case("attention_shared", "Attention", draw(ROWS, 4, 3, 6), k, v, opset=23, inputs=three)
    case("attention_flat", "Attention", draw(ROWS, 4, 12), draw(ROWS, 5, 12), draw(ROWS, 5, 6),
         opset=23, inputs=three, q_num_heads=2, kv_num_heads=2)
    case("attention_past", "Attention", q, draw(ROWS, 2, 4, 6), draw(ROWS, 2, 4, 3), None,
         draw(ROWS, 2, 2, 6), draw(ROWS, 2, 2, 3), opset=23, inputs=(0, 1, 2, 4, 5), outputs=3,
         is_causal=1)
    angles = draw(6, 2)
    for word, more in (("", {}), ("_pairs", {"interleaved": 1}), ("_part", {})):
        width = 8 if word == "_part" else 4
        part = {"rotary_embedding_dim": 4} if word == "_part" else {}
        case("rotary" + word, "RotaryEmbedding", draw(ROWS, 2, 3, width), np.cos(angles),
             np.sin(angles), np.array([[0, 1, 2], [3, 4, 5], [5, 0, 3]], np.int64), opset=23,
             inputs=(0, 3), **more, **part)


def resizing():
    x = draw(ROWS, 2, 5, 4)
    scales = np.array([1, 1, 1.7, 0.6], np.float32)
    for name, more in (
            ("linear", {"mode": "linear"}),
            ("linear_antialias", {"mode": "linear", "antialias": 1}),
            ("cubic", {"mode": "cubic", "cubic_coeff_a": -0.5}),
            ("cubic_outside", {"mode": "cubic", "exclude_outside": 1}),
            ("cubic_antialias", {"mode": "cubic", "antialias": 1}),
            ("linear_torch", {"mode": "linear",
                              "coordinate_transformation_mode": "pytorch_half_pixel"}),
            ("nearest", {"mode": "nearest"}),
            ("nearest_floor", {"mode": "nearest", "nearest_mode": "floor",
                               "coordinate_transformation_mode": "asymmetric"}),
            ("nearest_ceil", {"mode": "nearest", "nearest_mode": "ceil"})):
        case("resize_" + name, "Resize", x, None, scales, **more)
    case("resize_corners", "Resize", x, None, None, ints(3, 7), mode="linear", axes=[2, 3],
         coordinate_transformation_mode="align_corners")
    case("resize_sizes", "Resize", x, None, None, ints(3, 7), mode="linear", axes=[2, 3])
    case("resize_crop", "Resize", x, np.array([0.2, -0.3, 0.8, 1.2], np.float32), None, ints(4, 5),
         mode="linear", axes=[2, 3], coordinate_transformation_mode="tf_crop_and_resize",
         extrapolation_value=2.0)


def joined():
    """Drawn last, so that the cases above keep their numbers."""
    nodes = [("Transpose", "x0", "t", {"perm": [1, 0, 2]}),
             ("RNN", "t,w,r,b", "ys", {"hidden_size": 5, "activations": ["ThresholdedRelu"],
                                       "activation_alpha": [0.2]}),
             ("Transpose", "ys", "p0", {"perm": [2, 0, 1, 3]})]
    graph_case("rnn_thresholded", nodes, {"x0": draw(ROWS, 3, 4)}, ["p0"],
               {"w": draw(1, 5, 4), "r": draw(1, 5, 5), "b": draw(1, 10)})
    case("einsum_diagonals", "Einsum", draw(ROWS, 3, 3), draw(3, 3, 2), draw(2, 4),
         equation="bii, iij, jk -> bk")


def main():
    for make in (elementwise, reductions, lookups, shapes, convolutions, pools, norms, recurrences,
                 attention, resizing, joined):
        make()
    FOLDER.mkdir(exist_ok=True)
    arrays = {}
    for name, (model, fed, found) in CASES.items():
        arrays[name + ".model"] = np.frombuffer(model.SerializeToString(), np.uint8)
        arrays.update(("%s.x%d" % (name, i), array) for i, array in enumerate(fed))
        arrays.update(("%s.p%d" % (name, i), array) for i, array in enumerate(found))
    # numpy.savez_compressed would write the time of day
    with zipfile.ZipFile(FOLDER / "operators.npz", "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(name + ".npy")
            info.compress_type = zipfile.ZIP_DEFLATED
            with file.open(info, "w") as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array).reshape(array.shape))
    (FOLDER / "VERSIONS").write_text("python %s\nonnx %s\nonnxruntime %s\nnumpy %s\n" % (
        platform.python_version(), onnx.__version__, onnxruntime.__version__, np.__version__))
    print(len(CASES), "cases")


if __name__ == "__main__":
    main()
