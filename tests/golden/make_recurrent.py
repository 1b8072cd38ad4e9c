"""recurrent/: LSTM, GRU and SimpleRNN of Keras on one small batch: outputs, last states and the
gradients of a weighted sum of these. With masks, initial states, both directions, both
forms of GRU, and activations other than the usual ones."""

import common
import jax
import jax.numpy as jnp
import keras
import numpy as np

B, T, I, U = 3, 5, 4, 6
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 1, 0, 1, 1]], bool)
OTHER = dict(activation="relu", recurrent_activation="hard_sigmoid")

# name: layer, arguments, masked
CASES = {
    "lstm": (keras.layers.LSTM, {}, False),
    "lstm_mask": (keras.layers.LSTM, {}, True),
    "lstm_reverse": (keras.layers.LSTM, dict(go_backwards=True), True),
    "lstm_other": (keras.layers.LSTM, OTHER, True),
    "gru": (keras.layers.GRU, {}, False),
    "gru_mask": (keras.layers.GRU, {}, True),
    "gru_reverse": (keras.layers.GRU, dict(go_backwards=True), True),
    "gru_before": (keras.layers.GRU, dict(reset_after=False), True),
    "gru_other": (keras.layers.GRU, OTHER, False),
    "simple_rnn": (keras.layers.SimpleRNN, {}, False),
    "simple_rnn_reverse": (keras.layers.SimpleRNN, dict(go_backwards=True), True),
}


def numbers(name, *shape):
    return common.hashed_uniform(name, int(np.prod(shape))).reshape(shape)


def run(name, make, arguments, masked):
    """All arrays of one case. Outputs are in the order of steps in either direction."""
    layer = make(U, return_sequences=True, return_state=True, **arguments)
    layer.build((B, T, I))
    x = numbers(name + "/x", B, T, I)
    weights = [np.float32(0.7) * numbers(f"{name}/w{k}", *w.shape) for k, w in enumerate(layer.weights)]
    lstm = make is keras.layers.LSTM
    states = [numbers(f"{name}/s{k}", B, U) for k in range(2 if lstm else 1)]
    d_h = numbers(name + "/d_h", B, T, U)
    d_last = [numbers(f"{name}/d_last{k}", B, U) for k in range(len(states))]
    variables = [v.value for v in layer.non_trainable_variables]
    reverse = arguments.get("go_backwards", False)

    def outputs(x, weights, states):
        made, _ = layer.stateless_call(
            weights, variables, x, initial_state=states,
            mask=jnp.asarray(MASK) if masked else None)
        h = made[0][:, ::-1] if reverse else made[0]
        return h, list(made[1:])

    def loss(x, weights, states):
        h, last = outputs(x, weights, states)
        return jnp.sum(h * d_h) + sum(jnp.sum(a * b) for a, b in zip(last, d_last))

    h, last = outputs(x, weights, states)
    d_x, d_weights, d_states = jax.grad(loss, argnums=(0, 1, 2))(x, weights, states)
    names = ["kernel", "recurrent", "bias"]
    arrays = {"x": x, "h": h, "weight_h": d_h, "d_x": d_x}
    for k, n in enumerate(names):
        arrays[n], arrays["d_" + n] = weights[k], d_weights[k]
    for k, n in enumerate("hc"[: len(states)]):
        arrays[n + "0"], arrays["d_" + n + "0"] = states[k], d_states[k]
        arrays["last_" + n], arrays["weight_last_" + n] = last[k], d_last[k]
    return {f"{name}/{k}": v for k, v in arrays.items()}


def main():
    arrays, cases = {"mask": MASK.astype(np.uint8)}, {}
    for name, (make, arguments, masked) in CASES.items():
        arrays.update(run(name, make, arguments, masked))
        cases[name] = {"layer": make.__name__, "masked": masked, **arguments}
    common.write_arrays(common.folder("recurrent") / "recurrent.safetensors", arrays, cases)


main()
