"""Models: Keras' keras.models, and cornu.Predictor."""

from ._files import clone_model, from_keras, load, load_model, model_from_json
from ._models import Model, Sequential
from .predictor import Predictor

__all__ = ["Model", "Predictor", "Sequential", "clone_model", "from_keras", "load", "load_model",
           "model_from_json"]
