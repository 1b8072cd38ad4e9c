"""Tables: the rows of a CSV file."""

import ctypes

from .._binding.arrays import dtype_number
from .._binding.library import Owned, lib, struct
from .features import missing_number, paths
from .pipeline import FileDataset


def _words(table, column):
    """The words of a column, in the order of their numbers; none of a column of numbers."""
    count = ctypes.c_int()
    address = lib.cornu_table_categories(table.address, column, ctypes.addressof(count))
    texts = (ctypes.c_char_p * count.value).from_address(address) if address else ()
    return [text.decode("utf-8", "surrogateescape") for text in texts]


def _part(columns, dtype, **fields):
    """A CornuTableTakeConfig, and what it points to: of `columns`, or all except `others`."""
    others, kept = fields.pop("others", None), []
    part = struct("CornuTableTakeConfig", dtype=dtype_number(dtype), **fields)
    for field, names in (("columns", columns), ("except", others)):
        if names is not None:
            kept.append(paths(names)[0])
            setattr(part, field, ctypes.addressof(kept[-1]))
    return part, kept


class CsvDataset(FileDataset):
    """Rows x, or (x, y). `categories` has the words of each column of words, by its name, in the
    order in which they are numbered."""

    def __init__(self, table, target, columns, one_hot):
        names = [lib.cornu_table_column_name(table.address, i)
                 for i in range(lib.cornu_table_columns(table.address))]
        words = [_words(table, i) for i in range(len(names))]
        self.categories = {name: of for name, of in zip(names, words) if of}
        parts = [_part(columns, "float32", one_hot=one_hot,
                       others=None if target is None or columns is not None else [target])]
        if target is not None:
            parts.append(_part([target], "int32" if target in self.categories else "float32"))
        given = (lib.type("CornuTableTakeConfig") * len(parts))(*[part for part, _ in parts])
        address = lib.cornu_table_dataset(table.address, ctypes.addressof(given), len(parts))
        super().__init__(address, 0 if target is None else (0, 1))


def csv(file, target=None, columns=None, delimiter=",", missing=None, one_hot=True,
        categories=()):
    """The rows of a CSV file whose first line names its columns, a path or an address; it may be
    larger than memory. An element is x, or with a target (x, y):

        x   float32 (n,): these columns, or all but the target; words as a number for each, 1 for
            the row's and 0 else, or without one_hot as their number
        y   float32 (1,), or of a column of words its number, int32 (1,)

    missing: of a row with a missing value, as pandas knows them: None refuses it, "drop" drops the
        row, "keep" makes it NaN, and a word none of the known ones
    categories: columns of words that look like numbers

    The file is read once here, for the kinds of its columns and the places of its rows, and rows
    again when they are asked for: those that follow each other fast. Of a small file cache() keeps
    them; a large one is shuffled within a window, by shuffle(buffer_size).
    """
    if len(delimiter) != 1:
        raise ValueError("delimiter is %r, expected one character" % delimiter)
    words = paths(list(categories))[0]
    config = struct("CornuTableConfig", delimiter=delimiter, missing=missing_number(missing),
                    categories=ctypes.addressof(words), on_disk=True)
    path = paths(file)[0]
    config.file = path[0]
    table = Owned(lib.cornu_table_load_from(ctypes.byref(config)), lib.cornu_table_free)
    return CsvDataset(table, target, columns, one_hot)
