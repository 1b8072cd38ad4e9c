"""Data sets in Python: what functions of this module return, in the words of tf.data."""

import itertools
import random

import numpy as np

from .. import tree
from .._values import Array


class Dataset:
    """Elements that are made anew in each pass: arrays, or tuples and dictionaries of them. With
    batches as elements it is for fit, evaluate and predict. Arrays are NumPy's, and have numpy().

        train = train.map(lambda x, y: (x / 255, y)).shuffle(1000).batch(32)
    """

    def __init__(self, iterate, count=None):
        """iterate() makes an iterator over the elements, of which there are `count`."""
        self._iterate, self._count = iterate, count

    @classmethod
    def from_tensor_slices(cls, arrays):
        """An element for each row of arrays, or of tuples and dictionaries of them; a list is an
        array."""
        arrays = _arrays(arrays)
        rows = {len(leaf) for leaf in tree.flatten(arrays)}
        if len(rows) != 1:
            raise ValueError("the arrays have %s rows, expected as many in each"
                             % " and ".join(str(n) for n in sorted(rows)))
        count = rows.pop()
        return cls(lambda: (tree.map_structure(lambda a: a[i], arrays) for i in range(count)),
                   count)

    def __iter__(self):
        return (tree.map_structure(_array, e) for e in self._iterate())

    def __len__(self):
        if self._count is None:
            raise TypeError("the number of elements is not known before a pass over them")
        return self._count

    def _derived(self, iterate, count):
        made = Dataset(iterate, count)
        made.__dict__.update({key: value for key, value in vars(self).items()
                              if not key.startswith("_")})      # class_names and file_paths
        return made

    def cardinality(self):
        """The number of elements; -2 if it is not known."""
        return -2 if self._count is None else self._count

    def as_numpy_iterator(self):
        return iter(self)

    # ---- Others made of it ----

    def map(self, function, num_parallel_calls=None):
        """function's results; of a tuple it takes the parts."""
        return self._derived(lambda: (function(*e) if isinstance(e, tuple) else function(e)
                                      for e in self), self._count)

    def filter(self, predicate):
        """The elements for which predicate holds."""
        return self._derived(lambda: (e for e in self if (
            predicate(*e) if isinstance(e, tuple) else predicate(e))), None)

    def batch(self, batch_size, drop_remainder=False, num_parallel_calls=None):
        """Elements of batch_size rows each; the last has the rest."""
        def iterate():
            rest = iter(self)
            while True:
                rows = list(itertools.islice(rest, batch_size))
                if not rows or (drop_remainder and len(rows) < batch_size):
                    return
                yield tree.map_structure(lambda *leaves: _stacked(leaves), *rows)
        count = self._count
        if count is not None:
            count = count // batch_size if drop_remainder else -(-count // batch_size)
        return self._derived(iterate, count)

    def unbatch(self):
        """An element for each row."""
        return self._derived(lambda: (row for e in self for row in Dataset.from_tensor_slices(e)),
                             None)

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True):
        """In a random order, drawn from a window of buffer_size elements."""
        rng = random.Random(seed)
        state = rng.getstate()

        def iterate():
            if not reshuffle_each_iteration:
                rng.setstate(state)
            window = []
            for e in self:
                window.append(e)
                if len(window) >= max(buffer_size, 1):
                    yield _popped(window, rng)
            while window:
                yield _popped(window, rng)
        return self._derived(iterate, self._count)

    def take(self, count):
        """The first elements; all for -1."""
        if count < 0:
            return self
        known = self._count if self._count is None else min(count, self._count)
        return self._derived(lambda: itertools.islice(self, count), known)

    def skip(self, count):
        """All but the first elements."""
        known = self._count if self._count is None else max(self._count - count, 0)
        return self._derived(lambda: itertools.islice(self, count, None), known)

    def repeat(self, count=None):
        """count passes; without it, without end."""
        if count is None or count < 0:
            return self._derived(lambda: (e for _ in itertools.count() for e in self), None)
        return self._derived(lambda: (e for _ in range(count) for e in self),
                             self._count if self._count is None else self._count * count)

    def cache(self):
        """Keeps the elements of the first whole pass."""
        kept = []

        def iterate():
            if kept:
                yield from kept[0]
                return
            seen = []
            for e in self:
                seen.append(e)
                yield e
            kept[:] = [seen]
        return self._derived(iterate, self._count)

    def prefetch(self, buffer_size=None):
        """Itself: the library reads ahead where that helps."""
        return self

    def enumerate(self, start=0):
        """(index, element)."""
        return self._derived(lambda: iter(enumerate(self, start)), self._count)

    @staticmethod
    def zip(*datasets):
        """Tuples of the elements of several; a tuple of data sets is one argument, too."""
        datasets = datasets[0] if len(datasets) == 1 else datasets
        counts = [d.cardinality() for d in datasets]
        return Dataset(lambda: zip(*datasets), None if min(counts) < 0 else min(counts))


def _arrays(value):
    if isinstance(value, dict):
        return {key: _arrays(v) for key, v in value.items()}
    return tuple(_arrays(v) for v in value) if isinstance(value, tuple) else np.asarray(value)


def _array(leaf):
    return np.asarray(leaf).view(Array) if isinstance(leaf, (np.ndarray, np.generic)) and \
        not isinstance(leaf, Array) else leaf


def _stacked(leaves):
    if isinstance(leaves[0], (str, bytes)):
        return np.array(leaves, object)
    return np.stack([np.asarray(leaf) for leaf in leaves])


def _popped(window, rng):
    i = rng.randrange(len(window))
    window[i], window[-1] = window[-1], window[i]
    return window.pop()


class PyDataset:
    """The base of data that a program makes batch by batch: __len__ batches, of which
    __getitem__(i) is the i-th, (x, y) or (x, y, sample_weight); on_epoch_end follows each epoch.
    Batches are made in turn, in the thread that trains: `workers` and the others only are kept."""

    def __init__(self, workers=1, use_multiprocessing=False, max_queue_size=10):
        self.workers, self.use_multiprocessing = workers, use_multiprocessing
        self.max_queue_size = max_queue_size

    def __getitem__(self, index):
        raise NotImplementedError("%s: __getitem__ returns a batch" % type(self).__name__)

    def __len__(self):
        raise NotImplementedError("%s: __len__ is the number of batches" % type(self).__name__)

    @property
    def num_batches(self):
        return len(self)

    def on_epoch_begin(self):
        pass

    def on_epoch_end(self):
        pass


def _part(name, size, total):
    """A size of split_dataset as a number of elements."""
    if size is None:
        return None
    if isinstance(size, bool) or not isinstance(size, (int, float)):
        raise TypeError("split_dataset: %s is %r, expected an integer or a fraction" % (name, size))
    if not 0 < size < (1 if isinstance(size, float) else total):
        raise ValueError("split_dataset: %s is %r, expected 1 to %d elements, or a fraction "
                         "between 0 and 1" % (name, size, total - 1))
    return round(size * total) if isinstance(size, float) else size


def split_dataset(dataset, left_size=None, right_size=None, shuffle=False, seed=None,
                  preferred_backend=None):
    """Two Datasets of the elements of an array, a list or tuple of arrays, or a Dataset. Sizes are
    numbers of elements or fractions; one may be left out."""
    if left_size is None and right_size is None:
        raise ValueError("split_dataset: neither left_size nor right_size is given")
    if isinstance(dataset, (list, tuple)):
        elements = list(Dataset.from_tensor_slices(tuple(dataset)))
    else:
        elements = list(dataset)
    if shuffle:
        random.Random(seed).shuffle(elements)
    total = len(elements)
    left, right = _part("left_size", left_size, total), _part("right_size", right_size, total)
    left = total - right if left is None else left
    right = total - left if right is None else right
    if not left or not right or left + right > total:
        raise ValueError("split_dataset: %d and %d elements of %d, expected at least one on each "
                         "side and no more than there are" % (left, right, total))
    parts = elements[:left], elements[total - right:]
    return tuple(Dataset(lambda part=part: iter(part), len(part)) for part in parts)


def timeseries_dataset_from_array(data, targets, sequence_length, sequence_stride=1,
                                  sampling_rate=1, batch_size=128, shuffle=False, seed=None,
                                  start_index=None, end_index=None):
    """Windows of rows, (batch, sequence_length, ...), and with targets the target at each window's
    start. A Dataset of batches; of windows if batch_size is None."""
    rows = len(data)
    start, end = start_index or 0, rows if end_index is None else end_index
    if not 0 <= start < rows or not start < end <= rows:
        raise ValueError("timeseries_dataset_from_array: start_index %s and end_index %s, expected "
                         "a part of %d rows" % (start_index, end_index, rows))
    for name, value in (("sequence_length", sequence_length), ("sequence_stride", sequence_stride),
                        ("sampling_rate", sampling_rate)):
        if not 0 < value < rows:
            raise ValueError("timeseries_dataset_from_array: %s is %r, expected 1 to %d"
                             % (name, value, rows - 1))
    count = end - start - (sequence_length - 1) * sampling_rate
    data, steps = np.asarray(data)[start:end], np.arange(sequence_length) * sampling_rate
    if targets is not None:
        count, targets = min(count, len(targets)), np.asarray(targets)[start:end]
    positions = np.arange(0, count, sequence_stride)
    if shuffle:
        seed = np.random.randint(1000000) if seed is None else seed
        np.random.RandomState(seed).shuffle(positions)

    def windows():
        for at in positions:
            yield data[at + steps] if targets is None else (data[at + steps], targets[at])
    made = Dataset(windows, len(positions))
    if shuffle:
        made = made.shuffle(batch_size * 8 if batch_size else 1024, seed)
    return made if batch_size is None else made.batch(batch_size)
