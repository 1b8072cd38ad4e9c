"""Models that Cornu saved as .tflite files: check_lite.py FOLDER COUNT [OUTPUTS.npz]

LiteRT's interpreter gives, for x0, x1, … of the .npz beside each of the COUNT models
FOLDER/*.tflite, its p0, p1, … Both for the batch there and for its first row alone, within 1e-5 of
the largest number. If all do, OUTPUTS.npz gets for each model what the interpreter gave, NAME/p0,
NAME/p1, …, and NAME/file: the size and the CRC-32 of the bytes it ran.
"""

import glob
import os
import sys
import zlib

import numpy as np
from ai_edge_litert.interpreter import Interpreter

TOLERANCE = 1e-5

files = sorted(glob.glob(os.path.join(sys.argv[1], "*.tflite")))
if len(files) != int(sys.argv[2]):
    sys.exit(f"{len(files)} models, {sys.argv[2]} are to be checked")
failures, worst, outputs = [], 0, {}
for file in files:
    case = os.path.basename(file)[:-7]
    arrays = np.load(file.replace(".tflite", ".npz"))
    content = open(file, "rb").read()
    outputs[case + "/file"] = np.array([len(content), zlib.crc32(content)])
    for rows in (None, 1):
        try:
            interpreter = Interpreter(file)
            for i, place in enumerate(interpreter.get_input_details()):
                interpreter.resize_tensor_input(place["index"], arrays[f"x{i}"][:rows].shape)
            interpreter.allocate_tensors()
            for i, place in enumerate(interpreter.get_input_details()):
                interpreter.set_tensor(place["index"], arrays[f"x{i}"][:rows])
            interpreter.invoke()
        except Exception as error:
            failures.append(f"{case}: {error}")
            break
        for i, place in enumerate(interpreter.get_output_details()):
            got, want = interpreter.get_tensor(place["index"]), arrays[f"p{i}"][:rows]
            if rows is None:
                outputs[f"{case}/p{i}"] = got
            difference = np.abs(got - want).max() if got.shape == want.shape else np.inf
            relative = difference / np.abs(want).max()
            if relative <= TOLERANCE:
                worst = max(worst, relative)
            else:
                failures.append(f"{case}: output {i} {got.shape} is {relative:.2g} away from "
                                f"what Cornu has, {want.shape}")
if failures:
    sys.exit("\n".join(failures))
if len(sys.argv) > 3:
    np.savez_compressed(sys.argv[3], **outputs)
print(f"{len(files)} models agree within {worst:.2g}")
