"""TensorFlow's functions of complex numbers and signals, by Cornu's: a tensor of complex numbers is
a pair of tensors, as Keras' operations have it."""

import math

import numpy as np

from .. import ops


class Complex:
    """A tensor of complex numbers: its real and its imaginary parts, of equal shapes."""

    dtype = "complex64"

    def __init__(self, real, imag):
        self.real, self.imag = real, imag

    shape = property(lambda self: self.real.shape)

    def _with(self, other, function):
        return Complex(*function(self.real, self.imag, *_parts(other)))

    def __add__(self, other):
        return self._with(other, lambda a, b, c, d: (a + c, b + d))

    def __sub__(self, other):
        return self._with(other, lambda a, b, c, d: (a - c, b - d))

    def __mul__(self, other):
        return self._with(other, lambda a, b, c, d: (a * c - b * d, a * d + b * c))

    __radd__, __rmul__ = __add__, __mul__

    def __getitem__(self, key):
        return Complex(self.real[key], self.imag[key])

    def __repr__(self):
        return "<complex numbers of the shape %s>" % (tuple(self.shape),)


def _parts(x):
    if isinstance(x, (Complex, complex)):
        return x.real, x.imag
    if "complex" in str(getattr(x, "dtype", "")):       # of TensorFlow or NumPy
        x = np.asarray(x)
        return x.real, x.imag
    return x, 0


def is_complex(values):
    """Whether such a tensor is among the arguments, or in lists of them."""
    return any(is_complex(v) if isinstance(v, (list, tuple)) else isinstance(v, Complex)
               for v in values)


# ---- Parts ----

def cast(x, dtype):
    if dtype == "complex64":
        return x if isinstance(x, Complex) else Complex(ops.cast(x, "float32"),
                                                        ops.zeros_like(x, dtype="float32"))
    return ops.cast(x.real if isinstance(x, Complex) else x, dtype)


def complex_(real, imag):
    return Complex(real, imag)


def absolute(x):
    if not isinstance(x, Complex):
        return ops.absolute(x)
    return ops.sqrt(ops.square(x.real) + ops.square(x.imag))


def real(input):                # pylint: disable=redefined-builtin
    return input.real if isinstance(input, Complex) else input


def imag(input):                # pylint: disable=redefined-builtin
    return input.imag if isinstance(input, Complex) else ops.zeros_like(input)


def conj(x):
    return Complex(x.real, -x.imag) if isinstance(x, Complex) else x


def angle(input):               # pylint: disable=redefined-builtin
    return ops.arctan2(imag(input), real(input))


# ---- Transforms and signals ----

def transform(operation):
    def call(input):            # pylint: disable=redefined-builtin
        return Complex(*operation((real(input), imag(input))))
    return call


def frame(signal, frame_length, frame_step, pad_end=False, pad_value=0, axis=-1):
    """With pad_end a frame begins at each step within the signal."""
    count = len(signal.shape)
    if axis not in (-1, count - 1):
        raise NotImplementedError("tf.signal.frame of the axis %d, expected the last one" % axis)
    if pad_end:
        signal = ops.pad(signal, [(0, 0)] * (count - 1) + [(0, int(frame_length) - 1)],
                         constant_values=pad_value)
    return ops.extract_sequences(signal, int(frame_length), int(frame_step))


def stft(signals, frame_length, frame_step, fft_length=None, window_fn=True, pad_end=False):
    """window_fn: left out, the window of Hann, which TensorFlow has periodic if its length is even."""
    length = int(frame_length)
    fft_length = 1 << math.ceil(math.log2(length)) if fft_length is None else int(fft_length)
    frames = frame(signals, length, frame_step, pad_end)
    if window_fn is True:
        period = max(length - length % 2, 1)
        window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / period)
        frames = frames * window.astype(np.float32)
    elif window_fn is not None:
        frames = frames * np.asarray(window_fn(length, dtype="float32"))
    return Complex(*ops.rfft(frames, fft_length))


FUNCTIONS = {
    "cast": cast, "complex": complex_, "abs": absolute, "math.real": real, "math.imag": imag,
    "math.conj": conj, "math.angle": angle, "signal.fft": transform(ops.fft),
    "signal.fft2d": transform(ops.fft2), "signal.ifft2d": transform(ops.ifft2),
    "signal.frame": frame, "signal.stft": stft,
}
