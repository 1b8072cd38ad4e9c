"""cornu.explain: what it prints and what it returns."""

import contextlib
import io
import os
import tempfile
import unittest

import numpy as np

import cornu
from cornu import layers as L

from test_keras import needs_hdf5


def printed(*arguments, **named):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        page = cornu.explain(*arguments, **named)
    return page, text.getvalue()


def classifier():
    return cornu.Sequential([cornu.Input((64,)), L.Dense(100, "relu", name="hidden"),
                             L.Dense(10, "softmax", name="classes")])


class Explain(unittest.TestCase):
    def test_stages(self):
        """Two layers of 64 and of 100 numbers a row, in microbatches of 8 rows."""
        page, text = printed(classifier(), batch_size=32, pipeline=(2, 4))
        self.assertIn("pipeline: 2 stages, 4 microbatches of 8 rows, 1f1b: 10 slots\n", text)
        stages = page["pipeline"]["stages"]
        self.assertEqual([(s["last"], s["weight_bytes"], s["sent_bytes"]) for s in stages],
                         [("hidden", 4 * 65 * 100, 4 * 800), ("classes", 4 * 101 * 10, 0)])

    def test_a_tpu(self):
        """128 x 128 tiles: K = 64 fills half of the rows, N = 10 an 12.8th of the columns."""
        page, text = printed(classifier(), device="tpu:v3-8", batch_size=64, steps=1)
        self.assertEqual(page["step"], "training")
        self.assertEqual(page["loss"], "sparse_categorical_crossentropy")
        self.assertEqual(page["kind"], "emulated")
        self.assertEqual(sorted((row["layer"], row["axis"], row["next"], row["padding"])
                                for row in page["padding"]),
                         [("classes", "N", 128, 0.921875), ("hidden", "K", 128, 0.5)])
        self.assertEqual(sum(page["placed"].values()), len(page["ops"]))
        self.assertEqual(page["placed"]["refused"], 0)
        self.assertGreater(page["measured"]["step_s"], 0)
        hidden = next(step for step in page["steps"]
                      if step["layer"] == "hidden" and step["modelled"]["product"][0])
        self.assertEqual(hidden["modelled"]["product"], [1, 8, 64, 100])
        self.assertIn("bf16 (8, 64)", hidden["in"])
        self.assertIn("bf16 (8, 100)", hidden["out"])
        self.assertEqual([row["profile"] for row in page["modelled"]], ["v3-8"])
        self.assertIn("To fit better:\n- ", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_the_model_stays(self):
        model = classifier()
        model.compile("sgd", "mse")
        x = np.ones((4, 64), np.float32)
        before = model.predict(x, verbose=0)
        page, text = printed(model, device=cornu.Device("cpu", threads=1), steps=1)
        self.assertEqual(page["loss"], "mean_squared_error")
        self.assertIn("optimizer sgd", text)
        self.assertEqual(page["threads"], 1)
        np.testing.assert_array_equal(before, model.predict(x, verbose=0))

    def test_what_is_printed(self):
        model = classifier()
        page, text = printed(model, verbose=0, run=False, predict=True)
        self.assertEqual((page["step"], page["measured"], text), ("prediction", None, ""))
        _, text = printed(model, part="ops", run=False, batch_size=3)
        self.assertIn("a training step of 3 samples: ", text)
        page, text = printed(model, "tpu:v3-8", part="all", run=False)
        self.assertGreater(len(page["modelled"]), 8)
        self.assertIn("The same batch of 32, modelled\n", text)
        with self.assertRaisesRegex(ValueError, "part is 'pages', expected one of overview"):
            cornu.explain(model, part="pages")
        with self.assertRaisesRegex(cornu.CornuError, "v3-8"):
            cornu.explain(model, "tpu:v3-9")
        with self.assertRaisesRegex(ValueError, "mean_squared_error"):
            cornu.explain(model, loss="mean_squared_eror")

    @needs_hdf5
    def test_a_file(self):
        model = classifier()
        model.compile("adam", "categorical_crossentropy")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            model.save(path)
            page, _ = printed(path, run=False)
        self.assertEqual(page["loss"], "categorical_crossentropy")


if __name__ == "__main__":
    unittest.main()
