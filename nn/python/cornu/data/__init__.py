"""Data in files: TFRecord files, NumPy's, CSV, tar archives of samples, Parquet, Arrow's batches.

    features = {"image": cornu.data.ImageFeature((28, 28, 1)),
                "label": cornu.data.FixedLenFeature((), "int64")}
    train = cornu.data.tfrecord("train-*.tfrecord", features, cycle_length=4)
    model.fit(train.shuffle().to_tuple("image", "label").batch(128), epochs=3)
"""

import ctypes as _ctypes

from .._binding.library import lib as _lib
from .._surface.missing import getter as _getter
from . import arrow as _arrow
from .features import (BytesFeature, FixedLenFeature, FixedLenSequenceFeature, ImageFeature,
                       RawFeature, VarLenFeature, config as _config, paths as _paths)
from .pipeline import FileDataset
from .tables import csv
from .writer import TFRecordWriter


def _dictionary(names):
    return {name: i for i, name in enumerate(names)}


def npy(*files):
    """The rows of arrays in .npy and .npz files, an element for each: of one file an array, of
    several a tuple, as (x, y). A file is "x.npy", "data.npz:x", or "data.npz", its only array. Rows
    are read when they are needed: arrays may be larger than memory."""
    strings, count = _paths(files)
    address = _lib.cornu_npy_dataset_from(strings, count)
    return FileDataset(address, 0 if count == 1 else tuple(range(count)))


def tfrecord(files, features=None, cycle_length=1, block_length=1, record_length=0):
    """The records of TFRecord files, a path or pattern, or several: dictionaries by `features`, of
    tf.train.Examples and SequenceExamples. cycle_length and block_length are interleave's of
    tf.data. Without features, (record, length), where the record is uint8 (record_length,)."""
    made, names, kept = _config("CornuTfrecordConfig", files, features, cycle_length=cycle_length,
                                block_length=block_length, record_length=record_length)
    address = _lib.cornu_tfrecord_dataset_from(_ctypes.byref(made))
    del kept
    return FileDataset(address, (0, 1) if features is None else _dictionary(names))


def tar(files, features):
    """The samples of tar archives, a path or pattern, or several, as WebDataset arranges them:
    dictionaries by `features`, whose keys are extensions, "jpg;png", "cls", or "json:FIELD"."""
    made, names, kept = _config("CornuTarConfig", files, features)
    address = _lib.cornu_tar_dataset_from(_ctypes.byref(made))
    del kept
    return FileDataset(address, _dictionary(names))


def from_arrow(source, features=None, columns=None, missing=None):
    """The rows of record batches, read one batch at a time, of whatever speaks Arrow's C stream
    interface: a pyarrow.Table or Dataset scanner, a frame of polars, pandas or DuckDB. Of what ends
    when it was read, such as a RecordBatchReader, a function that makes one for each pass.

    Elements are dictionaries: by `features` as of tfrecord, whose keys are columns, or
    "column.field"; else all columns, or these, of numbers and of lists of a fixed size.

    missing: of a row that has a null in a feature without a default_value: None refuses it, "drop"
        drops the row, "keep" makes it NaN, which is for floats
    """
    if not callable(source) and not hasattr(source, "__arrow_c_stream__"):
        raise TypeError("from_arrow: %s has no __arrow_c_stream__, and is not a function that "
                        "makes what has" % type(source).__name__)
    if hasattr(source, "read_next_batch"):
        raise TypeError("from_arrow: a %s can be read once, expected a function that makes one for "
                        "each pass" % type(source).__name__)
    make = source if callable(source) else lambda: source
    return _arrow.dataset(make, features, columns, missing)


def from_parquet(files, features=None, columns=None, missing=None, batch_size=1024):
    """The rows of Parquet files, a path or pattern, or several, as of from_arrow: by pyarrow, the
    columns that are needed, batch_size rows at a time, so that files may be larger than memory.
    s3:// and gs:// are read by pyarrow, too."""
    names = columns if features is None else list(features)
    return _arrow.dataset(_arrow.Parquet(files, names, batch_size), features, columns, missing)


__all__ = ["BytesFeature", "FileDataset", "FixedLenFeature", "FixedLenSequenceFeature",
           "ImageFeature", "RawFeature", "TFRecordWriter", "VarLenFeature", "csv",
           "from_arrow", "from_parquet", "npy", "tar", "tfrecord"]
__getattr__ = _getter(__name__)
