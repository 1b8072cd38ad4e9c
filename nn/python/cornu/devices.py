"""Devices: cornu.Device("tpu", shards=4), for compile. One is for one thread at a time."""

import ctypes
import threading

from ._binding.library import Owned, lib, struct

_opened, _lock = {}, threading.Lock()
_PRECISIONS = ("highest", "high", "default")


class Device:
    """A device of the library, open while it, or what has been placed on it, is used.

    name: "cpu", "tpu", "tpu:v3-8", "reference", "pjrt:cuda", "pjrt:PLUGIN.so", …
    threads, shards: 0 is as many as there are
    precision: of float32 products on a tpu: "highest", "high" or "default"
    """

    def __init__(self, name: str = "cpu", threads: int = 0, shards: int = 0,
                 precision: str = "highest"):
        if precision not in _PRECISIONS:
            raise ValueError("precision is %r, expected one of %s"
                             % (precision, ", ".join(_PRECISIONS)))
        config = struct("CornuDeviceConfig", name=name, threads=threads, shards=shards,
                        precision=_PRECISIONS.index(precision))
        self._owned = Owned(lib.cornu_device_open_from(ctypes.byref(config)),
                            lib.cornu_device_close)
        self.pointer = self._owned.address
        self.name, self._given = name, (name, threads, shards, precision)

    def __reduce__(self):
        return Device, self._given

    @property
    def description(self):
        """One line that names the processor, its instruction set and the threads."""
        return lib.cornu_device_description(self.pointer)

    def __repr__(self):
        return "<cornu.Device %s>" % self.description


def find(device):
    """The library's device for an argument of compile: a Device; a name, which each thread opens
    once; or None, for a cpu of the model's own."""
    if device is None or device == "cpu":
        return None
    if isinstance(device, Device):
        return device.pointer
    key = (device, threading.get_ident())
    with _lock:
        if key not in _opened:
            _opened[key] = Device(device)
        return _opened[key].pointer
