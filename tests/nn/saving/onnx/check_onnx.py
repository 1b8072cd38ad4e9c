"""ONNX models that Cornu saved: check_onnx.py FOLDER COUNT [OUTPUTS.npz]

Each of the COUNT models FOLDER/*.onnx passes ONNX' own checker, strictly, and the ONNX runtime
gives, for x0, x1, … of the .npz beside it, its p0, p1, … Both for the batch there and for its
first row alone, within 1e-5 of the largest number. If all do, OUTPUTS.npz gets for each model what
the runtime gave, NAME/p0, NAME/p1, …, and NAME/file: the size and the CRC-32 of the bytes it ran.
"""

import glob
import os
import sys
import zlib

import numpy as np
import onnx
import onnxruntime

TOLERANCE = 1e-5

files = sorted(glob.glob(os.path.join(sys.argv[1], "*.onnx")))
if len(files) != int(sys.argv[2]):
    sys.exit(f"{len(files)} models, {sys.argv[2]} are to be checked")
failures, worst, outputs = [], 0, {}
for file in files:
    case = os.path.basename(file)
    try:
        onnx.checker.check_model(file, full_check=True)
        session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    except Exception as error:
        failures.append(f"{case}: {error}")
        continue
    arrays = np.load(file.replace(".onnx", ".npz"))
    content = open(file, "rb").read()
    outputs[case[:-5] + "/file"] = np.array([len(content), zlib.crc32(content)])
    for rows in (None, 1):
        feeds = {v.name: arrays[f"x{i}"][:rows] for i, v in enumerate(session.get_inputs())}
        for i, got in enumerate(session.run(None, feeds)):
            want = arrays[f"p{i}"][:rows]
            if rows is None:
                outputs[f"{case[:-5]}/p{i}"] = got
            difference = np.abs(got - want).max() if got.shape == want.shape else np.inf
            relative = difference / np.abs(want).max()
            if relative <= TOLERANCE:
                worst = max(worst, relative)
            else:
                failures.append(f"{case}: output {i} {got.shape} is {relative:.2g} away from "
                                f"what Cornu has, {want.shape}:\n{got}\n{want}")
if failures:
    sys.exit("\n".join(failures))
if len(sys.argv) > 3:
    np.savez_compressed(sys.argv[3], **outputs)
print(f"{len(files)} models agree within {worst:.2g}")
