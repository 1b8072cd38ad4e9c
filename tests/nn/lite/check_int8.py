"""8-bit models on a whole test set, as LiteRT's interpreter and as Cornu compute them.

    python tests/nn/lite/check_int8.py LIBRARY IMAGES-idx3-ubyte.gz ROWS MODEL.tflite...

Compares the integers of each model's output with those of LiteRT's reference kernels, which must be
equal, and says in how many rows its optimized kernels differ, which round otherwise. Needs
ai-edge-litert and numpy; LIBRARY is libcornu.so. A few operators, such as ELU, are not among the
reference kernels; then each operator runs as a model of its own, those by LiteRT's only kernel.
"""

import ctypes
import gzip
import sys

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

BATCH = 100


def images(path):
    content = gzip.open(path).read()
    extents = [int.from_bytes(content[i:i + 4], "big") for i in (4, 8, 12)]
    return np.frombuffer(content, np.uint8, offset=16).reshape(extents)


def run(x, resolver, **model):
    """All rows of a model of one input."""
    interpreter = Interpreter(experimental_op_resolver_type=resolver, **model)
    place = interpreter.get_input_details()[0]["index"]
    interpreter.resize_tensor_input(place, [BATCH, *x.shape[1:]])
    interpreter.allocate_tensors()
    out = interpreter.get_output_details()[0]["index"]
    results = []
    for first in range(0, len(x), BATCH):
        interpreter.set_tensor(place, x[first:first + BATCH])
        interpreter.invoke()
        results.append(interpreter.get_tensor(out).copy())
    return np.concatenate(results)


def pieces(path):
    """Models of the operators, which must be in a row: each reads the result of the one before."""
    content = open(path, "rb").read()
    count = len(schema.ModelT.InitFromPackedBuf(content).subgraphs[0].operators)
    for i in range(count):
        model = schema.ModelT.InitFromPackedBuf(content)
        model.signatureDefs = None
        graph = model.subgraphs[0]
        operator = graph.operators[i]
        fed = [t for t in operator.inputs
               if t >= 0 and model.buffers[graph.tensors[t].buffer].data is None]
        if len(fed) != 1:
            sys.exit(f"{path}: operator {i} has {len(fed)} operands that are computed")
        graph.operators, graph.inputs, graph.outputs = [operator], fed, operator.outputs
        model.operatorCodes, operator.opcodeIndex = [model.operatorCodes[operator.opcodeIndex]], 0
        builder = flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), b"TFL3")
        yield bytes(builder.Output())


def by_reference(path, x):
    try:
        return run(x, OpResolverType.BUILTIN_REF, model_path=path)
    except ValueError:
        print(f"{path}: not all of its operators are among the reference kernels, so one by one")
    for piece in pieces(path):
        try:
            x = run(x, OpResolverType.BUILTIN_REF, model_content=piece)
        except ValueError:
            x = run(x, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, model_content=piece)
    return x


def by_cornu(library, path, x, shape):
    model = library.cornu_int8_load(path.encode())
    if not model:
        sys.exit(library.cornu_error_message().decode())
    y = np.empty((len(x), *shape[1:]), np.int8)
    status = library.cornu_int8_predict_integers(
        ctypes.c_void_p(model), ctypes.c_int64(len(x)), x.ctypes.data_as(ctypes.c_void_p),
        y.ctypes.data_as(ctypes.c_void_p))
    if status:
        sys.exit(library.cornu_error_message().decode())
    library.cornu_int8_free(ctypes.c_void_p(model))
    return y


def check(library, pixels, path):
    interpreter = Interpreter(path)
    about, out = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    scale, zero = about["quantization"]
    real = pixels.astype(np.float32) * np.float32(1 if scale > 0.5 else 1 / 255)
    x = np.clip(np.round(real / np.float32(scale)) + zero, -128, 127).astype(np.int8)
    x = np.ascontiguousarray(x.reshape(len(x), *about["shape"][1:]))
    ours = by_cornu(library, path, x, out["shape"])
    optimized = run(x, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, model_path=path)
    wrong = int(np.sum(ours != by_reference(path, x)))
    print(f"{path}: {wrong} of {ours.size} integers differ; optimized kernels differ in "
          f"{np.sum(np.any(ours != optimized, 1))} rows")
    return wrong


if __name__ == "__main__":
    library = ctypes.CDLL(sys.argv[1])
    library.cornu_int8_load.restype = ctypes.c_void_p
    library.cornu_error_message.restype = ctypes.c_char_p
    pixels = images(sys.argv[2])[:int(sys.argv[3])]
    sys.exit(sum(check(library, pixels, path) for path in sys.argv[4:]) > 0)
