"""Operations of cornu.utils.Dataset beside those of tf.data (tests/golden/pipelines)."""

import json
import pathlib
import sys
import unittest

import numpy as np

from cornu.utils import Dataset

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))
from pipeline_cases import Cases, listed      # noqa: E402


class Pipelines(unittest.TestCase):
    def test_elements_are_those_of_tensorflow(self):
        wanted = json.loads((GOLDEN / "pipelines" / "elements.json").read_text())
        names = set()
        for name, dataset in Cases(Dataset, len):
            with self.subTest(name):
                names.add(name)
                for _ in range(2):      # each pass
                    self.assertEqual([listed(e) for e in dataset], wanted[name])
                if dataset.cardinality() >= 0:
                    self.assertEqual(len(dataset), len(wanted[name]))
        self.assertEqual(names, set(wanted))

    def test_draws_have_the_distribution_of_tensorflow(self):
        wanted = json.loads((GOLDEN / "pipelines" / "shares.json").read_text())
        of, initial, target = 20000, [0.6, 0.3, 0.1], [0.2, 0.3, 0.5]
        sources = [Dataset.from_tensors(i).repeat() for i in range(3)]
        numbers = Dataset.from_tensor_slices(np.random.default_rng(1).choice(3, 200000, p=initial))
        cases = {"sample": Dataset.sample_from_datasets(sources, [0.5, 0.2, 0.3], seed=4)}
        for name, known in ("resample", initial), ("resample_estimated", None):
            cases[name] = numbers.rejection_resample(lambda i: i, target, known, seed=4).map(
                lambda number, i: number)
        self.assertEqual(set(cases), set(wanted))
        for name, dataset in cases.items():
            got = np.bincount([int(i) for i in dataset.take(of)], minlength=3)
            want = np.array(wanted[name])
            self.assertTrue((abs(got - want) < 5 * np.sqrt(2 * want * (1 - want / of))).all(),
                            "%s: %s, expected about %s" % (name, got, want))

    def test_a_seed_repeats_draws(self):
        sources = [Dataset.range(0, 20), Dataset.range(100, 120)]
        def drawn(**settings):
            made = Dataset.sample_from_datasets(sources, seed=3, **settings)
            return [[int(i) for i in made] for _ in range(2)]
        same, other = drawn(), drawn(rerandomize_each_iteration=True)
        self.assertEqual(same[0], same[1])
        self.assertNotEqual(other[0], other[1])
        self.assertEqual(sorted(other[1]), sorted(same[0]))
        stopped = Dataset.sample_from_datasets(sources, seed=3, stop_on_empty_dataset=True)
        self.assertLess(len(list(stopped)), 40)
        self.assertEqual(stopped.cardinality(), -2)

    def test_windows_of_tuples_are_tuples_of_datasets(self):
        data = Dataset.from_tensor_slices((np.arange(5), 10 * np.arange(5)))
        windows = data.window(2, 1, drop_remainder=True).flat_map(
            lambda x, y: Dataset.zip((x, y)).batch(2))
        self.assertEqual([y.tolist() for _, y in windows], [[0, 10], [10, 20], [20, 30], [30, 40]])

    def test_padding_of_dictionaries(self):
        rows = [{"a": np.array([1, 2]), "b": np.array([[1.0]])},
                {"a": np.array([3]), "b": np.array([[2.0, 3.0], [4.0, 5.0]])}]
        batch, = Dataset.from_generator(lambda: rows).padded_batch(
            2, {"a": [3], "b": [None, 2]}, {"a": -1, "b": 0.5})
        self.assertEqual(batch["a"].tolist(), [[1, 2, -1], [3, -1, -1]])
        self.assertEqual(batch["b"].tolist(),
                         [[[1.0, 0.5], [0.5, 0.5]], [[2.0, 3.0], [4.0, 5.0]]])

    def test_what_is_refused(self):
        three = Dataset.from_generator(lambda: iter([np.arange(3)]))
        with self.assertRaisesRegex(ValueError, r"\(3,\), expected at most \(2,\)"):
            list(three.padded_batch(1, [2]))
        with self.assertRaisesRegex(ValueError, "2 boundaries and 2 batch sizes"):
            three.bucket_by_sequence_length(len, [1, 2], [1, 1])
        with self.assertRaisesRegex(ValueError, "not shorter than the last boundary, 2"):
            list(three.bucket_by_sequence_length(len, [2], [1, 1], pad_to_bucket_boundary=True))
        with self.assertRaisesRegex(ValueError, "choice 1 of 1 data sets"):
            list(Dataset.choose_from_datasets([Dataset.range(2)], Dataset.range(2)))
        with self.assertRaisesRegex(ValueError, "expected as many"):
            Dataset.sample_from_datasets([Dataset.range(2)], [0.0])
        with self.assertRaisesRegex(ValueError, "cycle_length is 0"):
            Dataset.range(2).interleave(Dataset.range, 0)


if __name__ == "__main__":
    unittest.main()
