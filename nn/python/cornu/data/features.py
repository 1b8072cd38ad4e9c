"""What becomes of the features of a record, in the words of tf.io."""

import ctypes

import numpy as np

from .._binding.arrays import dtype_number
from .._binding.library import lib, struct


class _Feature:
    """A row of the table: a component of an element, and one more if `count` names it."""

    kind, count = None, None

    def __init__(self, shape, dtype, **fields):
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.dtype, self.fields = np.dtype(dtype), fields

    def fill(self, row, name, kept):
        """Sets a CornuFeature; what it points to is added to `kept`."""
        text = name.encode("utf-8")
        row.name, row.kind = text, lib.constants["CORNU_FEATURE_" + self.kind]
        row.dtype, row.shape.rank = dtype_number(self.dtype), len(self.shape)
        if len(self.shape) > lib.constants["CORNU_MAX_RANK"]:
            raise ValueError("%s: shape %s has too many axes" % (name, self.shape))
        row.shape.extent[:len(self.shape)] = self.shape
        default = self.fields.get("default_value")
        if default is not None:
            values = np.ascontiguousarray(np.broadcast_to(np.asarray(default, self.dtype),
                                                          self.shape))
            row.default_value = values.ctypes.data
            kept.append(values)
        row.padding = self.fields.get("padding", 0)
        for flag in ("sequence", "truncate", "resize"):
            setattr(row, flag, bool(self.fields.get(flag)))
        row.count = self.count is not None
        kept.append(text)


class FixedLenFeature(_Feature):
    """Numbers of a shape; a scalar for (). Of int64 lists dtype is int64, int32, uint32, uint8 or
    bool, of float lists float32 or float64."""

    kind = "FIXED"

    def __init__(self, shape, dtype, default_value=None):
        super().__init__(shape, dtype, default_value=default_value)


class VarLenFeature(_Feature):
    """Any number of numbers, as an array of `shape`, of which axis 0, the length, is padded at the
    end. Longer ones are an error, unless they are truncated. count: the name of another entry of
    the element, their number, int32."""

    kind = "VAR"

    def __init__(self, dtype, shape, padding=0, truncate=False, count=None):
        super().__init__(shape, dtype, padding=padding, truncate=truncate)
        self.count = count


class FixedLenSequenceFeature(_Feature):
    """Of SequenceExample: steps of a shape each, in an array of (length,) + shape, padded at the
    end; count as of VarLenFeature."""

    kind = "FIXED"

    def __init__(self, shape, dtype, length, padding=0, truncate=False, count=None):
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        super().__init__((length,) + shape, dtype, padding=padding, truncate=truncate,
                         sequence=True)
        self.count = count


class RawFeature(_Feature):
    """A string of bytes that are the numbers of an array, little-endian, as of
    array.tobytes()."""

    kind = "RAW"

    def __init__(self, shape, dtype, default_value=None):
        super().__init__(shape, dtype, default_value=default_value)


class BytesFeature(_Feature):
    """A string as uint8, padded to a length; count as of VarLenFeature."""

    kind = "BYTES"

    def __init__(self, length, padding=0, truncate=False, count=None):
        super().__init__((length,), np.uint8, padding=padding, truncate=truncate)
        self.count = count


class ImageFeature(_Feature):
    """An image file, PNG, JPEG or another that is read, as uint8 (height, width, 1 or 3). resize:
    images of other sizes are resized, bilinearly; else they are an error."""

    kind = "IMAGE"

    def __init__(self, shape, resize=False, default_value=None):
        super().__init__(shape, np.uint8, resize=resize, default_value=default_value)


def table(features):
    """The CornuFeatures of a dictionary, the last without a name; the names of the components; and
    what they point to."""
    kept, names = [], []
    rows = (lib.type("CornuFeature") * (len(features) + 1))()
    for row, (name, feature) in zip(rows, features.items()):
        if not isinstance(feature, _Feature):
            raise TypeError("%s is %r, expected a feature, such as FixedLenFeature((), \"int64\")"
                            % (name, feature))
        feature.fill(row, name, kept)
        names += [name] + ([feature.count] if feature.count is not None else [])
    if len(set(names)) < len(names):
        raise ValueError("two entries of the elements have a name: %s" % ", ".join(names))
    return rows, names, kept


_MISSING = {None: "CORNU_MISSING_REFUSED", "drop": "CORNU_MISSING_DROPPED",
            "keep": "CORNU_MISSING_KEPT"}


def missing_number(missing):
    """What becomes of rows with missing values, as the library numbers it."""
    if missing not in _MISSING:
        raise ValueError("missing is %r, expected None, \"drop\" or \"keep\"" % (missing,))
    return lib.constants[_MISSING[missing]]


def paths(files):
    """A path or pattern, or several, as a NULL-terminated array of strings."""
    files = [files] if isinstance(files, (str, bytes)) or hasattr(files, "__fspath__") else files
    encoded = [f if isinstance(f, bytes) else str(f).encode("utf-8", "surrogateescape")
               for f in files]
    return (ctypes.c_char_p * (len(encoded) + 1))(*encoded, None), len(encoded)


def config(kind, files, features, **fields):
    """The config of a reader of records, the names of its components, and what it points to."""
    kept, names = [], []
    made = struct(kind, **fields)
    if features is not None:
        rows, names, kept = table(features)
        made.features = ctypes.addressof(rows)
        kept.append(rows)
    strings, _ = paths(files)
    made.files = ctypes.addressof(strings)
    return made, names, kept + [strings]
