"""Keras' keras.preprocessing.sequence, with the functions of tf.keras for pairs of words."""

import random

import numpy as np

from .._surface.missing import getter
from ..utils import pad_sequences

_EULER = 0.577      # as Keras has it


def make_sampling_table(size, sampling_factor=1e-5):
    """With what probability the word of each rank is taken: common ones less often, where their
    frequencies follow Zipf's law. Source: Mikolov and others, arXiv 1310.4546, section 2.3."""
    rank = np.arange(size)
    rank[:1] = 1
    inverse = rank * (np.log(rank) + _EULER) + 0.5 - 1 / (12 * rank)
    return np.minimum(1.0, np.sqrt(sampling_factor * inverse))


def skipgrams(sequence, vocabulary_size, window_size=4, negative_samples=1.0, shuffle=True,
              categorical=False, sampling_table=None, seed=None):
    """Pairs of a word and another within the window, labelled 1, and pairs with words drawn from
    the vocabulary, labelled 0, negative_samples for each of the others. Word 0 stands for none."""
    couples = []
    for i, word in enumerate(sequence):
        if not word or sampling_table is not None and sampling_table[word] < random.random():
            continue
        for j in range(max(0, i - window_size), min(len(sequence), i + window_size + 1)):
            if j != i and sequence[j]:
                couples.append([word, sequence[j]])
    labels = [[0, 1] if categorical else 1] * len(couples)
    if negative_samples > 0:
        count = int(len(couples) * negative_samples)
        words = [couple[0] for couple in couples]
        random.shuffle(words)
        couples += [[words[i % len(words)], random.randint(1, vocabulary_size - 1)]
                    for i in range(count)]
        labels += [[1, 0] if categorical else 0] * count
    if shuffle:
        seed = random.randint(0, 10 ** 7) if seed is None else seed
        for each in (couples, labels):      # in the same order
            random.seed(seed)
            random.shuffle(each)
    return couples, labels


__all__ = ["make_sampling_table", "pad_sequences", "skipgrams"]
__getattr__ = getter(__name__)
