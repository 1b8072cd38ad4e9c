"""Keras' control flow: ops.cond, while_loop, fori_loop, scan, map.

What is known is run as Python runs it. Of recorded and symbolic tensors branches are both recorded,
and one is selected; loops are unrolled, so that their number of steps must be known, at most 4096.
"""

import numpy as np

from .extents import Extent
from .operators import operate, users_line
from .symbols import Tensor
from .._tensorflow import is_of_graph
from .values import Readable, Value, current

_MOST = 4096


# ---- Structures ----

def _map(function, *trees):
    """The function of the leaves of equal structures."""
    first = trees[0]
    if isinstance(first, dict):
        return {key: _map(function, *[t[key] for t in trees]) for key in first}
    if isinstance(first, (list, tuple)):
        if any(len(t) != len(first) for t in trees):
            raise ValueError("structures of %s elements, expected as many; in %s"
                             % (" and ".join(str(len(t)) for t in trees), users_line()))
        made = [_map(function, *each) for each in zip(*trees)]
        return type(first)(*made) if hasattr(first, "_fields") else type(first)(made)
    return None if first is None else function(*trees)


def _leaves(tree):
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (list, tuple)):
        return [leaf for each in tree for leaf in _leaves(each)]
    return [] if tree is None else [tree]


def _is_known(x):
    """Whether the elements are, now."""
    if isinstance(x, (Tensor, Extent)) or is_of_graph(x):
        return False
    if isinstance(x, Value):
        return x._array is not None or x.recording.values is not None
    if isinstance(x, Readable):
        return current() is None or current().values is not None
    return True


def _number(name, what, x):
    if not _is_known(x):
        raise TypeError("%s: %s is a tensor, %r, expected a number that is known: loops are "
                        "unrolled. Compute a fixed number of steps and select, or use "
                        "maximum_iterations of ops.while_loop; in %s"
                        % (name, what, x, users_line()))
    return int(np.asarray(x.numpy() if hasattr(x, "numpy") else x))


def _check_steps(name, count, tree):
    if count > _MOST and not all(_is_known(leaf) for leaf in _leaves(tree)):
        raise ValueError("%s: %d steps, of at most %d that are unrolled; in %s"
                         % (name, count, _MOST, users_line()))


# ---- Branches ----

def _select(condition, a, b):
    return _map(lambda x, y: operate("where", condition, x, y), a, b)


def cond(pred, true_fn, false_fn):
    """keras.ops.cond: true_fn() or false_fn(). Where pred is not known both are recorded, and their
    results selected by it."""
    if _is_known(pred):
        return true_fn() if bool(np.asarray(pred)) else false_fn()
    return _select(pred, true_fn(), false_fn())


def switch(index, branches, *operands):
    """keras.ops.switch: branches[index](*operands), with the index clipped. Where it is not known
    all are recorded."""
    if _is_known(index):
        at = min(max(int(np.asarray(index)), 0), len(branches) - 1)
        return branches[at](*operands)
    made = branches[-1](*operands)
    for i in range(len(branches) - 2, -1, -1):
        made = _select(operate("less_equal", index, i), branches[i](*operands), made)
    return made


# ---- Loops ----

def while_loop(cond, body, loop_vars, maximum_iterations=None):
    """keras.ops.while_loop. A condition that depends on data needs maximum_iterations: so many
    steps are recorded, and those after its end change nothing."""
    single = not isinstance(loop_vars, (list, tuple))
    values = (loop_vars,) if single else tuple(loop_vars)
    alive, step = None, 0
    while maximum_iterations is None or step < maximum_iterations:
        going = cond(*values)
        if alive is None and _is_known(going):
            if not bool(np.asarray(going)):
                break
        elif maximum_iterations is None:
            raise NotImplementedError(
                "while_loop: its condition, %r, depends on data: give maximum_iterations, the "
                "number of steps that are recorded at most, or use ops.fori_loop; in %s"
                % (going, users_line()))
        else:
            alive = going if alive is None else operate("logical_and", alive, going)
        _check_steps("while_loop", step + 1, values)
        made = body(*values)
        made = (made,) if single and not isinstance(made, (list, tuple)) else tuple(made)
        values = made if alive is None else _select(alive, made, values)
        step += 1
    return values[0] if single else type(loop_vars)(values)


def fori_loop(lower, upper, body_fun, init_val):
    """keras.ops.fori_loop, of bounds that are known."""
    lower = _number("fori_loop", "lower", lower)
    upper = _number("fori_loop", "upper", upper)
    _check_steps("fori_loop", upper - lower, init_val)
    value = init_val
    for i in range(lower, upper):
        value = body_fun(i, value)
    return value


def _length(name, xs, length=None):
    """The extent of axis 0 of all leaves."""
    for leaf in _leaves(xs):
        shape = leaf.shape if hasattr(leaf, "shape") else np.shape(leaf)
        if not shape or shape[0] is None:
            raise TypeError("%s: axis 0 of %r is not known, or there is none: the steps are "
                            "unrolled. Write the function for all rows at once, or give "
                            "cornu.Input a batch_size; in %s" % (name, leaf, users_line()))
        if length is not None and shape[0] != length:
            raise ValueError("%s: %d elements along axis 0, expected %d; in %s"
                             % (name, shape[0], length, users_line()))
        length = shape[0]
    if length is None:
        raise ValueError("%s: expected xs or length; in %s" % (name, users_line()))
    _check_steps(name, length, xs)
    return length


def _at(xs, i):
    return _map(lambda x: x[i], xs)


def _stacked(made):
    return _map(lambda *each: operate("stack", list(each)), *made)


def scan(f, init, xs=None, length=None, reverse=False, unroll=1):
    """keras.ops.scan: carry, y = f(carry, x) for each x of axis 0; the last carry and all y."""
    count = _length("scan", xs, length)
    carry, made = init, [None] * count
    for i in reversed(range(count)) if reverse else range(count):
        carry, made[i] = f(carry, _at(xs, i))
    return carry, _stacked(made) if made else None


def associative_scan(f, elems, reverse=False, axis=0):
    """keras.ops.associative_scan: along an axis f of all elements so far."""
    leaves = _leaves(elems)
    count = _length("associative_scan", [operate("moveaxis", x, axis, 0) for x in leaves])
    order = list(reversed(range(count))) if reverse else list(range(count))
    parts = [_map(lambda x: operate("take", x, [i], axis), elems) for i in range(count)]
    for before, i in zip(order, order[1:]):
        parts[i] = f(parts[before], parts[i])
    return _map(lambda *each: operate("concatenate", list(each), axis), *parts)


def map(f, xs):
    """keras.ops.map: f of each element of axis 0, stacked."""
    return _stacked([f(_at(xs, i)) for i in range(_length("map", xs))])


def vectorized_map(function, elements):
    """keras.ops.vectorized_map: likewise."""
    return _stacked([function(_at(elements, i))
                     for i in range(_length("vectorized_map", elements))])
