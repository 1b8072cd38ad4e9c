"""Batches that Python yields, for fit and evaluate: generators, keras.utils.PyDataset, PyTorch's
DataLoader, tf.data, anything that is iterated over."""

import ctypes

import numpy as np

from ._arrays import Borrowed, row_bytes
from ._library import Owned, lib, struct
from .callbacks import STOPPED

_YIELD = ctypes.CFUNCTYPE(lib.type("u32"), ctypes.c_void_p, lib.type("CornuSample"),
                          ctypes.POINTER(lib.type("CornuArray")), ctypes.POINTER(ctypes.c_bool))


def is_feed(data):
    """Whether data are batches one after the other, not arrays."""
    if data is None or isinstance(data, (list, tuple, dict, str, bytes)) or hasattr(data, "shape"):
        return False
    return hasattr(data, "__iter__") or (hasattr(data, "__getitem__") and hasattr(data, "__len__"))


def in_order(data, shuffle=False):
    """The batches of data; those of a PyDataset, which are found by index, in a random order."""
    if not (hasattr(data, "__getitem__") and hasattr(data, "__len__")):
        yield from data
        return
    order = np.arange(len(data))
    if shuffle:
        np.random.shuffle(order)
    for i in order:
        yield data[int(i)]


def refuse(**given):
    """What Keras does not take with batches, either."""
    for name, value in given.items():
        if value:
            raise ValueError("%s is given with batches from an iterator, which has its own" % name)


class Feed:
    """A data set of the library that asks Python for batches.

    Each batch is x, (x, y) or (x, y, sample_weight), as fit takes arrays. All have the dtypes and,
    but for their rows, the shapes of the first one. The library makes batches of as many rows as
    the first one has: of equal batches these, with fewer rows in the last one. An epoch is a pass
    over the data; of an iterator, which has one pass, the steps that fit is told.
    """

    def __init__(self, model, data, shuffle=False):
        self._model, self._data, self._shuffle = model, data, shuffle
        self.error = None
        self._pass, self._row, self._begun = self._batches(), 0, False
        try:
            self._batch = self._components(next(self._pass))
        except StopIteration:
            raise ValueError("%s: the iterator has no batch" % model.name) from None
        self.shape = self._batch[0].shape
        self._types = [_type_of(a) for a in self._batch]
        self._make_dataset()

    # ---- Batches ----

    def _batches(self):
        """One pass over the data."""
        yield from in_order(self._data, self._shuffle)
        if hasattr(self._data, "on_epoch_end"):
            self._data.on_epoch_end()

    def _components(self, batch):
        """The arrays of a batch: inputs, outputs, weights."""
        parts = batch if isinstance(batch, tuple) else (batch,)
        if len(parts) > 3:
            raise ValueError("a batch has %d parts, expected x, (x, y) or (x, y, sample_weight)"
                             % len(parts))
        arrays = self._model._ordered("input", parts[0])
        for part in parts[1:]:
            if part is not None:
                arrays = arrays + self._model._ordered("output", part)
        arrays = [np.asarray(a) for a in arrays]
        rows = {len(a) if a.ndim else None for a in arrays}
        if len(rows) > 1 or None in rows:
            raise ValueError("the arrays of a batch are %s, expected as many rows in each"
                             % ", ".join(str(a.shape) for a in arrays))
        # In types that the library has; what is converted is a copy, and kept by the batch.
        self._lent = Borrowed()
        self._at = [self._lent.array(a) for a in arrays]
        return arrays

    def _advance(self):
        """The next batch that has rows; False after the last one."""
        for batch in self._pass:
            self._batch, self._row = self._components(batch), 0
            types = [_type_of(a) for a in self._batch]
            if types != self._types:
                raise ValueError("a batch has arrays of %s, the first one has %s"
                                 % (_said(types), _said(self._types)))
            if len(self._batch[0]):
                return True
        return False

    # ---- What the library calls ----

    def _make_dataset(self):
        count = len(self._at)
        types = (lib.type("CornuType") * count)(*[a.type for a in self._at])
        for made in types:      # of an element, which is a row
            made.shape.rank -= 1
            for axis in range(made.shape.rank):
                made.shape.extent[axis] = made.shape.extent[axis + 1]
        self._bytes = [row_bytes(array) for array in self._at]
        self._next = _YIELD(self._yield)
        config = struct("CornuGeneratorConfig", types=ctypes.addressof(types), count=count,
                        next=ctypes.cast(self._next, ctypes.c_void_p).value)
        rows = lib.cornu_dataset_generator_from(ctypes.byref(config))
        self._owned = Owned(lib.cornu_dataset_batch(rows, max(len(self._batch[0]), 1), False),
                            lib.cornu_dataset_free)
        self.address = self._owned.address

    def _yield(self, _state, sample, to, end):
        try:
            if sample.index == 0 and self._begun and not hasattr(self._data, "__next__"):
                self._pass, self._row, self._batch = self._batches(), 0, [()]
            self._begun = True
            if self._row >= len(self._batch[0]) and not self._advance():
                end[0] = True
                return 0
            for i, size in enumerate(self._bytes):
                ctypes.memmove(to[i].data, self._at[i].data + self._row * size, size)
            self._row += 1
            return 0
        except BaseException as error:      # KeyboardInterrupt and SystemExit, too
            self.error = error
            return STOPPED


def _type_of(array):
    """The dtype and shape of a row; strings of any width are of one type."""
    return "string" if array.dtype.kind in "USO" else array.dtype, array.shape[1:]


def _said(types):
    return ", ".join("%s %s" % (dtype, tuple(shape)) for dtype, shape in types)
