"""Optimizers step by step, and training with regularizers and constraints. Writes optimizers/.

steps.safetensors      ten steps of every optimizer with each of its arguments, gradients given
training.safetensors   networks whose layers have regularizers and constraints, in fit and evaluate
"""

import common
import jax.numpy as jnp
import keras
import numpy as np

O = keras.optimizers
C = keras.constraints
R = keras.regularizers
STEPS = 10


def values(name, *shape, scale=1.0):
    u = common.hashed_uniform(name, int(np.prod(shape))).reshape(shape)
    return np.array(np.float32(scale) * u)


def own_cases():
    """Each optimizer's own arguments."""
    return {
        "sgd": (O.SGD, {}), "sgd_momentum": (O.SGD, {"momentum": 0.9}),
        "sgd_nesterov": (O.SGD, {"momentum": 0.9, "nesterov": True}),
        "sgd_schedule": (O.SGD, {"learning_rate": ("ExponentialDecay", 0.1, 2, 0.5)}),
        "rmsprop": (O.RMSprop, {}), "rmsprop_centered": (O.RMSprop, {"centered": True}),
        "rmsprop_momentum": (O.RMSprop, {"momentum": 0.9, "learning_rate": 0.01}),
        "rmsprop_all": (O.RMSprop, {"momentum": 0.5, "centered": True, "rho": 0.8,
                                    "epsilon": 1e-3, "weight_decay": 0.1}),
        "adam": (O.Adam, {}), "adam_rate": (O.Adam, {"learning_rate": 0.05}),
        "adam_amsgrad": (O.Adam, {"amsgrad": True, "learning_rate": 0.05}),
        "adam_betas": (O.Adam, {"beta_1": 0.5, "beta_2": 0.9, "epsilon": 1e-3}),
        "adam_schedule": (O.Adam, {"learning_rate": ("ExponentialDecay", 0.1, 2, 0.5)}),
        "adamw": (O.AdamW, {}),
        "adamw_all": (O.AdamW, {"learning_rate": 0.05, "weight_decay": 0.2, "beta_1": 0.5,
                                "beta_2": 0.9, "epsilon": 1e-3, "amsgrad": True}),
        "adagrad": (O.Adagrad, {}),
        "adagrad_all": (O.Adagrad, {"learning_rate": 0.1, "initial_accumulator_value": 0.5,
                                    "epsilon": 1e-2}),
        "adadelta": (O.Adadelta, {}),
        "adadelta_all": (O.Adadelta, {"learning_rate": 1.0, "rho": 0.8, "epsilon": 1e-2}),
        "adamax": (O.Adamax, {}),
        "adamax_all": (O.Adamax, {"learning_rate": 0.05, "beta_1": 0.5, "beta_2": 0.8,
                                  "epsilon": 1e-2}),
        "nadam": (O.Nadam, {}),
        "nadam_all": (O.Nadam, {"learning_rate": 0.05, "beta_1": 0.5, "beta_2": 0.8,
                                "epsilon": 1e-2}),
        "nadam_schedule": (O.Nadam, {"learning_rate": ("ExponentialDecay", 0.1, 2, 0.5)}),
        "lion": (O.Lion, {}),
        "lion_all": (O.Lion, {"learning_rate": 0.05, "beta_1": 0.6, "beta_2": 0.8}),
        "ftrl": (O.Ftrl, {}), "ftrl_rate": (O.Ftrl, {"learning_rate": 0.1}),
        "ftrl_power": (O.Ftrl, {"learning_rate": 0.1, "learning_rate_power": -0.3,
                                "initial_accumulator_value": 0.4}),
        "ftrl_all": (O.Ftrl, {"learning_rate": 0.1, "l1_regularization_strength": 0.5,
                              "l2_regularization_strength": 0.3,
                              "l2_shrinkage_regularization_strength": 0.2, "beta": 0.7}),
        "lamb": (O.Lamb, {}),
        "lamb_all": (O.Lamb, {"learning_rate": 0.05, "beta_1": 0.5, "beta_2": 0.8,
                              "epsilon": 1e-2}),
        "schedulefreeadamw": (O.ScheduleFreeAdamW, {}),
        "schedulefreeadamw_all": (O.ScheduleFreeAdamW, {
            "learning_rate": 0.05, "beta_1": 0.6, "beta_2": 0.8, "epsilon": 1e-2,
            "warmup_steps": 4}),
        "adafactor": (O.Adafactor, {}),
        "adafactor_all": (O.Adafactor, {
            "learning_rate": 0.5, "beta_2_decay": -0.5, "epsilon_1": 1e-3, "epsilon_2": 1e-2,
            "clip_threshold": 0.3, "relative_step": False}),
        "adafactor_kernel": (O.Adafactor, {"learning_rate": 0.1}),
        "muon": (O.Muon, {}), "muon_tall": (O.Muon, {"learning_rate": 0.05}),
        "muon_kernel": (O.Muon, {"learning_rate": 0.05}),
        "muon_all": (O.Muon, {
            "learning_rate": 0.05, "adam_beta_1": 0.5, "adam_beta_2": 0.8,
            "adam_weight_decay": 0.2, "epsilon": 1e-2, "weight_decay": 0.1, "muon_a": 3.0,
            "muon_b": -4.0, "muon_c": 2.0, "adam_lr_ratio": 0.5, "momentum": 0.8, "ns_steps": 3,
            "nesterov": False, "rms_rate": None}),
        "muon_excluded": (O.Muon, {"learning_rate": 0.05, "exclude_layers": ["^b"]}),
        "muon_not_excluded": (O.Muon, {"learning_rate": 0.05, "exclude_layers": ["c", "d"],
                                       "adam_weight_decay": None}),
    }


def common_cases():
    """The arguments that all have, for each."""
    variants = {
        "decay": {"weight_decay": 0.05}, "clipnorm": {"clipnorm": 0.5},
        "clipvalue": {"clipvalue": 0.3}, "global_clipnorm": {"global_clipnorm": 0.5},
        "ema": {"use_ema": True, "ema_momentum": 0.8},
        "ema_overwrite": {"use_ema": True, "ema_momentum": 0.6, "ema_overwrite_frequency": 3},
        "loss_scale": {"loss_scale_factor": 8.0},
        "accumulation": {"gradient_accumulation_steps": 3},
        "accumulation_clipnorm": {"gradient_accumulation_steps": 2, "clipnorm": 0.5},
        "accumulation_all": {"gradient_accumulation_steps": 2, "global_clipnorm": 0.5,
                             "use_ema": True, "ema_momentum": 0.7, "ema_overwrite_frequency": 2,
                             "weight_decay": 0.1, "loss_scale_factor": 2.0},
        "accumulation_schedule": {"gradient_accumulation_steps": 2, "clipvalue": 0.3,
                                  "learning_rate": ("ExponentialDecay", 0.1, 3, 0.5)},
    }
    kinds = (O.SGD, O.RMSprop, O.Adam, O.AdamW, O.Adagrad, O.Adadelta, O.Adamax, O.Nadam, O.Lion,
             O.Ftrl, O.Lamb, O.Adafactor, O.Muon, O.ScheduleFreeAdamW)
    own = {O.SGD: {"momentum": 0.9}, O.Ftrl: {"l1_regularization_strength": 0.1}}
    return {
        f"{kind.__name__.lower()}_with_{name}":
            (kind, {"learning_rate": 0.02} | own.get(kind, {}) | given)
        for kind in kinds for name, given in variants.items()
    }


def names_of(optimizer):
    """Adafactor gives the weight's name to both means, and its dummies are not variables."""
    names = []
    for variable in optimizer.variables:
        name = variable.path.split("/")[-1]
        if isinstance(optimizer, O.Nadam) and "variable" in name:
            name = "u_product"
        if isinstance(optimizer, O.Adafactor) and name in ("a", "b"):
            name += "_columns" if name + "_rows" in names else "_rows"
        names.append(name)
    return names


def steps():
    n = 7
    gradient_a = values("optimizers/a", STEPS, n, scale=2.0)
    gradient_a[:, 2] = 0.0                          # never moved
    gradient_a[3:, 3] = 0.0                         # stops moving
    gradient_a[:, 4] *= 1e-6                        # of epsilon's size
    gradient_a[:, 5] *= 100.0
    gradient_b = values("optimizers/b", STEPS, 2, 3)
    start_a, start_b = values("optimizers/w", n), values("optimizers/v", 2, 3)
    arrays = {"a0": start_a, "b0": start_b, "gradient_a": gradient_a, "gradient_b": gradient_b}
    for shape, extents in (("tall", (5, 3)), ("kernel", (2, 2, 3, 4))):
        arrays[f"{shape}0"] = values(f"optimizers/{shape}", *extents)
        arrays[f"gradient_{shape}"] = values(f"optimizers/g_{shape}", STEPS, *extents)
    cases = {}
    for name, (kind, given) in (own_cases() | common_cases()).items():
        real = dict(given)
        if isinstance(real.get("learning_rate"), tuple):
            real["learning_rate"] = O.schedules.ExponentialDecay(*given["learning_rate"][1:])
        optimizer = kind(**real)
        weight = name.split("_")[-1] if name.endswith(("_tall", "_kernel")) else "b"
        a = keras.Variable(start_a, name="a")
        b = keras.Variable(arrays[f"{weight}0"], name="b")
        optimizer.build([a, b])
        history_a, history_b = [], []
        for g, h in zip(gradient_a, arrays[f"gradient_{weight}"]):
            optimizer.apply([jnp.asarray(g), jnp.asarray(h)], [a, b])
            history_a.append(np.array(a.value))
            history_b.append(np.array(b.value))
        arrays[f"{name}/a"], arrays[f"{name}/b"] = np.stack(history_a), np.stack(history_b)
        order = names_of(optimizer)
        for slot, v in zip(order, optimizer.variables):
            if slot not in ("iteration", "learning_rate"):
                arrays[f"{name}/slot_{slot}"] = np.array(v.value)
        cases[name] = {"optimizer": kind.__name__, "given": given, "variables": order,
                       "weight": weight}
    return arrays, cases


def networks():
    """No L1 where a constraint makes 0: the derivative of |x| at 0 is 1 in JAX, here it is 0."""
    L = keras.layers
    dense = lambda: [
        keras.Input((5,)),
        L.Dense(4, activation="tanh", kernel_regularizer=R.L1(0.02), bias_regularizer=R.L2(0.05),
                activity_regularizer=R.L1L2(0.01, 0.03), kernel_constraint=C.MaxNorm(0.8),
                bias_constraint=C.NonNeg()),
        L.Dense(3, kernel_regularizer=R.OrthogonalRegularizer(0.1, mode="columns"),
                kernel_constraint=C.MinMaxNorm(0.2, 0.9, 0.7, axis=1)),
    ]
    return {
        "dense": (dense(), O.SGD(0.05, momentum=0.9)),
        "ema": (dense(), O.Adam(0.02, use_ema=True, ema_momentum=0.8, loss_scale_factor=8.0)),
        "accumulation": (dense(), O.Nadam(0.02, gradient_accumulation_steps=2)),
        "image": ([
            keras.Input((5, 6, 2)),
            L.Conv2D(4, 3, activation="relu", kernel_regularizer=R.L2(0.1),
                     bias_regularizer=R.L1(0.1), activity_regularizer=R.L2(0.2),
                     kernel_constraint=C.UnitNorm(axis=[0, 1, 2]),
                     bias_constraint=C.MaxNorm(0.1)),
            L.BatchNormalization(gamma_regularizer=R.L1(0.3), beta_regularizer=R.L2(0.2),
                                 gamma_constraint=C.MaxNorm(1.5), beta_constraint=C.NonNeg()),
            L.Flatten(),
            L.Dense(3, kernel_regularizer=R.OrthogonalRegularizer(0.5)),
        ], O.SGD(0.02)),
        "sequence": ([
            keras.Input((6,), dtype="int32"),
            L.Embedding(7, 4, embeddings_regularizer=R.L1L2(0.01, 0.1),
                        activity_regularizer=R.L2(0.1),
                        embeddings_constraint=C.UnitNorm(axis=1)),
            L.Bidirectional(L.LSTM(
                3, return_sequences=True, kernel_regularizer=R.L2(0.05),
                recurrent_regularizer=R.OrthogonalRegularizer(0.2), bias_regularizer=R.L2(0.03),
                activity_regularizer=R.L1(0.1), kernel_constraint=C.MaxNorm(1.0),
                recurrent_constraint=C.MinMaxNorm(0.5, 1.0, axis=-1),
                bias_constraint=C.NonNeg())),
            L.GRU(3, return_sequences=True, kernel_regularizer=R.L1(0.02),
                  recurrent_regularizer=R.L2(0.04), bias_regularizer=R.L2(0.1),
                  kernel_constraint=C.MaxNorm(0.7)),
            L.TimeDistributed(L.Dense(3, kernel_regularizer=R.L2(0.1),
                                      activity_regularizer=R.L2(0.5))),
            L.SimpleRNN(3, recurrent_constraint=C.UnitNorm()),   # its activity_regularizer is lost
        ], O.SGD(0.02)),   # at 0.1 a start that differs by 1e-7 ends 3e-3 apart
    }


def training():
    rows, batch, epochs = 20, 8, 3
    arrays, cases = {}, {}
    for name, (layers, optimizer) in networks().items():
        model = keras.Sequential(layers, name=name)
        for i, w in enumerate(model.weights):
            start = values(f"training/{name}/{i}", *w.shape, scale=0.6)
            start += 1.0 if w.path.endswith(("gamma", "moving_variance")) else 0.0
            w.assign(start)
            arrays[f"{name}/start_{i}"] = start
        x = values(f"training/{name}/x", rows, *model.input_shape[1:], scale=1.5)
        if name == "sequence":
            x = (np.abs(x) * 1e4).astype(np.int32) % 7
        y = values(f"training/{name}/y", rows, *model.output_shape[1:])
        model.compile(optimizer, "mse")
        history = model.fit(x, y, batch_size=batch, epochs=epochs, shuffle=False, verbose=0)
        evaluated = model.evaluate(x, y, batch_size=batch, verbose=0)
        arrays |= {f"{name}/x": x, f"{name}/y": y,
                   f"{name}/loss": np.array(history.history["loss"], np.float32),
                   f"{name}/evaluated": np.array(evaluated, np.float32)}
        for i, w in enumerate(model.weights):
            arrays[f"{name}/after_{i}"] = np.array(w.value)
        config = [keras.saving.serialize_keras_object(layer) for layer in model.layers]
        cases[name] = {"config": config}
    return arrays, cases


def main():
    out = common.folder("optimizers")
    common.write_arrays(out / "steps.safetensors", *steps())
    common.write_arrays(out / "training.safetensors", *training())


main()
