"""Keras' metrics, by the library's tables. Where an argument is one, its name will do."""

from ._described import Described, make_classes


class Metric(Described):
    """The base of all metrics."""

    name = property(Described._name)


__all__ = ["Metric"] + make_classes("metrics", Metric, globals())
