"""Folders of files as data: a folder for each class. Files are found, counted, put in order and
split as Keras does, so that a seed has its files on the same side of a split."""

import itertools
import os

import numpy as np

from . import images, sounds
from .batches import Dataset

# Keras' first, then those that the library reads besides.
_IMAGES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".pbm", ".pgm", ".ppm", ".pnm", ".dcm")


def _files(folder, follow_links, endings):
    for root, _, names in sorted(os.walk(folder, followlinks=follow_links)):
        for name in sorted(names):
            if name.lower().endswith(endings):
                yield os.path.join(root, name)


def _index(directory, labels, class_names, endings, follow_links):
    """The paths, their labels and the names of classes, class by class."""
    if labels != "inferred":
        if class_names:
            raise ValueError("class_names is given, expected only with labels='inferred'")
        paths = list(_files(directory, follow_links, endings))
        if labels is not None and len(labels) != len(paths):
            raise ValueError("there are %d labels for the %d files of %s"
                             % (len(labels), len(paths), directory))
        return paths, labels and list(labels), labels and [str(c) for c in sorted(set(labels))]
    found = sorted(name for name in os.listdir(directory) if not name.startswith(".") and
                   os.path.isdir(os.path.join(directory, name)))
    if not set(class_names or []) <= set(found):
        raise ValueError("class_names is %s, expected some of the folders of %s: %s"
                         % (list(class_names), directory, ", ".join(found)))
    class_names = list(class_names or found)
    paths = [(path, i) for i, name in enumerate(class_names)
             for path in _files(os.path.join(directory, name), follow_links, endings)]
    return [p for p, _ in paths], [i for _, i in paths], class_names


def _check(labels, label_mode, split, subset, shuffle, seed):
    if labels not in ("inferred", None) and not isinstance(labels, (list, tuple)):
        raise ValueError("labels is %r, expected 'inferred', None or a list" % (labels,))
    if label_mode not in ("int", "categorical", "binary", None):
        raise ValueError("label_mode is %r, expected 'int', 'categorical', 'binary' or None"
                         % (label_mode,))
    if subset not in ("training", "validation", "both", None) or bool(split) != bool(subset):
        raise ValueError("subset is %r with validation_split %r, expected 'training', 'validation' "
                         "or 'both' with one, and None without" % (subset, split))
    if split and not 0 < split < 1:
        raise ValueError("validation_split is %r, expected a number between 0 and 1" % (split,))
    if split and shuffle and seed is None:
        raise ValueError("seed is required with validation_split and shuffle, so that no file is "
                         "on both sides")


def _label(mode, classes):
    """What a label becomes."""
    if mode == "binary":
        return lambda label: np.array([label], np.float32)
    if mode == "categorical":
        return lambda label: np.eye(classes, dtype=np.float32)[label]
    return np.int32


class _Folder:
    """What these functions share: `read` makes an element's x of a path."""

    def __init__(self, directory, read, endings, labels, label_mode, class_names, shuffle, seed,
                 split, subset, follow_links, verbose):
        _check(labels, label_mode, split, subset, shuffle, seed)
        labels = None if label_mode is None else labels
        self._mode = None if labels is None else label_mode
        self._read, self._shuffle, self._split = read, shuffle, split
        self._seed = np.random.randint(1000000) if seed is None else seed
        self._paths, self._labels, self.class_names = _index(directory, labels, class_names,
                                                             endings, follow_links)
        if verbose:
            of = " belonging to %d classes" % len(self.class_names) if self._mode else ""
            print("Found %d files%s." % (len(self._paths), of))
        if not self._paths:
            raise ValueError("there is no file in %s that ends in %s"
                             % (directory, ", ".join(endings)))
        if self._mode == "binary" and len(self.class_names) != 2:
            raise ValueError("label_mode is 'binary' for the classes %s, expected two"
                             % ", ".join(self.class_names))
        if shuffle:
            for values in (self._paths, self._labels):
                if values is not None:
                    np.random.RandomState(self._seed).shuffle(values)
        self._verbose = verbose

    def _part(self, subset):
        """The range of one side of the split."""
        cut = len(self._paths) - int((self._split or 0) * len(self._paths))
        found = range(cut) if subset == "training" else range(cut, len(self._paths))
        if self._verbose:
            print("Using %d files for %s." % (len(found), subset))
        if not len(found):
            raise ValueError("validation_split is %r of %d files, which leaves none for %s"
                             % (self._split, len(self._paths), subset))
        return found

    def dataset(self, subset, batch_size, batches=None):
        """The Dataset of a side, or of all, in batches, made by `batches` of a Dataset."""
        part = self._part(subset) if subset else range(len(self._paths))
        paths = [self._paths[i] for i in part]
        label = _label(self._mode, len(self.class_names or ()))
        labels = [label(self._labels[i]) for i in part] if self._mode else None
        numbers = Dataset(lambda: iter(range(len(paths))), len(paths))
        if self._shuffle and subset != "validation":
            numbers = numbers.shuffle(batch_size * 8 if batch_size else 1024, self._seed)
        made = numbers.map(lambda i: (self._read(paths[i]), labels[i]) if labels else
                           self._read(paths[i]))
        made = batches(made) if batches else made if batch_size is None else \
            made.batch(batch_size)
        made.class_names, made.file_paths = self.class_names, paths
        return made

    def datasets(self, subset, batch_size, batches=None):
        if subset == "both":
            return [self.dataset(side, batch_size, batches) for side in ("training", "validation")]
        return self.dataset(subset, batch_size, batches)


def image_dataset_from_directory(directory, labels="inferred", label_mode="int", class_names=None,
                                 color_mode="rgb", batch_size=32, image_size=(256, 256),
                                 shuffle=True, seed=None, validation_split=None, subset=None,
                                 interpolation="bilinear", follow_links=False,
                                 crop_to_aspect_ratio=False, pad_to_aspect_ratio=False,
                                 data_format=None, format="tf", verbose=True):
    """A Dataset of batches of images, float32 (B, H, W, C) of 0 to 255, and labels; a list of two
    with subset="both". It has class_names and file_paths."""
    size = (image_size, image_size) if isinstance(image_size, int) else tuple(image_size)
    if pad_to_aspect_ratio:
        raise NotImplementedError("image_dataset_from_directory: pad_to_aspect_ratio is not "
                                  "supported; crop_to_aspect_ratio is")

    def read(path):
        pixels = images.read_image(path, color_mode)
        made = images.smart_resize(pixels, size, interpolation) if crop_to_aspect_ratio else \
            images.resized(pixels, *size, interpolation)
        return made.transpose(2, 0, 1) if data_format == "channels_first" else made
    folder = _Folder(directory, read, _IMAGES, labels, label_mode, class_names, shuffle, seed,
                     validation_split, subset, follow_links, verbose)
    return folder.datasets(subset, batch_size)


def _padded(batch_size):
    """Rows of several lengths in one batch: shorter ones are continued by zeros."""
    def padded(rows):
        longest = max(len(row) for row in rows)
        return np.stack([np.pad(row, ((0, longest - len(row)), (0, 0))) for row in rows])

    def batches(data):
        def iterate():
            rest = iter(data)
            while rows := list(itertools.islice(rest, batch_size)):
                if isinstance(rows[0], tuple):
                    yield padded([x for x, _ in rows]), np.stack([y for _, y in rows])
                else:
                    yield padded(rows)
        return Dataset(iterate, -(-len(data) // batch_size))
    return batches


def audio_dataset_from_directory(directory, labels="inferred", label_mode="int", class_names=None,
                                 batch_size=32, sampling_rate=None, output_sequence_length=None,
                                 ragged=False, shuffle=True, seed=None, validation_split=None,
                                 subset=None, follow_links=False, format="tf", verbose=True):
    """A Dataset of batches of sounds, float32 (B, samples, channels) of -1 to 1, and labels; a list
    of two with subset="both". Sounds are cut at output_sequence_length samples or continued by
    zeros; without it, to the longest of the batch. Files are .wav and, where libsndfile is
    installed, .flac, .ogg, .aiff and .au; they are not resampled, so that one with another
    sampling_rate is refused."""
    if ragged:
        raise NotImplementedError("audio_dataset_from_directory: ragged is not supported; "
                                  "output_sequence_length, or batches as long as their longest "
                                  "sound, are")
    if sampling_rate is not None and (not isinstance(sampling_rate, int) or sampling_rate <= 0):
        raise ValueError("sampling_rate is %r, expected a positive integer" % (sampling_rate,))

    def read(path):
        return sounds.read_sound(path, sampling_rate, output_sequence_length)
    folder = _Folder(directory, read, sounds.SUFFIXES, labels, label_mode, class_names, shuffle,
                     seed, validation_split, subset, follow_links, verbose)
    batches = None if output_sequence_length or batch_size is None else _padded(batch_size)
    return folder.datasets(subset, batch_size, batches)


def text_dataset_from_directory(directory, labels="inferred", label_mode="int", class_names=None,
                                batch_size=32, max_length=None, shuffle=True, seed=None,
                                validation_split=None, subset=None, follow_links=False,
                                format="tf", verbose=True):
    """A Dataset of batches of strings, the contents of .txt files, of which max_length bytes are
    kept, and labels; a list of two with subset="both"."""
    def read(path):
        with open(path, "rb") as file:
            return file.read() if max_length is None else file.read(max_length)
    folder = _Folder(directory, read, (".txt",), labels, label_mode, class_names, shuffle, seed,
                     validation_split, subset, follow_links, verbose)
    return folder.datasets(subset, batch_size)
