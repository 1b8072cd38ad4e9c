"""TensorFlow's control flow by Cornu's. These functions ask no other package what to do with its
tensors: they are replaced in the module `tensorflow`, see connect.py."""

from .. import ops


def cond(pred, true_fn=None, false_fn=None, name=None):
    return ops.cond(pred, true_fn, false_fn)


def case(pred_fn_pairs, default=None, exclusive=False, strict=False, name="case"):
    """The first whose predicate holds; without a default the last one is taken to hold."""
    pairs = list(pred_fn_pairs)
    if default is None:
        default = pairs.pop()[1]
    made = default
    for pred, function in reversed(pairs):
        made = _either(pred, function, made)
    return made()


def _either(pred, function, other):
    return lambda: ops.cond(pred, function, other)


def switch_case(branch_index, branch_fns, default=None, name="switch_case"):
    """Branches by their numbers; of another number the default or, without one, the last."""
    given = branch_fns.items() if isinstance(branch_fns, dict) else branch_fns
    pairs = [each if isinstance(each, tuple) else (i, each) for i, each in enumerate(given)]
    return case([(ops.equal(branch_index, i), function) for i, function in sorted(
        pairs, key=lambda pair: pair[0])], default)


def while_loop(cond, body, loop_vars,       # pylint: disable=redefined-outer-name
               shape_invariants=None,
               parallel_iterations=10, back_prop=True, swap_memory=False,
               maximum_iterations=None, name=None):
    def step(*values):
        made = body(*values)
        return made if isinstance(made, (list, tuple)) else (made,)
    return ops.while_loop(cond, step, loop_vars, maximum_iterations)


def map_fn(fn, elems, dtype=None, parallel_iterations=None, back_prop=True, swap_memory=False,
           infer_shape=True, name=None, fn_output_signature=None):
    return ops.map(fn, elems)


def vectorized_map(fn, elems, fallback_to_while_loop=True, warn=True):
    return ops.vectorized_map(fn, elems)


def _folded(fn, elems, initializer, last_first):
    """The results of fn(before, element), in the elements' order."""
    if isinstance(elems, (list, tuple, dict)):
        raise NotImplementedError("tf.scan and tf.foldl of several tensors; expected one")
    columns = ops.unstack(elems)
    columns = list(reversed(columns)) if last_first else list(columns)
    before = columns.pop(0) if initializer is None else initializer
    found = [before] if initializer is None else []
    for column in columns:
        before = fn(before, column)
        found.append(before)
    return list(reversed(found)) if last_first else found


def scan(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False,
         infer_shape=True, reverse=False, name=None):
    return ops.stack(_folded(fn, elems, initializer, reverse))


def foldl(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False,
          name=None):
    return _folded(fn, elems, initializer, False)[-1]


def foldr(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False,
          name=None):
    return _folded(fn, elems, initializer, True)[0]


LOOPS = {made.__name__: made for made in (cond, case, switch_case, while_loop, map_fn,
                                          vectorized_map, scan, foldl, foldr)}
