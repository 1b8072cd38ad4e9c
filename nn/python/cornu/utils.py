"""Settings of the program."""

from ._described import reset_names
from ._library import lib


def set_random_seed(seed):
    """The seed of initial weights, dropout and shuffling of models that this thread makes next."""
    lib.cornu_set_random_seed(int(seed))


def set_dtype_policy(policy):
    """The precision policy of models made from now on: "float32", "mixed_bfloat16", …"""
    lib.cornu_set_dtype_policy(policy)


def clear_session():
    """Default names of layers and models begin anew."""
    reset_names()
