"""Writes a wheel of the package cornu: make_wheel.py VERSION PROCESSOR FOLDER NAME=LIBRARY...

The libraries lie beside the modules, under their names. Equal contents give equal bytes.
Source of the format: PyPA, "Binary distribution format"; of the platform's name: PEP 600.
"""

import base64
import hashlib
import os
import platform
import sys
import zipfile

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cornu")
TOP = os.path.join(PACKAGE, "..", "..", "..")
LICENSES = {"LICENSE": os.path.join(TOP, "LICENSE"),   # and of what the libraries contain
            "copyright": os.path.join(TOP, ".packaging", "debian", "copyright")}
METADATA = """Metadata-Version: 2.4
Name: cornu
Version: %s
Summary: Keras in C, from Python: trains and runs neural networks
License-Expression: Apache-2.0 AND BSD-3-Clause AND MIT
License-File: LICENSE
License-File: copyright
Requires-Python: >=3.9
Requires-Dist: numpy
Description-Content-Type: text/plain

%s"""
WHEEL = """Wheel-Version: 1.0
Generator: cornu
Root-Is-Purelib: false
Tag: %s
"""


def platform_tag(processor):
    """manylinux_2_36_x86_64: the glibc that this was built with is the oldest it is known to run
    on."""
    name, version = platform.libc_ver()
    if name != "glibc":
        raise SystemExit("make_wheel: the C library is %s, expected glibc" % (name or "unknown"))
    return "manylinux_%s_%s" % ("_".join(version.split(".")[:2]), processor)


def modules():
    for folder, folders, names in sorted(os.walk(PACKAGE)):
        folders[:] = [f for f in folders if f != "__pycache__"]
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                yield os.path.join("cornu", os.path.relpath(path, PACKAGE)), path


def main(version, processor, folder, *libraries):
    tag = "py3-none-" + platform_tag(processor)
    info = "cornu-%s.dist-info" % version
    contents = {}
    for name, path in modules():
        with open(path, "rb") as file:
            contents[name] = file.read()
    for library in libraries:
        name, path = library.split("=", 1)
        with open(path, "rb") as file:
            contents["cornu/" + name] = file.read()
    description = contents["cornu/__init__.py"].decode("utf-8").split('"""')[1]
    contents[info + "/METADATA"] = (METADATA % (version, description)).encode("utf-8")
    contents[info + "/WHEEL"] = (WHEEL % tag).encode("utf-8")
    for name, path in LICENSES.items():
        with open(path, "rb") as file:
            contents[info + "/licenses/" + name] = file.read()
    record = []
    for name, data in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append("%s,sha256=%s,%d" % (name, digest, len(data)))
    record.append(info + "/RECORD,,")
    contents[info + "/RECORD"] = ("\n".join(record) + "\n").encode("utf-8")

    path = os.path.join(folder, "cornu-%s-%s.whl" % (version, tag))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in contents.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
            wheel.writestr(entry, data)
    print("  wheel  %s  %.1f MB" % (path, os.path.getsize(path) / 1e6))


if __name__ == "__main__":
    main(*sys.argv[1:])
