import cornu

(x, y), test = cornu.datasets.mnist.load_data(limit=10000)
model = cornu.Sequential([cornu.Input((28, 28), scale=1 / 255), cornu.layers.Flatten(),
                          cornu.layers.Dense(128, activation="relu"),
                          cornu.layers.Dense(10, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, epochs=2, verbose=2)
model.save("python.safetensors")
print("accuracy", (cornu.load("python.safetensors").predict(test[0]).argmax(1) == test[1]).mean())
