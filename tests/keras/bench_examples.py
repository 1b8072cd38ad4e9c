"""Times of the programs in tests/python/examples: Cornu, and Keras on JAX and on TensorFlow.

    make bench-keras-examples [ONLY='vision/cait nlp'] [SIDES='cornu jax'] PYTHON=...

Each program is small, so that what it takes is mostly Python, tracing and compiling. Each side has
one process for all, which first imports TensorFlow, as some programs do, and trains a small model.
Per program: seconds of all of it; seconds of its first training by fit, which includes tracing and
compiling; and milliseconds of an epoch later on, of EPOCHS further ones of its last fit: most have
one step. A dash: that side cannot run it, or it has no fit.
"""

import contextlib
import io
import os
import runpy
import sys
import time

from sides import Side, answer

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python", "examples")
SIDES = os.environ.get("SIDES", "cornu jax tensorflow").split()
EPOCHS = 40


class Fits:
    """Of a program's calls of fit: the time of the first, and the last one to do again."""

    def __init__(self, keras):
        self.keras, self.own = keras, keras.Model.fit
        self.forget()

        def fit(model, *args, **kwargs):
            start = time.process_time()
            found = self.own(model, *args, **kwargs)
            if self.first is None:
                self.first = time.process_time() - start
            self.last = model, args, kwargs
            return found

        keras.Model.fit = fit

    def forget(self):
        self.first, self.last = None, None

    def epoch(self):
        """Seconds of an epoch, among many."""
        model, args, kwargs = self.last
        kwargs = dict(kwargs, epochs=EPOCHS, verbose=0, initial_epoch=0, callbacks=None)
        start = time.process_time()
        self.own(model, *args, **kwargs)
        return (time.process_time() - start) / EPOCHS


def work():
    at = {}

    def prepare(side):
        os.environ["EXAMPLE_SIDE"] = "cornu" if side == "cornu" else "keras"
        sys.path.insert(0, HERE)
        if "tensorflow" in SIDES:
            __import__("tensorflow")
        import harness
        keras = harness.keras
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
        model.compile("adam", "mse")
        model.fit(harness.data(8, 3), harness.data(8, 1), verbose=0)
        at["keras"], at["fits"] = keras, Fits(keras)

    def program(task):
        at["keras"].utils.clear_session()
        at["keras"].utils.set_random_seed(1)
        at["fits"].forget()
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                runpy.run_path(os.path.join(HERE, task["name"] + ".py"), run_name="__main__")
        except BaseException as error:      # SystemExit, too
            return {"error": f"{type(error).__name__}: {error}"}
        return {"fit": at["fits"].first}

    def epoch(task):
        try:
            return {"epoch": at["fits"].epoch() if at["fits"].last else None}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}

    answer(prepare, {"program": program, "epoch": epoch})


def main():
    if sys.argv[1:2] == ["--work"]:
        return work()
    sys.path.insert(0, HERE)
    import compare
    core = max(os.sched_getaffinity(0))
    sides = {side: Side(__file__, side, core) for side in SIDES}
    print(f"{', '.join(SIDES)}\n")
    print("| program | all, s | first fit, s | an epoch, ms |\n| --- | --- | --- | --- |", flush=True)
    for name in compare.programs(sys.argv[1:]):
        found = {}
        for side, worker in sides.items():
            whole = worker.ask({"do": "program", "name": name})
            later = {} if "error" in whole else worker.ask({"do": "epoch"})
            if "error" in whole or "error" in later:
                print(side, name, whole.get("error") or later["error"], file=sys.stderr)
            found[side] = (None if "error" in whole else whole["seconds"], whole.get("fit"),
                           later.get("epoch"))
        cells = [" / ".join("-" if found[side][k] is None else f"{found[side][k] * scale:.{digits}f}"
                            for side in SIDES)
                 for k, (scale, digits) in enumerate(((1, 2), (1, 2), (1e3, 2)))]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    for worker in sides.values():
        worker.end()


if __name__ == "__main__":
    main()
