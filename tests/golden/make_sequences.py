"""Sequences: recurrent layers, their wrappers, masks, states. Writes sequences/layers.safetensors
and sequences/training.safetensors.

A case is a Sequential model of the layers in its "layers", each [class, arguments]. x, y, d_y as
everywhere; w0, w1, … are the weights, d_w0, … their gradients of sum(y d_y). A stateful case is
called twice: x1, y1 come before x, y, and the gradients are those of the second call.
training: the logs and final weights of fit where masks change the weight of steps.
"""

import common
import jax
import jax.numpy as jnp
import keras
import numpy as np

B, T, C, U = 3, 5, 4, 3
CASES = {}


def layer_of(description):
    kind, arguments = description
    made = {k: layer_of(v) if k in ("layer", "backward_layer", "cell") else
               [layer_of(cell) for cell in v] if k == "cells" else v
            for k, v in arguments.items()}
    return getattr(keras.layers, kind)(**made)


def values(name, *shape):
    u = common.hashed_uniform(name, int(np.prod(shape))).reshape(shape)
    return jnp.asarray(u)


def masked(x):
    """Steps of minus one: in the middle, at the beginning, and a row of nothing else."""
    x = np.array(x)
    x[0, 2] = x[0, 4] = x[1, 0] = x[1, 1] = x[2, :] = -1.0
    return jnp.asarray(x)


def case(name, *layers, input_shape=(T, C), inputs=None):
    stateful = "stateful" in name
    shape = {"batch_shape": (B,) + input_shape} if stateful else {"shape": input_shape}
    model = keras.Sequential([keras.Input(**shape)] + [layer_of(d) for d in layers])
    for i, w in enumerate(model.weights):
        w.assign(0.7 * values(f"{name}/w{i}", *w.shape))
    about = {"layers": [list(d) for d in layers], "paths": [w.path for w in model.weights]}
    arrays = {f"w{i}": w.value for i, w in enumerate(model.weights)}
    x = values(f"{name}/x", B, *input_shape) if inputs is None else inputs
    if "mask" in name and inputs is None:
        x = masked(x)
    if stateful:
        arrays["x1"] = values(f"{name}/x1", B, *input_shape)
        arrays["y1"] = model(arrays["x1"])

    def forward(weights, x):
        with keras.StatelessScope(state_mapping=list(zip(model.weights, weights))):
            return model(x, training=True)

    weights = [w.value for w in model.weights]
    y = forward(weights, x)
    d_y = values(f"{name}/d_y", *y.shape)
    loss = lambda weights, x: jnp.sum(forward(weights, x) * d_y)
    arrays |= {"x": x, "y": y, "d_y": d_y}
    if jnp.issubdtype(x.dtype, jnp.floating):
        d_w, arrays["d_x"] = jax.grad(loss, argnums=(0, 1))(weights, x)
    else:
        d_w = jax.grad(loss)(weights, x)
    arrays |= {f"d_w{i}": d for i, d in enumerate(d_w)}
    CASES[name] = (about, arrays)


def layers():
    masking = ("Masking", {"mask_value": -1.0})
    for kind in ("LSTM", "GRU", "SimpleRNN"):
        def rnn(**arguments):
            return (kind, {"units": U} | arguments)
        case(f"{kind}", rnn())
        case(f"{kind}_sequences", rnn(return_sequences=True))
        case(f"{kind}_backwards", rnn(go_backwards=True))
        case(f"{kind}_backwards_sequences", rnn(go_backwards=True, return_sequences=True))
        case(f"{kind}_mask", masking, rnn())
        case(f"{kind}_mask_sequences", masking, rnn(return_sequences=True))
        case(f"{kind}_mask_zeros", masking, rnn(return_sequences=True, zero_output_for_mask=True))
        case(f"{kind}_mask_zeros_last", masking, rnn(zero_output_for_mask=True))
        case(f"{kind}_mask_backwards", masking, rnn(go_backwards=True, return_sequences=True))
        case(f"{kind}_mask_two", masking, rnn(return_sequences=True), rnn())
        case(f"{kind}_stateful", rnn(stateful=True))
        case(f"{kind}_stateful_sequences", rnn(stateful=True, return_sequences=True))
        case(f"{kind}_stateful_backwards", rnn(stateful=True, go_backwards=True))
        case(f"{kind}_no_bias", rnn(use_bias=False, return_sequences=True))
        case(f"{kind}_unroll", rnn(unroll=True))
        case(f"{kind}_one_step", rnn(), input_shape=(1, C))
        bidirectional = lambda **a: ("Bidirectional", {"layer": rnn(return_sequences=True)} | a)
        case(f"Bidirectional_{kind}", bidirectional())
        case(f"Bidirectional_{kind}_mask", masking, bidirectional())
        case(f"Bidirectional_{kind}_last", ("Bidirectional", {"layer": rnn()}))
        case(f"Bidirectional_{kind}_mask_last", masking, ("Bidirectional", {"layer": rnn()}))
        for mode in ("sum", "mul", "ave"):
            case(f"Bidirectional_{kind}_{mode}", bidirectional(merge_mode=mode))
    for kind in ("LSTM", "GRU"):
        case(f"{kind}_activations", (kind, {"units": U, "activation": "relu",
                                            "recurrent_activation": "hard_sigmoid"}))
        case(f"{kind}_linear_mask", masking, (kind, {"units": U, "activation": "linear"}))
    case("SimpleRNN_activation", ("SimpleRNN", {"units": U, "activation": "softsign"}))
    for more in ("", "_sequences", "_mask"):
        case(f"GRU_reset_before{more}", *([masking] if more == "_mask" else []),
             ("GRU", {"units": U, "reset_after": False, "return_sequences": bool(more)}))
    case("Bidirectional_two", ("Bidirectional", {
        "layer": ("LSTM", {"units": 2, "return_sequences": True}),
        "backward_layer": ("GRU", {"units": 3, "return_sequences": True, "go_backwards": True})}))
    case("Bidirectional_stateful", ("Bidirectional", {"layer": ("GRU", {"units": U,
                                                                        "stateful": True})}))
    case("TimeDistributed_Dense", ("TimeDistributed", {"layer": ("Dense", {
        "units": 2, "activation": "tanh"})}))
    case("TimeDistributed_Conv2D", ("TimeDistributed", {"layer": ("Conv2D", {
        "filters": 2, "kernel_size": [2, 2]})}), input_shape=(2, 3, 3, 2))
    case("TimeDistributed_mask", masking,
         ("TimeDistributed", {"layer": ("Dense", {"units": 2})}), ("LSTM", {"units": U}))
    case("Masking_mask", masking)
    tokens = jnp.asarray([[1, 2, 0, 3, 5], [4, 0, 0, 0, 0], [0, 1, 1, 5, 2]], jnp.int32)
    embedding = ("Embedding", {"input_dim": 6, "output_dim": C})
    case("Embedding", embedding, input_shape=(T,), inputs=tokens)
    zeros = ("Embedding", {"input_dim": 6, "output_dim": C, "mask_zero": True})
    case("Embedding_mask", zeros, ("LSTM", {"units": U, "return_sequences": True}),
         ("Dropout", {"rate": 0.0}), ("Dense", {"units": 2}), ("GRU", {"units": 2}),
         input_shape=(T,), inputs=tokens)


def training():
    tokens = np.array([[1, 2, 0, 3], [4, 0, 0, 0], [5, 5, 1, 2], [0, 0, 3, 0], [2, 1, 0, 0]],
                      np.int32)
    labels = (np.arange(20).reshape(5, 4) * 7 % 3).astype(np.int32)
    L = keras.layers
    model = keras.Sequential([
        keras.Input((4,)), L.Embedding(6, C, mask_zero=True),
        L.LSTM(U, return_sequences=True), L.Dense(3, activation="softmax")])
    for i, w in enumerate(model.weights):
        w.assign(0.7 * values(f"training/w{i}", *w.shape))
    arrays = {"x": tokens, "labels": labels}
    arrays |= {f"w{i}": np.array(w.value) for i, w in enumerate(model.weights)}
    model.compile(keras.optimizers.SGD(0.5), "sparse_categorical_crossentropy",
                  metrics=["accuracy"])
    before = model.evaluate(tokens, labels, batch_size=2, verbose=0)
    history = model.fit(tokens, labels, batch_size=2, epochs=2, shuffle=False, verbose=0).history
    arrays |= {f"after{i}": np.array(w.value) for i, w in enumerate(model.weights)}
    about = {"before": [float(v) for v in before],
             "history": {k: [float(v) for v in h] for k, h in history.items()}}
    return about, arrays


def write(path):
    common.write_arrays(path, {f"{n}/{k}": v for n, (_, a) in CASES.items()
                               for k, v in a.items()},
                        {n: about for n, (about, _) in CASES.items()})


def main():
    out = common.folder("sequences")
    layers()
    write(out / "layers.safetensors")
    about, arrays = training()
    common.write_arrays(out / "training.safetensors",
                        {f"masked/{k}": v for k, v in arrays.items()}, {"masked": about})


if __name__ == "__main__":
    main()
