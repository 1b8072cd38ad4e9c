"""Keras' metrics, by the library's tables. Their names serve as well, where an argument is one."""

from ._described import Described, make_classes


class Metric(Described):
    """The base of all metrics."""


__all__ = ["Metric"] + make_classes("metrics", Metric, globals())
