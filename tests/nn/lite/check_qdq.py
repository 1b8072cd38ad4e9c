"""An .onnx file of a quantized graph: check_qdq.py MODEL.onnx ARRAYS.npz

ONNX' checker accepts it, and the ONNX runtime gives, for x0 of the arrays, their p0, in bytes: at
most one apart, as its rounding differs, and three of four the same.
"""

import sys

import numpy as np
import onnx
import onnxruntime

onnx.checker.check_model(sys.argv[1], full_check=True)
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
arrays = np.load(sys.argv[2])
(got,) = session.run(None, {session.get_inputs()[0].name: arrays["x0"]})
apart = np.abs(got.astype(int) - arrays["p0"])
print(got.dtype, apart.max(), (apart == 0).mean())
sys.exit(not (got.dtype == np.int8 and apart.max() <= 1 and (apart == 0).mean() >= 0.75))
