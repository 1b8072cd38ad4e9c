"""LiteRT's interpreter on whole test sets: check_tflite.py PROGRAM [EPOCHS [SAMPLES]]

PROGRAM is lite_networks, which trains the networks and writes them. For each, the interpreter
predicts every row of the test set; predictions must be within 1e-5 of Cornu's.
"""

import glob
import os
import subprocess
import sys
import tempfile

import numpy as np
from ai_edge_litert.interpreter import Interpreter

TOLERANCE, BATCH = 1e-5, 500

bad = 0
with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.argv[1], folder] + sys.argv[2:], check=True)
    for file in sorted(glob.glob(os.path.join(folder, "*.tflite"))):
        arrays = np.load(file.replace(".tflite", ".npz"))
        x, want, labels = arrays["x0"], arrays["p0"], arrays["y0"]
        interpreter = Interpreter(file)
        run = interpreter.get_signature_runner("serving_default")
        (name,), (output,) = run.get_input_details(), run.get_output_details()
        got = np.concatenate([run(**{name: x[i:i + BATCH]})[output]
                              for i in range(0, len(x), BATCH)])
        apart = np.abs(got - want).max()
        classes = (got.argmax(1) == want.argmax(1)).sum()
        accuracy = (got.argmax(1) == labels.reshape(-1)).mean()
        good = got.shape == want.shape and apart <= TOLERANCE and classes == len(x)
        bad += not good
        print(f"{'ok' if good else 'MISSED'}  {os.path.basename(file)}: {len(x)} rows within "
              f"{apart:.2g}, {classes} equal classes, accuracy {accuracy:.4f}, "
              f"{os.path.getsize(file)} bytes", flush=True)
sys.exit(bad != 0)
