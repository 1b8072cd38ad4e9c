"""Random Keras models, used by Keras and by Cornu.

    python tests/golden/random_models.py --count 300 --seed 1 [--only supported] [--jobs 2]

Each seed draws a program (random_networks.py, random_layers.py, random_training.py) that builds and
compiles a model. Keras may train it a little and saves it; build/keras_model loads it with its
optimizer, predicts, trains three steps and saves it as .keras, .weights.h5 and .onnx, which Keras
and onnxruntime read back. Predictions, weights, the optimizer's variables and logs are compared
with Keras' on its TensorFlow backend, eagerly (on JAX where there is no TensorFlow).

Bounds: Keras runs each model twice more with weights and inputs disturbed by a few units in the
last place, which shows how well-conditioned each array is. A difference counts if it is more than
30 times what that does and 2e-5 of the largest value. Then others have their say: what differs
from TensorFlow no more than three times as much as they do, or agrees with one of them, agrees.
They are JAX; TensorFlow with gradients of Embedding as arrays (its optimizers take the rows of a
repeated index one after another, which JAX' do not); and Keras in float64, by which what float32
makes of a mean over one value is seen to be rounding.

A model that fails is kept in --keep as SEED.py, which builds and saves it, with SEED.keras and
SEED.npz. The last lines count each class.
"""

import argparse
import collections
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HAS_TENSORFLOW = importlib.util.find_spec("tensorflow") is not None
MAIN, OTHER = ("tensorflow", "jax") if HAS_TENSORFLOW else ("jax", None)
QUIET = {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0",
         "CUDA_VISIBLE_DEVICES": "", "PYTHONWARNINGS": "ignore", "TF_NUM_INTRAOP_THREADS": "1",
         "TF_NUM_INTEROP_THREADS": "1"}
STEPS = 3


class Failed(Exception):
    """How a model fails: its class and what is wrong."""

    def __init__(self, kind, detail):
        super().__init__(f"{kind}: {detail}")
        self.kind, self.detail = kind, str(detail)


class Helper:
    """A process of random_reference.py, begun when first asked and again after it died."""

    def __init__(self, mode, backend):
        self.mode, self.backend, self.process = mode, backend, None

    def ask(self, **task):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                [sys.executable, str(HERE / "random_reference.py"), self.mode],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                env=os.environ | QUIET | {"KERAS_BACKEND": self.backend})
        try:
            self.process.stdin.write(json.dumps(task) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            return {"error": f"died by signal {-self.process.wait()}"}
        return json.loads(line)

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()


# ---- A model ----

HEADER = '''"""Seed {seed}, {network}. Builds the model, writes {seed}.again.keras."""
import os
os.environ.setdefault("KERAS_BACKEND", "{backend}")
import keras
import numpy as np
from keras import layers as L, ops

keras.utils.set_random_seed({seed})
'''


def draw(seed, options):
    """A program, the outputs of its model, and its name."""
    import keras

    import random_layers
    import random_networks
    import random_training

    keras.utils.clear_session()
    keras.config.set_dtype_policy("float32")
    for attempt in range(20):
        d = random_layers.Draw(seed * 1000 + attempt)
        d.only = options.only == "supported"
        d.noise = d.maybe(0.1)
        keras.utils.set_random_seed(seed % 2**31)
        p = random_networks.Program(d)
        p.mixed = d.choice(["mixed_bfloat16", "mixed_float16"]) if d.maybe(0.05) else None
        if p.mixed:
            keras.config.set_dtype_policy(p.mixed)
        try:
            table = {f: n for f, n in random_networks.NETWORKS.items()
                     if not options.network or f.__name__ in options.network.split(",")}
            network = d.weighted(table)
            ends = network(p)
            several = len(ends) > 1 or d.maybe(0.1)
            outputs = [random_training.head(p, e, several) for e in ends]
            for output in outputs:
                shape = p.shape(output.tensor)
                floats = "float" in p.dtype(output.tensor)
                if not 0 < len(shape) < 5 or shape[-1] is None or not floats:
                    raise random_networks.Refused("an output of another kind")
            finish(p, outputs)
            p.run(random_training.compiled(p, outputs))
            return p, outputs, network.__name__
        except Exception as error:
            problem = error
            keras.config.set_dtype_policy("float32")
    raise Failed("not drawn", f"{type(problem).__name__}: {problem}"[:150])


def finish(p, outputs):
    """The line that makes the model."""
    import random_networks

    chain = len(outputs) == 1 and random_networks.chain(p, outputs[0].tensor)
    if chain and p.d.maybe(0.6):
        p.lines.clear()
        p.run("model = keras.Sequential([\n    " + ",\n    ".join(chain) + ",\n])")
        return
    listed = lambda names: names[0] if len(names) == 1 else f"[{', '.join(names)}]"
    inputs = listed([name for name, _ in p.inputs])
    p.run(f"model = keras.Model({inputs}, {listed([o.tensor for o in outputs])})")


def data(p, outputs, seed):
    """Inputs, targets and sample weights of a few rows."""
    import keras
    import numpy as np

    random = np.random.RandomState(seed % 2**32)
    length = random.randint(4, 8)
    x = []
    for name, kind in p.inputs:
        shape = (p.rows,) + tuple(length if e is None else e for e in p.shape(name))
        if isinstance(kind, int):
            x.append(random.randint(0, kind, shape).astype(np.int32))
        elif kind == "image":
            x.append(random.randint(0, 256, shape).astype(np.float32))
        elif kind == "unit":
            x.append(random.rand(*shape).astype(np.float32))
        else:
            x.append(random.randn(*shape).astype(np.float32))
            if kind == "steps":
                for row in range(p.rows):
                    x[-1][row, random.randint(1, shape[1] + 1):] = 0
    model = p.space["model"]
    model.run_eagerly = True
    results = keras.tree.flatten(model(x if len(x) > 1 else x[0], training=False))
    y = [o.targets(random, tuple(r.shape), p.d.maybe(0.2)) for o, r in zip(outputs, results)]
    weighted = len(x) == len(y) == 1 and results[0].ndim == 2 and p.d.maybe(0.05)
    s = [random.rand(p.rows).astype(np.float32)] if weighted else []
    return x, y, s


SHAKE = """random = np.random.RandomState(0)
model.set_weights([w + (0.1 * random.rand(*w.shape)).astype(w.dtype) if w.dtype.kind == "f" else w
                   for w in model.get_weights()])"""


# ---- The comparison ----

def largest(a):
    import numpy as np

    return float(np.abs(a.astype(np.float64)).max()) if a.size else 0.0


def difference(a, b):
    return largest(a.astype("float64") - b.astype("float64"))


class Judge:
    """Compares what Cornu wrote with what Keras did."""

    def __init__(self, keras_out, controls, mixed):
        self.keras, self.controls, self.mixed = keras_out, controls, mixed
        self.others, self.settled = [], {}

    def bound(self, name):
        a = self.keras[name]
        moved = max((difference(a, c[name]) for c in self.controls), default=0.0)
        share = {None: 2e-5, "mixed_bfloat16": 2e-2, "mixed_float16": 3e-3}[self.mixed]
        return 30 * moved + share * max(largest(a), 1e-2)

    def wrong(self, name, b):
        """What is wrong with an array, or None."""
        import numpy as np

        a = self.keras[name]
        if a.shape != b.shape and a.size != b.size:
            return f"{name} has shape {b.shape}, expected {a.shape}"
        a = a.reshape(b.shape)
        if not np.isfinite(b).all():
            return f"{name} is not finite"
        off, most = difference(a, b), self.bound(name)
        if off <= most:
            return None
        for other in self.others:
            c = other[name].reshape(b.shape)
            if off <= 3 * difference(a, c) or difference(b, c) <= most:
                self.settled[name] = off
                return None
        return f"{name} {a.shape} off by {off:.2g}, bound {most:.2g}, largest {largest(a):.2g}"

    def bound_of_files(self, i):
        """Of output i, predicted by others from files that Cornu wrote."""
        names = f"q{i}", f"p{i}"
        return 2 * max(self.bound(n) + self.settled.get(n, 0.0) for n in names)

    def compare(self, out, letters):
        found = []
        for letter in letters:
            names = [n for n in self.keras if n[0] == letter]
            ours = [n for n in out if n[0] == letter]
            if len(names) != len(ours):
                found.append(f"{len(ours)} arrays {letter}, expected {len(names)}")
                continue
            found += [w for w in (self.wrong(n, out[n]) for n in names) if w]
        return found


def load(path):
    import numpy as np

    with np.load(path) as file:
        return {n: file[n] for n in file.files}


class Worker:
    """Draws models and tries them, one after another."""

    def __init__(self, options):
        self.options = options
        self.onnx = Helper("onnx", "jax")
        self.others = [Helper("keras", OTHER)] if OTHER else []
        self.others += [Helper("dense", MAIN), Helper("float64", MAIN)]
        self.keep = pathlib.Path(options.keep)

    def cornu(self, folder, out, *arguments):
        """The names of the logs that keras_model printed."""
        command = [str(self.options.program), str(folder / "model.keras"), str(folder / "in.npz"),
                   str(out), "--device", self.options.device, *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=240)
        except subprocess.TimeoutExpired:
            raise Failed("crash", "takes more than 240 s")
        message = done.stderr.strip().replace(str(folder), "").replace("/model.keras", "MODEL")
        if done.returncode < 0:
            raise Failed("crash", f"{signal.Signals(-done.returncode).name} {message[:200]}")
        if done.returncode == 3:
            raise Failed("refused", message)
        if done.returncode:
            raise Failed("error", message[-1000:])
        line = [l for l in done.stdout.splitlines() if l.startswith("logs:")]
        return line[0].split()[1:] if line else []

    def controls(self, path, x, y, s, mixed):
        """Two runs of Keras with all numbers disturbed."""
        import keras
        import numpy as np

        import random_reference

        size = {None: 1e-6, "mixed_bfloat16": 4e-3, "mixed_float16": 5e-4}[mixed]
        runs = []
        for seed in (1, 2):
            random = np.random.RandomState(seed)
            disturb = lambda a: (a * (1 + size * random.uniform(-1, 1, a.shape)).astype(
                a.dtype)).astype(a.dtype) if a.dtype.kind == "f" else a
            model = keras.saving.load_model(path, safe_mode=False)
            model.set_weights([disturb(w) for w in model.get_weights()])
            runs.append(random_reference.run(model, [disturb(a) for a in x], y, s, STEPS)[0])
        return runs

    def one(self, seed, folder):
        import keras
        import numpy as np

        import random_reference

        p, outputs, network = draw(seed, self.options)
        self.text = HEADER.format(seed=seed, network=network, backend=MAIN) + "\n".join(
            [l for l in p.lines]) + "\n\n" + SHAKE + "\n"
        self.network = network
        if p.mixed:
            self.text = self.text.replace("\nkeras.utils.set", "\nkeras.config.set_dtype_policy("
                                          f"{p.mixed!r})\nkeras.utils.set")
        model = p.space["model"]
        try:
            exec(SHAKE, p.space)
            x, y, s = data(p, outputs, seed)
            before = 0 if p.d.maybe(0.25) and not p.d.only else p.d.randint(1, 2)
            if "ScheduleFree" in self.text:   # begun when loaded, it starts from weights that
                before = max(before, 1)       # Keras draws before it reads the file's
            pack = lambda a: a[0] if len(a) == 1 else a
            for _ in range(before):
                model.train_on_batch(pack(x), pack(y), sample_weight=s[0] if s else None)
            model.save(folder / "model.keras")
            self.text += (f"data = np.load('{seed}.npz')\n"
                          "x = [data[f'x{i}'] for i in range(len(model.inputs))]\n"
                          "y = [data[f'y{i}'] for i in range(len(model.outputs))]\n"
                          f"for _ in range({before}):\n    model.train_on_batch(x, y)\n"
                          f"model.save('{seed}.again.keras')\n")
        except Exception as error:
            raise Failed("keras", f"{type(error).__name__}: {error}")
        policy = p.mixed or "float32"     # by which Keras' compile scales losses
        arrays = {f"{n}{i}": a for n, v in (("x", x), ("y", y), ("s", s)) for i, a in enumerate(v)}
        try:
            keras.config.set_dtype_policy(policy)
            reference = keras.saving.load_model(folder / "model.keras", safe_mode=False)
            want, names = random_reference.run(reference, x, y, s, STEPS)
        except Exception as error:
            raise Failed("keras", f"{type(error).__name__}: {error}")
        arrays |= {n: a for n, a in want.items() if n[0] == "p"}
        np.savez(folder / "in.npz", **arrays)
        if not all(np.isfinite(a).all() for a in want.values() if a.dtype.kind == "f"):
            raise Failed("not finite", "in Keras itself")
        saved = [folder / "saved.keras", folder / "saved.weights.h5"]
        logs = self.cornu(folder, folder / "out.npz", "--steps", str(STEPS),
                          *[w for f in saved for w in ("--save", str(f))])
        got = load(folder / "out.npz")
        if sorted(names) != sorted(logs):
            raise Failed("wrong", f"logs are named {logs}, expected {names}")
        order = [logs.index(n) for n in names]     # those of Keras are sorted
        got |= {n: a[order] for n, a in got.items() if n[0] == "l"}
        judge = Judge(want, self.controls(folder / "model.keras", x, y, s, p.mixed), p.mixed)
        letters = "pvu" if p.d.noise else "pvulqwo"
        found = judge.compare(got, letters)
        for other in self.others:
            if not found or any("arrays" in f for f in found):
                break
            reply = other.ask(model=str(folder / "model.keras"), data=str(folder / "in.npz"),
                              out=str(folder / "other.npz"), steps=STEPS, policy=policy)
            if "error" not in reply:
                judge.others.append(load(folder / "other.npz"))
                found = judge.compare(got, letters)
        if found:
            raise Failed("wrong", "; ".join(found[:4]) + (f"; {len(found)} in all"
                                                          if len(found) > 4 else ""))
        self.read_back(folder, x, y, judge, got)
        self.export(folder, judge, got)

    def read_back(self, folder, x, y, judge, got):
        """Keras reads what Cornu saved."""
        import keras

        pack = lambda a: a[0] if len(a) == 1 else a
        try:
            model = keras.saving.load_model(folder / "saved.keras", safe_mode=False)
            model.run_eagerly = True
            results = keras.tree.flatten(model.predict_on_batch(pack(x)))
            weights, variables = model.get_weights(), model.optimizer.variables
            model.train_on_batch(pack(x), pack(y))
            other = keras.saving.load_model(folder / "model.keras", safe_mode=False)
            other.load_weights(folder / "saved.weights.h5")
        except Exception as error:
            raise Failed("file", f"Keras refuses it: {type(error).__name__}: {error}"[:600])
        self.stateful = any(getattr(l, "stateful", False) for l in model.layers)
        for i, result in enumerate(results):
            result = random_plain(result)
            off = difference(result.reshape(got[f"q{i}"].shape), got[f"q{i}"])
            most = judge.bound_of_files(i)
            if off > most and not self.stateful:
                raise Failed("file", f"Keras predicts otherwise from it: {off:.2g}, "
                                     f"bound {most:.2g}")
        for what, read in (".keras", weights), (".weights.h5", other.get_weights()):
            for i, weight in enumerate(read):
                if difference(weight, got[f"w{i}"].reshape(weight.shape)) > 0:
                    raise Failed("file", f"weight {i} of the {what} differs")

    def export(self, folder, judge, got):
        """onnxruntime reads what Cornu exports."""
        try:
            self.cornu(folder, folder / "out2.npz", "--steps", str(STEPS), "--save",
                       str(folder / "saved.onnx"))
        except Failed as failed:
            kind = "refused in ONNX" if failed.kind == "refused" else failed.kind
            raise Failed(kind, failed.detail.replace("/saved.onnx", "ONNX"))
        reply = self.onnx.ask(model=str(folder / "saved.onnx"), data=str(folder / "in.npz"),
                              out=str(folder / "onnx.npz"))
        if "error" in reply:
            raise Failed("onnx", reply["error"])
        results = load(folder / "onnx.npz")
        got = load(folder / "out2.npz")
        for i in range(len(results)):
            if results[f"p{i}"].size != got[f"q{i}"].size:
                raise Failed("onnx", f"shape {results[f'p{i}'].shape}, "
                                     f"expected {got[f'q{i}'].shape}")
            off = difference(results[f"p{i}"].reshape(got[f"q{i}"].shape), got[f"q{i}"])
            most = judge.bound_of_files(i)
            if off > most and not self.stateful:    # whose states are not in files
                raise Failed("onnx", f"onnxruntime predicts otherwise: {off:.2g}, bound {most:.2g}")

    def attempt(self, seed):
        """Tries a seed; the class and the detail of what came."""
        self.text, self.network = "", "?"
        folder = pathlib.Path(tempfile.mkdtemp(prefix="random_model_"))
        began = time.time()
        try:
            self.one(seed, folder)
            kind, detail = "agrees", ""
        except Failed as failed:
            kind, detail = failed.kind, failed.detail
        except Exception:
            kind, detail = "script", traceback.format_exc(limit=-3)
        if kind not in ("agrees", "not drawn", "not finite", "keras") or self.options.keep_all:
            self.keep.mkdir(parents=True, exist_ok=True)
            (self.keep / f"{seed}.py").write_text(self.text + f"# {kind}: " + detail.replace(
                "\n", "\n# ") + "\n")
            for name, suffix in (("model.keras", "keras"), ("in.npz", "npz")):
                if (folder / name).exists():
                    shutil.copy(folder / name, self.keep / f"{seed}.{suffix}")
        shutil.rmtree(folder)
        return {"seed": seed, "class": kind, "detail": detail, "network": self.network,
                "seconds": round(time.time() - began, 1)}


def random_plain(value):
    import random_reference

    return random_reference.plain(value)


def supported():
    """The names of Cornu's layers, in lower case and without underscores."""
    text = (ROOT / "nn/layers/layers.def").read_text()
    return {n.replace("_", "") for n in re.findall(r"^LAYER\((\w+)\)", text, re.M)}


def work(options):
    """A worker process: a line of JSON for each seed on stdin."""
    os.environ.update(QUIET, KERAS_BACKEND=MAIN)
    to = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.path.insert(0, str(HERE))
    import random_layers

    if MAIN == "tensorflow":
        import tensorflow

        tensorflow.config.threading.set_intra_op_parallelism_threads(1)
    random_layers.complete()
    random_layers.SUPPORTED |= supported()
    worker = Worker(options)
    for line in sys.stdin:
        to.write(json.dumps(worker.attempt(int(line))) + "\n")
        to.flush()


# ---- All of them ----

def general(detail):
    """A message without names and numbers, to count it."""
    detail = re.sub(r"[a-z]+_?[a-z0-9_]*_\d+|\d+(\.\d+)?(e-?\d+)?", "N", detail.split("\n")[0])
    return detail[:130]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", choices=["supported", ""], default="")
    parser.add_argument("--network", help="only these, separated by commas")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--program", default=ROOT / "build/keras_model")
    parser.add_argument("--keep", default=str(ROOT / "build/random_models"))
    parser.add_argument("--keep-all", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(options)
    seeds = list(range(options.seed, options.seed + options.count))[::-1]
    results = []
    command = [sys.executable, __file__, "--worker"] + [a for a in sys.argv[1:]]

    def begin():
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=None if options.count == 1 else subprocess.DEVNULL,
                                text=True)

    def serve():
        process = begin()
        while True:
            try:
                seed = seeds.pop()
            except IndexError:
                break
            line = ""
            try:
                process.stdin.write(f"{seed}\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except BrokenPipeError:
                pass
            if not line:
                result = {"seed": seed, "class": "keras", "network": "?", "seconds": 0,
                          "detail": f"its process ends with {process.wait()}"}
                process = begin()
            else:
                result = json.loads(line)
            results.append(result)
            print(f"{result['seed']} {result['network']} {result['seconds']}s {result['class']} "
                  f"{result['detail'][:300]}", flush=True)
        process.stdin.close()
        process.wait()

    import threading

    threads = [threading.Thread(target=serve) for _ in range(options.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"\n{len(results)} models from seed {options.seed}, Keras on {MAIN}"
          f"{', beside ' + OTHER if OTHER else ''}")
    classes = collections.Counter(r["class"] for r in results)
    for kind, count in classes.most_common():
        print(f"{count:5} {kind}")
        if kind == "agrees":
            continue
        messages = collections.defaultdict(list)
        for r in results:
            if r["class"] == kind:
                messages[general(r["detail"])].append(r["seed"])
        for message, seen in sorted(messages.items(), key=lambda m: -len(m[1])):
            print(f"      {len(seen):4} {message}  seeds {', '.join(map(str, seen[:4]))}")
    bad = sum(classes[k] for k in ("wrong", "crash", "error", "file", "onnx"))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
