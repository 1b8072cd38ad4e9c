"""Exceptions, one per status of the library: ERR_SHAPE is ShapeError."""


class CornuError(Exception):
    """A failure in the library; the message says what was expected and what came."""


_ALSO = {"ERR_ARGUMENT": ValueError, "ERR_SHAPE": ValueError, "ERR_DTYPE": ValueError,
         "ERR_VALUE": ValueError, "ERR_FORMAT": ValueError, "ERR_MEMORY": MemoryError,
         "ERR_FILE": OSError, "ERR_DATA": OSError, "ERR_UNSUPPORTED": NotImplementedError}


def error_classes(statuses):
    """The class for each status, by its number: a CornuError that is Python's own kind, too."""
    made = []
    for name, text in statuses:
        bases = (CornuError, _ALSO.get(name, RuntimeError))
        made.append(type(name[len("ERR_"):].capitalize() + "Error", bases,
                         {"__doc__": "%s: %s" % (name, text), "__module__": "cornu.errors",
                          "status": name}))
    return made
