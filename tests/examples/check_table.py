"""Real Keras on a model of cornu table and its notes: check_table.py MODEL.keras FILE.csv OURS.csv

Reads FILE.csv as the notes say, predicts, and compares with OURS.csv, which cornu table --predict
wrote of it.
"""
import csv
import json
import os
import sys
import zipfile

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras
import numpy as np

model, file, ours = sys.argv[1:]
notes = json.loads(zipfile.ZipFile(model).read("metadata.json"))["notes"]
inputs = list(csv.reader(notes["inputs"].splitlines()))
((target, *categories),) = csv.reader(notes["target"].splitlines())
rows = list(csv.DictReader(open(file, encoding="utf-8")))
x = np.array([[float(row[name]) if not known else float(row[name] == category)
               for name, *known in inputs for category in known or [None]] for row in rows],
             "float32")
y = keras.models.load_model(model).predict(x, verbose=0)
for expected, row in zip(y, csv.DictReader(open(ours, encoding="utf-8")), strict=True):
    if categories:
        assert row[target] == categories[expected.argmax()], (row, expected)
        assert abs(float(row["probability"]) - expected.max()) < 1e-4, (row, expected)
    else:
        assert abs(float(row[target]) - expected[0]) < 1e-5 * abs(expected[0]), (row, expected)
