"""Sparse gradients by TensorFlow's own kernels: what it does with IndexedSlices. Writes sparse/.

updates.safetensors   five steps of each optimizer on a table of which some rows are looked up
lookups.safetensors   embedding_lookup_sparse by each combiner, and its gradients

Adagrad, Ftrl, RMSprop, Adadelta and momentum are TensorFlow's ResourceSparseApply*; Adam, Adamax,
Nadam and Lion, for which it has no lazy kernels, are Keras' optimizers applied to the rows that are
looked up, with the slots that these rows have. Keras adds epsilon inside Adagrad's root and
TensorFlow outside: with an epsilon of 1e-7 both agree.
"""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import common
import keras
import numpy as np
import tensorflow as tf

ROWS, COLUMNS, LOOKUPS, STEPS = 12, 3, 8, 5
RAW = tf.raw_ops
O = keras.optimizers


def values(name, *shape, scale=1.0):
    u = common.hashed_uniform(name, int(np.prod(shape))).reshape(shape)
    return np.array(np.float32(scale) * u)


def indices(step):
    """Some twice, none in every step."""
    u = common.hashed_uniform(f"indices {step}", LOOKUPS)
    return np.minimum(((u + 1) / 2 * 9).astype(np.int32) + step % 3, ROWS - 1)


def summed(index, gradient):
    unique = np.unique(index)
    sums = np.zeros((len(unique), COLUMNS), np.float32)
    for i, g in zip(index, gradient):
        sums[np.searchsorted(unique, i)] += g
    return unique, sums


def kernel(name, slots, **arguments):
    """A case by one of TensorFlow's sparse kernels: its slots with their first values, in order."""
    def run(given):
        variables = {"var": tf.Variable(values("table", ROWS, COLUMNS))}
        for slot, first in slots.items():
            variables[slot] = tf.Variable(np.full((ROWS, COLUMNS), first, np.float32))
        tables = []
        for step in range(STEPS):
            unique, sums = summed(indices(step), values(f"gradient {step}", LOOKUPS, COLUMNS))
            handles = {slot: variable.handle for slot, variable in variables.items()}
            getattr(RAW, name)(**handles, lr=np.float32(given["learning_rate"]), grad=sums,
                               indices=unique.astype(np.int32), **arguments)
            tables.append(variables["var"].numpy())
        return np.stack(tables), [variables[slot].numpy() for slot in slots]
    return run


def plain(given):
    table = tf.Variable(values("table", ROWS, COLUMNS))
    tables = []
    for step in range(STEPS):
        gradient = values(f"gradient {step}", LOOKUPS, COLUMNS)
        table.scatter_sub(tf.IndexedSlices(np.float32(given["learning_rate"]) * gradient,
                                           indices(step)))
        tables.append(table.numpy())
    return np.stack(tables), []


def lazy(make):
    """Keras' optimizer of the rows alone: iterations and scalars go on, slots are those of the
    rows."""
    def run(given):
        table, slots, tables, scalars = values("table", ROWS, COLUMNS), None, [], None
        for step in range(STEPS):
            unique, sums = summed(indices(step), values(f"gradient {step}", LOOKUPS, COLUMNS))
            optimizer = make(**given)
            rows = keras.Variable(table[unique])
            optimizer.build([rows])
            of_rows = [v for v in optimizer.variables if v.shape == rows.shape]
            others = [v for v in optimizer.variables if v.shape != rows.shape]
            if slots is None:
                slots = [np.zeros((ROWS, COLUMNS), np.float32) for _ in of_rows]
            for variable, slot in zip(of_rows, slots):
                variable.assign(slot[unique])
            for variable, value in zip(others, scalars or []):
                variable.assign(value)
            optimizer.apply_gradients([(tf.constant(sums), rows)])
            table[unique] = rows.numpy()
            for variable, slot in zip(of_rows, slots):
                slot[unique] = variable.numpy()
            scalars = [variable.numpy() for variable in others]
            tables.append(table.copy())
        return np.stack(tables), slots
    return run


CASES = {
    "sgd": (plain, {"learning_rate": 0.1}),
    "sgd_momentum": (kernel("ResourceSparseApplyKerasMomentum", {"accum": 0}, momentum=0.9),
                     {"learning_rate": 0.1, "momentum": 0.9}),
    "sgd_nesterov": (kernel("ResourceSparseApplyKerasMomentum", {"accum": 0}, momentum=0.9,
                            use_nesterov=True),
                     {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
    "adagrad": (kernel("ResourceSparseApplyAdagradV2", {"accum": 0.1}, epsilon=1e-7),
                {"learning_rate": 0.1}),
    "ftrl": (kernel("ResourceSparseApplyFtrlV2", {"accum": 0.1, "linear": 0}, l1=0.0, l2=0.0,
                    l2_shrinkage=0.0, lr_power=-0.5), {"learning_rate": 0.1}),
    "ftrl_all": (kernel("ResourceSparseApplyFtrlV2", {"accum": 0.4, "linear": 0}, l1=0.05, l2=0.3,
                        l2_shrinkage=0.0, lr_power=-0.5),
                 {"learning_rate": 0.1, "l1_regularization_strength": 0.05,
                  "l2_regularization_strength": 0.3, "initial_accumulator_value": 0.4}),
    "rmsprop": (kernel("ResourceSparseApplyRMSProp", {"ms": 0, "mom": 0}, rho=0.9, momentum=0.0,
                       epsilon=1e-7), {"learning_rate": 0.01}),
    "adadelta": (kernel("ResourceSparseApplyAdadelta", {"accum": 0, "accum_update": 0}, rho=0.95,
                        epsilon=1e-7), {"learning_rate": 0.5}),
    "adam": (lazy(O.Adam), {"learning_rate": 0.05}),
    "adam_amsgrad": (lazy(O.Adam), {"learning_rate": 0.05, "amsgrad": True}),
    "adamax": (lazy(O.Adamax), {"learning_rate": 0.05}),
    "nadam": (lazy(O.Nadam), {"learning_rate": 0.05}),
    "lion": (lazy(O.Lion), {"learning_rate": 0.05}),
}


def updates():
    arrays, about = {"table": values("table", ROWS, COLUMNS)}, {}
    for step in range(STEPS):
        arrays[f"indices{step}"] = indices(step)
        arrays[f"gradient{step}"] = values(f"gradient {step}", LOOKUPS, COLUMNS)
    for name, (run, given) in CASES.items():
        tables, slots = run(given)
        arrays[f"{name}/tables"] = tables
        if name == "rmsprop":                      # the other is the momentum, which is not used
            slots = slots[:1]
        for i, slot in enumerate(slots):
            arrays[f"{name}/slot{i}"] = slot
        about[name] = {"optimizer": name.split("_")[0], "given": given}
    return arrays, about


LISTS = [[3, 7, 3], [], [11], [0, 5], [1, 2, 5, 1], [9]]
LENGTH = 4


def lookups():
    table = values("table", ROWS, COLUMNS)
    flat = [index for row in LISTS for index in row]
    weights = values("weights", len(flat)) + np.float32(0.5)
    weights[4] = 0
    factors = values("factors", len(LISTS), COLUMNS)
    places = [(r, k) for r, row in enumerate(LISTS) for k in range(len(row))]
    sparse = lambda x: tf.SparseTensor(places, x, (len(LISTS), LENGTH))
    arrays = {"table": table, "factors": factors, "indices": np.int32(flat), "weights": weights,
              "offsets": np.cumsum([0] + [len(row) for row in LISTS])}
    about = {}
    for combiner in ("mean", "sum", "sqrtn"):
        for weighted in (False, True):
            name = combiner + ("_weighted" if weighted else "")
            variable = tf.Variable(table)
            with tf.GradientTape() as tape:
                y = tf.nn.safe_embedding_lookup_sparse(
                    variable, sparse(np.int64(flat)), sparse(weights) if weighted else None,
                    combiner=combiner)
                loss = tf.reduce_sum(y * factors)
            arrays[f"{name}/y"] = y.numpy()
            arrays[f"{name}/d_table"] = tf.convert_to_tensor(tape.gradient(loss, variable)).numpy()
            about[name] = {"combiner": combiner, "weighted": weighted}
    return arrays, about


def main():
    out = common.folder("sparse")
    with open(out / "VERSIONS", "a") as file:
        file.write(f"tensorflow {tf.__version__}\n")
    common.write_arrays(out / "updates.safetensors", *updates())
    common.write_arrays(out / "lookups.safetensors", *lookups())


if __name__ == "__main__":
    main()
