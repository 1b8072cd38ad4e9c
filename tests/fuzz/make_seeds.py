"""What the targets of tests/fuzz begin with, as others write it: NumPy, Pillow, h5py, Keras.

    KERAS_BACKEND=jax python tests/fuzz/make_seeds.py

writes to seeds/TARGET/. There seeds/*/ours* are what Cornu writes, and the others, which are not
written here, each a bug that there was: found by libFuzzer, or one of the files above with a number
in it changed.
Made with Python 3.11, NumPy 2.4, Pillow 13, h5py 3.16, Keras 3.15.
"""

import glob
import gzip
import io
import json
import os
import struct
import zipfile

import h5py
import keras
import numpy as np
from PIL import Image

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "seeds")
L = keras.layers


def seed(target, name, content):
    os.makedirs(os.path.join(HERE, target), exist_ok=True)
    with open(os.path.join(HERE, target, name), "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


def compact(value):
    return json.dumps(value, separators=(",", ":"))


# ---- ONNX: exported models ----

for name in ("torch_cnn_13", "torch_recurrent_14", "torch_pieces_11", "keras_cnn"):
    with open(os.path.join(HERE, "../../golden/onnx_read", name + ".onnx"), "rb") as file:
        seed("onnx", name, file.read())

# ---- .tflite: converted models ----

for name in ("images", "halves", "bytes"):
    with open(os.path.join(HERE, "../../golden/lite", name + ".tflite"), "rb") as file:
        seed("tflite", name, file.read())

# ---- Records of data ----

for name in ("features", "sequences"):
    with open(os.path.join(HERE, "../../golden/tfrecords", name + ".tfrecord"), "rb") as file:
        seed("tfrecord", name, b"\1" + file.read())
with open(os.path.join(HERE, "../../golden/tfrecords/features.tfrecord.gz"), "rb") as file:
    seed("tfrecord", "compressed", b"\2" + file.read())
for name in ("ustar", "gnu", "pax"):
    with open(os.path.join(HERE, "../../golden/tars", name + ".tar"), "rb") as file:
        seed("tar", name, file.read()[:9216])

# ---- Both, which are run ----

GOLDEN = os.path.join(HERE, "../../golden")
for kind, folder, names in [
        (b"\x05", "onnx_foreign", ("functions.onnx", "if_of_data.onnx", "quantize_dynamic.onnx")),
        (b"\x03", "onnx_rows", ("function_scalar.onnx", "function_state.onnx", "apart_loop.onnx")),
        (b"t", "lite_read", ("branch.tflite", "int8.tflite", "sparse_cube.tflite", "spectrum.tflite",
                             "splits.tflite", "variables.tflite"))]:
    for name in names:
        with open(os.path.join(GOLDEN, folder, name), "rb") as file:
            seed("foreign", name, kind + file.read())

# ---- Models of Keras 2 ----

for name in ("cudnn", "nested", "outputs", "policy", "prepared", "states"):
    with h5py.File(os.path.join(GOLDEN, "keras2", name + ".h5")) as file:
        config = file.attrs["model_config"]
        seed("keras2", name, config if isinstance(config, str) else bytes(config))

# ---- idx ----

def idx(kind, *extents, data):
    head = bytes([0, 0, kind, len(extents)])
    return head + b"".join(struct.pack(">I", extent) for extent in extents) + data


files = {
    "u8": idx(8, 3, 2, 2, data=bytes(range(12))),
    "i32": idx(12, 3, data=struct.pack(">3i", -1, 0, 7)),
    "f32": idx(13, 2, 1, data=struct.pack(">2f", 0.5, -2)),
    "f64": idx(14, 1, data=struct.pack(">d", 1e300)),
    "empty": idx(8, 0, data=b""),
    "promise": idx(8, 0xFFFFFFFF, 0xFFFFFFFF, data=b"few"),
}
for name, content in files.items():
    seed("idx", name, content)
    seed("gz", name, bytes([5, 0]) + content)
seed("gz", "cut", bytes([9, 3]) + files["u8"])
seed("gz", "more", bytes([255, 254]) + files["u8"])
seed("idx", "u8.gz", gzip.compress(files["u8"], mtime=0))
seed("idx", "bomb.gz", gzip.compress(idx(8, 1 << 16, data=bytes(1 << 16)), mtime=0))

# ---- texts, labels, tables ----

seed("text", "code_points", b"\0First Citizen:\nSpeak, speak.\n")
seed("text", "alphabet", b"\x01" + "\ufeffnaïve “Æon” 𝄞\n".encode())
seed("text", "bytes", b"\x0eany\0bytes\xff")
seed("text", "long", b"\x08" + b"to be or not to be, " * 8)
seed("labels", "three", b"\x03cat\ndog\r\n bird \n")
seed("labels", "list", b"\x02cat,dog")
iris = "sepal,species\n5.1,setosa\n6e0,virginica\n,setosa\n"
seed("table", "refused", b"\0" + iris.encode())
seed("table", "dropped", b"\x31" + iris.encode())
seed("table", "quoted", b"\x20" + '\ufeff"a","b ""c"""\r\n"1,5",-2\r\n\r\n"x\ny",3\r\n'.encode())
seed("table", "category", b"\x0aa; b\n1;2.5\n2;NA\n")
seed("table", "on_disk", b"\xf0" + iris.encode())
seed("table", "blanks", b"\x05a b\n1 2\n NaN 3\n7 1e99\n")

# ---- images ----

pixels = (np.arange(9 * 7 * 4) * 37 % 256).astype(np.uint8).reshape(9, 7, 4)
for name, mode, options in [("grey.png", "L", {}), ("rgb.png", "RGB", {}), ("rgba.png", "RGBA", {}),
                            ("palette.png", "P", {}), ("bits.png", "1", {}),
                            ("grey.jpg", "L", {}), ("rgb.jpg", "RGB", {"subsampling": 2}),
                            ("progressive.jpg", "RGB", {"progressive": True}),
                            ("cmyk.jpg", "CMYK", {})]:
    to = io.BytesIO()
    image = Image.fromarray(pixels).convert("RGB" if mode in ("P", "CMYK") else mode).convert(mode)
    image.save(to, "JPEG" if name.endswith("jpg") else "PNG", quality=30, **options)
    seed("image", name, to.getvalue())
to = io.BytesIO()
Image.fromarray(np.arange(12, dtype=np.uint16).reshape(3, 4) * 5000).save(to, "PNG")
seed("image", "deep.png", to.getvalue())
for path in glob.glob(os.path.join(HERE, "../../golden/image_files/*")):
    if path.endswith((".bmp", ".gif", ".dcm", ".pgm", ".ppm", ".pbm")) and "long" not in path:
        seed("image", os.path.basename(path), open(path, "rb").read())
seed("image", "wide.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 16384, 16384) +
     bytes([8, 6, 0, 0, 0]) + b"\0\0\0\0")
to = io.BytesIO()
Image.fromarray(pixels[:2, :2, 0]).save(to, "PNG")
seed("image_folder", "classes", b"cat/a.png\ncat/b.PNG\ndog/c.jpeg\n\0" + to.getvalue())
seed("image_folder", "deep", b"a/b/c/d.png\n.git/x.png\na/e.txt\nb/f.jpg\nreadme\n\0" + to.getvalue())
seed("image_folder", "bmp", b"a/b.bmp\na/c.png\n\0" + to.getvalue())

# ---- sounds ----

for path in glob.glob(os.path.join(HERE, "../../golden/sounds/*.wav")):
    seed("sound", os.path.basename(path), open(path, "rb").read())

# ---- arrays ----

kernel, bias = np.arange(6, dtype=np.float32).reshape(3, 2), np.zeros(2, np.float32)


def npy(array):
    to = io.BytesIO()
    np.save(to, array)
    return to.getvalue()


seed("npz", "two", bytes([len(npy(kernel))]) + npy(kernel) + npy(bias))
for name, array in {"f8": np.float64(3), "u1": np.arange(5, dtype=np.uint8),
                    "b1": np.array([[True, False]]), "i8": np.zeros((0, 4), np.int64),
                    "fortran": np.asfortranarray(kernel)}.items():
    seed("npz", name, bytes([255]) + npy(array))
seed("npz", "version2", bytes([255]) + npy(kernel).replace(b"NUMPY\1\0v\0", b"NUMPY\2\0v\0\0\0"))
for name, save in {"stored": np.savez, "deflated": np.savez_compressed}.items():
    to = io.BytesIO()
    save(to, kernel=kernel[:1, :1])
    seed("zip", name, to.getvalue())
to = io.BytesIO()
with zipfile.ZipFile(to, "w") as file:
    file.writestr(zipfile.ZipInfo("a"), "text")
    file.writestr(zipfile.ZipInfo("b"), "")
    file.comment = b"a comment"
seed("zip", "comment", to.getvalue())
# ZIP64: sizes, place and directory in 8 bytes.
wide = struct.pack("<I", 0xFFFFFFFF)
entry = struct.pack("<IHHHHHHI8sHHHHHI4s", 0x02014B50, 45, 45, 0, 0, 0, 33, 0xE8B7BE43, 2 * wide, 1,
                    28, 0, 0, 0, 0, wide) + b"a" + struct.pack("<HHQQQ", 1, 24, 1, 1, 0)
local = struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, 0, 0, 0, 33, 0xE8B7BE43, 1, 1, 1, 0) + b"aa"
seed("zip", "zip64", local + entry +
     struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, 1, 1, len(entry), len(local)) +
     struct.pack("<IIQI", 0x07064B50, 0, len(local) + len(entry), 1) +
     struct.pack("<IHH", 0x06054B50, 0, 0) + 3 * wide + struct.pack("<H", 0))
# Two members in one place.
local = struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, 0, 0, 0, 33, 0xE8B7BE43, 1, 1, 1, 0) + b"aa"
entry = struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 20, 0, 0, 0, 33, 0xE8B7BE43, 1, 1, 1, 0, 0,
                    0, 0, 0, 0)
entries = entry + b"a" + entry + b"b"
seed("zip", "overlap", local + entries + struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 2, 2,
                                                     len(entries), len(local), 0))


def safetensors(metadata, **arrays):
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, array in arrays.items():
        header[name] = {"dtype": {"float32": "F32", "int64": "I64", "float64": "F64"}[str(array.dtype)],
                        "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    return compact(header).encode(), data


model = {"dense/kernel": kernel, "dense/bias": bias}
header, data = safetensors({"format": "pt"}, **model)
seed("safetensors", "two", struct.pack("<Q", len(header)) + header + data)
header, data = safetensors(None, x=np.zeros((0, 2), np.int64), y=np.array(1.5))
seed("safetensors", "empty", struct.pack("<Q", len(header)) + header + data)
header, data = safetensors({"weights": compact(list(model)), "optimizer": "[]"}, **model)
seed("checkpoint", "weights", header + b"\0" + data)

# ---- HDF5: an object's header, of which the first two bytes say where it is ----

to = io.BytesIO()
with h5py.File(to, "w") as file:
    file.attrs["name"] = np.array(["dense", "dense_1"], dtype=h5py.string_dtype())
    at = h5py.h5o.get_info(file.id).addr
content = to.getvalue()
seed("hdf5_texts", "two", struct.pack("<H", at) + content)
to = io.BytesIO()
with h5py.File(to, "w") as file:
    group = file.create_group("layers/dense/vars")
    group.attrs["name"] = "dense"
    group["0"], group["1"] = kernel, bias
seed("hdf5", "dense.weights.h5", to.getvalue())

# ---- Architectures: a model for each layer ----

image, steps, row = (6, 6, 2), (4, 3), (5,)
layers = [
    (row, L.Dense(2, "relu", kernel_regularizer="l2")), (row, L.Activation("tanh")),
    (row, L.Dropout(0.5, seed=1)), (row, L.GaussianNoise(0.1)), (row, L.GaussianDropout(0.1)),
    (row, L.AlphaDropout(0.1)), (row, L.Softmax()), (row, L.ReLU(6.0)), (row, L.LeakyReLU()),
    (row, L.PReLU()), (row, L.ELU()), (row, L.Reshape((1, 5))), (row, L.RepeatVector(2)),
    (row, L.Rescaling(0.1)), (row, L.BatchNormalization()), (row, L.LayerNormalization()),
    (row, L.RMSNormalization()), (row, L.UnitNormalization()), (row, L.Embedding(9, 2)),
    (row, L.Normalization(mean=0.0, variance=1.0)),
    (image, L.Conv2D(2, 3, strides=2, padding="same", kernel_constraint="max_norm")),
    (image, L.Conv2DTranspose(2, 3)), (image, L.DepthwiseConv2D(2)), (image, L.SeparableConv2D(2, 2)),
    (image, L.MaxPooling2D(2)), (image, L.AveragePooling2D((2, 3))), (image, L.Flatten()),
    (image, L.GlobalAveragePooling2D()), (image, L.GlobalMaxPooling2D()),
    (image, L.ZeroPadding2D(((1, 0), (2, 1)))), (image, L.Cropping2D(1)), (image, L.UpSampling2D(2)),
    (image, L.Resizing(3, 3)), (image, L.RandomFlip("horizontal", seed=1)),
    (image, L.RandomRotation(0.1, seed=1)), (image, L.RandomTranslation(0.1, 0.1, seed=1)),
    (image, L.SpatialDropout2D(0.1)), (image, L.GroupNormalization(2)), (image, L.Permute((2, 1, 3))),
    (steps, L.Conv1D(2, 3, padding="causal")), (steps, L.MaxPooling1D(2)),
    (steps, L.AveragePooling1D(2)), (steps, L.GlobalAveragePooling1D()),
    (steps, L.GlobalMaxPooling1D()), (steps, L.SpatialDropout1D(0.1)), (steps, L.Masking()),
    (steps, L.LSTM(2, return_sequences=True)), (steps, L.GRU(2)), (steps, L.SimpleRNN(2)),
    (steps, L.Bidirectional(L.LSTM(2))), (steps, L.TimeDistributed(L.Dense(2))),
]
for shape, layer in layers:
    keras.utils.clear_session()
    text = compact(json.loads(keras.Sequential([keras.Input(shape), layer]).to_json()))
    seed("architecture", type(layer).__name__, text)

keras.utils.clear_session()
a, b = keras.Input((3,), name="a"), keras.Input((3,), name="b")
shared = L.Dense(3)
both = [L.Add()([shared(a), b]), L.Concatenate()([a, shared(b)]), L.Dot(1)([a, b])]
seed("architecture", "functional", compact(json.loads(keras.Model([a, b], both).to_json())))
x = keras.Input((4, 6), name="x")
y = L.MultiHeadAttention(2, 3)(x, x, use_causal_mask=True)
seed("architecture", "attention", compact(json.loads(keras.Model(x, y).to_json())))
inner = keras.Sequential([keras.Input((3,)), L.Dense(3)])
seed("architecture", "nested",
     compact(json.loads(keras.Model(a, L.Average()([inner(a), a])).to_json())))

# ---- What models are compiled with ----

optimizers = {
    "sgd": keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "adam": keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9),
                                  clipnorm=1.0, use_ema=True),
    "scaled": keras.optimizers.LossScaleOptimizer(keras.optimizers.RMSprop(0.1, centered=True)),
    "named": "adamw",
}
for name, optimizer in optimizers.items():
    keras.utils.clear_session()
    model = keras.Sequential([keras.Input((3,)), L.Dense(2)])
    model.compile(optimizer, keras.losses.Huber(0.5), metrics=["mae", keras.metrics.AUC()],
                  weighted_metrics=[])
    to = os.path.join(HERE, "a.keras")
    model.save(to)
    with zipfile.ZipFile(to) as file:
        seed("keras", name, compact(json.loads(file.read("config.json"))))
    os.remove(to)

# ---- Command lines ----

seed("options", "train", b"\0--epochs\n3\n--batch-size=64\n--device\ntpu\n--learning-rate\n1e-3\n--model\nmnist_mlp")
seed("options", "flags", b"\0--limit=1000\n--verbose=2\n--debug-nans\n--save\nm.keras\n--zoom=0.5\n--flip")
seed("options", "help", b"\0--help")
seed("options", "unknown", b"\0--epoch\n3")
seed("options", "predict", b"\1m.keras\na.png\n--\n--b.png\n-")
seed("options", "demo", b"\2--threads\n4\ndata\n--version")

# ---- Models as a whole: those of other targets behind a letter that says what they are ----

WHOLE = {
    "a": ["architecture/" + name for name in (
        "Dense Conv2D Conv2DTranspose SeparableConv2D BatchNormalization Embedding LSTM GRU Masking "
        "Bidirectional TimeDistributed MaxPooling2D UpSampling2D ZeroPadding2D RepeatVector Resizing "
        "RandomRotation GroupNormalization attention functional nested ours_functional").split()],
    "k": ["architecture/Dense", "architecture/functional"],
    "s": ["checkpoint/ours", "checkpoint/ours_functional"],
    "h": ["hdf5/dense.weights.h5"],
    "z": ["zip/stored"],
}
for letter, names in WHOLE.items():
    for name in names:
        with open(os.path.join(HERE, name), "rb") as file:
            seed("model", letter + "_" + os.path.basename(name), letter.encode() + file.read())
