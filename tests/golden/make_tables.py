"""CSV files and what pandas reads from them: tests/golden/tables/*.

    pip install numpy pandas && python make_tables.py

For each NAME.csv there is NAME.txt: a line "ROWS COLUMNS", then a line for each column: its name
and, if it has words, its categories in byte order, with underscores for blanks and line ends; then
the values row by row, where words are the indices of their categories and missing values nan, or -1
of words.
"""
import pathlib
import platform

import numpy as np
import pandas

OUT = pathlib.Path(__file__).resolve().parent / "tables"
RNG = np.random.default_rng(5)


def mixed(rows):
    """Numbers of every spelling, words, and missing values."""
    return pandas.DataFrame({
        "whole": RNG.integers(-10**6, 10**6, rows),
        "float": RNG.normal(0, 1, rows) * 10.0 ** RNG.integers(-8, 8, rows),
        "gaps": np.where(RNG.random(rows) < 0.2, np.nan, RNG.random(rows)),
        "town": RNG.choice(["Bonn", "Halle, Saale", 'the "Ulm"', "two\nlines", " blank"], rows),
        "some, words": RNG.choice(["yes", "no", None], rows),
    })


# As people and programs write missing values and line ends.
SPELLINGS = (b"\xef\xbb\xbfa,b,word\r\n1,2,x\r\n,3,y\r\nNA,4,x\r\nnull,5,\r\n#N/A,6,NaN\r\n"
             b"7,N/A,x\r\n8,n/a,<NA>\r\n9,None,None\r\n10,-nan,x\r\n11,1.#IND,x\r\n12,nan,x\r\n"
             b"+13,.5,x\r\n14.,-1e-3,x\r\n15,1E5,x\r\n\"16\",\"1,5\"\r\n")


def write(name, frame):
    lines = ["%d %d" % frame.shape]
    columns = []
    for column in frame:
        values = frame[column]
        words = [] if values.dtype.kind in "fi" else sorted(
            set(values.dropna()), key=lambda word: word.encode())
        lines.append(" ".join([column] + words).replace("\n", "_") if not words else
                     " ".join(text.replace(" ", "_").replace("\n", "_")
                              for text in [column] + words))
        columns.append([words.index(v) if isinstance(v, str) else -1 if words else v
                        for v in values])
    for row in zip(*columns):
        lines.append(" ".join("%.17g" % value for value in row))
    (OUT / (name + ".txt")).write_text("\n".join(lines) + "\n")


def main():
    OUT.mkdir(exist_ok=True)
    for old in OUT.iterdir():
        old.unlink()
    (OUT / "VERSIONS").write_text(f"python {platform.python_version()}\npandas "
                                  f"{pandas.__version__}\n")
    frame = mixed(60)
    for name, settings in (("mixed", {}), ("crlf", {"lineterminator": "\r\n"}),
                           ("quoted", {"quoting": 1}), ("semicolon", {"sep": ";"})):
        frame.to_csv(OUT / (name + ".csv"), index=False, **settings)
        read = pandas.read_csv(OUT / (name + ".csv"), sep=settings.get("sep", ","),
                               skipinitialspace=True)
        write(name, read)
    (OUT / "spellings.csv").write_bytes(SPELLINGS.replace(b'"16","1,5"\r\n', b'"16","1.5",x\r\n'))
    write("spellings", pandas.read_csv(OUT / "spellings.csv"))


if __name__ == "__main__":
    main()
