"""cornu.compile_to_c: models as C source, compiled here and called."""

import ctypes
import os
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

import cornu
from cornu import layers as L


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


@unittest.skipUnless(shutil.which("cc"), "a C compiler: apt-get install gcc")
class CompileToC(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "net.c")
        self.x = np.random.default_rng(0).random((64, 6, 6, 1)).astype(np.float32)

    def model(self):
        return cornu.Sequential([cornu.Input((6, 6, 1)), L.Conv2D(4, 3, activation="relu"),
                                 L.Flatten(), L.Dense(3, "softmax")])

    def compiled(self):
        library = os.path.join(self.folder.name, "net.so")
        subprocess.run(["cc", "-std=c99", "-O1", "-shared", "-fPIC", self.path, "-o", library,
                        "-lm"], check=True)
        return ctypes.CDLL(library)

    def bytes_of(self, name):
        with open(self.path[:-1] + "h", encoding="ascii") as header:
            return next(int(line.split()[2]) for line in header
                        if line.startswith("#define %s " % name))

    def test_a_prediction(self):
        model, y = self.model(), np.zeros(3, np.float32)
        cornu.compile_to_c(model, self.path)
        library, scratch = self.compiled(), np.zeros(self.bytes_of("NET_SCRATCH_BYTES"), np.uint8)
        library.net_predict(ctypes.byref(ctypes.c_char.in_dll(library, "net_trained")),
                            pointer(scratch), pointer(self.x), pointer(y))
        np.testing.assert_allclose(y, model.predict(self.x[:1], verbose=0)[0], rtol=1e-5)

    def test_training(self):
        model, labels = self.model(), (np.arange(64) % 3).astype(np.int32)
        model.compile("adam", "sparse_categorical_crossentropy")
        cornu.compile_to_c(model, self.path, train=True, batch_size=8)
        library, y = self.compiled(), np.zeros(3, np.float32)
        scratch = np.zeros(max(self.bytes_of("NET_SCRATCH_BYTES"),
                               self.bytes_of("NET_STEP_SCRATCH_BYTES")), np.uint8)
        state = np.zeros(1 << 16, np.uint8)
        library.net_init(pointer(state))
        for i in range(0, 64, 8):
            library.net_step(pointer(state), pointer(scratch), pointer(self.x[i:i + 8]),
                             pointer(labels[i:i + 8]))
        model.fit(self.x, labels, batch_size=8, epochs=1, shuffle=False, verbose=0)
        library.net_predict(pointer(state), pointer(scratch), pointer(self.x), pointer(y))
        np.testing.assert_allclose(y, model.predict(self.x[:1], verbose=0)[0], rtol=1e-5)

    def test_refusals(self):
        with self.assertRaisesRegex(cornu.CornuError, "expected an identifier"):
            cornu.compile_to_c(self.model(), self.path, name="2 digits")
        with self.assertRaisesRegex(cornu.CornuError, "not compiled"):
            cornu.compile_to_c(self.model(), self.path, train=True)
        self.assertEqual(os.listdir(self.folder.name), [])


if __name__ == "__main__":
    unittest.main()
