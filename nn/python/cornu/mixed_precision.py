"""Keras' keras.mixed_precision."""

from ._surface.missing import getter
from .dtype_policies import DTypePolicy, global_policy, set_global_policy
from .optimizers import LossScaleOptimizer

Policy = DTypePolicy
dtype_policy, set_dtype_policy = global_policy, set_global_policy

__all__ = ["DTypePolicy", "LossScaleOptimizer", "Policy", "dtype_policy", "global_policy",
           "set_dtype_policy", "set_global_policy"]
__getattr__ = getter(__name__)
