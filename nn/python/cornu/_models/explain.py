"""What a model's step is on a device: cornu.explain."""

import ctypes
import json
import os
import tempfile

from . import notebook
from .files import load
from .._binding.library import Owned, lib, struct
from ..devices import Device

_PARTS = {"overview": "CORNU_EXPLAIN_OVERVIEW", "all": "CORNU_EXPLAIN_ALL",
          "ops": "CORNU_EXPLAIN_OPS", "pipeline": "CORNU_EXPLAIN_PIPELINE"}


class Explanation(dict):
    """What cornu.explain returns: a dictionary, which a notebook shows as its page."""

    def __init__(self, values, owned):
        super().__init__(values)
        self._owned = owned

    def save_page(self, path) -> None:
        """Writes it as a page for a browser: a timeline of the step, a roofline, the MXU."""
        lib.cornu_explanation_save_page(self._owned.address, os.fspath(path))

    def _repr_html_(self):
        if "pipeline" in self:          # stages, which have no page
            return None
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.html")
            self.save_page(path)
            with open(path, encoding="utf-8") as file:
                return notebook.page_as_html(file.read(), "%s: a step" % self["model"])

    def _repr_pretty_(self, printer, cycle):
        printer.text("<cornu.explain of a %s step of %s on %s>"
                     % (self.get("step", "pipeline"), self.get("model"), self.get("device")))


def explain(model, device="cpu", *, batch_size=None, extent=None, loss=None, predict=False,
            steps=5, part="overview", run=True, others=None, remat=False, pipeline=None,
            verbose=1):
    """Prints how a device computes a model's step, its memory, where its time goes, measured here
    and on a TPU modelled, and what to change so that it fits better. Returns all of it as a
    dictionary; its save_page(path) writes the page of `cornu explain --page`, which a notebook
    shows.

        cornu.explain(model, device="tpu:v3-8")

    The step is that of training if the model can be trained: as it was compiled, else with `loss`,
    else with a loss that fits its outputs. The model stays as it is; a copy of it runs.

    model: a Model, or the path of a file that cornu.load reads
    device: a name, or a cornu.Device
    batch_size: default the model's own, else 32
    extent: in place of extents that the model leaves open; default 224 for images, else 128
    loss: Keras' name
    predict: explain the step of predict
    steps: how many are measured
    part: what is printed: "overview"; "all", a row for each step of the plan; "ops", a row for each
      operation with how the device computes it, and why not better
    run: False only compiles and models the step
    others: model other numbers of shards and other TPUs, too; default where "all" is printed
    remat: also the memory of the step with each mode of cornu.RematScope
    pipeline: stages and microbatches, such as (4, 8): instead, the stages that the step would be
      cut into on a device of this name, which does not run
    verbose: 0 prints nothing
    """
    if part not in _PARTS:
        raise ValueError("part is %r, expected one of %s" % (part, ", ".join(_PARTS)))
    if isinstance(model, (str, os.PathLike)):
        model = load(model)
    config = struct("CornuExplainConfig", model=model.pointer, batch_size=batch_size or 0,
                    extent=extent or 0, loss=loss, predict=bool(predict), steps=steps,
                    no_run=not run, remat=bool(remat),
                    others=part == "all" if others is None else bool(others))
    if isinstance(device, Device):
        config.device = device.pointer
    elif device is not None:
        config.device_name = os.fspath(device).encode("utf-8")
    if pipeline is not None:
        stages = struct("CornuPipelineParallelConfig", stages=pipeline[0],
                        microbatches=pipeline[1], schedule=lib.constants["CORNU_1F1B"])
        config.pipeline, part = ctypes.addressof(stages), "pipeline"
    made = Owned(lib.cornu_explain_from(ctypes.byref(config)), lib.cornu_explanation_free)
    if verbose:
        print(lib.take_text(lib.cornu_explanation_to_text(made.address,
                                                          lib.constants[_PARTS[part]])), end="")
    return Explanation(json.loads(lib.take_text(lib.cornu_explanation_to_json(made.address))), made)
