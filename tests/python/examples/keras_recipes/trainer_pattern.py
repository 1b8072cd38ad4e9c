"""A model that is trained by a trainer, a model that has it as an attribute; with metrics and
optimizer of compile, and predict_step."""

from harness import GradientTape, data, keras, report, start

layers = keras.layers


class MyTrainer(keras.Model):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.accuracy_metric = keras.metrics.CategoricalAccuracy(name="accuracy")

    def train_step(self, data):
        x, y = data
        with GradientTape() as tape:
            y_pred = self.model(x, training=True)
            loss = self.compute_loss(y=y, y_pred=y_pred)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        self.loss_tracker.update_state(loss)
        self.accuracy_metric.update_state(y, y_pred)
        return {"loss": self.loss_tracker.result(), "accuracy": self.accuracy_metric.result()}

    def test_step(self, data):
        x, y = data
        y_pred = self.model(x, training=False)
        loss = self.compute_loss(y=y, y_pred=y_pred)
        self.loss_tracker.update_state(loss)
        self.accuracy_metric.update_state(y, y_pred)
        return {"loss": self.loss_tracker.result(), "accuracy": self.accuracy_metric.result()}

    def call(self, x):
        return self.model(x)

    @property
    def metrics(self):
        return [self.loss_tracker, self.accuracy_metric]


x_train, y_train = data(8, 6), keras.utils.to_categorical(data(8, classes=3), 3)
first, second = [start(keras.Sequential([keras.Input((6,)), layers.Dense(units, "relu"),
                                         layers.Dropout(0.0), layers.Dense(3, "softmax")]))
                 for units in (8, 5)]
found = {}
for name, model in (("a", first), ("b", second)):
    trainer = MyTrainer(model)
    trainer.compile(optimizer=keras.optimizers.SGD(learning_rate=0.1, momentum=0.9),
                    loss=keras.losses.CategoricalCrossentropy())
    history = trainer.fit(x_train, y_train, epochs=3, batch_size=8, shuffle=False, verbose=0,
                          validation_data=(x_train[:4], y_train[:4])).history
    found.update({name + key: value for key, value in history.items()})
    found[name + "evaluated"] = trainer.evaluate(x_train, y_train, verbose=0)
    found[name + "predicted"] = trainer.predict(x_train, verbose=0)
report(**found)
