"""The C library: found, loaded, described by itself, and its arrays and errors as Python's."""
