"""What Keras says to a layer or an operation whose JSON lacks one key. Writes missing/missing.json.

Each class of the models of models/ and architectures/ is put alone in a model, on inputs of the
shapes that it has there. From its config, those of objects in it, and the arguments of its call,
one key is deleted at a time. missing.json is a list of
    {"model": …, "keys": [{"path": ["config", "axis"], "outputs": null or [[shape, mean, mean of
    absolute values], …]}, …]}
where the path begins at the layer's JSON, null is for a model that Keras refuses when it is read or
predicts, 0 instead of the numbers is for results that are random, null for NaN. A weight is
0.5 hashed_uniform(the last part of its path), inputs are hashed_uniform("x<i>") or, if whole, their 3 (x + 1) / 2.
"""

import copy
import json
import math

import common
import keras
import numpy as np
import safetensors

OUT = common.folder("missing")
MOST = 1                # models of each class
RANDOM = ("Random", "Noise", "Dropout", "CutMix", "MixUp", "AugMix", "RandAugment")


def models():
    for path in sorted((common.HERE / "models").glob("*.safetensors")):
        if path.stem in ("activated", "quantized"):     # which are made otherwise without a key
            continue
        with safetensors.safe_open(str(path), "np") as file:
            for about in json.loads(file.metadata()["golden"])["cases"].values():
                yield about.get("float", about["model"])
    for path in sorted((common.HERE / "architectures").glob("*.json")):
        yield json.loads(path.read_text())


def tensors(value, found):
    """The tensors in the arguments of a call."""
    if isinstance(value, dict):
        if value.get("class_name") == "__keras_tensor__":
            found.append(value["config"])
            return
        value = list(value.values())
    if isinstance(value, list):
        for v in value:
            tensors(v, found)


def alone(layer):
    """The layer in a model of its own, called once; None if that cannot be."""
    layer = copy.deepcopy(layer)
    layer["inbound_nodes"] = layer["inbound_nodes"][:1]
    found = []
    tensors(layer["inbound_nodes"], found)
    inputs, names = [], {}
    for tensor in found:
        key = str(tensor["keras_history"])
        if key not in names:
            names[key] = f"in{len(names)}"
            inputs.append({"module": "keras.layers", "class_name": "InputLayer", "config": {
                "batch_shape": [None] + [4 if e is None else e for e in tensor["shape"][1:]],
                "dtype": tensor["dtype"], "name": names[key]}, "registered_name": None,
                "name": names[key], "inbound_nodes": []})
        tensor["keras_history"] = [names[key], 0, 0]
        tensor["shape"] = [None] + [4 if e is None else e for e in tensor["shape"][1:]]
    history = lambda name: [name, 0, 0]
    config = {"name": "alone", "trainable": True, "layers": inputs + [layer],
              "input_layers": [history(i["name"]) for i in inputs],
              "output_layers": history(layer["name"])}
    return {"module": "keras.src.models.functional", "class_name": "Functional", "config": config,
            "registered_name": "Functional"}


def paths(value, path):
    """Of all keys in the config and in the arguments of the call, but for those of tensors."""
    if isinstance(value, dict):
        if value.get("class_name") == "__keras_tensor__":
            return
        for key, inner in value.items():
            yield path + [key]
            yield from paths(inner, path + [key])
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from paths(inner, path + [i])


def without(model, path):
    model = copy.deepcopy(model)
    at = model["config"]["layers"][-1]
    for key in path[:-1]:
        at = at[key]
    del at[path[-1]]
    return model


def outputs(config):
    keras.utils.clear_session()
    try:
        model = keras.models.model_from_json(json.dumps(config))
        for w in model.weights:
            if np.issubdtype(np.dtype(w.dtype), np.floating):
                count = math.prod(w.shape)
                name = w.path.split("/")[-1]
                w.assign(0.5 * common.hashed_uniform(name, count).reshape(w.shape))
        x = []
        for i, tensor in enumerate(model.inputs):
            shape = [3] + [4 if e is None else e for e in tensor.shape[1:]]
            a = common.hashed_uniform(f"x{i}", math.prod(shape)).reshape(shape)
            x.append(a if tensor.dtype == "float32" else
                     ((a + 1) * 1.5).astype(np.int32).astype(tensor.dtype))
        y = model(x if len(x) > 1 else x[0], training=False)
        y = y if isinstance(y, (list, tuple)) else [y]
        y = [np.asarray(v).astype(np.float64) for v in y]
        number = lambda n: None if np.isnan(n) else float(n)
        return [[list(v.shape), number(v.mean()), number(np.abs(v).mean())] for v in y]
    except Exception:
        return None


def main():
    seen, cases = {}, []
    for model in models():
        for layer in model["config"]["layers"]:
            kind = (layer["module"], layer["class_name"])
            if kind[1] in ("InputLayer", "Functional", "Sequential") or not layer.get(
                    "inbound_nodes"):
                continue
            config = layer["config"]
            dtype = config.get("dtype")
            if isinstance(dtype, dict) and dtype["config"].get("name") != "float32":
                continue
            shape = sorted(config), str(config.get("data_format"))
            if len(seen.get(kind, [])) == MOST or shape in seen.get(kind, []):
                continue
            whole = alone(layer)
            if outputs(whole) is None:
                continue
            seen.setdefault(kind, []).append(shape)
            keys = []
            for at in ["config"], ["inbound_nodes", 0]:
                value = layer
                for key in at:
                    value = value[key]
                for path in paths(value, at):
                    # Modules and what is beside the config; Rescaling.from_config requires an
                    # offset, which the constructor does not.
                    if "build_config" in path or path[-1] in (
                            "registered_name", "module", "args", "kwargs", "offset"):
                        continue
                    y = outputs(without(whole, path))
                    if y and any(r in kind[1] for r in RANDOM):
                        y = [[shape, 0, 0] for shape, *_ in y]
                    keys.append({"path": path, "outputs": y})
            cases.append({"model": whole, "keys": keys})
            print(kind[1], len(keys), flush=True)
    text = ",\n".join(json.dumps(c) for c in cases)
    (OUT / "missing.json").write_text(f"[{text}]\n")


if __name__ == "__main__":
    main()
