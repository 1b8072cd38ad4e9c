"""keras.ops: what the functions return, and their arguments. Writes operations/.

    python tests/golden/make_operations.py

operations.json: {"inputs": {"x": [...], ...}, "dtypes": {"x": "float32", ...},
"cases": [{"function": "clip", "module": "", "names": ["x", "x_min", "x_max"],
"args": [{"input": "x"}, -1, 1], "results": [[...]]}, ...]}; `names` are those of the arguments for
a call by name, where there can be one. Prints the rows that nn/layers/operations/signatures.def
should have.
"""

import importlib
import inspect
import json
import re
import textwrap

import common
import numpy as np

import keras
from keras import ops

DEFINITIONS = common.HERE.parents[1] / "nn" / "layers" / "operations" / "operations.def"
RNG = np.random.default_rng(5)


def numbers(*shape):
    return np.round(RNG.uniform(-2, 2, shape), 3).astype(np.float32)


INPUTS = {"x": numbers(2, 3, 4), "y": numbers(2, 3, 4), "positive": abs(numbers(2, 3, 4)) + 0.5,
          "part": numbers(2, 3, 4) / 2.1, "flags": (numbers(2, 3, 4) > 0).astype(np.float32),
          "row": numbers(2, 4), "single": numbers(1, 1, 4),
          "picture": numbers(2, 4, 4, 4), "colours": abs(numbers(2, 2, 3, 3)),
          "above": abs(numbers(2, 3, 4)) + 1.25,
          "wild": np.array([[1, np.inf, -np.inf, np.nan], [0, -1, 2, np.inf]], np.float32),
          "places": RNG.integers(0, 3, (2, 2, 4)).astype(np.int32),
          "words": RNG.integers(0, 5, (2, 3)).astype(np.int32),
          "numbers": RNG.integers(-40, 40, (2, 6)).astype(np.int32),
          "others": RNG.integers(0, 9, (2, 6)).astype(np.int32),
          "holes": np.where(RNG.uniform(size=(2, 3, 4)) < 0.3, np.nan,
                            np.round(RNG.uniform(-2, 2, (2, 3, 4)), 3)).astype(np.float32),
          "line": numbers(2, 9, 3), "volume": numbers(2, 4, 5, 4, 2),
          "heads": numbers(2, 3, 2, 4), "others_heads": numbers(2, 3, 2, 4),
          "labels": RNG.integers(1, 4, (2, 3)).astype(np.int32),
          "lengths": np.array([3, 2], np.int32), "steps": np.array([9, 7], np.int32),
          "shares": (lambda p: p / p.sum(-1, keepdims=True))(abs(numbers(2, 3, 4)) + 0.1),
          "one": np.array([1, 3], np.int32), "scores": numbers(2, 5),
          "others_x": RNG.integers(0, 3, (2, 3, 4)).astype(np.int32), "triples": numbers(2, 4, 3),
          "corner": numbers(2, 2, 2), "classes": numbers(2, 9, 4),
          "hues": np.round(RNG.uniform(0, 1, (2, 3, 2, 3)), 3).astype(np.float32),
          "vector": numbers(4), "three": numbers(3), "table": numbers(6, 3),
          "groups": np.array([0, 2, 2, 1, 7, 0], np.int32),
          "spots": np.array([[0, 1], [2, 0], [0, 1]], np.int32),
          "one_row": np.array([[4], [1]], np.int32), "rows_of_one": numbers(2, 3),
          "corner1": numbers(1, 2, 2), "starts": np.array([1, 0, 9], np.int32),
          "whole": RNG.integers(-9, 9, (6,)).astype(np.int32),
          "scores9": numbers(2, 9), "matrix": numbers(2, 3, 3), "sides": numbers(2, 3, 2),
          "definite": (lambda a: a @ a.transpose(0, 2, 1) + np.eye(3, dtype=np.float32))(
              numbers(2, 3, 3)).astype(np.float32),
          "root": np.float32([[1.5, 0, 0], [0.5, 1, 0], [-0.25, 0.75, 2]]),
          "places_at": np.round(RNG.uniform(-1, 5, (2, 7)), 2).astype(np.float32),
          "transform": np.array([[1, 0.2, -1, 0.1, 0.9, 0.5, 0, 0],
                                 [0.8, 0, 1, 0, 1.1, -0.5, 0, 0]], np.float32)}


class Input(str):
    """A tensor among the arguments of a case."""


(X, Y, POSITIVE, PART, FLAGS, ROW, SINGLE, PICTURE, COLOURS, ABOVE, WILD, PLACES, WORDS, NUMBERS,
 OTHERS, HOLES, LINE, VOLUME, HEADS, OTHER_HEADS, LABELS, LENGTHS, STEPS, SHARES, ONE, SCORES,
 OTHERS_X, TRIPLES, CORNER, LINE4, HUES, VECTOR, THREE, TABLE,
 GROUPS, SPOTS, ONE_ROW, ROWS_OF_ONE, CORNER1, STARTS, WHOLE, SCORES9,
 MATRIX, SIDES, DEFINITE, ROOT, PLACES_AT, TRANSFORM) = map(Input, INPUTS)


def kernel(*shape):
    return np.round(np.sin(np.arange(np.prod(shape)) * 1.3).reshape(shape), 3).tolist()


# Other arguments than x, or x1 and x2; none of them is the default.
CASES = {
    "cast": [X, "int32"], "clip": [X, -1, 1], "convert_to_tensor": [X, "int32"],
    "round": [X, 1], "where": [FLAGS, X, Y], "divide_no_nan": [X, FLAGS],
    "all": [FLAGS, 1, True], "any": [FLAGS, -1, True], "amax": [X, 1, True], "amin": [X, 2, True],
    "argmax": [X, 1, True], "argmin": [X, -1, True], "count_nonzero": [FLAGS, 1],
    "cumprod": [X, 1], "cumsum": [X, 2], "logsumexp": [X, 1, True], "max": [X, 1, True],
    "mean": [X, [1, 2], True], "min": [X, -1, True], "moments": [X, [1], True],
    "norm": [X, 2, 1, True], "prod": [X, 1, True], "std": [X, 1, True], "sum": [X, [1, 2], True],
    "var": [X, 2, True], "broadcast_to": [SINGLE, [1, 3, 4]], "concatenate": [[X, Y], 1],
    "expand_dims": [X, 2], "flip": [X, 1], "full_like": [X, 2.5, "int32"], "hstack": [[X, Y]],
    "moveaxis": [X, 1, 2], "ones_like": [X, "int32"],
    "pad": [X, [[0, 0], [1, 0], [2, 1]], "constant", 1.5], "repeat": [X, 2, 1],
    "reshape": [X, [-1, 6, 2]], "roll": [X, 2, 1], "split": [X, 2, 2], "squeeze": [ROW, None],
    "stack": [[X, Y], 2], "swapaxes": [X, 1, 2], "tile": [X, [1, 2, 1]],
    "transpose": [X, [0, 2, 1]], "tril": [X, 1], "triu": [X, -1], "unstack": [X, 3, 1],
    "zeros_like": [X, "int32"], "multi_hot": [WORDS, 6, -1, "int32"],
    "one_hot": [WORDS, 6, 1, "int32"], "take": [X, [2, 0], 1], "take_along_axis": [X, PLACES, 1],
    "dot": [X, [[1.0, 2.0], [0.5, -1.0], [0.0, 1.0], [3.0, 2.0]]], "einsum": ["bij,bkj->bik", X, Y],
    "matmul": [X, [[1.0, 2.0], [0.5, -1.0], [0.0, 1.0], [3.0, 2.0]]],
    "argsort": [X, 1], "median": [X, 1, True], "sort": [X, 1], "top_k": [X, 2, True],
    "depth_to_space": [PICTURE, 2, "channels_last"], "space_to_depth": [PICTURE, 2],
    "resize": [PICTURE, [6, 3], "nearest"], "average": [X, 1, [0.2, 0.3, 0.5]], "diff": [X, 2, 1],
    "heaviside": [X, 0.5], "layer_normalization": [X, [1.0, 2.0, 3.0, 4.0], [0.5, 0.0, 0.0, 1.0],
                                                   -1, 1e-2],
    "rms_normalization": [X, [1.0, 2.0, 3.0, 4.0], -1, 1e-2], "celu": [X, 0.5], "elu": [X, 0.5],
    "gelu": [X, False], "glu": [X, 2], "hard_shrink": [X, 1.0], "leaky_relu": [X, 0.05],
    "log_softmax": [X, 1], "normalize": [X, 1, 2, 1e-3], "rgb_to_grayscale": [COLOURS],
    "soft_shrink": [X, 1.0], "softmax": [X, 1], "sparsemax": [X, 1], "squareplus": [X, 1.0],
    "threshold": [X, 0.5, -3.0],
    "cholesky": [DEFINITE, True], "det": [MATRIX],
    "inv": [MATRIX], "logdet": [DEFINITE], "slogdet": [MATRIX], "solve": [MATRIX, SIDES],
    "solve_triangular": [DEFINITE, SIDES, True],
    "fft": [[X, Y]], "fft2": [[X, Y]], "ifft2": [[X, Y]], "irfft": [[X, Y], 5], "rfft": [X, 6],
    "stft": [SCORES9, 4, 2, 6],
    "nanprod": [HOLES, 1, True], "nancumsum": [HOLES, 1], "nancumprod": [HOLES, 2],
    "arctan2": [X, Y], "array": [X, "int32"], "empty_like": [FLAGS, "int32"],
    "fmod": [X, POSITIVE], "isclose": [X, Y, 0.1, 0.5], "ldexp": [X, OTHERS_X],
    "nan_to_num": [WILD, 0.5, 9.0, -8.0], "saturate_cast": [X, "uint8"],
    "stop_gradient": [X],
    **{name: [NUMBERS, OTHERS] for name in (
        "bitwise_and bitwise_or bitwise_xor left_shift right_shift bitwise_left_shift "
        "bitwise_right_shift").split()},
    "bitwise_invert": [NUMBERS], "bitwise_not": [NUMBERS],
    **{name: [HOLES, 1, True] for name in "nanmax nanmin nansum nanmean nanvar nanstd".split()},
    "ptp": [X, 2, True], "trapezoid": [X, None, 0.5, 1],
    "append": [X, Y, 1], "array_split": [X, 3, 2], "diagonal": [X, 1, 1, 2],
    "trace": [X, -1, 1, 2], "dstack": [[X, Y]],
    "extract_sequences": [X, 2, 1], "rot90": [X, 3, [1, 2]], "unravel_index": [WORDS, [3, 2]],
    "cdist": [X, Y], "cross": [TRIPLES, TRIPLES], "inner": [X, [1.0, 2.0, 0.5, -1.0]],
    "tensordot": [X, [[1.0, 2.0], [0.5, -1.0], [0.0, 1.0], [3.0, 2.0]], 1],
    "digitize": [X, [-1.0, 0.0, 0.75]], "searchsorted": [[-1.0, 0.0, 0.75], X, "right"],
    "in_top_k": [ONE, SCORES, 2], "isin": [WORDS, [1, 3]],
    "select": [[FLAGS, FLAGS], [X, Y], 3.0],
    "slice_update": [X, [0, 1, 2], CORNER],
    "adaptive_average_pool": [PICTURE, [3, 2]], "adaptive_max_pool": [LINE, 4],
    "average_pool": [PICTURE, 3, 1, "same"], "max_pool": [VOLUME, [2, 2, 2], [1, 2, 1]],
    "batch_normalization": [X, [0.5, 0.0, -0.5, 1.0], [1.0, 2.0, 0.5, 0.25], -1,
                            [0.5, 0.0, 0.0, 1.0], [1.0, 2.0, 3.0, 4.0], 1e-2],
    "conv": [PICTURE, kernel(3, 2, 2, 4), 2, "same"],
    "conv_transpose": [PICTURE, kernel(3, 3, 2, 4), 2, "same"],
    "depthwise_conv": [LINE, kernel(3, 3, 2), 1, "valid", "channels_last", 2],
    "separable_conv": [PICTURE, kernel(2, 2, 4, 2), kernel(1, 1, 8, 3), [2, 2], "same"],
    "dot_product_attention": [HEADS, OTHER_HEADS, HEADS, kernel(1, 2, 3, 3), None, 0.4, True],
    "binary_crossentropy": [FLAGS, X, True], "categorical_crossentropy": [SHARES, SHARES, False, 1],
    "sparse_categorical_crossentropy": [LABELS, X, True],
    "ctc_loss": [LABELS, LINE4, LENGTHS, STEPS],
    "affine_transform": [PICTURE, TRANSFORM, "bilinear", "reflect"],
    "crop_images": [PICTURE, 1, None, None, 2, 2, 2],
    "gaussian_blur": [PICTURE, [3, 5], [0.8, 1.2], "channels_last"],
    "extract_patches": [PICTURE, [2, 2], 1, 1, "same"],
    "pad_images": [PICTURE, 1, 2, None, None, 6, 8], "hsv_to_rgb": [HUES], "rgb_to_hsv": [HUES],
    "percentile": [X, 60.0, [1, 2], "linear", True], "quantile": [X, 0.3, 1, "nearest"],
}
# Of tensors without a batch, of functions that have no case above, and further ones.
WHOLE_CASES = [
    ("arange", [2, 9, 3]), ("full", [[2, 3], 2.5]), ("linspace", [0.0, 2.0, 5, False]),
    ("diag", [VECTOR, 1]), ("diag", [ROW, 1]), ("diagflat", [ROW, -1]), ("flipud", [X]),
    ("ravel", [X]), ("meshgrid", [VECTOR, THREE]), ("vander", [VECTOR, 3, True]),
    ("vstack", [[ROW, VECTOR]]), ("kron", [ROW, ROW]), ("outer", [ROW, THREE]),
    ("vdot", [ROW, ROW]),
    *((f"segment_{what}", [TABLE, GROUPS, 4]) for what in ("sum", "max", "min", "prod")),
    ("segment_sum", [WHOLE, GROUPS, 3]), ("scatter", [SPOTS, THREE, [3, 2]]),
    *(("scatter_update", [TABLE, SPOTS, THREE, how]) for how in ("add", "max", "min", "mul")),
    ("scatter_update", [TABLE, ONE_ROW, ROWS_OF_ONE]), ("psnr", [X, Y, 2.0]),
    ("slice", [X, STARTS, [1, 2, 3]]), ("slice", [X, [0, 1, 1], [2, 2, 3]]),
    ("slice_update", [X, STARTS, CORNER1]),
    ("allclose", [X, X]), ("allclose", [X, Y]),
    *(("map_coordinates", [TABLE, PLACES_AT, order, mode, 0.5]) for order in (0, 1)
      for mode in ("constant", "nearest")),
    ("cholesky_inverse", [ROOT]), ("rfft", [VECTOR]), ("quantile", [X, [0.25, 0.6], 1]),
    ("append", [ROW, VECTOR]),
    ("tensordot", [X, Y, [[0, 2], [0, 2]]]),
]
DOMAINS = {POSITIVE: ("log log10 log2 log1p sqrt rsqrt reciprocal power mod floor_divide "
                      "true_divide divide"),
           PART: "arctanh arccos arcsin erfinv", ABOVE: "arccosh",
           WILD: "isfinite isinf isnan isneginf isposinf",
           FLAGS: "logical_and logical_or logical_xor logical_not"}
OTHER_NAMES = {"layer_norm": "layer_normalization", "rms_norm": "rms_normalization",
               "batch_norm": "batch_normalization", "c_dist": "cdist", "is_in": "isin",
               "search_sorted": "searchsorted", "all_close": "allclose"}


def snake_case(name):
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()


def functions():
    """The class, the function's name and the function of each row of operations.def."""
    for module, name in re.findall(r"^OPERATION(?:_MANY|_MOVES)?\((\w+), +(\w+),", DEFINITIONS.read_text(),
                                   re.MULTILINE):
        if module == "random":
            continue        # keras.random, which draws
        source = importlib.import_module("keras.src.ops." + module)
        if not hasattr(source, name):
            continue        # one that Keras has no class of
        own = OTHER_NAMES.get(snake_case(name), snake_case(name))
        places = (ops, getattr(ops, module, ops), source)
        yield module, getattr(source, name), own, next(getattr(p, own) for p in places
                                                       if hasattr(p, own))


def signature(cls, function):
    """The arguments as in signatures.def."""
    of_call = list(inspect.signature(cls.call).parameters)
    words = []
    for p in inspect.signature(function).parameters.values():
        if p.kind == p.VAR_KEYWORD:
            continue
        many = p.kind == p.VAR_POSITIONAL
        word = ("@" if p.name in of_call or many else "") + ("*" if many else "") + p.name
        if p.default is not p.empty:
            word += "=" + (p.default if isinstance(p.default, str)
                           else json.dumps(p.default, separators=(",", ":")))
        words.append(word)
    return " ".join(words)


def print_row(cls, text):
    row = 'SIGNATURE(%s, "%s")' % (cls.__name__, text)
    if len(row) > 100:
        lines = textwrap.wrap(text, 80)
        row = "SIGNATURE(%s,\n%s" % (cls.__name__, "\n".join(
            '          "%s%s' % (line, ' "' if line != lines[-1] else '")') for line in lines))
    print(row)


def case_of(name, function):
    """None for a function that has none with a batch."""
    if name in dict(WHOLE_CASES) and name not in CASES:
        return None
    if name in CASES:
        return CASES[name]
    x = next((x for x, names in DOMAINS.items() if name in names.split()), X)
    count = len(inspect.signature(function).parameters)
    return [x] if count == 1 else [x, POSITIVE if x is POSITIVE else Y]


def given_to_keras(value):
    """Tensors for inputs, arrays for lists of floats, which are operands."""
    if isinstance(value, Input):
        return ops.convert_to_tensor(INPUTS[value])
    if not isinstance(value, list):
        return value
    if any(isinstance(v, Input) for v in value):
        return [given_to_keras(v) for v in value]
    return np.array(value, np.float32) if np.array(value).dtype == float else tuple(value)


def form(value):
    if isinstance(value, Input):
        return {"input": str(value)}
    return [form(v) for v in value] if isinstance(value, list) else value


def listed(results):
    results = results if isinstance(results, (list, tuple)) else [results]
    return [np.asarray(r).astype(np.float32) for r in results]


def make_case(module, cls, name, function, args):
    given = [given_to_keras(v) for v in args]
    results = listed(function(*given))
    parameters = inspect.signature(function).parameters.values()
    names = [] if any(p.kind == p.VAR_POSITIONAL for p in parameters) else \
        [p.name for p in parameters][:len(args)]
    if names:
        for a, b in zip(results, listed(function(**dict(zip(names, given))))):
            np.testing.assert_array_equal(a, b)
    return {"function": name, "module": module, "class": cls.__name__, "names": names,
            "args": form(args), "signature": signature(cls, function),
            "results": [[str(v) if not np.isfinite(v) else float("%.7g" % v) for v in r.ravel()]
                        for r in results], "shapes": [list(r.shape) for r in results]}


def main():
    cases, whole = [], []
    for module, cls, name, function in functions():
        whole += [make_case(module, cls, name, function, args) for own, args in WHOLE_CASES
                  if own == name]
        if signature(cls, function) != "@x":
            print_row(cls, signature(cls, function))
        args = case_of(name, function) if name != "get_item" else None      # x[...]
        if args is not None:
            cases.append(make_case(module, cls, name, function, args))
    inputs = {name: [str(v) if not np.isfinite(v) else round(float(v), 6) for v in x.ravel()]
              for name, x in INPUTS.items()}
    made = {"keras": keras.__version__, "inputs": inputs,
            "shapes": {name: list(x.shape) for name, x in INPUTS.items()},
            "dtypes": {name: x.dtype.name for name, x in INPUTS.items()}, "cases": cases,
            "whole": whole}
    with open(common.folder("operations") / "operations.json", "w", encoding="utf-8") as file:
        json.dump(made, file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
