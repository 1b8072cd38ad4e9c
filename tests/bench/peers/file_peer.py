"""One side of compare_files: loads a file, predicts once, then times predictions when asked.

    file_peer.py SIDE TASK

TASK is JSON: path, batch, threads, high, shapes, and inputs as the side `inputs` answers them,
which is a process of its own, so that reading them counts in no other's memory. Any other side
writes a line of JSON: what the first prediction made and what memory it took, or `error`; then for
each line of standard input, a number of seconds, a line with `ms`, the median processor time of a
prediction.
"""

import json
import os
import sys
import time
import zlib

import numpy

SAMPLES = 256       # of each output, evenly spaced


def memory(restart=False):
    """The resident set now and at most, in MiB; `restart`: at most from here on."""
    if restart:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    with open("/proc/self/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    return [int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM")]


def shape_of(task, name, extents):
    """Extents that are not integers above 0 are unknown."""
    if name in task["shapes"]:
        return [int(extent) for extent in task["shapes"][name].split("x")]
    known = [extent if isinstance(extent, int) and extent > 0 else None for extent in extents]
    return [extent or (task["batch"] if axis == 0 else 1) for axis, extent in enumerate(known)]


def numbers(task, name, extents, dtype):
    """The same for an input of one name and shape on every side."""
    shape, dtype = shape_of(task, name, extents), numpy.dtype(dtype)
    random = numpy.random.default_rng(zlib.crc32(name.encode()))
    if dtype == bool:
        return random.random(shape) < 0.5
    if dtype == numpy.int8 or dtype == numpy.uint8:
        least = numpy.iinfo(dtype).min
        return random.integers(least, least + 256, shape).astype(dtype)
    if dtype.kind in "iu":
        return random.integers(0, task["high"], shape).astype(dtype)
    return random.uniform(-1, 1, shape).astype(dtype)


def inputs_of(task):
    """(name, extents, dtype) of each input, read by the library whose format it is. LiteRT's files
    have a batch of 1 where any will do."""
    if task["path"].endswith(".onnx"):
        import onnx
        graph = onnx.load(task["path"], load_external_data=False).graph
        constants = {tensor.name for tensor in graph.initializer}
        return [(value.name, [dim.dim_value for dim in value.type.tensor_type.shape.dim],
                 str(onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)))
                for value in graph.input if value.name not in constants]
    from ai_edge_litert.interpreter import Interpreter
    given = Interpreter(task["path"], num_threads=1).get_input_details()
    return [(each["name"], [0 if axis == 0 and extent == 1 else int(extent)
                            for axis, extent in enumerate(each["shape"])],
             numpy.dtype(each["dtype"]).name) for each in given]


def open_cornu(task, inputs):
    import cornu
    predictor = cornu.Predictor(cornu.load(task["path"]), threads=task["threads"],
                                max_batch_size=task["batch"])
    values = list(inputs.values())
    given = values[0] if len(values) == 1 else values

    def run():
        made = predictor.predict(given)
        return made if isinstance(made, list) else [made]
    return run


def open_onnxruntime(task, inputs):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = task["threads"], 1
    session = onnxruntime.InferenceSession(task["path"], options,
                                           providers=["CPUExecutionProvider"])
    return lambda: session.run(None, inputs)


def open_litert(task, inputs):
    from ai_edge_litert.interpreter import Interpreter
    interpreter = Interpreter(task["path"], num_threads=task["threads"])
    given = interpreter.get_input_details()
    for each, value in zip(given, inputs.values()):
        if list(each["shape"]) != list(value.shape):
            interpreter.resize_tensor_input(each["index"], value.shape)
    interpreter.allocate_tensors()
    outputs = [each["index"] for each in interpreter.get_output_details()]

    def run():
        for each, value in zip(given, inputs.values()):
            interpreter.set_tensor(each["index"], value)
        interpreter.invoke()
        return [interpreter.get_tensor(index) for index in outputs]
    return run


def open_openvino(task, inputs):
    import openvino
    core = openvino.Core()
    model = core.read_model(task["path"])
    values = list(inputs.values())
    model.reshape({given: list(value.shape) for given, value in zip(model.inputs, values)})
    request = core.compile_model(model, "CPU", {
        "INFERENCE_NUM_THREADS": task["threads"], "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    count = len(model.outputs)

    def run():
        for index, value in enumerate(values):
            request.set_input_tensor(index, openvino.Tensor(value))
        request.infer()
        return [request.get_output_tensor(index).data.copy() for index in range(count)]
    return run


FORMATS = {"cornu": (".onnx", ".tflite"), "openvino": (".onnx", ".tflite"),
           "onnxruntime": (".onnx",), "litert": (".tflite",)}
OPENS = {"cornu": open_cornu, "onnxruntime": open_onnxruntime, "litert": open_litert,
         "openvino": open_openvino}
MODULES = {"litert": "ai_edge_litert.interpreter"}


def load(side, task):
    """What predicts, and the first answer."""
    if not task["path"].endswith(FORMATS[side]):
        raise ValueError(f"{side} reads no such file")
    inputs = {name: numbers(task, name, extents, dtype)
              for name, extents, dtype in task["inputs"]}
    __import__(MODULES.get(side, side))
    before, _ = memory(restart=True)
    run = OPENS[side](task, inputs)
    outputs = run()
    resident, peak = memory()
    sample = {}
    for number, output in enumerate(outputs):
        flat = numpy.asarray(output, dtype=float).reshape(-1)
        sample[number] = flat[:: max(1, len(flat) // SAMPLES)].tolist()
    return run, {"outputs": sample, "resident_mib": resident - before, "peak_mib": peak - before}


def turn(run, seconds):
    run()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        begin = time.process_time()
        run()
        times.append(time.process_time() - begin)
    return 1e3 * sorted(times)[len(times) // 2]


def main():
    side, task = sys.argv[1], json.loads(sys.argv[2])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)                       # what the peers print is no answer

    def answer(value):
        answers.write(json.dumps(value) + "\n")
        answers.flush()
    try:
        if side == "inputs":
            return answer(inputs_of(task))
        run, first = load(side, task)
    except Exception as error:          # whatever a peer raises, it is left out and says why
        return answer({"error": f"{type(error).__name__}: {' '.join(str(error).split())}"})
    answer(first)
    for line in sys.stdin:
        answer({"ms": turn(run, float(line))})


if __name__ == "__main__":
    main()
