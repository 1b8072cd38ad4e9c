"""Pipelines by the names of tf.data, of its Dataset or of another class that has these."""

import numpy as np

LENGTHS = [2, 5, 1, 7, 3, 4, 9, 2, 6, 8, 1, 3, 5, 0, 4]


class Cases:
    """Of a class; length(x) is the number of entries of a vector in its functions."""

    def __init__(self, dataset, length, signature=None):
        self.of, self.length, self.signature = dataset, length, signature

    def unknown(self, start, stop):
        """A range whose count is not known."""
        return self.of.range(start, stop).filter(lambda i: i >= 0)

    def tens(self, i):
        """i elements: 10 i, 10 i + 1, ..."""
        return self.of.range(10 * i, 10 * i + i)

    def sequences(self, lengths):
        """Of each length l and number n: 100 n + 1, ..., 100 n + l, and n."""
        def elements():
            for n, length in enumerate(lengths):
                yield 100 * n + 1 + np.arange(length, dtype=np.int32), np.int32(n)
        return self.of.from_generator(elements, output_signature=self.signature)

    def bucketed(self, lengths=LENGTHS, **settings):
        return self.sequences(lengths).bucket_by_sequence_length(
            lambda x, y: self.length(x), [3, 6], [3, 2, 2], **settings)

    def sources(self):
        return [self.of.range(0, 5), self.unknown(10, 13), self.of.range(20, 29)]

    def __iter__(self):
        """Names and data sets."""
        yield from self.selected()
        yield from self.joined()
        yield from self.interleaved()
        yield from self.arranged()
        yield from self.padded()

    def selected(self):
        of = self.of
        yield "filter", of.range(20).filter(lambda i: i % 3 == 1)
        yield "filter_none", of.range(20).filter(lambda i: i > 30)
        yield "filter_batches", of.range(20).batch(3).filter(lambda b: b[0] % 2 == 0)
        yield "take_while", of.range(20).take_while(lambda i: i * i < 50)

    def joined(self):
        of, unknown = self.of, self.unknown
        yield "zip", of.zip((of.range(5), of.range(10, 18)))
        yield "zip_unknown", of.zip((unknown(0, 9), of.range(10, 14), of.range(3).repeat()))
        yield "zip_batches", of.zip((of.range(7).batch(3), of.range(10, 17).batch(3)))
        yield "concatenate", of.range(4).concatenate(of.range(10, 13))
        yield "concatenate_unknown", unknown(0, 4).concatenate(unknown(10, 13)).concatenate(
            self.tens(3))
        yield "repeat_unknown", unknown(0, 3).repeat(3)
        yield "repeat_endless", unknown(0, 3).repeat().take(8)
        choices = of.from_tensor_slices(
            np.array([0, 1, 2, 1, 1, 0, 1, 2, 2, 0, 0, 2, 0, 0], np.int64))
        yield "choose", of.choose_from_datasets(self.sources(), choices)
        yield "choose_all", of.choose_from_datasets(self.sources(), choices,
                                                    stop_on_empty_dataset=False)
        yield "sample_one", of.sample_from_datasets(self.sources(), [0.0, 1.0, 0.0])

    def interleaved(self):
        of = self.of
        for cycle in 1, 2, 3, 7:
            for block in 1, 2, 4:
                yield "interleave_%d_%d" % (cycle, block), of.range(6).interleave(
                    self.tens, cycle_length=cycle, block_length=block)
        yield "interleave_unknown", of.range(6).interleave(
            lambda i: self.tens(i).filter(lambda k: k % 3 < 2), cycle_length=3, block_length=2)
        yield "flat_map", of.range(5).flat_map(self.tens)

    def arranged(self):
        of = self.of
        yield "enumerate", of.range(30, 34).enumerate(5)
        for size, shift, stride in (3, None, 1), (3, 1, 1), (4, 2, 2), (2, 5, 3), (4, 3, 1):
            for whole in False, True:
                name = "window_%d_%s_%d_%d" % (size, shift or 0, stride, whole)
                yield name, of.range(10).window(size, shift, stride, whole).flat_map(
                    lambda w: w.batch(99))
        yield "unbatch", of.range(10).batch(4).unbatch()
        yield "unbatch_elements", of.from_tensor_slices(np.arange(12).reshape(4, 3)).unbatch()
        yield "scan", of.range(1, 8).scan(np.int64(100), lambda state, i: (state + i, state * i))

    def padded(self):
        yield "padded_batch", self.sequences(LENGTHS).padded_batch(4)
        yield "padded_batch_drop", self.sequences(LENGTHS).padded_batch(
            4, padding_values=(-1, None), drop_remainder=True)
        yield "bucket", self.bucketed()
        yield "bucket_rest", self.bucketed([7, 1, 4, 8, 8])
        yield "bucket_drop", self.bucketed(drop_remainder=True)
        yield "bucket_boundary", self.bucketed(
            [2, 5, 1, 4, 3, 4, 0, 2, 5], pad_to_bucket_boundary=True, padding_values=(-1, 0))


def listed(element):
    """An element as JSON has it: a list of components."""
    parts = element if isinstance(element, tuple) else (element,)
    return [np.asarray(part).tolist() for part in parts]
