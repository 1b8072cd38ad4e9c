"""The weights with which both sides of a comparison start: those that Keras has when a model, or a
layer outside of one, is first called on data.

Written, with Keras, writes them in the order of these calls. Given, with this package, takes them:
of those of a weight's shape that are left, the one whose path has most of its parts, or the first.
"""

import json
import os

import numpy as np


class Written:
    """Keras' weights, into a folder."""

    notes = ()

    def __init__(self, package, folder):
        self._folder, self._seen, self._made, self._found = folder, {}, {}, []
        self._backend = package.backend.backend()
        kind = package.Variable
        for base in [each for each in kind.__mro__ if "_initialize_with_initializer" in vars(each)]:
            base._initialize_with_initializer = self._noting(base._initialize_with_initializer)

    def _noting(self, real):
        """What an initializer draws is computed at once, also while a step is traced."""
        def initialize(variable, initializer):
            if id(variable) in self._made:
                return real(variable, initializer)
            with self._outside():
                value = np.asarray(initializer(variable._shape, dtype=variable._dtype))
            self._made[id(variable)] = variable, value
            return real(variable, lambda shape, dtype=None: variable._convert_to_tensor(value))
        return initialize

    def _outside(self):
        if self._backend == "jax":
            import jax
            return jax.ensure_compile_time_eval()
        import tensorflow
        return tensorflow.init_scope()

    def first_use(self, layer):
        for weight in layer.weights:
            if id(weight) not in self._seen:
                self._seen[id(weight)] = weight
                self._found.append((weight, self._value(weight)))
        return False

    def _value(self, weight):
        """Now, or, where it is not known while a step is traced, None: it is as it was made."""
        try:
            with self._outside():
                value = weight._value
                found = np.array(value.numpy() if hasattr(value, "numpy") else value)
                known = value is not None and found.shape == tuple(weight.shape)
                return found if known else None
        except Exception:       # pylint: disable=broad-exception-caught
            return None

    def finish(self):
        found = [(weight, self._made.get(id(weight), (None, None))[1] if value is None else value)
                 for weight, value in self._found]
        found = [(weight.path, value) for weight, value in found if value is not None]
        with open(os.path.join(self._folder, "weights.npy"), "wb") as file:
            for _, value in found:
                np.save(file, value)
        with open(os.path.join(self._folder, "weights.json"), "w", encoding="utf-8") as file:
            json.dump([path for path, _ in found], file)


def _common(a, b):
    """How many parts two paths have in common, from their ends."""
    count = 0
    for x, y in zip(reversed(a.split("/")), reversed(b.split("/"))):
        if x != y:
            break
        count += 1
    return count


class Given:
    """The weights in a folder, into this package's."""

    def __init__(self, package, folder):
        self._seen, self.notes, self._set = {}, [], 0
        with open(os.path.join(folder, "weights.json"), encoding="utf-8") as file:
            paths = json.load(file)
        with open(os.path.join(folder, "weights.npy"), "rb") as file:
            self._left = [(path, np.load(file)) for path in paths]

    def first_use(self, layer):
        """Whether weights of the layer have been set."""
        changed = False
        for weight in layer.weights:
            address = getattr(weight, "_address", id(weight))
            if address in self._seen:
                continue
            self._seen[address] = weight
            fits = [(-_common(path, weight.path), i) for i, (path, value) in enumerate(self._left)
                    if value.shape == tuple(weight.shape)]
            if not fits:
                self.notes.append("%s %s: Keras has none" % (weight.path, tuple(weight.shape)))
                continue
            _, value = self._left.pop(min(fits)[1])
            weight.write(value) if hasattr(weight, "write") else weight.assign(value)
            self._set, changed = self._set + 1, True
        return changed

    def finish(self):
        if self._left:
            self.notes.append("%d weights of Keras are not here, such as %s %s"
                              % (len(self._left), self._left[0][0], self._left[0][1].shape))
