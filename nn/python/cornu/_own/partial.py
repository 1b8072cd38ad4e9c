"""The losses and metrics of compile for other labels or predictions than one of each output: those
that a step of the program's gives, as Keras understands compile when it is first given them."""

from .._tensors.calls import leaves
from .._tensors.operators import users_line


class Partial:
    """Of a model: `compiled` has the arguments of its compile; `y` and `y_pred` are the labels and
    predictions that a step gives first."""

    def __init__(self, model, compiled, y, y_pred):
        self._model, self._compiled = model.name, compiled
        self._outputs, preds = model._names("output"), leaves(y_pred)
        self._metrics = [
            (i, weighted, [_metric(given, label, preds[i]) for given in each])
            for weighted, what in ((False, "metrics"), (True, "weighted_metrics"))
            for i, (each, label) in enumerate(zip(self._each(what, len(preds)), leaves(y)))]

    def _each(self, what, count):
        """What compile was given, a list for each of `count` predictions."""
        given = self._compiled[what]
        if isinstance(given, dict):
            given = [given.get(name) for name in self._outputs[:count]]
        elif not isinstance(given, (list, tuple)) or count == 1:
            given = [given] * count
        if len(given) != count:
            raise ValueError("%s: compile was given %d %s, the step has %d predictions; in %s"
                             % (self._model, len(given), what, count, users_line()))
        return [leaves(each) if isinstance(each, (list, tuple)) else [each] for each in given]

    def loss(self, y, y_pred, sample_weight):
        """The sum of the losses, of labels for all predictions or for those that have a loss."""
        ys, preds, sums = leaves(y), leaves(y_pred), []
        losses, factors = (self._each(what, len(preds)) for what in ("loss", "loss_weights"))
        at = list(range(len(preds)))
        if len(ys) != len(preds):
            at = [i for i in at if losses[i] != [None]]
        if len(ys) != len(at):
            raise ValueError("%s: %d labels are given for %d predictions with a loss; in %s"
                             % (self._model, len(ys), len(at), users_line()))
        weights = _of_each(sample_weight, len(at))
        for label, weight, i in zip(ys, weights, at):
            factor = factors[i] * len(losses[i]) if len(factors[i]) == 1 else factors[i]
            for given, scale in zip(losses[i], factor):
                if given is not None:
                    value = _loss(given)(label, preds[i], sample_weight=weight)
                    sums.append(value if scale is None else value * scale)
        return sum(sums[1:], sums[0]) if sums else None

    def update_metrics(self, y, y_pred, sample_weight):
        ys, preds = leaves(y), leaves(y_pred)
        weights = _of_each(sample_weight, len(ys))
        for i, weighted, metrics in self._metrics:
            for metric in metrics:
                if metric is not None:
                    metric.update_state(ys[i], preds[i],
                                        sample_weight=weights[i] if weighted else None)

    @property
    def metrics(self):
        return [m for _, _, each in self._metrics for m in each if m is not None]


def _of_each(weight, count):
    return weight if isinstance(weight, (list, tuple)) else [weight] * count


def _loss(given):
    from .. import losses
    found = losses.get(given)
    return found if isinstance(found, losses.Loss) else losses.LossFunctionWrapper(found)


def _metric(given, y, y_pred):
    """The metric of a name, which may be that of a loss; "accuracy" and "crossentropy" are those of
    the labels."""
    from .. import metrics
    if not isinstance(given, str):
        found = metrics.get(given)
        return found if found is None or isinstance(found, metrics.Metric) else \
            metrics.MeanMetricWrapper(found, name=given.__name__)
    wanted = {"acc": "accuracy", "ce": "crossentropy"}.get(given, given)
    if wanted in ("accuracy", "crossentropy"):
        wanted = "%s_%s" % ("binary" if y_pred.shape[-1] == 1 else
                            "categorical" if y.shape == y_pred.shape else "sparse_categorical",
                            wanted)
    cls = getattr(metrics, "".join(part.capitalize() for part in wanted.split("_")), None)
    if cls is not None:
        return cls(name=given)
    found = metrics.get(given)      # a function alone, or a class that the program registered
    return found if isinstance(found, metrics.Metric) else \
        metrics.MeanMetricWrapper(found, name=given)
