"""Gradients of operations, by one recipe: of the calls in tests/golden/operations the derivative in
a direction, beside differences of values."""

import unittest

import numpy as np

import cornu

from test_ops import DATA, KERAS

# Arguments, by place, at which a call has no derivative, or which are numbers here.
CONSTANT = {
    "where": [0], "select": [0],    # conditions
    "divide_no_nan": [1],           # some are 0
    "affine_transform": [1],        # places of pixels are whole numbers, where the mixture bends
    "stop_gradient": [0],
}
# Of a single number the derivative of a root of 0, nan as in JAX; q is no tensor here.
LEFT_OUT = {"nanstd", "quantile", "nanquantile", "percentile", "nanpercentile"}
STEPS = (1e-2, 3e-3, 1e-3)      # of float32, whose differences need large ones; the best counts
TOLERANCE = 2e-2


def inputs_of(value):
    """The names of float inputs in the arguments of a call, each once."""
    if isinstance(value, list):
        return list(dict.fromkeys(name for v in value for name in inputs_of(v)))
    if isinstance(value, dict) and DATA[value["input"]].dtype.kind == "f":
        return [value["input"]]
    return []


def filled(value, given):
    if isinstance(value, dict):
        return given.get(value["input"], DATA[value["input"]])
    if isinstance(value, list) and any(isinstance(v, (dict, list)) for v in value):
        return [filled(v, given) for v in value]
    return value


class Checked:
    """A call as a scalar function of its float inputs: its float results times fixed weights."""

    def __init__(self, case):
        left = CONSTANT.get(case["function"], [])
        self.names = inputs_of([v for i, v in enumerate(case["args"]) if i not in left])
        self.case = dict(case, args=[filled(v, {}) if i in left else v
                                     for i, v in enumerate(case["args"])])
        self.function = getattr(cornu.ops, case["function"])
        rng = np.random.default_rng(1)
        self.at = [DATA[name].astype("float32") for name in self.names]
        self.along = [rng.normal(size=x.shape).astype("float32") for x in self.at]
        self.weights = {}

    def results(self, *xs):
        made = self.function(*filled(self.case["args"], dict(zip(self.names, xs))))
        made = made if isinstance(made, (list, tuple)) else [made]
        return [r for r in made if hasattr(r, "dtype") and "float" in str(r.dtype)]

    def loss(self, *xs):
        total = 0.0
        for i, result in enumerate(self.results(*xs)):
            if i not in self.weights:
                self.weights[i] = np.random.default_rng(2 + i).normal(
                    size=result.shape).astype("float32")
            finite = cornu.ops.isfinite(result)     # means of nothing, and the like
            result = cornu.ops.where(finite, result, 0.0)
            total = total + cornu.ops.sum(result * self.weights[i])
        return total

    def derivatives(self):
        """The one by gradients, and those by differences."""
        places = tuple(range(len(self.at)))
        _, grads = cornu.value_and_grad(self.loss, argnums=places)(*self.at)
        exact = sum(float(np.sum(np.where(np.isnan(x), 0.0, np.asarray(g, float) * v)))
                    for g, v, x in zip(grads, self.along, self.at))
        loss = cornu.function(self.loss)
        found = []
        for step in STEPS:
            moved = [float(loss(*[x + np.float32(sign * step) * v
                                  for x, v in zip(self.at, self.along)])) for sign in (1, -1)]
            found.append((moved[0] - moved[1]) / (2 * step))
        return exact, found


class Operations(unittest.TestCase):
    def test_gradients_are_those_of_the_values(self):
        checked = 0
        for number, case in enumerate(KERAS["cases"] + KERAS["whole"]):
            made = Checked(case)
            if case["function"] in LEFT_OUT or not made.names or not made.results(*made.at):
                continue
            with self.subTest("%s %d" % (case["function"], number)):
                exact, found = made.derivatives()
                error = min(abs(exact - each) for each in found)
                self.assertLessEqual(error, TOLERANCE * max(1.0, abs(exact)),
                                     "%r, differences %r" % (exact, found))
                checked += 1
        self.assertGreater(checked, 150)


if __name__ == "__main__":
    unittest.main()
