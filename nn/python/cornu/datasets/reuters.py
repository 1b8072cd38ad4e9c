"""News of Reuters as words' indices, and their topics."""

import json

import numpy as np

from .files import ADDRESS, find, limited, marked, objects, read_npz, shorter

_LABELS = ("cocoa grain veg-oil earn acq wheat copper housing money-supply coffee sugar trade "
           "reserves ship cotton carcass crude nat-gas cpi money-fx interest gnp meal-feed alum "
           "oilseed gold tin strategic-metal livestock retail ipi iron-steel rubber heat jobs lei "
           "bop zinc orange pet-chem dlr gas silver wpi hog lead")


def load_data(path="reuters.npz", num_words=None, skip_top=0, maxlen=None, test_split=0.2,
              seed=113, start_char=1, oov_char=2, index_from=3):
    """(x_train, y_train), (x_test, y_test): arrays of lists of indices, and topics 0 to 45. The
    arguments are those of imdb.load_data."""
    found = read_npz(find(path, ADDRESS + "reuters.npz", (
        "d6586e694ee56d7a4e65172e12b3e987c03096cb01eab99753921ef915959916"
        if path == "reuters.npz" else None)))
    order = np.arange(len(found["x"]))
    np.random.RandomState(seed).shuffle(order)
    rows = marked(found["x"][order], start_char, index_from if start_char is not None else
                  index_from or 0)
    rows, labels = shorter(rows, found["y"][order], maxlen)
    rows = objects(limited(rows, num_words, skip_top, oov_char))
    cut = int(len(rows) * (1 - test_split))
    return (rows[:cut], np.array(labels[:cut])), (rows[cut:], np.array(labels[cut:]))


def get_word_index(path="reuters_word_index.json"):
    """The index of each word, without index_from."""
    with open(find(path, ADDRESS + "reuters_word_index.json"), encoding="utf-8") as file:
        return json.load(file)


def get_label_names():
    """The topics by their numbers."""
    return tuple(_LABELS.split())
