"""What is said of a name that a module lacks, and cornu.coverage()."""

import importlib
import sys

from .hints import HINTS
from .names import ATTRIBUTES, NAMES, VERSION

PACKAGE = __name__.partition(".")[0]


def _in_keras(module):
    """The names that a module of Keras has; None for one that is not Keras'."""
    if module not in NAMES:
        return None
    inner = {name[len(module):].lstrip(".").partition(".")[0] for name in NAMES
             if name != module and (not module or name.startswith(module + "."))}
    return {word.partition("=")[0] for word in NAMES[module].split()} | inner


def aliases(module):
    """Keras' further names of a module, each with the one for which it stands."""
    words = (word.partition("=") for word in NAMES.get(module, "").split())
    return {name: first for name, equals, first in words if equals}


def add_aliases(module, members):
    """Adds the aliases of what a module has; returns their names."""
    added = {name: members[first] for name, first in aliases(module).items()
             if first in members and name not in members}
    members.update(added)
    return sorted(added)


def _elsewhere(name, but):
    """The modules of this package, of those that Keras has, with that name."""
    found = []
    for module, words in NAMES.items():
        if module != but and not module.startswith("applications.") and \
                name in (word.partition("=")[0] for word in words.split()) and _has(module, name):
            found.append(".".join(part for part in (PACKAGE, module, name) if part))
    return found


def _hint(module, name):
    path = (module + "." if module else "") + name
    while path not in HINTS and path:
        path = path.rpartition(".")[0]
    return HINTS.get(path)


def message(module, name, members):
    """Why a module lacks a name, and what to use; `members` are its own."""
    here = ".".join(part for part in (PACKAGE, module) if part)
    theirs = _in_keras(module) or set()
    hint, elsewhere = _hint(module, name), _elsewhere(name, module)
    if name in theirs:
        text = "%s has no %s, which Keras has" % (here, name)
        # Names of other modules may be other things: ops.ones, initializers.ones.
        same = [path for path in elsewhere if path.split(".")[1] == module.partition(".")[0]]
        if same:
            return "%s; here it is %s" % (text, same[0])
        return "%s: %s" % (text, hint or "%s.coverage(%r) lists what there is"
                           % (PACKAGE, module.partition(".")[0] or name))
    text = "%s has no %s" % (here, name)
    if hint and (module + "." if module else "") + name in HINTS:
        return "%s: %s" % (text, hint)
    if elsewhere:
        return "%s; it is %s" % (text, " or ".join(elsewhere[:2]))
    import difflib      # here and below: only what fails takes the time
    own = [word for word in members if not word.startswith("_")]
    near = difflib.get_close_matches(name, own, 1, 0.6) or \
        [word for word in own if word.lower() == name.lower()]
    if near:
        return "%s; the nearest name is %s" % (text, near[0])
    return text + ", and neither has Keras"


def _is_import(frame):
    """Whether a frame is at `from module import name`, which would replace the message."""
    if frame is None or not 0 <= frame.f_lasti < len(frame.f_code.co_code):
        return False
    import dis
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"


def getter(module_name):
    """The __getattr__ of a module of the package, by its __name__."""
    module = module_name.partition(".")[2]

    def __getattr__(name):
        if name.startswith("_"):
            raise AttributeError("module %r has no attribute %r" % (module_name, name))
        text = message(module, name, vars(sys.modules[module_name]))
        if _is_import(sys._getframe(1)):
            raise ImportError(text, name=module_name)
        raise AttributeError(text)
    return __getattr__


def missing_attribute(obj, name):
    """The __getattr__ of objects: raises what is said of an attribute that Keras' class has, else
    what the lookup of the attribute raised."""
    if not name.startswith("_") and not hasattr(type(obj), name):
        for path, words in ATTRIBUTES.items():
            cls = _attributes(path)
            if cls is not None and isinstance(obj, cls) and name in words.split():
                hint = HINTS.get(path + "." + name)
                raise AttributeError("%s has no %s, which Keras has%s" % (
                    type(obj).__name__, name, ": " + hint if hint else ""))
    return object.__getattribute__(obj, name)


class Namespace:
    """A module that has no file of its own, such as ops.image."""

    def __init__(self, module, members):
        self.__dict__.update(members)
        self.__name__ = PACKAGE + "." + module

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(message(self.__name__.partition(".")[2], name, vars(self)))


# ---- Coverage ----

def _module(path):
    """A module of this package by its path, or None."""
    at = importlib.import_module(PACKAGE)
    for part in path.split(".") if path else []:
        at = vars(at).get(part)
        if at is None:
            return None
    return at


def _has(module, name):
    at = _module(module)
    return at is not None and name in vars(at)


def _attributes(path):
    at = _module("")
    for part in path.split("."):
        at = getattr(at, part, None)
    return at


def _counted():
    """For each module of Keras at the top what is here and what is missing, both by path. A name
    that a module inside repeats, such as ops.numpy.add, is counted once."""
    found = {}
    for module, words in NAMES.items():
        top = module.partition(".")[0]
        names = [word.partition("=")[0] for word in words.split()]
        outer = {word.partition("=")[0] for word in NAMES[top].split()} if module != top else set()
        here, missing = found.setdefault(top, ([], []))
        for name in names:
            if name in outer:
                continue
            (here if _has(module, name) else missing).append(
                (module + "." if module else "") + name)
    for path, words in ATTRIBUTES.items():
        cls = _attributes(path)
        here, missing = found.setdefault("attributes of classes", ([], []))
        for name in words.split():
            # A class says more in its objects than in itself: what __init__ sets is not counted.
            (here if cls is not None and hasattr(cls, name) else missing).append(path + "." + name)
    return found


def coverage(module=None, print_fn=print):
    """Prints how much there is of what Keras has by name, for each module; of one module what is
    missing, and what to use in its place."""
    counted = _counted()
    if module is not None:
        if module not in counted:
            raise ValueError("coverage: %r is not a module of Keras, expected one of %s"
                             % (module, ", ".join(sorted(filter(None, counted)))))
        return _print_missing(module, counted[module], print_fn)
    print_fn("%-22s %5s  %s" % ("Keras " + VERSION, "here", "of"))
    for name in sorted(counted, key=lambda m: (m == "attributes of classes", m)):
        here, missing = counted[name]
        print_fn("%-22s %5d  %d" % (name or "(top)", len(here), len(here) + len(missing)))
    here, missing = [sum(len(part[i]) for part in counted.values()) for i in (0, 1)]
    print_fn("%-22s %5d  %d (%d %%)" % ("all", here, here + missing,
                                        100 * here // (here + missing)))
    return None


def _print_missing(module, parts, print_fn):
    here, missing = parts
    print_fn("%s: %d of %d; missing are" % (module or "(top)", len(here), len(here) + len(missing)))
    for path in missing:
        hint = _hint(*path.rpartition(".")[::2])
        print_fn("    %s%s" % (path, ": " + hint if hint else ""))
