"""ops.shape of symbolic tensors, and what is made of extents that differ between batches."""

import os
import tempfile
import unittest

import numpy as np

import cornu
from cornu import ops

DATA = np.random.default_rng(2).standard_normal((5, 6, 4)).astype(np.float32)
SHORT = DATA[:3, :2]


def causal_mask(x):
    """As in Keras' examples of text generation."""
    batch, steps = ops.shape(x)[0], ops.shape(x)[1]
    i, j = ops.arange(steps)[:, None], ops.arange(steps)
    mask = ops.reshape(ops.cast(i >= j, "int32"), (1, steps, steps))
    times = ops.concatenate([ops.expand_dims(batch, -1), ops.convert_to_tensor([1, 1])], axis=0)
    return ops.tile(mask, times)


def cases(x, data):
    """Symbolic values, and what they are of these data."""
    batch, steps, channels = ops.shape(x)
    B, T = data.shape[:2]
    return [
        (ops.reshape(x, (batch, steps * channels)), data.reshape(B, -1)),
        (ops.reshape(x, (batch, -1, 2)), data.reshape(B, -1, 2)),
        (ops.zeros((batch, steps, 2)), np.zeros((B, T, 2))),
        (ops.ones((batch, 3)), np.ones((B, 3))),
        (ops.full((batch, 2), 2.5), np.full((B, 2), 2.5)),
        (ops.concatenate([x, ops.zeros((batch, 1, channels))], 1),
         np.concatenate([data, np.zeros((B, 1, 4))], 1)),
        (ops.sum(x, 1) / ops.cast(steps, "float32"), data.mean(1)),
        (x * batch + steps // 2, data * B + T // 2),
        (x[:, :, 0] + ops.arange(steps), data[:, :, 0] + np.arange(T)),
        (x[:, :, 0] + ops.arange(2, 2 * steps + 2, 2), data[:, :, 0] + np.arange(2, 2 * T + 2, 2)),
        (x[:, :, 0] * ops.linspace(0, 1, steps), data[:, :, 0] * np.linspace(0, 1, T)),
        (ops.broadcast_to(np.float32([[1, 2]]), (batch, 2)), np.broadcast_to([[1, 2]], (B, 2))),
        (ops.tile(np.float32([[1, 2]]), (batch, 1)), np.tile([[1, 2]], (B, 1))),
        (ops.repeat(np.float32([[1, 2]]), batch, 0), np.repeat([[1, 2]], B, 0)),
        (ops.matmul(ops.eye(steps), x), data),
        (ops.matmul(ops.tri(steps), x), np.tri(T) @ data),
        (x[:, : steps // 2], data[:, : T // 2]),
        (x[:, steps - 1:], data[:, T - 1:]),
        (ops.slice(x, (0, 1, 1), (batch, 1, 2)), data[:, 1:2, 1:3]),
        (causal_mask(x), np.tile(np.tri(T)[None], (B, 1, 1))),
    ]


class Extents(unittest.TestCase):
    def check(self, model, data):
        wanted = [array for _, array in cases(cornu.Input((None, 4)), data)]
        for i, (a, b) in enumerate(zip(model.predict(data, verbose=0), wanted)):
            self.assertEqual(a.shape, b.shape, i)
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=str(i))

    def test_they_are_those_of_the_batch(self):
        x = cornu.Input((None, 4))
        model = cornu.Model(x, [made for made, _ in cases(x, DATA)])
        for data in DATA, SHORT:
            self.check(model, data)
        with tempfile.TemporaryDirectory() as folder:
            for ending in "safetensors", "keras":
                path = os.path.join(folder, "model." + ending)
                try:
                    model.save(path)
                except NotImplementedError as error:
                    if "libhdf5" not in str(error):
                        raise
                    continue
                for data in DATA, SHORT:
                    self.check(cornu.load(path), data)

    def test_the_smaller_and_the_larger(self):
        x = cornu.Input((6, 4))
        rows = ops.shape(x)[0]
        few, many = ops.minimum(2, rows), ops.maximum(rows, 3)
        made = ops.mean(ops.reshape(x, (few, -1, 6, 4)), axis=(0, 1))
        padded = ops.tile(made[None], (many, 1, 1))[:rows]
        model = cornu.Model(x, padded + ops.zeros((rows, 6, 4)))
        for count in (1, 4):
            found = model.predict(DATA[:count], verbose=0)
            np.testing.assert_allclose(found, np.tile(DATA[:count].mean(0), (count, 1, 1)),
                                       atol=1e-6)

    def test_known_ones_are_numbers(self):
        x = cornu.Input((3, None, 4))
        self.assertEqual([type(n) for n in ops.shape(x)],
                         [type(ops.shape(x)[0]), int, type(ops.shape(x)[0]), int])
        self.assertEqual(ops.shape(x)[3], 4)
        self.assertEqual(ops.shape(np.ones((2, 3))), (2, 3))
        self.assertEqual((ops.ndim(x), ops.size(np.ones((2, 3)))), (4, 6))
        for made in ops.zeros((2, 3)), ops.arange(3), ops.eye(2), ops.linspace(0, 1, 3):
            self.assertIsInstance(made, np.ndarray)

    def test_long_strides_leave_them_unknown(self):
        x = cornu.Input((None, 1))
        for layer, channels in ((cornu.layers.Conv1D(3, 300, strides=240, padding="same"), 3),
                                (cornu.layers.MaxPooling1D(200, padding="same"), 1)):
            made = layer(x)
            self.assertEqual(made.shape, (None, None, channels))
            model = cornu.Model(x, cornu.layers.Conv1D(2, 3, padding="same")(made))
            for length, steps in ((100, 1), (1000, 5)):
                found = model.predict(np.ones((2, length, 1), np.float32), verbose=0)
                self.assertEqual(found.shape, (2, steps, 2))
        frames = cornu.layers.STFTSpectrogram(frame_length=480, frame_step=240, fft_length=2048,
                                              padding="same", expand_dims=True)(x)
        self.assertEqual(frames.shape, (None, None, 1025, 1))
        self.assertEqual(cornu.layers.GlobalMaxPooling1D()(x).shape, (None, 1))

    def test_they_are_no_numbers(self):
        batch = ops.shape(cornu.Input((4,)))[0]
        for use in (lambda: batch == 3, lambda: batch < 3, lambda: int(batch), lambda: bool(batch),
                    lambda: range(batch), lambda: float(batch), lambda: [1, 2][batch]):
            with self.assertRaisesRegex(TypeError, "between batches.*test_extents.py, line"):
                use()

    def test_layers_of_the_programs_own(self):
        class Token(cornu.layers.Layer):
            def __init__(self, **kwargs):
                super().__init__(**kwargs)
                self.token = self.add_weight((1, 1, 4), "ones", name="token")

            def call(self, x):
                return ops.concatenate([ops.broadcast_to(self.token, (ops.shape(x)[0], 1, 4)), x],
                                       axis=1)

        x = cornu.Input((6, 4))
        model = cornu.Model(x, Token()(x))
        np.testing.assert_array_equal(model.predict(DATA, verbose=0),
                                      np.concatenate([np.ones((5, 1, 4)), DATA], 1))
        model.compile("sgd", "mse")
        before = model.get_weights()[0]
        model.fit(DATA, np.zeros((5, 7, 4), np.float32), verbose=0)
        self.assertFalse(np.allclose(before, model.get_weights()[0]))


if __name__ == "__main__":
    unittest.main()
