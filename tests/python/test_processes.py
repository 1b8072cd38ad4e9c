"""Models of the program's own in threads, in children of a process, interrupted, and dropped."""

import gc
import os
import resource
import signal
import sys
import threading
import time
import unittest
import weakref

import numpy as np

import cornu
from cornu import layers, ops

X = np.random.default_rng(1).normal(size=(32, 6)).astype("float32")
Y = X[:, :1] * 2 - X[:, 1:2]


class Scaled(layers.Layer):
    def build(self, input_shape):
        self.scale = self.add_weight(shape=(input_shape[-1],), initializer="ones", name="scale")
        self.inner = layers.Dense(4, kernel_initializer="ones")

    def call(self, x, training=False):
        x = self.inner(ops.tanh(x * self.scale))
        self.add_loss(0.01 * ops.sum(ops.square(self.scale)))
        return x * 1.5 if training else x


class Own(cornu.Model):
    def __init__(self):
        super().__init__()
        self.first, self.last = Scaled(), layers.Dense(1, kernel_initializer="ones")

    def call(self, x, training=False):
        return self.last(self.first(x, training=training))


class Stepped(Own):
    def train_step(self, data):
        x, y = data
        with cornu.GradientTape() as tape:
            loss = ops.mean(ops.square(self(x, training=True) - y))
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables),
                             self.trainable_variables)
        return {"loss": loss}


def train(kind, epochs=3):
    model = kind()
    model.compile(cornu.optimizers.SGD(0.01), "mse")
    history = model.fit(X, Y, batch_size=8, epochs=epochs, shuffle=False, verbose=0)
    return history.history["loss"], model.predict(X, verbose=0)


def in_child(work):
    """The result of work() in a child, a number; None if it ended otherwise or takes a minute."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            os.write(write, repr(float(work())).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        text = file.read()
    os.waitpid(child, 0)
    return float(text) if text else None


class Threads(unittest.TestCase):
    def test_each_trains_a_model(self):
        for kind in (Own, Stepped):
            wanted, found = train(kind), {}

            def work(i, kind=kind, found=found):
                found[i] = [train(kind) for _ in range(3)]
            threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(sorted(found), [0, 1])
            for losses, predictions in found[0] + found[1]:
                self.assertEqual(losses, wanted[0])
                np.testing.assert_array_equal(predictions, wanted[1])

    def test_each_computes_at_once(self):
        layer, wanted, found = Scaled(), {}, {}
        wanted = layer(X).sum()

        def work(i):
            own = Scaled()
            found[i] = [float(own(X + 0).sum()) for _ in range(50)]
        threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual({value for each in found.values() for value in each}, {float(wanted)})


class Processes(unittest.TestCase):
    def test_a_child_trains(self):
        """After the import of the package, and of modules that trace."""
        ran = os.spawnv(os.P_WAIT, "/usr/bin/env", [
            "env", "PYTHONPATH=" + os.pathsep.join(sys.path),
            sys.executable, "-c",
            "import test_processes as t, sys\n"
            "wanted = t.in_child(lambda: t.train(t.Stepped)[0][-1])\n"
            "sys.exit(wanted != t.train(t.Stepped)[0][-1])"])
        self.assertEqual(ran, 0)


class Interrupts(unittest.TestCase):
    def test_ctrl_c_ends_fit(self):
        for kind in (Own, Stepped):
            model, sent = kind(), []
            model.compile("sgd", "mse")
            model.fit(X, Y, verbose=0)

            def send(sent=sent):
                time.sleep(0.2)
                sent.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)
            thread = threading.Thread(target=send)
            thread.start()
            with self.assertRaises(KeyboardInterrupt):
                model.fit(X, Y, epochs=10 ** 9, verbose=0)
            thread.join()
            self.assertLess(time.monotonic() - sent[0], 5)
            self.assertTrue(np.isfinite(model.predict(X, verbose=0)).all())

    def test_ctrl_c_in_a_trace(self):
        """As an exception of call: what was begun is dropped."""
        class Interrupted(layers.Layer):
            def call(self, x):
                os.kill(os.getpid(), signal.SIGINT)
                return x + 1.0
        for again in range(2):
            with self.assertRaises(KeyboardInterrupt):
                cornu.Model(*[cornu.Input((6,))] * 1, Interrupted()(cornu.Input((6,))))
        self.assertEqual(len(train(Own, 1)[0]), 1)


class Memory(unittest.TestCase):
    def test_dropped_models_are_freed(self):
        for kind in (Own, Stepped):
            model = kind()
            model.compile("sgd", "mse")
            model.fit(X, Y, verbose=0)
            counted, layer = weakref.ref(model._owned.counted), weakref.ref(model.first)
            del model
            gc.collect()
            self.assertIsNone(counted())
            self.assertIsNone(layer())

    def test_a_thousand_keep_nothing(self):
        def make(count):
            for i in range(count):
                x = cornu.Input((6,))
                model = cornu.Model(x, Scaled()(x))
                model(X)
                if i % 10 == 0:
                    train(Stepped, 1)
            cornu.clear_session()
            gc.collect()
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * resource.getpagesize()
        # Arenas of Python and malloc still grow for some time; what is kept grows for ever.
        sizes = [make(500) for _ in range(5)]
        kept = min(after - before for before, after in zip(sizes, sizes[1:])) / 500
        self.assertLess(kept, 300)


if __name__ == "__main__":
    unittest.main()
