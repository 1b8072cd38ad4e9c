"""CornuError and its subclasses, one per status: ArgumentError, ShapeError, BusyError, …"""

from ._binding.errors import CornuError
from ._binding.library import lib

for _made in lib.errors[1:]:
    globals()[_made.__name__] = _made

__all__ = [CornuError.__name__] + [_made.__name__ for _made in lib.errors[1:]]
