"""TensorFlow's functions, tapes and tf.function on tensors of Cornu, in programs that import both.

Such a program computes its data by TensorFlow and its networks by Cornu, and writes
tf.reduce_mean(loss) or tf.GradientTape() for both. TensorFlow itself asks other packages what to do
with tensors that it cannot read; the tape, tf.function, control flow and the draws, which ask
nobody, are replaced in the module `tensorflow` by classes and functions that do as before with what
is TensorFlow's.

In its graphs, such as those that tf.data makes of functions given to map, layers and operations of
Cornu are nodes that call Python.

Nothing here imports TensorFlow: what a program imports is connected when it is.
"""

import contextlib
import sys

from .._binding.imports import when_imported
from .._tensors.operators import users_line

_callers = []       # of connected TensorFlows, one at most; see graphs.make_caller


def _connect(tensorflow):
    """Of a TensorFlow without these interfaces, before 2.6, nothing is connected."""
    if hasattr(tensorflow, "GradientTape") and hasattr(tensorflow.__internal__, "dispatch"):
        from . import connect, graphs
        if connect.connect(tensorflow):
            _callers.append(graphs.make_caller(tensorflow))


def connect_imported():
    """Connects TensorFlow, now or when it is imported."""
    when_imported("tensorflow", _connect)


def tensor_of(x, dtype):
    """TensorFlow's tensor of a value whose elements are known. What it raises of others makes
    TensorFlow ask for a function of the same name here."""
    from .connect import known_array
    import tensorflow
    array = known_array(x)
    if array is None:
        raise TypeError("a tensor of cornu of the shape %s has no elements before it is computed, "
                        "and this function of TensorFlow has no counterpart for it: use those of "
                        "cornu.ops; in %s" % (tuple(x.shape), users_line()))
    return tensorflow.convert_to_tensor(array, dtype)


def in_graph(call, *given, draws=False, example=None):
    """call(*given) as a part of a graph of TensorFlow, if a tensor of one is among the arguments,
    or if it draws numbers while one is made; else NotImplemented. example(): a value that the call
    takes, where 0 or "" may be refused, or a list of one for each tensor."""
    return _callers[0](call, given, draws, example) if _callers else NotImplemented


@contextlib.contextmanager
def lent_variables(variables):
    """The variables, where Cornu's stand for TensorFlow's, which get their values afterwards."""
    theirs = getattr(sys.modules.get("tensorflow"), "Variable", ())
    lent = [(v, _lent(v)) for v in variables if isinstance(v, theirs)]
    yield [_lent(v) if isinstance(v, theirs) else v for v in variables]
    for variable, own in lent:
        variable.assign(own.numpy())


def _lent(variable):
    """The same one each time, which an optimizer is built for."""
    from .._tensors.values import current
    if current() is not None and current().values is None:
        raise TypeError("a variable of TensorFlow, %s, is updated in what is recorded: expected a "
                        "cornu.Variable; in %s" % (variable.name, users_line()))
    return _counterpart(variable).assign(variable.numpy())


def _counterpart(variable):
    """The Variable of ours that stands for one of TensorFlow's: the same one each time."""
    from .._tensors.functions import Variable
    known = getattr(variable, "_cornu_variable", None)
    if known is None:
        known = variable._cornu_variable = Variable(
            variable.numpy(), trainable=variable.trainable,
            name=variable.name.rpartition("/")[2].partition(":")[0])
    return known


def as_attribute(value):
    """What a layer or a model has of an attribute: of a variable of TensorFlow's one of ours, which
    its call reads and trains, as with TensorFlow's layers."""
    theirs = getattr(sys.modules.get("tensorflow"), "Variable", ())
    return _counterpart(value) if _callers and isinstance(value, theirs) else value


def cast_sparse(x, dtype):
    """TensorFlow's cast of a sparse tensor of its own; NotImplemented for anything else."""
    tensorflow = sys.modules.get("tensorflow")
    if isinstance(x, getattr(tensorflow, "SparseTensor", ())):
        return tensorflow.cast(x, dtype)
    return NotImplemented


def is_of_graph(x):
    """Whether x is a tensor of a graph, whose elements are not known before it runs."""
    return bool(_callers) and sys.modules["tensorflow"].is_symbolic_tensor(x)


def shape_in_graph(x, known):
    """The extents of a tensor of a graph, of which those that are not known are tensors of it."""
    import tensorflow
    extents = tensorflow.shape(x)
    return tuple(extents[i] if extent is None else extent for i, extent in enumerate(known))
