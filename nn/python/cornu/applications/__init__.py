"""Keras' keras.applications: networks by their names, with random weights, those of a file, or
those of ImageNet where Keras' file is in ~/.keras/models or can be fetched.

    model = cornu.applications.ResNet50(weights=None, input_shape=(64, 64, 3), classes=10)

Layers have Keras' names, so that files of Keras' networks are files of these.
"""

from .._surface.missing import getter
from . import (densenet, efficientnet, imagenet_utils, inception_v3, mobilenet, mobilenet_v2,
               resnet, resnet50, resnet_v2, vgg16, vgg19, xception)

__all__ = ["densenet", "efficientnet", "imagenet_utils", "inception_v3", "mobilenet",
           "mobilenet_v2", "resnet", "resnet50", "resnet_v2", "vgg16", "vgg19", "xception"]
for _family in (densenet, efficientnet, inception_v3, mobilenet, mobilenet_v2, resnet, resnet_v2,
                vgg16, vgg19, xception):
    for _name in _family.__all__:
        if _name[0].isupper():
            globals()[_name] = getattr(_family, _name)
            __all__.append(_name)
__getattr__ = getter(__name__)
