"""Sequences token by token."""

import ctypes

import numpy as np

from ._binding.arrays import Borrowed
from ._binding.library import Owned, lib, struct

_WINDOWS = ("slides", "halves", "stops")
_EMIT = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_MAX_STOPS = lib.constants["CORNU_MAX_STOPS"]


def window_of(name):
    if name not in _WINDOWS:
        raise ValueError("window is %r, expected one of %s" % (name, ", ".join(_WINDOWS)))
    return _WINDOWS.index(name)


def _sequences(prime):
    """The sequences of tokens, and whether one was given by itself."""
    alone = all(np.ndim(token) == 0 for token in prime)
    sequences = [prime] if alone else list(prime)
    arrays = [np.asarray(tokens) for tokens in sequences]
    return [a.astype(np.int32) if a.dtype.kind == "i" else a for a in arrays], alone


def generate(prime, count, temperature, top_k, top_p, seed, stop, logits, on_token, **source):
    """cornu_generate: `source` are the fields of a model, or of a generator."""
    primes, alone = _sequences(prime)
    stops = [np.asarray(tokens) for tokens in stop]
    if len(stops) > _MAX_STOPS:
        raise ValueError("stop has %d sequences, expected at most %d" % (len(stops), _MAX_STOPS))
    lent, written, errors = Borrowed(), [[] for _ in primes], []

    def emit(context, sequence, token):
        written[sequence].append(token)
        try:
            return on_token is None or (on_token(token) if alone
                                        else on_token(sequence, token)) is not False
        except BaseException as error:      # raised once the library has returned
            errors.append(error)
            return False

    call = _EMIT(emit)
    config = struct("CornuGenerateConfig", count=count, top_k=top_k, top_p=top_p, seed=seed,
                    temperature=temperature or float(lib.constants["CORNU_ZERO"]), logits=logits,
                    primes=lent.arrays(primes), prime_count=len(primes),
                    emit_each=ctypes.cast(call, ctypes.c_void_p), **source)
    for i, tokens in enumerate(stops):
        config.stop[i] = lent.array(tokens)
    lib.cornu_generate_from(ctypes.byref(config))
    if errors:
        raise errors[0]
    return written[0] if alone else written


class Generator:
    """A copy of a causal model that predicts token by token, each from what was kept of those
    before: keys and values of attention, states of recurrences, inputs of convolutions.

    batch_size: sequences at once
    sequence_length: the tokens that a model with attention sees, where it takes any number
    window: what happens with one more: "slides", which computes all again for each token;
        "halves", which forgets the older half; "stops", an error
    threads: 0: those of the model's device
    """

    def __init__(self, model, batch_size: int = 1, sequence_length: int = 0,
                 window: str = "slides", threads: int = 0):
        config = struct("CornuTokenGeneratorConfig", model=model.pointer, batch_size=batch_size,
                        sequence_length=sequence_length, window=window_of(window), threads=threads)
        self._owned = Owned(lib.cornu_generator_from(ctypes.byref(config)),
                            lib.cornu_generator_free)
        self.batch_size = batch_size
        self.vocabulary = lib.cornu_generator_vocabulary(self._owned.address)
        self.window = lib.cornu_generator_window(self._owned.address) or None

    def _outputs(self):
        return np.empty((self.batch_size, self.vocabulary), np.float32)

    def begin(self, primes):
        """Begins sequences with these tokens, of any lengths; what the model predicts for the next
        of each, (batch_size, vocabulary)."""
        arrays, _ = _sequences(primes)
        if len(arrays) != self.batch_size:
            raise ValueError("%d sequences are given, expected %d" % (len(arrays), self.batch_size))
        lent, to = Borrowed(), self._outputs()
        lib.cornu_generator_begin(self._owned.address, lent.arrays(arrays), lent.array(to))
        return to

    def next(self, tokens):
        """Appends a token to each sequence, or none where it is -1; what is predicted for the
        next."""
        lent, to = Borrowed(), self._outputs()
        lib.cornu_generator_next(self._owned.address, lent.array(np.asarray(tokens)),
                                 lent.array(to))
        return to

    def generate(self, prime, count: int, temperature: float = 1.0, top_k: int = 0,
                 top_p: float = 1.0, seed: int = 0, stop=(), logits: bool = False, on_token=None):
        """As Model.generate."""
        return generate(prime, count, temperature, top_k, top_p, seed, stop, logits, on_token,
                        generator=self._owned.address)
