"""Tensors: symbolic ones of models, recorded ones of functions, arrays; and operations on them."""
