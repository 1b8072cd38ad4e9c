"""Record batches of Arrow, which other libraries hand over by its C stream interface."""

import ctypes
import glob
import os
import threading

from .._binding.library import lib, struct
from .features import missing_number, table
from .pipeline import FileDataset


class _Stream(ctypes.Structure):
    """struct ArrowArrayStream, of the Arrow C stream interface."""

    _fields_ = [(name, ctypes.c_void_p) for name in
                ("get_schema", "get_next", "get_last_error", "release", "private_data")]


_OPEN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(_Stream))
_CLOSE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_sources, _last, _lock = {}, [0], threading.Lock()     # of data sets, by the context of each


def _hand_over(made, to):
    """Moves the stream of an object that has one."""
    capsule = made.__arrow_c_stream__()
    take = ctypes.pythonapi.PyCapsule_GetPointer
    take.restype, take.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    stream = _Stream.from_address(take(capsule, b"arrow_array_stream"))
    ctypes.memmove(to, ctypes.byref(stream), ctypes.sizeof(_Stream))
    stream.release = None           # it is the library's now


@_OPEN
def _open(context, epoch, to):
    try:
        _hand_over(_sources[context](), to)
        return 0
    except BaseException as error:      # of whatever library makes the stream
        status = next(i for i, s in enumerate(lib.statuses) if s[0] == "ERR_FILE")
        lib.carry(error, status)
        return status


@_CLOSE
def _close(context):
    with _lock:
        _sources.pop(context, None)


def _keep(source):
    with _lock:
        _last[0] += 1
        _sources[_last[0]] = source
        return _last[0]


def dataset(source, features, columns, missing):
    """The FileDataset of what a function makes for each pass."""
    kept, names, missing = [], None, missing_number(missing)
    config = struct("CornuArrowConfig", open=ctypes.cast(_open, ctypes.c_void_p).value,
                    close=ctypes.cast(_close, ctypes.c_void_p).value, context=_keep(source),
                    missing=missing)
    if features is not None:
        rows, names, kept = table(features)
        config.features = ctypes.addressof(rows)
        kept.append(rows)
    elif columns is not None:
        names = list(columns)
        strings = (ctypes.c_char_p * (len(names) + 1))(*[n.encode("utf-8") for n in names], None)
        config.columns = ctypes.addressof(strings)
        kept.append(strings)
    address = lib.cornu_arrow_dataset_from(ctypes.byref(config))
    del kept
    if names is None:
        names = [lib.cornu_arrow_column(address, i)
                 for i in range(lib.cornu_dataset_components(address))]
    return FileDataset(address, {name: i for i, name in enumerate(names)})


# ---- Parquet ----

def files_of(files):
    """The paths of paths and patterns, each pattern's sorted."""
    given = [files] if isinstance(files, (str, bytes)) or hasattr(files, "__fspath__") else files
    found = []
    for name in (os.fspath(f) for f in given):
        there = "://" in name or os.path.exists(name)
        matches = [name] if there else sorted(glob.glob(glob.escape(name) if not
                                                        glob.has_magic(name) else name))
        if not matches:
            raise FileNotFoundError("%s: no such file, and no file matches it" % name)
        found += matches
    return found


class Parquet:
    """Files as one stream of record batches, which are read when they are asked for: a row group
    at a time, of the columns that are needed."""

    def __init__(self, files, names, batch_size):
        try:
            import pyarrow.parquet
        except ImportError:
            raise ImportError("from_parquet needs pyarrow: pip install pyarrow; another library's "
                              "table goes to from_arrow") from None
        self._arrow, self._parquet = pyarrow, pyarrow.parquet
        self._files, self._batch_size = files_of(files), batch_size
        first = self._open(self._files[0])
        self._columns = self._stored(first.schema_arrow, names)
        self._schema = first.read_row_groups([], columns=self._columns).schema
        first.close()

    def _open(self, path):
        if "://" not in path:
            return self._parquet.ParquetFile(path, page_checksum_verification=True)
        import pyarrow.fs
        system, name = pyarrow.fs.FileSystem.from_uri(path)
        return self._parquet.ParquetFile(system.open_input_file(name),
                                         page_checksum_verification=True)

    @staticmethod
    def _stored(schema, names):
        """Of names with dots those that are fields; None for all columns."""
        if names is None:
            return None
        known = set(schema.names)
        return [n for n in names if n in known or n.split(".")[0] in known]

    def _batches(self):
        for path in self._files:
            file, rows = self._open(path), 0
            batches = file.iter_batches(batch_size=self._batch_size, columns=self._columns)
            while True:
                try:
                    batch = next(batches, None)
                except Exception as error:      # of pyarrow, which names neither file nor row
                    raise OSError("%s: after row %d: %s" % (path, rows, error)) from error
                if batch is None:
                    break
                rows += batch.num_rows
                if sorted(batch.schema.names) == sorted(self._schema.names):
                    batch = batch.select(self._schema.names)
                if not batch.schema.equals(self._schema):
                    raise ValueError("%s: its columns are %s, expected %s as in %s" % (
                        path, _said(batch.schema), _said(self._schema), self._files[0]))
                yield batch
            file.close()

    def __call__(self):
        return self._arrow.RecordBatchReader.from_batches(self._schema, self._batches())


def _said(schema):
    return ", ".join("%s %s" % (f.name, f.type) for f in schema)
