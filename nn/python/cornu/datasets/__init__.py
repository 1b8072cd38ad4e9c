"""Data sets by Keras' names: cornu.datasets.cifar10.load_data(); and shakespeare, of characters.

Files are those that Keras keeps in ~/.keras/datasets (or KERAS_HOME/datasets), or the same in the
folder that CORNU_DATA names; mnist, fashion_mnist and shakespeare also read what the programs in C
do. What is nowhere is fetched; without a network the message says which file belongs where.
"""

from .._surface.missing import getter
from . import (boston_housing, california_housing, cifar10, cifar100, fashion_mnist, imdb, mnist,
               reuters, shakespeare)

__all__ = ["boston_housing", "california_housing", "cifar10", "cifar100", "fashion_mnist", "imdb",
           "mnist", "reuters", "shakespeare"]
__getattr__ = getter(__name__)
