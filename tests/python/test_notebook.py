"""What models, histories and pages show in notebooks, and examples/python/notebook.ipynb."""

import importlib.util
import json
import os
import pathlib
import tempfile
import unittest
from xml.dom import minidom

import numpy as np

import cornu
from cornu import layers as L

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "examples" / "python" / "notebook.ipynb"
MISSING = [name for name in ("nbclient", "nbformat", "ipykernel")
           if importlib.util.find_spec(name) is None]


def classifier():
    model = cornu.Sequential([cornu.Input((8,)), L.Dense(3, "softmax", name="<b>")], name="small")
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


class Shown(unittest.TestCase):
    def test_a_model_is_its_table(self):
        text = []
        model = classifier()
        model.summary(print_fn=text.append)
        pre = minidom.parseString(model._repr_html_()).documentElement
        self.assertEqual(pre.firstChild.data, text[0])
        self.assertNotIn("<b>", model._repr_html_())

    def test_a_history_has_its_charts(self):
        x, y = np.random.rand(30, 8).astype("float32"), np.arange(30) % 3
        history = classifier().fit(x, y, epochs=3, validation_data=(x, y), verbose=0)
        drawn = minidom.parseString("<all>%s</all>" % history._repr_html_())
        charts = drawn.getElementsByTagName("svg")
        self.assertEqual(len(charts), 2)           # accuracy and loss, with their validation
        for chart in charts:
            paths = [path.getAttribute("d").split() for path in chart.getElementsByTagName("path")]
            self.assertEqual([len(path) for path in paths], [6, 6])
        loss = charts[1].getElementsByTagName("path")[0].getAttribute("d").split()
        of = history.history["loss"]
        places = [float(y) for y in loss[1::2]]
        self.assertEqual(np.argsort(places).tolist(), np.argsort(-np.array(of)).tolist())
        self.assertIn("%.6g" % of[-1], history._repr_html_())

    def test_a_history_without_numbers_is_shown(self):
        history = cornu.callbacks.History()
        minidom.parseString("<all>%s</all>" % history._repr_html_())
        history.history = {"loss": [float("nan"), 1.0, float("inf"), 2.0], "val_loss": []}
        path = minidom.parseString("<all>%s</all>" % history._repr_html_()).getElementsByTagName(
            "path")[0].getAttribute("d")
        self.assertEqual(path.count("M"), 2)

    def test_pages_are_in_frames(self):
        """A frame's scripts see nothing of the notebook, and its page is the file, character by
        character."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.html")
            report = cornu.callbacks.Report(path)
            self.assertIsNone(report._repr_html_())
            classifier().fit(np.zeros((6, 8), "float32"), np.zeros(6), verbose=0,
                             callbacks=[report])
            frame = minidom.parseString(report._repr_html_()).documentElement
            self.assertEqual(frame.getAttribute("sandbox"), "allow-scripts")
            self.assertTrue(frame.getAttribute("srcdoc").rstrip().endswith("</html>"))
            with open(path, encoding="utf-8") as file:
                self.assertEqual(frame.getAttribute("srcdoc").split(), file.read().split())

    def test_an_explanation_is_its_page(self):
        explained = cornu.explain(classifier(), device="tpu:v3-8", run=False, verbose=0)
        frame = minidom.parseString(explained._repr_html_()).documentElement
        self.assertIn('"explanation":', frame.getAttribute("srcdoc"))
        self.assertEqual(json.loads(json.dumps(explained)), explained)
        stages = cornu.explain(classifier(), batch_size=8, pipeline=(1, 2), verbose=0)
        self.assertIsNone(stages._repr_html_())


class Notebook(unittest.TestCase):
    def test_it_has_no_outputs(self):
        cells = json.loads(NOTEBOOK.read_text())["cells"]
        self.assertTrue(all(not cell.get("outputs") and cell.get("execution_count") is None
                            for cell in cells))
        for cell in cells:
            self.assertLessEqual(max(map(len, cell["source"])), 101)

    @unittest.skipIf(MISSING, "%s: pip install nbclient ipykernel" % ", ".join(MISSING))
    def test_it_runs_from_top_to_bottom(self):
        import nbclient
        import nbformat
        notebook = nbformat.read(NOTEBOOK, as_version=4)
        nbformat.validate(notebook)
        with tempfile.TemporaryDirectory() as folder:
            nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3",
                                    resources={"metadata": {"path": folder}}).execute()
        said, shown = [], []
        for output in (o for cell in notebook.cells for o in cell.get("outputs", [])):
            self.assertNotEqual(output.output_type, "error")
            said.append(output.get("text", ""))
            shown.append(output.get("data", {}).get("text/html", ""))
        self.assertRegex("".join(said), r"Test accuracy: (1|0\.9)")
        self.assertIn("Epoch 4/4", "".join(said))      # what the library prints is in the cell
        for start, inside in (("<pre", "conv2d (Conv2D)"), ("<div><svg", "gradient_norm"),
                              ("<iframe", "Training report"),
                              ("<iframe", "&quot;explanation&quot;")):
            self.assertTrue(any(html.startswith(start) for html in shown), start)
        self.assertEqual(sum(html.startswith("<iframe") for html in shown), 2)


if __name__ == "__main__":
    unittest.main()
