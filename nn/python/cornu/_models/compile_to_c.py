"""A model as C source: cornu.compile_to_c."""

import ctypes
import os

from .files import load
from .._binding.library import lib, struct


def compile_to_c(model, path, name=None, *, train=False, batch_size=None, rows=None, extent=None,
                 weights=None):
    """Writes a model as a .c file and its header, which need no library and allocate nothing.

        cornu.compile_to_c(model, "digits.c")

    model: a Model, or the path of a file that cornu.load reads
    path: of the .c file; the header lies beside it
    name: what all names in it begin with; default that of the file
    train: with a step of training, of a compiled model
    batch_size: rows of such a step; default 32
    rows: of a prediction; default 1
    extent: in place of extents that the model leaves open, which are refused without it
    weights: a file for the weights, which are in the .c file without it; for large models
    """
    if isinstance(model, (str, os.PathLike)):
        model = load(model)
    config = struct("CornuCompileToCConfig", model=model.pointer, path=os.fspath(path), name=name,
                    train=bool(train), batch_size=batch_size or 0, rows=rows or 0,
                    extent=extent or 0, weights=weights and os.fspath(weights))
    lib.cornu_compile_to_c_from(ctypes.byref(config))
