"""Models: Keras' keras.models, cornu.Predictor and cornu.Generator."""

from ._models.files import clone_model, from_keras, load, load_model, model_from_json
from ._models.models import Model
from ._models.sequential import Sequential
from ._surface.missing import getter
from .generator import Generator
from .predictor import Predictor
from .saving import save_model

__all__ = ["Generator", "Model", "Predictor", "Sequential", "clone_model", "from_keras", "load",
           "load_model", "model_from_json", "save_model"]
__getattr__ = getter(__name__)
