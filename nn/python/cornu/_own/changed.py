"""Layers whose attributes change after they have been called, as layer.downstream = True.

What is made of them from then on computes with the new attributes; what was made before, with the
old ones.
"""

from .traced import Layer


class Changed(Layer):
    """A layer as it is now, with its weights."""

    def __init__(self, layer):
        super().__init__(name=layer.name)
        self.layer, self.call = layer, layer.call
        self.changes = layer._changes
        self.supports_masking = layer.supports_masking

    def _makes_mask(self):
        return self.layer._makes_mask()

    def compute_mask(self, inputs, previous_mask=None):
        return self.layer.compute_mask(inputs, previous_mask)


def current(layer):
    """The layer itself, or what stands for it since its attributes have changed."""
    if not getattr(layer, "_changes", 0):
        return layer
    known = vars(layer).get("_now")
    if known is None or known.changes != layer._changes:
        known = layer.__dict__["_now"] = Changed(layer)
    return known
