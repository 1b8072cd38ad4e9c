#!/usr/bin/env python3
"""An epoch of MNIST from TFRecord files, shuffled, in batches of 128: cornu.data and tf.data, in
turns, each in a process of its own.

    PYTHONPATH=nn/python python3 tests/bench/peers/bench_tfrecord.py [--rounds 5] [--png] [--ordered]

Images are raw bytes, or PNG files with --png; with --ordered records come in the files' order. Both
read ten files in turn, with as many threads as there are processors, and give arrays of uint8 and
int64 to the program. tf.data has the settings of its guide "Better performance with the tf.data
API": files interleaved in parallel, whole batches of raw bytes parsed by one call, images decoded
in parallel, AUTOTUNE everywhere. The time is that of a second epoch, of which nothing is cached.
Without TensorFlow it says so and ends.
"""

import argparse
import importlib.util
import os
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib

FILES, BATCH, ROWS = 10, 128, 60000


def cornu_epoch(folder, png, ordered):
    import cornu
    image = cornu.data.ImageFeature((28, 28, 1)) if png else \
        cornu.data.RawFeature((28, 28, 1), "uint8")
    train = cornu.data.tfrecord(os.path.join(folder, "*.tfrecord"), {
        "image": image, "label": cornu.data.FixedLenFeature((), "int64")}, cycle_length=FILES)
    train = train if ordered else train.shuffle(seed=1)
    train = train.to_tuple("image", "label").batch(BATCH, num_parallel_calls=os.cpu_count())
    return train, lambda batch: int(batch[1].sum())


def tf_epoch(folder, png, ordered):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import tensorflow as tf
    auto = tf.data.AUTOTUNE

    features = {"image": tf.io.FixedLenFeature([], tf.string),
                "label": tf.io.FixedLenFeature([], tf.int64)}

    def parse_batch(records):
        parsed = tf.io.parse_example(records, features)
        images = tf.io.decode_raw(parsed["image"], tf.uint8, fixed_length=784)
        return tf.reshape(images, (-1, 28, 28, 1)), parsed["label"]

    def parse_image(record):
        parsed = tf.io.parse_single_example(record, features)
        return tf.io.decode_png(parsed["image"], 1), parsed["label"]
    options = tf.data.Options()
    options.deterministic = ordered
    files = sorted(tf.io.gfile.glob(os.path.join(folder, "*.tfrecord")))
    train = tf.data.Dataset.from_tensor_slices(files).interleave(
        tf.data.TFRecordDataset, cycle_length=FILES, num_parallel_calls=auto)
    train = train if ordered else train.shuffle(ROWS, seed=1)
    train = train.map(parse_image, num_parallel_calls=auto).batch(BATCH) if png else \
        train.batch(BATCH).map(parse_batch, num_parallel_calls=auto)
    train = train.prefetch(auto)
    return train.with_options(options), lambda batch: int(batch[1].numpy().sum())


def measure(which, folder, png, ordered):
    """Seconds, and seconds of processors, of the second epoch."""
    train, labels = {"cornu": cornu_epoch, "tf": tf_epoch}[which](folder, png, ordered)
    for _ in range(2):
        begun, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        total = sum(labels(batch) for batch in train)
        now = resource.getrusage(resource.RUSAGE_SELF)
        taken = time.perf_counter() - begun
    print("%.4f %.4f %d" % (taken, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime,
                            total))


def as_png(pixels):
    """A PNG file of a grey image."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + \
            struct.pack(">I", zlib.crc32(kind + content))
    height, width = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(
        ">IIBBBBB", width, height, 8, 0, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + \
        chunk(b"IEND", b"")


def write(folder, png):
    import cornu
    (images, labels), _ = cornu.datasets.mnist.load_data()
    for file in range(FILES):
        with cornu.data.TFRecordWriter(os.path.join(folder, "%02d.tfrecord" % file)) as writer:
            for i in range(file, ROWS, FILES):
                image = as_png(images[i]) if png else images[i].tobytes()
                writer.write_example({"image": image, "label": labels[i]})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--png", action="store_true")
    parser.add_argument("--ordered", action="store_true")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        return measure(*given.measure, given.png, given.ordered)
    if not importlib.util.find_spec("tensorflow"):
        print("skipped: TensorFlow is not installed")
        return
    flags = [f for f, on in (("--png", given.png), ("--ordered", given.ordered)) if on]
    times = {"cornu": [], "tf": []}
    with tempfile.TemporaryDirectory() as folder:
        write(folder, given.png)
        for _ in range(given.rounds):
            for which in times:
                out = subprocess.run([sys.executable, __file__, "--measure", which, folder] + flags,
                                     check=True, capture_output=True, text=True).stdout.split()
                times[which].append([float(word) for word in out[-3:]])
    totals = {row[2] for rows in times.values() for row in rows}
    if len(totals) != 1:
        sys.exit("the labels differ: their sums are %s" % totals)
    for which, rows in times.items():
        print("%-6s %.3f s, %.3f s of processors" % (
            which, *(statistics.median(row[k] for row in rows) for k in range(2))))
    for k, what in enumerate(("time", "time of processors")):
        print("tf / cornu, %s: %.2f" % (what, statistics.median(
            b[k] / a[k] for a, b in zip(times["cornu"], times["tf"]))))


if __name__ == "__main__":
    main()
