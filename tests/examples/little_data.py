"""Little data in the place of the published sets, for the examples: little_data.py FOLDER.

MNIST and Fashion-MNIST with 2,000 and 1,000 pictures to learn from and 400 for the test, of bars
that say their class, and a text of two plays, 400 times the same lines but for a number.
"""

import gzip
import os
import random
import struct
import sys

CLASSES, SIZE = 10, 28


def is_digit(row, column, label):       # a bar across the picture
    return (row - 4) // 2 == label


def is_garment(row, column, label):     # a thicker bar or parts of one, which may move by a pixel
    return (row - 2) // 5 == label % 5 and (row - 2) % 5 < 3 and (label < 5 or column // 3 % 2)


def draw(inside, label):
    return bytes(random.randrange(160, 256) if inside(row, column, label) else random.randrange(60)
                 for row in range(SIZE) for column in range(SIZE))


def write_idx(path, extents, data):
    with gzip.open(path, "wb") as file:
        file.write(struct.pack(">4B", 0, 0, 8, len(extents)) + struct.pack(f">{len(extents)}I",
                                                                           *extents) + data)


def write_pictures(folder, inside, count):
    os.makedirs(folder)
    for part, count in (("train", count), ("t10k", 400)):
        labels = bytes(random.randrange(CLASSES) for _ in range(count))
        write_idx(f"{folder}/{part}-labels-idx1-ubyte.gz", [count], labels)
        write_idx(f"{folder}/{part}-images-idx3-ubyte.gz", [count, SIZE, SIZE],
                  b"".join(draw(inside, label) for label in labels))


def write_plays(folder):
    os.makedirs(folder)
    with open(f"{folder}/input.txt", "w") as file:
        for i in range(400):
            file.write(f"ROMEO:\nO {i} night and love of light\n\n"
                       f"MENENIUS:\nThe {i} common people of Rome\n\n")


if __name__ == "__main__":
    random.seed(3)
    write_pictures(sys.argv[1] + "/mnist", is_digit, 2000)
    write_pictures(sys.argv[1] + "/fashion-mnist", is_garment, 1000)
    write_plays(sys.argv[1] + "/shakespeare")
