"""Record batches of Arrow and Parquet files, as pyarrow writes and reads them (tests/golden)."""

import gc
import os
import resource
import unittest

import numpy as np

import cornu

try:
    import pyarrow
except ImportError:
    pyarrow = None

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "parquet")
PLAIN = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
         "float32", "float64", "bool", "date", "time", "triple", "category"]


def golden(name):
    return os.path.join(GOLDEN, name)


def features():
    d = cornu.data
    return {"list": d.VarLenFeature("int64", 6, padding=-1, count="list_count"),
            "text": d.BytesFeature(6), "large_text": d.BytesFeature(6),
            "raw": d.RawFeature(3, "float32"), "gaps": d.FixedLenFeature((), "int64", -9),
            "place.x": d.FixedLenFeature((), "float32"),
            "place.deep.y": d.FixedLenFeature((), "uint8"),
            "int8": d.FixedLenFeature((), "float64")}


@unittest.skipUnless(pyarrow, "pyarrow: pip install pyarrow")
class Arrow(unittest.TestCase):
    def check(self, read, wanted, names, first=0):
        elements = list(read)
        self.assertEqual(len(elements), 40 - first)
        for name in names:
            np.testing.assert_array_equal(np.stack([e[name] for e in elements]),
                                          wanted[name][first:], name)

    def test_parquet(self):
        wanted = np.load(golden("rows.npz"))
        for batch_size in (1, 3, 1000):
            read = cornu.data.from_parquet(golden("rows-*.parquet"), columns=PLAIN,
                                           batch_size=batch_size)
            self.check(read, wanted, PLAIN)
            self.check(read.skip(13), wanted, PLAIN, 13)
        spec = read.element_spec
        self.assertEqual(spec["uint16"], ((), "i32"))
        self.assertEqual(spec["uint64"], ((), "i64"))
        self.assertEqual(spec["float16"], ((), "f32"))
        self.assertEqual(spec["triple"], ((3,), "f32"))
        made = features()
        read = cornu.data.from_parquet([golden("rows-0.parquet"), golden("rows-1.parquet")], made)
        self.check(read, wanted, list(made) + ["list_count"])

    def test_tables(self):
        import pyarrow.parquet as pq
        wanted = np.load(golden("rows.npz"))
        table = pyarrow.concat_tables(pq.read_table(golden("rows-%d.parquet" % i))
                                      for i in range(2))
        for source in (table, table.combine_chunks(), table.slice(3),
                       lambda: table.to_reader(max_chunksize=4)):
            first = 3 if getattr(source, "num_rows", 40) == 37 else 0
            self.check(cornu.data.from_arrow(source, columns=PLAIN), wanted, PLAIN, first)
            self.check(cornu.data.from_arrow(source, features()), wanted, features(), first)

    def test_nulls(self):
        wanted = np.load(golden("rows.npz"))["holes"]
        files = golden("rows-*.parquet")
        kept = [e["holes"] for e in cornu.data.from_parquet(files, columns=["holes"],
                                                            missing="keep")]
        np.testing.assert_array_equal(kept, wanted)
        dropped = cornu.data.from_parquet(files, columns=["holes"], missing="drop")
        np.testing.assert_array_equal([e["holes"] for e in dropped], wanted[~np.isnan(wanted)])
        np.testing.assert_array_equal([e["holes"] for e in dropped.skip(5)],
                                      wanted[~np.isnan(wanted)][5:])
        row = int(np.flatnonzero(np.isnan(wanted))[0])
        with self.assertRaisesRegex(ValueError, 'row %d, column "holes": is null' % row):
            list(cornu.data.from_parquet(files, columns=["holes"]))
        with self.assertRaisesRegex(ValueError, 'column "gaps": is null'):
            list(cornu.data.from_parquet(files, columns=["gaps"], missing="keep"))

    def test_failures(self):
        files, d = golden("rows-*.parquet"), cornu.data
        with self.assertRaisesRegex(OSError, "damaged.parquet: after row 7: .*checksum"):
            list(d.from_parquet(golden("damaged.parquet"), columns=["float64"], batch_size=7))
        self.assertEqual(len(list(d.from_parquet(golden("damaged.parquet"), columns=["int8"]))), 25)
        with self.assertRaisesRegex(cornu.errors.DataError, 'no column "z", but int8'):
            d.from_parquet(files, columns=["int8", "z"])
        with self.assertRaisesRegex(NotImplementedError, 'text: the column is of Arrow\'s format'):
            d.from_parquet(files, columns=["text"])
        with self.assertRaisesRegex(NotImplementedError, "floats, expected whole numbers for i64"):
            d.from_parquet(files, {"float32": d.FixedLenFeature((), "int64")})
        with self.assertRaisesRegex(ValueError, 'row 9, column "list": has 2 values, expected 3'):
            list(d.from_parquet(files, {"list": d.FixedLenFeature(3, "int64")}).skip(9))
        with self.assertRaisesRegex(ValueError, 'column "int8": value 0 is -9, which u8 does not'):
            list(d.from_parquet(files, {"int8": d.FixedLenFeature((), "uint8")}))
        with self.assertRaisesRegex(FileNotFoundError, "absent"):
            d.from_parquet("absent-*.parquet")
        with self.assertRaisesRegex(ValueError, "missing is 'no'"):
            d.from_arrow(pyarrow.table({"a": [1]}), missing="no")
        with self.assertRaisesRegex(TypeError, "can be read once"):
            d.from_arrow(pyarrow.table({"a": [1]}).to_reader())
        with self.assertRaisesRegex(TypeError, "int has no __arrow_c_stream__"):
            d.from_arrow(3)

        def broken():
            raise KeyError("my own")
        with self.assertRaisesRegex(KeyError, "my own"):
            d.from_arrow(broken)

        def batches():
            yield pyarrow.record_batch({"a": [1.0, 2.0]})
            raise OSError("the line is down")
        schema = pyarrow.schema([("a", "float64")])
        read = d.from_arrow(lambda: pyarrow.RecordBatchReader.from_batches(schema, batches()))
        with self.assertRaisesRegex(Exception, "batch 1 cannot be read: .*the line is down"):
            list(read)

    def test_fit(self):
        rng = np.random.default_rng(1)
        x = rng.uniform(-1, 1, (300, 2)).astype("float32")
        table = pyarrow.table({
            "x": pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(x.ravel()), 2),
            "y": pyarrow.array((x[:, 0] > x[:, 1]).astype("int64"))})
        read = cornu.data.from_arrow(table).to_tuple("x", "y")
        model = cornu.Sequential([cornu.Input((2,)), cornu.layers.Dense(2, "softmax")])
        model.compile(cornu.optimizers.Adam(0.1), "sparse_categorical_crossentropy",
                      metrics=["accuracy"])
        history = model.fit(read.shuffle(100, seed=4).batch(32), epochs=6, verbose=0,
                            validation_data=read.batch(50))
        self.assertGreater(history.history["val_accuracy"][-1], 0.9)

    def test_memory(self):
        """Batches are let go once they are read, and sources with their data sets."""
        from cornu.data import arrow
        rows, block = 40, np.zeros((1000, 1000))

        def batches():
            for i in range(rows):
                values = pyarrow.array((block + i).ravel())
                yield pyarrow.record_batch(
                    {"x": pyarrow.FixedSizeListArray.from_arrays(values, 1000)})
        schema = pyarrow.schema([("x", pyarrow.list_(pyarrow.float64(), 1000))])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        read = cornu.data.from_arrow(
            lambda: pyarrow.RecordBatchReader.from_batches(schema, batches()))
        sums = [float(e["x"][0, 0]) for e in read.batch(1000)]
        self.assertEqual(sums, [float(i) for i in range(rows)])
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        self.assertLess(grown, 150 << 10)       # KB, of 320 MB
        del read
        gc.collect()
        self.assertEqual(arrow._sources, {})


if __name__ == "__main__":
    unittest.main()
