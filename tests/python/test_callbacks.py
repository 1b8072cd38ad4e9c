"""Callbacks in Python and in the library, exceptions, and Ctrl-C."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np

import cornu
from cornu import callbacks as C


def model_and_data():
    cornu.set_random_seed(1)
    rng = np.random.default_rng(0)
    model = cornu.Sequential([cornu.Input((4,)), cornu.layers.Dense(1)])
    model.compile(cornu.optimizers.SGD(0.01), "mse", metrics=["mae"])
    return model, rng.standard_normal((64, 4)).astype(np.float32), \
        rng.standard_normal((64, 1)).astype(np.float32)


class Dashboards(unittest.TestCase):
    """Of the page itself tests/nn/pages has the tests."""

    PROGRAM = """
import cornu, os, signal, sys, threading, urllib.request, numpy as np
model = cornu.Sequential([cornu.Input((4,)), cornu.layers.Dense(1)])
model.compile("sgd", "mse")
x = np.zeros((64, 4), np.float32)

class Steer(cornu.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        url = [line for line in open(sys.argv[1], encoding="utf-8") if "Dashboard" in line][0].split()[1]
        page = urllib.request.urlopen(url).read()
        print("page", b"EventSource" in page, flush=True)
        base, token = url.split("?token=")
        urllib.request.urlopen(urllib.request.Request(
            base + "control", b'{"action": "pause"}', {"Content-Type": "application/json",
            "Authorization": "Bearer " + token}))
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()

try:
    model.fit(x, x[:, :1], epochs=10 ** 6, verbose=0,
              callbacks=[Steer(), cornu.callbacks.Dashboard()])
except KeyboardInterrupt:
    print("interrupted")
"""

    def test_a_page_is_served_and_ctrl_c_ends_a_pause(self):
        taken = socket.socket()
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        model, x, y = model_and_data()
        try:
            model.fit(x, y, verbose=0, callbacks=[C.Dashboard(port=taken.getsockname()[1])])
        except cornu.errors.CornuError as error:
            if "libmicrohttpd" in str(error):
                self.skipTest("libmicrohttpd: make deps-serve")
            self.assertIn("Address already in use", str(error))
        else:
            self.fail("the port was taken")
        taken.close()
        with tempfile.NamedTemporaryFile() as out:
            subprocess.run([sys.executable, "-c", self.PROGRAM, out.name], stdout=out, check=True,
                           timeout=600)
            with open(out.name, encoding="utf-8") as file:
                lines = file.read().split("\n")
        self.assertIn("page True", lines)
        self.assertIn("Dashboard: paused after epoch 1", lines)
        self.assertEqual(lines[-2], "interrupted")


class Hooks(unittest.TestCase):
    def test_hooks_are_keras_hooks_in_keras_order(self):
        model, x, y = model_and_data()
        calls = []

        class Note(C.Callback):
            def on_train_begin(self, logs=None):
                calls.append(("train_begin", self.params["epochs"], self.model is model))

            def on_epoch_begin(self, epoch, logs=None):
                calls.append(("epoch_begin", epoch))

            def on_batch_begin(self, batch, logs=None):
                calls.append(("batch_begin", batch))

            def on_train_batch_end(self, batch, logs=None):
                calls.append(("batch_end", batch, sorted(logs)))

            def on_test_begin(self, logs=None):
                calls.append(("test_begin",))

            def on_test_end(self, logs=None):
                calls.append(("test_end", sorted(logs)))

            def on_epoch_end(self, epoch, logs=None):
                calls.append(("epoch_end", epoch, sorted(logs)))

            def on_train_end(self, logs=None):
                calls.append(("train_end",))

        history = model.fit(x, y, verbose=0, callbacks=[Note()], validation_data=(x, y))
        names = ["loss", "mae"]
        self.assertEqual(calls, [
            ("train_begin", 1, True), ("epoch_begin", 0), ("batch_begin", 0),
            ("batch_end", 0, names), ("batch_begin", 1), ("batch_end", 1, names), ("test_begin",),
            ("test_end", names), ("epoch_end", 0, names + ["val_loss", "val_mae"]),
            ("train_end",)])
        self.assertEqual(sorted(history.history), names + ["val_loss", "val_mae"])

    def test_predict_and_evaluate_call_theirs(self):
        model, x, y = model_and_data()
        counts = {"test": 0, "predict": 0}

        class Count(C.Callback):
            def on_test_batch_end(self, batch, logs=None):
                counts["test"] += 1

            def on_predict_batch_end(self, batch, logs=None):
                counts["predict"] += 1

        model.evaluate(x, y, batch_size=16, verbose=0, callbacks=[Count()])
        model.predict(x, batch_size=8, verbose=0, callbacks=Count())
        self.assertEqual(counts, {"test": 4, "predict": 8})

    def test_logs_are_for_the_callbacks_after_it(self):
        model, x, y = model_and_data()
        seen = []

        class Rate(C.Callback):
            def on_epoch_end(self, epoch, logs=None):
                logs["rate"] = 0.5 * epoch
                logs["mae"] = 7.0

        class See(C.Callback):
            def on_epoch_end(self, epoch, logs=None):
                seen.append(dict(logs))
        kept = C.History()
        history = model.fit(x, y, epochs=2, verbose=0, callbacks=[Rate(), See(), kept])
        self.assertEqual([logs["rate"] for logs in seen], [0.0, 0.5])
        self.assertEqual([logs["mae"] for logs in seen], [7.0, 7.0])
        self.assertEqual(history.history["rate"], [0.0, 0.5])
        self.assertEqual(history.history["mae"], [7.0, 7.0])
        self.assertEqual((kept.history, kept.epoch), (history.history, [0, 1]))

        class Many(C.Callback):
            def on_epoch_end(self, epoch, logs=None):
                logs.update({"a%d" % i: i for i in range(9)})
        with self.assertRaisesRegex(ValueError, "changes 9 logs, expected at most"):
            model.fit(x, y, verbose=0, callbacks=Many())

    def test_models_are_used_and_saved_inside(self):
        model, x, y = model_and_data()
        found = []

        class Use(C.Callback):
            def on_epoch_end(self, epoch, logs=None):
                path = os.path.join(folder, "epoch_%d.safetensors" % epoch)
                self.model.save(path)
                found.append((self.model.predict(x, verbose=0),
                              self.model.evaluate(x, y, verbose=0)[0]))
                np.testing.assert_array_equal(cornu.load(path).predict(x, verbose=0), found[-1][0])
                self.model.optimizer.learning_rate *= 0.5
                if epoch == 2:
                    self.model.stop_training = True
        with tempfile.TemporaryDirectory() as folder:
            history = model.fit(x, y, epochs=9, verbose=0, callbacks=[Use()],
                                validation_data=(x, y))
            self.assertEqual(sorted(os.listdir(folder)),
                             ["epoch_%d.safetensors" % i for i in range(3)])
        self.assertEqual(history.epoch, [0, 1, 2])
        self.assertEqual([loss for _, loss in found], history.history["val_loss"])
        self.assertAlmostEqual(model.optimizer.learning_rate, 0.01 / 8, 8)

    def test_loops_by_hand(self):
        model, x, y = model_and_data()
        calls = []

        class Note(C.Callback):
            def on_epoch_end(self, epoch, logs=None):
                logs["added"] = epoch
                calls.append((self.model is model, self.params["epochs"]))
        together = C.CallbackList([Note()], add_history=True, model=model, epochs=2)
        together.on_train_begin()
        for epoch in range(2):
            together.on_epoch_begin(epoch)
            together.on_train_batch_begin(0)
            logs = model.train_on_batch(x, y, return_dict=True)
            together.on_train_batch_end(0, logs)
            together.on_epoch_end(epoch, logs)
        self.assertEqual(calls, [(True, 2)] * 2)
        self.assertEqual(together.callbacks[1].history["added"], [0, 1])

    def test_stop_training(self):
        model, x, y = model_and_data()

        class Stop(C.Callback):
            def on_epoch_end(self, epoch, logs=None):
                self.model.stop_training = epoch == 2

        self.assertEqual(model.fit(x, y, epochs=9, verbose=0, callbacks=[Stop()]).epoch, [0, 1, 2])

    def test_an_exception_ends_the_call_and_is_raised(self):
        model, x, y = model_and_data()

        class Bad(C.Callback):
            def on_train_batch_begin(self, batch, logs=None):
                raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            model.fit(x, y, verbose=0, callbacks=[Bad()])
        model.fit(x, y, verbose=0)

    def test_lambdas_and_schedules(self):
        model, x, y = model_and_data()
        losses, rates = [], []
        model.fit(x, y, epochs=3, verbose=0, callbacks=[
            C.LearningRateScheduler(lambda epoch, rate: 0.5 * rate),
            C.LambdaCallback(on_epoch_end=lambda epoch, logs: (
                losses.append(logs["loss"]), rates.append(model.optimizer.learning_rate)))])
        self.assertEqual(len(losses), 3)
        np.testing.assert_allclose(rates, [0.005, 0.0025, 0.00125], rtol=1e-6)
        for schedule in (lambda epoch: 0.1 ** epoch, lambda epoch, rate=7.0: 0.1 ** epoch * rate):
            rates.clear()
            model.optimizer.learning_rate = 1.0
            model.fit(x, y, epochs=2, verbose=0, callbacks=[
                C.LearningRateScheduler(schedule),
                C.LambdaCallback(on_epoch_end=lambda epoch, logs: rates.append(
                    model.optimizer.learning_rate))])
            np.testing.assert_allclose(rates, [1.0, 0.1], rtol=1e-6)
        with self.assertRaises(TypeError):
            C.LambdaCallback(on_nothing=print)

    def test_callbacks_of_the_library(self):
        model, x, y = model_and_data()
        with tempfile.TemporaryDirectory() as folder:
            log, best = os.path.join(folder, "log.csv"), os.path.join(folder, "best.safetensors")
            history = model.fit(x, y, epochs=6, verbose=0, validation_data=(x, y), callbacks=[
                C.EarlyStopping(monitor="val_loss", min_delta=10.0, patience=2),
                C.CSVLogger(log), C.ModelCheckpoint(best, save_best_only=True)])
            self.assertEqual(history.epoch, [0, 1, 2])
            with open(log) as file:
                self.assertEqual(file.readline().strip(), "epoch,loss,mae,val_loss,val_mae")
            self.assertEqual(cornu.load(best).output_shape, (None, 1))

    def test_arguments_of_the_librarys_callbacks(self):
        rows = ((C.ReduceLROnPlateau, {"min_delta": 0}, "min_delta", -2.0 ** 63),
                (C.ReduceLROnPlateau, {"min_delta": 0.5}, "min_delta", 0.5),
                (C.EarlyStopping, {"baseline": 0.0}, "has_baseline", True),
                (C.EarlyStopping, {}, "has_baseline", False),
                (C.EarlyStopping, {"mode": "max"}, "mode", 2),
                (C.TensorBoard, {"write_graph": False}, "no_graph", True),
                (C.TensorBoard, {"write_graph": True}, "no_graph", False),
                (C.TensorBoard, {"embeddings_freq": 0, "profile_batch": 0}, "profile_batch", 0),
                (C.TensorBoard, {"update_freq": "batch"}, "update_freq", 1))
        for made, arguments, field, expected in rows:
            self.assertEqual(getattr(made(**arguments)._config(), field), expected, arguments)
        for wrong in ({"mode": "most"}, {"patience": "x"}):
            with self.assertRaises((TypeError, ValueError)):
                C.EarlyStopping(**wrong)
        with self.assertRaises(TypeError):
            C.EarlyStopping(no_such=1)
        model, x, y = model_and_data()
        with self.assertRaisesRegex(TypeError, "not a callback"):
            model.fit(x, y, callbacks=[print])


class Losses(unittest.TestCase):
    def test_a_loss_that_is_not_finite_ends_nothing_but_with_terminate_on_nan(self):
        x, y = np.full((4, 2), np.nan, "float32"), np.zeros((4, 1), "float32")
        data = {"batch_size": 2, "verbose": 0, "validation_data": (x, y)}

        def made():
            model = cornu.Sequential([cornu.layers.Input((2,)), cornu.layers.Dense(1)])
            model.compile("sgd", "mse")
            return model

        history = made().fit(x, y, epochs=3, **data).history
        self.assertEqual(len(history["loss"]), 3)
        self.assertTrue(np.isnan(history["loss"] + history["val_loss"]).all())
        history = made().fit(x, y, epochs=3, callbacks=[C.TerminateOnNaN()], **data).history
        self.assertEqual(len(history["loss"]), 1)


class Interrupts(unittest.TestCase):
    def interrupted(self, run):
        """Seconds from a signal to the KeyboardInterrupt."""
        sent = []

        def send():
            time.sleep(0.3)
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=send)
        thread.start()
        try:
            with self.assertRaises(KeyboardInterrupt):
                run()
            return time.monotonic() - sent[0]
        finally:
            thread.join()

    def test_ctrl_c_ends_fit(self):
        model, x, y = model_and_data()
        before = signal.getsignal(signal.SIGINT)
        batches = []

        class Count(C.Callback):
            def on_train_batch_end(self, batch, logs=None):
                batches.append(time.monotonic())

        self.interrupted(lambda: model.fit(x, y, epochs=10 ** 9, verbose=0, callbacks=[Count()]))
        self.assertIs(signal.getsignal(signal.SIGINT), before)
        self.assertGreater(len(batches), 1)
        self.assertEqual(model.predict(x, verbose=0).shape, (64, 1))

    def test_ctrl_c_ends_evaluate_and_predict(self):
        model, x, y = model_and_data()
        many = np.zeros((20000000, 4), np.uint8)
        self.interrupted(lambda: model.predict(many, batch_size=8, verbose=0))
        self.interrupted(lambda: model.evaluate(many, many[:, :1], batch_size=8, verbose=0))

    def test_a_handler_of_the_program_is_called(self):
        model, x, y = model_and_data()
        seen = []
        before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))

        class Stop(C.Callback):
            def on_epoch_end(self, epoch, logs=None):
                if epoch == 0:
                    os.kill(os.getpid(), signal.SIGINT)

        try:
            model.fit(x, y, epochs=3, verbose=0, callbacks=[Stop()])
        finally:
            signal.signal(signal.SIGINT, before)
        self.assertEqual(seen, [1])

    def test_other_threads_fit_without_handlers(self):
        model, x, y = model_and_data()
        done = []
        thread = threading.Thread(
            target=lambda: done.append(model.fit(x, y, epochs=2, verbose=0).epoch))
        thread.start()
        thread.join()
        self.assertEqual(done, [[0, 1]])


if __name__ == "__main__":
    unittest.main()
