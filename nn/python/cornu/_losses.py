"""Keras' losses of symbolic tensors, as in a layer's call that adds one, made of operations.
Sources: keras/src/losses/losses.py and loss.py."""

import numpy as np

from ._operators import operate
from ._own import same_rank

_EPSILON = 1e-7
_OTHER_NAMES = {"bce": "binary_crossentropy", "kld": "kl_divergence", "mse": "mean_squared_error",
                "kullback_leibler_divergence": "kl_divergence", "mae": "mean_absolute_error",
                "mape": "mean_absolute_percentage_error", "logcosh": "log_cosh",
                "msle": "mean_squared_logarithmic_error"}


def _mean(x, axis=-1):
    return operate("mean", x, axis=axis)


def _sum(x, axis=-1):
    return operate("sum", x, axis=axis)


def _clipped(x, largest=1.0):
    return operate("clip", x, _EPSILON, largest)


def _elementwise(function, reduce=_mean):
    def call(true, pred, **given):
        return reduce(function(*same_rank(true, pred), **given))
    return call


def _percentage(true, pred):
    return 100.0 * abs((true - pred) / operate("maximum", abs(true), _EPSILON))


def _logarithms(true, pred):
    first, second = (operate("log", operate("maximum", x, _EPSILON) + 1.0) for x in (true, pred))
    return operate("square", second - first)


def _huber(true, pred, delta=1.0):
    error = abs(true - pred)
    return operate("where", error <= delta, 0.5 * operate("square", error),
                   delta * error - 0.5 * delta * delta)


def _log_cosh(true, pred):
    x = pred - true
    return x + operate("softplus", x * -2.0) - float(np.log(2.0))


def _kl_divergence(true, pred):
    true = _clipped(true)
    return _sum(true * operate("log", true / _clipped(pred)))


def _signs(true):
    """Labels of 0 and 1 as -1 and 1; others as they are."""
    whole = operate("logical_or", operate("equal", true, 0.0), operate("equal", true, 1.0))
    return operate("where", operate("all", whole), 2.0 * true - 1.0, true)


def _hinge(true, pred):
    return operate("maximum", 1.0 - _signs(true) * pred, 0.0)


def _categorical_hinge(true, pred):
    positive = _sum(true * pred)
    negative = operate("max", (1.0 - true) * pred, axis=-1)
    return operate("maximum", negative - positive + 1.0, 0.0)


def _cosine_similarity(true, pred, axis=-1):
    true, pred = same_rank(true, pred)
    true, pred = (operate("normalize", x, axis=axis) for x in (true, pred))
    return -_sum(true * pred, axis)


def _smooth(true, by, part):
    return true * (1.0 - by) + by * part if by else true


def _categorical(true, pred, from_logits=False, label_smoothing=0.0, axis=-1):
    true = _smooth(true, label_smoothing, 1.0 / (pred.shape[-1] or 1))
    return operate("categorical_crossentropy", true, pred, from_logits=from_logits, axis=axis)


def _categorical_focal(true, pred, alpha=0.25, gamma=2.0, from_logits=False, label_smoothing=0.0,
                       axis=-1):
    true = _smooth(true, label_smoothing, 1.0 / (pred.shape[-1] or 1))
    if from_logits:
        pred = operate("softmax", pred, axis=axis)
    pred = _clipped(pred / operate("sum", pred, axis=axis, keepdims=True), 1.0 - _EPSILON)
    return _sum(alpha * (1.0 - pred) ** gamma * -true * operate("log", pred), axis)


def _sparse(true, pred, from_logits=False, ignore_class=None, axis=-1):
    true = operate("cast", true, "int32")
    if true.ndim == pred.ndim and true.shape[axis] == 1:
        true = operate("squeeze", true, axis)
    if ignore_class is None:
        return operate("sparse_categorical_crossentropy", true, pred, from_logits=from_logits,
                       axis=axis)
    valid = operate("not_equal", true, ignore_class)
    made = operate("sparse_categorical_crossentropy", operate("where", valid, true, 0), pred,
                   from_logits=from_logits, axis=axis)
    return operate("where", valid, made, 0.0)


def _binary(true, pred, from_logits=False, label_smoothing=0.0, axis=-1):
    true = _smooth(true, label_smoothing, 0.5)
    return _mean(operate("binary_crossentropy", true, pred, from_logits=from_logits), axis)


def _binary_focal(true, pred, apply_class_balancing=False, alpha=0.25, gamma=2.0,
                  from_logits=False, label_smoothing=0.0, axis=-1):
    true = _smooth(true, label_smoothing, 0.5)
    if from_logits:
        pred = operate("sigmoid", pred)
    right = true * pred + (1.0 - true) * (1.0 - pred)
    made = (1.0 - right) ** gamma * operate("binary_crossentropy", true, pred, from_logits=False)
    if apply_class_balancing:
        made = (true * alpha + (1.0 - true) * (1.0 - alpha)) * made
    return _mean(made, axis)


def _generalized(true, pred, q=0.5):
    right = operate("one_hot", operate("cast", true, "int32"), pred.shape[-1])
    return (1.0 - _sum(pred * right) ** q) / q


def _ctc(true, pred):
    """Labels end at the first 0, the blank."""
    true = operate("cast", true, "int32")
    ones = operate("ones_like", operate("cast", pred[:, :, 0], "int32"))
    return operate("ctc_loss", true, pred,
                   _sum(operate("cast", operate("not_equal", true, 0), "int32")), _sum(ones),
                   mask_index=0)


def _dice(true, pred, axis=None):
    both = 2.0 * _sum(true * pred, axis)
    return 1.0 - both / (_sum(true, axis) + _sum(pred, axis) + _EPSILON)


def _tversky(true, pred, alpha=0.5, beta=0.5, axis=None):
    both, missed = _sum(true * pred, axis), _sum((1.0 - pred) * true, axis)
    extra = _sum(pred * (1.0 - true), axis)
    return 1.0 - both / (both + missed * alpha + extra * beta + _EPSILON)


_LOSSES = {
    "mean_squared_error": _elementwise(lambda a, b: operate("square", a - b)),
    "mean_absolute_error": _elementwise(lambda a, b: abs(a - b)),
    "mean_absolute_percentage_error": _elementwise(_percentage),
    "mean_squared_logarithmic_error": _elementwise(_logarithms),
    "huber": _elementwise(_huber), "log_cosh": _elementwise(_log_cosh),
    "poisson": lambda true, pred: _mean(pred - true * operate("log", pred + _EPSILON)),
    "kl_divergence": _kl_divergence, "cosine_similarity": _cosine_similarity,
    "hinge": lambda true, pred: _mean(_hinge(true, pred)),
    "squared_hinge": lambda true, pred: _mean(operate("square", _hinge(true, pred))),
    "categorical_hinge": _categorical_hinge, "categorical_crossentropy": _categorical,
    "categorical_focal_crossentropy": _categorical_focal,
    "sparse_categorical_crossentropy": _sparse, "binary_crossentropy": _binary,
    "binary_focal_crossentropy": _binary_focal, "ctc": _ctc, "dice": _dice, "tversky": _tversky,
    "categorical_generalized_cross_entropy": _generalized}


def values_of(name, given, y_true, y_pred):
    """The values of the loss of this name for each row of a symbolic tensor."""
    name = _OTHER_NAMES.get(name.lower(), name)
    if name not in _LOSSES:
        raise NotImplementedError("%s: not available on symbolic tensors; give it to compile, or "
                                  "write it with cornu.ops" % name)
    pred = y_pred if "float" in str(y_pred.dtype) else operate("cast", y_pred, "float32")
    return _LOSSES[name](operate("cast", y_true, "float32"), pred, **given)


def reduced(values, reduction, y_pred, sample_weight):
    """As a loss reduces values of symbolic tensors, with the mask that y_pred brings along."""
    weight = None if sample_weight is None else operate("cast", sample_weight, "float32")
    if getattr(y_pred, "_masked", False) and values.ndim:
        valid = operate("cast", operate("mask_of", y_pred), "float32")
        if reduction in ("mean", "sum_over_batch_size"):
            valid = valid * operate("mean", operate("ones_like", valid)) / operate("mean", valid)
        weight = valid if weight is None else weight * valid
    total = None
    if weight is not None:
        while weight.ndim < values.ndim:
            weight = operate("expand_dims", weight, -1)
        weight = weight * operate("ones_like", values)
        values, total = values * weight, operate("sum", weight)
    if reduction in (None, "none") or values.ndim == 0:
        return values
    if reduction == "mean_with_sample_weight" and total is not None:
        return operate("divide_no_nan", operate("sum", values), total)
    return operate("sum" if reduction == "sum" else "mean", values)
