"""Weights of a model that is a subclass: its layers have the names of attributes. Writes subclassed/.

attributes.weights.h5 is of the class Net; attributes.npz has an input x0 and the prediction y0.
"""

import common
import keras
import numpy as np

OUT = common.folder("subclassed")


def net():
    L = keras.layers

    class Block(L.Layer):
        def __init__(self, units, **keywords):
            super().__init__(**keywords)
            self.first = L.Dense(units, activation="relu")
            self.norm = L.BatchNormalization()

        def call(self, x):
            return self.norm(self.first(x))

    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.words = L.Embedding(5, 4)
            self.blocks = [Block(4), Block(3)]
            self.dense1 = L.Dense(5)
            self.head = keras.Sequential([L.Dense(4, activation="tanh"), L.Dense(2)])
            self.rnn = L.Bidirectional(L.LSTM(3))
            self.drop = L.Dropout(0.5)

        def call(self, x):
            y = self.dense1(self.rnn(self.words(x)))
            for block in self.blocks:
                y = block(y)
            return self.head(self.drop(y))

    return Net()


def write(name):
    model = net()
    x = np.arange(24).reshape(4, 6) * 7 % 5
    model(x)
    model.set_weights([w + 0.3 * np.abs(common.hashed_uniform(f"{name}/{i}", w.size)).reshape(w.shape)
                       for i, w in enumerate(model.get_weights())])
    model.save_weights(str(OUT / f"{name}.weights.h5"))
    np.savez(OUT / f"{name}.npz", x0=x.astype("float32"), y0=np.asarray(model(x)))


write("attributes")
