"""
ONNX' own tests of single nodes, by Cornu's reader of .onnx files:

    python tests/onnx/onnx_nodes.py build/onnx_nodes [--all] [--show WORD]

Prints a line for each operator: NAME passed N, refused N, wrong N; then the totals of the operators
that Cornu reads, and of all. Fails if a result is wrong; what is not supported is refused by name.
--all also tries tests of other element types; --show prints the messages of names with WORD. Needs
the package onnx.
"""
import collections
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

warnings.filterwarnings("ignore")

KINDS = {"FLOAT", "INT64", "INT32", "BOOL", "UINT8"}


def kinds_of(model):
    kinds = set()
    for value in list(model.graph.input) + list(model.graph.output):
        kind = value.type
        kinds.add(onnx.TensorProto.DataType.Name(kind.tensor_type.elem_type)
                  if kind.HasField("tensor_type") else kind.WhichOneof("value"))
    return kinds


def write(case, folder):
    os.makedirs(folder)
    onnx.save(case.model, os.path.join(folder, "model.onnx"))
    inputs, outputs = case.data_sets[0]
    for word, arrays, values in (("input", inputs, case.model.graph.input),
                                 ("output", outputs, case.model.graph.output)):
        for i, (array, value) in enumerate(zip(arrays, values)):
            if not isinstance(array, onnx.TensorProto):
                array = numpy_helper.from_array(np.asarray(array), value.name)
            with open(os.path.join(folder, f"{word}_{i}.pb"), "wb") as file:
                file.write(array.SerializeToString())


def main():
    program, words = sys.argv[1], sys.argv[2:]
    show = words[words.index("--show") + 1] if "--show" in words else None
    results = collections.defaultdict(collections.Counter)
    messages, chosen = [], []
    with tempfile.TemporaryDirectory() as folder:
        lines = []
        for case in collect_testcases(None):
            if not kinds_of(case.model) <= KINDS and "--all" not in words:
                continue
            place = os.path.join(folder, case.name)
            try:
                write(case, place)
            except Exception as error:
                print(f"{case.name}: not written: {error}")
                continue
            chosen.append(case)
            # The expected numbers of an inverse transform have rounding errors of f32 themselves.
            atol = 1e-6 if case.name.startswith("test_dft_inverse") else case.atol
            lines.append(f"{place} {case.rtol} {atol}\n")
        done = subprocess.run([program, "cpu"], input="".join(lines), text=True,
                              stdout=subprocess.PIPE).stdout.splitlines()
    if len(done) != len(chosen):
        sys.exit(f"{program} ended at {chosen[len(done)].name}")
    for case, line in zip(chosen, done):
        word = line.split()[0]
        expanded = "_expanded" in case.name
        op = "expanded" if expanded else case.model.graph.node[0].op_type
        results[op][word] += 1
        if word != "passed":
            messages.append(f"{case.name}: {line}")
    read = collections.Counter()
    total = collections.Counter()
    for op, counts in sorted(results.items()):
        print(f"{op:28} passed {counts['passed']}, refused {counts['refused']}, "
              f"wrong {counts['wrong']}")
        total += counts
        if counts["passed"]:
            read += counts
    for message in messages:
        if show is not None and show in message:
            print(message)
    for name, counts in (("operators that are read", read), ("all", total)):
        print(f"{name}: passed {counts['passed']}, refused {counts['refused']}, "
              f"wrong {counts['wrong']}")
    return 1 if read["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
