"""Normalization, attention and activation layers, and activations. Writes norms/.

layers, batch, activations   as in pieces/
attention             CASE/ has the inputs x0, x1, …: query, value, key, mask; m0, m1, … their Keras
                      masks, as u8; weights w0, …; y, d_y, scores where these are returned; and the
                      gradients d_x0, …, d_w0, … of sum(y d_y). paths: those of the weights.
"""

import common
import jax
import jax.numpy as jnp
import keras
import make_pieces
import numpy as np
from keras.src import backend
from make_pieces import Group, layer_case, values

L = keras.layers


def layers():
    group = Group("layers")
    for name, layer, shape in (
        ("layer", L.LayerNormalization(), (3, 5)),
        ("layer_sequence", L.LayerNormalization(), (2, 3, 40)),
        ("layer_axes", L.LayerNormalization(axis=[1, 3]), (2, 3, 4, 5)),
        ("layer_axis_1", L.LayerNormalization(axis=1), (2, 3, 4)),
        ("layer_all", L.LayerNormalization(axis=[-3, -2, -1]), (2, 3, 4, 2)),
        ("layer_no_center", L.LayerNormalization(center=False), (3, 5)),
        ("layer_no_scale", L.LayerNormalization(scale=False, epsilon=0.1), (3, 5)),
        ("layer_bare", L.LayerNormalization(center=False, scale=False), (3, 4, 5)),
        ("layer_rms_scaling", L.LayerNormalization(rms_scaling=True), (3, 5)),
        ("rms", L.RMSNormalization(), (3, 5)),
        ("rms_axes", L.RMSNormalization(axis=[1, 2], epsilon=0.1), (3, 4, 5)),
        ("unit", L.UnitNormalization(), (3, 5)),
        ("unit_axes", L.UnitNormalization(axis=[1, 2]), (3, 4, 5)),
        ("group", L.GroupNormalization(groups=2), (2, 3, 4, 6)),
        ("group_dense", L.GroupNormalization(groups=3), (4, 6)),
        ("group_32", L.GroupNormalization(), (2, 3, 64)),
        ("group_each", L.GroupNormalization(groups=-1, epsilon=0.1), (2, 5, 4)),
        ("group_one", L.GroupNormalization(groups=1, scale=False), (2, 5, 4)),
        ("group_axis", L.GroupNormalization(groups=2, axis=1, center=False), (2, 4, 5, 3)),
        ("re_lu", L.ReLU(), (4, 5)),
        ("re_lu_all", L.ReLU(max_value=2.0, negative_slope=0.2, threshold=0.5), (4, 5)),
        ("re_lu_threshold", L.ReLU(threshold=0.5), (4, 5)),
        ("re_lu_max", L.ReLU(max_value=1.5), (4, 5)),
        ("re_lu_max_zero", L.ReLU(max_value=0.0, negative_slope=0.5), (4, 5)),
        ("re_lu_slope", L.ReLU(negative_slope=0.25), (4, 5)),
        ("leaky_re_lu", L.LeakyReLU(), (4, 5)),
        ("leaky_re_lu_slope", L.LeakyReLU(negative_slope=0.1), (4, 5)),
        ("leaky_re_lu_zero", L.LeakyReLU(negative_slope=0.0), (4, 5)),
        ("p_re_lu", L.PReLU(), (4, 5)),
        ("p_re_lu_shared", L.PReLU(shared_axes=[1, 2]), (2, 3, 4, 5)),
        ("p_re_lu_last", L.PReLU(shared_axes=[-1]), (2, 3, 4)),
        ("elu", L.ELU(), (4, 5)),
        ("elu_alpha", L.ELU(alpha=0.5), (4, 5)),
        ("softmax", L.Softmax(), (4, 5)),
        ("softmax_axis", L.Softmax(axis=1), (2, 3, 4)),
        ("softmax_axes", L.Softmax(axis=[1, 3]), (2, 3, 4, 5)),
    ):
        layer_case(group, name, layer, shape, scale=3.0)
    for name, arguments, shape in (
        ("normalization", {}, (4, 3)), ("normalization_axes", {"axis": [1, 3]}, (2, 3, 4, 5)),
        ("normalization_one", {"axis": []}, (4, 3)),
        ("normalization_given", {"mean": 0.0, "variance": 4.0}, (4, 3)),
        ("normalization_invert", {"invert": True}, (4, 3)),
        ("normalization_small", {}, (3, 2)),
    ):
        layer = L.Normalization(**arguments)
        data = np.asarray(values(f"{name}/data", 7, *shape[1:], scale=2.0)) + 1.0
        if name == "normalization_small":
            data[:, 0] = 3.0
        if "given" in name:
            layer.build(shape)
        else:
            layer.adapt(data)
        x = values(f"{name}/x", *shape, scale=3.0)
        y = layer(x)
        d_y = values(f"{name}/d_y", *y.shape)
        d_x = jax.grad(lambda x: jnp.sum(layer(x) * d_y))(x)
        arrays = {"x": x, "y": y, "d_y": d_y, "d_x": d_x, "data": data}
        if "given" not in name:
            arrays |= {"mean": layer.adapt_mean.value, "variance": layer.adapt_variance.value,
                       "count": np.float32(0)}
        group.case(name, {"layer": "Normalization"} | arguments, **arrays)


def batch():
    """BatchNormalization of other axes than the last, of masked steps, and with renorm."""
    group = Group("batch")
    mask = np.array([[1, 1, 0, 1], [0, 0, 0, 1], [1, 0, 1, 1]], bool)
    clipping = {"rmax": 1.1, "rmin": 0.9, "dmax": 0.2}
    for training in (True, False):
        word = "train" if training else "infer"
        for name, keywords, shape, masked in (
            ("axis_1", {"axis": 1}, (3, 4, 2, 5), False),
            ("axis_2", {"axis": 2, "scale": False}, (3, 2, 4, 3), False),
            ("axis_last", {"axis": 3}, (3, 2, 4, 3), False),
            ("axis_minus_2", {"axis": -2, "center": False}, (3, 4, 2), False),
            ("masked", {}, (3, 4, 2), True), ("masked_axis_1", {"axis": 1}, (3, 4, 2), True),
            ("masked_bare", {"scale": False, "center": False}, (3, 4, 2), True),
            ("renorm", {"renorm": True}, (4, 3), False),
            ("renorm_clipping", {"renorm": True, "renorm_clipping": clipping,
                                 "renorm_momentum": 0.7, "momentum": 0.6, "axis": 1},
             (3, 2, 5), False),
            ("renorm_bare", {"renorm": True, "scale": False, "center": False}, (4, 3), False),
        ):
            layer_case(group, f"{name}_{word}", L.BatchNormalization(**keywords), shape, training,
                       scale=3.0, mask=mask if masked else None)


def activations():
    group = Group("activations")
    points = np.array([-100, -20, -5, -3, -2.5, -1, -0.5, -1e-3, 0, 1e-3, 0.5, 1, 2.5, 3, 5, 6.5,
                       20, 88, 100, 30], np.float32).reshape(4, 5)
    functions = {name: name for name in (
        "celu", "hard_shrink", "hard_silu", "hard_tanh", "log_sigmoid", "log_softmax",
        "soft_shrink", "sparse_plus", "sparse_sigmoid", "sparsemax", "squareplus",
        "tanh_shrink")}
    functions["gelu_approximate"] = lambda x: keras.activations.gelu(x, approximate=True)
    for name, function in functions.items():
        for kind in ("points", "random"):
            x = jnp.asarray(points) if kind == "points" else values(f"activations/{name}", 4, 5,
                                                                    scale=3.0)
            layer = L.Activation(function)
            result, _ = make_pieces.forward_backward(layer, x, None,
                                                     f"activations/{name}_{kind}/d_y")
            group.case(f"{name}_{kind}", {"activation": name}, **result)
    x = values("activations/glu", 3, 6, scale=3.0)
    result, _ = make_pieces.forward_backward(L.Activation("glu"), x, None, "activations/glu/d_y")
    group.case("glu", {"activation": "glu"}, **result)


CASES = {}
B, T, S = 2, 5, 4


def attention_case(name, arguments, inputs, masks=(), mask=None, scores=False, causal=False):
    """inputs: the shapes of query, value, key; one stands for all three. Keras' fused product, which
    on JAX takes heads of one size only, gives no scores: to ask for them is the other way."""
    layer = L.MultiHeadAttention(**arguments)
    roles = ("query", "value", "key")[:max(len(inputs), 2)]
    shapes = list(inputs) if len(inputs) > 1 else [inputs[0]] * 2
    layer.build(*shapes)
    for i, w in enumerate(layer.weights):
        w.assign(0.7 * values(f"{name}/w{i}", *w.shape))
    x = [values(f"{name}/x{i}", *shape, scale=2.0) for i, shape in enumerate(inputs)]
    keywords = {"use_causal_mask": causal}
    if mask is not None:
        keywords["attention_mask"] = mask
    apart = scores or "value_dim" in arguments
    if apart:
        keywords["return_attention_scores"] = True

    def run(weights, x):
        given = [jnp.asarray(v) for v in x]
        for v, m in zip(given, masks):
            if m is not None:
                backend.set_keras_mask(v, m)
        given = given if len(given) > 1 else given * 2
        with keras.StatelessScope(state_mapping=list(zip(layer.weights, weights))):
            result = layer(**dict(zip(roles, given)), **keywords, training=True)
            return result if apart else (result, None)

    weights = [w.value for w in layer.weights]
    result, probabilities = run(weights, x)
    arrays = {f"x{i}": v for i, v in enumerate(x)} | {f"w{i}": w for i, w in enumerate(weights)}
    arrays |= {f"m{i}": np.asarray(m, np.uint8) for i, m in enumerate(masks) if m is not None}
    if mask is not None:
        arrays[f"x{len(x)}"] = np.asarray(mask, np.uint8)
    if scores:
        arrays["scores"] = probabilities
    d_y = values(f"{name}/d_y", *result.shape)

    def loss(weights, x):
        return jnp.sum(run(weights, x)[0] * d_y)

    d_w, d_x = jax.grad(loss, argnums=(0, 1))(weights, x)
    arrays |= {"y": result, "d_y": d_y}
    arrays |= {f"d_w{i}": d for i, d in enumerate(d_w)} | {f"d_x{i}": d for i, d in enumerate(d_x)}
    CASES[name] = ({"paths": ["/".join(w.path.split("/")[-2:]) for w in layer.weights],
                    "parameters": layer.count_params()}, arrays)


def attention():
    query, value, key = (B, T, 6), (B, S, 5), (B, S, 3)
    two = {"num_heads": 2, "key_dim": 3}
    steps_q = np.array([[1, 1, 1, 0, 1], [1, 0, 1, 1, 1]], bool)
    steps_v = np.array([[1, 1, 0, 1], [0, 1, 1, 1]], bool)
    steps_k = np.array([[1, 1, 1, 0], [1, 1, 1, 1]], bool)
    given = np.arange(B * T * S).reshape(B, T, S) % 3 != 0
    attention_case("self", two, [query])
    attention_case("self_one_head", {"num_heads": 1, "key_dim": 4}, [query])
    attention_case("self_causal", two, [query], causal=True)
    attention_case("self_masked", two, [query], masks=[steps_q])
    attention_case("self_masked_causal", two, [query], masks=[steps_q], causal=True)
    attention_case("self_window", two | {"sliding_window": 2}, [query])
    attention_case("self_window_causal", two | {"sliding_window": 2}, [query], causal=True)
    attention_case("self_gate", two | {"use_gate": True}, [query])
    attention_case("self_output_shape", two | {"output_shape": (4, 2)}, [query])
    attention_case("cross", two | {"value_dim": 4}, [query, value])
    attention_case("cross_no_bias", two | {"use_bias": False}, [query, value])
    attention_case("cross_key", two | {"value_dim": 2}, [query, value, key])
    attention_case("cross_masked", two, [query, value, key], masks=[steps_q, steps_v, steps_k])
    attention_case("cross_value_masked", two, [query, value], masks=[None, steps_v])
    attention_case("cross_causal", two, [query, value], causal=True)
    attention_case("cross_given", two, [query, value, key], mask=given)
    attention_case("cross_given_heads", two, [query, value, key],
                   mask=np.stack([given, np.roll(given, 1, 1)], 1))
    attention_case("cross_given_one", two, [query, value, key], mask=given[:, :1],
                   masks=[None, steps_v], causal=True)
    image, other = (B, 3, 4, 6), (B, 3, 2, 5)
    attention_case("axes_all", two, [image])
    attention_case("axes_last", two | {"attention_axes": (-2,)}, [image, other])
    attention_case("axes_first", two | {"attention_axes": 1, "use_gate": True}, [image])
    attention_case("axes_output_shape", two | {"output_shape": (4, 2)}, [image])
    attention_case("scores", two, [query, value], scores=True, causal=True)


out = common.folder("norms")
layers()
batch()
activations()
for name, group in make_pieces.GROUPS.items():
    common.write_arrays(out / f"{name}.safetensors", group.arrays, group.cases)
attention()
common.write_arrays(out / "attention.safetensors",
                    {f"{n}/{k}": v for n, (_, a) in CASES.items() for k, v in a.items()},
                    {n: about for n, (about, _) in CASES.items()})
