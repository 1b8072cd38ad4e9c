"""Arrays as NumPy writes them: tests/golden/arrays/*.npy, *.npz.

    python make_arrays.py       # needs NumPy alone

Element k of an array in C's order, from 0, is k * 7 % 23 - 9 where its dtype has a sign, plus 0.25
for floats, and k * 7 % 23 without one; a boolean is whether k * 7 % 23 is odd. An array is called
DTYPE_BYTEORDER_ORDER, "i2_big_f".
"""
import pathlib
import platform

import numpy as np

DTYPES = ["f4", "f8", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "b1"]


def make(dtype, shape):
    k = np.arange(np.prod(shape)).reshape(shape) * 7 % 23
    if dtype == "b1":
        return k % 2 == 1
    return k if dtype[0] == "u" else k - 9 + (0.25 if dtype[0] == "f" else 0)


def main():
    folder = pathlib.Path(__file__).parent / "arrays"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    arrays = {}
    for dtype in DTYPES:
        for sign, name in ("<", "little"), (">", "big"):
            for order in "CF":
                values = make(dtype, (5, 3, 2)).astype(sign + dtype)
                arrays["%s_%s_%s" % (dtype, name, order.lower())] = np.asarray(values, order=order)
    np.savez(folder / "stored.npz", **arrays)
    np.savez_compressed(folder / "deflated.npz", **arrays)
    np.save(folder / "x.npy", make("f4", (5, 3, 2)).astype("<f4"))
    np.save(folder / "vector.npy", make("i8", (5,)))
    np.savez(folder / "one.npz", only=make("u1", (4,)).astype("u1"))
    np.lib.format.write_array(open(folder / "version_2.npy", "wb"),
                              make("i4", (2, 2)).astype("<i4"), version=(2, 0))
    np.lib.format.write_array(open(folder / "version_3.npy", "wb"),
                              make("i4", (2, 2)).astype("<i4"), version=(3, 0))
    np.savez_compressed(folder / "zeros.npz", zeros=np.zeros((1000, 100)))
    np.save(folder / "complex.npy", np.ones((2, 2), "c8"))
    np.save(folder / "strings.npy", np.array(["a", "bc"]))
    np.save(folder / "objects.npy", np.array([{}, []], object))
    np.save(folder / "structure.npy", np.zeros(2, [("a", "f4"), ("b", "i4")]))
    np.save(folder / "dates.npy", np.array(["2020-01-01"], "datetime64[D]"))
    np.save(folder / "scalar.npy", np.float32(1))
    (folder / "VERSIONS").write_text("Python %s\nnumpy %s\n" % (platform.python_version(),
                                                                np.__version__))


if __name__ == "__main__":
    main()
