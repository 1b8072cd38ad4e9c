"""An encoder whose states a decoder begins with, and models for sampling that are cut out of the
trained one."""

import numpy as np
from harness import data, fit, keras, report, start

latent, tokens = 12, 9
encoder_inputs = keras.Input(shape=(None, tokens))
encoder = keras.layers.LSTM(latent, return_state=True)
_, state_h, state_c = encoder(encoder_inputs)
decoder_inputs = keras.Input(shape=(None, tokens))
decoder_lstm = keras.layers.LSTM(latent, return_sequences=True, return_state=True)
decoder_outputs, _, _ = decoder_lstm(decoder_inputs, initial_state=[state_h, state_c])
decoder_dense = keras.layers.Dense(tokens, activation="softmax")
model = start(keras.Model([encoder_inputs, decoder_inputs], decoder_dense(decoder_outputs)))
model.compile(optimizer="rmsprop", loss="categorical_crossentropy", metrics=["accuracy"])
eye = np.eye(tokens, dtype="float32")
texts, targets = eye[data(8, 6, classes=tokens)], eye[data(8, 5, classes=tokens)]
logs = fit(model, [texts, targets], np.roll(targets, -1, 1))

encoder_model = keras.Model(model.input[0], encoder.output[1:])
states = [keras.Input(shape=(latent,)), keras.Input(shape=(latent,))]
outputs, h, c = decoder_lstm(decoder_inputs, initial_state=states)
decoder_model = keras.Model([decoder_inputs] + states, [decoder_dense(outputs), h, c])
values, token, found = list(encoder_model.predict(texts[:1], verbose=0)), 0, []
for _ in range(4):
    probabilities, *values = decoder_model.predict([eye[[[token]]]] + values, verbose=0)
    token = int(np.argmax(probabilities[0, -1]))
    found.append(token)
report(found=found, **logs)
