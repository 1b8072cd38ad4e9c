"""Data sets in Python: what functions of this module return, in the words of tf.data."""

import bisect
import itertools
import random

import numpy as np

from .. import tree
from .._tensors.values import Array


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

    @classmethod
    def from_tensors(cls, arrays):
        """One element."""
        arrays = _arrays(arrays)
        return cls(lambda: iter([arrays]), 1)

    @classmethod
    def from_generator(cls, generator, output_types=None, output_shapes=None, args=None,
                       output_signature=None):
        """What generator(*args) yields; types and shapes are those of the elements."""
        return cls(lambda: iter(generator(*(args or ()))))

    @classmethod
    def range(cls, *args):
        """Numbers as those of range."""
        numbers = range(*(int(a) for a in args))
        return cls(lambda: (np.int64(i) for i in numbers), len(numbers))

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
        return self._derived(lambda: (_called(function, e) for e in self), self._count)

    def filter(self, predicate):
        """The elements for which predicate holds."""
        return self._derived(lambda: (e for e in self if _called(predicate, e)), None)

    def take_while(self, predicate):
        """The elements before the first one for which predicate does not hold."""
        return self._derived(lambda: itertools.takewhile(lambda e: _called(predicate, e), self),
                             None)

    def interleave(self, map_func, cycle_length=None, block_length=None, num_parallel_calls=None,
                   deterministic=None):
        """block_length elements in turn of each of cycle_length data sets that map_func makes."""
        cycle, block = _at_least_1("cycle_length", cycle_length), _at_least_1("block_length",
                                                                              block_length)

        def iterate():
            source, open_ = iter(self), [None] * cycle
            ended = False
            while not ended or any(open_):
                for i in range(cycle):
                    if open_[i] is None and not ended:
                        e = next(source, _END)
                        ended = e is _END
                        open_[i] = None if ended else iter(_called(map_func, e))
                    taken = [] if open_[i] is None else itertools.islice(open_[i], block)
                    count = 0
                    for count, e in enumerate(taken, 1):
                        yield e
                    if count < block:
                        open_[i] = None
        return self._derived(iterate, None)

    def flat_map(self, map_func):
        """The elements of each data set that map_func makes after those of the one before."""
        return self.interleave(map_func, 1)

    def scan(self, initial_state, scan_func):
        """scan_func(state, element) makes the next state and an element."""
        def iterate():
            state = initial_state
            for e in self:
                state, made = scan_func(state, e)
                yield made
        return self._derived(iterate, self._count)

    def concatenate(self, dataset):
        """The elements of this one, then those of the other one."""
        counts = [self.cardinality(), dataset.cardinality()]
        return Dataset(lambda: itertools.chain(self, dataset),
                       sum(counts) if min(counts) >= 0 else None)

    def window(self, size, shift=None, stride=1, drop_remainder=False):
        """Data sets of `size` elements, or tuples and dictionaries of them."""
        shift = shift or size
        span = (size - 1) * stride + 1

        def iterate():
            kept, first = [], 0      # elements from number `first` on
            source = iter(self)
            for start in itertools.count(0, shift):
                while first + len(kept) < start + span:
                    e = next(source, _END)
                    if e is _END:
                        break
                    kept.append(e)
                kept[:start - first], first = [], max(first, start)
                some = kept[:span:stride]
                if not some or (drop_remainder and len(some) < size):
                    return
                yield tree.map_structure(lambda *leaves: Dataset(lambda: iter(leaves), len(leaves)),
                                         *some)
        count = self._count
        if count is not None:
            needed = span if drop_remainder else 1
            count = 0 if count < needed else (count - needed) // shift + 1
        return self._derived(iterate, count)

    def _batched(self, size, drop_remainder, make):
        """Elements that make(rows) makes of `size` elements each; the last of the rest."""
        def iterate():
            rest = iter(self)
            while True:
                rows = list(itertools.islice(rest, size))
                if not rows or (drop_remainder and len(rows) < size):
                    return
                yield make(rows)
        count = self._count
        if count is not None:
            count = count // size if drop_remainder else -(-count // size)
        return self._derived(iterate, count)

    def batch(self, batch_size, drop_remainder=False, num_parallel_calls=None):
        """Elements of batch_size rows each; the last has the rest."""
        return self._batched(batch_size, drop_remainder, lambda rows: tree.map_structure(
            lambda *leaves: _stacked(leaves), *rows))

    def padded_batch(self, batch_size, padded_shapes=None, padding_values=None,
                     drop_remainder=False):
        """Batches whose arrays are padded to the longest of the batch, or to padded_shapes, where
        None and -1 are the longest."""
        return self._batched(batch_size, drop_remainder,
                             lambda rows: _padded(rows, padded_shapes, padding_values))

    def bucket_by_sequence_length(self, element_length_func, bucket_boundaries, bucket_batch_sizes,
                                  padded_shapes=None, padding_values=None,
                                  pad_to_bucket_boundary=False, no_padding=False,
                                  drop_remainder=False):
        """Batches of elements of similar length: a bucket for lengths below each boundary and one
        for the rest, with a batch size each."""
        if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
            raise ValueError("bucket_by_sequence_length: %d boundaries and %d batch sizes, "
                             "expected one more" % (len(bucket_boundaries),
                                                    len(bucket_batch_sizes)))

        def batch(b, rows):
            if no_padding:
                return tree.map_structure(lambda *leaves: _stacked(leaves), *rows)
            shapes = padded_shapes
            if pad_to_bucket_boundary:
                if b == len(bucket_boundaries):
                    raise ValueError("bucket_by_sequence_length: an element is not shorter than "
                                     "the last boundary, %d" % bucket_boundaries[-1])
                shapes = tree.map_structure(
                    lambda leaf: [bucket_boundaries[b] - 1] * min(np.ndim(leaf), 1) +
                    [None] * (np.ndim(leaf) - 1), rows[0])
            return _padded(rows, shapes, padding_values)

        def iterate():
            buckets = [[] for _ in bucket_batch_sizes]
            for e in self:
                b = bisect.bisect_right(bucket_boundaries, int(_called(element_length_func, e)))
                buckets[b].append(e)
                if len(buckets[b]) == bucket_batch_sizes[b]:
                    rows, buckets[b] = buckets[b], []
                    yield batch(b, rows)
            for b, rows in enumerate(buckets):
                if rows and not drop_remainder:
                    yield batch(b, rows)
        return self._derived(iterate, None)

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

    def rejection_resample(self, class_func, target_dist, initial_dist=None, seed=None):
        """(class, element), of classes with the target distribution: others are left out at random.
        Without initial_dist the classes are counted, from 10 of each on."""
        target = np.asarray(target_dist, float)

        def iterate():
            rng = random.Random(seed)
            seen = np.full(len(target), 10.0) if initial_dist is None else \
                np.asarray(initial_dist, float).copy()
            for e in self:
                number = int(_called(class_func, e))
                if initial_dist is None:
                    seen[number] += 1
                ratios = np.divide(target, seen, out=np.zeros_like(target), where=seen > 0)
                if rng.random() * ratios.max() < ratios[number]:
                    yield np.int64(number), e
        return self._derived(iterate, None)

    @staticmethod
    def sample_from_datasets(datasets, weights=None, seed=None, stop_on_empty_dataset=False,
                             rerandomize_each_iteration=None):
        """Each element from one of the data sets at random, with these weights."""
        weights = [1.0] * len(datasets) if weights is None else [float(w) for w in weights]
        if len(weights) != len(datasets) or min(weights) < 0 or not sum(weights) > 0:
            raise ValueError("sample_from_datasets: weights %s of %d data sets, expected as many, "
                             "0 or more" % (weights, len(datasets)))
        rng = random.Random(seed)
        state = rng.getstate()

        def iterate():
            if not rerandomize_each_iteration and seed is not None:
                rng.setstate(state)
            open_ = {i: iter(d) for i, d in enumerate(datasets) if weights[i] > 0}
            while open_:
                i, = rng.choices(list(open_), [weights[k] for k in open_])
                e = next(open_[i], _END)
                if e is not _END:
                    yield e
                elif stop_on_empty_dataset:
                    return
                else:
                    del open_[i]
        counts = [d.cardinality() for d, w in zip(datasets, weights) if w > 0]
        known = min(counts) >= 0 and not stop_on_empty_dataset
        return Dataset(iterate, sum(counts) if known else None)

    @staticmethod
    def choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=True):
        """Each element from the data set whose number is the next element of choice_dataset."""
        def iterate():
            open_ = {i: iter(d) for i, d in enumerate(datasets)}
            for choice in choice_dataset:
                if not 0 <= int(choice) < len(datasets):
                    raise ValueError("choose_from_datasets: choice %d of %d data sets"
                                     % (choice, len(datasets)))
                e = next(open_.get(int(choice), iter(())), _END)
                if e is not _END:
                    yield e
                    continue
                open_.pop(int(choice), None)
                if stop_on_empty_dataset or not open_:
                    return
        return Dataset(iterate)

    @staticmethod
    def zip(*datasets):
        """Tuples of the elements of several; a tuple of data sets is one argument, too."""
        datasets = datasets[0] if len(datasets) == 1 else datasets
        counts = [d.cardinality() for d in datasets]
        return Dataset(lambda: zip(*datasets), None if min(counts) < 0 else min(counts))


_END = object()      # of an iterator


def _called(function, element):
    return function(*element) if isinstance(element, tuple) else function(element)


def _at_least_1(name, value):
    if value is not None and value < 1:
        raise ValueError("interleave: %s is %d, expected 1 or more" % (name, value))
    return value or 1


def _padded(rows, shapes, values):
    """A batch of rows with arrays of different extents."""
    def pad(*leaves, shape=None, value=None):
        leaves = [np.asarray(leaf) for leaf in leaves]
        extents = np.max([leaf.shape for leaf in leaves], axis=0).astype(int)
        if shape is not None:
            wanted = [e if w is None or w < 0 else w for e, w in zip(extents, shape)]
            if any(e > w for e, w in zip(extents, wanted)):
                raise ValueError("padded_batch: an element is %s, expected at most %s"
                                 % (tuple(extents.tolist()), tuple(map(int, wanted))))
            extents = wanted
        batch = np.full((len(leaves), *extents), 0 if value is None else value,
                        leaves[0].dtype)
        for row, leaf in enumerate(leaves):
            batch[(row, *map(slice, leaf.shape))] = leaf
        return batch
    columns = list(zip(*(tree.flatten(row) for row in rows)))
    shapes = [None] * len(columns) if shapes is None else _of_leaves(shapes, rows[0])
    values = [None] * len(columns) if values is None else _of_leaves(values, rows[0])
    return tree.pack_sequence_as(rows[0], [pad(*column, shape=shape, value=value) for
                                           column, shape, value in zip(columns, shapes, values)])


def _of_leaves(given, element):
    """A part of `given` for each leaf of an element: of a tuple or dictionary those of its own, in
    their order; one for all leaves where it is not such."""
    if isinstance(element, dict) and isinstance(given, dict):
        return [part for key in sorted(element) for part in _of_leaves(given[key], element[key])]
    if isinstance(element, tuple) and isinstance(given, tuple):
        return [part for g, e in zip(given, element) for part in _of_leaves(g, e)]
    return [given] * len(tree.flatten(element))


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
