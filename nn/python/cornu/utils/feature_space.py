"""FeatureSpace: columns of a table, of numbers and words, as vectors."""

import json
import os
import zipfile

import numpy as np

from .. import layers
from .._binding.described import unique_name
from .._tensors.calls import stored
from .._tensors.symbols import input_tensor
from .._tensorflow import in_graph

_MEMBER = "feature_space.json"      # of a .keras file, beside its model
_MODES = {"feature": ("int", "one_hot", "float"), "cross": ("int", "one_hot"),
          "space": ("concat", "dict")}


def _check_mode(what, mode):
    if mode not in _MODES[what]:
        raise ValueError("output_mode of a %s is %r, expected one of %s"
                         % (what, mode, ", ".join(_MODES[what])))
    return mode


class Feature:
    """A column: its dtype, the layer that it goes through, and whether that is one_hot encoded."""

    def __init__(self, dtype, preprocessor, output_mode):
        self.dtype, self.preprocessor = dtype, preprocessor
        self.output_mode = _check_mode("feature", output_mode)

    def known(self):
        """A value that the preprocessor takes."""
        if hasattr(self.preprocessor, "get_vocabulary") and \
                not self.preprocessor.class_name.startswith("TextV"):
            return self.preprocessor.get_vocabulary()[-1]
        return "" if self.dtype == "string" else 0


class Cross:
    """Columns whose values, together, are hashed to one of crossing_dim numbers."""

    def __init__(self, feature_names, crossing_dim, output_mode="one_hot"):
        self.feature_names, self.crossing_dim = tuple(feature_names), crossing_dim
        self.output_mode = _check_mode("cross", output_mode)

    @property
    def name(self):
        return "_X_".join(self.feature_names)


def _feature(dtype, kind, output_mode, name, default, **arguments):
    layer = kind(name=(name or unique_name(default)) + "_preprocessor", **arguments)
    return Feature(dtype, layer, output_mode)


class FeatureSpace:
    """Keras' FeatureSpace: preprocesses the columns of a table, given as a dictionary of arrays,
    and encodes them as one vector a row, or as a dictionary of such.

    features: for each column its kind, by name, such as "float_normalized", or what the function of
        that name returns
    crosses: tuples of names of columns, or what cross returns
    """

    # The functions below are Keras', by whose names and defaults programs call them.

    @classmethod
    def cross(cls, feature_names, crossing_dim, output_mode="one_hot"):
        return Cross(feature_names, crossing_dim, output_mode)

    @classmethod
    def feature(cls, dtype, preprocessor, output_mode):
        return Feature(dtype, preprocessor, output_mode)

    @classmethod
    def float(cls, name=None):
        return _feature("float32", layers.Identity, "float", name, "float")

    @classmethod
    def float_rescaled(cls, scale=1.0, offset=0.0, name=None):
        return _feature("float32", layers.Rescaling, "float", name, "float_rescaled", scale=scale,
                        offset=offset)

    @classmethod
    def float_normalized(cls, name=None):
        return _feature("float32", layers.Normalization, "float", name, "float_normalized",
                        axis=-1)

    @classmethod
    def float_discretized(cls, num_bins, bin_boundaries=None, output_mode="one_hot", name=None):
        bins = {"num_bins": num_bins} if bin_boundaries is None else \
            {"bin_boundaries": bin_boundaries}
        return _feature("float32", layers.Discretization, output_mode, name, "float_discretized",
                        **bins)

    @classmethod
    def integer_categorical(cls, max_tokens=None, num_oov_indices=1, output_mode="one_hot",
                            name=None):
        return _feature("int32", layers.IntegerLookup, output_mode, name, "integer_categorical",
                        max_tokens=max_tokens, num_oov_indices=num_oov_indices)

    @classmethod
    def string_categorical(cls, max_tokens=None, num_oov_indices=1, output_mode="one_hot",
                           name=None):
        return _feature("string", layers.StringLookup, output_mode, name, "string_categorical",
                        max_tokens=max_tokens, num_oov_indices=num_oov_indices)

    @classmethod
    def string_hashed(cls, num_bins, output_mode="one_hot", name=None):
        return _feature("string", layers.Hashing, output_mode, name, "string_hashed",
                        num_bins=num_bins)

    @classmethod
    def integer_hashed(cls, num_bins, output_mode="one_hot", name=None):
        return _feature("int32", layers.Hashing, output_mode, name, "integer_hashed",
                        num_bins=num_bins)

    def __init__(self, features, output_mode="concat", crosses=None, crossing_dim=32,
                 hashing_dim=32, num_discretization_bins=32, name=None):
        if not features:
            raise ValueError("FeatureSpace: features is %r, expected a dictionary of columns"
                             % (features,))
        self.output_mode = _check_mode("space", output_mode)
        self.name = name or unique_name("feature_space")
        self.crossing_dim, self.hashing_dim = crossing_dim, hashing_dim
        self.num_discretization_bins = num_discretization_bins
        self.features = {name: self._feature_of(name, kind) for name, kind in features.items()}
        self.crosses = [cross if isinstance(cross, Cross) else Cross(cross, crossing_dim)
                        for cross in crosses or []]
        for cross in self.crosses:
            unknown = [name for name in cross.feature_names if name not in self.features]
            if unknown:
                raise ValueError("FeatureSpace: %s is crossed, expected one of the features %s"
                                 % (unknown[0], ", ".join(self.features)))
        self.preprocessors = {name: of.preprocessor for name, of in self.features.items()}
        self.crossers = {cross.name: layers.HashedCrossing(cross.crossing_dim, name=cross.name)
                         for cross in self.crosses}
        self._model, self._computes, self._is_adapted = None, None, not self._adaptable()

    def _feature_of(self, name, kind):
        if isinstance(kind, Feature):
            return kind
        takes = {"string_hashed": (self.hashing_dim,), "integer_hashed": (self.hashing_dim,),
                 "float_discretized": (self.num_discretization_bins,), "float": (),
                 "float_rescaled": (), "float_normalized": (), "integer_categorical": (),
                 "string_categorical": ()}
        if kind not in takes:
            raise ValueError("FeatureSpace: the type of feature %s is %r, expected one of %s"
                             % (name, kind, ", ".join(takes)))
        return getattr(self, kind)(*takes[kind], name=name)

    # ---- Learning ----

    def _adaptable(self):
        """The columns whose layers learn from data, unless they were given what they would."""
        return [name for name, layer in self.preprocessors.items() if hasattr(layer, "adapt") and
                not any((layer._config or {}).get(word) is not None
                        for word in ("vocabulary", "mean", "bin_boundaries"))]

    def adapt(self, dataset):
        """Learns from rows or batches, dictionaries of columns without labels; or from one
        dictionary of whole columns."""
        names = self._adaptable()
        columns = {name: [] for name in names}
        for batch in [dataset] if isinstance(dataset, dict) else dataset:
            if not isinstance(batch, dict):
                raise ValueError("FeatureSpace.adapt: an element is a %s, expected a dictionary "
                                 "of columns" % type(batch).__name__)
            for name in names:
                columns[name].append(stored(batch[name]).reshape(-1, 1))
        for name in names:
            if not columns[name]:
                raise ValueError("FeatureSpace.adapt: the data have no rows")
            self.preprocessors[name].adapt(np.concatenate(columns[name]))
        self._is_adapted = True

    # ---- What is made of the columns ----

    def _cardinality(self, name, layer):
        """The number of places of a one_hot encoding."""
        if hasattr(layer, "vocabulary_size"):
            return layer.vocabulary_size()
        bins = getattr(layer, "num_tokens", None) if layer.class_name == "CategoryEncoding" else \
            getattr(layer, "num_bins", None)
        if bins is None and getattr(layer, "bin_boundaries", None) is not None:
            bins = len(layer.bin_boundaries) + 1
        if bins is None:
            raise ValueError("FeatureSpace: feature %s is one_hot encoded, but %s does not say of "
                             "how many numbers its results are; expected output_mode=\"int\""
                             % (name, layer.class_name))
        return bins

    def _encoded(self, name, tensor, layer, mode):
        if mode == "one_hot":
            if "int" not in tensor.dtype:
                raise ValueError("FeatureSpace: feature %s is one_hot encoded, but its "
                                 "preprocessor returns %s, expected integers"
                                 % (name, tensor.dtype))
            tensor = layers.CategoryEncoding(self._cardinality(name, layer), "multi_hot",
                                             name=name + "_encoder")(tensor)
        if self.output_mode == "concat" and "float" not in tensor.dtype:
            raise ValueError("FeatureSpace: feature %s is not encoded (it is %s) and cannot be "
                             "concatenated; expected output_mode=\"dict\"" % (name, tensor.dtype))
        return tensor

    def _made(self):
        """The model from the columns to the vectors."""
        from ..models import Model
        if self._model is not None:
            return self._model
        if not self._is_adapted:
            raise ValueError("FeatureSpace: call adapt(dataset) before it is used")
        inputs = {name: input_tensor((1,), name=name,
                                     dtype=None if "float" in of.dtype else of.dtype)
                  for name, of in self.features.items()}
        tensors = {name: of.preprocessor(inputs[name]) for name, of in self.features.items()}
        of_crosses = {cross.name: cross for cross in self.crosses}
        crossed = {name: self.crossers[name]([tensors[key] for key in cross.feature_names])
                   for name, cross in of_crosses.items()}
        made = {}
        for name in sorted(tensors):
            made[name] = self._encoded(name, tensors[name], self.preprocessors[name],
                                       self.features[name].output_mode)
        for name in sorted(crossed):
            made[name] = self._encoded(name, crossed[name], self.crossers[name],
                                       of_crosses[name].output_mode)
        if self.output_mode == "concat":
            parts = list(made.values())
            made = layers.Concatenate(axis=-1)(parts) if len(parts) > 1 else parts[0]
        self._model = Model(inputs, made, name=self.name)
        self._inputs, self._outputs = inputs, made
        return self._model

    def _copy(self):
        """What computes: a model of its own layers, as pipelines call it while models that have
        the layers train."""
        from ..models import clone_model
        if self._computes is None:
            self._computes = clone_model(self._made())
            self._computes.set_weights(self._model.get_weights())
            self._computes._form = self._model._form
        return self._computes

    def get_inputs(self):
        """The symbolic tensors of the columns, by their names."""
        self._made()
        return self._inputs

    def get_encoded_features(self):
        """What becomes of these: a symbolic tensor, or a dictionary of them."""
        self._made()
        return self._outputs

    def __call__(self, data):
        if not isinstance(data, dict):
            raise ValueError("a FeatureSpace is called on a %s, expected a dictionary of columns"
                             % type(data).__name__)
        data = {name: data[name] for name in self.features}
        made = in_graph(self.__call__, data,
                        example=lambda: [of.known() for of in self.features.values()])
        if made is not NotImplemented:
            return made
        columns = {name: stored(value) for name, value in data.items()}
        one = any(column.ndim == 0 for column in columns.values())     # a row, not a batch
        made = self._copy()({name: column.reshape(-1, 1) if column.ndim < 2 else column
                             for name, column in columns.items()})
        if not one:
            return made
        return {key: value[0] for key, value in made.items()} if isinstance(made, dict) else made[0]

    # ---- Files ----

    def save(self, filepath):
        """A .keras file, which cornu.load and keras.models.load_model read; the former gives a
        FeatureSpace, the latter its model."""
        if not os.fspath(filepath).endswith(".keras"):
            raise ValueError("FeatureSpace.save: the path is %r, expected one in .keras"
                             % os.fspath(filepath))
        self._made().save(filepath)
        of_layers = {"features": {name: [of.dtype, of.preprocessor.name, of.output_mode]
                                  for name, of in self.features.items()},
                     "crosses": [[cross.feature_names, cross.crossing_dim, cross.output_mode]
                                 for cross in self.crosses],
                     "output_mode": self.output_mode, "crossing_dim": self.crossing_dim,
                     "hashing_dim": self.hashing_dim,
                     "num_discretization_bins": self.num_discretization_bins, "name": self.name}
        with zipfile.ZipFile(filepath, "a") as file:
            file.writestr(_MEMBER, json.dumps(of_layers))

    @classmethod
    def of_file(cls, path, model):
        """What a file has: a FeatureSpace, if one was saved, or the model."""
        if not zipfile.is_zipfile(path):
            return model
        with zipfile.ZipFile(path) as file:
            if _MEMBER not in file.namelist():
                return model
            config = json.loads(file.read(_MEMBER))
        config["features"] = {name: Feature(dtype, model.get_layer(layer), mode)
                              for name, (dtype, layer, mode) in config["features"].items()}
        config["crosses"] = [Cross(*cross) for cross in config["crosses"]]
        made = cls(**config)
        made._model, made._is_adapted = model, True
        made._inputs = dict(zip(model.input_names, model.inputs))
        made._outputs = model._formed(model.output)
        return made
