"""Runs build/keras_model on a model that Keras saved, and compares what both compute."""

import os
import subprocess
import tempfile

import numpy as np

REFUSED = 3


class Refused(Exception):
    """Cornu has not what the model needs, and says so."""


class Wrong(Exception):
    """A number differs, or an error that names no missing feature."""


class Crash(Exception):
    """The program died."""


def run(arguments, seconds=120):
    """Runs keras_model; returns what it printed."""
    program = os.path.join(os.environ.get("BUILD", "build"), "keras_model")
    try:
        result = subprocess.run([program, *arguments], capture_output=True, text=True,
                                timeout=seconds, check=False)
    except subprocess.TimeoutExpired as expired:
        raise Crash(f"does not end within {seconds} s") from expired
    message = result.stderr.strip()
    if result.returncode == REFUSED:
        raise Refused(message)
    if result.returncode < 0 or result.returncode > REFUSED:
        raise Crash(f"status {result.returncode}: {message[-400:]}")
    if result.returncode:
        raise Wrong(message)
    return result.stdout


def numbered(arrays, letter):
    """The arrays letter0, letter1, … of an npz."""
    found = []
    while f"{letter}{len(found)}" in arrays:
        found.append(arrays[f"{letter}{len(found)}"])
    return found


def difference(got, want):
    """The largest difference, relative to the largest value if that is above 1."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    if got.shape != want.shape:
        raise Wrong(f"the shape is {got.shape}, Keras has {want.shape}")
    if want.size == 0:
        return 0.0
    if np.any(np.isnan(got) != np.isnan(want)):
        return np.inf
    same = (got == want) | np.isnan(want)
    return float(np.max(np.where(same, 0, np.abs(got - want)), initial=0) /
                 max(1.0, np.max(np.abs(np.where(np.isfinite(want), want, 0)))))


def expect_near(what, got, want, bound):
    """Lists of arrays; Wrong if one differs by more than the bound, or its own of a list."""
    if len(got) != len(want):
        raise Wrong(f"{what}: {len(got)} arrays, Keras has {len(want)}")
    bounds = bound if isinstance(bound, list) else [bound] * len(want)
    for i, (g, w, most) in enumerate(zip(got, want, bounds)):
        distance = difference(g, w)
        if not distance <= most:
            raise Wrong(f"{what} {i}: differs by {distance:.3g}, expected at most {most:.3g}")


def onnx_predict(path, inputs):
    """What onnxruntime predicts, in a process of its own: some files crash it."""
    code = ("import sys, numpy as np, onnxruntime as o\n"
            "o.set_default_logger_severity(3)\n"
            "s = o.InferenceSession(sys.argv[1], providers=['CPUExecutionProvider'])\n"
            "a = np.load(sys.argv[2]); t = {'tensor(int32)': np.int32, 'tensor(bool)': np.bool_}\n"
            "f = {x.name: a[f'x{i}'].astype(t.get(x.type, np.float32))"
            " for i, x in enumerate(s.get_inputs())}\n"
            "np.savez(sys.argv[3], **{f'p{i}': p for i, p in enumerate(s.run(None, f))})\n")
    with tempfile.TemporaryDirectory() as folder:
        given, made = os.path.join(folder, "in.npz"), os.path.join(folder, "out.npz")
        np.savez(given, **{f"x{i}": x for i, x in enumerate(inputs)})
        import sys
        result = subprocess.run([sys.executable, "-c", code, path, given, made],
                                capture_output=True, text=True, check=False)
        if result.returncode < 0:
            raise Crash(f"onnxruntime dies of signal {-result.returncode}")
        if result.returncode:
            raise Wrong(f"onnxruntime: {result.stderr.strip().splitlines()[-1][:300]}")
        return numbered(np.load(made), "p")
