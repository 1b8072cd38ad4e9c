"""Profiles of TensorBoard's callback, as XProf, TensorBoard's plugin, opens them."""

import glob
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import cornu
from cornu import layers as L

# In a process of its own: XProf brings a library that logs, and its own protobuf.
OPEN = """
import json, sys
from xprof.convert import raw_to_tool_data as convert
path, made = sys.argv[1], {}
made["names"] = convert.xspace_to_tool_names([path])
for tool in ("trace_viewer", "overview_page", "op_profile", "hlo_stats", "framework_op_stats"):
    data, kind = convert.xspace_to_tool_data([path], tool, {"use_saved_result": False})
    made[tool] = json.loads(data)
json.dump(made, sys.stdout)
"""


def rows(table):
    """Dictionaries of a table of Google's charts."""
    names = [column["id"] for column in table["cols"]]
    return [dict(zip(names, (cell["v"] for cell in row["c"]))) for row in table["rows"]]


def profiled(folder, device, **named):
    model = cornu.Sequential([cornu.Input((12, 12, 1)),
                              L.Conv2D(8, 3, activation="relu", name="conv"), L.Flatten(),
                              L.Dense(10, "softmax", name="classes")])
    model.compile("adam", "sparse_categorical_crossentropy", device=device)
    x, y = np.random.rand(192, 12, 12, 1).astype("float32"), np.arange(192) % 10
    model.fit(x, y, batch_size=32, epochs=1, verbose=0,
              callbacks=[cornu.callbacks.TensorBoard(folder, **named)])
    return glob.glob(os.path.join(folder, "plugins", "profile", "*", "*.xplane.pb"))


class Arguments(unittest.TestCase):
    def test_one_batch_or_a_pair(self):
        """As in Keras: a number, a pair, or a pair in a string; 0 profiles nothing."""
        for given, count in ((0, 0), (2, 1), ((2, 4), 1), ([2, 4], 1), ("2,4", 1)):
            with tempfile.TemporaryDirectory() as folder:
                self.assertEqual(len(profiled(folder, None, profile_batch=given)), count, given)
        with self.assertRaises(ValueError):
            cornu.callbacks.TensorBoard(profile_batch=(1, 2, 3))


@unittest.skipIf(importlib.util.find_spec("xprof") is None, "xprof: pip install xprof")
class Opened(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path, = profiled(folder, cornu.Device("tpu:v3-8", shards=2), profile_batch=(2, 4))
            ran = subprocess.run([sys.executable, "-c", OPEN, path], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, timeout=600)
            if ran.returncode:
                raise AssertionError(ran.stderr)
            cls.made = json.loads(ran.stdout)

    def test_the_trace_has_both_planes(self):
        events = self.made["trace_viewer"]["traceEvents"]
        process = {e["args"]["name"]: e["pid"] for e in events if e.get("name") == "process_name"}
        self.assertEqual(set(process), {"/host:CPU", "/device:TPU:0"})
        threads = {e["args"]["name"] for e in events if e.get("name") == "thread_name"
                   and e["pid"] == process["/device:TPU:0"]}
        self.assertLessEqual({"Steps", "XLA Modules", "XLA Ops", "MXU", "vector unit", "HBM",
                              "infeed", "host"}, threads)
        steps = [e for e in events if e.get("name") == "training step"]
        self.assertEqual([e["args"]["step_num"] for e in steps], ["2", "3", "4"])
        convolution, = {e["args"]["how"] for e in events if e.get("ph") == "X"
                        and e["args"].get("hlo_category", "").startswith("convolution")}
        self.assertEqual(convolution, "modelled")

    def test_the_overview_has_the_steps(self):
        parts = [part.get("p") or {} for part in self.made["overview_page"]]
        said = {key: value for part in parts for key, value in part.items()}
        self.assertEqual(said["device_type"], "TPU v3 (modelled)")
        self.assertEqual(said["hardware_type"], "TPU")
        self.assertAlmostEqual(float(said["steptime_ms_average"]), 43.8, delta=0.2)

    def test_the_stats_have_the_layers(self):
        ops = rows(self.made["hlo_stats"])
        by_layer = {op["tf_op_name"].split("/")[0] for op in ops}
        self.assertLessEqual({"conv", "classes", "adam"}, by_layer)
        self.assertTrue(all(op["occurrences"] == 3 for op in ops))
        convolution = next(op for op in ops if op["hlo_op_name"].startswith("conv2d+"))
        self.assertEqual(convolution["category"], "convolution fusion")
        self.assertGreater(convolution["model_flop_rate"], 0)
        self.assertGreater(convolution["hbm_bw"], 0)
        kinds = {(row["host_or_device"], row["type"], row["operation"].split("/")[0])
                 for row in rows(self.made["framework_op_stats"][0])}
        for side in ("Host", "Device"):
            self.assertLessEqual({(side, "Conv2d", "conv"), (side, "Matmul", "classes")}, kinds)

    def test_the_profile_has_categories(self):
        program = next(child for child in self.made["op_profile"]["byProgram"]["children"]
                       if child["name"] != "IDLE")
        names = {child["name"] for child in program["children"]}
        self.assertLessEqual({"convolution fusion", "loop fusion"}, names)


if __name__ == "__main__":
    unittest.main()
