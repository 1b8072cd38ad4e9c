"""What Keras and onnxruntime make of the files of random_models.py, in processes of their own.

    random_reference.py keras|dense|float64|onnx

answers each line of JSON on stdin with a line on stdout. keras: {"model", "data", "out", "steps",
"policy"} predicts, trains and predicts again, and writes the arrays that tests/keras/keras_model.c
writes; dense: so, with arrays for the gradients of Embedding, on TensorFlow; float64: so, in
float64, models of float32. onnx: {"model", "data", "out"} predicts.
"""

import json
import os
import sys
import traceback
import zipfile

import numpy as np


def arrays(path, letter):
    with np.load(path) as file:
        names = [f"{letter}{i}" for i in range(len(file.files))]
        return [file[n] for n in names if n in file.files]


def plain(value):
    value = np.asarray(value)
    return value.astype(np.float32) if "float16" in str(value.dtype) else value


def run(model, x, y, s, steps):
    """Predictions, weights, the optimizer's variables and logs, before and after training steps."""
    import keras

    model.run_eagerly = True
    pack = lambda a: a[0] if len(a) == 1 else a
    out, names = {}, []

    def put(letter, values):
        out.update({f"{letter}{i}": plain(v) for i, v in enumerate(values)})

    def predict():
        return keras.tree.flatten(model.predict_on_batch(pack(x)))

    put("p", predict())
    put("v", [keras.ops.convert_to_numpy(w) for w in model.weights])
    put("u", [keras.ops.convert_to_numpy(w) for w in model.optimizer.variables])
    for step in range(steps):
        logs = model.train_on_batch(pack(x), pack(y), sample_weight=s[0] if s else None,
                                    return_dict=True)
        names = list(logs)
        out[f"l{step}"] = np.asarray([np.mean(v) for v in logs.values()], np.float64)
    put("q", predict())
    put("w", [keras.ops.convert_to_numpy(w) for w in model.weights])
    put("o", [keras.ops.convert_to_numpy(w) for w in model.optimizer.variables])
    return out, names


def answer_keras(task):
    import keras

    keras.utils.clear_session()
    keras.config.set_dtype_policy(task["policy"])
    model = keras.saving.load_model(task["model"], safe_mode=False)
    data = [arrays(task["data"], letter) for letter in "xys"]
    out, names = run(model, *data, task["steps"])
    np.savez(task["out"], **out)
    return {"names": names}


def answer_dense(task):
    from keras.src import backend

    take = backend.numpy.take

    def dense(x, *arguments, **named):
        return take(x * 1, *arguments, **named) if "float" in str(x.dtype) else take(
            x, *arguments, **named)

    backend.numpy.take = dense
    try:
        return answer_keras(task)
    finally:
        backend.numpy.take = take


def answer_float64(task):
    import keras

    if task["policy"] != "float32":
        raise ValueError("mixed precision has no such control")
    path = task["model"] + ".float64.keras"
    with zipfile.ZipFile(task["model"]) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, data.replace(b'"float32"', b'"float64"') if name == "config.json"
                         else data)
    keras.backend.set_floatx("float64")
    try:
        return answer_keras(task | {"model": path, "policy": "float64"})
    finally:
        keras.backend.set_floatx("float32")


def answer_onnx(task):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(task["model"], options,
                                           providers=["CPUExecutionProvider"])
    x = arrays(task["data"], "x")
    feed = {}
    for entry, value in zip(session.get_inputs(), x, strict=True):
        feed[entry.name] = value.astype(np.int32 if "int" in entry.type else np.float32)
    results = session.run(None, feed)
    np.savez(task["out"], **{f"p{i}": r for i, r in enumerate(results)})
    return {}


def main():
    answer = {"keras": answer_keras, "dense": answer_dense, "float64": answer_float64,
              "onnx": answer_onnx}[sys.argv[1]]
    to = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)     # what libraries print stays out of the answers
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}",
                     "trace": traceback.format_exc(limit=-3)}
        to.write(json.dumps(reply) + "\n")
        to.flush()


if __name__ == "__main__":
    main()
