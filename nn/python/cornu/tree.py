"""Nested structures, as keras.tree: lists, tuples, named tuples and dictionaries, whose keys are
sorted unless they are an OrderedDict's. Anything else, None too, is a leaf."""

import collections

from ._surface.missing import getter


class MAP_TO_NONE:
    """What a function of traverse returns for None."""


def _keys(structure):
    if isinstance(structure, collections.OrderedDict):
        return list(structure)
    return sorted(structure)


def is_nested(structure):
    """Whether it is a list, a tuple, a deque or a dictionary."""
    return isinstance(structure, (list, tuple, dict, collections.deque))


def _children(structure):
    """(key, value) of each child; keys of a sequence are indices."""
    if isinstance(structure, dict):
        return [(key, structure[key]) for key in _keys(structure)]
    return list(enumerate(structure))


def _like(structure, values):
    """A structure of the same type with other children, in the order of _children."""
    if isinstance(structure, dict):
        by_key = dict(zip(_keys(structure), values))
        made = ((key, by_key[key]) for key in structure)
        if isinstance(structure, collections.defaultdict):
            return type(structure)(structure.default_factory, made)
        return type(structure)(made)
    if hasattr(structure, "_fields"):
        return type(structure)(*values)
    if isinstance(structure, collections.deque):
        return collections.deque(values, structure.maxlen)
    return type(structure)(values)


def flatten_with_path(structure):
    """(path, leaf) of each leaf; a path is a tuple of keys and indices."""
    if not is_nested(structure):
        return [((), structure)]
    return [((key,) + path, leaf) for key, child in _children(structure)
            for path, leaf in flatten_with_path(child)]


def flatten(structure):
    """The leaves in order, as a list."""
    return [leaf for _, leaf in flatten_with_path(structure)]


def traverse(func, structure, top_down=True):
    """Replaces parts for which func returns something; where it returns None, its children are
    traversed: before it if not top_down."""
    def inside(part):
        if not is_nested(part):
            return part
        return _like(part, [traverse(func, child, top_down) for _, child in _children(part)])

    if not top_down:
        structure = inside(structure)
    made = func(structure)
    if made is None:
        return inside(structure) if top_down else structure
    return None if made is MAP_TO_NONE else made


def _differ(a, b):
    raise ValueError("structures differ: %r is beside %r" % (a, b))


def _check_level(a, b):
    """Raises unless two nested structures have the same type and keys at their top."""
    dictionaries = isinstance(a, dict), isinstance(b, dict)
    if not is_nested(b) or (type(a) is not type(b) and not all(dictionaries)) or len(a) != len(b):
        _differ(a, b)
    if all(dictionaries) and set(a) != set(b):
        _differ(a, b)


def _values(structure, like):
    return [structure[key] for key in _keys(like)] if isinstance(like, dict) else list(structure)


def _mapped(func, first, others, up_to, none_is_leaf):
    if first is None and not none_is_leaf:
        return None
    if not is_nested(first):
        for other in () if up_to else others:
            if is_nested(other):
                _differ(first, other)
        return func(*others) if up_to else func(first, *others)
    for other in others:
        _check_level(first, other)
    rows = zip(_values(first, first), *(_values(other, first) for other in others))
    return _like(first, [_mapped(func, row[0], row[1:], up_to, none_is_leaf) for row in rows])


def map_structure(func, *structures, none_is_leaf=True):
    """The structure of func's results for the leaves of structures of one form."""
    if not structures:
        raise ValueError("map_structure: no structure is given, expected at least one")
    return _mapped(func, structures[0], structures[1:], False, none_is_leaf)


def map_structure_up_to(shallow_structure, func, *structures):
    """As map_structure, but what lies at the leaves of shallow_structure is not entered."""
    if not structures:
        raise ValueError("map_structure_up_to: no structure is given, expected at least one")
    return _mapped(func, shallow_structure, structures, True, True)


def assert_same_structure(a, b):
    """ValueError unless both are nested alike."""
    map_structure(lambda x, y: None, a, b)


def assert_same_paths(a, b):
    """ValueError unless leaves have the same paths, whatever the types of sequences."""
    left, right = ({path for path, _ in flatten_with_path(x)} for x in (a, b))
    if left != right:
        raise ValueError("structures differ: the first alone has the paths %s, the second %s"
                         % (sorted(left - right, key=str), sorted(right - left, key=str)))


def pack_sequence_as(structure, flat_sequence):
    """The structure with other leaves, in flatten's order."""
    leaves, count = list(flat_sequence), len(flatten(structure))
    if len(leaves) != count:
        raise ValueError("pack_sequence_as: %d leaves are given, expected %d"
                         % (len(leaves), count))
    rest = iter(leaves)
    return map_structure(lambda _: next(rest), structure)


def lists_to_tuples(structure):
    """The structure with tuples in place of lists."""
    return traverse(lambda part: tuple(part) if isinstance(part, list) else None, structure, False)


def map_shape_structure(func, structure):
    """As map_structure, with tuples and lists of integers and None as leaves: shapes."""
    if isinstance(structure, (list, tuple)) and \
            all(isinstance(extent, (int, type(None))) for extent in structure):
        return func(structure)
    if not is_nested(structure):
        return func(structure)
    return _like(structure, [map_shape_structure(func, child) for _, child in _children(structure)])


__all__ = ["MAP_TO_NONE", "assert_same_paths", "assert_same_structure", "flatten",
           "flatten_with_path", "is_nested", "lists_to_tuples", "map_shape_structure",
           "map_structure", "map_structure_up_to", "pack_sequence_as", "traverse"]
__getattr__ = getter(__name__)
