"""TFRecord files as TensorFlow writes them, and what it reads from them: tests/golden/tfrecords/.

    python make_tfrecords.py        # needs TensorFlow and NumPy

order_C_B.txt: the "id" of each record of part-*.tfrecord, as tf.data interleaves them with
cycle_length C and block_length B. features.npz: what tf.io.parse_example makes of features.tfrecord,
sequences.npz what tf.io.parse_sequence_example makes of sequences.tfrecord.
"""
import pathlib
import platform

import numpy as np
import tensorflow as tf

LENGTHS = [3, 0, 7, 1, 5, 2, 9]


def int64s(*values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def floats(*values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def strings(*values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def example(**features):
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def write(path, records, compression=None):
    with tf.io.TFRecordWriter(str(path), options=compression) as writer:
        for record in records:
            writer.write(record)


def parts(folder):
    first = 0
    for i, length in enumerate(LENGTHS):
        write(folder / ("part-%d.tfrecord" % i), [example(id=int64s(first + k))
                                                  for k in range(length)])
        first += length
    files = sorted(str(f) for f in folder.glob("part-*.tfrecord"))
    for cycle, block in (1, 1), (3, 1), (3, 2), (4, 3), (7, 1), (20, 2):
        dataset = tf.data.Dataset.from_tensor_slices(files).interleave(
            tf.data.TFRecordDataset, cycle_length=cycle, block_length=block,
            num_parallel_calls=None)
        ids = [int(tf.io.parse_single_example(r, {"id": tf.io.FixedLenFeature([], tf.int64)})["id"])
               for r in dataset]
        (folder / ("order_%d_%d.txt" % (cycle, block))).write_text(" ".join(map(str, ids)) + "\n")


def features(folder):
    rng = np.random.default_rng(7)
    records = []
    for i in range(12):
        image = rng.integers(0, 256, (6, 5, 3), dtype="uint8")
        given = dict(
            label=int64s(i - 3), pair=floats(i + 0.5, -2 * i), big=int64s(2 ** 40 + i),
            words=int64s(*range(i % 5)), points=floats(*np.arange(2 * (i % 4)) * 0.5),
            raw=strings(rng.standard_normal((2, 3)).astype("<f4").tobytes()),
            raw_i2=strings(np.arange(i, i + 4).astype("<i4").tobytes()),
            text=strings(("é" * (i % 3) + "x" * (i % 4)).encode()),
            image=strings(tf.io.encode_png(image).numpy()), other=strings(b"a", b"b"))
        if i % 3 == 0:
            given["sometimes"] = int64s(i)
        if i == 5:
            given["sometimes"] = tf.train.Feature()
            del given["words"]
        records.append(example(**given))
    write(folder / "features.tfrecord", records)
    write(folder / "features.tfrecord.gz", records, "GZIP")
    write(folder / "features.tfrecord.zz", records, "ZLIB")
    read = tf.io.parse_example(records, {
        "label": tf.io.FixedLenFeature([], tf.int64),
        "pair": tf.io.FixedLenFeature([2], tf.float32),
        "big": tf.io.FixedLenFeature([], tf.int64),
        "words": tf.io.VarLenFeature(tf.int64),
        "points": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True),
        "raw": tf.io.FixedLenFeature([], tf.string),
        "raw_i2": tf.io.FixedLenFeature([], tf.string),
        "text": tf.io.FixedLenFeature([], tf.string),
        "image": tf.io.FixedLenFeature([], tf.string),
        "sometimes": tf.io.FixedLenFeature([], tf.int64, default_value=-1),
    })
    text = [np.frombuffer(t, "uint8") for t in read["text"].numpy()]
    padded = np.zeros((12, 8), "uint8")
    for row, t in zip(padded, text):
        row[:len(t)] = t
    words = tf.sparse.to_dense(read["words"], default_value=-7).numpy()
    np.savez(folder / "features.npz",
             label=read["label"].numpy(), pair=read["pair"].numpy(), big=read["big"].numpy(),
             words=np.pad(words, ((0, 0), (0, 6 - words.shape[1])), constant_values=-7),
             words_count=np.array([0 if i == 5 else i % 5 for i in range(12)], "int32"),
             points=np.pad(read["points"].numpy(), ((0, 0), (0, 1), (0, 0))),
             raw=tf.reshape(tf.io.decode_raw(read["raw"], tf.float32), (12, 2, 3)).numpy(),
             raw_i2=tf.io.decode_raw(read["raw_i2"], tf.int32).numpy(),
             text=padded, text_count=np.array([len(t) for t in text], "int32"),
             image=np.stack([tf.io.decode_png(i).numpy() for i in read["image"]]),
             sometimes=read["sometimes"].numpy())


def sequences(folder):
    records = []
    for i in range(6):
        steps = [floats(k, k * i) for k in range(i)]
        record = tf.train.SequenceExample(
            context=tf.train.Features(feature={"label": int64s(i)}),
            feature_lists=tf.train.FeatureLists(feature_list={
                "steps": tf.train.FeatureList(feature=steps)} if i != 1 else {}))
        records.append(record.SerializeToString())
    write(folder / "sequences.tfrecord", records)
    context, lists, lengths = tf.io.parse_sequence_example(
        records, {"label": tf.io.FixedLenFeature([], tf.int64)},
        {"steps": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True)})
    steps = lists["steps"].numpy()
    np.savez(folder / "sequences.npz", label=context["label"].numpy(),
             steps=np.pad(steps, ((0, 0), (0, 6 - steps.shape[1]), (0, 0))),
             lengths=lengths["steps"].numpy().astype("int32"))


def main():
    folder = pathlib.Path(__file__).parent / "tfrecords"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    parts(folder)
    features(folder)
    sequences(folder)
    (folder / "VERSIONS").write_text("Python %s\ntensorflow %s\nnumpy %s\n" % (
        platform.python_version(), tf.__version__, np.__version__))


if __name__ == "__main__":
    main()
