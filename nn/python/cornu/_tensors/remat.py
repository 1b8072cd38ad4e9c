"""keras.RematScope and keras.remat: layers that the backward pass computes again."""

import ctypes

from .._binding.library import lib, struct

_MODES = ("full", "activations", "larger_than", "list_of_layers", None)   # CornuRematMode


class RematScope:
    """Layers made in it keep no activations for the backward pass, which computes them again: less
    memory, more time, and the same bits.

    mode: "full", "activations", "larger_than", "list_of_layers", or None, which ends an outer scope
    output_size_threshold: of "larger_than": the elements of an output, over all rows of the batch
    layer_names: of "list_of_layers"
    """

    def __init__(self, mode="full", output_size_threshold=1024, layer_names=None):
        if mode not in _MODES:
            raise ValueError("Invalid mode %r. Supported modes are: 'full', 'activations', "
                             "'larger_than', 'list_of_layers', or None." % (mode,))
        self.mode, self.output_size_threshold = mode, output_size_threshold
        self.layer_names = list(layer_names or [])

    def __enter__(self):
        names = (ctypes.c_char_p * (len(self.layer_names) + 1))(
            *[name.encode("utf-8") for name in self.layer_names])
        config = struct("CornuRematConfig", mode=_MODES.index(self.mode),
                        output_size_threshold=int(self.output_size_threshold)
                        or lib.constants["CORNU_ZERO"], layer_names=ctypes.addressof(names))
        lib.cornu_remat_enter(ctypes.byref(config))   # which copies the names
        if lib.cornu_error_pending():
            lib.cornu_remat_leave()
            lib.fail(lib.cornu_error_take())
        return self

    def __exit__(self, *_):
        lib.cornu_remat_leave()


def remat(layer):
    """The layer, or the model used as one, whose calls the backward pass computes again."""
    if not hasattr(layer, "_layer_pointer"):
        raise TypeError("remat: got %s, expected a layer, or a model used as one; put a function's "
                        "layers into a Model" % type(layer).__name__)
    lib.cornu_remat(layer._layer_pointer())
    return layer
