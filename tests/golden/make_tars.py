"""Tar archives of samples: tests/golden/tars/*.tar.

    python make_tars.py         # needs NumPy and Pillow; webdataset, where it is installed

Written by Python's tarfile, and written.tar by webdataset's TarWriter. Sample i of 5 has
  cls   3 * i - 2                      txt   "text " and i times "é"
  npy   f4 (2, 3), i + k / 4           json  {"box": {"w": i / 2, "tags": [i, i + 1]}, "name": "n" + i}
  png   u8 (4, 5, 3), element k is (40 * i + 7 * k) % 256
"""
import io
import json
import pathlib
import platform
import tarfile

import numpy as np
from PIL import Image

LONG = "folder-%s/" % ("d" * 90) + "sub-%s/" % ("e" * 120)


def image(i):
    pixels = (40 * i + 7 * np.arange(60)).reshape(4, 5, 3) % 256
    return Image.fromarray(pixels.astype("uint8"))


def files(i):
    png, npy = io.BytesIO(), io.BytesIO()
    image(i).save(png, "PNG")
    np.save(npy, (i + np.arange(6).reshape(2, 3) / 4).astype("f4"))
    record = {"box": {"w": i / 2, "tags": [i, i + 1]}, "name": "n%d" % i}
    return {"png": png.getvalue(), "cls": str(3 * i - 2).encode(), "npy": npy.getvalue(),
            "txt": ("text " + "é" * i).encode(), "json": json.dumps(record).encode()}


def add(tar, name, content=b"", **settings):
    member = tarfile.TarInfo(name)
    member.size = len(content)
    for key, value in settings.items():
        setattr(member, key, value)
    tar.addfile(member, io.BytesIO(content))


def write(path, form, prefix, extras=False):
    with tarfile.open(path, "w", format=form) as tar:
        add(tar, prefix.split("/")[0], type=tarfile.DIRTYPE)
        if extras:
            add(tar, "__meta__", b"about")
            add(tar, "README", b"no extension")
        for i in range(5):
            for extension, content in files(i).items():
                add(tar, "%s%05d.%s" % (prefix, i, extension), content,
                    uid=0 if form == tarfile.USTAR_FORMAT else 3000000 * i,
                    mtime=1600000000.5 if form == tarfile.PAX_FORMAT else 0)
            if extras:
                add(tar, "%s%05d.other.ext" % (prefix, i), b"unused")
                add(tar, "link%d" % i, type=tarfile.SYMTYPE, linkname="00001.cls")


def main():
    folder = pathlib.Path(__file__).parent / "tars"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    write(folder / "ustar.tar", tarfile.USTAR_FORMAT, "a/", extras=True)
    write(folder / "ustar_prefix.tar", tarfile.USTAR_FORMAT, "d" * 60 + "/" + "e" * 70 + "/")
    write(folder / "gnu.tar", tarfile.GNU_FORMAT, LONG)
    write(folder / "pax.tar", tarfile.PAX_FORMAT, LONG + "é/", extras=True)
    versions = "Python %s\nnumpy %s\n" % (platform.python_version(), np.__version__)
    try:
        import webdataset
        with webdataset.TarWriter(str(folder / "written.tar"), mtime=0) as sink:
            for i in range(5):
                given = files(i)
                sink.write({"__key__": "train/%05d" % i, "png": image(i), "cls": 3 * i - 2,
                            "npy": (i + np.arange(6).reshape(2, 3) / 4).astype("f4"),
                            "txt": given["txt"].decode(), "json": json.loads(given["json"])})
        versions += "webdataset %s\n" % webdataset.__version__
    except ImportError:
        print("without webdataset")
    (folder / "VERSIONS").write_text(versions)


if __name__ == "__main__":
    main()
