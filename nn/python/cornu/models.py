"""Models: Keras' keras.models, and cornu.Predictor."""

from ._files import clone_model, from_keras, load, load_model, model_from_json
from ._models import Model, Sequential
from ._surface.missing import getter
from .predictor import Predictor
from .saving import save_model

__all__ = ["Model", "Predictor", "Sequential", "clone_model", "from_keras", "load", "load_model",
           "model_from_json", "save_model"]
__getattr__ = getter(__name__)
