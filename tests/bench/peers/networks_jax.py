"""The networks of models/ as functions of JAX: parameters, states, and logits.

Each network is init(key) -> (parameters, states) and logits(parameters, states, x, key) ->
(logits, new states); x is a batch as bytes, the states are those of batch normalization. Products
have the precision that the program sets. Networks with max pooling come in two forms, with the
reduce_window that JAX's libraries use, and with a reshape, which is faster on processors.
"""

import functools
import math

import jax
import jax.numpy as jnp
from jax import lax

SEQUENCE, VOCABULARY = 100, 256


# ---- Layers ----

class Source:
    """A new key for each use."""

    def __init__(self, key):
        self.key, self.used = key, 0

    def next(self):
        self.used += 1
        return jax.random.fold_in(self.key, self.used)


def glorot(source, *shape):
    fan_in, fan_out = math.prod(shape[:-1]), math.prod(shape[:-2]) * shape[-1]
    limit = math.sqrt(6.0 / (fan_in + fan_out))
    return jax.random.uniform(source.next(), shape, jnp.float32, -limit, limit)


def linear(source, *shape):
    """Kernel and bias of a dense layer or of a convolution."""
    return {"w": glorot(source, *shape), "b": jnp.zeros(shape[-1])}


def dense(p, x):
    return x @ p["w"] + p["b"]


def conv(p, x, padding, strides=1):
    y = lax.conv_general_dilated(x, p["w"], (strides, strides), padding,
                                 dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return y + p["b"]


def window_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def reshape_pool(x):
    b, h, w, c = x.shape[0], x.shape[1] // 2, x.shape[2] // 2, x.shape[3]
    return x[:, :2 * h, :2 * w].reshape(b, h, 2, w, 2, c).max((2, 4))


def dropout(source, rate, x):
    kept = jax.random.bernoulli(source.next(), 1.0 - rate, x.shape)
    return jnp.where(kept, x / (1.0 - rate), 0.0)


def flatten(x):
    return x.reshape(x.shape[0], -1)


def norm_init(channels):
    ones, zeros = jnp.ones(channels), jnp.zeros(channels)
    return {"scale": ones, "offset": zeros}, {"mean": zeros, "variance": ones}


def batch_norm(p, state, x):
    axes = tuple(range(x.ndim - 1))
    mean = x.mean(axes)
    variance = jnp.square(x - mean).mean(axes)
    y = (x - mean) * lax.rsqrt(variance + 1e-3) * p["scale"] + p["offset"]
    return y, {"mean": 0.99 * state["mean"] + 0.01 * mean,
               "variance": 0.99 * state["variance"] + 0.01 * variance}


def layer_norm(p, x):
    centred = x - x.mean(-1, keepdims=True)
    return (centred * lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5) * p["scale"]
            + p["offset"])


# ---- Images ----

def mnist_cnn_init(key):
    s = Source(key)
    return {"conv": [linear(s, 3, 3, 1, 32), linear(s, 3, 3, 32, 64), linear(s, 3, 3, 64, 64)],
            "dense": [linear(s, 576, 64), linear(s, 64, 10)]}, {}


def mnist_cnn(pool, p, states, x, key):
    s = Source(key)
    x = x.astype(jnp.float32) / 255.0
    x = pool(jax.nn.relu(conv(p["conv"][0], x, "VALID")))
    x = pool(jax.nn.relu(conv(p["conv"][1], x, "VALID")))
    x = jax.nn.relu(conv(p["conv"][2], x, "VALID"))
    x = jax.nn.relu(dense(p["dense"][0], flatten(x)))
    return dense(p["dense"][1], dropout(s, 0.5, x)), states


def fashion_init(key):
    s = Source(key)
    channels = (1, 64, 128, 256)
    norms = [norm_init(c) for c in channels[:3]]
    return {"norm": [p for p, _ in norms],
            "conv": [linear(s, 5, 5, channels[i], channels[i + 1]) for i in range(3)],
            "dense": [linear(s, 2304, 256), linear(s, 256, 10)]}, [state for _, state in norms]


def fashion_mnist_cnn(pool, p, states, x, key):
    s, new_states = Source(key), []
    x = x.astype(jnp.float32)
    for i in range(3):
        x, state = batch_norm(p["norm"][i], states[i], x)
        new_states.append(state)
        x = dropout(s, 0.25, pool(jax.nn.elu(conv(p["conv"][i], x, "SAME"))))
    x = jax.nn.elu(dense(p["dense"][0], flatten(x)))
    return dense(p["dense"][1], dropout(s, 0.5, x)), new_states


RESNET = [(filters, 2 if filters > 16 and i == 0 else 1) for filters in (16, 32, 64)
          for i in range(3)]


def resnet20_init(key):
    s, states, channels = Source(key), [], 16

    def normalized(*shape):
        norm, state = norm_init(shape[-1])
        states.append(state)
        return {**linear(s, *shape), **norm}
    stem, blocks = normalized(3, 3, 1, 16), []
    for filters, strides in RESNET:
        block = {"a": normalized(3, 3, channels, filters), "b": normalized(3, 3, filters, filters)}
        if strides > 1:
            block["short"] = linear(s, 1, 1, channels, filters)
        blocks.append(block)
        channels = filters
    return {"stem": stem, "blocks": blocks, "dense": linear(s, 64, 10)}, states


def resnet20(p, states, x, key):
    before, states = iter(states), []

    def normalized(q, x, strides=1):
        y, state = batch_norm(q, next(before), conv(q, x, "SAME", strides))
        states.append(state)
        return y
    x = jax.nn.relu(normalized(p["stem"], x.astype(jnp.float32) / 255.0))
    for (_, strides), q in zip(RESNET, p["blocks"]):
        y = normalized(q["b"], jax.nn.relu(normalized(q["a"], x, strides)))
        if strides > 1:
            x = conv(q["short"], x, "SAME", strides)
        x = jax.nn.relu(x + y)
    return dense(p["dense"], x.mean((1, 2))), states


def resnet20_penalty(p):
    convolutions = [p["stem"]] + [q for block in p["blocks"] for q in block.values()]
    return 1e-4 * sum(jnp.sum(jnp.square(q["w"])) for q in convolutions)


# ---- Text ----

def lstm_init(channels, units, layers, key):
    s, p = Source(key), {"lstm": []}
    p["embedding"] = jax.random.uniform(s.next(), (VOCABULARY, channels), minval=-.05, maxval=.05)
    for _ in range(layers):
        p["lstm"].append({**linear(s, channels, 4 * units), "u": glorot(s, units, 4 * units)})
        channels = units
    p["dense"] = linear(s, units, VOCABULARY)
    return p, {}


def lstm(p, x, gate):
    """The products with x for all steps at once, the recurrence as a scan over time."""
    units = p["u"].shape[0]
    zeros = jnp.zeros((x.shape[0], units))

    def step(carry, z):
        h, c = carry
        a = z + h @ p["u"]
        i, f, g, o = (a[:, k * units:(k + 1) * units] for k in range(4))
        c = gate(f) * c + gate(i) * jnp.tanh(g)
        h = gate(o) * jnp.tanh(c)
        return (h, c), h
    _, y = lax.scan(step, (zeros, zeros), jnp.swapaxes(dense(p, x), 0, 1))
    return jnp.swapaxes(y, 0, 1)


def lstm_network(gate, p, states, x, key):
    x = p["embedding"][x]
    for layer in p["lstm"]:
        x = lstm(layer, x, gate)
    return dense(p["dense"], x), states


def old_hard_sigmoid(x):
    return jnp.clip(0.2 * x + 0.5, 0.0, 1.0)


CHANNELS, HEADS, BLOCKS = 128, 4, 4


def char_gpt_init(key):
    s = Source(key)
    norm = lambda: norm_init(CHANNELS)[0]
    small = lambda rows: jax.random.uniform(s.next(), (rows, CHANNELS), minval=-.05, maxval=.05)
    blocks = [{"norm": [norm(), norm()],
               **{name: linear(s, CHANNELS, CHANNELS) for name in "qkvo"},
               "up": linear(s, CHANNELS, 4 * CHANNELS), "down": linear(s, 4 * CHANNELS, CHANNELS)}
              for _ in range(BLOCKS)]
    return {"embedding": small(VOCABULARY), "position": small(SEQUENCE), "blocks": blocks,
            "norm": norm(), "dense": linear(s, CHANNELS, VOCABULARY)}, {}


def attention(p, x):
    heads = lambda y: y.reshape(*y.shape[:2], HEADS, CHANNELS // HEADS).transpose(0, 2, 1, 3)
    q, k, v = (heads(dense(p[name], x)) for name in "qkv")
    scores = jnp.einsum("bhqd,bhkd->bhqk", q / math.sqrt(CHANNELS // HEADS), k)
    causal = jnp.tril(jnp.ones(scores.shape[2:], bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e9))
    y = jnp.einsum("bhqk,bhkd->bhqd", weights, v).transpose(0, 2, 1, 3)
    return dense(p["o"], y.reshape(x.shape))


def char_gpt(p, states, x, key):
    s = Source(key)
    x = dropout(s, 0.1, p["embedding"][x] + p["position"])
    for q in p["blocks"]:
        x = x + dropout(s, 0.1, attention(q, layer_norm(q["norm"][0], x)))
        y = jax.nn.gelu(dense(q["up"], layer_norm(q["norm"][1], x)), approximate=False)
        x = x + dropout(s, 0.1, dense(q["down"], y))
    return dense(p["dense"], layer_norm(p["norm"], x)), states


# ---- Optimizers, in Keras' forms: init(w) -> slots, update(w, g, slots, t) -> w, slots ----

def each(function, *trees):
    """Trees of what the function returns for each leaf, a tuple."""
    first = jax.tree.structure(trees[0])
    rows = [function(*leaves) for leaves in zip(*map(jax.tree.leaves, trees))]
    return tuple(jax.tree.unflatten(first, column) for column in zip(*rows))


def zeros_like(tree):
    return jax.tree.map(jnp.zeros_like, tree)


class Adam:
    def __init__(self, rate, beta_2=0.999, decay=0.0, clip=None):
        self.rate, self.beta_2, self.decay, self.clip = rate, beta_2, decay, clip

    def init(self, w):
        return zeros_like(w), zeros_like(w)

    def update(self, w, g, slots, t):
        rate, next_t = self.rate(t), t + 1.0
        step = rate * jnp.sqrt(1.0 - self.beta_2 ** next_t) / (1.0 - 0.9 ** next_t)
        if self.clip:
            norm = jnp.sqrt(sum(jnp.sum(jnp.square(x)) for x in jax.tree.leaves(g)))
            g = jax.tree.map(lambda x: x * self.clip / jnp.maximum(norm, self.clip), g)

        def one(w, g, m, v):
            m = m + (g - m) * 0.1
            v = v + (g * g - v) * (1.0 - self.beta_2)
            return w - rate * self.decay * w - m * step / (jnp.sqrt(v) + 1e-7), m, v
        w, m, v = each(one, w, g, *slots)
        return w, (m, v)


class RMSprop:
    def __init__(self, rate, epsilon, initial):
        self.rate, self.epsilon, self.initial = rate, epsilon, initial

    def init(self, w):
        return jax.tree.map(lambda x: jnp.full_like(x, self.initial), w)

    def update(self, w, g, slots, t):
        def one(w, g, v):
            v = 0.9 * v + 0.1 * g * g
            return w - self.rate(t) * g / jnp.sqrt(v + self.epsilon), v
        return each(one, w, g, slots)


def constant(rate):
    return lambda t: rate


def staircase(t):
    return 1e-3 * 0.8 ** jnp.floor(t / 100.0)


def rise_and_fall(t):
    """Up to 1e-3 for 100 steps, then down to a tenth as a cosine."""
    wave = 0.5 * (1.0 + jnp.cos(math.pi * jnp.minimum(t - 100.0, 900.0) / 900.0))
    return jnp.where(t < 100.0, 1e-5 * t, 1e-3 * (0.9 * wave + 0.1))


# ---- All of them: init, forms of logits, trained parameters, optimizer, penalty ----

def with_pools(network):
    return {"window": functools.partial(network, window_pool),
            "reshape": functools.partial(network, reshape_pool)}


def with_gate(gate):
    return {"jit": functools.partial(lstm_network, gate)}


NETWORKS = {
    "mnist_cnn": (mnist_cnn_init, with_pools(mnist_cnn), 93322, Adam(constant(1e-3)), None),
    "fashion_mnist_cnn": (fashion_init, with_pools(fashion_mnist_cnn), 1619084,
                          Adam(constant(1e-3)), None),
    "resnet20": (resnet20_init, {"jit": resnet20}, 272778, Adam(staircase), resnet20_penalty),
    "shakespeare_lstm": (functools.partial(lstm_init, 512, 512, 2), with_gate(old_hard_sigmoid),
                         4460800, RMSprop(constant(1e-2), 1e-10, 1.0), None),
    "shakespeare_lstm_quick": (functools.partial(lstm_init, 64, 256, 1),
                               with_gate(jax.nn.sigmoid), 410880,
                               RMSprop(constant(1e-2), 1e-7, 0.0), None),
    "char_gpt": (char_gpt_init, {"jit": char_gpt}, 871936,
                 Adam(rise_and_fall, beta_2=0.99, decay=0.01, clip=1.0), None),
}
