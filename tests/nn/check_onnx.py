"""ONNX models that Cornu saved: check_onnx.py FOLDER CASE...

Each FOLDER/CASE.onnx passes ONNX' own checker, strictly, and the ONNX runtime gives, for x0, x1, …
of FOLDER/CASE.npz, its p0, p1, … Both for the batch there and for its first row alone.
"""

import os
import sys

import numpy as np
import onnx
import onnxruntime

for case in sys.argv[2:]:
    name = os.path.join(sys.argv[1], case)
    model = onnx.load(f"{name}.onnx")
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(f"{name}.onnx", providers=["CPUExecutionProvider"])
    arrays = np.load(f"{name}.npz")
    for rows in (None, 1):
        feeds = {v.name: arrays[f"x{i}"][:rows] for i, v in enumerate(session.get_inputs())}
        for i, got in enumerate(session.run(None, feeds)):
            want = arrays[f"p{i}"][:rows]
            difference = np.abs(got - want).max() if got.shape == want.shape else np.inf
            if not difference <= 1e-5 * max(1, np.abs(want).max()):
                sys.exit(f"{case}: output {i} is {got}, Cornu has {want}")
print("agreed")
