"""Keras' keras.config: settings of the program. What the library has one of is told, and other
values are refused."""

from ._models import training as _training
from ._surface.missing import getter
from ._tensors.symbols import data_format as _data_format
from .dtype_policies import global_policy as dtype_policy, set_global_policy as set_dtype_policy

_EPSILON = 1e-7     # of losses and metrics; layers and optimizers have an argument


def backend():
    """"cornu": what computes."""
    return "cornu"


def floatx():
    """The dtype of weights without another policy."""
    return "float32"


def set_floatx(value):
    """Only "float32"."""
    if value != "float32":
        raise ValueError("set_floatx: %r is not supported, expected 'float32'; "
                         "cornu.config.set_dtype_policy(%r) sets what models compute in"
                         % (value, value))


def epsilon():
    """The small number of losses and metrics."""
    return _EPSILON


def set_epsilon(value):
    """Only the default, 1e-7."""
    if float(value) != _EPSILON:
        raise ValueError("set_epsilon: %r is not supported, expected 1e-7; layers and optimizers "
                         "have the argument epsilon" % (value,))


def image_data_format():
    """Where layers and operations that are not told have the channels: "channels_last", at
    first."""
    return _data_format[0]


def set_image_data_format(data_format):
    """"channels_last" or "channels_first": of layers made and operations called from now on."""
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError("set_image_data_format: %r, expected 'channels_last' or 'channels_first'"
                         % (data_format,))
    _data_format[0] = data_format


def enable_interactive_logging():
    """verbose="auto" prints a bar or lines, as at first."""
    _training.interactive[0] = True


def disable_interactive_logging():
    """verbose="auto" prints nothing."""
    _training.interactive[0] = False


def is_interactive_logging_enabled():
    return _training.interactive[0]


def disable_traceback_filtering():
    """Tracebacks are whole, always."""


def is_traceback_filtering_enabled():
    return False


__all__ = ["backend", "disable_interactive_logging", "disable_traceback_filtering", "dtype_policy",
           "enable_interactive_logging", "epsilon", "floatx", "image_data_format",
           "is_interactive_logging_enabled", "is_traceback_filtering_enabled", "set_dtype_policy",
           "set_epsilon", "set_floatx", "set_image_data_format"]
__getattr__ = getter(__name__)
