"""Writes the first test image of MNIST, a 7, as a PNG: digit.py FOLDER FILE."""
import gzip
import os
import struct
import sys
import zlib

folder, to = sys.argv[1:]
path = os.path.join(folder, "t10k-images-idx3-ubyte")
with open(path, "rb") if os.path.exists(path) else gzip.open(path + ".gz") as file:
    pixels = file.read(16 + 28 * 28)[16:]
rows = b"".join(b"\0" + pixels[28 * y:28 * y + 28] for y in range(28))


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


with open(to, "wb") as file:
    file.write(b"\x89PNG\r\n\x1a\n" +
               chunk(b"IHDR", struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0)) +
               chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
