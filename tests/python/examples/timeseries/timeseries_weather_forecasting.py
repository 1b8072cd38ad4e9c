"""Windows of an array."""

from harness import data, keras, report, start

features, targets = data(60, 4), data(60, 1)
dataset_train = keras.preprocessing.timeseries_dataset_from_array(
    features[:40], targets[:40], sequence_length=10, sampling_rate=2, batch_size=32)
dataset_val = keras.preprocessing.timeseries_dataset_from_array(
    features[30:], targets[30:], sequence_length=10, sampling_rate=2, batch_size=32)
for batch in dataset_train.take(1):
    inputs, _ = batch
inputs = keras.layers.Input(shape=(inputs.shape[1], inputs.shape[2]))
outputs = keras.layers.Dense(1)(keras.layers.LSTM(8)(inputs))
model = start(keras.Model(inputs=inputs, outputs=outputs))
model.compile(optimizer=keras.optimizers.Adam(learning_rate=0.001), loss="mse")
history = model.fit(dataset_train, epochs=3, validation_data=dataset_val, verbose=0)
for x, y in dataset_val.take(1):
    report(out=model.predict(x, verbose=0)[0], **history.history)
