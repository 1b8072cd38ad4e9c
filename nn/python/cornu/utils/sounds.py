"""Sounds of files as arrays: the library reads WAV, and other files by libsndfile."""

import ctypes
import os

import numpy as np

from .._binding.arrays import array_of
from .._binding.library import lib
from .images import Memory

SUFFIXES = (".wav", ".flac", ".ogg", ".aiff", ".au")


def read_sound(path, sampling_rate=None, samples=None):
    """float32 (samples, channels) of -1 to 1: without `samples` all that the file has."""
    array, rate = lib.type("CornuArray")(), ctypes.c_int64()
    lib.cornu_sound_load(os.fspath(path), 0, ctypes.addressof(array), ctypes.addressof(rate))
    sound = array_of(array, Memory(array.data))
    if sampling_rate not in (None, rate.value):
        raise ValueError("%s has %d samples a second, expected %d; sounds are not resampled"
                         % (path, rate.value, sampling_rate))
    if samples is None:
        return sound
    return np.pad(sound[:samples], ((0, max(samples - len(sound), 0)), (0, 0)))
