"""Data sets that the library reads, shuffles and batches without Python."""

import ctypes
import random

import numpy as np

from .. import tree
from .._binding.arrays import array_of, shape_of
from .._binding.library import Owned, lib, struct
from ..utils.batches import Dataset

_MOST_AHEAD = 64


class FileDataset(Dataset):
    """A Dataset of files, in which elements are found by their index.

    An element is a dictionary of arrays, or a tuple. shuffle, batch, unbatch, take, skip, repeat,
    enumerate, cache, prefetch and to_tuple are the library's, and of several such data sets
    concatenate, zip and sample_from_datasets, as is what fit, evaluate and predict do with it then;
    other methods are those of Dataset, and go on in Python.
    """

    def __init__(self, address, structure, owned=None):
        """Takes the data set at `address`; structure has the numbers of its components."""
        self._owned = owned or Owned(address, lib.cornu_dataset_free)
        self.address, self._structure, self._passes = address, structure, 0
        count = lib.cornu_dataset_count(address)
        super().__init__(self._elements, None if count < 0 else count)

    @property
    def batch_size(self):
        """The rows of a batch; 0 if elements are not batches."""
        return lib.cornu_dataset_batch_size(self.address)

    @property
    def structure(self):
        """An element, with the number of the library's component in place of each array."""
        return self._structure

    @property
    def element_spec(self):
        """An element, with (shape, dtype) in place of each array, without the axis of a batch."""
        def spec(component):
            made = lib.cornu_dataset_type(self.address, component)
            return shape_of(made.shape), lib.dtypes[made.dtype]
        return tree.map_structure(spec, self._structure)

    def _elements(self):
        """Each pass is an epoch of its own, in another order after a shuffle."""
        epoch, self._passes = self._passes, self._passes + 1
        iterator = Owned(lib.cornu_iterator_begin(self.address, epoch), lib.cornu_iterator_free,
                         self._owned)
        batched, found = self.batch_size > 0, ctypes.POINTER(lib.type("CornuBatch"))()
        while True:
            lib.cornu_iterator_next(iterator.address, ctypes.addressof(found))
            if not found:
                return
            batch = found.contents
            arrays = (lib.type("CornuArray") * batch.count).from_address(batch.arrays)
            rows = slice(batch.valid) if batched else ()
            yield tree.map_structure(lambda c: np.array(array_of(arrays[c], iterator)[rows]),
                                     self._structure)

    def _made(self, function, *arguments):
        address = function(lib.cornu_dataset_retain(self.address), *arguments)
        return FileDataset(address, self._structure)

    # ---- Others made of it ----

    def to_tuple(self, *names):
        """Elements that are tuples of these entries, as (x, y) for fit; a name may be a list of
        several, which makes a list."""
        if not isinstance(self._structure, dict):
            raise TypeError("elements are %s, expected dictionaries"
                            % type(self._structure).__name__)
        unknown = [n for n in tree.flatten(list(names)) if n not in self._structure]
        if unknown:
            raise ValueError("elements have no entry %r, they have %s"
                             % (unknown[0], ", ".join(self._structure)))
        structure = tuple(tree.map_structure(lambda name: self._structure[name], n)
                          for n in names)
        return FileDataset(self.address, structure, self._owned)

    def pick(self, components):
        """The data set of the library with these components alone, as an Owned."""
        numbers = (ctypes.c_int * len(components))(*components)
        address = lib.cornu_dataset_pick_from(lib.cornu_dataset_retain(self.address),
                                              ctypes.addressof(numbers), len(components))
        return Owned(address, lib.cornu_dataset_free)

    def shuffle(self, buffer_size=None, seed=None, reshuffle_each_iteration=True):
        """In a random order: of all elements, or within a window of buffer_size, if these are
        fewer."""
        if not reshuffle_each_iteration:
            return super().shuffle(buffer_size, seed, False)
        seed = random.getrandbits(63) if seed is None else seed
        known = self._count is not None
        if known and (buffer_size is None or buffer_size >= self._count):
            return self._made(lib.cornu_dataset_shuffle, seed)
        if buffer_size is None:
            raise ValueError("shuffle: the number of elements is not known, expected a buffer_size")
        return self._made(lib.cornu_dataset_shuffle_window, buffer_size, seed)

    def batch(self, batch_size, drop_remainder=False, num_parallel_calls=None):
        """Elements of batch_size rows each; the last has the rest. num_parallel_calls: threads
        that make them."""
        if self.batch_size:
            return super().batch(batch_size, drop_remainder)
        made = self._made(lib.cornu_dataset_batch, batch_size, bool(drop_remainder))
        return made.parallel(num_parallel_calls) if (num_parallel_calls or 0) > 0 else made

    def parallel(self, threads):
        """So many elements, or batches, are made at a time, in threads."""
        return self._made(lib.cornu_dataset_parallel, threads)

    def take(self, count):
        return self if count < 0 else self._made(lib.cornu_dataset_take, count)

    def skip(self, count):
        return self._made(lib.cornu_dataset_skip, count)

    def repeat(self, count=None):
        endless = count is None or count < 0
        return self._made(lib.cornu_dataset_repeat, lib.constants["CORNU_NONE"] if endless
                          else count)

    def unbatch(self):
        return self._made(lib.cornu_dataset_unbatch) if self.batch_size else super().unbatch()

    def enumerate(self, start=0):
        if self.batch_size:
            return super().enumerate(start)
        made = lib.cornu_dataset_enumerate(lib.cornu_dataset_retain(self.address), start)
        return FileDataset(made, (0, _moved(self._structure, 1)))

    def concatenate(self, dataset):
        if not _are_alike([self, dataset]):
            return super().concatenate(dataset)
        return self._made(lib.cornu_dataset_concatenate, lib.cornu_dataset_retain(dataset.address))

    @staticmethod
    def zip(*datasets):
        """As of Dataset."""
        datasets = datasets[0] if len(datasets) == 1 else datasets
        sources = _Sources(datasets)
        structures, first = [], 0
        for d in datasets:
            structures.append(_moved(d.structure, first))
            first += lib.cornu_dataset_components(d.address)
        return FileDataset(lib.cornu_dataset_zip(sources.address, len(datasets)),
                           tuple(structures))

    @staticmethod
    def sample_from_datasets(datasets, weights=None, seed=None, stop_on_empty_dataset=False,
                             rerandomize_each_iteration=None):
        """As of Dataset; another order in each pass."""
        if rerandomize_each_iteration is False or not _are_alike(datasets):
            return Dataset.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset,
                                                rerandomize_each_iteration)
        if weights is not None and len(weights) != len(datasets):
            raise ValueError("sample_from_datasets: %d weights of %d data sets, expected as many"
                             % (len(weights), len(datasets)))
        shares = (ctypes.c_double * len(datasets))(*(weights or [1.0] * len(datasets)))
        sources = _Sources(datasets)
        config = struct("CornuSampleFromDatasetsConfig", sources=sources.address,
                        count=len(datasets), weights=ctypes.addressof(shares),
                        seed=random.getrandbits(63) if seed is None else seed,
                        stop_on_empty_dataset=bool(stop_on_empty_dataset))
        made = lib.cornu_dataset_sample_from_datasets_from(ctypes.byref(config))
        return FileDataset(made, datasets[0].structure)

    def cache(self):
        return super().cache() if self.batch_size else self._made(lib.cornu_dataset_cache)

    def prefetch(self, buffer_size=None):
        """Elements are made ahead in a thread, two of them by default."""
        depth = buffer_size if buffer_size and buffer_size > 0 else 2
        return self._made(lib.cornu_dataset_prefetch, min(depth, _MOST_AHEAD))


class _Sources:
    """References to data sets, for a function of the library that takes them."""

    def __init__(self, datasets):
        self._array = (ctypes.c_void_p * len(datasets))(
            *(lib.cornu_dataset_retain(d.address) for d in datasets))
        self.address = ctypes.addressof(self._array)


def _moved(structure, by):
    """The numbers of components that come after so many others."""
    return tree.map_structure(lambda c: c + by, structure)


def _are_alike(datasets):
    """Whether the library has all of them, with elements of one structure."""
    return all(isinstance(d, FileDataset) and d.structure == datasets[0].structure
               for d in datasets)


class FileFeed:
    """Batches of a FileDataset for fit and evaluate, in the order of the model's arrays."""

    error = None

    def __init__(self, model, data):
        parts = data.structure if isinstance(data.structure, tuple) else (data.structure,)
        if len(parts) > 3:
            raise ValueError("a batch has %d parts, expected x, (x, y) or (x, y, sample_weight)"
                             % len(parts))
        order = []
        for what, part in zip(("input", "output", "weight"), parts):
            numbers = tree.map_structure(np.asarray, part)
            order += [int(n) for n in model._given(what, numbers)]
        self._owned = data.pick(order)
        self.address = self._owned.address
        first = lib.cornu_dataset_type(self.address, 0)
        self.shape = (data.batch_size,) + shape_of(first.shape)
