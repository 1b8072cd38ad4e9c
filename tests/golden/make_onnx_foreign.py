"""Writes tests/golden/onnx_foreign/: small .onnx files of kinds that packages ship, and what
onnxruntime computes from them.

    python tests/golden/make_onnx_foreign.py [NAME ...]       onnx, onnxruntime, numpy

NAME.onnx, and NAME.npz: inputs x0, … and outputs p0, …; of files that Cornu refuses NAME.onnx alone.
"""
import os
import pathlib
import platform
import sys
import tempfile
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto as T, helper as h, numpy_helper as nh

FOLDER = pathlib.Path(__file__).resolve().parent / "onnx_foreign"
F, I64, U8 = T.FLOAT, T.INT64, T.UINT8
MICROSOFT = "com.microsoft"
rng = np.random.default_rng(1)


def f32(*shape, scale=1.0):
    return (scale * rng.normal(size=shape)).astype(np.float32)


def i8(*shape):
    return rng.integers(-100, 100, shape).astype(np.int8)


def ints(*values):
    return np.array(values, np.int64)


def node(line, **attributes):
    """"y,z = domain::Op x,w" as a node."""
    out, call = line.split(" = ")
    op, names = (call + " ").split(" ", 1)
    domain, _, op = op.rpartition("::")
    return h.make_node(op, names.strip().split(",") if names.strip() else [], out.split(","),
                       domain=domain, **attributes)


def graph(nodes, inputs, outputs, name="g", **constants):
    info = h.make_tensor_value_info
    return h.make_graph(nodes, name, [info(*v) for v in inputs], [info(*v) for v in outputs],
                        [nh.from_array(np.asarray(v), k) for k, v in constants.items()])


def model_of(graph, opset=18, functions=(), domains=(MICROSOFT,)):
    opsets = [h.make_opsetid("", opset)] + [h.make_opsetid(d, 1) for d in domains]
    return h.make_model(graph, opset_imports=opsets, ir_version=8, functions=list(functions))


# ---- Quantized networks ----

def float_network():
    return model_of(graph(
        [node("a = Conv x,w0,b0", pads=[1, 1, 1, 1]), node("r = Relu a"),
         node("m = MaxPool r", kernel_shape=[2, 2], strides=[2, 2]),
         node("c = Conv m,w1,b1", group=2), node("s = Sigmoid c"),
         node("p = AveragePool s", kernel_shape=[2, 2]), node("l = LeakyRelu c", alpha=0.2),
         node("lp = AveragePool l", kernel_shape=[2, 2]), node("t = Add p,lp"),
         node("u = Concat t,p", axis=1), node("gap = GlobalAveragePool u"),
         node("f = Flatten gap"), node("g1 = Gemm f,w2,b2", transB=1), node("mm = MatMul g1,w3"),
         node("q = Mul mm,mm"), node("y = Softmax q", axis=-1)],
        [("x", F, ["batch", 3, 8, 8])], [("y", F, ["batch", 5])],
        w0=f32(4, 3, 3, 3, scale=0.4), b0=f32(4), w1=f32(6, 2, 2, 2, scale=0.4), b1=f32(6),
        w2=f32(7, 12, scale=0.4), b2=f32(7), w3=f32(7, 5, scale=0.5)), 17)


def quantized(how, **options):
    """The network as a function of onnxruntime.quantization writes it."""
    from onnxruntime import quantization as q

    class Reader(q.CalibrationDataReader):
        def __init__(self):
            self.rest = iter([{"x": f32(3, 3, 8, 8)} for _ in range(4)])

        def get_next(self):
            return next(self.rest, None)

    with tempfile.TemporaryDirectory() as folder:
        a, b = os.path.join(folder, "a.onnx"), os.path.join(folder, "b.onnx")
        onnx.save(float_network(), a)
        if how == "dynamic":
            q.quantize_dynamic(a, b, weight_type=q.QuantType.QInt8, **options)
        else:
            q.quantize_static(a, b, Reader(), quant_format=q.QuantFormat[how], **options)
        return onnx.load(b)


def quantize_dynamic():
    return quantized("dynamic"), [f32(1, 3, 8, 8)]


def quantize_qdq():
    return quantized("QDQ", per_channel=True), [f32(3, 3, 8, 8)]


def quantize_qoperator():
    from onnxruntime import quantization as q
    return quantized("QOperator", activation_type=q.QuantType.QUInt8,
                     weight_type=q.QuantType.QUInt8), [f32(3, 3, 8, 8)]


def quantize_int8():
    from onnxruntime import quantization as q
    return quantized("QOperator", per_channel=True, activation_type=q.QuantType.QInt8,
                     weight_type=q.QuantType.QInt8), [f32(3, 3, 8, 8)]


def quantized_numbers():
    """Every type that is quantized to, along an axis and in blocks; numbers that are cut off and
    halves."""
    x = np.array([[-3, -0.5, 0.5, 1.5, 2.5, 300], [0.25, 1, -1, 7, -70000, 70000]], np.float32)
    nodes, outputs, constants = [], [], {}
    for name, dtype in (("u8", np.uint8), ("i8", np.int8), ("u16", np.uint16), ("i16", np.int16)):
        nodes += [node(f"q{name} = QuantizeLinear x,one,z{name}"),
                  node(f"y{name} = DequantizeLinear q{name},one,z{name}")]
        outputs.append((f"y{name}", F, ["batch", 6]))
        constants["z" + name] = dtype(3)
    nodes += [node("qa = QuantizeLinear x,steps,zeros", axis=1),
              node("ya = DequantizeLinear qa,steps,zeros", axis=1),
              node("wb = DequantizeLinear wq,blocks", axis=0, block_size=4),
              node("yb = MatMul x,wb"),
              node("w = DequantizeLinear wq,wsteps,wzeros", axis=1), node("ym = MatMul x,w")]
    outputs += [("ya", F, ["batch", 6]), ("yb", F, ["batch", 2]), ("ym", F, ["batch", 2])]
    return model_of(graph(nodes, [("x", F, ["batch", 6])], outputs, one=np.float32(1),
                          steps=np.array([1, 2, 0.5, 1, 3, 7], np.float32),
                          zeros=np.array([0, -3, 5, 1, 2, 100], np.int8),
                          blocks=np.array([[0.5, 2], [0.1, 3]], np.float32), wq=i8(6, 2),
                          wsteps=np.array([0.1, 0.3], np.float32),
                          wzeros=np.array([3, -4], np.int8), **constants), 21), [x]


def quantized_products():
    """What optimizers make of dynamically quantized products, with zeros for rows and columns."""
    m = MICROSOFT + "::"
    return model_of(graph(
        [node("q,s,z = DynamicQuantizeLinear x"),
         node("a = MatMulInteger q,w,z,wz"), node("af = Cast a", to=F),
         node("qx = Unsqueeze q,one"),
         node("b = ConvInteger qx,cw,z,cz", pads=[1, 1]), node("bf = Cast b", to=F),
         node(f"c = {m}DynamicQuantizeMatMul x,w,ws,wz,bias"),
         node(f"d = {m}MatMulIntegerToFloat q,w,s,ws,z,wz,bias"),
         node(f"e = {m}QGemm q,s,z,w,ws,wz,ib", alpha=0.5),
         node(f"e2 = {m}QGemm q,s,z,w,ws,wz", transA=0),
         node("h = QLinearConv qx,s,z,cw,cs,cz,s,z"), node("hf = Cast h", to=F),
         node(f"f = {m}QLinearMul q,s,z,q,s,z,s,z"), node("ff = DequantizeLinear f,s,z"),
         node(f"g = {m}QLinearWhere which,q,s,z,uq,us,uz,s,z"), node("gf = Cast g", to=F)],
        [("x", F, ["batch", 4])],
        [("af", F, ["batch", 3]), ("bf", F, ["batch", 2, 4]), ("c", F, ["batch", 3]),
         ("d", F, ["batch", 3]), ("e", F, ["batch", 3]), ("ff", F, ["batch", 4]),
         ("gf", F, ["batch", 4]), ("e2", F, ["batch", 3]), ("hf", F, ["batch", 2, 2])],
        w=i8(4, 3), wz=np.array([1, -2, 3], np.int8), ws=np.array([0.1, 0.2, 0.05], np.float32),
        cw=i8(2, 1, 3), cz=np.int8(5), cs=np.float32(0.005), one=ints(1), bias=f32(3),
        ib=np.array([5, -7, 100], np.int32),
        which=np.array([True, False, True, False]), uq=np.array([9, 3, 200, 7], np.uint8),
        us=np.float32(0.03), uz=np.uint8(100)), 17), [f32(1, 4)]


def dynamic_quantized_lstm():
    return model_of(graph(
        [node("t = Transpose x", perm=[1, 0, 2]),
         node(f"ys,yh,yc = {MICROSOFT}::DynamicQuantizeLSTM t,w,r,b,,,,,ws,wz,rs,rz", hidden_size=3,
              direction="bidirectional"),
         node("f = Transpose ys", perm=[2, 0, 1, 3]), node("last = Transpose yc", perm=[1, 0, 2])],
        [("x", F, [1, 5, 4])], [("f", F, [1, 5, 2, 3]), ("last", F, [1, 2, 3])],
        w=i8(2, 4, 12), r=i8(2, 3, 12), b=f32(2, 24), ws=np.array([0.01, 0.02], np.float32),
        wz=np.array([3, -4], np.int8), rs=np.array([0.01, 0.015], np.float32),
        rz=np.zeros(2, np.int8))), [f32(1, 5, 4)]


def fused():
    """What onnxruntime's optimizer makes of several nodes."""
    m = MICROSOFT + "::"
    return model_of(graph(
        [node(f"a = {m}FusedConv x,cw,cb", activation="LeakyRelu", activation_params=[0.3]),
         node(f"b = {m}FusedConv x,cw,cb,a", activation="Clip", activation_params=[-0.5, 1.0]),
         node(f"c = {m}Gelu a"), node(f"d = {m}FusedMatMul a,b", transB=1, alpha=0.5),
         node("dr = Reshape d,to"), node(f"e = {m}QuickGelu dr", alpha=1.5),
         node(f"f = {m}BiasGelu e,w"),
         node(f"g = {m}FastGelu f,w"), node(f"h,,,hs = {m}SkipLayerNormalization g,e,w,w,w",
                                            epsilon=0.01),
         node(f"i,,,is = {m}SkipSimplifiedLayerNormalization h,hs,w", epsilon=0.1),
         node("j = SimplifiedLayerNormalization is,w", axis=-1, epsilon=0.2),
         node("k = Flatten j"), node(f"l = {m}FusedGemm k,gw,gb", activation="Tanh")],
        [("x", F, ["batch", 2, 5, 5])], [("l", F, ["batch", 3]), ("i", F, ["batch", 6, 3]),
                                         ("c", F, ["batch", 2, 3, 3])],
        cw=f32(2, 2, 3, 3, scale=0.4), cb=f32(2), w=f32(3), gw=f32(18, 3, scale=0.3), gb=f32(3),
        to=ints(0, -1, 3))), \
        [f32(3, 2, 5, 5)]


def fused_attention():
    """The start of BERT as it is optimized: words with their positions and segments, masks of each
    kind, and what is past."""
    m = MICROSOFT + "::"
    one = dict(num_heads=2)
    return model_of(graph(
        [node(f"e,counts = {m}EmbedLayerNormalization ids,segments,we,pe,se,g,b,mask"),
         node(f"a = {m}Attention e,w,wb,mask", **one),
         node(f"c = {m}Attention a,w,wb,counts", unidirectional=1, **one),
         node(f"d,present = {m}Attention c,v,vb", unidirectional=1, qkv_hidden_sizes=[4, 4, 6],
              **one),
         node("rows = Shape ids", start=0, end=1), node("ps = Concat two,rows,two,two,two", axis=0),
         node("past = Expand begin,ps"),
         node(f"k,again = {m}Attention a,w,wb,,past", unidirectional=1, **one),
         node("f = ReduceMean k", axes=[1], keepdims=0)],
        [("ids", T.INT32, ["batch", 5]), ("segments", T.INT32, ["batch", 5]),
         ("mask", T.INT32, ["batch", 5])],
        [("d", F, ["batch", 5, 6]), ("f", F, ["batch", 4])], we=f32(10, 4), pe=f32(6, 4),
        se=f32(2, 4), g=f32(4), b=f32(4), w=f32(4, 12, scale=0.3), wb=f32(12, scale=0.3),
        v=f32(4, 14, scale=0.3), vb=f32(14),
        begin=f32(2, 1, 2, 2, 2), two=ints(2)), 17), \
        [rng.integers(0, 10, (3, 5)).astype(np.int32), rng.integers(0, 2, (3, 5)).astype(np.int32),
         np.array([[1] * 5, [1] * 3 + [0] * 2, [1, 1, 0, 0, 0]], np.int32)]


def quantized_attention():
    """As quantize_dynamic writes what is optimized."""
    m = MICROSOFT + "::"
    return model_of(graph(
        [node(f"e,counts = {m}QEmbedLayerNormalization ids,,we,pe,,g,b,mask,ws,ps,,gs,bs,"
              "wz,pz,,gz,bz"),
         node("q,s,z = DynamicQuantizeLinear e"),
         node(f"y = {m}QAttention q,w,wb,s,vs,mask,z,vz", num_heads=2)],
        [("ids", T.INT32, [1, 5]), ("mask", T.INT32, [1, 5])], [("y", F, [1, 5, 4])],
        we=rng.integers(0, 255, (10, 4)).astype(np.uint8),
        pe=rng.integers(0, 255, (6, 4)).astype(np.uint8),
        g=rng.integers(0, 255, 4).astype(np.uint8), b=rng.integers(0, 255, 4).astype(np.uint8),
        ws=np.float32(0.02), ps=np.float32(0.01), gs=np.float32(0.01), bs=np.float32(0.02),
        wz=np.uint8(120), pz=np.uint8(130), gz=np.uint8(3), bz=np.uint8(128), w=i8(4, 12),
        wb=f32(12), vs=np.float32(0.01), vz=np.int8(2)), 17), \
        [rng.integers(0, 10, (1, 5)).astype(np.int32), np.array([[1, 1, 1, 0, 0]], np.int32)]


# ---- Graphs in graphs, and what is known ----

def branch(name, nodes, *results, **constants):
    return h.make_graph(nodes, name, [], [h.make_tensor_value_info(r, F, None) for r in results],
                        [nh.from_array(np.asarray(v), k) for k, v in constants.items()])


def if_of_data():
    """A second network that runs if the first is sure; in the other branch, what is computed
    already, and a condition of each of the three rows' sum."""
    yes = branch("yes", [node("a = MatMul x,w2"), node("b = Sigmoid a"), node("c = Neg a")], "b", "c")
    no = branch("no", [node("q = Identity p"), node("r = Mul p,two")], "q", "r", two=np.float32(2))
    return model_of(graph(
        [node("m = MatMul x,w1"), node("p = Sigmoid m"), node("top = ReduceMax p", keepdims=0),
         node("g = Greater top,half"), node("y,z = If g", then_branch=yes, else_branch=no),
         node("not = Not g"), node("v,w = If not", then_branch=yes, else_branch=no)],
        [("x", F, [3, 4])], [(k, F, [3, 1]) for k in "yzvw"], half=np.float32(0.5), w1=f32(4, 1),
        w2=f32(4, 1))), [f32(3, 4)]


def if_that_fits_one():
    """A branch for long rows, whose windows short ones cannot fill, and one for these."""
    yes = branch("yes", [node("a = MaxPool x", kernel_shape=[100]), node("b = GlobalMaxPool a")], "b")
    no = branch("no", [node("c = GlobalAveragePool x")], "c")
    return model_of(graph(
        [node("s = ReduceSum x", keepdims=0), node("g = Less s,least"),
         node("y = If g", then_branch=yes, else_branch=no)],
        [("x", F, ["batch", 2, "width"])], [("y", F, ["batch", 2, 1])], least=np.float32(-1e9))), \
        [f32(3, 2, 5)]


def loop_of_constants():
    """A recurrence whose matrices are constants around the loop and in it, over an open length."""
    info = h.make_tensor_value_info
    body = h.make_graph(
        [node("xt = Gather xs,i", axis=1), node("a = MatMul xt,w"), node("b = MatMul state,u"),
         node("c = Add a,b"), node("d = Add c,k"), node("next = Tanh d"), node("goes = Identity on"),
         node("row = Identity next")], "body",
        [info("i", I64, []), info("on", T.BOOL, []), info("state", F, None)],
        [info("goes", T.BOOL, []), info("next", F, None), info("row", F, None)],
        [nh.from_array(f32(3, 3), "u"), nh.from_array(f32(3), "k")])
    return model_of(graph(
        [node("s = Shape xs", start=1, end=2), node("n = Squeeze s"),
         node("r = Shape xs", start=0, end=1), node("zs = Concat r,three", axis=0),
         node("zero = ConstantOfShape zs"),
         node("last,rows = Loop n,yes,zero", body=body), node("y = Transpose rows", perm=[1, 0, 2])],
        [("xs", F, ["batch", "time", 4])], [("y", F, ["batch", "time", 3]), ("last", F, ["batch", 3])],
        w=f32(4, 3), three=ints(3), yes=np.array(True))), [f32(3, 5, 4)]


def zeros_of_the_batch():
    """torch.zeros(batch, 0, 1) * -10, joined with what was computed; and outputs that the batch
    alone determines."""
    return model_of(graph(
        [node("s = Shape x"), node("n = Gather s,i", axis=0), node("shape = Concat n,rest", axis=0),
         node("z = ConstantOfShape shape"), node("m = Mul z,k"), node("r = Relu x"),
         node("y = Concat r,m", axis=1),
         node("counts = ConstantOfShape n", value=nh.from_array(np.array([7], np.int64)))],
        [("x", F, ["batch", 3, 1])], [("y", F, ["batch", 3, 1]), ("counts", I64, ["batch"])],
        i=ints(0), rest=ints(0, 1), k=np.float32(-10))), [f32(3, 3, 1)]


def equal_by_chance():
    """The remainder by 60 is 4 of 64 steps and of 1024, with which files are traced, and 10 here."""
    return model_of(graph(
        [node("s = Shape x", start=1, end=2), node("m = Mod s,sixty"),
         node("y = Slice x,m,s,one")], [("x", F, ["batch", "time"])], [("y", F, ["batch", None])],
        sixty=ints(60), one=ints(1))), [f32(3, 70)]


def constant(name, value):
    return h.make_node("Constant", [], [name], value=nh.from_array(np.asarray(value)))


def weights_in_constants():
    """As Paddle's exporter writes them. The epsilon is no weight."""
    return model_of(graph(
        [constant("w", f32(2, 3, 3, 3)), constant("b", f32(2)), constant("scale", f32(2)),
         constant("shift", f32(2)), constant("mean", f32(2)), constant("var", np.ones(2, "f")),
         constant("e", np.array([1e-5], np.float32)), constant("m", f32(2, 4)),
         node("c = Conv x,w,b"), node("n = BatchNormalization c,scale,shift,mean,var"),
         node("r = Relu n"), node("g = GlobalAveragePool r"), node("f = Flatten g"),
         node("a = Add f,e"), node("y = MatMul a,m")],
        [("x", F, ["batch", 3, 8, 8])], [("y", F, ["batch", 4])])), [f32(3, 3, 8, 8)]


# ---- Local functions ----

def function(name, ins, outs, nodes, attributes=(), defaults=()):
    return h.make_function("local", name, ins, outs, nodes,
                           [h.make_opsetid("", 18), h.make_opsetid("local", 1)], list(attributes),
                           list(defaults))


def refers(n, name, to, kind):
    """The node with an attribute that is the function's attribute `to`."""
    n.attribute.append(onnx.AttributeProto(name=name, ref_attr_name=to, type=kind))
    return n


def functions():
    """Functions in functions, called twice with other attributes, by default and not, with an output
    that nobody wants; in a branch, with the branch in a function."""
    A = onnx.AttributeProto
    leaky = function("Leaky", ["x"], ["y"], [refers(node("y = LeakyRelu x"), "alpha", "slope", A.FLOAT)],
                     defaults=[h.make_attribute("slope", 0.3)])
    layer = function("Layer", ["x", "w", "b"], ["y", "before"],
                     [node("t = MatMul x,w"), node("u = Add t,b"),
                      node("before = Identity u"),
                      refers(node("y = local::Leaky u"), "slope", "a", A.FLOAT)], ["a"])
    yes = branch("yes", [node("t = local::Leaky x", slope=0.5)], "t")
    no = branch("no", [node("t = Neg x")], "t")
    chosen = function("Chosen", ["x"], ["y"],
                      [node("s = Size x"), refers(node("k = Constant"), "value_int", "least", A.INT),
                       node("c = Greater s,k"), node("y = If c", then_branch=yes, else_branch=no)],
                      ["least"])
    return model_of(graph(
        [node("h,before = local::Layer x,w,b", a=0.1), node("g,none = local::Layer h,u,c"),
         node("i = local::Leaky g"), node("y = local::Chosen i", least=3),
         node("z = local::Chosen i", least=10 ** 9)],
        [("x", F, ["batch", 4])], [("y", F, ["batch", 2]), ("before", F, ["batch", 3]),
                                   ("z", F, ["batch", 2])],
        w=f32(4, 3), b=f32(3), u=f32(3, 2), c=f32(2)), 18, [leaky, layer, chosen],
        ["local"]), [f32(3, 4)]


def functions_of_functions():
    """16 of them, of which each calls the next one 10 times."""
    made = [function(f"F{i}", ["x"], ["y"],
                     [node(f"t{k + 1} = local::F{i + 1} " + (f"t{k}" if k else "x")) for k in range(9)] +
                     [node(f"y = local::F{i + 1} t9")]) for i in range(15)]
    made.append(function("F15", ["x"], ["y"], [node("y = Relu x")]))
    return model_of(graph([node("y = local::F0 x")], [("x", F, ["batch", 4])],
                          [("y", F, ["batch", 4])]), 18, made, ["local"])


def function_of_itself():
    return model_of(graph([node("y = local::Again x")], [("x", F, ["batch", 4])],
                          [("y", F, ["batch", 4])]), 18,
                    [function("Again", ["x"], ["y"], [node("y = local::Again x")])], ["local"])


# ---- Signals ----

def signals():
    """Transforms of one side and both, cut and filled up, and back; spectrograms; windows and mel
    scales, which the graph computes from numbers."""
    return model_of(graph(
        [node("a = STFT x,step,window", onesided=1), node("b = STFT x,step,,length", onesided=0),
         node("u = Unsqueeze x,last"), node("c = DFT u", axis=1, onesided=1),
         node("d = DFT u,longer", axis=1), node("e = DFT d,shorter", axis=1, inverse=1),
         node("ap = Mul a,a"), node("power = ReduceSum ap,three", keepdims=0),
         node("mel = MelWeightMatrix mels,length,rate,low,high"), node("m = MatMul power,mel"),
         node("hann = HannWindow twenty"), node("hamming = HammingWindow twenty", periodic=0),
         node("black = BlackmanWindow twenty"), node("w0 = Mul x,hann"), node("w1 = Mul w0,hamming"),
         node("w = Mul w1,black")],
        [("x", F, ["batch", 20])],
        [("a", F, ["batch", 5, 5, 2]), ("b", F, ["batch", 5, 8, 2]), ("c", F, ["batch", 11, 2]),
         ("d", F, ["batch", 32, 2]), ("e", F, ["batch", 12, 2]), ("m", F, ["batch", 5, 3]),
         ("w", F, ["batch", 20])],
        step=np.array(3), window=f32(8), length=np.array(8), last=ints(2), longer=np.array(32),
        shorter=np.array(12), three=ints(3), mels=np.array(3), rate=np.array(8000),
        low=np.float32(100), high=np.float32(4000), twenty=np.array(20)), 17), [f32(3, 20)]


# ---- Images ----

def resized_to_one_pixel():
    """Where the only pixel of an axis comes from is another rule in each mode."""
    names = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"]
    nodes, outputs = [], []
    for mode in ("nearest", "linear", "cubic"):
        for i, name in enumerate(names):
            if mode == "nearest" and name == "half_pixel_symmetric":
                continue
            out = f"{mode}_{name}"
            nodes.append(node(f"{out} = Resize x,,,sizes", mode=mode,
                              axes=[2, 3], coordinate_transformation_mode=name))
            outputs.append((out, F, ["batch", 1, 1, 3]))
    nodes.append(node("s = Resize x,,scales", mode="linear",
                      coordinate_transformation_mode="pytorch_half_pixel"))
    nodes.append(node("t = Concat " + ",".join(o for o, _, _ in outputs), axis=1))
    return model_of(graph(nodes, [("x", F, ["batch", 1, 4, 5])],
                          [("t", F, ["batch", len(outputs), 1, 3]), ("s", F, ["batch", 1, 1, 5])],
                          sizes=ints(1, 3),
                          scales=np.array([1, 1, 0.3, 1], np.float32)), 19), [f32(3, 1, 4, 5)]


# ---- Files that are refused ----

def loops(depth, what="Relu"):
    """Loops in loops of 1,000 turns."""
    info = h.make_tensor_value_info
    inner = node("s2 = Loop n,t,s", body=loops(depth - 1, what)) if depth else node(f"s2 = {what} s")
    return h.make_graph([node("c2 = Identity c"), inner], "body",
                        [info("i", I64, []), info("c", T.BOOL, []), info("s", F, None)],
                        [info("c2", T.BOOL, []), info("s2", F, None)])


def loops_in_loops():
    return model_of(graph([node("y = Loop n,t,x", body=loops(2))], [("x", F, ["batch", 4])],
                          [("y", F, ["batch", 4])], n=np.array(1000), t=np.array(True)))


def loops_of_constants():
    return model_of(graph([node("z = Loop n,t,k", body=loops(2, "Neg")), node("y = Add x,z")],
                          [("x", F, ["batch", 4])], [("y", F, ["batch", 4])], n=np.array(1000),
                          t=np.array(True), k=f32(4)))


def doubling():
    """A constant that is joined with itself 30 times."""
    return model_of(graph([node(f"c{i + 1} = Concat c{i},c{i}", axis=0) for i in range(30)] +
                          [node("s = ReduceSum c30", keepdims=0), node("y = Add x,s")],
                          [("x", F, ["batch", 4])], [("y", F, ["batch", 4])], c0=f32(64)))


def of_ml():
    g = graph([node("y = ai.onnx.ml::Scaler x", offset=[0.5, 1.0], scale=[2.0, 3.0])],
              [("x", F, ["batch", 2])], [("y", F, ["batch", 2])])
    return h.make_model(g, opset_imports=[h.make_opsetid("ai.onnx.ml", 1)], ir_version=8)


def turns():
    """A loop of 1,025 turns, of which each gives a row."""
    info = h.make_tensor_value_info
    body = h.make_graph([node("c2 = Identity c"), node("s2 = Identity s"), node("r = Identity s")],
                        "body", [info("i", I64, []), info("c", T.BOOL, []), info("s", F, None)],
                        [info("c2", T.BOOL, []), info("s2", F, None), info("r", F, None)])
    return model_of(graph([node("y,rows = Loop n,t,x", body=body)], [("x", F, ["batch", 4])],
                          [("y", F, ["batch", 4])], n=np.array(1025), t=np.array(True)))


def large_constant():
    return model_of(graph([node("w = ConstantOfShape shape"), node("z = MatMul x,w"),
                           node("y = Add z,b")], [("x", F, ["batch", 4])], [("y", F, ["batch", 1 << 20])],
                          shape=ints(4, 1 << 20), b=f32(2).sum()))


REFUSED = [functions_of_functions, function_of_itself, loops_in_loops, loops_of_constants, doubling,
           of_ml, turns, large_constant]
CASES = [equal_by_chance, fused, fused_attention, quantized_attention, functions, signals,
         resized_to_one_pixel, if_of_data, if_that_fits_one, loop_of_constants, zeros_of_the_batch,
         weights_in_constants, quantize_dynamic, quantize_qdq, quantize_qoperator, quantize_int8,
         quantized_numbers, quantized_products, dynamic_quantized_lstm]


def write(case):
    model, arrays = case()
    del model.graph.value_info[:]
    path = FOLDER / f"{case.__name__}.onnx"
    onnx.save(model, path)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    outputs = session.run(None, dict(zip([i.name for i in session.get_inputs()], arrays)))
    np.savez(path.with_suffix(".npz"), **{f"x{i}": a for i, a in enumerate(arrays)},
             **{f"p{i}": a for i, a in enumerate(outputs)})
    print(case.__name__, path.stat().st_size, sorted({n.op_type for n in model.graph.node}))


def main():
    global rng
    FOLDER.mkdir(exist_ok=True)
    for case in CASES:
        if len(sys.argv) > 1 and case.__name__ not in sys.argv[1:]:
            continue
        rng = np.random.default_rng(1)
        write(case)
    for case in REFUSED:
        rng = np.random.default_rng(1)
        onnx.save(case(), FOLDER / f"{case.__name__}.onnx")
    lines = [f"python {platform.python_version()}"]
    lines += [f"{p} {version(p)}" for p in ("onnx", "onnxruntime", "numpy")]
    (FOLDER / "VERSIONS").write_text("\n".join(lines) + "\n")


main()
