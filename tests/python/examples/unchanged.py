"""Runs one unchanged program of Keras on one side, and writes what its first trainings show:

    python unchanged.py keras|cornu FOLDER STEPS TRAININGS FILE [ARGUMENT...]

With "cornu", whatever imports keras, tf.keras or a module of theirs gets this package. The random
numbers of layers and steps are switched off (still.py), the first run with Keras writes the initial
weights into FOLDER, and the other takes them (starts.py); steps.py says what a step is.

FOLDER/SIDE.json gets {"report": {name: [a number per step]}, "error": of the program, if it failed
before its steps were done, "notes": [...]}.
"""

import importlib
import json
import os
import runpy
import sys
import traceback

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def stand_in(package):
    """Makes the package what programs import as keras, and as tensorflow.keras."""
    ours = {name: module for name, module in sys.modules.items()
            if name.partition(".")[0] == package.__name__ and "._" not in name}
    for name, module in ours.items():
        rest = name[len(package.__name__):]
        for keras in ("keras", "keras.src", "tensorflow.keras"):
            sys.modules[keras + rest] = module
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None:
        tensorflow.keras = package


def where(error, path):
    """The error with the program's line."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
             if frame.filename == path]
    text = " ".join(str(error).split())
    return "line %s: %s: %s" % (lines[-1] if lines else "?", type(error).__name__, text)


def import_mentioned(path):
    """Imports JAX and TensorFlow, if the program does: Keras does before the generators of random
    numbers are seeded, and JAX draws from NumPy's."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for name in ("tensorflow", "jax"):
        if name in text:
            importlib.import_module(name)


def main(side, folder, steps, trainings, path, arguments):
    import starts
    import still
    import steps as recorded
    import_mentioned(path)
    package = importlib.import_module(side)
    if side == "cornu":
        stand_in(package)
    still.switch_off(package)
    start = (starts.Given if side == "cornu" else starts.Written)(package, folder)
    record = recorded.Record(package, int(steps), int(trainings), start.first_use)
    sys.argv = [path, *arguments]
    sys.path[0] = os.path.dirname(path)
    error = None
    try:
        runpy.run_path(path, run_name="__main__")
    except recorded.Enough:
        pass
    except BaseException as raised:     # pylint: disable=broad-exception-caught
        error = where(raised, path)
        traceback.print_exc()
    record.finish()
    start.finish()
    found = {"report": record.report, "notes": start.notes}
    if error is not None:
        found["error"] = error
    with open(os.path.join(folder, side + ".json"), "w", encoding="utf-8") as file:
        json.dump(found, file)


if __name__ == "__main__":
    np.random.seed(0)
    main(*sys.argv[1:5], os.path.abspath(sys.argv[5]), sys.argv[6:])
    sys.stdout.flush()
    os._exit(0)     # whatever threads of data the program has left
