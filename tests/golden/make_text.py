"""Layers of strings and hashes, which Keras computes with TensorFlow on every backend.
Writes text/layers.json: each case has the layer as Keras writes it, what it was adapted to, its
inputs and its output."""

import json

import common
import keras
import numpy as np
import tensorflow as tf

L = keras.layers
WORDS = ["red", "green", "blue", "dark blue", "", "ünïcode", "a" * 70]
SENTENCES = ["The cat sat.", "the DOG sat on the cat!", "  a cat\tand a dog\n", "", "Ünï-code, o'clock",
             "one two three four five six"]
BYTES = ["x" * n for n in (0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129,
                           200)]
NUMBERS = [0, 1, -1, 7, 42, 1234567890123, -(2**53)]


def listed(value):
    value = np.asarray(value)
    if value.dtype.kind in "OSU":
        return np.vectorize(lambda s: s.decode() if isinstance(s, bytes) else s,
                            otypes=[object])(value).tolist()
    return value.tolist()


def case(name, layer, *inputs, adapt=None):
    if adapt is not None:
        layer.adapt(np.array(adapt))
    given = [tf.constant(x) for x in inputs]
    y = layer(given if len(given) > 1 else given[0])
    y = y.numpy() if hasattr(y, "numpy") else np.asarray(y)
    one = {"name": name, "layer": keras.saving.serialize_keras_object(layer),
           "inputs": [listed(x) for x in inputs], "shape": list(y.shape), "output": listed(y)}
    if adapt is not None:
        one["adapt"] = listed(adapt)
    if hasattr(layer, "get_vocabulary"):
        one["vocabulary"] = layer.get_vocabulary()
    return one


def lookups():
    V = ["blue", "green", "red"]
    column = [[w] for w in WORDS]
    rows = [["red", "sky", "blue"], ["", "red", "red"]]
    yield case("lookup", L.StringLookup(vocabulary=V), WORDS)
    yield case("lookup_special", L.StringLookup(vocabulary=["", "[UNK]"] + V, mask_token=""), rows)
    yield case("lookup_mask", L.StringLookup(vocabulary=V, mask_token="sky"), rows)
    yield case("lookup_oov", L.StringLookup(vocabulary=V, num_oov_indices=5), column)
    yield case("lookup_salt", L.StringLookup(vocabulary=V, num_oov_indices=7, salt=[133, 137]), WORDS)
    yield case("lookup_no_oov", L.StringLookup(vocabulary=V, num_oov_indices=0), ["red", "blue"])
    yield case("invert", L.StringLookup(vocabulary=V, invert=True, oov_token="?"), [0, 1, 2, 3, 9])
    yield case("invert_mask", L.StringLookup(vocabulary=V, invert=True, mask_token=""), [[0, 1], [2, 4]])
    for mode in ("one_hot", "multi_hot", "count"):
        yield case(mode, L.StringLookup(vocabulary=V, output_mode=mode, mask_token=""),
                   column if mode == "one_hot" else rows)
    yield case("padded", L.StringLookup(vocabulary=V, output_mode="count", max_tokens=6,
                                        pad_to_max_tokens=True), rows)
    yield case("tf_idf", L.StringLookup(vocabulary=V, output_mode="tf_idf",
                                        idf_weights=[0.5, 0.25, 0.125]), rows)
    data = [["b", "a"], ["b", "c"], ["[UNK]", "c"], ["d", "b"]]
    test = [["a", "b"], ["c", "z"]]
    yield case("adapted", L.StringLookup(), test, adapt=data)
    yield case("adapted_most", L.StringLookup(max_tokens=3), test, adapt=data)
    yield case("adapted_tf_idf", L.StringLookup(output_mode="tf_idf"), test, adapt=data)
    yield case("adapted_words", L.StringLookup(mask_token="b"), test, adapt=["b", "a", "b", "ü"])


def vectorizations():
    V = L.TextVectorization
    yield case("vectorized", V(vocabulary=["cat", "the", "dog"]), SENTENCES)
    yield case("of_length", V(vocabulary=["cat", "the", "dog"], output_sequence_length=3), SENTENCES)
    yield case("padded_length", V(vocabulary=["cat"], output_sequence_length=9), [[s] for s in SENTENCES])
    for standardize in (None, "lower", "strip_punctuation"):
        yield case(f"standardize_{standardize}", V(standardize=standardize), SENTENCES, adapt=SENTENCES)
    yield case("characters", V(split="character"), SENTENCES, adapt=SENTENCES)
    yield case("no_split", V(split=None, standardize="lower"), [["A", "b"], ["c", "a"]],
               adapt=[["a", "B"], ["b", "x"]])
    yield case("ngrams", V(ngrams=2), SENTENCES, adapt=SENTENCES)
    yield case("ngrams_listed", V(ngrams=(1, 3), output_sequence_length=6), SENTENCES, adapt=SENTENCES)
    for mode in ("multi_hot", "count", "tf_idf"):
        yield case(f"text_{mode}", V(output_mode=mode), SENTENCES, adapt=SENTENCES)
    yield case("text_padded", V(output_mode="multi_hot", max_tokens=20, pad_to_max_tokens=True),
               SENTENCES, adapt=SENTENCES)
    yield case("text_most", V(max_tokens=5), SENTENCES, adapt=SENTENCES)


def hashes():
    yield case("hashed_bytes", L.Hashing(1000003), BYTES)
    yield case("hashed_bytes_salt", L.Hashing(1000003, salt=[133, 137]), BYTES)
    yield case("hashed_salt_one", L.Hashing(97, salt=5), WORDS)
    yield case("hashed_numbers", L.Hashing(1009), NUMBERS)
    yield case("hashed_mask", L.Hashing(11, mask_value=7), [[0, 7], [1, 2]])
    yield case("hashed_mask_string", L.Hashing(11, mask_value="red"), WORDS)
    yield case("hashed_one_bin", L.Hashing(1, mask_value=7), [7, 1])
    for mode in ("one_hot", "multi_hot", "count"):
        data = [[1], [2], [3]] if mode == "one_hot" else [[1, 2, 3], [4, 4, 6]]
        yield case(f"hashed_{mode}", L.Hashing(4, output_mode=mode), data)
    strings, numbers = ["A", "B", "A", "B", "A"], [101, 101, 101, 102, 102]
    yield case("crossed", L.HashedCrossing(1000), strings, numbers)
    yield case("crossed_columns", L.HashedCrossing(1000), [[s] for s in strings],
               [[n] for n in numbers], [[s * 9] for s in strings])
    yield case("crossed_one_hot", L.HashedCrossing(5, output_mode="one_hot"), strings, numbers)


if __name__ == "__main__":
    to = common.folder("text")
    with open(to / "VERSIONS", "a") as versions:
        versions.write(f"tensorflow {tf.__version__}\n")
    cases = [*lookups(), *vectorizations(), *hashes()]
    (to / "layers.json").write_text(json.dumps(cases, separators=(",", ":"), ensure_ascii=False) + "\n")
