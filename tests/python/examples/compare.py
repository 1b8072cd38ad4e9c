"""Runs each program below this folder with Keras and with Cornu, and compares what they report.

    python compare.py [NAME...]       CORNU_LIBRARY and PYTHONPATH as for any program of the package
    python compare.py [--steps 3] [--trainings 1] [--backend jax|tensorflow] FILE.py [ARGUMENT...]

A NAME is "vision/pointnet", or all of a section, "vision". A FILE is any program that imports
keras, which stays unchanged: see unchanged.py. It runs twice in the current folder, each time until
the steps of its first trainings are done; of these, their losses and metrics are compared.

Prints a row for each, and how much of the list in published.txt that is. Exits with 1 if one does
not agree that is in agreed.txt, else with 0, and with 77 where Keras, JAX or TensorFlow is not
installed.
"""

import argparse
import contextlib
import glob
import io
import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 180           # for a program
RELATIVE, ABSOLUTE = 1e-4, 1e-5


def programs(names=()):
    """Those of the names, or all."""
    found = sorted(os.path.relpath(path, HERE)[:-len(".py")].replace(os.sep, "/")
                   for path in glob.glob(os.path.join(HERE, "*", "*.py")))
    return [name for name in found if not names or name in names or name.split("/")[0] in names]


# ---- One side ----

def run(name):
    """What a program reports, or its error with the program's line."""
    path, out = os.path.join(HERE, name + ".py"), io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            runpy.run_path(path, run_name="__main__")
    except BaseException as error:      # SystemExit, too
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
                 if frame.filename == path]
        text = str(error).strip().split("\n")[0]
        return {"error": "line %s: %s: %s" % (lines[-1] if lines else "?", type(error).__name__,
                                              text)}
    found = [json.loads(line[len("REPORT "):]) for line in out.getvalue().splitlines()
             if line.startswith("REPORT ")]
    return {"report": found[-1]} if found else {"error": "it reports nothing"}


def needs_tensorflow(name):
    """Programs with its tape; and with states that outlast a batch, which predict of Keras on JAX
    forgets; and those that say so."""
    with open(os.path.join(HERE, name + ".py"), encoding="utf-8") as file:
        text = file.read()
    return any(mark in text for mark in ("GradientTape", "stateful=True", "on TensorFlow"))


def side(which, names, backend="jax"):
    """The results of programs, by name, in a process for all."""
    environment = dict(os.environ, EXAMPLE_SIDE=which, PYTHONDONTWRITEBYTECODE="1",
                       PYTHONHASHSEED="0", KERAS_BACKEND=backend, JAX_PLATFORMS="cpu")
    done = subprocess.run([sys.executable, "-W", "ignore", __file__, "--run", *names],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
                          timeout=SECONDS * len(names), check=False)
    found = {}
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        if line.startswith("RESULT "):
            found.update(json.loads(line[len("RESULT "):]))
    for name in names:
        last = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
        found.setdefault(name, {"error": "the process ended with %d: %s" % (done.returncode, last)})
    return found


def main_of_side(names):
    sys.path.insert(0, HERE)
    import harness
    for name in names:
        harness.keras.utils.clear_session()
        harness.keras.utils.set_random_seed(1)
        print("RESULT " + json.dumps({name: run(name)}), flush=True)


# ---- Both ----

def difference(theirs, ours):
    """(the largest difference in units of the bound, what is wrong)."""
    if sorted(theirs) != sorted(ours):
        return None, "reports %s, Keras %s" % (", ".join(sorted(ours)), ", ".join(sorted(theirs)))
    worst, where = 0.0, ""
    for name, a in theirs.items():
        b = ours[name]
        if len(a) != len(b):
            return None, "%s has %d numbers, Keras' %d" % (name, len(b), len(a))
        for x, y in zip(a, b):
            units = abs(x - y) / (ABSOLUTE + RELATIVE * abs(x))
            if not units <= worst:      # or it is not a number
                worst, where = units, "%s is %.6g, Keras' %.6g" % (name, y, x)
    return worst, where


def row(name, theirs, ours):
    """(what became of it, the row's text)."""
    if "error" in theirs:
        return "unsaid", "Keras: " + theirs["error"]
    if "error" in ours:
        return "fails", ours["error"]
    worst, where = difference(theirs["report"], ours["report"])
    if worst is None or not worst <= 1:
        return "differs", where
    return "agrees", "%.2g of the bound" % worst


def published():
    """Of published.txt: the names of those that need nothing but arrays, and of all others."""
    with open(os.path.join(HERE, "published.txt"), encoding="utf-8") as file:
        rows = [line.split(None, 2) for line in file if line.strip() and line[0] != "#"]
    return ({row[0] for row in rows if row[1] == "+"}, {row[0] for row in rows if row[1] == "-"})


def agreed():
    """The programs that have agreed, which they must."""
    with open(os.path.join(HERE, "agreed.txt"), encoding="utf-8") as file:
        return set(file.read().split())


def backend_of(path):
    """That which a program of Keras sets, or TensorFlow if it imports it, or JAX."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    given = re.findall(r"""KERAS_BACKEND["']\]\s*=\s*["'](jax|tensorflow)""", text)
    return given[0] if given else "tensorflow" if "tensorflow" in text else "jax"


def unchanged(which, folder, options, path, arguments):
    """What a side of a program that is no one of ours reports."""
    result = os.path.join(folder, which + ".json")
    if os.path.exists(result):      # of a folder that is kept
        os.remove(result)
    environment = dict(os.environ, KERAS_BACKEND=options.backend or backend_of(path),
                       PYTHONHASHSEED="0", JAX_PLATFORMS="cpu", CUDA_VISIBLE_DEVICES="",
                       TF_CPP_MIN_LOG_LEVEL="3", MPLBACKEND="Agg", PYTHONDONTWRITEBYTECODE="1")
    try:
        with open(os.path.join(folder, which + ".txt"), "w", encoding="utf-8") as log:
            ended = "ended with %d" % subprocess.run(
                [sys.executable, "-W", "ignore", os.path.join(HERE, "unchanged.py"), which, folder,
                 str(options.steps), str(options.trainings), path, *arguments], stdout=log,
                stderr=log, stdin=subprocess.DEVNULL, env=environment, timeout=options.seconds,
                check=False).returncode
    except subprocess.TimeoutExpired:
        ended = "took more than %d s" % options.seconds
    try:
        with open(result, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return {"error": "the process " + ended, "report": {}, "notes": []}
    if not found["report"]:
        found.setdefault("error", "no step was seen: see the functions in steps.py")
    return found


def compare_unchanged(options, path, arguments):
    """Prints a row of a program of Keras; 0 if both sides agree."""
    with tempfile.TemporaryDirectory() as folder:
        folder = options.keep or folder
        os.makedirs(folder, exist_ok=True)
        theirs = unchanged("keras", folder, options, path, arguments)
        ours = unchanged("cornu", folder, options, path, arguments)
    name = os.path.splitext(os.path.basename(path))[0]
    what, text = row(name, theirs, ours)
    print("%-52s %-8s %s" % (name, what, re.sub(r"\s+", " ", text)[:240]), flush=True)
    for label, values in theirs["report"].items():
        mine = ours["report"].get(label, [])
        print("  %-30s %s\n  %-30s %s" % (label, _shown(values), "", _shown(mine)))
    for note in ours["notes"]:
        print("  " + note)
    return 0 if what == "agrees" else 1


def _shown(values):
    return " ".join("%.7g" % value for value in values)


def main(names):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--trainings", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=600, help="at most, for a side")
    parser.add_argument("--backend", choices=["jax", "tensorflow"])
    parser.add_argument("--keep", help="a folder for what each side prints and reports")
    parser.add_argument("names", nargs=argparse.REMAINDER)
    options = parser.parse_args(names)
    names = options.names
    if names and names[0].endswith(".py"):
        return compare_unchanged(options, os.path.abspath(names[0]), names[1:])
    return compare_ours(names)


def compare_ours(names):
    for needed in ("keras", "jax", "tensorflow"):
        if subprocess.run([sys.executable, "-c", "import " + needed], stderr=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, check=False).returncode:
            print("skipping: %s of %s" % (needed, sys.executable))
            return 77
    names = programs(names)
    counts, theirs, lost = {}, {}, []
    for backend, tape in (("jax", False), ("tensorflow", True)):
        these = [name for name in names if needs_tensorflow(name) == tape]
        theirs.update(side("keras", these, backend) if these else {})
    for name in names:
        what, text = row(name, theirs[name], side("cornu", [name])[name])
        counts[what] = counts.get(what, 0) + 1
        if what != "agrees" and name in agreed():
            lost.append(name)
        print("%-52s %-8s %s" % (name, what, re.sub(r"\s+", " ", text)[:140]), flush=True)
    print("%d programs: %s" % (len(names), ", ".join("%d %s" % (n, what)
                                                     for what, n in sorted(counts.items()))))
    apt, out = published()
    print("published: %d, of which %d need nothing but arrays; %d of these have a program here"
          % (len(apt) + len(out), len(apt), len(apt.intersection(programs()))))
    if lost:
        print("agreed before: " + ", ".join(lost))
    return 1 if lost else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        main_of_side(sys.argv[2:])
    else:
        sys.exit(main(sys.argv[1:]))
