"""Programs that import TensorFlow beside Cornu: its functions, tapes, tf.function and data sets."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import cornu
from cornu import layers as L, ops

try:
    import tensorflow as tf
except ImportError:
    tf = None


def small(units=3, seed=0):
    model = cornu.Sequential([cornu.Input((4,)), L.Dense(5, "tanh"), L.Dense(units)])
    rng = np.random.default_rng(seed)
    model.set_weights([rng.standard_normal(w.shape).astype("float32") for w in model.weights])
    return model


def rows(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


@unittest.skipUnless(tf, "TensorFlow: CORNU_PYTHON=an interpreter with tensorflow")
class Functions(unittest.TestCase):
    """Each function of TensorFlow, of a layer's tensors, and on TensorFlow's own."""

    def agree(self, call, *arrays, atol=1e-5):
        class Calls(cornu.layers.Layer):
            def call(self, given):
                return call(*(given if len(arrays) > 1 else [given]))
        given = [cornu.Input(a.shape[1:], dtype=a.dtype.name) for a in arrays]
        made = Calls()(given if len(arrays) > 1 else given[0])
        model = cornu.Model(given, made)
        found = model.predict(list(arrays), verbose=0)
        wanted = call(*[tf.constant(a) for a in arrays])
        found, wanted = [x if isinstance(x, list) else [x] for x in (found, wanted)]
        self.assertEqual(len(found), len(wanted))
        for a, b in zip(found, wanted):
            np.testing.assert_allclose(a, b.numpy(), atol=atol, rtol=1e-5)

    def test_of_its_numpy(self):
        from tensorflow.experimental import numpy as first
        import tensorflow.experimental.numpy as tnp
        self.agree(lambda x: first.exp(x), rows(4, 5))
        self.agree(lambda x, y: tnp.matmul(tnp.maximum(x, 0.0), tnp.transpose(y, (0, 2, 1))) +
                   tnp.mean(tnp.square(x - y)), rows(4, 5, 6), rows(4, 5, 6, seed=2))

    def test_of_elements_and_sums(self):
        x, y = rows(4, 5, 6), rows(4, 5, 6, seed=2)
        for call in (
                lambda x, y: tf.sqrt(tf.square(x - y) + tf.square(1e-3)),
                lambda x, y: tf.abs(x) * tf.exp(y) + tf.math.log(tf.maximum(x, 0.1)),
                lambda x, y: tf.where(tf.greater(x, y), x, tf.zeros_like(y)),
                lambda x, y: tf.clip_by_value(tf.divide(x, y), -2.0, 2.0),
                lambda x, y: tf.nn.softmax(tf.nn.leaky_relu(x) + tf.nn.gelu(y)),
                lambda x, y: tf.cast(tf.math.floormod(x, 2.0) > 1.0, tf.float32),
                lambda x, y: tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.sigmoid(x),
                                                                     logits=y),
                lambda x, y: tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(x), y),
                lambda x, y: tf.reduce_mean(x, axis=(1, 2), keepdims=True) + tf.reduce_max(y, 2)[
                    :, :, None],
                lambda x, y: tf.math.reduce_std(x, axis=-1) + tf.norm(y, axis=-1),
                lambda x, y: tf.math.l2_normalize(x, axis=1) + tf.math.l2_normalize(y),
                lambda x, y: tf.matmul(x, y, transpose_b=True),
                lambda x, y: tf.einsum("bij,bkj->bik", x, y),
                lambda x, y: tf.math.cumprod(x, axis=-1, exclusive=True) + tf.cumsum(y, 1),
                lambda x, y: tf.cumsum(x, 2, exclusive=True, reverse=True) - y):
            self.agree(call, x, y)

    def test_of_shapes(self):
        x, y = rows(4, 5, 6), rows(4, 5, 6, seed=2)
        for call in (
                lambda x, y: tf.concat([x, tf.expand_dims(tf.reduce_sum(y, -1), -1)], axis=-1),
                lambda x, y: tf.reshape(tf.stack([x, y], axis=1), (tf.shape(x)[0], -1)),
                lambda x, y: tf.transpose(tf.tile(x, [1, 2, 1]), (0, 2, 1)) + tf.ones((6, 10)),
                lambda x, y: tf.split(x, [1, 4], axis=1)[1] + tf.split(y, 5, 1)[0],
                lambda x, y: tf.split(x, [-1, 2], axis=2)[0],
                lambda x, y: tf.unstack(x, axis=1)[2] + tf.squeeze(y[:, :1], 1),
                lambda x, y: tf.pad(x, [[0, 0], [1, 2], [0, 3]], constant_values=2.0),
                lambda x, y: tf.reverse(x, [1]) + tf.roll(y, 1, 2),
                lambda x, y: tf.gather(x, [0, 2, 2], axis=1),
                lambda x, y: tf.gather(x, tf.argmax(y, 1), axis=1, batch_dims=1),
                lambda x, y: tf.one_hot(tf.argmax(x, axis=-1), 6, axis=1, on_value=2.0),
                lambda x, y: tf.math.top_k(tf.sort(x, direction="DESCENDING"), 2)[0],
                lambda x, y: tf.cast(tf.argsort(x, direction="DESCENDING"), tf.float32) + y):
            self.agree(call, x, y)

    def test_of_images(self):
        x, y = np.abs(rows(3, 16, 16, 4)), np.abs(rows(3, 16, 16, 4, seed=2))
        kernel = rows(3, 2, 4, 5, seed=3)
        for call in (
                lambda x, y: tf.nn.conv2d(x, kernel, [1, 2, 2, 1], "SAME"),
                lambda x, y: tf.nn.depthwise_conv2d(x, kernel, [1, 1, 1, 1], "VALID"),
                lambda x, y: tf.nn.avg_pool2d(x, 4, 2, "VALID"),
                lambda x, y: tf.nn.max_pool2d(x, [1, 2, 2, 1], [1, 2, 2, 1], padding="SAME"),
                lambda x, y: tf.image.extract_patches(x, [1, 4, 4, 1], [1, 4, 4, 1], [1, 1, 1, 1],
                                                      "VALID"),
                lambda x, y: tf.image.resize(x, (8, 5)), lambda x, y: tf.image.flip_left_right(x),
                lambda x, y: tf.nn.depth_to_space(x, 2), lambda x, y: tf.image.psnr(x, y, 1.0),
                lambda x, y: tf.image.psnr(tf.cast(x * 50, tf.uint8), y, 255),
                lambda x, y: tf.image.ssim(x, y, max_val=2.0)):
            self.agree(call, x, y, atol=1e-4)

    def test_of_signals(self):
        x, y = rows(4, 5, 6), rows(3, 90)
        for call in (
                lambda x: tf.math.real(tf.signal.fft2d(tf.cast(x, tf.complex64))),
                lambda x: tf.abs(tf.signal.fft(tf.complex(x, x * 2.0)) * tf.complex(2.0, 1.0)),
                lambda x: tf.math.angle(tf.math.conj(tf.complex(x, x - 1.0)[:, 1:]))):
            self.agree(call, x)
        for call in (
                lambda y: tf.abs(tf.signal.stft(y, 25, 10, 32)),
                lambda y: tf.abs(tf.signal.stft(y, 30, 7, window_fn=None, pad_end=True)),
                lambda y: tf.signal.frame(y, 4, 3, pad_end=True)):
            self.agree(call, y, atol=1e-4)

    def test_what_has_no_counterpart_says_so(self):
        with self.assertRaisesRegex(TypeError, "no counterpart for it: use those of cornu.ops"):
            tf.signal.dct(cornu.Input((3,)))

    def test_variables_and_results_are_tensors_to_it(self):
        model = small()
        y = model(tf.ones((2, 4)))
        self.assertEqual(tf.reduce_sum(y).numpy(), tf.reduce_sum(y.numpy()).numpy())
        np.testing.assert_array_equal(tf.transpose(model.weights[0]).numpy(),
                                      model.get_weights()[0].T)


@unittest.skipUnless(tf, "TensorFlow: CORNU_PYTHON=an interpreter with tensorflow")
class Tapes(unittest.TestCase):
    def wanted(self, x, y):
        """The gradients of TensorFlow."""
        w = [tf.Variable(v) for v in small().get_weights()]
        with tf.GradientTape() as tape:
            made = tf.tanh(x @ w[0] + w[1]) @ w[2] + w[3]
            loss = tf.reduce_mean(tf.square(y - made))
        return loss.numpy(), [g.numpy() for g in tape.gradient(loss, w)]

    def test_outside_of_functions(self):
        x, y, model = rows(6, 4), rows(6, 3), small()
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(y - model(tf.constant(x), training=True)))
        found = tape.gradient(loss, model.trainable_variables)
        wanted = self.wanted(x, y)
        np.testing.assert_allclose(float(loss), wanted[0], rtol=1e-5)
        for a, b in zip(found, wanted[1]):
            np.testing.assert_allclose(a, b, atol=1e-5)

    def test_with_respect_to_what_is_watched(self):
        model, x = small(), tf.constant(rows(2, 4))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = model(x)[:, tf.constant(1)]
        w = model.get_weights()
        slope = 1 - np.tanh(x.numpy() @ w[0] + w[1]) ** 2
        np.testing.assert_allclose(tape.gradient(y, x).numpy(), slope * w[2][:, 1] @ w[0].T,
                                   atol=1e-5)

    def test_of_tensorflow_alone(self):
        x = tf.constant([2.0, 3.0])
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tf.reduce_sum(x ** 2)
        np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [4, 6])

    def test_through_what_tensorflow_computed_before(self):
        """Variables of TensorFlow, of whose functions losses and layers get results."""
        w, y = tf.Variable(rows(3, 4)), tf.constant(rows(3, 4, seed=2))
        dense = L.Dense(2, use_bias=False)
        dense.build((None, 4))
        kernel = tf.constant(dense.get_weights()[0])
        for ours, theirs in (
                (lambda z: cornu.losses.MeanSquaredError()(y, z),
                 lambda z: tf.reduce_mean(tf.square(y - z))),
                (lambda z: ops.sum(dense(z) ** 2), lambda z: tf.reduce_sum((z @ kernel) ** 2)),
                (lambda z: ops.sum(ops.multiply(z, w)) + ops.mean(z * y),
                 lambda z: tf.reduce_sum(z * w) + tf.reduce_mean(z * y))):
            made = []
            for loss in (ours, theirs):
                with tf.GradientTape() as tape:
                    tape.watch(y)
                    made.append(loss(tf.square(w) * y))
                made[-1] = tape.gradient(made[-1], {"w": w, "y": y})
            for name in ("w", "y"):
                np.testing.assert_allclose(made[0][name], made[1][name], atol=1e-5)
        with tf.GradientTape() as tape:
            loss = ops.sum(dense(tf.square(w)))
        kernel, of_w = tape.gradient(loss, [dense.kernel, w])
        np.testing.assert_allclose(kernel, np.tile(np.sum(w.numpy() ** 2, 0)[:, None], 2),
                                   rtol=1e-5)
        self.assertEqual(of_w.shape, (3, 4))

    def test_in_a_train_step(self):
        test = self

        class Custom(cornu.Model):
            def __init__(self):
                super().__init__()
                self.net, self.seen = small(), cornu.metrics.Mean(name="noise")

            def call(self, x):
                return self.net(x)

            def train_step(self, data):
                x, y = data
                noise = tf.random.normal((tf.shape(x)[0], 2), mean=5.0)
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.square(y - self(x, training=True)))
                gradients = tape.gradient(loss, self.trainable_variables)
                test.assertIsInstance(loss, type(gradients[0]))
                self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
                self.seen.update_state(noise)
                return {"loss": loss, "noise": self.seen.result()}
        x, y, model = rows(6, 4), rows(6, 3), Custom()
        model.compile(cornu.optimizers.SGD(0.1))
        logs = model.fit(x, y, batch_size=6, epochs=2, verbose=0).history
        loss, gradients = self.wanted(x, y)
        np.testing.assert_allclose(logs["loss"][0], loss, rtol=1e-5)
        self.assertLess(logs["loss"][1], loss)
        self.assertNotEqual(*logs["noise"])         # drawn in each step
        self.assertLess(abs(logs["noise"][0] - 5), 2)

    def test_functions_are_recorded_by_whose_they_are(self):
        model, optimizer = small(), cornu.optimizers.SGD(0.1)
        runs = []

        @tf.function
        def step(x, y):
            runs.append(1)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(y - model(x, training=True)))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            return loss

        @tf.function
        def doubled(x):
            return tf.reduce_sum(x) * 2
        x, y = rows(6, 4), rows(6, 3)
        losses = [float(step(tf.constant(x), y)) for _ in range(4)]
        np.testing.assert_allclose(losses[0], self.wanted(x, y)[0], rtol=1e-5)
        self.assertLess(losses[3], losses[0])
        self.assertLess(len(runs), 4)
        self.assertEqual(doubled(tf.ones(3)).numpy(), 6)
        self.assertTrue(hasattr(doubled, "get_concrete_function"))

    def test_variables_of_tensorflow(self):
        image, optimizer, runs = tf.Variable([[1.0, -2.0, 3.0, 0.5]]), cornu.optimizers.SGD(0.1), []
        model = small()
        with self.assertRaisesRegex(TypeError, "a variable of TensorFlow.* is updated in what is "
                                    "recorded"):
            cornu.function(lambda x: optimizer.apply([x], [image]))(rows(1, 4))

        @tf.function
        def slope(image):
            runs.append(1)
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(model(image)))
            return loss, tape.gradient(loss, image)
        losses = []
        for _ in range(3):
            before = image.numpy()
            loss, gradient = slope(image)
            optimizer.apply_gradients([(gradient, image)])
            np.testing.assert_allclose(image.numpy(), before - 0.1 * gradient, rtol=1e-5)
            losses.append(float(loss))
        self.assertLess(losses[2], losses[0])
        self.assertEqual(len(runs), 1)

    def test_functions_of_lists_and_attributes(self):
        class Agent:
            def __init__(self):
                self.actor = small()

            @tf.function
            def act(self, x):
                return self.actor(x) * 2.0

        @tf.function
        def update(targets, weights, tau):
            for a, b in zip(targets, weights):
                a.assign(b * tau + a * (1 - tau))
        agent, other, x = Agent(), small(seed=2), rows(2, 4)
        before = other.get_weights()
        np.testing.assert_allclose(agent.act(x), small().predict(x, verbose=0) * 2, rtol=1e-6)
        update(other.variables, agent.actor.variables, 0.25)
        for old, new, of in zip(before, other.get_weights(), agent.actor.get_weights()):
            np.testing.assert_allclose(new, of * 0.25 + old * 0.75, rtol=1e-6)


@unittest.skipUnless(tf, "TensorFlow: CORNU_PYTHON=an interpreter with tensorflow")
class Attributes(unittest.TestCase):
    """tf.Variable as an attribute of a layer or a model: a weight of it."""

    def test_of_a_layer_is_trained(self):
        class Scaled(cornu.layers.Layer):
            def __init__(self):
                super().__init__()
                self.scale = tf.Variable(initial_value=tf.ones((3,)), trainable=True)
                self.calls = tf.Variable(0.0, trainable=False)

            def call(self, x):
                self.calls.assign(self.calls + 1.0)
                return tf.nn.relu(x * self.scale)
        given = cornu.Input((3,))
        layer = Scaled()
        model = cornu.Model(given, layer(given))
        self.assertEqual([w.shape for w in model.trainable_weights], [(3,)])
        self.assertEqual(layer.weights, [layer.scale, layer.calls])
        model.compile(cornu.optimizers.SGD(0.3), "mse")
        x = np.ones((8, 3), "float32")
        model.fit(x, 3 * x, epochs=2, verbose=0)
        # The gradient of mean((s - 3)^2) over 3 elements is 2 (s - 3) / 3.
        np.testing.assert_allclose(layer.scale.numpy(), 3 - 2 * 0.8 ** 2, rtol=1e-6)
        self.assertEqual(layer.calls.numpy(), 2.0)

    def test_of_a_model_is_assigned_in_its_step(self):
        class Counted(cornu.Model):
            def __init__(self):
                super().__init__()
                self.dense, self.chance = L.Dense(1), tf.Variable(0.25)

            def call(self, x):
                return self.dense(x) * self.chance

            def train_step(self, data):
                x, y = data
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.square(self(x, training=True) - y))
                weights = self.dense.trainable_weights
                self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
                self.chance.assign(tf.clip_by_value(self.chance * 2.0, 0.0, 0.75))
                return {"chance": self.chance}
        model = Counted()
        model.compile("sgd")
        history = model.fit(rows(8, 4), rows(8, 1), batch_size=8, epochs=3, verbose=0).history
        self.assertEqual(history["chance"], [0.5, 0.75, 0.75])
        self.assertEqual(model.chance.numpy(), 0.75)


@unittest.skipUnless(tf, "TensorFlow: CORNU_PYTHON=an interpreter with tensorflow")
class Data(unittest.TestCase):
    def test_zip_takes_data_sets_of_either(self):
        rows = np.arange(6, dtype="float32")
        windows = [cornu.utils.timeseries_dataset_from_array(rows[:, None], None, n, batch_size=2)
                   for n in (2, 1)]
        theirs = tf.data.Dataset.from_tensor_slices(rows).batch(2)
        joined = tf.data.Dataset.zip((windows[0], windows[1])).prefetch(2).cache()
        self.assertEqual([[np.shape(a) for a in pair] for pair in joined][0], [(2, 2, 1), (2, 1, 1)])
        self.assertEqual(len(list(joined)), 3)
        both = next(iter(tf.data.Dataset.zip(windows[1], theirs)))
        np.testing.assert_array_equal(np.asarray(both[0])[:, 0, 0], np.asarray(both[1]))
        pair = next(iter(tf.data.Dataset.zip((theirs, theirs))))
        self.assertTrue(tf.is_tensor(pair[0]))

    def test_layers_and_operations_in_map(self):
        images = np.random.default_rng(0).integers(0, 255, (6, 12, 10, 3)).astype("uint8")
        augment = cornu.Sequential([L.Rescaling(1 / 255), L.Resizing(9, 9), L.RandomCrop(8, 8)])
        words = L.StringLookup(vocabulary=["a", "b"])

        def prepare(image, label, word):
            return augment(image), ops.one_hot(label, 7), words(word[None])[0], ops.shape(image)[0]
        data = tf.data.Dataset.from_tensor_slices((images, np.arange(6), list("abcabc"))).map(
            prepare, num_parallel_calls=2).batch(4)
        self.assertEqual([spec.shape.as_list() for spec in data.element_spec],
                         [[None, 8, 8, 3], [None, 7], [None], [None]])
        image, label, word, height = next(iter(data))
        np.testing.assert_array_equal(label.numpy(), np.eye(7)[:4])
        np.testing.assert_array_equal(word.numpy(), [1, 2, 0, 1])
        np.testing.assert_array_equal(height.numpy(), [12] * 4)
        self.assertTrue((image.numpy().std((1, 2)) > 0.1).all())

    def test_unknown_extents(self):
        data = tf.data.Dataset.from_generator(
            lambda: iter([np.ones((5, 7, 3), "uint8"), np.ones((8, 4, 3), "uint8")]),
            output_signature=tf.TensorSpec((None, None, 3), tf.uint8))
        resized = data.map(lambda x: ops.image.resize(x, (6, 6)))
        self.assertEqual(resized.element_spec.shape.as_list(), [6, 6, 3])
        taller = data.map(lambda x: ops.concatenate([x, x], axis=0))
        self.assertEqual(taller.element_spec.shape.as_list(), [None, None, 3])
        self.assertEqual([x.shape[0] for x in taller.as_numpy_iterator()], [10, 16])

    def test_fit_ignores_a_size_of_batches(self):
        model, data = small(), tf.data.Dataset.from_tensor_slices((rows(6, 4), rows(6, 3))).batch(4)
        model.compile("sgd", "mse")
        model.fit(data, batch_size=3, validation_data=data, validation_batch_size=2, verbose=0)
        self.assertEqual(model.predict(data, batch_size=5, verbose=0).shape, (6, 3))

    def test_a_vocabulary_without_a_place_for_other_strings(self):
        lookup = L.StringLookup(vocabulary=["a", "b"], mask_token=None, num_oov_indices=0)
        data = tf.data.Dataset.from_tensor_slices(
            {"s": np.array(["b", "a"]), "n": np.arange(2)}).batch(2)
        made = next(iter(data.map(lambda x: {**x, "s": lookup(x["s"])})))
        np.testing.assert_array_equal(made["s"], [1, 0])

    def test_functions_of_strings_standardize(self):
        words = L.TextVectorization(
            standardize=lambda s: tf.strings.regex_replace(tf.strings.lower(s), "<br />", " "),
            output_sequence_length=3)
        words.adapt(["b a<br />A", "B a"])
        data = tf.data.Dataset.from_tensor_slices(np.array(["A<br />b", "c"])).batch(2)
        np.testing.assert_array_equal(next(iter(data.map(words))), [[2, 3, 0], [1, 0, 0]])


@unittest.skipUnless(tf, "TensorFlow: CORNU_PYTHON=an interpreter with tensorflow")
class Ragged(unittest.TestCase):
    """Rows of different lengths."""

    def test_lookups(self):
        words = [["a", "b"], ["c"], [], ["b", "b"]]
        ragged = tf.ragged.constant(words)
        for mode in ("multi_hot", "count"):
            layer = L.StringLookup(output_mode=mode)
            layer.adapt(ragged)
            self.assertEqual(sorted(layer.get_vocabulary()), ["[UNK]", "a", "b", "c"])
            made = layer(ragged)
            self.assertEqual(made.shape, (4, 4))
            for row, vector in zip(words, made):
                wanted = layer(np.array([row])) if row else np.zeros((1, 4))
                np.testing.assert_array_equal(vector, wanted[0])
            mapped = next(iter(tf.data.Dataset.from_tensors(ragged).map(layer)))
            np.testing.assert_array_equal(mapped, made)
        numbers = L.StringLookup(vocabulary=["a", "b", "c"])
        self.assertEqual(numbers(ragged).to_list(), [[1, 2], [3], [], [2, 2]])


@unittest.skipUnless(importlib.util.find_spec("tensorflow") and importlib.util.find_spec("keras"),
                     "TensorFlow and Keras: CORNU_PYTHON=an interpreter with both")
class SavedModels(unittest.TestCase):
    def test_saved_models_and_what_tensorflow_makes_of_them(self):
        program = """if True:
            import sys
            import numpy as np
            import tensorflow as tf
            import cornu
            inputs = cornu.Input((8, 8, 3))
            x = cornu.layers.Conv2D(4, 3, activation="swish")(inputs)
            x = cornu.layers.GlobalAveragePooling2D()(x)
            model = cornu.Model(inputs, cornu.layers.Dense(3, "softmax")(x))
            x = np.random.default_rng(0).random((4, 8, 8, 3)).astype("float32")
            wanted, folder = model.predict(x, verbose=0), sys.argv[1]
            model.export(folder + "/one", verbose=False)
            tf.saved_model.save(model, folder + "/two")
            for name in ("/one", "/two"):
                loaded = tf.saved_model.load(folder + name)
                np.testing.assert_allclose(loaded.serve(x).numpy(), wanted, rtol=1e-5, atol=1e-6)
            lite = tf.lite.TFLiteConverter.from_saved_model(folder + "/two").convert()
            open(folder + "/two.tflite", "wb").write(lite)
            made = cornu.load(folder + "/two.tflite").predict(x, verbose=0)
            np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-6)
        """
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-c", program, folder], capture_output=True,
                                  env=dict(os.environ, KERAS_BACKEND="tensorflow"), text=True,
                                  check=False)
            self.assertEqual(done.returncode, 0, done.stderr[-2000:])


if __name__ == "__main__":
    unittest.main()
