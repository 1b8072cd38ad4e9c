"""A frozen base with batch normalization below a new head, then fine-tuning at a low rate."""

from harness import data, fit, keras, report, start

layers = keras.layers
base_inputs = keras.Input(shape=(12, 12, 3))
x = layers.Conv2D(6, 3, activation="relu")(base_inputs)
x = layers.BatchNormalization()(x)
x = layers.Conv2D(8, 3, activation="relu")(layers.MaxPooling2D()(x))
base_model = start(keras.Model(base_inputs, x, name="base"))
base_model.trainable = False
inputs = keras.Input(shape=(12, 12, 3))
x = layers.Rescaling(scale=1 / 127.5, offset=-1)(inputs)
x = base_model(x, training=False)
x = layers.Dropout(0.0)(layers.GlobalAveragePooling2D()(x))
model = keras.Model(inputs, layers.Dense(1)(x))
start(model)
counts = [len(model.trainable_weights), len(model.non_trainable_weights)]
images, labels = abs(data(8, 12, 12, 3)) * 100, data(8, 1, classes=2)
model.compile(optimizer=keras.optimizers.Adam(), metrics=[keras.metrics.BinaryAccuracy()],
              loss=keras.losses.BinaryCrossentropy(from_logits=True))
first = fit(model, images, labels)
base_model.trainable = True
counts += [len(model.trainable_weights), len(model.non_trainable_weights)]
model.compile(optimizer=keras.optimizers.Adam(1e-5), metrics=[keras.metrics.BinaryAccuracy()],
              loss=keras.losses.BinaryCrossentropy(from_logits=True))
second = fit(model, images, labels)
report(counts=counts, loss2=second["loss"], **first)
