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
