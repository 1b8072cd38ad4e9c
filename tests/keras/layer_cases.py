"""Keras' own tests of its layers, for Cornu: layer_cases.py [PART-OF-A-TEST'S-NAME] [--onnx]

The Keras package ships its tests. Each call of run_layer_test in them is made a model with that
one layer, saved as .keras; build/keras_model loads it, predicts, trains two steps of SGD on the
mean squared error (predictions and weights are compared; where random numbers are drawn in
training, it only trains) and saves it; Keras loads that and must predict the same. Prints a line
for each case that does not work and, for each class, how many do. Needs Python with Keras, JAX and
pytest; --onnx compares what onnxruntime makes of the .onnx file, too.
"""

import collections
import contextlib
import importlib
import inspect
import io
import os
import pathlib
import re
import sys
import tempfile
import traceback
import types
import unittest

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from keras.src import testing, tree
from keras.src.testing import test_case

from compare import (Crash, Refused, Wrong, expect_near, numbered, onnx_predict, run)

ROWS = 3          # where a case leaves the batch open
STEPS = 2
BOUND = 2e-5      # float32: a few hundred roundings
TRAINED = 2e-4
ROUNDING = {"bfloat16": 2.0**-8, "float16": 2.0**-11}   # of narrower dtypes, a few roundings


class Inapplicable(Exception):
    """The case is not a model that Keras itself can save, or has no numbers."""


def random_data(shape, dtype, rng):
    shape = [ROWS if n is None and i == 0 else 5 if n is None else n for i, n in enumerate(shape)]
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if "int" in dtype:
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.random(shape).astype(dtype)


def make_inputs(case):
    """The symbolic inputs in the case's structure, and their data."""
    rng = np.random.default_rng(0)
    if case["input_data"] is not None:
        data = tree.map_structure(lambda x: as_array(keras.ops.convert_to_tensor(x)),
                                  case["input_data"])
        symbols = tree.map_structure(
            lambda x: keras.Input(x.shape[1:], dtype=str(x.dtype)), data)
        return symbols, data
    shape, dtype = case["input_shape"], case["input_dtype"]
    if dtype is None:
        dtype = tree.map_shape_structure(lambda _: "float32", shape)
    if isinstance(shape, dict):
        names = {k: k.removesuffix("_shape") for k in shape}
        return ({names[k]: keras.Input(v[1:], dtype=dtype[k], name=names[k])
                 for k, v in shape.items()},
                {names[k]: random_data(v, dtype[k], rng) for k, v in shape.items()})
    pairs = test_case.map_shape_dtype_structure(lambda s, t: (list(s), t), shape, dtype)
    leaf = lambda p: isinstance(p, tuple) and len(p) == 2 and isinstance(p[1], str)
    def walk(value, make):
        if leaf(value):
            return make(*value)
        return type(value)(walk(v, make) for v in value)
    return (walk(pairs, lambda s, t: keras.Input(s[1:], dtype=t)),
            walk(pairs, lambda s, t: random_data(s, t, rng)))


def as_array(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def build(case):
    """The model, its data, and the layer."""
    if case["input_sparse"] or case["input_ragged"]:
        raise Inapplicable("sparse or ragged")
    if case["input_shape"] is None and case["input_data"] is None:
        raise Inapplicable("is not called")
    try:
        symbols, data = make_inputs(case)
        layer = case["layer_cls"](**(case["init_kwargs"] or {}))
        given = {k: v for k, v in (case["call_kwargs"] or {}).items()}
        outputs = layer(**symbols, **given) if isinstance(symbols, dict) else layer(symbols, **given)
        inputs = tree.flatten(symbols)
        outputs = [y for y in tree.flatten(outputs) if y is not None]
        model = keras.Model(inputs if len(inputs) > 1 else inputs[0],
                            outputs if len(outputs) > 1 else outputs[0])
    except Exception as error:
        raise Inapplicable(f"Keras: {error}") from error
    if '_test"' in model.to_json():
        raise Inapplicable("a class of the test's own")
    if any(not keras.backend.is_float_dtype(y.dtype) and "int" not in y.dtype and
           y.dtype != "bool" for y in outputs):
        raise Inapplicable("text")
    return model, [np.asarray(x) for x in tree.flatten(data)], layer


def is_random(layer):
    """Whether it draws numbers in training; recurrent layers have generators in any case."""
    if isinstance(layer, keras.layers.Bidirectional):
        layer = layer.forward_layer
    if isinstance(layer, keras.layers.RNN):
        cells = getattr(layer.cell, "cells", [layer.cell])
        return any(getattr(c, "dropout", 0) or getattr(c, "recurrent_dropout", 0) for c in cells)
    return bool(test_case.get_seed_generators(layer))


def bound_of(dtype, bound):
    return max(bound, 4 * ROUNDING.get(dtype, 0))


def predict(model, x):
    outputs = model(x if len(x) > 1 else x[0], training=False)
    return [as_array(y).astype(np.float32) for y in tree.flatten(outputs)]


def check(case, folder, with_onnx):
    model, x, layer = build(case)
    if any(v.dtype.kind in "SUO" for v in x):
        raise Inapplicable("text")
    path = lambda name: os.path.join(folder, name)
    draws = is_random(layer)
    bound = np.inf if draws and (case["call_kwargs"] or {}).get("training") else bound_of(
        layer.compute_dtype, BOUND)
    try:
        # Weights of zeros and ones hide errors.
        rng = np.random.default_rng(1)
        for w in model.weights if not isinstance(layer, keras.layers.Normalization) else []:
            if "float" in w.dtype and len(w.shape) < 2 and "variance" not in w.path:
                w.assign(as_array(w) + 0.1 * rng.random(w.shape))
        before = predict(model, x)
        trains = (case["run_training_check"] and bool(model.trainable_weights) and
                  all(keras.backend.is_float_dtype(y.dtype) for y in model.outputs))
        targets = [rng.random(p.shape).astype(np.float32) for p in before]
        if trains:
            model.compile(keras.optimizers.SGD(0.01), ["mse"] * len(before) if len(before) > 1
                          else "mse")
        model.save(path("model.keras"))
        x = [v.astype(np.int32) if v.dtype.kind in "iu" and v.dtype != np.uint8 else v for v in x]
        np.savez(path("in.npz"), **{f"x{i}": v for i, v in enumerate(x)},
                 **{f"y{i}": v for i, v in enumerate(targets)},
                 **{f"p{i}": v for i, v in enumerate(before)})
        if case["init_kwargs"].get("lora_rank"):   # whose factors a file does not hold
            model = keras.models.load_model(path("model.keras"))
        if trains:
            for _ in range(STEPS):
                model.train_on_batch(x if len(x) > 1 else x[0],
                                     targets if len(targets) > 1 else targets[0])
    except Exception as error:
        raise Inapplicable(f"Keras: {error}") from error
    arguments = [path("model.keras"), path("in.npz"), path("out.npz"), "--save-first",
                 path("back.keras")]
    arguments += ["--steps", str(STEPS)] if trains else ["--uncompiled"]
    run(arguments)
    made = np.load(path("out.npz"))
    expect_near("prediction", numbered(made, "p"), before, bound)
    if trains and not draws:
        trained = [w for w in model.weights if "seed" not in w.path]
        expect_near("trained weight", numbered(made, "w"),
                    [as_array(w).astype(np.float32) for w in trained],
                    # A history of float8 holds values of the dtype that is computed in.
                    [bound_of(layer.compute_dtype if "amax_history" in w.path else
                              layer.variable_dtype, TRAINED) for w in trained])
    try:
        objects = {"custom_objects": case["custom_objects"]} if case["custom_objects"] else {}
        back = keras.models.load_model(path("back.keras"), compile=False, **objects)
    except Exception as error:
        raise Wrong(f"Keras does not load what Cornu saved: {error}") from error
    expect_near("prediction of what Cornu saved", predict(back, x), before, bound)
    if with_onnx:
        run([path("model.keras"), path("in.npz"), path("out.npz"), "--uncompiled", "--save-first",
             path("model.onnx")])
        expect_near("onnxruntime's prediction", onnx_predict(path("model.onnx"), x), before,
                    max(bound, 1e-4))


# ---- Collecting ----

def collect(part):
    """Runs the tests that call run_layer_test, with one that records its arguments."""
    cases = []
    signature = inspect.signature(testing.TestCase.run_layer_test)

    def record(self, *args, **kwargs):
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        cases.append((self.id().removeprefix("keras.src.layers."), dict(bound.arguments)))

    testing.TestCase.run_layer_test = record
    # The tests' own configuration of pytest is not in the package.
    helper = types.ModuleType("conftest")
    helper.skip_if_backend = lambda *names: lambda test: test
    sys.modules.setdefault("conftest", helper)
    root = pathlib.Path(keras.__file__).parent / "src" / "layers"
    for file in sorted(root.rglob("*_test.py")):
        if "run_layer_test" not in file.read_text(encoding="utf-8"):
            continue
        name = "keras.src.layers." + ".".join(file.relative_to(root).with_suffix("").parts)
        try:
            module = importlib.import_module(name)
        except Exception as error:
            print(f"{name}: not imported: {error}", file=sys.stderr)
            continue
        for test in unittest.defaultTestLoader.loadTestsFromModule(module):
            for one in test:
                if part not in one.id():
                    continue
                function = getattr(one, one._testMethodName)
                try:
                    source = inspect.getsource(inspect.unwrap(function))
                except (OSError, TypeError):
                    source = ""
                if "run_layer_test" in source or "bound_param_test" in source:
                    with contextlib.redirect_stdout(io.StringIO()):
                        one.run(unittest.TestResult())
    return cases


def main():
    words = [w for w in sys.argv[1:] if not w.startswith("--")]
    with_onnx = "--onnx" in sys.argv
    verbose = "--verbose" in sys.argv
    counts = collections.defaultdict(collections.Counter)
    refusals = collections.Counter()
    cases = collect(words[0] if words else "")
    print(f"{len(cases)} cases", flush=True)
    for name, case in cases:
        kind = case["layer_cls"].__name__
        with tempfile.TemporaryDirectory() as folder:
            keras.utils.set_random_seed(1)
            try:
                check(case, folder, with_onnx)
                result, why = "works", ""
            except Inapplicable as error:
                result, why = "inapplicable", str(error)
            except Refused as error:
                result, why = "refused", str(error)
                refusals[re.sub(r"^load: [^:]*: |\b([a-z]\w*?)_\d+: ", r"", why)] += 1
            except Wrong as error:
                result, why = "wrong", str(error)
            except Crash as error:
                result, why = "crash", str(error)
            except Exception:
                result, why = "wrong", traceback.format_exc()
        counts[kind][result] += 1
        if result not in ("works",) and (verbose or result != "inapplicable"):
            print(f"{result}: {name} {kind} {case['init_kwargs']} {case['input_shape']} "
                  f"{case['call_kwargs'] or ''}: {why[-500:]}", flush=True)
    total = collections.Counter()
    for kind in sorted(counts):
        print(f"{kind:32}" + "".join(f" {n} {what}" for what, n in sorted(counts[kind].items())))
        total += counts[kind]
    for why, n in refusals.most_common():
        print(f"{n:4} {why}")
    tried = sum(total.values()) - total["inapplicable"]
    print(f"{total['works']} of {tried} work ({100 * total['works'] / max(1, tried):.1f} %), "
          f"{total['refused']} refused, {total['wrong']} wrong, {total['crash']} crashes; "
          f"{total['inapplicable']} cases are not models that Keras saves")
    return total["wrong"] + total["crash"] > 0


if __name__ == "__main__":
    sys.exit(main())
