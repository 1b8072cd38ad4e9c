"""Sequences token by token: Model.generate and cornu.Generator, beside Keras where it is
installed."""

import importlib.util
import os
import tempfile
import unittest

import numpy as np

import cornu

STEPS, VOCABULARY = 48, 19


def network(package=cornu, seed=1):
    """Causal attention, a convolution and a recurrence."""
    layers = package.layers
    package.utils.set_random_seed(seed)
    tokens = package.Input((STEPS,), dtype="int32")
    x = layers.Embedding(VOCABULARY, 12)(tokens)
    x = layers.Conv1D(12, 3, padding="causal", activation="tanh")(x)
    x = layers.LSTM(12, return_sequences=True)(x)
    y = layers.MultiHeadAttention(2, 6)(x, x, use_causal_mask=True)
    x = layers.LayerNormalization()(layers.Add()([x, y]))
    return package.Model(tokens, layers.Dense(VOCABULARY, activation="softmax")(x))


def greedily(predict, prime, count):
    """What whole windows give."""
    tokens = np.zeros((1, STEPS), np.int32)
    tokens[0, :len(prime)] = prime
    for n in range(len(prime), len(prime) + count):
        tokens[0, n] = predict(tokens)[0, n - 1].argmax()
    return tokens[0, len(prime):len(prime) + count].tolist()


class Generators(unittest.TestCase):
    def setUp(self):
        self.model = network()

    def test_the_tokens_of_whole_windows(self):
        def predict(tokens):
            return self.model.predict_on_batch(tokens)
        wanted = [greedily(predict, prime, 30) for prime in ([1, 2, 3], [4])]
        self.assertEqual(self.model.generate([1, 2, 3], 30, temperature=0), wanted[0])
        self.assertEqual(self.model.generate(np.array([4]), 30, temperature=0), wanted[1])
        generator = cornu.Generator(self.model, 2)
        self.assertEqual((generator.window, generator.vocabulary), (STEPS, VOCABULARY))
        self.assertEqual(generator.generate([[1, 2, 3], [4]], 30, temperature=0), wanted)

    def test_next_predicts_what_the_model_does(self):
        generator = cornu.Generator(self.model, 2, threads=1)
        tokens = np.arange(2 * STEPS).reshape(2, STEPS) * 7 % VOCABULARY
        whole = self.model.predict_on_batch(tokens)
        got = [generator.begin(tokens[:, :5])] + [generator.next(tokens[:, t])
                                                  for t in range(5, STEPS)]
        np.testing.assert_allclose(np.stack(got, 1), whole[:, 4:], atol=1e-6)

    def test_draws_are_those_of_the_seed(self):
        def draw(**how):
            return self.model.generate([[1], [1]], 25, **how)
        first = draw(seed=3)
        self.assertEqual(draw(seed=3), first)
        self.assertNotEqual(draw(seed=4), first)
        self.assertNotEqual(first[0], first[1])
        self.assertEqual(draw(seed=3, top_k=1), draw(temperature=0))
        self.assertEqual(draw(seed=3, top_p=1e-6), draw(temperature=0))
        self.assertEqual(self.model.generate([1], 25, seed=3), first[0])

    def test_sequences_end(self):
        whole = self.model.generate([1], 30, seed=5)
        stop = whole[7:9]
        self.assertEqual(self.model.generate([1], 30, seed=5, stop=[[99], stop]),
                         whole[:next(i for i in range(30) if whole[i:i + 2] == stop) + 2])
        seen = []
        self.model.generate([1], 30, seed=5, on_token=lambda t: seen.append(t) or len(seen) < 4)
        self.assertEqual(seen, whole[:4])
        with self.assertRaisesRegex(KeyError, "%d" % whole[0]):
            self.model.generate([1], 30, seed=5, on_token={}.__getitem__)

    def test_windows(self):
        slides, halves = (self.model.generate([1], 80, seed=6, window=window)
                          for window in ("slides", "halves"))
        self.assertEqual(slides[:STEPS], halves[:STEPS])
        self.assertNotEqual(slides, halves)
        with self.assertRaisesRegex(ValueError, "as many as the model's window"):
            self.model.generate([1], 80, window="stops")
        with self.assertRaisesRegex(ValueError, "window is 'grows'"):
            self.model.generate([1], 80, window="grows")

    def test_what_does_not_go_step_by_step(self):
        tokens = cornu.Input((STEPS,))
        x = cornu.layers.Embedding(VOCABULARY, 4)(tokens)
        x = cornu.layers.Bidirectional(cornu.layers.GRU(4, return_sequences=True))(x)
        model = cornu.Model(tokens, cornu.layers.Dense(VOCABULARY, activation="softmax")(x))
        with self.assertRaisesRegex(NotImplementedError, r"\(Bidirectional\) computes along"):
            cornu.Generator(model)
        self.assertEqual(len(model.generate([1, 2], 5)), 5)    # by windows

    def test_mistakes(self):
        generator = cornu.Generator(self.model, 2)
        with self.assertRaisesRegex(ValueError, "1 sequences are given, expected 2"):
            generator.begin([[1]])
        with self.assertRaisesRegex(ValueError, "token 1 is -5"):
            generator.begin([[1], [3]])
            generator.next([1, -5])
        with self.assertRaisesRegex(ValueError, "top_p is 2"):
            self.model.generate([1], 5, top_p=2)


@unittest.skipUnless(importlib.util.find_spec("keras"), "Keras: CORNU_PYTHON=an interpreter with keras")
class BesideKeras(unittest.TestCase):
    def test_a_file_of_keras(self):
        os.environ.setdefault("KERAS_BACKEND", "jax")
        import keras
        model = network(keras, 7)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            model.save(path)
            ours = cornu.load(path)
        self.assertEqual(ours.generate([3, 1, 4], 20, temperature=0),
                         greedily(model.predict_on_batch, [3, 1, 4], 20))


if __name__ == "__main__":
    unittest.main()
