"""Lambda, and RNN with cells of the program's own, as traced layers."""

import inspect

from ._operators import operate, users_line
from ._traced import Layer, Shaped


class Lambda(Layer):
    """A layer that is a function of tensors: Lambda(lambda x: x ** 2)."""

    def __init__(self, function, output_shape=None, mask=None, arguments=None, **kwargs):
        super().__init__(**kwargs)
        self.function, self.arguments, self._mask = function, arguments or {}, mask
        self.supports_masking = mask is not None

    def _training_matters(self):
        return "training" in inspect.signature(self.function).parameters

    def call(self, inputs, mask=None, training=None):
        given = dict(self.arguments)
        for name, value in (("mask", mask), ("training", training)):
            if name in inspect.signature(self.function).parameters:
                given[name] = value
        return self.function(inputs, **given)

    def compute_mask(self, inputs, mask=None):
        return self._mask(inputs, mask) if callable(self._mask) else self._mask

    def _makes_mask(self):
        return self._mask is not None

    def get_config(self):
        raise NotImplementedError("%s: a Lambda's function is in no config" % self.name)


def _listed(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


class StackedCells(Layer):
    """Cells one after another as one, some of which are layers of the program's own."""

    def __init__(self, cells, **kwargs):
        super().__init__(**kwargs)
        self.cells = list(cells)

    @property
    def state_size(self):
        return [size for cell in self.cells for size in _listed(cell.state_size)]

    @property
    def output_size(self):
        cell = self.cells[-1]
        return getattr(cell, "output_size", None) or _listed(cell.state_size)[0]

    def get_config(self):
        from ._described import plain
        return dict(super().get_config(), cells=[plain(cell.to_dict()) for cell in self.cells])

    def call(self, x, states, training=None):
        following = []
        for cell in self.cells:
            count = len(_listed(cell.state_size))
            given, states = states[:count], states[count:]
            x, made = _step(cell, x, given, training)
            following += made
        return x, following


def _step(cell, x, states, training):
    """The output of a cell and its next states."""
    given = {}
    if cell._is_traced and training is not None and \
            "training" in inspect.signature(cell.call).parameters:
        given["training"] = training
    if not cell._is_traced and len(states) == 1:
        states = states[0]
    output, *following = cell(x, states, **given)
    return output, [state for each in following for state in _listed(each)]


class CellRNN(Layer):
    """RNN of a cell that is a layer of the program's own: cell(x, states) returns the output and
    the next states. Its steps are a graph, so that their number must be known."""

    def __init__(self, cell, return_sequences=False, return_state=False, go_backwards=False,
                 stateful=False, unroll=False, zero_output_for_mask=False, **kwargs):
        super().__init__(**kwargs)
        if stateful:
            raise NotImplementedError("RNN: stateful is not available with a cell of your own; "
                                      "pass initial_state")
        self.cell, self.supports_masking = cell, return_sequences
        self.return_sequences, self.return_state = return_sequences, return_state
        self.go_backwards, self.zero_output_for_mask = go_backwards, zero_output_for_mask

    def get_config(self):
        from ._described import plain
        return dict(super().get_config(), cell=plain(self.cell.to_dict()),
                    return_sequences=self.return_sequences, return_state=self.return_state,
                    go_backwards=self.go_backwards,
                    zero_output_for_mask=self.zero_output_for_mask)

    def build(self, shape):
        self.cell._build_once([Shaped((shape[0], *shape[2:])), None], {})

    def _zeros(self, sequence):
        column = operate("zeros_like", sequence[:, 0][..., :1])
        return [operate("repeat", column, size if isinstance(size, int) else size[-1], axis=-1)
                for size in _listed(self.cell.state_size)]

    def call(self, sequence, initial_state=None, mask=None, training=None):
        steps = sequence.shape[1]
        if steps is None:
            raise ValueError("%s: a cell of your own needs a known number of steps, the sequence "
                             "is %s; in %s" % (self.name, sequence.shape, users_line()))
        states = self._zeros(sequence) if initial_state is None else _listed(initial_state)
        outputs, before = [], None
        order = range(steps - 1, -1, -1) if self.go_backwards else range(steps)
        for t in order:
            output, following = _step(self.cell, sequence[:, t], states, training)
            if mask is not None:
                valid = operate("expand_dims", mask[:, t], -1)
                following = [operate("where", valid, new, old)
                             for new, old in zip(following, states)]
                kept = operate("zeros_like", output) if before is None or \
                    self.zero_output_for_mask else before
                output = operate("where", valid, output, kept)
            states, before = following, output
            outputs.append(output)
        made = operate("stack", outputs, axis=1) if self.return_sequences else outputs[-1]
        return [made, *states] if self.return_state else made

