"""Settings of the program, and Keras' helpers for data."""

import numpy as np

from ._described import reset_names
from ._library import lib
from ._values import state


def set_random_seed(seed):
    """The seed of initial weights, dropout and shuffling of models that this thread makes next. What
    it computes on arrays draws from the beginning."""
    lib.cornu_set_random_seed(int(seed))
    for counter in state.counters.values():
        counter.reset()


def set_dtype_policy(policy):
    """The precision policy of models made from now on: "float32", "mixed_bfloat16", …"""
    lib.cornu_set_dtype_policy(policy)


def clear_session():
    """Default names of layers and models begin anew."""
    reset_names()


def to_categorical(x, num_classes=None):
    """Classes as rows with a 1 at the class: [1, 0] is [[0, 1], [1, 0]]. num_classes: default one
    more than the largest. A last axis of extent 1 is replaced."""
    x = np.asarray(x, "int64")
    shape = x.shape[:-1] if x.ndim > 1 and x.shape[-1] == 1 else x.shape
    classes = x.ravel()
    count = int(num_classes or classes.max(initial=-1) + 1)
    if classes.size and (classes.min() < 0 or classes.max() >= count):
        raise ValueError("to_categorical: a class is %d, expected 0 to %d"
                         % (classes.min() if classes.min() < 0 else classes.max(), count - 1))
    made = np.zeros((classes.size, count))
    made[np.arange(classes.size), classes] = 1
    return made.reshape(shape + (count,))


def _checked(what, value):
    if value not in ("pre", "post"):
        raise ValueError("pad_sequences: %s is %r, expected 'pre' or 'post'" % (what, value))
    return value


def pad_sequences(sequences, maxlen=None, dtype="int32", padding="pre", truncating="pre",
                  value=0.0):
    """Sequences of several lengths as one array, (rows, maxlen, ...): shorter ones are filled with
    `value`, longer ones cut, at the start ("pre") or the end ("post"). maxlen: default that of the
    longest."""
    _checked("padding", padding), _checked("truncating", truncating)
    rows = []
    for i, row in enumerate(sequences):
        if not hasattr(row, "__len__"):
            raise ValueError("pad_sequences: sequence %d is %r, expected a list" % (i, row))
        rows.append(np.asarray(row, dtype))
    longest = max([len(row) for row in rows], default=0) if maxlen is None else maxlen
    shape = next((row.shape[1:] for row in rows if len(row)), ())
    made = np.full((len(rows), longest) + shape, value, dtype)
    for i, row in enumerate(rows):
        if len(row) and row.shape[1:] != shape:
            raise ValueError("pad_sequences: sequence %d has elements of %s, expected %s like the "
                             "first one" % (i, row.shape[1:], shape))
        row = row[max(len(row) - longest, 0):] if truncating == "pre" else row[:longest]
        if len(row):
            made[i, slice(-len(row), None) if padding == "pre" else slice(len(row))] = row
    return made

