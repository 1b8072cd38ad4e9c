"""The library's messages as a program of Python spells them: `.units` is units, CORNU_MODE_MIN is
'min', cornu_compile is compile."""

import inspect
import re

from .library import lib

# Fields of the library for which Python has another name, or none of their own.
_FIELDS = {"xs": "x", "ys": "y", "xs_by_name": "x", "ys_by_name": "y", "tos": "to",
           "sample_weights": "sample_weight", "sample_weights_by_name": "sample_weight",
           "no_shuffle": "shuffle", "losses": "loss", "output_metrics": "metrics",
           "schedule": "learning_rate", "means": "mean", "variances": "variance",
           "scales": "scale", "offsets": "offset", "fill_values": "fill_value",
           "mask_string": "mask_value", "ngram_sizes": "ngrams"}
# Functions of the library that are methods of a class here, or have another name.
_FUNCTIONS = {"predictor_predict": "Predictor.predict", "int8_predict": "Int8Model.predict",
              "generator_next": "Generator.next",
              "int8_load": "Int8Model", "layer_vocabulary": "get_vocabulary"}
# What verbose takes here.
_CONSTANTS = {"CORNU_NONE": "None", "CORNU_AUTO": "'auto'", "CORNU_SILENT": "0", "CORNU_BAR": "1",
              "CORNU_LINES": "2"}
_ENUMS = ("CORNU_MODE_", "CORNU_")
_FIELD = re.compile(r"(?<![\w./\"'])\.([a-z][a-z0-9_]*)\b(?!\.\w)(?: = )?")
_CONSTANT = re.compile(r"\bCORNU_[A-Z0-9_]+\b")
_FUNCTION = re.compile(r"\bcornu_([a-z0-9_]+)\b")


class _Words:
    """What may be respelt: arguments, choices, and names of the package."""

    def __init__(self):
        from .. import __all__ as public, models
        from .described import described
        self.arguments = set(_FIELDS)
        self.arguments |= {name for layout in lib._layouts.values()
                           for name, *_ in layout["fields"]}
        for name, method in inspect.getmembers(models.Model, inspect.isfunction):
            if not name.startswith("_"):
                self.arguments.update(inspect.signature(method).parameters)
        self.choices = set()
        for kind, entries in described.items():
            for entry in entries if kind != "names" else ():
                for field in entry.get("fields", ()):
                    self.arguments.add(field["name"])
                    self.choices.update(field.get("choices", ()))
        self.choices.update(("min", "max", "mean"))
        self.functions = {name.lower(): name
                          for name in [*dir(models.Model), *public, "adapt", "get_vocabulary"]
                          if not name.startswith("_")}

    def field(self, match):
        name = match.group(1)
        if name not in self.arguments:
            return match.group(0)
        equals = "=" if match.group(0).endswith(" = ") else ""
        return _FIELDS.get(name, name) + equals

    def constant(self, match):
        name = match.group(0)
        for prefix in _ENUMS:
            word = name[len(prefix):].lower()
            if name.startswith(prefix) and word in self.choices:
                return repr(word)
        return _CONSTANTS.get(name, name)

    def function(self, match):
        name = match.group(1)
        if name in _FUNCTIONS:
            return _FUNCTIONS[name]
        name = name[:-len("_many")] if name.endswith("_on_batch_many") else name
        for prefix in ("model_", "layer_", ""):
            word = name[len(prefix):]
            if name.startswith(prefix) and word in self.functions:
                return self.functions[word]
        return match.group(0)


_words = None


def spelt(message):
    global _words
    if _words is None:
        _words = _Words()
    message = _FIELD.sub(_words.field, message)
    message = _CONSTANT.sub(_words.constant, message)
    return _FUNCTION.sub(_words.function, message)
