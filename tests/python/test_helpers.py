"""Helpers of programs: images, folders, data sets, files, graphs, bars and meshes; beside Keras
where it is installed."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import pickle
import shutil
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np

import cornu
from cornu import utils

RNG = np.random.default_rng(0)


class Folder(unittest.TestCase):
    """A folder of its own for each test, which is Keras' home, too."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        patch = mock.patch.dict(os.environ, {"KERAS_HOME": self.folder})
        patch.start()
        self.addCleanup(patch.stop)
        os.environ.pop("CORNU_DATA", None)      # which the patch restores

    def path(self, *names):
        path = os.path.join(self.folder, *names)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def images(self):
        """Two classes of five images."""
        for name, shape in (("a", (20, 30, 3)), ("b", (33, 17, 3))):
            for i in range(5):
                utils.save_img(self.path("pets", name, "%d.png" % i),
                               np.random.default_rng(i).integers(0, 256, shape), scale=False)
        return os.path.join(self.folder, "pets")


class Images(Folder):
    def test_png_files_keep_the_pixels(self):
        for channels in (1, 3):
            x = RNG.integers(0, 256, (7, 5, channels)).astype(np.uint8)
            utils.save_img(self.path("x.png"), x, scale=False)
            mode = "rgb" if channels == 3 else "grayscale"
            found = utils.load_img(self.path("x.png"), color_mode=mode)
            self.assertEqual((found.size, found.mode), ((5, 7), {1: "L", 3: "RGB"}[channels]))
            np.testing.assert_array_equal(utils.img_to_array(found), x)
            self.assertEqual(utils.img_to_array(found, "channels_first").shape, (channels, 7, 5))

    def test_arrays_are_scaled_as_keras_does(self):
        x = np.array([[[-1.0], [0.0], [3.0]]])
        np.testing.assert_array_equal(np.asarray(utils.array_to_img(x)), [[0, 63, 255]])
        with self.assertRaisesRegex(ValueError, "2 channels, expected 1, 3 or 4"):
            utils.array_to_img(np.zeros((2, 2, 2)))

    def test_resizing(self):
        utils.save_img(self.path("x.png"), np.array([[[0], [100]], [[200], [40]]]), scale=False)
        found = utils.load_img(self.path("x.png"), "grayscale", (4, 4))
        np.testing.assert_array_equal(np.asarray(found)[::2, 1:3], [[0, 100], [200, 40]])
        # The mean of four pixels; rounded after each axis.
        found = utils.load_img(self.path("x.png"), "grayscale", (1, 1), "box")
        self.assertEqual(np.asarray(found).item(), 85)
        with self.assertRaisesRegex(ValueError, "interpolation is 'cubic', expected one of near"):
            utils.load_img(self.path("x.png"), target_size=(3, 3), interpolation="cubic")
        x = cornu.preprocessing.image.smart_resize(np.arange(8.0).reshape(2, 4, 1), (2, 2))
        np.testing.assert_array_equal(x[..., 0], [[1, 2], [5, 6]])    # the centre

    def test_formats_and_channels(self):
        files = os.path.join(os.path.dirname(__file__), "..", "golden", "image_files")
        for name, mode, shape, dtype in (
                ("deep.png", "grayscale", (5, 7), np.uint16),
                ("deep.png", "rgb", (5, 7, 3), np.uint8),
                ("palette.gif", "rgb", (5, 7, 3), np.uint8),
                ("rgb.bmp", "rgba", (5, 7, 4), np.uint8),
                ("clear.gif", "rgba", (5, 7, 4), np.uint8),
                ("turned6.jpg", "rgb", (16, 8, 3), np.uint8),
                ("ct.dcm", "grayscale", (5, 7), np.uint8)):
            pixels = np.asarray(utils.load_img(os.path.join(files, name), mode))
            self.assertEqual((pixels.shape, pixels.dtype), (shape, dtype), name)
        deep = utils.load_img(os.path.join(files, "deep.png"), "grayscale")
        deep.save(self.path("deep.png"))
        again = utils.load_img(self.path("deep.png"), "grayscale", (5, 7))
        self.assertEqual((again.mode, again.size), ("I;16", (7, 5)))
        np.testing.assert_array_equal(np.asarray(again), np.asarray(deep))
        with self.without_pillow():
            deep = utils.load_img(os.path.join(files, "deep.png"), "grayscale")
        np.testing.assert_array_equal(np.asarray(deep.convert("L")), np.asarray(deep) >> 8)

    def without_pillow(self):
        return mock.patch.dict(sys.modules, {"PIL": None, "PIL.Image": None})

    def test_images_are_those_of_pillow_where_it_is(self):
        x = RNG.integers(0, 256, (7, 5, 4)).astype(np.uint8)
        with self.without_pillow():
            self.assertIs(type(utils.array_to_img(x)), utils.Image)
        if importlib.util.find_spec("PIL") is None:
            self.skipTest("Pillow: CORNU_PYTHON=an interpreter with pillow")
        from PIL import Image, ImageOps
        utils.save_img(self.path("x.jpg"), x)       # which has no alpha
        found = utils.load_img(self.path("x.jpg"), target_size=(14, 10))
        self.assertIsInstance(found, Image.Image)
        self.assertEqual((found.mode, found.size), ("RGB", (10, 14)))
        self.assertEqual(found.resize((5, 7), Image.BICUBIC).size, (5, 7))
        grey = ImageOps.autocontrast(utils.array_to_img(x[..., :1]))
        self.assertEqual((grey.mode, grey.getextrema()), ("L", (0, 255)))

    def test_a_file_that_is_no_image(self):
        with open(self.path("x.png"), "w") as file:
            file.write("text")
        with self.assertRaises(ValueError):
            utils.load_img(self.path("x.png"))
        with self.assertRaises(OSError):
            utils.load_img(self.path("none.png"))
        with self.without_pillow(), self.assertRaisesRegex(ValueError, "expected png"):
            utils.save_img(self.path("x.jpg"), np.zeros((2, 2, 3)))


class Batches(unittest.TestCase):
    def test_datasets(self):
        data = utils.Dataset.from_tensor_slices((np.arange(7), np.arange(7) * 2))
        batches = list(data.map(lambda x, y: (x + 1, y)).batch(3))
        self.assertEqual([b[0].tolist() for b in batches], [[1, 2, 3], [4, 5, 6], [7]])
        self.assertEqual(len(data.batch(3)), 3)
        self.assertEqual(len(data.batch(3, drop_remainder=True)), 2)
        self.assertEqual([int(x) for x, _ in data.take(5).skip(3)], [3, 4])
        self.assertEqual(sorted(int(x) for x, _ in data.shuffle(3, seed=1)), list(range(7)))
        self.assertEqual([int(x) for x, _ in data.filter(lambda x, y: x % 3 == 0)], [0, 3, 6])
        self.assertEqual([int(x) for x, _ in data.batch(4).unbatch()], list(range(7)))
        self.assertEqual(len(list(data.repeat(2))), 14)
        self.assertEqual([i for i, _ in data.cache().enumerate(2)][-1], 8)
        self.assertEqual(len(utils.Dataset.zip(data, data.take(2))), 2)
        self.assertEqual(data.filter(lambda x, y: True).cardinality(), -2)
        with self.assertRaisesRegex(ValueError, "2 and 3 rows"):
            utils.Dataset.from_tensor_slices((np.arange(2), np.arange(3)))

    def test_elements_are_arrays_as_tensors_are(self):
        texts = utils.Dataset.from_tensor_slices((["a", "b"], [0, 1])).batch(2)
        for text, label in texts.take(1):
            self.assertEqual(text.numpy()[1], "b")
            self.assertEqual(label.numpy().tolist(), [0, 1])
        for x in utils.Dataset.from_tensor_slices(np.arange(2)):
            self.assertEqual(x.numpy().shape, ())

    def test_a_model_trains_on_one(self):
        model = cornu.Sequential([cornu.Input((2,)), cornu.layers.Dense(1)])
        model.compile("sgd", "mse")
        x = RNG.standard_normal((20, 2)).astype(np.float32)
        data = utils.Dataset.from_tensor_slices((x, x[:, :1])).shuffle(20).batch(8).prefetch()
        history = model.fit(data, epochs=2, validation_data=data, verbose=0)
        self.assertEqual(len(history.history["val_loss"]), 2)

    def test_split(self):
        left, right = utils.split_dataset(np.arange(10), left_size=0.8)
        self.assertEqual([int(x) for x in right], [8, 9])
        left, right = utils.split_dataset((np.arange(10), np.arange(10)), right_size=3,
                                          shuffle=True, seed=1)
        self.assertEqual(sorted(int(x) for part in (left, right) for x, _ in part),
                         list(range(10)))
        for sizes in ({}, {"left_size": 1.5}, {"left_size": 8, "right_size": 4}):
            with self.assertRaisesRegex(ValueError, "split_dataset: "):
                utils.split_dataset(np.arange(10), **sizes)

    def test_timeseries(self):
        data = np.arange(10.0)
        (x, y), = utils.timeseries_dataset_from_array(data, data + 100, 3, sequence_stride=2,
                                                      sampling_rate=2)
        np.testing.assert_array_equal(x, [[0, 2, 4], [2, 4, 6], [4, 6, 8]])
        np.testing.assert_array_equal(y, [100, 102, 104])
        with self.assertRaisesRegex(ValueError, "sequence_length is 10, expected 1 to 9"):
            utils.timeseries_dataset_from_array(data, None, 10)

    def test_sequences_of_ones_own(self):
        class Data(utils.Sequence):
            def __init__(self):
                super().__init__(workers=2)
                self.ended = 0

            def __len__(self):
                return 3

            def __getitem__(self, i):
                return np.ones((2, 2)), np.zeros((2, 1))

            def on_epoch_end(self):
                self.ended += 1

        data = Data()
        model = cornu.Sequential([cornu.Input((2,)), cornu.layers.Dense(1)])
        model.compile("sgd", "mse")
        model.fit(data, epochs=2, verbose=0)
        self.assertEqual((data.num_batches, data.ended), (3, 2))

    def test_small_helpers(self):
        np.testing.assert_allclose(utils.normalize([[3.0, 4.0], [0, 0]]), [[0.6, 0.8], [0, 0]])
        self.assertEqual(utils.unpack_x_y_sample_weight((1, 2)), (1, 2, None))
        self.assertEqual(utils.pack_x_y_sample_weight(1, 2), (1, 2))
        utils.set_random_seed(5)
        first = np.random.rand()
        utils.set_random_seed(5)
        self.assertEqual(np.random.rand(), first)


class Directories(Folder):
    def test_images(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            data = utils.image_dataset_from_directory(self.images(), image_size=(8, 6),
                                                      batch_size=4, shuffle=False)
        self.assertEqual(out.getvalue(), "Found 10 files belonging to 2 classes.\n")
        self.assertEqual((data.class_names, len(data)), (["a", "b"], 3))
        self.assertEqual([y.tolist() for _, y in data], [[0] * 4, [0] + [1] * 3, [1] * 2])
        x, _ = next(iter(data))
        self.assertEqual((x.shape, x.dtype), ((4, 8, 6, 3), np.float32))
        both = utils.image_dataset_from_directory(self.images(), validation_split=0.3, seed=1,
                                                  subset="both", verbose=False, label_mode="binary")
        self.assertEqual([len(part.file_paths) for part in both], [7, 3])
        self.assertFalse(set(both[0].file_paths) & set(both[1].file_paths))

    def test_texts(self):
        for i, text in enumerate(("one two", "three", "four")):
            with open(self.path("texts", "ab"[i % 2], "%d.txt" % i), "w") as file:
                file.write(text)
        data = utils.text_dataset_from_directory(self.path("texts"), shuffle=False, verbose=False,
                                                 max_length=5, label_mode="categorical")
        (x, y), = data
        self.assertEqual(list(x), [b"one t", b"four", b"three"])
        np.testing.assert_array_equal(y, [[1, 0], [1, 0], [0, 1]])
        words = cornu.layers.TextVectorization()
        words.adapt(data.map(lambda x, y: x))
        self.assertIn("four", words.get_vocabulary())

    def test_sounds(self):
        golden = os.path.join(os.path.dirname(__file__), "..", "golden", "sounds")
        for i, name in enumerate(("i16", "f32", "i24")):
            shutil.copy(os.path.join(golden, name + ".wav"),
                        self.path("sounds", "ab"[i % 2], name + ".wav"))
        data = utils.audio_dataset_from_directory(self.path("sounds"), shuffle=False,
                                                  output_sequence_length=50, verbose=False)
        (x, y), = data
        self.assertEqual((x.shape, x.dtype, list(y)), ((3, 50, 1), np.float32, [0, 0, 1]))
        np.testing.assert_array_equal(x[0, :3, 0], np.float32([-1, 32767 / 32768, 0]))
        self.assertFalse(np.any(x[:, 40:]))
        (x, y), _ = utils.audio_dataset_from_directory(self.path("sounds"), shuffle=False,
                                                       batch_size=2, verbose=False)
        self.assertEqual(x.shape, (2, 40, 1))
        with self.assertRaisesRegex(ValueError, "i24.wav has 44100 samples a second, expected 16"):
            list(utils.audio_dataset_from_directory(self.path("sounds"), sampling_rate=16000,
                                                    shuffle=False, verbose=False))

    def test_errors(self):
        for given, text in (({"labels": "inferred", "class_names": ["z"]}, "expected some of the"),
                            ({"label_mode": "float"}, "label_mode is 'float'"),
                            ({"validation_split": 0.2}, "subset is None with validation_split"),
                            ({"labels": [1, 2]}, "2 labels for the 10 files")):
            with self.assertRaisesRegex(ValueError, text):
                utils.image_dataset_from_directory(self.images(), verbose=False, **given)
        with self.assertRaisesRegex(ValueError, "no file in .* that ends in .txt"):
            utils.text_dataset_from_directory(self.images(), verbose=False)


class Files(Folder):
    def test_get_file(self):
        source = self.path("source.txt")
        with open(source, "w") as file:
            file.write("text")
        address = pathlib.Path(source).as_uri()
        found = utils.get_file("a.txt", address, md5_hash="1cb251ec0d568de6a929b520c4aed8d1")
        self.assertEqual(found, self.path("datasets", "a.txt"))
        os.remove(source)
        self.assertEqual(utils.get_file("a.txt", address), found)      # from the cache
        with self.assertRaisesRegex(OSError, "b.txt is neither there nor could it be fetched from "
                                    "http://127.0.0.1:1/b.txt .*put the file there by hand"):
            utils.get_file(origin="http://127.0.0.1:1/b.txt")
        with self.assertRaisesRegex(ValueError, "expected a name without a folder"):
            utils.get_file("a/b", address)

    def test_archives(self):
        with open(self.path("packed", "in.txt"), "w") as file:
            file.write("text")
        for kind, ending in (("gztar", ".tar.gz"), ("zip", ".zip")):
            packed = shutil.make_archive(self.path("x-" + kind), kind, self.path("packed", ""))
            found = utils.get_file("data%s" % ending, pathlib.Path(packed).as_uri(), extract=True)
            self.assertEqual(found, self.path("datasets", "data_extracted"))
            self.assertEqual(os.listdir(found), ["in.txt"])
            shutil.rmtree(found)
        import tarfile
        with tarfile.open(self.path("bad.tar"), "w") as tar:
            tar.add(self.path("packed", "in.txt"), "../out.txt")
        with self.assertRaisesRegex(ValueError, "expected files below its folder"):
            utils.get_file("bad.tar", pathlib.Path(self.path("bad.tar")).as_uri(), extract=True)


def rows(count, seed=0):
    """An array of lists of words."""
    rng, made = np.random.default_rng(seed), np.empty(count, object)
    for i in range(count):
        made[i] = [int(w) for w in rng.integers(1, 50, rng.integers(3, 12))]
    return made


class Datasets(Folder):
    """Files as Keras keeps them."""

    def write(self, rows_of_cifar10=20):
        def save(name, **arrays):
            np.savez(self.path("datasets", name + ".npz"), **arrays)
        rng = np.random.default_rng(1)
        save("imdb", x_train=rows(20), y_train=rng.integers(0, 2, 20), x_test=rows(10, 1),
             y_test=rng.integers(0, 2, 10))
        save("reuters", x=rows(30), y=rng.integers(0, 46, 30))
        for name, columns in (("boston_housing", 13), ("california_housing", 8)):
            save(name, x=rng.standard_normal((700, columns)), y=rng.standard_normal(700))
        save("mnist", x_train=rng.integers(0, 256, (9, 28, 28)).astype(np.uint8),
             y_train=np.arange(9, dtype=np.uint8),
             x_test=np.zeros((4, 28, 28), np.uint8), y_test=np.arange(4, dtype=np.uint8))
        for folder, names, labels in (
                ("10-batches-py", ["data_batch_%d" % i for i in range(1, 6)] + ["test_batch"],
                 [b"labels"]), ("100-python", ["train", "test"], [b"fine_labels",
                                                                  b"coarse_labels"])):
            count = rows_of_cifar10 if "10-" in folder else 20
            for name in names:
                part = {b"data": rng.integers(0, 256, (count, 3072)).astype(np.uint8)}
                part.update({label: [int(v) for v in rng.integers(0, 10, count)]
                             for label in labels})
                with open(self.path("datasets", "cifar-%s-target" % folder, "cifar-" + folder,
                                    name), "wb") as file:
                    pickle.dump(part, file, 4)
            with open(self.path("datasets", "cifar-%s-target_archive" % folder), "wb"):
                pass
        with open(self.path("datasets", "imdb_word_index.json"), "w") as file:
            json.dump({"film": 1}, file)

    CALLS = [("imdb", {}), ("imdb", {"num_words": 30, "skip_top": 3, "maxlen": 10,
                                     "oov_char": None}),
             ("imdb", {"start_char": None, "index_from": 0, "num_words": 20}), ("reuters", {}),
             ("reuters", {"num_words": 30, "maxlen": 9}), ("boston_housing", {}),
             ("california_housing", {"version": "small", "test_split": 0.3}), ("mnist", {}),
             ("cifar100", {"label_mode": "coarse"}), ("cifar10", {})]

    def test_shapes(self):
        self.write()
        with mock.patch("cornu.utils.files._matches", lambda *_: True):
            found = {name: getattr(cornu.datasets, name).load_data()
                     for name in dict(self.CALLS)}
        self.assertEqual(found["cifar10"][0][0].shape, (100, 32, 32, 3))
        self.assertEqual(found["cifar10"][1][1].shape, (20, 1))
        self.assertEqual([len(x) for x, _ in found["imdb"]], [20, 10])
        self.assertEqual([row[0] for row in found["imdb"][0][0]], [1] * 20)
        self.assertEqual([len(x) for x, _ in found["reuters"]], [24, 6])
        self.assertEqual(found["boston_housing"][0][0].shape, (560, 13))
        self.assertEqual(found["mnist"][0][1].tolist(), list(range(9)))
        self.assertEqual(cornu.datasets.imdb.get_word_index(), {"film": 1})
        self.assertEqual(len(cornu.datasets.reuters.get_label_names()), 46)

    def test_without_a_file_and_a_network(self):
        with mock.patch("urllib.request.urlopen", side_effect=OSError("no network")):
            for name in ("imdb", "cifar10", "boston_housing"):
                with self.assertRaisesRegex(OSError, r"datasets/.* could it be fetched from "
                                            r"https://.* \(no network\); without a network put"):
                    getattr(cornu.datasets, name).load_data()
        with self.assertRaisesRegex(FileNotFoundError, "no /none/imdb.npz; the file is at https"):
            cornu.datasets.imdb.load_data("/none/imdb.npz")

    def test_files_run_no_code(self):
        class Harm:
            def __reduce__(self):
                return os.system, ("true",)
        bad = np.empty(1, object)
        bad[0] = Harm()
        np.savez(self.path("bad.npz"), x=bad, y=np.zeros(1))
        with self.assertRaisesRegex(pickle.UnpicklingError, "expected arrays alone"):
            cornu.datasets.reuters.load_data(self.path("bad.npz"))


class Graphs(Folder):
    def model(self):
        x = cornu.Input((4,), name="in")
        a = cornu.layers.Dense(3, activation="relu", name="a")(x)
        inner = cornu.Sequential([cornu.Input((3,)), cornu.layers.Dense(2, name="deep")],
                                 name="inner")
        y = cornu.layers.Concatenate(name="join")([inner(a), cornu.layers.Dense(1, name="b")(x)])
        return cornu.Model(x, y, name="two paths")

    def test_text(self):
        text = str(utils.model_to_dot(self.model(), show_shapes=True, show_layer_activations=True))
        for edge in ('"in" -> "a"', '"a" -> "inner"', '"in" -> "b"', '"inner" -> "join"',
                     '"b" -> "join"'):
            self.assertIn(edge + ";", text)
        self.assertIn("<tr><td>activation: relu</td></tr>", text)
        self.assertIn("<tr><td>output: (None, 3)</td></tr>", text)
        text = str(utils.model_to_dot(self.model(), expand_nested=True))
        self.assertIn('subgraph "cluster_inner"', text)
        self.assertIn('-> "inner/deep";', text)
        self.assertRegex(text, r'"inner/deep" -> "join";')

    def test_pictures(self):
        utils.plot_model(self.model(), self.path("m.dot"))
        with open(self.path("m.dot")) as file:
            self.assertTrue(file.read().startswith('digraph "two paths" {'))
        if shutil.which("dot"):
            utils.plot_model(self.model(), self.path("m.png"), show_shapes=True)
            self.assertEqual(utils.load_img(self.path("m.png")).mode, "RGB")
        with mock.patch("shutil.which", lambda _: None):
            with self.assertRaisesRegex(ImportError, "dot is not installed: apt-get install graph"):
                utils.plot_model(self.model(), self.path("m.png"))
        with self.assertRaisesRegex(ValueError, "is not built"):
            utils.model_to_dot(cornu.Sequential([cornu.layers.Dense(1)]))


class Bars(unittest.TestCase):
    def test_lines(self):
        with contextlib.redirect_stdout(io.StringIO()) as out, mock.patch(
                "time.time", side_effect=[100.0, 101.0, 103.0]):
            bar = utils.Progbar(20, verbose=2)
            bar.update(5, [("loss", 2.0)])
            bar.add(15, [("loss", 1.0), ("acc", 1e-4)])
        self.assertEqual(out.getvalue(),
                         "20/20 - 3s - 150ms/step - loss: 1.0000 - acc: 1.0000e-04\n")

    def test_bar(self):
        with contextlib.redirect_stdout(io.StringIO()) as out, mock.patch(
                "time.time", side_effect=[100.0, 101.0, 103.0]):
            bar = utils.Progbar(4, width=4)
            bar.update(1, [("loss", 2.0)])
            bar.update(2, [("loss", 1.0)])
        last = out.getvalue().rpartition("\r")[2]
        self.assertEqual(last, "\x1b[1m2/4\x1b[0m \x1b[32m━━\x1b[0m\x1b[37m━━\x1b[0m "
                         "\x1b[1m4s\x1b[0m 2s/step - loss: 1.5000")


class Distribution(unittest.TestCase):
    def losses(self, distribution=None):
        cornu.clear_session()
        cornu.set_random_seed(3)
        model = cornu.Sequential([cornu.Input((8,)), cornu.layers.Dense(16, "relu"),
                                  cornu.layers.Dense(4)])
        if distribution is None:
            model.compile("adam", "mse")
        else:
            with distribution.scope():
                self.assertIs(cornu.distribution.distribution(), distribution)
                model.compile("adam", "mse")
        rng = np.random.default_rng(0)
        x, y = (rng.standard_normal((32, n)).astype(np.float32) for n in (8, 4))
        return model.fit(x, y, epochs=2, batch_size=16, shuffle=False, verbose=0).history["loss"]

    def test_meshes_train_as_without(self):
        d, alone = cornu.distribution, self.losses()
        layout_map = d.LayoutMap(d.DeviceMesh((2, 4), ["batch", "model"]))
        layout_map["dense/kernel"] = (None, "model")
        layout_map["dense_1/kernel"] = d.TensorLayout(["model", None])
        for distribution in (d.ModelParallel(layout_map=layout_map), d.DataParallel(),
                             d.DataParallel(d.DeviceMesh((4,), ["data"]))):
            np.testing.assert_allclose(self.losses(distribution), alone, rtol=1e-5)
        d.set_distribution(d.ModelParallel(layout_map=layout_map))
        try:
            np.testing.assert_allclose(self.losses(), alone, rtol=1e-5)
        finally:
            d.set_distribution(None)
        self.assertIsNone(d.distribution())

    def test_layouts_of_no_weight_are_ignored(self):
        d, alone = cornu.distribution, self.losses()
        layout_map = d.LayoutMap(d.DeviceMesh((2, 2), ["batch", "model"]))
        layout_map["dense/kernel"] = (None, "model")
        layout_map["d1/bias"] = ("model",)
        layout_map["d1/output"] = ("batch", "model")
        with self.assertWarnsRegex(UserWarning, "d1/bias, d1/output: no weight or output"):
            cut = self.losses(d.ModelParallel(layout_map=layout_map))
        np.testing.assert_allclose(cut, alone, rtol=1e-5)

    def test_pipelines_accumulate(self):
        """As on whole batches; with a mesh the same bits for any stages and schedule."""
        d, alone = cornu.distribution, self.losses()
        layout_map = d.LayoutMap(d.DeviceMesh((2, 2), ["batch", "model"]))
        layout_map["dense/kernel"] = (None, "model")
        for cut in ({}, {"layout_map": layout_map},
                    {"layout_map": layout_map, "fully_sharded": True}):
            one = self.losses(d.PipelineParallel(1, 4, **cut))
            np.testing.assert_allclose(one, alone, rtol=1e-5)
            for schedule in ("gpipe", "1f1b"):
                self.assertEqual(self.losses(d.PipelineParallel(2, 4, schedule, **cut)), one)

    def test_errors(self):
        d = cornu.distribution
        mesh = d.DeviceMesh((2, 4), ["batch", "model"])
        for text, function in (
                ("a name for each", lambda: d.DeviceMesh((2, 4), ["batch"])),
                ("3 devices are given for the shape", lambda: d.DeviceMesh(
                    (2,), ["batch"], ["cpu:%d" % i for i in range(3)])),
                ("has the axes .*'row'", lambda: d.LayoutMap(mesh).__setitem__("x", ("row",))),
                ("expected a LayoutMap", lambda: d.ModelParallel()),
                ("schedule is 'zigzag'", lambda: d.PipelineParallel(2, 4, "zigzag")),
                (".stages is 0, expected 1 to 32", lambda: d.PipelineParallel(0, 4)),
                ("fully_sharded is for a mesh", lambda: d.PipelineParallel(
                    2, 4, fully_sharded=True)),
                ("expected one axis", lambda: d.DataParallel(mesh))):
            with self.assertRaisesRegex(ValueError, text):
                function()


class Keras(Datasets):
    """The same calls of Keras itself."""

    @classmethod
    def setUpClass(cls):
        try:
            import keras
        except ImportError:
            raise unittest.SkipTest("Keras: CORNU_PYTHON=an interpreter with keras") from None
        cls.keras = keras

    def test_images_to_the_byte(self):
        if importlib.util.find_spec("PIL") is None:
            self.skipTest("Pillow: CORNU_PYTHON=an interpreter with pillow")
        path = os.path.join(self.images(), "a", "0.png")
        for mode in ("rgb", "grayscale"):
            for method in ("nearest", "bilinear", "bicubic", "lanczos", "box", "hamming"):
                for size in (None, (10, 12), (50, 40)):
                    for keep in (False, True):
                        a, b = (np.asarray(k.utils.load_img(path, mode, size, method, keep))
                                for k in (self.keras, cornu))
                        np.testing.assert_array_equal(a, b, (mode, method, size, keep))

    def test_16_bits(self):
        if importlib.util.find_spec("PIL") is None:
            self.skipTest("Pillow: CORNU_PYTHON=an interpreter with pillow")
        path = os.path.join(os.path.dirname(__file__), "..", "golden", "image_files", "deep.png")
        for size, method in ((None, "nearest"), ((3, 4), "nearest"), ((3, 4), "bilinear"),
                             ((9, 8), "bicubic")):
            a, b = (np.asarray(k.utils.load_img(path, "grayscale", size, method))
                    for k in (self.keras, cornu))
            np.testing.assert_array_equal(a, b, (size, method))

    def test_folders(self):
        for given in ({"subset": "training"}, {"subset": "validation"}):
            a, b = (k.utils.image_dataset_from_directory(
                self.images(), seed=7, validation_split=0.3, verbose=False, **given)
                for k in (self.keras, cornu))
            self.assertEqual((a.class_names, a.file_paths), (b.class_names, b.file_paths))
        for given in ({}, {"crop_to_aspect_ratio": True}, {"interpolation": "bicubic"}):
            (a, _), (b, _) = ([np.asarray(part) for part in next(iter(
                k.utils.image_dataset_from_directory(self.images(), shuffle=False, verbose=False,
                                                     image_size=(16, 12), **given)))]
                for k in (self.keras, cornu))
            # TensorFlow tabulates bicubic weights.
            np.testing.assert_allclose(a, b, atol=0.2 if given.get("interpolation") else 1e-3)

    def test_shapes(self):
        """Data sets by each call; Keras reads CIFAR-10 of full size alone."""
        self.write(10000)
        with mock.patch("cornu.utils.files._matches", lambda *_: True), \
                mock.patch("keras.src.backend.config.keras_home", lambda: self.folder), \
                mock.patch("keras.src.utils.file_utils.validate_file", lambda *_, **__: True):
            for name, given in self.CALLS:
                for a, b in zip(getattr(self.keras.datasets, name).load_data(**given),
                                getattr(cornu.datasets, name).load_data(**given)):
                    for theirs, ours in zip(a, b):
                        self.assertEqual(theirs.dtype, ours.dtype, name)
                        np.testing.assert_array_equal(theirs, ours, name)

    def test_bars(self):
        for target, verbose in ((12, 1), (12, 2), (None, 1)):
            found = []
            for k in (self.keras, cornu):
                with contextlib.redirect_stdout(io.StringIO()) as out, mock.patch(
                        "time.time", side_effect=[100.0 + i * 0.7 for i in range(20)]):
                    bar = k.utils.Progbar(target, verbose=verbose, stateful_metrics=["acc"])
                    for i in range(1, 13):
                        bar.add(1, [("loss", 1.0 / i), ("acc", 0.1 * i)])
                found.append(out.getvalue())
            self.assertEqual(found[0], found[1])


if __name__ == "__main__":
    unittest.main()
