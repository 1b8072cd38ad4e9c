"""Scores of SacreBLEU (pip install sacrebleu). Writes bleu/corpora.json: translations, references
and the score of each corpus."""

import json
import pathlib
import platform
import random

import sacrebleu

HERE = pathlib.Path(__file__).resolve().parent / "bleu"
PIECES = ["the", "The", "cat", "sat", "1,000.5", "3.14", "5-4", "a-b", "e.g.,", "it's", ",,5", "x.,.y",
          "(why?)", "&amp;", "&quot;hi&quot;", "$5", "ü", "¿qué", "end.", "...", "50%", "a/b", "&lt;b&gt;",
          "1.", ".5", "-", "5--", "[x]", "~", "A_B"]


def corpora():
    rng = random.Random(7)
    yield "same", [["the cat sat on the mat"] * 2] * 2
    yield "none", [["a b c d"], ["e f g h"]]
    yield "short", [["the cat"], ["the cat sat on the mat"]]
    yield "two_words", [["the cat"], ["the cat"]]
    yield "long", [["the the the the the the the cat"], ["the cat sat"]]
    yield "empty", [["", "a b c d e"], ["a b", "a b c d e"]]
    yield "no_fourgram", [["the cat sat on a mat"], ["a cat sat on the mat"]]
    for i in range(12):
        lines = [[" ".join(rng.choices(PIECES, k=rng.randint(1, 12))) for _ in range(5)]]
        other = []
        for line in lines[0]:
            words = line.split()
            for _ in range(rng.randint(0, 4)):
                words[rng.randrange(len(words))] = rng.choice(PIECES)
            other.append(" ".join(words + rng.choices(PIECES, k=rng.randint(0, 2))))
        yield f"random_{i}", [other, lines[0]]


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    cases = []
    for name, (translations, references) in corpora():
        b = sacrebleu.corpus_bleu(translations, [references])
        cases.append({"name": name, "translations": translations, "references": references,
                      "score": b.score, "precisions": b.precisions, "brevity_penalty": b.bp,
                      "length": b.sys_len, "reference_length": b.ref_len})
    (HERE / "corpora.json").write_text(json.dumps(cases, ensure_ascii=False, indent=0) + "\n")
    (HERE / "VERSIONS").write_text(f"python {platform.python_version()}\nsacrebleu {sacrebleu.__version__}\n")
