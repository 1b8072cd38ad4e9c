"""keras.optimizers.legacy: the optimizers of Keras 2, here the same
classes; Keras 3 only refuses."""

from .._surface.missing import getter
from . import Adagrad, Adam, Ftrl, Optimizer, RMSprop, SGD

__all__ = ["Adagrad", "Adam", "Ftrl", "Optimizer", "RMSprop", "SGD"]
__getattr__ = getter(__name__)
