"""The programs of examples/python: each runs on little data, and prints at its end what it prints
only if it has learned."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "python"
SAID = {
    "mnist_convnet": r"^Test accuracy: (1|0\.9)",
    "custom_loop": r"^Test accuracy: (1|0\.[89])",
    "mnist_cnn": r"^Test accuracy: (1|0\.[6-9])",     # its averages want more steps
    "fashion_mnist_cnn": r"^Test accuracy: (1|0\.9)",
    "shakespeare_lstm": r"(night|people|light)[^$]*\nValidation loss: 0\.[0-4]",
    "functional": r"^Sums: (1|0\.[3-9]).*\nComparisons: (1|0\.[89])",
    "own_loss": r"^y = (1\.9|2\.0)\d* x \+ (0\.9|1\.0)",
    "transfer": r"has not seen: (1|0\.[6-9])",
    "text_classification": r"^0\.[012].* Coriolanus: O gentle.*\n0\.[89].* Coriolanus: The common",
    "timeseries": r"ahead: 0\.0\d*; .* now: 0\.1",
    "tpu_strategy": r"val_accuracy: (1|0\.9)",
    "predictor": r"^Test accuracy: (1|0\.9)",
    "vae": r"^Loss: [1-4]\d\d nats",
}
SLOW = {"mnist_cnn", "fashion_mnist_cnn", "shakespeare_lstm"}     # make check alone runs these
CONVERTERS = {"from_torch", "to_keras", "torch_layers", "torch_networks"}   # tests/examples has these


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        subprocess.run([sys.executable, ROOT / "tests" / "examples" / "little_data.py",
                        cls.folder.name], check=True)

    def test_each_is_known(self):
        self.assertEqual({path.stem for path in FOLDER.glob("*.py")} - CONVERTERS, set(SAID))
        table = (ROOT / "examples" / "README.md").read_text()
        for path in FOLDER.glob("*.py"):
            self.assertIn(path.name, table)

    def test_each_is_short(self):
        for name in SAID:
            lines = (FOLDER / (name + ".py")).read_text().splitlines()
            self.assertLessEqual(len(lines), 90, name)
            self.assertLessEqual(max(map(len, lines)), 100, name)
            imported = {line.split()[1].split(".")[0] for line in lines
                        if re.match("(import|from) ", line)}
            self.assertLessEqual(imported, {"cornu", "numpy"} | set(sys.stdlib_module_names), name)


def _runs(name):
    def test(self):
        folder = os.path.join(self.folder.name, name)
        os.makedirs(folder)
        ran = subprocess.run(
            [sys.executable, FOLDER / (name + ".py")], cwd=folder, text=True, timeout=300,
            env=dict(os.environ, CORNU_DATA=self.folder.name), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertRegex(ran.stdout[-1000:], re.compile(SAID[name], re.MULTILINE))
    return test


for _name in set(SAID) - (SLOW if os.environ.get("CORNU_QUICK") else set()):
    setattr(Examples, "test_" + _name, _runs(_name))

if __name__ == "__main__":
    unittest.main()
