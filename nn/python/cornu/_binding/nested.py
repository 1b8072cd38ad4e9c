"""Values in nested lists, tuples and dictionaries."""


class Place:
    """Where a value stands whose number among all is i."""

    def __init__(self, i):
        self.i = i

    def __repr__(self):
        return "<%d>" % self.i


def mapped(value, leaf, whole=None):
    """The structure with leaf(v) for each v in it; a list of which `whole` is true is such a v."""
    if isinstance(value, dict):
        return {key: mapped(v, leaf, whole) for key, v in value.items()}
    if not isinstance(value, (list, tuple)) or (whole is not None and whole(value)):
        return leaf(value)
    made = [mapped(v, leaf, whole) for v in value]
    return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)


def placed(value, found, wanted, whole=None):
    """The structure with places for the values that are wanted, which are appended to a list."""
    def leaf(v):
        if not wanted(v):
            return v
        found.append(v)
        return Place(len(found) - 1)
    return mapped(value, leaf, whole)


def filled(value, found):
    """With the values for the places."""
    return mapped(value, lambda v: found[v.i] if isinstance(v, Place) else v)
