"""The arguments of Keras' constructors, in their order, with plain defaults. Writes signatures/.

    python tests/golden/make_signatures.py [CLASSES.json]

signatures.json: {"layers": {"Dense": [["units"], ["activation", null], …]}}; an argument without a
second element has no default, or one that JSON cannot hold. With what cornu_classes_to_json returns
the rows are printed that nn/saving/orders.def lacks.
"""

import inspect
import json
import sys
import textwrap

import common
import keras

MODULES = {"layers": keras.layers, "optimizers": keras.optimizers,
           "schedules": keras.optimizers.schedules, "losses": keras.losses,
           "metrics": keras.metrics, "initializers": keras.initializers,
           "regularizers": keras.regularizers, "constraints": keras.constraints}


def argument(parameter):
    usual = parameter.default
    if usual is None or isinstance(usual, (bool, int, float, str)):
        return [parameter.name, usual]
    if isinstance(usual, (list, tuple)) and all(isinstance(v, (int, float)) for v in usual):
        return [parameter.name, list(usual)]
    return [parameter.name]


def signature(cls):
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    return [argument(p) for p in parameters if p.kind == p.POSITIONAL_OR_KEYWORD]


def missing_rows(classes, signatures):
    for kind, entries in classes.items():
        for entry in entries if kind in signatures else []:
            theirs = [a[0] for a in signatures[kind].get(entry["class_name"], [])]
            ours = [field["name"] for field in entry["fields"]]
            while theirs and theirs[-1] in ("name", "dtype"):
                theirs.pop()
            if ours[:len(theirs)] == theirs[:len(ours)]:
                continue
            lines = textwrap.wrap(" ".join(theirs), 80)
            print("ORDER(%s, %s," % (kind, entry["class_name"]))
            print("\n".join('      "%s%s' % (line, ' "' if line != lines[-1] else '")')
                            for line in lines))


def main():
    signatures = {}
    for kind, module in MODULES.items():
        classes = {name: value for name, value in vars(module).items() if inspect.isclass(value)}
        signatures[kind] = {name: signature(value) for name, value in sorted(classes.items())}
    if len(sys.argv) > 1:
        with open(sys.argv[1], encoding="utf-8") as file:
            missing_rows(json.load(file), signatures)
        return
    folder = common.folder("signatures")
    with open(folder / "signatures.json", "w", encoding="utf-8") as file:
        json.dump(signatures, file, indent=None, separators=(",", ":"), sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main()
