"""Keras' InputSpec: what a layer of the program's own expects of its operands."""


class InputSpec:
    """self.input_spec = InputSpec(ndim=2, axes={-1: 8}), or a list of one for each operand."""

    def __init__(self, dtype=None, shape=None, ndim=None, max_ndim=None, min_ndim=None, axes=None,
                 allow_last_axis_squeeze=False, name=None, optional=False):
        self.dtype, self.name, self.optional = dtype, name, optional
        self.shape = None if shape is None else tuple(shape)
        self.ndim = ndim if shape is None else len(self.shape)
        self.max_ndim, self.min_ndim = max_ndim, min_ndim
        self.axes = {int(axis): extent for axis, extent in (axes or {}).items()}
        self.allow_last_axis_squeeze = allow_last_axis_squeeze

    def problem(self, shape):
        """What a shape lacks, or None."""
        rank, wanted = len(shape), self.shape
        if self.allow_last_axis_squeeze and wanted is not None:
            if rank == len(wanted) - 1 and wanted[-1] == 1:
                wanted = wanted[:-1]
            elif rank == len(wanted) + 1 and shape[-1] == 1:
                shape, rank = shape[:-1], rank - 1
        ndim = self.ndim if wanted is None else len(wanted)
        if ndim is not None and rank != ndim:
            return "expected ndim=%d, found ndim=%d" % (ndim, rank)
        if self.max_ndim is not None and rank > self.max_ndim:
            return "expected max_ndim=%d, found ndim=%d" % (self.max_ndim, rank)
        if self.min_ndim is not None and rank < self.min_ndim:
            return "expected min_ndim=%d, found ndim=%d" % (self.min_ndim, rank)
        of_axes = {**dict(enumerate(wanted or ())), **self.axes}
        for axis, extent in of_axes.items():
            if not -rank <= axis < rank or \
                    None not in (extent, shape[axis]) and shape[axis] != extent:
                return "expected axis %d to have the extent %s" % (axis, extent)
        return None

    def get_config(self):
        return {name: getattr(self, name) for name in ("dtype", "shape", "ndim", "max_ndim",
                                                       "min_ndim", "axes")}

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    def __repr__(self):
        given = ["%s=%r" % pair for pair in self.get_config().items() if pair[1]]
        return "InputSpec(%s)" % ", ".join(given)


def check_spec(layer, tensors):
    """ValueError for operands that layer.input_spec excludes."""
    given = getattr(layer, "input_spec", None)
    specs = given if isinstance(given, (list, tuple)) else [given] if given is not None else []
    for i, (spec, tensor) in enumerate(zip(specs, tensors)):
        problem = spec.problem(tuple(tensor.shape)) if isinstance(spec, InputSpec) else None
        if problem:
            raise ValueError("Input %d of layer %r is incompatible with the layer: %s; the shape "
                             "is %s" % (i, layer.name, problem, tuple(tensor.shape)))
