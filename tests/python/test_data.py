"""Data sets of files: what NumPy, TensorFlow and tarfile wrote (tests/golden), shuffled, batched,
and trained with."""

import os
import tempfile
import unittest

import numpy as np

import cornu

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")


def golden(*names):
    return os.path.join(GOLDEN, *names)


def features():
    d = cornu.data
    return {"label": d.FixedLenFeature((), "int64"), "pair": d.FixedLenFeature(2, "float32"),
            "words": d.VarLenFeature("int64", 6, padding=-7, count="words_count"),
            "points": d.VarLenFeature("float32", (4, 2)),
            "raw": d.RawFeature((2, 3), "float32"), "text": d.BytesFeature(8, count="text_count"),
            "image": d.ImageFeature((6, 5, 3)),
            "sometimes": d.FixedLenFeature((), "int64", default_value=-1)}


class Data(unittest.TestCase):
    def test_tfrecord(self):
        wanted = np.load(golden("tfrecords", "features.npz"))
        for name in ("features.tfrecord", "features.tfrecord.gz"):
            read = cornu.data.tfrecord(golden("tfrecords", name), features())
            self.assertEqual(read.cardinality(), -2 if name.endswith("gz") else 12)
            elements = list(read)
            self.assertEqual(len(elements), 12)
            self.assertEqual(list(elements[0]), list(features())[:3] + ["words_count"] +
                             list(features())[3:6] + ["text_count"] + list(features())[6:])
            for key in elements[0]:
                np.testing.assert_array_equal(np.stack([e[key] for e in elements]), wanted[key])

    def test_sequences_and_records(self):
        wanted = np.load(golden("tfrecords", "sequences.npz"))
        read = cornu.data.tfrecord(golden("tfrecords", "sequences.tfrecord"), {
            "label": cornu.data.FixedLenFeature((), "int64"),
            "steps": cornu.data.FixedLenSequenceFeature(2, "float32", 6, count="lengths")})
        batch, = read.batch(6)
        for key in batch:
            np.testing.assert_array_equal(batch[key], wanted[key])
        record, length = next(iter(cornu.data.tfrecord(golden("tfrecords", "part-0.tfrecord"),
                                                       record_length=30)))
        self.assertEqual((length, bytes(record[6:8])), (15, b"id"))

    def test_files_in_turn(self):
        with open(golden("tfrecords", "order_3_2.txt")) as file:
            wanted = [int(word) for word in file.read().split()]
        one = {"id": cornu.data.FixedLenFeature((), "int32")}
        read = cornu.data.tfrecord(golden("tfrecords", "part-*.tfrecord"), one, cycle_length=3,
                                   block_length=2)
        ids = [int(e["id"]) for e in read]
        self.assertEqual(ids, wanted)
        shuffled = read.shuffle(seed=5)
        first, second = ([int(e["id"]) for e in shuffled] for _ in range(2))
        self.assertEqual(sorted(first), sorted(wanted))
        self.assertNotEqual(first, second)
        window = [int(e["id"]) for e in read.shuffle(4, seed=5).take(9)]
        self.assertTrue(set(window) <= set(wanted[:13]))
        self.assertEqual([int(e["id"]) for e in read.skip(25)], wanted[25:])
        self.assertEqual(len(read.repeat(2)), 54)
        self.assertEqual([int(e["id"]) for e in read.cache().prefetch()], wanted)
        self.assertEqual([len(b["id"]) for b in read.batch(10, num_parallel_calls=2)], [10, 10, 7])
        self.assertEqual([len(b["id"]) for b in read.batch(10, drop_remainder=True)], [10, 10])
        doubled = [int(e) for e in read.map(lambda e: 2 * e["id"])]
        self.assertEqual(doubled, [2 * i for i in wanted])

    def test_several(self):
        one = {"id": cornu.data.FixedLenFeature((), "int32")}
        read = cornu.data.tfrecord(golden("tfrecords", "part-*.tfrecord"), one)
        first, second = read.take(13), read.skip(13)
        ids = [[int(e["id"]) for e in d] for d in (first, second)]
        both = first.concatenate(second)
        self.assertIsInstance(both, cornu.data.FileDataset)
        self.assertEqual([int(e["id"]) for e in both], ids[0] + ids[1])
        pairs = cornu.data.FileDataset.zip(first, second)
        self.assertEqual([(int(a["id"]), int(b["id"])) for a, b in pairs], list(zip(*ids)))
        self.assertEqual([(int(i), int(e["id"])) for i, e in first.enumerate(3)],
                         list(enumerate(ids[0], 3)))
        rows = both.batch(4).unbatch()
        self.assertIsInstance(rows, cornu.data.FileDataset)
        self.assertEqual([int(e["id"]) for e in rows.repeat(2)], 2 * (ids[0] + ids[1]))
        mixed = cornu.data.FileDataset.sample_from_datasets([first, second], [3, 1], seed=4)
        passes = [[int(e["id"]) for e in mixed] for _ in range(2)]
        self.assertNotEqual(passes[0], passes[1])
        for drawn in passes:        # each in its own order
            for of in ids:
                self.assertEqual([i for i in drawn if i in of], of)
        with self.assertRaisesRegex(ValueError, "1 weights of 2 data sets"):
            cornu.data.FileDataset.sample_from_datasets([first, second], [3])
        doubled = first.map(lambda e: e["id"])
        self.assertEqual(len(list(doubled.concatenate(doubled))), 2 * len(ids[0]))
        self.assertEqual(len(list(first.concatenate(doubled))), 2 * len(ids[0]))

    def test_npy(self):
        x = np.load(golden("arrays", "x.npy"))
        read = cornu.data.npy(golden("arrays", "x.npy"), golden("arrays", "stored.npz:i2_big_f"))
        self.assertEqual(read.element_spec, (((3, 2), "f32"), ((3, 2), "i32")))
        for row, (a, b) in zip(x, read):
            np.testing.assert_array_equal(a, row)
            np.testing.assert_array_equal(b, np.floor(row))
        batch, = cornu.data.npy(golden("arrays", "x.npy")).batch(8)
        np.testing.assert_array_equal(batch, x)

    def test_csv(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "flats ü.csv")
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write('area,town,rooms,price\r\n80,"Halle, Saale",2,1.5\r\n'
                           '60,Bonn,,2.5\r\n70,Köln,3,3.5\r\n')
            read = cornu.data.csv(path, "price", missing="drop")
            self.assertEqual((len(read), read.categories),
                             (2, {"town": ["Halle, Saale", "Köln"]}))
            x, y = next(iter(read.batch(2)))
            np.testing.assert_array_equal(x, [[80, 1, 0, 2], [70, 0, 1, 3]])
            np.testing.assert_array_equal(y, np.float32([[1.5], [3.5]]))
            x, y = list(cornu.data.csv(path, "town", ["rooms", "area"], missing="keep").batch(3))[0]
            np.testing.assert_array_equal(x, [[2, 80], [np.nan, 60], [3, 70]])
            np.testing.assert_array_equal(y, np.int32([[1], [0], [2]]))
            x, = cornu.data.csv(path, columns=["town"], one_hot=False, missing="drop").skip(1)
            np.testing.assert_array_equal(x, [1])
            model = cornu.Sequential([cornu.layers.Dense(1)])
            model.compile("sgd", "mse")
            model.fit(read.shuffle(2, seed=1).batch(2), verbose=0)
            with self.assertRaisesRegex(cornu.errors.ValueError, "line 3, column rooms: the value"):
                cornu.data.csv(path)
            with self.assertRaisesRegex(cornu.errors.ArgumentError, "did you mean \"price\"?"):
                cornu.data.csv(path, "prise", missing="drop")
            with self.assertRaisesRegex(ValueError, "missing is 'no', expected None"):
                cornu.data.csv(path, missing="no")
            with self.assertRaisesRegex(ValueError, "delimiter is '', expected one character"):
                cornu.data.csv(path, delimiter="")

    def test_tar(self):
        d = cornu.data
        read = d.tar(golden("tars", "pax.tar"), {
            "jpg;png": d.ImageFeature((8, 10, 3), resize=True),
            "cls": d.FixedLenFeature((), "int32"), "npy": d.FixedLenFeature((2, 3), "float32"),
            "json:box.w": d.FixedLenFeature((), "float64"), "txt": d.BytesFeature(16, count="n")})
        for i, e in enumerate(read):
            self.assertEqual((int(e["cls"]), float(e["json:box.w"])), (3 * i - 2, i / 2))
            self.assertEqual(bytes(e["txt"][:e["n"]]), ("text " + "é" * i).encode())
            self.assertEqual(e["jpg;png"].shape, (8, 10, 3))
        self.assertEqual(len(read), 5)

    def test_written(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("a.tfrecord", "a.tfrecord.gz"):
                path = os.path.join(folder, name)
                with cornu.data.TFRecordWriter(path) as writer:
                    for i in range(3):
                        writer.write_example({"id": i, "x": np.ones((2, 2)) * i, "s": "é" * i,
                                              "u": np.uint8([i, 255])})
                read = cornu.data.tfrecord(path, {
                    "id": cornu.data.FixedLenFeature((), "int64"),
                    "x": cornu.data.FixedLenFeature((2, 2), "float32"),
                    "s": cornu.data.BytesFeature(8, count="n"),
                    "u": cornu.data.FixedLenFeature(2, "uint8")})
                for i, e in enumerate(read):
                    self.assertEqual((e["id"], e["n"], e["u"].tolist()), (i, 2 * i, [i, 255]))
                    np.testing.assert_array_equal(e["x"], np.full((2, 2), i))

    def test_fit(self):
        rng = np.random.default_rng(1)
        x = rng.uniform(-1, 1, (300, 2)).astype("float32")
        y = (x[:, 0] > x[:, 1]).astype("int64")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.tfrecord")
            with cornu.data.TFRecordWriter(path) as writer:
                for i in range(300):
                    writer.write_example({"x": x[i], "y": y[i]})
            np.save(os.path.join(folder, "x.npy"), x)
            np.save(os.path.join(folder, "y.npy"), y)
            read = cornu.data.tfrecord(path, {"y": cornu.data.FixedLenFeature((), "int64"),
                                              "x": cornu.data.FixedLenFeature(2, "float32")})
            arrays = cornu.data.npy(os.path.join(folder, "x.npy"), os.path.join(folder, "y.npy"))
            train = [read.to_tuple("x", "y"), arrays]
            weights = []
            for data in train:
                cornu.set_random_seed(3)
                model = cornu.Sequential([cornu.Input((2,)), cornu.layers.Dense(2, "softmax")])
                model.compile(cornu.optimizers.Adam(0.1), "sparse_categorical_crossentropy",
                              metrics=["accuracy"])
                history = model.fit(data.shuffle(seed=4).batch(32), epochs=6, verbose=0,
                                    validation_data=data.batch(50))
                weights.append(model.get_weights())
                self.assertGreater(history.history["val_accuracy"][-1], 0.9)
                loss, accuracy = model.evaluate(data.batch(64), verbose=0)
                self.assertEqual(accuracy, history.history["val_accuracy"][-1])
                np.testing.assert_allclose(model.predict(data.batch(64)),
                                           model.predict(x, verbose=0), rtol=1e-6)
            for a, b in zip(*weights):
                np.testing.assert_array_equal(a, b)

    def test_inputs_by_name(self):
        a, b = cornu.Input((2,), name="a"), cornu.Input((3,), name="b")
        model = cornu.Model([a, b], cornu.layers.Dense(1)(cornu.layers.Concatenate()([a, b])))
        model.compile("sgd", "mse")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.tfrecord")
            with cornu.data.TFRecordWriter(path) as writer:
                for i in range(8):
                    writer.write_example({"a": [0.5, i], "b": [1.0, 2, 3], "y": float(i)})
            d = cornu.data
            read = d.tfrecord(path, {"y": d.FixedLenFeature(1, "float32"),
                                     "b": d.FixedLenFeature(3, "float32"),
                                     "a": d.FixedLenFeature(2, "float32")})
            model.fit(read.to_tuple(["a", "b"], "y").batch(4), verbose=0)
            with self.assertRaisesRegex(ValueError, "no entry 'c'"):
                read.to_tuple("c")

    def test_failures(self):
        read = cornu.data.tfrecord(golden("tfrecords", "features.tfrecord"),
                                   {"absent": cornu.data.FixedLenFeature((), "int64")})
        with self.assertRaisesRegex(ValueError, 'record 0 at byte 0: feature "absent": is missing'):
            next(iter(read))
        with self.assertRaisesRegex(OSError, "absent.tfrecord"):
            cornu.data.tfrecord("absent.tfrecord", features())
        with self.assertRaisesRegex(TypeError, "expected a feature"):
            cornu.data.tfrecord("absent.tfrecord", {"a": "int64"})
        with self.assertRaisesRegex(NotImplementedError, "complex.npy: has dtype '<c8'"):
            cornu.data.npy(golden("arrays", "complex.npy"))
        with self.assertRaisesRegex(ValueError, "expected a buffer_size"):
            cornu.data.tfrecord(golden("tfrecords", "features.tfrecord.gz"), features()).shuffle()


if __name__ == "__main__":
    unittest.main()
