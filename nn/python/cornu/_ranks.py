"""Labels and predictions of ranks that differ by one."""

from ._operators import operate


def same_rank(a, b):
    """Keras' squeeze_or_expand_to_same_rank."""
    if a.ndim == b.ndim + 1 and a.shape[-1] == 1:
        return (a, operate("expand_dims", b, -1)) if b.ndim == 1 else (operate("squeeze", a, -1), b)
    if b.ndim == a.ndim + 1 and b.shape[-1] == 1:
        return (operate("expand_dims", a, -1), b) if a.ndim == 1 else (a, operate("squeeze", b, -1))
    return a, b
