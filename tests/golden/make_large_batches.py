"""LARS and warm-up, which Keras lacks, by optax. Writes large_batches/.

lars.safetensors     ten steps of LARS with each of its arguments, gradients given
warmup.safetensors   rates of 50 steps
"""

import common
import jax.numpy as jnp
import numpy as np
import optax

STEPS = 10


def values(name, *shape, scale=1.0):
    u = common.hashed_uniform(name, int(np.prod(shape))).reshape(shape)
    return np.array(np.float32(scale) * u)


def mask(pattern):
    """Of the three weights, those that the pattern does not exclude."""
    return {name: not (pattern and pattern in name) for name in ("kernel", "bias", "zero")}


def lars(given):
    decayed = given.get("exclude_from_weight_decay")
    adapted = given.get("exclude_from_layer_adaptation", decayed)
    rate, eeta = given.get("learning_rate", 0.01), given.get("eeta", 0.001)
    momentum, nesterov = given.get("momentum", 0.9), given.get("nesterov", False)
    if given.get("classic_momentum", True):
        return optax.lars(rate, weight_decay=given.get("weight_decay", 0.0),
                          weight_decay_mask=mask(decayed), trust_coefficient=eeta,
                          trust_ratio_mask=mask(adapted), momentum=momentum, nesterov=nesterov)
    return optax.chain(
        optax.add_decayed_weights(given.get("weight_decay", 0.0), mask(decayed)),
        optax.trace(decay=momentum, nesterov=nesterov),
        optax.masked(optax.scale_by_trust_ratio(trust_coefficient=eeta), mask(adapted)),
        optax.scale_by_learning_rate(rate))


CASES = {
    "lars": {},
    "rate": {"learning_rate": 5.0},
    "momentum": {"learning_rate": 5.0, "momentum": 0.5, "eeta": 0.02},
    "nesterov": {"learning_rate": 5.0, "nesterov": True},
    "decay": {"learning_rate": 5.0, "weight_decay": 0.3},
    "excluded": {"learning_rate": 0.5, "eeta": 0.1, "weight_decay": 0.3,
                 "exclude_from_weight_decay": "bias"},
    "excluded_apart": {"learning_rate": 0.5, "eeta": 0.1, "weight_decay": 0.3,
                       "exclude_from_weight_decay": "kernel",
                       "exclude_from_layer_adaptation": "bias"},
    "not_classic": {"learning_rate": 5.0, "weight_decay": 0.1, "classic_momentum": False},
    "not_classic_nesterov": {"learning_rate": 5.0, "classic_momentum": False, "nesterov": True},
}


def steps():
    start = {"kernel": values("lars/kernel", 3, 4), "bias": values("lars/bias", 4),
             "zero": np.zeros(4, np.float32)}
    gradients = {name: values(f"lars/g_{name}", STEPS, *w.shape, scale=2.0)
                 for name, w in start.items()}
    gradients["bias"][4] = 0.0                      # a norm of 0
    arrays = {f"{name}0": w for name, w in start.items()}
    arrays |= {f"gradient_{name}": g for name, g in gradients.items()}
    for case, given in CASES.items():
        optimizer = lars(given)
        w = {name: jnp.asarray(x) for name, x in start.items()}
        state = optimizer.init(w)
        history = {name: [] for name in w}
        for i in range(STEPS):
            updates, state = optimizer.update({n: jnp.asarray(g[i]) for n, g in gradients.items()},
                                              state, w)
            w = optax.apply_updates(w, updates)
            for name in w:
                history[name].append(np.array(w[name]))
        arrays |= {f"{case}/{name}": np.stack(h) for name, h in history.items()}
    return arrays, {case: {"given": given} for case, given in CASES.items()}


def warmup():
    """join_schedules counts the iterations of the second schedule from its beginning: undone."""
    def joined(after, steps, first):
        rise = optax.linear_schedule(first, float(after(steps)), steps)
        return optax.join_schedules([rise, lambda t: after(t + steps)], [steps])

    cosine = optax.cosine_decay_schedule(0.4, 40, alpha=0.1)
    exponential = optax.exponential_decay(0.4, 7, 0.8)
    cases = {
        "constant": (optax.constant_schedule(3.2), {"learning_rate": 3.2}),
        "constant_from": (optax.constant_schedule(3.2), {"learning_rate": 3.2,
                                                         "initial_learning_rate": 0.1}),
        "cosine": (cosine, {"schedule": "CosineDecay"}),
        "exponential": (exponential, {"schedule": "ExponentialDecay",
                                      "initial_learning_rate": 0.05}),
    }
    arrays = {}
    for name, (after, given) in cases.items():
        schedule = joined(after, 12, given.get("initial_learning_rate", 0.0))
        arrays[f"{name}/rate"] = np.array([float(schedule(t)) for t in range(50)])
    return arrays, {name: given for name, (_, given) in cases.items()}


def main():
    out = common.folder("large_batches")
    (out / "VERSIONS").open("a").write(f"optax {optax.__version__}\n")
    common.write_arrays(out / "lars.safetensors", *steps())
    common.write_arrays(out / "warmup.safetensors", *warmup())


main()
