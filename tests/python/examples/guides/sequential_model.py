"""Layers added and popped, features of the layers between, and parts that are frozen."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops
model = keras.Sequential(name="my_sequential")
model.add(layers.Dense(4, activation="relu", name="layer1"))
model.add(layers.Dense(3, activation="relu", name="layer2"))
model.add(layers.Dense(2, name="layer3"))
model.pop()
counts = [len(model.layers)]
y = model(ops.ones((1, 4)))
counts += [len(model.weights), *y.shape]

images = keras.Sequential([keras.Input(shape=(24, 24, 3)), layers.Conv2D(8, 5, strides=2,
                                                                         activation="relu"),
                           layers.Conv2D(8, 3, activation="relu", name="my_intermediate_layer"),
                           layers.MaxPooling2D(3), layers.GlobalMaxPooling2D(), layers.Dense(3)])
start(images)
extractor = keras.Model(inputs=images.inputs, outputs=[layer.output for layer in images.layers])
features = extractor(data(2, 24, 24, 3))
middle = keras.Model(inputs=images.inputs,
                     outputs=images.get_layer(name="my_intermediate_layer").output)
for layer in images.layers[:-1]:
    layer.trainable = False
images.compile("sgd", "mse")
logs = fit(images, data(4, 24, 24, 3), data(4, 3))
report(counts=counts, last=features[-1], middle=middle(data(1, 24, 24, 3))[0, 0, :4], **logs)
