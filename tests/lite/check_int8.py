"""Compares an 8-bit .tflite file, as LiteRT's interpreter runs it, with Cornu's integers.

    python tests/lite/check_int8.py MODEL.tflite IMAGES.idx PROGRAM

PROGRAM (build/int8_integers) prints Cornu's integers for the images. Needs ai-edge-litert, numpy.
"""
import gzip
import subprocess
import sys

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType


def images(path):
    content = (gzip.open if path.endswith(".gz") else open)(path, "rb").read()
    count, height, width = (int.from_bytes(content[i:i + 4], "big") for i in (4, 8, 12))
    return np.frombuffer(content, np.uint8, offset=16).reshape(count, height, width)


def run(model, x, resolver, batch=100):
    interpreter = Interpreter(model_path=model, experimental_op_resolver_type=resolver)
    about = interpreter.get_input_details()[0]
    interpreter.resize_tensor_input(about["index"], [batch, *about["shape"][1:]])
    interpreter.allocate_tensors()
    out = interpreter.get_output_details()[0]["index"]
    results = []
    for first in range(0, len(x), batch):
        interpreter.set_tensor(about["index"], x[first:first + batch])
        interpreter.invoke()
        results.append(interpreter.get_tensor(out).copy())
    return np.concatenate(results)


if __name__ == "__main__":
    model, data, ours = sys.argv[1:]
    about = Interpreter(model_path=model).get_input_details()[0]
    scale, zero = about["quantization"]
    real = images(data).astype(np.float32) * np.float32(1 / 255)
    if scale > 0.5:                        # a model of raw pixels
        real = images(data).astype(np.float32)
    x = np.clip(np.round(real / np.float32(scale)) + zero, -128, 127).astype(np.int8)
    x = x.reshape(len(x), *about["shape"][1:])
    want = run(model, x, OpResolverType.BUILTIN_REF)
    fast = run(model, x, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    x.tofile("/tmp/int8w/x.bin")
    want.tofile("/tmp/int8w/want.bin")
    print(len(x), "rows; optimized kernels differ from reference in", np.sum(np.any(want != fast, 1)))
