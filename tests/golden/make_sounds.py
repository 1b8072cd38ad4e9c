"""Sound files and what soundfile (libsndfile) reads from them: tests/golden/sounds/*.

    pip install numpy soundfile && python make_sounds.py

A case in samples.txt is a line "NAME RATE N C", then the samples, f32, of each channel in turn.
"""
import pathlib
import platform

import numpy as np
import soundfile

OUT = pathlib.Path(__file__).resolve().parent / "sounds"
RNG = np.random.default_rng(3)


def main():
    OUT.mkdir(exist_ok=True)
    for old in OUT.iterdir():
        old.unlink()
    (OUT / "VERSIONS").write_text(f"python {platform.python_version()}\nsoundfile "
                                  f"{soundfile.__version__}\n{soundfile.__libsndfile_version__}\n")
    mono = RNG.uniform(-1, 1, 40)
    mono[:3] = -1, 1, 0
    stereo = RNG.uniform(-1, 1, (30, 2))
    for name, data, rate, kind in (
            ("u8.wav", mono, 8000, "PCM_U8"), ("i16.wav", mono, 16000, "PCM_16"),
            ("i24.wav", mono, 44100, "PCM_24"), ("i32.wav", mono, 48000, "PCM_32"),
            ("f32.wav", mono * 3, 16000, "FLOAT"), ("f64.wav", mono * 3, 16000, "DOUBLE"),
            ("stereo.wav", stereo, 22050, "PCM_16"), ("five.wav", RNG.uniform(-1, 1, (9, 5)), 16000,
                                                      "PCM_24"),
            ("mono.flac", mono, 16000, "PCM_16"), ("stereo.flac", stereo, 16000, "PCM_24"),
            ("mono.ogg", np.sin(np.arange(400) / 9) / 2, 16000, "VORBIS"),
            ("mono.aiff", mono, 16000, "PCM_16")):
        soundfile.write(OUT / name, data, rate, kind)
    soundfile.write(OUT / "extensible.wav", stereo, 16000, "PCM_24", format="WAVEX")
    with open(OUT / "samples.txt", "w") as file:
        for path in sorted(OUT.iterdir()):
            if path.suffix in (".wav", ".flac", ".ogg", ".aiff"):
                samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
                print(path.name, rate, *samples.shape, file=file)
                print(*("%.9g" % value for value in samples.ravel()), file=file)


if __name__ == "__main__":
    main()
