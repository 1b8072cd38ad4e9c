"""Layers that learn words before training, and helpers for data. Expected values are those of
Keras 3.15."""

import os
import random
import tempfile
import unittest

import numpy as np

import cornu
from cornu import layers as L, ops

from test_keras import needs_hdf5

SENTENCES = ["the cat sat", "the dog", "the cat"]
KERAS_PAIRS = ([[2, 1], [2, 8], [1, 2], [3, 5], [2, 8], [1, 2], [2, 3], [3, 2]],
               [[0, 1], [1, 0], [1, 0], [1, 0], [1, 0], [0, 1], [0, 1], [0, 1]])
KERAS_TABLE = [0.3152247875, 0.3152247875, 0.5475972694, 0.7415564097]


class Functions(unittest.TestCase):
    """Of the program's own, in the place of standardize and split."""

    def layer(self, **given):
        return L.TextVectorization(standardize=lambda s: np.char.lower(s.astype(bytes)),
                                   split=lambda s: np.char.split(s.astype(bytes), b"o"),
                                   output_sequence_length=3, **given)

    def test_they_standardize_and_split(self):
        layer = self.layer()
        layer.adapt(["HellO wOrld", "foo hello w"])
        self.assertEqual(layer.get_vocabulary(), ["", "[UNK]", " w", "rld", "hell", "f", " hell"])
        made = layer(["hell", "xof"])
        np.testing.assert_array_equal(made, [[4, 0, 0], [1, 5, 0]])
        self.assertEqual(made.dtype, np.int32)

    def test_a_model_of_strings_calls_them(self):
        layer = self.layer(vocabulary=["a", "b"])
        x = cornu.Input((1,), dtype="string")
        model = cornu.Model(x, layer(x))
        np.testing.assert_array_equal(model.predict(np.array([["BoA"], ["c"]]), verbose=0),
                                      [[3, 2, 0], [1, 0, 0]])

    def test_one_text_without_a_batch(self):
        layer = L.TextVectorization(output_sequence_length=3)
        layer.adapt(SENTENCES)
        for given in ("the dog", np.array("the dog"), b"the dog"):
            self.assertEqual(layer(given).tolist(), layer(["the dog"])[0].tolist())
        words = L.StringLookup(vocabulary=["a", "b"])
        self.assertEqual((words("b").shape, int(words("b"))), ((), 2))
        back = L.StringLookup(vocabulary=["a", "b"], invert=True)
        self.assertEqual(str(back(np.array(2))), "b")

    def test_what_they_raise_is_raised(self):
        def fails(strings):
            raise KeyError("here")
        with self.assertRaisesRegex(KeyError, "here"):
            L.TextVectorization(standardize=fails).adapt(["a"])
        with self.assertRaisesRegex(ValueError, "standardize adds 2 strings, expected 1"):
            L.TextVectorization(standardize=lambda s: np.array([b"a", b"b"])).adapt(["a"])


class Adapting(unittest.TestCase):
    def test_vocabularies(self):
        layer = L.TextVectorization(output_sequence_length=4)
        self.assertEqual(layer.get_vocabulary(), ["", "[UNK]"])
        layer.adapt(SENTENCES)
        words = ["the", "cat", "sat", "dog"]
        self.assertEqual(layer.get_vocabulary(), ["", "[UNK]"] + words)
        self.assertEqual(layer.get_vocabulary(include_special_tokens=False), words)
        self.assertEqual(layer.vocabulary_size(), 6)
        layer = L.TextVectorization(output_mode="multi_hot")
        layer.adapt(np.array(SENTENCES))
        self.assertEqual(layer.get_vocabulary(), ["[UNK]"] + words)
        layer = L.StringLookup(mask_token="", num_oov_indices=2)
        layer.adapt([["a", "b"], ["b", "c"]])
        self.assertEqual(layer.get_vocabulary(), ["", "[UNK]", "[UNK]", "b", "c", "a"])
        layer = L.IntegerLookup(mask_token=0)
        layer.adapt([[3, 4], [4, 5]])
        self.assertEqual(layer.get_vocabulary(), [0, -1, 4, 5, 3])
        self.assertEqual(layer.get_vocabulary(False), [4, 5, 3])
        layer = L.StringLookup()
        layer.set_vocabulary(["x", "y"])
        self.assertEqual(layer.get_vocabulary(), ["[UNK]", "x", "y"])

    def test_what_was_learnt_before_is_forgotten(self):
        layer = L.IntegerLookup()
        layer.adapt([[3, 4], [4, 5]])
        layer.adapt([[7, 8], [8, 8]])
        self.assertEqual(layer.get_vocabulary(), [-1, 8, 7])
        layer = L.StringLookup()
        layer.adapt(["a", "b"])
        layer.adapt(["c"])
        self.assertEqual(layer.get_vocabulary(), ["[UNK]", "c"])

    def test_batches(self):
        def batches():
            yield np.array(SENTENCES[:2])
            yield np.array(SENTENCES[2:])

        layer = L.TextVectorization()
        layer.adapt(batches())
        self.assertEqual(layer.get_vocabulary(False), ["the", "cat", "sat", "dog"])
        layer = L.TextVectorization()
        layer.adapt(batches(), steps=1)
        self.assertEqual(sorted(layer.get_vocabulary(False)), ["cat", "dog", "sat", "the"])

    def test_numbers(self):
        layer = L.Normalization()
        layer.adapt(np.array([[1.0, 2.0], [3.0, 6.0]]))
        x = cornu.Input((2,))
        np.testing.assert_allclose(cornu.Model(x, layer(x)).predict([[1.0, 6.0]], verbose=0),
                                   [[-1, 1]], atol=1e-6)
        layer = L.Discretization(num_bins=3)
        layer.adapt(np.arange(10.0))
        np.testing.assert_allclose(layer.get_config()["bin_boundaries"], [2.3333333, 5.6666665],
                                   rtol=1e-6)

    def test_layers_that_learn_nothing_have_no_adapt(self):
        self.assertFalse(hasattr(L.Dense, "adapt"))
        self.assertFalse(hasattr(L.Normalization, "get_vocabulary"))
        with self.assertRaisesRegex(ValueError, "vocabulary or adapt before it is used"):
            x = cornu.Input((), dtype="string")
            cornu.Model(x, L.StringLookup()(x)).predict(np.array(["a"]), verbose=0)


class FromTextToClasses(unittest.TestCase):
    texts = ["good film", "very good", "bad film", "very bad indeed", "good good", "bad bad bad"]
    classes = [1, 1, 0, 0, 1, 0]

    def model(self, shape):
        words = L.TextVectorization(output_sequence_length=4)
        words.adapt(self.texts)
        cornu.set_random_seed(1)
        model = cornu.Sequential([
            cornu.Input(shape, dtype="string"), words, L.Embedding(words.vocabulary_size(), 8),
            L.GlobalAveragePooling1D(), L.Dense(2, "softmax")])
        model.compile(cornu.optimizers.Adam(0.05), "sparse_categorical_crossentropy",
                      metrics=["accuracy"])
        return model

    def test_a_list_of_texts(self):
        model = self.model(())
        history = model.fit(self.texts * 8, self.classes * 8, epochs=8, verbose=0)
        self.assertEqual(history.history["accuracy"][-1], 1.0)
        found = model.predict(["good film", "bad"], verbose=0)
        self.assertEqual(list(found.argmax(1)), [1, 0])
        self.assertEqual(model.evaluate(self.texts, self.classes, verbose=0)[1], 1.0)

    def test_a_column_of_texts(self):
        model = self.model((1,))
        texts = np.array(self.texts).reshape(-1, 1)
        model.fit(np.tile(texts, (8, 1)), self.classes * 8, epochs=8, verbose=0)
        self.assertEqual(list(model.predict(texts, verbose=0).argmax(1)), self.classes)

    @needs_hdf5
    def test_files_have_the_vocabulary(self):
        model = self.model(())
        with tempfile.TemporaryDirectory() as folder:
            for name in ("model.keras", "model.safetensors"):
                path = os.path.join(folder, name)
                model.save(path)
                loaded = cornu.load(path)
                np.testing.assert_array_equal(loaded.predict(self.texts, verbose=0),
                                              model.predict(self.texts, verbose=0))
                self.assertEqual(loaded.layers[-4].get_vocabulary(),
                                 model.layers[-4].get_vocabulary())


class Helpers(unittest.TestCase):
    def test_to_categorical(self):
        f = cornu.utils.to_categorical
        np.testing.assert_array_equal(f([1, 0, 2]), [[0, 1, 0], [1, 0, 0], [0, 0, 1]])
        self.assertEqual((f([[1], [0]], 3).shape, f([[1, 2], [0, 1]]).shape), ((2, 3), (2, 2, 3)))
        self.assertEqual(f(np.array([1.0, 3.0])).dtype, np.float64)
        for classes in ([5], [-1]):
            with self.assertRaisesRegex(ValueError, "a class is %d, expected 0 to 2" % classes[0]):
                f(classes, 3)

    def test_skipgrams(self):
        f = cornu.preprocessing.sequence.skipgrams
        random.seed(1)
        pairs, labels = f([3, 0, 1, 2], 9, window_size=2, negative_samples=0)
        self.assertEqual(sorted(map(tuple, pairs)), [(1, 2), (1, 3), (2, 1), (3, 1)])
        self.assertEqual(labels, [1] * 4)
        random.seed(1)      # Keras', drawn as there
        self.assertEqual(f([1, 2, 3], 9, window_size=1, seed=4, categorical=True), KERAS_PAIRS)
        table = cornu.preprocessing.sequence.make_sampling_table(4, 0.1)
        np.testing.assert_allclose(table, KERAS_TABLE, rtol=1e-6)

    def test_pad_sequences(self):
        f = cornu.utils.pad_sequences
        found = f([[1, 2, 3], [4], []])
        np.testing.assert_array_equal(found, [[1, 2, 3], [0, 0, 4], [0, 0, 0]])
        self.assertEqual(found.dtype, np.int32)
        np.testing.assert_array_equal(f([[1, 2, 3], [4]], 2, padding="post", truncating="post",
                                        value=9), [[1, 2], [4, 9]])
        np.testing.assert_array_equal(f([[1, 2, 3], [4]], 2), [[2, 3], [0, 4]])
        np.testing.assert_array_equal(f([[[1, 2]], [[3, 4], [5, 6]]]),
                                      [[[0, 0], [1, 2]], [[3, 4], [5, 6]]])
        np.testing.assert_array_equal(f([["a"], ["b", "c"]], dtype=object, value="-"),
                                      [["-", "a"], ["b", "c"]])
        with self.assertRaisesRegex(ValueError, "sequence 0 is 3, expected a list"):
            f([3])
        with self.assertRaisesRegex(ValueError, "padding is 'x', expected 'pre' or 'post'"):
            f([[1]], padding="x")


if __name__ == "__main__":
    unittest.main()


VOCABULARY = list("abcdefghi")


class Quotients(cornu.layers.Layer):
    """Two small tables of vectors in the place of a large one, of words."""

    def __init__(self, dim=2, buckets=3, **kwargs):
        super().__init__(**kwargs)
        self.buckets = buckets
        self.places = L.StringLookup(vocabulary=VOCABULARY, mask_token=None, num_oov_indices=0)
        self.first, self.second = L.Embedding(buckets, dim), L.Embedding(buckets, dim)

    def call(self, x):
        place = self.places(x)
        return self.first(place // self.buckets) * self.second(place % self.buckets)


class Around(cornu.layers.Layer):
    """Such a layer within another one, beside numbers."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.words, self.dense = Quotients(), L.Dense(2)

    def call(self, given, training):
        words, numbers = given
        return self.words(ops.expand_dims(words, -1))[:, 0] + self.dense(numbers)


class Strings(unittest.TestCase):
    """Within operations, and calls of own layers."""

    def test_operations_that_move_elements(self):
        x, pairs = cornu.Input((), dtype="string"), cornu.Input((2,), dtype="string")
        lookup = L.StringLookup(vocabulary=["a", "b", "c"])
        joined = ops.flip(ops.concatenate([ops.expand_dims(x, -1), pairs], axis=-1), 1)
        self.assertEqual((joined.shape, joined.dtype), ((None, 3), "string"))
        model = cornu.Model([x, pairs], lookup(joined[:, :2]))
        given = [np.array(["a", "q", "c"]), np.array([["b", "c"], ["c", "a"], ["b", "x"]])]
        np.testing.assert_array_equal(model.predict(given, verbose=0), [[3, 2], [1, 3], [0, 2]])
        again = cornu.models.model_from_json(model.to_json())
        np.testing.assert_array_equal(again.predict(given, verbose=0), [[3, 2], [1, 3], [0, 2]])
        with self.assertRaisesRegex(cornu.errors.DtypeError, "has strings, expected numbers"):
            ops.exp(x)

    def test_operations_of_numbers_before_layers_of_the_host(self):
        x = cornu.Input((1,), dtype="int32")
        model = cornu.Model(x, L.Hashing(7)(ops.reshape(x, (-1,))))
        np.testing.assert_array_equal(model.predict(np.arange(4)[:, None], verbose=0),
                                      L.Hashing(7)(np.arange(4)))

    def test_operations_on_arrays(self):
        words = np.array(["a", "bb", "c"])
        self.assertEqual(ops.expand_dims(words, -1).tolist(), [["a"], ["bb"], ["c"]])
        self.assertEqual(ops.concatenate([words, ["x"]], 0).tolist(), ["a", "bb", "c", "x"])
        self.assertEqual(ops.stack([words, words], 1)[1].tolist(), ["bb", "bb"])
        self.assertEqual(ops.equal(words, "bb").tolist(), [False, True, False])
        self.assertEqual(ops.cast(words, "string").tolist(), ["a", "bb", "c"])
        with self.assertRaisesRegex(TypeError, "expected an array of numbers"):
            ops.exp(words)

    def test_own_layers_look_words_up(self):
        words, numbers = cornu.Input((), dtype="string"), cornu.Input((2,))
        layer = Around()
        model = cornu.Model([words, numbers], L.Dense(1)(layer([words, numbers])))
        given = [np.array(VOCABULARY * 2), np.random.default_rng(0).random((18, 2), "float32")]
        first, second, kernel, bias = [w.numpy() for w in layer.weights]
        places = np.arange(18) % 9
        wanted = first[places // 3] * second[places % 3] + given[1] @ kernel + bias
        np.testing.assert_allclose(layer(given), wanted, atol=1e-6)
        model.compile("adam", "mse")
        losses = model.fit(given, given[1][:, :1], epochs=20, verbose=0).history["loss"]
        self.assertLess(losses[-1], losses[0])
        self.assertGreater(np.abs(layer.weights[0].numpy() - first).max(), 1e-3)

    @needs_hdf5
    def test_files_have_own_layers_of_words(self):
        words = cornu.Input((), dtype="string")
        layer = Quotients()
        model = cornu.Model(words, [layer(words), layer(words)])    # another call, too
        given = np.array(VOCABULARY)
        wanted = model.predict(given, verbose=0)
        np.testing.assert_array_equal(wanted[0], wanted[1])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.keras")
            model.save(path)
            again = cornu.models.load_model(path, custom_objects={"Quotients": Quotients})
            np.testing.assert_array_equal(again.predict(given, verbose=0), wanted)

    def test_an_own_layer_that_makes_no_numbers(self):
        class Doubled(cornu.layers.Layer):
            def call(self, x):
                return ops.concatenate([x, x], axis=-1)
        with self.assertRaisesRegex(ValueError, "call makes no numbers of strings"):
            Doubled()(cornu.Input((1,), dtype="string"))
