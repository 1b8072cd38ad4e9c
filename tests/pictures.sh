# For scripts that train on pictures: sourced.

# draw_pictures SIDE [CUT]: 96 squares of that side, the same every time, in pictures/a, b and c; of
# number CUT the file ends within the data. Fails without Python.
draw_pictures() {
    python3 - "$@" <<'PYTHON'
import os, struct, sys, zlib
side, cut = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else -1
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
for i in range(96):
    folder = "pictures/%s" % "abc"[i % 3]
    os.makedirs(folder, exist_ok=True)
    rows = b"".join(b"\0" + bytes((x * (i % 3 + 1) * 17 + y * 31 + i * 7) % 256
                                  for x in range(side)) for y in range(side))
    with open("%s/%02d.png" % (folder, i), "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n"
                   + chunk(b"IHDR", struct.pack(">2I5B", side, side, 8, 0, 0, 0, 0))
                   + (b"\0\0" if i == cut
                      else chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")))
PYTHON
}

# draw_digits FOLDER ROWS: so many rows of bytes with the labels 0 to 9, for training and for the
# test, where the examples look for MNIST if CORNU_DATA is FOLDER.
draw_digits() {
    local part extents
    mkdir -p "$1/mnist"
    extents=$(printf '\\0\\0\\%o\\%o' $(($2 / 256)) $(($2 % 256)))
    for part in train t10k; do
        { printf '\0\0\10\3'"$extents"'\0\0\0\34\0\0\0\34'
          yes "rows of $part" | tr '\n' '\377' | head -c $((784 * $2)); } |
            gzip >"$1/mnist/$part-images-idx3-ubyte.gz"
        { printf '\0\0\10\1'"$extents"
          yes 1234567890 | tr -d '\n' | tr 0-9 '\0\1\2\3\4\5\6\7\10\11' | head -c "$2"; } |
            gzip >"$1/mnist/$part-labels-idx1-ubyte.gz"
    done
}
