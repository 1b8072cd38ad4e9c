"""Finding and reading the files that Keras keeps of data sets."""

import os
import pickle

import numpy as np

from ..utils.files import get_file, keras_home

ADDRESS = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"


def find(name, origin, file_hash=None, **archive):
    """The path of a file, or of the folder of an archive: in CORNU_DATA, else Keras' cache, else
    fetched from `origin`."""
    if os.path.isabs(name) or os.path.dirname(name):
        if not os.path.exists(name):
            raise FileNotFoundError("there is no %s; the file is at %s" % (name, origin))
        return name
    given = os.environ.get("CORNU_DATA")
    if given and os.path.exists(os.path.join(given, name)):
        return os.path.join(given, name)
    return get_file(name, origin, file_hash=file_hash, **archive)


def is_kept(name):
    """Whether Keras has the file."""
    return os.path.exists(os.path.join(keras_home(), "datasets", name))


class _Arrays(pickle.Unpickler):
    """Reads pickled arrays, lists and numbers, and calls nothing else."""

    _KNOWN = {("numpy", "dtype"), ("numpy", "ndarray"), ("builtins", "list")}

    def find_class(self, module, name):
        if (module, name) in self._KNOWN or (
                module in ("numpy.core.multiarray", "numpy._core.multiarray") and
                name in ("_reconstruct", "scalar")):
            return super().find_class(module, name)
        raise pickle.UnpicklingError("the file names %s.%s, expected arrays alone" % (module, name))


def read_pickle(path):
    """A dictionary of a file of CIFAR; its keys as text."""
    with open(path, "rb") as file:
        found = _Arrays(file, encoding="bytes").load()
    return {key.decode() if isinstance(key, bytes) else key: v for key, v in found.items()}


_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0}


def read_npz(path):
    """The arrays of a .npz file by name, also those of Python's lists."""
    import zipfile
    found = {}
    with zipfile.ZipFile(path) as packed:
        for member in packed.namelist():
            with packed.open(member) as file:
                header = _HEADERS[np.lib.format.read_magic(file)]
                shape, _, dtype = header(file)
                if dtype.hasobject:
                    values = _Arrays(file, encoding="latin1").load()
                else:
                    with packed.open(member) as again:
                        values = np.lib.format.read_array(again, allow_pickle=False)
            name = member[:-len(".npy")] if member.endswith(".npy") else member
            found[name] = np.asarray(values).reshape(shape)
    return found


# ---- What several sets have in common ----

def split_rows(x, y, test_split, seed):
    """(x_train, y_train), (x_test, y_test) of rows in Keras' order by the seed."""
    if not 0 <= test_split < 1:
        raise ValueError("test_split is %r, expected at least 0 and below 1" % (test_split,))
    order = np.arange(len(x))
    np.random.RandomState(seed).shuffle(order)
    x, y, cut = x[order], y[order], int(len(x) * (1 - test_split))
    return (x[:cut].copy(), y[:cut].copy()), (x[cut:].copy(), y[cut:].copy())


def images_of(x):
    """CIFAR's rows of planes as images (N, 32, 32, 3)."""
    return np.ascontiguousarray(np.asarray(x).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def marked(rows, start_char, index_from):
    """Rows of words' indices, counted from index_from, after start_char."""
    first = [] if start_char is None else [start_char]
    return [first + [int(w) + index_from for w in row] for row in rows]


def shorter(rows, labels, maxlen):
    """The rows of fewer than maxlen words, and their labels."""
    if not maxlen:
        return rows, labels
    kept = [i for i, row in enumerate(rows) if len(row) < maxlen]
    if not kept:
        raise ValueError("maxlen is %d, and no row has fewer words" % maxlen)
    return [rows[i] for i in kept], np.asarray(labels)[kept]


def limited(rows, num_words, skip_top, oov_char):
    """Rows without the words outside of skip_top to num_words, in whose place is oov_char."""
    most = num_words or max(max(row) for row in rows)
    if oov_char is None:
        return [[w for w in row if skip_top <= w < most] for row in rows]
    return [[w if skip_top <= w < most else oov_char for w in row] for row in rows]


def objects(rows):
    """An array of lists, of any lengths."""
    made = np.empty(len(rows), object)
    for i, row in enumerate(rows):
        made[i] = row
    return made
