"""Keras' keras.distribution: models over a mesh of shards, which share this process' processors.

    mesh = cornu.distribution.DeviceMesh((2, 4), ["batch", "model"])
    layout_map = cornu.distribution.LayoutMap(mesh)
    layout_map["dense.*kernel"] = (None, "model")
    cornu.distribution.set_distribution(cornu.distribution.ModelParallel(layout_map=layout_map))

Models that are compiled from then on are cut as the map says; they are written, saved and loaded as
without.
"""

import collections.abc
import contextlib
import ctypes
import threading

from .._binding.library import lib, struct
from .._surface.missing import getter
from .strategies import Strategy, enter, leave, use

_AXES, _NAME = lib.constants["CORNU_MESH_AXES"], lib.constants["CORNU_MESH_NAME"]
_RANK = lib.constants["CORNU_MAX_RANK"]
_thread = threading.local()


class DeviceMesh:
    """An array of shards with named axes. `devices`, as many names, is Keras': here the shards are
    threads of one device, which ModelParallel names."""

    def __init__(self, shape, axis_names, devices=None):
        self.shape, self.axis_names = tuple(int(n) for n in shape), list(axis_names)
        if not 1 <= len(self.shape) <= _AXES or len(self.shape) != len(self.axis_names):
            raise ValueError("DeviceMesh: shape %s and axis_names %s, expected 1 to %d axes and a "
                             "name for each" % (self.shape, self.axis_names, _AXES))
        if min(self.shape) < 1 or len(set(self.axis_names)) != len(self.axis_names) or \
                not all(0 < len(name.encode()) < _NAME for name in self.axis_names):
            raise ValueError("DeviceMesh: shape %s and axis_names %s, expected at least one shard "
                             "along each axis, and different names of at most %d bytes"
                             % (self.shape, self.axis_names, _NAME - 1))
        shards = 1
        for extent in self.shape:
            shards *= extent
        self.devices = list(devices) if devices is not None else \
            ["cpu:%d" % i for i in range(shards)]
        if len(self.devices) != shards:
            raise ValueError("DeviceMesh: %d devices are given for the shape %s, expected %d"
                             % (len(self.devices), self.shape, shards))

    def _fill(self, mesh):
        mesh.axes = len(self.shape)
        mesh.extent[:mesh.axes] = self.shape
        names = b"".join(name.encode().ljust(_NAME, b"\0") for name in self.axis_names)
        ctypes.memmove(ctypes.addressof(mesh) + type(mesh).name.offset, names, len(names))

    def __repr__(self):
        return "<cornu.distribution.DeviceMesh shape=%s axis_names=%s>" % (self.shape,
                                                                           self.axis_names)


class TensorLayout:
    """How a variable is cut: for each of its axes the axis of the mesh, or None."""

    def __init__(self, axes, device_mesh=None):
        self.axes, self.device_mesh = tuple(axes), device_mesh


class LayoutMap(collections.abc.MutableMapping):
    """Layouts by paths of variables, or expressions that are found in them; those that end in
    "/output" are for what layers make."""

    def __init__(self, device_mesh):
        self.device_mesh, self._rows = device_mesh, {}

    def __setitem__(self, key, layout):
        if not isinstance(layout, TensorLayout):
            layout = TensorLayout(layout, self.device_mesh)
        if key in self._rows:
            raise ValueError("LayoutMap: %r is in the map already" % key)
        known = set(self.device_mesh.axis_names) if self.device_mesh else set()
        unknown = [axis for axes in layout.axes if axes for axis in axes.split("+")
                   if axis not in known]
        if unknown or len(layout.axes) > _RANK:
            raise ValueError("LayoutMap: %r has the axes %s, expected at most %d of %s, or None"
                             % (key, layout.axes, _RANK, ", ".join(sorted(known))))
        self._rows[key] = layout

    def __getitem__(self, key):
        return self._rows[key]

    def __delitem__(self, key):
        del self._rows[key]

    def __len__(self):
        return len(self._rows)

    def __iter__(self):
        return iter(self._rows)

    def _table(self):
        rows = (lib.type("CornuLayoutRow") * (len(self) + 1))()
        for row, (key, layout) in zip(rows, self._rows.items()):
            row.pattern = key.encode()
            for i, axis in enumerate(layout.axes):
                row.axes[i] = axis.encode() if axis else None
        return rows


class Distribution:
    """The base: what set_distribution takes. `device` is "cpu" or "tpu:v3-8"."""

    def __init__(self, layout_map, batch_dim_name, device, make="cornu_model_parallel_from",
                 kind="CornuParallelConfig", **fields):
        mesh, rows = layout_map.device_mesh, layout_map._table()
        config = struct(kind, layout_map=ctypes.addressof(rows) if mesh else None,
                        batch_dim_name=batch_dim_name, device=device, **fields)
        if mesh:
            mesh._fill(config.mesh)
        self._strategy = Strategy(getattr(lib, make)(ctypes.byref(config)))
        if mesh:
            self._strategy.allow_unused_layouts()
        self.device_mesh = mesh
        self.batch_dim_name = batch_dim_name or (mesh.axis_names[0] if mesh else None)

    @contextlib.contextmanager
    def scope(self):
        """with d.scope(): models that are compiled in it are distributed."""
        before = distribution()
        enter(self._strategy)
        _thread.value = self
        try:
            yield self
        finally:
            leave()
            _thread.value = before


class ModelParallel(Distribution):
    """Variables are cut by a layout map, the rows of a batch along batch_dim_name."""

    def __init__(self, layout_map=None, batch_dim_name=None, auto_shard_dataset=True,
                 device="cpu", **kwargs):
        if not isinstance(layout_map, LayoutMap) or layout_map.device_mesh is None:
            raise ValueError("ModelParallel: layout_map is %r, expected a LayoutMap with a mesh"
                             % (layout_map,))
        super().__init__(layout_map, batch_dim_name, device)
        self.layout_map = layout_map


class PipelineParallel(Distribution):
    """A model is cut into stages of layers, the rows of a batch into microbatches, as Keras cannot:
    gradients are added over a batch and applied once. `schedule` is "1f1b" or "gpipe"; `layout_map`
    cuts each stage over the shards of its mesh; `fully_sharded` cuts weights along the batch's axis
    of it as well. One stage is gradient accumulation within a batch."""

    def __init__(self, stages, microbatches, schedule="1f1b", layout_map=None,
                 fully_sharded=False, batch_dim_name=None, device="cpu"):
        schedules = {"gpipe": "CORNU_GPIPE", "1f1b": "CORNU_1F1B"}
        if schedule not in schedules:
            raise ValueError("PipelineParallel: schedule is %r, expected one of %s"
                             % (schedule, ", ".join(schedules)))
        if layout_map is not None and layout_map.device_mesh is None:
            raise ValueError("PipelineParallel: layout_map has no mesh, expected one with a mesh")
        super().__init__(LayoutMap(None) if layout_map is None else layout_map, batch_dim_name,
                         device, "cornu_pipeline_parallel_from", "CornuPipelineParallelConfig",
                         stages=stages, microbatches=microbatches,
                         schedule=lib.constants[schedules[schedule]],
                         fully_sharded=bool(fully_sharded))
        self.stages, self.microbatches, self.layout_map = stages, microbatches, layout_map


class DataParallel(Distribution):
    """Variables are whole on each shard, the rows of a batch are dealt over all."""

    def __init__(self, device_mesh=None, devices=None, auto_shard_dataset=True, device="cpu"):
        if device_mesh is None:
            devices = devices or list_devices()
            device_mesh = DeviceMesh((len(devices),), ["batch"], devices)
        if len(device_mesh.shape) != 1:
            raise ValueError("DataParallel: the mesh has the shape %s, expected one axis"
                             % (device_mesh.shape,))
        super().__init__(LayoutMap(device_mesh), device_mesh.axis_names[0], device)


def list_devices(device_type=None):
    """"cpu:0": a process has one device, which a mesh divides."""
    if device_type not in (None, "cpu"):
        return []
    return ["cpu:0"]


def get_device_count(device_type=None):
    """The number of list_devices."""
    return len(list_devices(device_type))


def set_distribution(value):
    """The distribution of models that this thread compiles from now on; None is none."""
    use(value._strategy if value else None)
    _thread.value = value


def distribution():
    """The distribution that is set, or None."""
    return getattr(_thread, "value", None)


__all__ = ["DataParallel", "DeviceMesh", "LayoutMap", "ModelParallel", "PipelineParallel",
           "TensorLayout",
           "distribution", "get_device_count", "list_devices", "set_distribution"]
__getattr__ = getter(__name__)
