"""Text, character by character: an LSTM learns to foretell the next character of Shakespeare's
plays, and then writes on its own, from what it has in its states of the characters before.

Six epochs take 75 seconds on two cores (AMD EPYC, Zen 4); the validation loss is 1.63 nats per
character.
"""

import cornu as keras
from cornu import layers

# Blocks of 100 characters, and for each of these the one that follows
(x_train, y_train), (x_test, y_test) = keras.datasets.shakespeare.load_data()

model = keras.Sequential([
    keras.Input((100,)),
    layers.Embedding(256, 64),
    layers.LSTM(256, return_sequences=True),
    layers.TimeDistributed(layers.Dense(256, activation="softmax")),
], name="shakespeare_lstm")
model.summary()
model.compile(keras.optimizers.RMSprop(0.01), "sparse_categorical_crossentropy",
              metrics=["accuracy"])
history = model.fit(x_train, y_train, batch_size=32, epochs=6, validation_data=(x_test, y_test))

text = "ROMEO:\n"
print(text, end="")
model.generate([ord(c) for c in text], 500, temperature=0.8,
               on_token=lambda token: print(chr(token), end=""))
print("\n\nValidation loss: %.4f nats per character" % history.history["val_loss"][-1])
