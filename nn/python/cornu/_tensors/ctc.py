"""The likeliest classes of sequences with blanks between them: ops.ctc_decode."""

import numpy as np

from .._binding.arrays import Array, to_array
from .operators import operate, users_line
from .symbols import find_tensor
from .values import shape


def ctc_decode(inputs, sequence_lengths, strategy="greedy", beam_width=100, top_paths=1,
               merge_repeated=True, mask_index=0):
    """keras.ops.ctc_decode: the classes (top_paths, B, T), after whose ends -1 stands, and scores
    (B, top_paths): of greedy the negative sum of the largest inputs, of beam_search, which takes
    arrays, log probabilities. mask_index is the blank."""
    if strategy == "greedy":
        return _greedy(inputs, sequence_lengths, merge_repeated, mask_index)
    if strategy != "beam_search":
        raise ValueError("ops.ctc_decode: the strategy is %r, expected 'greedy' or 'beam_search'"
                         % (strategy,))
    if find_tensor([inputs, sequence_lengths]) is not None:
        raise NotImplementedError("ops.ctc_decode: beams need the elements, which are known of "
                                  "arrays alone; in %s" % users_line())
    return _beams(to_array(inputs), to_array(sequence_lengths), beam_width, top_paths, mask_index)


def _greedy(inputs, lengths, merge_repeated, blank):
    steps = shape(inputs)[1]
    place = operate("expand_dims", operate("arange", steps, dtype="int32"), 0)
    ends = operate("greater_equal", place, operate("expand_dims", operate(
        "cast", lengths, "int32"), -1))
    found = operate("where", ends, blank, operate("argmax", inputs, axis=-1))
    scores = operate("where", ends, 0.0, operate("max", inputs, axis=-1))
    if merge_repeated:
        before = operate("pad", found[:, :-1], [(0, 0), (1, 0)], constant_values=-1)
        found = operate("where", operate("equal", found, before), blank, found)
    blanks = operate("equal", found, blank)
    order = operate("argsort", operate("where", blanks, steps, place), axis=-1)
    found = operate("take_along_axis", operate("where", blanks, -1, found), order, axis=-1)
    scores = operate("negative", operate("sum", scores, axis=1, keepdims=True))
    return operate("expand_dims", found, 0), scores


def _beams(inputs, lengths, width, top, blank):
    batch, steps = inputs.shape[:2]
    found = np.full((top, batch, steps), -1, np.int32)
    scores = np.full((batch, top), -np.inf, np.float32)
    inputs = inputs - inputs.max(-1, keepdims=True)
    logs = inputs - np.log(np.exp(inputs).sum(-1, keepdims=True))
    for b in range(batch):
        for i, (path, score) in enumerate(_row(logs[b, :lengths[b]], width, blank)[:top]):
            found[i, b, :len(path)], scores[b, i] = path, score
    return found.view(Array), scores.view(Array)


def _row(logs, width, blank):
    """Paths by their log probabilities, of which `width` are followed: for each, those of its
    alignments that end in a blank, and of the others.
    Source: Graves, "Supervised Sequence Labelling with Recurrent Neural Networks", 7.5.3."""
    beams = {(): (0.0, -np.inf)}
    for step in logs:
        made = {}

        def add(path, blanks, classes):
            known = made.get(path, (-np.inf, -np.inf))
            made[path] = np.logaddexp(known[0], blanks), np.logaddexp(known[1], classes)
        for path, (blanks, classes) in beams.items():
            both = np.logaddexp(blanks, classes)
            add(path, both + step[blank], classes + step[path[-1]] if path else -np.inf)
            for c in range(len(step)):
                if c != blank:      # the same class again needs a blank before it
                    before = blanks if path and path[-1] == c else both
                    add(path + (c,), -np.inf, before + step[c])
        beams = dict(sorted(made.items(), key=lambda each: -np.logaddexp(*each[1]))[:width])
    return [(path, np.logaddexp(*ends)) for path, ends in beams.items()]
