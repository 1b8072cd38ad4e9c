"""libcornu, found and loaded, with the layouts and types that it describes itself.

`lib.cornu_NAME(...)` calls a function of bindings.def: strings are str; a status other than OK, and
NULL, raise the CornuError of the failure. `struct(NAME)` makes a struct of zeros.

Functions that return at once keep Python's lock, so that threads, and objects that are collected in
them, exclude each other there; those that compute or wait for files release it.
"""

import ctypes
import ctypes.util
import json
import os
import sys
import threading

from .errors import error_classes

_SCALARS = {"bool": ctypes.c_bool, "i32": ctypes.c_int32, "u32": ctypes.c_uint32,
            "i64": ctypes.c_int64, "u64": ctypes.c_uint64, "f64": ctypes.c_double,
            "char": ctypes.c_char, "text": ctypes.c_char_p, "pointer": ctypes.c_void_p,
            "status": ctypes.c_uint32, "void": None}
# Results that may be NULL, and statuses that are values.
_MAY_BE_NULL = {"cornu_as_model", "cornu_dtype_policy", "cornu_model_device", "cornu_model_loss",
                "cornu_model_note", "cornu_model_optimizer", "cornu_optimizer_iteration",
                "cornu_table_categories", "cornu_traced_layer"}
_VALUES = {"cornu_error_status", "cornu_error_take"}


def _candidates():
    """Paths of the library: the one asked for, the wheel's, the source tree's, the system's."""
    if os.environ.get("CORNU_LIBRARY"):
        yield os.environ["CORNU_LIBRARY"]
        return
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))    # the package's
    for path in (os.path.join(here, "libcornu.so"),
                 os.path.join(here, "..", "..", "..", "build", "libcornu.so")):
        if os.path.exists(path):
            yield path
    yield "libcornu.so.0"


def _load():
    tried = []
    for path in _candidates():
        try:
            return ctypes.CDLL(path), path
        except OSError as error:
            tried.append(str(error))
    raise ImportError("cornu: libcornu.so cannot be loaded (%s); build it by make in the source "
                      "tree, install it, or set CORNU_LIBRARY to its path" % "; ".join(tried))


class _Text:
    """An argument of type const char *: None, str, bytes or a path."""

    @classmethod
    def from_param(cls, value):
        if value is not None and not isinstance(value, (str, bytes)):
            value = os.fspath(value)
        if isinstance(value, str):
            value = value.encode("utf-8", "surrogateescape")
        return ctypes.c_char_p.from_param(value)


class _Library:
    def __init__(self):
        self._released, self.path = _load()
        self._held = ctypes.PyDLL(self.path)
        try:
            describe = self._held.cornu_bindings_to_json
        except AttributeError:
            raise ImportError("cornu: %s is not a library of this version" % self.path) from None
        self._held.free = ctypes.PyDLL(None).free
        self._held.free.argtypes = [ctypes.c_void_p]
        describe.restype = ctypes.c_void_p
        described = json.loads(self.take_text(describe()))
        self.version = described["version"]
        self.constants = described["constants"]
        self.callbacks = described["callbacks"]
        self.dtypes = described["dtypes"]
        self.statuses = described["statuses"]
        self.errors = error_classes(self.statuses)
        self._carried = threading.local()
        self._layouts, self._structs = described["structs"], {}
        self._types, self._slow = described["functions"], set(described["slow"])

    def take_text(self, address):
        """The string at an address, which is freed."""
        text = ctypes.string_at(address).decode("utf-8")
        self._held.free(address)
        return text

    def free(self, address):
        """Frees memory that the library allocated for its caller."""
        self._held.free(address)

    # ---- Structs ----

    def type(self, name):
        """The ctypes type of a scalar or a struct, by its name in bindings.h."""
        if name in _SCALARS:
            return _SCALARS[name]
        if name not in self._structs:
            self._structs[name] = self._make_struct(name)
        return self._structs[name]

    def _make_struct(self, name):
        layout, fields, end = self._layouts[name], [], 0
        for field, offset, size, type_name in sorted(layout["fields"], key=lambda f: f[1]):
            if offset > end:
                fields.append(("_%d" % end, ctypes.c_char * (offset - end)))
            kind = self.type(type_name)
            count = size // ctypes.sizeof(kind)
            if type_name == "char" or count > 1:
                kind = kind * count
            fields.append((field, kind))
            end = offset + size
        if layout["size"] > end:
            fields.append(("_%d" % end, ctypes.c_char * (layout["size"] - end)))
        made = type(name, (ctypes.Structure,), {"_fields_": fields})
        for field, offset, size, _ in layout["fields"]:
            at = getattr(made, field)
            if (at.offset, at.size) != (offset, size):
                raise ImportError("cornu: %s.%s is at %d, expected at %d"
                                  % (name, field, at.offset, offset))
        if ctypes.sizeof(made) != layout["size"]:
            raise ImportError("cornu: %s has %d bytes, expected %d"
                              % (name, ctypes.sizeof(made), layout["size"]))
        return made

    # ---- Functions ----

    def __getattr__(self, name):
        types = self.__dict__.get("_types", {}).get(name)
        if types is None:
            raise AttributeError(name)
        function = (self._released if name in self._slow else self._held)[name]
        function.restype = self.type(types[0])
        function.argtypes = [_Text if t == "text" else self.type(t) for t in types[1:]
                             if t != "void"]
        if types[0] == "text":
            function.errcheck = self._decoded
        elif types[0] == "status" and name not in _VALUES:
            function.errcheck = self._checked_status
        elif types[0] == "pointer" and name not in _MAY_BE_NULL:
            function.errcheck = self._checked_pointer
        setattr(self, name, function)
        return function

    @staticmethod
    def _decoded(result, function, arguments):
        return None if result is None else result.decode("utf-8", "replace")

    def _checked_status(self, result, function, arguments):
        if result:
            self.cornu_error_take()
            self.fail(result)
        return result

    def _checked_pointer(self, result, function, arguments):
        if not result:
            status = self.cornu_error_take() or self.cornu_error_status()
            self.fail(status)
        return result

    def carry(self, error, status):
        """Fails, in a function that the library calls, by an exception: the call of the library
        that this ends raises it."""
        text = "%s: %s" % (type(error).__name__, str(error)[:100])
        self._carried.last = (text, error)
        self.cornu_error_raise(status, text)

    def carry_late(self, error):
        """The same in a function that cannot fail: raise_late raises it after the call."""
        self._carried.late = getattr(self._carried, "late", None) or error

    def raise_late(self):
        error, self._carried.late = getattr(self._carried, "late", None), None
        if error is not None:
            raise error

    def _take_carried(self, message):
        """The exception that ended the call, if one did."""
        text, error = getattr(self._carried, "last", (None, None))
        self._carried.last = (None, None)
        return error if error is not None and text in message else None

    def fail(self, status):
        """Raises the error of a status with this thread's last message."""
        from .spelling import spelt
        message = self.cornu_error_message() or self.statuses[status][1]
        carried = self._take_carried(message)
        if carried is not None:
            raise carried
        raise self.errors[status](spelt(message))


lib = _Library()


def struct(kind, /, **fields):
    """A struct of that name, all zero but the fields given; strings may be str."""
    made = lib.type(kind)()
    for field, value in fields.items():
        setattr(made, field, value.encode("utf-8") if isinstance(value, str) else value)
    return made


def arguments(*values):
    """The addresses of some objects as an array of pointers, and their number."""
    return (ctypes.c_void_p * len(values))(*values), len(values)


class Owned:
    """A reference to an object of the library, which is freed with the last one, before what it
    needs.

    References are counted here: of objects in a cycle, Python runs all __del__ in any order.
    """

    def __init__(self, address, free, *needs):
        self.address = address
        self.counted = _Counted(address, free)
        for other in needs:
            self.needs(other.counted)

    def needs(self, counted):
        """What another Owned counts lives as long as this."""
        counted.count += 1
        self.counted.needs.append(counted)

    def __reduce__(self):
        raise TypeError("an object of the library cannot be copied or pickled on its own; models, "
                        "and layers without weights, can")

    def __del__(self):
        # At the end of the program modules are gone and the system frees everything.
        if not sys.is_finalizing():
            self.counted.release()


class _Counted:
    def __init__(self, address, free):
        self.address, self.free, self.count, self.needs = address, free, 1, []

    def release(self):
        self.count -= 1
        if self.count == 0:
            self.free(self.address)
            self.address = None
            for other in self.needs:
                other.release()
