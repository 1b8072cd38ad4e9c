"""Confusion matrices and the output of sklearn's classification_report. Writes report/.

Needs scikit-learn and its numpy, not the packages of the other scripts.
"""

import json
import pathlib
import platform

import numpy as np
import sklearn
from sklearn.metrics import classification_report, confusion_matrix

OUT = pathlib.Path(__file__).resolve().parent / "report"
RANDOM = np.random.default_rng(2)


def case(names, labels, digits, never=()):
    """Predictions that are right about half the time and never say the classes in `never`. They
    are multiples of 1/16, exact in any float, so that largest ones are often equal."""
    classes, labels = len(names), np.asarray(labels)
    scores = RANDOM.integers(0, 16, (len(labels), classes))
    scores[np.arange(len(labels)), labels] += 5
    scores[:, list(never)] = -16
    predicted = scores.argmax(axis=1)
    every = list(range(classes))
    return {
        "names": names, "digits": digits, "labels": labels.tolist(),
        "predictions": (scores / 16).tolist(),
        "confusion": confusion_matrix(labels, predicted, labels=every).tolist(),
        "text": classification_report(labels, predicted, labels=every, target_names=names,
                                      digits=digits, zero_division=0.0),
    }


def main():
    OUT.mkdir(exist_ok=True)
    digits = [str(i) for i in range(10)]
    cases = {
        "three": case(["ant", "bee", "cat"], [0, 1, 2, 2, 2, 0, 1, 1], 2),
        "ten": case(digits, RANDOM.integers(0, 10, 200), 4),
        "long_names": case(["a name longer than the averages' own", "Käfer", "été"],
                           RANDOM.integers(0, 3, 40), 3),
        "never_predicted": case(digits[:4], RANDOM.integers(0, 4, 30), 4, never=(1, 3)),
        "absent": case(digits[:5], RANDOM.integers(0, 3, 30), 4, never=(4,)),
        "no_digits": case(["yes", "no"], RANDOM.integers(0, 2, 20), 0),
    }
    versions = {"python": platform.python_version(), "scikit-learn": sklearn.__version__,
                "numpy": np.__version__}
    (OUT / "VERSIONS").write_text("".join(f"{k} {v}\n" for k, v in versions.items()))
    lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in cases.items())
    (OUT / "reports.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
