"""Files of the net, kept where Keras keeps them. What only these functions need is imported in
them, so that `import cornu` takes a third less time."""

import os

_SECONDS = 20   # without an answer


def keras_home():
    """The folder in which Keras keeps files: KERAS_HOME or ~/.keras."""
    return os.environ.get("KERAS_HOME") or os.path.join(os.path.expanduser("~"), ".keras")


def _hash(path, algorithm):
    import hashlib
    made = hashlib.new(algorithm)
    with open(path, "rb") as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            made.update(part)
    return made.hexdigest()


def _matches(path, file_hash, algorithm):
    if file_hash is None:
        return True
    if algorithm == "auto":
        algorithm = "sha256" if len(file_hash) == 64 else "md5"
    return _hash(path, algorithm) == file_hash


def _fetch(origin, path):
    """Writes what lies at an address, whole or not at all."""
    import shutil
    import urllib.request
    part = path + ".part"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with urllib.request.urlopen(origin, timeout=_SECONDS) as found, open(part, "wb") as to:
            shutil.copyfileobj(found, to)
        os.replace(part, path)
    except (OSError, ValueError) as error:
        raise OSError("get_file: %s is neither there nor could it be fetched from %s (%s); without "
                      "a network put the file there by hand" % (path, origin, error)) from None
    finally:
        if os.path.exists(part):
            os.remove(part)


def _inside(folder, name):
    folder = os.path.realpath(folder)
    return (os.path.realpath(os.path.join(folder, name)) + os.sep).startswith(folder + os.sep)


def _extract(archive, folder, archive_format):
    """Unpacks an archive, if it is one; nothing leaves the folder."""
    import tarfile
    import zipfile
    kinds = {"auto": ("tar", "zip"), None: ()}.get(archive_format, archive_format)
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    if "tar" in kinds and tarfile.is_tarfile(archive):
        with tarfile.open(archive) as tar:
            members = tar.getmembers()
            outside = [m.name for m in members if not _inside(folder, m.name) or
                       not (m.isfile() or m.isdir())]
            if outside:
                raise ValueError("get_file: %s holds %r, expected files below its folder"
                                 % (archive, outside[0]))
            tar.extractall(folder, members, **(
                {"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    elif "zip" in kinds and zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:     # which drops what leads outside
            packed.extractall(folder)
    else:
        raise ValueError("get_file: %s is not an archive of the format %s"
                         % (archive, archive_format))


def get_file(fname=None, origin=None, untar=False, md5_hash=None, file_hash=None,
             cache_subdir="datasets", hash_algorithm="auto", extract=False,
             archive_format="auto", cache_dir=None, force_download=False):
    """The path of a file, fetched from `origin` unless it is in the cache, cache_dir/cache_subdir,
    which is Keras' own by default; of an archive to be extracted, that of its folder. Without a
    network the message says which file belongs where."""
    if origin is None:
        raise ValueError("get_file: origin is required, the address of the file")
    if md5_hash is not None and file_hash is None:
        file_hash, hash_algorithm = md5_hash, "md5"
    given, fname = fname, os.fspath(fname or
                                    origin.partition("?")[0].rpartition("/")[2])
    if not fname or os.sep in fname:
        raise ValueError("get_file: fname is %r, expected a name without a folder" % (fname,))
    folder = os.path.join(os.path.expanduser(cache_dir or keras_home()), cache_subdir)
    path = to = os.path.join(folder, fname)
    if extract or untar:    # Keras' names
        if given and "." in fname:
            to = os.path.join(folder, fname[:fname.find(".")] + "_extracted")
        else:
            path += "_archive"
    fetched = force_download or not os.path.exists(path) or \
        not _matches(path, file_hash, hash_algorithm)
    if fetched:
        _fetch(origin, path)
        if not _matches(path, file_hash, hash_algorithm):
            raise ValueError("get_file: %s, fetched from %s, has another checksum than %s"
                             % (path, origin, file_hash))
    if (extract or untar) and (fetched or not os.path.exists(to)):
        _extract(path, to, archive_format if extract else "tar")
    return to
