"""Batches that Python yields, for fit and evaluate: generators, keras.utils.PyDataset, PyTorch's
DataLoader, tf.data, anything that is iterated over."""

import ctypes

import numpy as np

from .._binding.arrays import Borrowed, row_bytes
from .._binding.library import Owned, lib, struct
from ..callbacks import STOPPED

_ROWS = ctypes.CFUNCTYPE(lib.type("u32"), ctypes.c_void_p, lib.type("CornuSample"),
                         ctypes.POINTER(ctypes.c_int64))
_TYPES = ctypes.CFUNCTYPE(lib.type("u32"), ctypes.c_void_p, lib.type("CornuSample"),
                          ctypes.POINTER(lib.type("CornuType")))
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


def parts_of(batch):
    """x, (x, y) or (x, y, sample_weight); a list, as of PyTorch's DataLoader, is a tuple, too."""
    return tuple(batch) if isinstance(batch, (list, tuple)) else (batch,)


def refuse(**given):
    """What Keras does not take with batches, either; a size of batches it ignores."""
    for name, value in given.items():
        if value:
            raise ValueError("%s is given with batches from an iterator, which has its own" % name)


class Feed:
    """A data set of the library that asks Python for batches.

    Each batch is x, (x, y) or (x, y, sample_weight), as fit takes arrays. All have the dtypes and
    ranks of the first one; each is a step of its rows and other extents. An epoch is a pass over
    the data; of an iterator, which has one pass, the steps that fit is told. With `again`, for
    validation, each epoch has the same batches: those that an iterator gave are kept. `tests`:
    they are for steps of test.
    """

    def __init__(self, model, data, shuffle=False, again=False, tests=False):
        self._model, self._data, self._shuffle, self._tests = model, data, shuffle, tests
        self._once = hasattr(data, "__next__")
        self._kept = [] if again and self._once else None
        self.error = None
        self._pass, self._count, self._begun = self._batches(), 0, False
        self._first = self._next()
        if self._first is None:
            raise ValueError("%s: the iterator has no batch" % model.name)
        self.shape = self._first[0].shape
        self._types = [_type_of(a) for a in self._first]
        self._make_dataset()

    # ---- Batches ----

    def _batches(self):
        """One pass over the data."""
        yield from in_order(self._data, self._shuffle)
        if hasattr(self._data, "on_epoch_end"):
            self._data.on_epoch_end()

    def _components(self, batch):
        """The arrays of a batch: inputs, outputs, weights."""
        parts = parts_of(batch)
        if len(parts) > 3:
            raise ValueError("a batch has %d parts, expected x, (x, y) or (x, y, sample_weight)"
                             % len(parts))
        model, given = self._model, getattr(self._model, "_given", None)
        if given is None:       # a layer that learns from data
            arrays = model._ordered("input", parts[0])
        else:
            arrays = given("input", parts[0], self._tests)
            arrays = arrays + model._labels(arrays, parts[1] if len(parts) > 1 else None,
                                            self._tests)
            for part in parts[2:]:
                if part is not None:
                    arrays = arrays + given("weight", part)
        arrays = [np.asarray(a) for a in arrays]
        if given is not None and model._own_step is not None:
            arrays = model._own_step.in_rows(arrays, self._tests)
        rows = {len(a) if a.ndim else None for a in arrays}
        if len(rows) > 1 or None in rows:
            raise ValueError("the arrays of a batch are %s, expected as many rows in each"
                             % ", ".join(str(a.shape) for a in arrays))
        return arrays

    def _next(self):
        """The next batch that has rows; None after the last one."""
        for batch in self._pass:
            arrays = self._components(batch)
            if len(arrays[0]):
                self._count += 1
                return arrays
        return None

    def _batch(self, index):
        """Batch `index` of the epoch; those of an iterator are counted on, unless they are kept."""
        if index == 0 and self._begun and not self._once:
            self._pass, self._first = self._batches(), None
        self._begun, first = True, self._first
        if self._kept is not None:
            if index == len(self._kept):
                made = first if index == 0 else self._next()
                # The iterator may write the next batch to the same memory.
                self._kept += [made and [np.array(a) for a in made]]
            return self._kept[index]
        self._first = None
        made = first or self._next()
        if made is None and index == 0 and self._once:
            raise ValueError("%s: the iterator ended after %d batch%s, so that there is none for "
                             "another epoch; expected steps_per_epoch of an iterator that goes on, "
                             "or data of which each epoch is a pass, such as a PyDataset or a "
                             "DataLoader" % (self._model.name, self._count,
                                             "" if self._count == 1 else "es"))
        return made

    # ---- What the library calls ----

    def _lend(self, arrays):
        """In types that the library has; what is converted is a copy, and kept by the batch."""
        self._lent = Borrowed()
        self._at = [self._lent.array(a) for a in arrays]

    def _make_dataset(self):
        self._lend(self._first)
        types = (lib.type("CornuType") * len(self._at))()
        self._row_types(None, None, types)
        self._functions = (_YIELD(self._guarded(self._copy)), _ROWS(self._guarded(self._advance)),
                           _TYPES(self._guarded(self._row_types)))
        next_, batch, row_types = [ctypes.cast(f, ctypes.c_void_p).value for f in self._functions]
        config = struct("CornuGeneratorConfig", types=ctypes.addressof(types), count=len(types),
                        next=next_, batch=batch, row_types=row_types,
                        batch_size=len(self._first[0]))
        self._owned = Owned(lib.cornu_dataset_generator_from(ctypes.byref(config)),
                            lib.cornu_dataset_free)
        self.address = self._owned.address

    def _guarded(self, function):
        def call(*arguments):
            try:
                function(*arguments)
                return 0
            except BaseException as error:      # KeyboardInterrupt and SystemExit, too
                self.error = error
                return STOPPED
        return call

    def _advance(self, _state, sample, rows):
        arrays = self._batch(sample.index)
        rows[0] = len(arrays[0]) if arrays else 0
        if not arrays:
            return
        types = [_type_of(a) for a in arrays]
        if [(dtype, len(shape)) for dtype, shape in types] != \
                [(dtype, len(shape)) for dtype, shape in self._types]:
            raise ValueError("a batch has arrays of %s, the first one has %s"
                             % (_said(types), _said(self._types)))
        self._lend(arrays)

    def _row_types(self, _state, _sample, types):
        for i, array in enumerate(self._at):
            types[i] = array.type
            types[i].shape.rank -= 1
            for axis in range(types[i].shape.rank):
                types[i].shape.extent[axis] = array.type.shape.extent[axis + 1]

    def _copy(self, _state, _sample, to, _end):
        for i, array in enumerate(self._at):
            ctypes.memmove(to[i].data, array.data, array.type.shape.extent[0] * row_bytes(array))


def _type_of(array):
    """The dtype and shape of a row; strings of any width are of one type."""
    return "string" if array.dtype.kind in "USO" else array.dtype, array.shape[1:]


def _said(types):
    return ", ".join("%s %s" % (dtype, tuple(shape)) for dtype, shape in types)
