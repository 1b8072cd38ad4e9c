"""Parquet files as pyarrow writes them, and what pyarrow reads of them: tests/golden/parquet.

    python make_parquet.py       # needs pyarrow and NumPy

rows-0.parquet and rows-1.parquet are the first and the last rows of one table, in row groups of
seven and of five rows; rows.npz has their columns, a list's as its numbers with -1 after them and,
in NAME_count, how many they were, and nulls as NaN or -9. damaged.parquet is the first with a byte
changed in the page of a column, which has a checksum.
"""
import io
import pathlib
import platform

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS, LONGEST = 40, 6


def numbers(dtype):
    return (np.arange(ROWS) * 7 % 23).astype(dtype)


def make():
    """The table, and the arrays that are expected."""
    columns, wanted = {}, {}
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                 "float16", "float32", "float64"):
        values = numbers(name) - (9 if name[0] in "if" else 0) + (0.25 if name[0] == "f" else 0)
        columns[name] = pa.array(values.astype(name))
        wanted[name] = values.astype(name)
    wanted["bool"] = numbers("int64") % 2 == 1
    columns["bool"] = pa.array(wanted["bool"])
    wanted["date"] = numbers("int32")
    columns["date"] = pa.array(numbers("int32"), pa.date32())
    wanted["time"] = numbers("int64")
    columns["time"] = pa.array(numbers("int64"), pa.timestamp("us", tz="UTC"))

    absent = numbers("int64") % 5 == 2
    columns["holes"] = pa.array(numbers("float64"), mask=absent)
    wanted["holes"] = np.where(absent, np.nan, numbers("float64"))
    columns["gaps"] = pa.array(numbers("int32"), mask=absent)
    wanted["gaps"] = np.where(absent, -9, numbers("int32"))

    pairs = numbers("float32")[:, None] + np.array([0.5, 1.5, 2.5], "float32")
    columns["triple"] = pa.FixedSizeListArray.from_arrays(pa.array(pairs.ravel()), 3)
    wanted["triple"] = pairs

    lists = [None if i % 11 == 4 else list(range(i, i + i % (LONGEST + 1))) for i in range(ROWS)]
    columns["list"] = pa.array(lists, pa.list_(pa.int64()))
    wanted["list"] = np.array([(r or []) + [-1] * (LONGEST - len(r or [])) for r in lists])
    wanted["list_count"] = np.array([len(r or []) for r in lists])

    words = ["", "a", "né", "word"]
    columns["text"] = pa.array([words[i % 4] for i in range(ROWS)])
    columns["large_text"] = columns["text"].cast(pa.large_string())
    encoded = [words[i % 4].encode().ljust(6, b"\0") for i in range(ROWS)]
    wanted["text"] = wanted["large_text"] = np.array([list(e) for e in encoded], "uint8")
    columns["category"] = columns["text"].dictionary_encode()
    wanted["category"] = columns["category"].indices.to_numpy()
    columns["raw"] = pa.array([v.tobytes() for v in pairs.astype("<f4")], pa.binary(12))
    wanted["raw"] = pairs
    columns["place"] = pa.array([{"x": float(i), "deep": {"y": i}} for i in range(ROWS)])
    wanted["place.x"] = np.arange(ROWS, dtype="float64")
    wanted["place.deep.y"] = np.arange(ROWS)
    return pa.table(columns), wanted


def damage(path):
    """The bytes of a file with one changed in the values of float64."""
    data = bytearray(path.read_bytes())
    group = pq.ParquetFile(io.BytesIO(bytes(data))).metadata.row_group(1)
    column = next(c for c in map(group.column, range(group.num_columns))
                  if c.path_in_schema == "float64")
    data[column.data_page_offset + column.total_compressed_size - 4] ^= 1   # of the last value
    return bytes(data)


def main():
    folder = pathlib.Path(__file__).parent / "parquet"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    table, wanted = make()
    for i, (rows, group) in enumerate(((table.slice(0, 25), 7), (table.slice(25), 5))):
        pq.write_table(rows, folder / ("rows-%d.parquet" % i), row_group_size=group,
                       compression=("none", "gzip")[i], use_dictionary=["category"],
                       write_page_checksum=True)
    (folder / "damaged.parquet").write_bytes(damage(folder / "rows-0.parquet"))
    np.savez_compressed(folder / "rows.npz", **wanted)
    (folder / "VERSIONS").write_text("Python %s\nnumpy %s\npyarrow %s\n" % (
        platform.python_version(), np.__version__, pa.__version__))


if __name__ == "__main__":
    main()
