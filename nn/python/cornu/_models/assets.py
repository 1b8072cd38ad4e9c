"""What classes of the program's own put into .keras files beside the library's: files of layers
(Keras' save_assets), arrays (save_own_variables), what their build takes (get_build_config), and
what compile was called with (get_compile_config, and of models with a step or an optimizer of the
program's own)."""

import contextlib
import io
import json
import os
import shutil
import tempfile
import threading
import warnings
import zipfile

import numpy as np

from ..saving import deserialize_keras_object, serialize_keras_object
from .weighted import attributes, members

_FOLDER = "assets"
_ARRAYS = "own_variables.npz"   # not Keras', whose arrays are among those of model.weights.h5
_CONFIG = "config.json"
_OPTIMIZER = _FOLDER + "/optimizer/" + _ARRAYS      # of a class of the program's, likewise
_STEPS = ("train_step", "test_step", "predict_step", "compute_loss")
_COMPILED = ("optimizer", "loss", "loss_weights", "metrics", "weighted_metrics", "run_eagerly",
             "steps_per_execution", "jit_compile", "auto_scale_loss")


def _overrides(thing, name):
    """Whether a method is one of the program's."""
    method = getattr(type(thing), name, None)
    return method is not None and method.__module__.split(".")[0] != __name__.split(".")[0]


def _walk(owner, path="", seen=None):
    """(path, layer) of the model and all layers in it, once each, as Keras names them in files."""
    seen = set() if seen is None else seen
    seen.add(id(owner))
    yield path, owner
    body = getattr(owner, "_body", None) or owner
    inner = body._sublayers() if hasattr(body, "_sublayers") else \
        members(owner.layers, "layers", {}) if hasattr(owner, "layers") else attributes(owner)
    for name, layer in inner:
        if name and id(layer) not in seen:
            yield from _walk(layer, "%s/%s" % (path, name) if path else name, seen)


# ---- Writing ----

def _files_of(layer, folder):
    if _overrides(layer, "save_assets"):
        layer.save_assets(folder)
    if _overrides(layer, "save_own_variables"):
        store = {}
        layer.save_own_variables(store)
        np.savez(os.path.join(folder, _ARRAYS), **store)


def _with_members(path, added):
    """Writes a zip file anew with these members, {name: bytes}, which replace others."""
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(os.path.abspath(path)),
                                     suffix=".keras", delete=False) as new:
        try:
            with zipfile.ZipFile(path) as old, zipfile.ZipFile(new, "w") as to:
                for name in old.namelist():
                    if name not in added:
                        to_name = zipfile.ZipInfo(name)     # of no date, as all members
                        with old.open(name) as source, \
                                to.open(to_name, "w", force_zip64=True) as sink:
                            shutil.copyfileobj(source, sink)
                for name, data in sorted(added.items()):
                    to.writestr(zipfile.ZipInfo(name), data)
        except BaseException:
            os.unlink(new.name)
            raise
    shutil.copymode(path, new.name)
    os.replace(new.name, path)


def _described(config):
    """The objects in a file's config that have a name, by it."""
    if isinstance(config, dict):
        inner = config.get("config")
        if "class_name" in config and isinstance(inner, dict) and "name" in inner:
            yield inner["name"], config
    for value in config.values() if isinstance(config, dict) else config:
        if isinstance(value, (dict, list)):
            yield from _described(value)


def _config_with_own(path, model):
    """The file's config with those of the program's methods; None if there are none."""
    builds = {layer.name: layer.get_build_config() for _, layer in _walk(model)
              if _overrides(layer, "get_build_config")}
    compiles = _overrides(model, "get_compile_config")
    given = None if compiles else compiled_by(model)
    if not builds and not compiles and given is None:
        return None
    with zipfile.ZipFile(path) as file:
        config = json.loads(file.read(_CONFIG))
    for name, layer in _described(config):
        if name in builds:
            layer["build_config"] = serialize_keras_object(builds[name])
    if compiles:
        config["compile_config"] = serialize_keras_object(model.get_compile_config())
    if given is not None:
        config["compile_config"] = given
        config["own_step"] = [name for name in _STEPS if _overrides(model, name)]
    return config


def compiled_by(model):
    """What compile was called with, of a model that the library does not compile again; None of any
    other, and of what is in no file."""
    if model._own_step is None or not model._again or model._parts:
        return None
    try:
        given = serialize_keras_object({key: model._again[key] for key in _COMPILED})
    except (TypeError, NotImplementedError):
        return None
    return None if "<lambda>" in json.dumps(given) else given


def add_to(path, model):
    """Adds to a .keras file what layers and the model have of their own."""
    added = {}
    for name, layer in _walk(model):
        if not (_overrides(layer, "save_assets") or _overrides(layer, "save_own_variables")):
            continue
        with tempfile.TemporaryDirectory() as folder:
            _files_of(layer, folder)
            for at, _, files in os.walk(folder):
                for file in files:
                    full = os.path.join(at, file)
                    parts = [_FOLDER, name, os.path.relpath(full, folder).replace(os.sep, "/")]
                    with open(full, "rb") as data:
                        added["/".join(part for part in parts if part)] = data.read()
    config = _config_with_own(path, model)
    if config is not None:
        added[_CONFIG] = json.dumps(config).encode("utf-8")
    if config is not None and "own_step" in config and model.optimizer.own_variables:
        arrays = io.BytesIO()
        np.savez(arrays, *[variable.numpy() for variable in model.optimizer.own_variables])
        added[_OPTIMIZER] = arrays.getvalue()
    if added:
        _with_members(path, added)


# ---- Reading ----

_reads = threading.local()


@contextlib.contextmanager
def build_configs(path):
    """While a .keras file is read, layers of the program's own find what their build takes."""
    before = getattr(_reads, "configs", {})
    with zipfile.ZipFile(path) as file:
        config = json.loads(file.read(_CONFIG))
    _reads.configs = {name: layer["build_config"] for name, layer in _described(config)
                      if layer.get("build_config")}
    try:
        yield
    finally:
        _reads.configs = before


def build_config_of(layer):
    """What build_from_config of a class of the program's gets; None if there is nothing."""
    config = getattr(_reads, "configs", {}).get(layer.name)
    if config is None or not _overrides(layer, "build_from_config"):
        return None
    return {key: deserialize_keras_object(value) for key, value in config.items()}


def read_from(path, model, compiles):
    """Gives the model and its layers what a .keras file has of them."""
    with zipfile.ZipFile(path) as file:
        names = [name for name in file.namelist() if name.startswith(_FOLDER + "/")]
        whole = json.loads(file.read(_CONFIG)) if compiles else {}
        own_compile = _overrides(model, "compile_from_config")
        config = whole.get("compile_config") if own_compile or "own_step" in whole else None
        if names or _reads.configs:
            layers = list(_walk(model))
            model._viewed = [layer for _, layer in layers[1:]]   # which live as long as it
            for place, layer in layers:
                _give(file, names, place, layer)
    if config and own_compile:
        model.compile_from_config(config)
    elif config and all(_overrides(model, name) for name in whole["own_step"]):
        _compile(path, model, config)


def _compile(path, model, config):
    """As it was when it was saved, with the optimizer's variables."""
    try:
        given = {key: deserialize_keras_object(value) for key, value in config.items()}
    except TypeError as error:
        warnings.warn("%s: is not compiled: %s" % (model.name, error), stacklevel=5)
        return
    model.compile(**given)
    model.load_weights(path)
    with zipfile.ZipFile(path) as file:
        if _OPTIMIZER not in file.namelist():
            return
        with np.load(io.BytesIO(file.read(_OPTIMIZER))) as arrays:
            model.optimizer.build(model.trainable_variables)
            for variable, name in zip(model.optimizer.own_variables, arrays.files):
                variable.assign(arrays[name])


def _give(file, names, place, layer):
    start = "/".join([_FOLDER, place] if place else [_FOLDER]) + "/"
    found = [name for name in names if name.startswith(start)]
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory()) if found else None
        for name in found:
            file.extract(name, folder)
        inner = os.path.join(folder, *start.split("/")) if found else None
        if found and _overrides(layer, "load_assets"):
            layer.load_assets(inner)
        arrays = os.path.join(inner, _ARRAYS) if found else ""
        if os.path.exists(arrays) and _overrides(layer, "load_own_variables"):
            with np.load(arrays) as store:
                layer.load_own_variables(dict(store))
