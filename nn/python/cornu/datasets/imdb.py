"""Reviews of films as words' indices, and whether they praise."""

import json

import numpy as np

from .files import ADDRESS, find, limited, marked, objects, read_npz, shorter


def load_data(path="imdb.npz", num_words=None, skip_top=0, maxlen=None, seed=113, start_char=1,
              oov_char=2, index_from=3):
    """(x_train, y_train), (x_test, y_test): arrays of lists of indices, and 0 or 1.

    num_words, skip_top: words from skip_top to num_words; in place of others is oov_char
    maxlen: rows of fewer words alone
    """
    found = read_npz(find(path, ADDRESS + "imdb.npz", (
        "69664113be75683a8fe16e3ed0ab59fda8886cb3cd7ada244f7d9544e4676b9f"
        if path == "imdb.npz" else None)))
    rng, parts = np.random.RandomState(seed), []
    for part in ("train", "test"):
        order = np.arange(len(found["x_" + part]))
        rng.shuffle(order)
        rows = marked(found["x_" + part][order], start_char, index_from)
        parts.append(shorter(rows, found["y_" + part][order], maxlen))
    rows, count = parts[0][0] + parts[1][0], len(parts[0][0])
    rows = limited(rows, num_words, skip_top, oov_char)
    return (objects(rows[:count]), parts[0][1]), (objects(rows[count:]), parts[1][1])


def get_word_index(path="imdb_word_index.json"):
    """The index of each word, without index_from."""
    with open(find(path, ADDRESS + "imdb_word_index.json"), encoding="utf-8") as file:
        return json.load(file)
