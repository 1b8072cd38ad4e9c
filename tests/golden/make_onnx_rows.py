"""Writes tests/golden/onnx_rows/: small .onnx files of which axis 0 is, or is not, a batch whose rows
stay apart, and what onnxruntime computes from them.

    python tests/golden/make_onnx_rows.py       onnx, onnxruntime, numpy

apart_NAME.onnx can be cut into batches, meet_NAME.onnx cannot, function_NAME.onnx has no batch, and
fixed_NAME.onnx has one of one row; NAME.npz: inputs x0, … and outputs p0, ….
"""
import pathlib
import platform
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

FOLDER = pathlib.Path(__file__).resolve().parent / "onnx_rows"
F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
rng = np.random.default_rng(1)


def f32(*shape):
    return rng.normal(size=shape).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


def whole(value):
    return np.array(value, np.int64)


def graph(nodes, inputs, outputs, **constants):
    """Nodes are "Op inputs > outputs" with attributes; an empty operand is _."""
    made = []
    for text, *attributes in nodes:
        left, right = text.split(">")
        op, *operands = left.split()
        made.append(helper.make_node(op, ["" if o == "_" else o for o in operands], right.split(),
                                     **(attributes[0] if attributes else {})))
    info = helper.make_tensor_value_info
    return helper.make_graph(made, "g", [info(*v) for v in inputs], [info(*v) for v in outputs],
                             [numpy_helper.from_array(v, k) for k, v in constants.items()])


def keep(name, g, *arrays, opset=18):
    model = helper.make_model(g, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    path = str(FOLDER / f"{name}.onnx")
    onnx.save(model, path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feeds = {place.name: array for place, array in zip(session.get_inputs(), arrays)}
    np.savez(FOLDER / f"{name}.npz", **{f"x{i}": a for i, a in enumerate(arrays)},
             **{f"p{i}": a for i, a in enumerate(session.run(None, feeds))})


def apart():
    n4 = [("x", F32, ["n", 4])], [("y", F32, ["n", 4])]
    n54 = [("x", F32, ["n", 5, 4])], [("y", F32, ["n", 5, 4])]
    keep("apart_merged", graph([("Reshape x flat > f",), ("MatMul f w > m",),
                                ("Reshape m back > y",)], n54[0], [("y", F32, ["n", 5, 3])],
                               flat=ints(-1, 4), back=ints(-1, 5, 3), w=f32(4, 3)), f32(40, 5, 4))
    keep("apart_attention", graph([("Transpose x > t", {"perm": [0, 2, 1]}), ("MatMul x t > g",),
                                   ("Softmax g > s",), ("MatMul s x > y",)], *n54), f32(40, 5, 4))
    keep("apart_lstm", graph([("Transpose x > t", {"perm": [1, 0, 2]}),
                              ("LSTM t w r > ys yh", {"hidden_size": 3}), ("Squeeze ys one > q",),
                              ("Transpose q > y", {"perm": [1, 0, 2]})],
                             [("x", F32, ["n", "time", 4])], [("y", F32, ["n", "time", 3])],
                             one=ints(1), w=f32(1, 12, 4), r=f32(1, 12, 3)), f32(40, 6, 4))
    keep("apart_gru", graph([("Transpose x > t", {"perm": [1, 0, 2]}),
                             ("GRU t w r > ys yh", {"hidden_size": 3, "linear_before_reset": 1,
                                                    "direction": "bidirectional"}),
                             ("Transpose yh > h", {"perm": [1, 0, 2]}), ("Flatten h > y",)],
                            [("x", F32, ["n", "time", 4])], [("y", F32, ["n", 6])],
                            w=f32(2, 9, 4), r=f32(2, 9, 3)), f32(40, 6, 4))
    keep("apart_image", graph([("Conv x w > c", {"pads": [1, 1, 1, 1]}),
                               ("MaxPool c > p", {"kernel_shape": [2, 2], "strides": [2, 2]}),
                               ("GlobalAveragePool p > a",), ("Flatten a > f",),
                               ("Gemm f m > y",)], [("x", F32, ["n", 3, 8, 8])],
                              [("y", F32, ["n", 5])], w=f32(4, 3, 3, 3), m=f32(4, 5)),
         f32(40, 3, 8, 8))
    keep("apart_words", graph([("Gather e ids > g",), ("Gather p at > q",), ("Add g q > a",),
                               ("ReduceMean a one > y", {"keepdims": 0})],
                              [("ids", I64, ["n", 5])], [("y", F32, ["n", 4])], e=f32(10, 4),
                              p=f32(9, 4), at=ints(0, 1, 2, 3, 4), one=ints(1)),
         rng.integers(0, 10, (40, 5)))
    # Axis 0 has two names, as tf2onnx writes them.
    keep("apart_names", graph([("Unsqueeze m two > u",), ("Mul x u > y",)],
                              [("x", F32, ["unk__1", 6, 4]), ("m", F32, ["unk__2", 6])],
                              [("y", F32, ["unk__1", 6, 4])], two=ints(2)), f32(40, 6, 4),
         f32(40, 6))
    keep("apart_where", graph([("Greater x zero > b",), ("Where b x k > y",)], *n4,
                              zero=np.float32(0), k=f32(1, 4)), f32(40, 4))
    body = graph([("Gather x i > xi", {"axis": 1}), ("Add h xi > hn",), ("Identity ci > co",)],
                 [("i", I64, []), ("ci", BOOL, []), ("h", F32, [None, 4])],
                 [("co", BOOL, []), ("hn", F32, [None, 4])])
    g = graph([("ReduceSum x one > s", {"keepdims": 0}), ("Mul s zero > h0",)], n54[0],
              [("y", F32, ["n", 4])], one=ints(1), zero=np.float32(0), t=whole(5), c=np.array(True))
    g.node.append(helper.make_node("Loop", ["t", "c", "h0"], ["y"], body=body))
    keep("apart_loop", g, f32(40, 5, 4))


def meet():
    n4 = [("x", F32, ["n", 4])], [("y", F32, ["n", 4])]
    scaled = f32(40, 4) * np.logspace(0, -4, 40).astype(np.float32)[:, None]
    keep("meet_maximum", graph([("Abs x > a",), ("Log a > l",),
                                ("ReduceMax l > top", {"keepdims": 0}), ("Sub top two > floor",),
                                ("Max l floor > y",)], *n4, two=np.float32(2)), scaled)
    keep("meet_softmax", graph([("Softmax x > y", {"axis": 0})], *n4), f32(40, 4))
    keep("meet_cumsum", graph([("CumSum x zero > y",)], *n4, zero=whole(0)), f32(40, 4))
    keep("meet_lstm", graph([("Unsqueeze x one > s",), ("LSTM s w r > ys yh", {"hidden_size": 3}),
                             ("Squeeze ys ax > y",)], [("x", F32, ["n", 4])],
                            [("y", F32, ["n", 3])], one=ints(1), ax=ints(1, 2), w=f32(1, 12, 4),
                            r=f32(1, 12, 3)), f32(40, 4))
    keep("meet_mean", graph([("ReduceMean x zero > m",), ("Sub x m > y",)], *n4, zero=ints(0)),
         f32(40, 4))
    keep("meet_gram", graph([("Transpose x > t",), ("MatMul x t > g",), ("Softmax g > s",),
                             ("MatMul s x > y",)], *n4), f32(40, 4))
    keep("meet_places", graph([("Shape x > s",), ("Gather s zero > n",), ("Range zero n one > r",),
                               ("Cast r > f", {"to": F32}), ("Unsqueeze f last > c",),
                               ("Add x c > y",)], *n4, zero=whole(0), one=whole(1), last=ints(1)),
         f32(40, 4))
    keep("meet_reverse", graph([("Slice x a b c d > y",)], *n4, a=ints(-1), b=ints(-(1 << 31)),
                               c=ints(0), d=ints(-1)), f32(40, 4))


def functions():
    keep("function_scalar", graph([("Cast sr > s", {"to": F32}), ("Div x s > y",)],
                                  [("x", F32, ["n", 4]), ("sr", I64, [])],
                                  [("y", F32, ["n", 4])]), f32(3, 4), whole(16))
    keep("function_scalars", graph([("Add a b > y",)], [("a", F32, []), ("b", F32, [])],
                                   [("y", F32, [])]), f32(), f32())
    state = [("Unsqueeze x zero > seq",), ("Split state > h c", {"axis": 0, "num_outputs": 2}),
             ("LSTM seq w r b _ h c > ys hn cn", {"hidden_size": 3}), ("Squeeze hn zero > y",),
             ("Concat hn cn > stateN", {"axis": 0})]
    keep("function_state", graph(state, [("x", F32, ["n", 4]), ("state", F32, [2, "n", 3])],
                                 [("y", F32, ["n", 3]), ("stateN", F32, [2, "n", 3])],
                                 zero=ints(0), w=f32(1, 12, 4), r=f32(1, 12, 3), b=f32(1, 24)),
         f32(5, 4), f32(2, 5, 3))
    # The state has one row: so have the data, whatever the file says.
    keep("function_one_row", graph([("Transpose x > t", {"perm": [1, 0, 2]}),
                                    ("GRU t w r _ _ h0 > ys yh", {"hidden_size": 3,
                                     "direction": "bidirectional", "linear_before_reset": 1}),
                                    ("Transpose yh > h", {"perm": [1, 0, 2]}), ("Flatten h > y",)],
                                   [("x", F32, ["n", "time", 4]), ("h0", F32, [2, 1, 3])],
                                   [("y", F32, ["n", 6])], w=f32(2, 9, 4), r=f32(2, 9, 3)),
         f32(1, 5, 4), f32(2, 1, 3))
    keep("function_time_major", graph([("Transpose x > t", {"perm": [2, 0, 1]}),
                                       ("MatMul t w > y",)], [("x", F32, ["n", 4, "time"])],
                                      [("y", F32, ["time", "n", 3])], w=f32(4, 3)), f32(2, 4, 7))
    keep("function_fixed_time", graph([("Transpose x > t", {"perm": [2, 0, 1]}),
                                       ("MatMul t w > y",)], [("x", F32, ["n", 4, 7])],
                                      [("y", F32, [7, "n", 3])], w=f32(4, 3)), f32(2, 4, 7))
    keep("function_one_number", graph([("MatMul x w > m",), ("ReduceMean m > y", {"keepdims": 0})],
                                      [("x", F32, ["n", 4])], [("y", F32, [])], w=f32(4, 3)),
         f32(6, 4))
    keep("function_of_nodes", graph([("Gather edges zero > src",), ("Gather edges one > dst",),
                                     ("Gather x src > from",), ("Add from e > message",),
                                     ("Unsqueeze dst last > d",), ("Shape message > s",),
                                     ("Expand d s > index",), ("Sub x x > zeros",),
                                     ("ScatterElements zeros index message > y",
                                      {"axis": 0, "reduction": "add"})],
                                    [("x", F32, ["nodes", 4]), ("e", F32, ["edges", 4]),
                                     ("edges", I64, [2, "edges"])], [("y", F32, ["nodes", 4])],
                                    zero=whole(0), one=whole(1), last=ints(1)), f32(5, 4),
         f32(8, 4), rng.integers(0, 5, (2, 8)))
    # Rows of two things, of which the ops tell that they are not one batch.
    keep("function_two_things", graph([("Transpose k > t",), ("MatMul q t > g",),
                                       ("Softmax g > s",), ("MatMul s k > y",)],
                                      [("q", F32, ["n", 4]), ("k", F32, ["m", 4])],
                                      [("y", F32, ["n", 4])]), f32(7, 4), f32(9, 4))
    keep("function_halves", graph([("Reshape x two > y",)], [("x", F32, ["n", 4])],
                                  [("y", F32, ["m", 2])], two=ints(-1, 2)), f32(9, 4))
    keep("function_best", graph([("TopK x two > y i", {"axis": 0})], [("x", F32, ["n", 4])],
                                [("y", F32, [2, 4])], two=ints(2)), f32(9, 4))
    # Twelve elements, however they are arranged.
    keep("function_twelve", graph([("Reshape x shape > r",), ("MatMul r w > y",)],
                                  [("x", F32, ["a", "b", "c"])], [("y", F32, ["d", 2])],
                                  shape=ints(1, 12), w=f32(12, 2)), f32(1, 3, 4))


def fixed():
    keep("fixed_row", graph([("Flatten x > f",), ("MatMul f w > y",)], [("x", F32, [1, 2, 3])],
                            [("y", F32, [1, 4])], w=f32(6, 4)), f32(1, 2, 3))
    # A reshape fixes the height, or another product with the width.
    keep("apart_height", graph([("AveragePool x > p", {"kernel_shape": [16, 2],
                                                       "strides": [16, 2]}),
                                ("Conv p w > c", {"kernel_shape": [3, 1]}),
                                ("Reshape c shape > y",)], [("x", F32, ["n", 3, "h", "w"])],
                               [("y", F32, ["n", 2, 8])], w=f32(2, 3, 3, 1), shape=ints(0, 2, 8)),
         f32(1, 3, 48, 16))


def outputs():
    """Outputs that depend on shapes alone, or on nothing; a length in windows."""
    keep("apart_lengths", graph([("Shape x > s",), ("Gather s zero > n",), ("Gather s one > t",),
                                 ("Unsqueeze n first > shape",), ("Expand t shape > lens",),
                                 ("Relu x > y",)], [("x", F32, ["n", "time"])],
                                [("y", F32, ["n", "time"]), ("lens", I64, ["n"])],
                                zero=whole(0), one=whole(1), first=ints(0)), f32(40, 6))
    keep("function_anchors", graph([("Relu x > y",), ("Mul a two > anchors",)],
                                   [("x", F32, ["n", 2])],
                                   [("y", F32, ["n", 2]), ("anchors", F32, [3, 2])], a=f32(3, 2),
                                   two=np.float32(2)), f32(4, 2))
    keep("apart_windows", graph([("Unsqueeze x one > u",),
                                 ("AveragePool u > p", {"kernel_shape": [160], "strides": [160]}),
                                 ("Squeeze p one > y",)], [("x", F32, ["n", "time"])],
                                [("y", F32, ["n", "windows"])], one=ints(1)), f32(2, 1000))


def counted():
    """Rows stay apart, but results depend on how many there are."""
    n4 = [("x", F32, ["n", 4])], [("y", F32, ["n", 4])]
    keep("meet_count", graph([("Shape x > s",), ("Gather s zero > n",),
                              ("Cast n > f", {"to": F32}), ("Div x f > y",)], *n4, zero=whole(0)),
         f32(40, 4))
    keep("meet_size", graph([("Size x > n",), ("Cast n > f", {"to": F32}), ("Mul x f > y",)], *n4),
         f32(40, 4))
    keep("meet_count_of_power", graph([("Abs x > a",), ("Shape x > s",), ("Gather s zero > n",),
                                       ("Cast n > f", {"to": F32}), ("Div one f > p",),
                                       ("Pow a p > y",)], *n4, zero=whole(0), one=np.float32(1)),
         f32(40, 4))


def unnamed():
    """No axis has a name; windows take 100 numbers or more; both batches grow together."""
    nodes = [("Unsqueeze x one > u",), ("Conv u k > c", {"strides": [50]}),
             ("ReduceMean c two > m", {"keepdims": 0}), ("Unsqueeze m zero > seq",),
             ("Split state > h c0", {"axis": 0, "num_outputs": 2}),
             ("LSTM seq w r _ _ h c0 > ys hn cn", {"hidden_size": 3}), ("Squeeze hn zero > y",),
             ("Concat hn cn > stateN", {"axis": 0})]
    keep("function_unnamed", graph(nodes, [("x", F32, [None, None]), ("state", F32, [2, None, 3])],
                                   [("y", F32, [None, 3]), ("stateN", F32, [2, None, 3])],
                                   zero=ints(0), one=ints(1), two=ints(2), k=f32(4, 1, 100),
                                   w=f32(1, 12, 4), r=f32(1, 12, 3)), f32(3, 330), f32(2, 3, 3))


def main():
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.*"):
        path.unlink()
    apart()
    meet()
    functions()
    fixed()
    outputs()
    counted()
    unnamed()
    lines = [f"python {platform.python_version()}"]
    lines += [f"{p} {version(p)}" for p in ("onnx", "onnxruntime", "numpy")]
    (FOLDER / "VERSIONS").write_text("\n".join(lines) + "\n")


main()
