"""Writing TFRecord files."""

import ctypes

import numpy as np

from .._binding.arrays import Borrowed
from .._binding.library import lib


class TFRecordWriter:
    """A new TFRecord file, compressed if its name ends in .gz, which is there once it is closed:

        with cornu.data.TFRecordWriter("train.tfrecord") as writer:
            writer.write_example({"image": png, "label": 7})
    """

    def __init__(self, path):
        self._address = lib.cornu_tfrecord_writer_open(path)

    def _open(self):
        if self._address is None:
            raise ValueError("the writer is closed")
        return self._address

    def write(self, record):
        """Adds a record of bytes, such as those of a tf.train.Example's SerializeToString()."""
        lib.cornu_tfrecord_writer_write(self._open(), ctypes.cast(
            ctypes.c_char_p(record), ctypes.c_void_p), len(record))

    def write_example(self, features):
        """Adds a tf.train.Example of a dictionary: numbers, arrays of them, which are flattened,
        bytes, strings, or lists of strings."""
        lent, kept = Borrowed(), []
        rows = (lib.type("CornuExampleFeature") * len(features))()
        for row, (name, value) in zip(rows, features.items()):
            row.name = name.encode("utf-8")
            value = value.encode("utf-8") if isinstance(value, str) else value
            if isinstance(value, (bytes, bytearray, memoryview)):
                value = bytes(value)
                row.bytes = ctypes.cast(ctypes.c_char_p(value), ctypes.c_void_p)
                row.size = len(value)
                kept.append(value)
            else:
                row.values = lent.array(np.atleast_1d(np.asarray(value)))
        lib.cornu_tfrecord_writer_example(self._open(), ctypes.addressof(rows), len(features))

    def close(self):
        """Finishes the file; an error on the way is raised here."""
        address, self._address = self._address, None
        if address is not None:
            lib.cornu_tfrecord_writer_close(address)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def __del__(self):
        try:
            self.close()
        except Exception:       # nobody is there to be told
            pass
