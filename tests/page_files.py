"""The files that commands of pages name: page_files.py FOLDER.

x.npy (120, 2), y.npy (120, 3); IMAGE.png, a bar, and DIR with it as two classes; FILE.csv, NEW.csv;
ml-latest-small/ratings.csv; program.py.
"""

import os
import random
import struct
import sys
import zlib

random.seed(3)
os.chdir(sys.argv[1])


def npy(path, rows, columns):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (rows, columns)
    header += " " * (117 - len(header)) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                   b"".join(struct.pack("<f", random.random()) for _ in range(rows * columns)))


npy("x.npy", 120, 2)
npy("y.npy", 120, 3)


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


rows = b"".join(b"\x00" + bytes(0 if 12 <= x < 16 and 4 <= y < 24 else 255 for x in range(28))
                for y in range(28))
image = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", 28, 28, 8, 0, 0, 0, 0)) +
         chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
os.makedirs("DIR/dark")
os.makedirs("DIR/light")
for path in ["IMAGE.png"] + ["DIR/%s/%d.png" % (c, i) for c in ("dark", "light") for i in range(5)]:
    with open(path, "wb") as file:
        file.write(image)

for path in ("FILE.csv", "NEW.csv"):
    with open(path, "w") as file:
        file.write("x,COLUMN\n" + "".join("%d,%d\n" % (i % 7, i % 5) for i in range(60)))

os.makedirs("ml-latest-small")
with open("ml-latest-small/ratings.csv", "w") as file:
    file.write("userId,movieId,rating,timestamp\n" +
               "".join("%d,%d,%s,%d\n" % (1 + i % 40, 1 + i * 7 % 90, 0.5 + i % 10 / 2, 1000 + i)
                       for i in range(1600)))

with open("program.py", "w") as file:
    file.write("import cornu\nprint(cornu.__version__)\n")
