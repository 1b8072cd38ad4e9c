"""Keras' public names. Writes nn/python/cornu/_surface/names.py, which the package needs to tell
what Keras has and it lacks; so that the list stands once, it is not in a folder here.

    python tests/golden/make_coverage.py            by Keras
    python tests/golden/make_coverage.py --readme   what nn/python/README.md quotes of
                                                    cornu.coverage(), without Keras
"""

import inspect
import os
import pathlib
import re
import sys
import textwrap

PYTHON = pathlib.Path(__file__).resolve().parent.parent.parent / "nn" / "python"
# Whose methods and properties programs use.
CLASSES = ["Layer", "Model", "Sequential", "KerasTensor", "Variable", "callbacks.Callback",
           "losses.Loss", "metrics.Metric", "optimizers.Optimizer"]
HEAD = '''"""The public names of Keras %s by module, made by tests/golden/make_coverage.py. A=B is
another name of B in the same module. Below are the attributes of classes, of Model and Sequential
those that the class before lacks."""

'''


def public(thing):
    return [name for name in sorted(dir(thing)) if not name.startswith("_")]


def words(module, names):
    """The names; of several for one object, all but the first say so."""
    first, made = {}, []
    for name in names:
        value = getattr(module, name)
        key = id(value) if inspect.isclass(value) or inspect.isfunction(value) else name
        own = getattr(value, "__name__", name)
        first.setdefault(key, own if own in names else name)
        made.append(name if first[key] == name else "%s=%s" % (name, first[key]))
    return made


def modules(prefix, module, found):
    names = [name for name in public(module) if (prefix, name) != ("", "src")]
    inner = [name for name in names if inspect.ismodule(getattr(module, name))]
    if prefix == "optimizers.legacy":       # one class that refuses, under each of its names
        found[prefix] = names
        return found
    found[prefix] = words(module, [name for name in names if name not in inner])
    for name in inner:
        modules((prefix + "." if prefix else "") + name, getattr(module, name), found)
    return found


def written(name, table):
    lines = [name + " = {"]
    for key, values in table.items():
        text = textwrap.wrap(" ".join(values), 88, break_on_hyphens=False) or [""]
        rows = ["        \"%s%s\"" % (row, " " if row is not text[-1] else "") for row in text]
        lines.append("    %r:\n%s," % (key, "\n".join(rows)))
    return "\n".join(lines) + "\n}\n"


def quote():
    """Puts what cornu.coverage() prints into the README."""
    sys.path.insert(0, str(PYTHON))
    import cornu
    lines, readme = [], PYTHON / "README.md"
    cornu.coverage(print_fn=lines.append)
    text = "".join("    %s\n" % line for line in lines)
    readme.write_text(re.sub(r"    Keras [0-9.]+ +here  of\n(    .*\n)+", lambda _: text,
                             readme.read_text(encoding="utf-8")), encoding="utf-8")


def main():
    if sys.argv[1:] == ["--readme"]:
        return quote()
    os.environ.setdefault("KERAS_BACKEND", "jax")
    import keras
    names = modules("", keras, {})
    attributes, base = {}, []
    for path in CLASSES:
        cls = keras
        for part in path.split("."):
            cls = getattr(cls, part)
        # Those of Layer are not said again for Model, nor those for Sequential.
        attributes[path] = [name for name in public(cls) if name not in base]
        base = base + attributes[path] if path in ("Layer", "Model") else []
    text = HEAD % keras.__version__
    text += "VERSION = %r\n\n" % keras.__version__
    text += written("NAMES", names) + "\n" + written("ATTRIBUTES", attributes)
    to = PYTHON / "cornu" / "_surface" / "names.py"
    to.write_text(text.replace("'", '"'), encoding="utf-8")
    return None


if __name__ == "__main__":
    main()
