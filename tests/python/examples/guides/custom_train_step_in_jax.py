"""guides/custom_train_step_in_jax: stateless calls in train_step, with the metrics of compile, and
with metrics and a loss of the model's own."""

from harness import data, keras, report, start, value_and_grad

layers = keras.layers


class CustomModel(keras.Model):
    def compute_loss_and_updates(self, trainable_variables, non_trainable_variables, x, y,
                                 training=False):
        y_pred, non_trainable_variables = self.stateless_call(
            trainable_variables, non_trainable_variables, x, training=training)
        loss = self.compute_loss(x, y, y_pred)
        return loss, (y_pred, non_trainable_variables)

    def train_step(self, state, data):
        (trainable_variables, non_trainable_variables, optimizer_variables,
         metrics_variables) = state
        x, y = data
        grad_fn = value_and_grad(self.compute_loss_and_updates, has_aux=True)
        (loss, (y_pred, non_trainable_variables)), grads = grad_fn(
            trainable_variables, non_trainable_variables, x, y, training=True)
        trainable_variables, optimizer_variables = self.optimizer.stateless_apply(
            optimizer_variables, grads, trainable_variables)
        new_metrics_vars, logs = [], {}
        for metric in self.metrics:
            at = len(new_metrics_vars)
            these = metrics_variables[at:at + len(metric.variables)]
            if metric.name == "loss":
                these = metric.stateless_update_state(these, loss)
            else:
                these = metric.stateless_update_state(these, y, y_pred)
            logs[metric.name] = metric.stateless_result(these)
            new_metrics_vars += these
        return logs, (trainable_variables, non_trainable_variables, optimizer_variables,
                      new_metrics_vars)


class LowerLevel(keras.Model):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.mae_metric = keras.metrics.MeanAbsoluteError(name="mae")
        self.loss_fn = keras.losses.MeanSquaredError()

    def compute_loss_and_updates(self, trainable_variables, non_trainable_variables, x, y,
                                 training=False):
        y_pred, non_trainable_variables = self.stateless_call(
            trainable_variables, non_trainable_variables, x, training=training)
        return self.loss_fn(y, y_pred), (y_pred, non_trainable_variables)

    def train_step(self, state, data):
        (trainable_variables, non_trainable_variables, optimizer_variables,
         metrics_variables) = state
        x, y = data
        grad_fn = value_and_grad(self.compute_loss_and_updates, has_aux=True)
        (loss, (y_pred, non_trainable_variables)), grads = grad_fn(
            trainable_variables, non_trainable_variables, x, y, training=True)
        trainable_variables, optimizer_variables = self.optimizer.stateless_apply(
            optimizer_variables, grads, trainable_variables)
        of_loss = len(self.loss_tracker.variables)
        loss_vars = self.loss_tracker.stateless_update_state(metrics_variables[:of_loss], loss)
        mae_vars = self.mae_metric.stateless_update_state(metrics_variables[of_loss:], y, y_pred)
        logs = {self.loss_tracker.name: self.loss_tracker.stateless_result(loss_vars),
                self.mae_metric.name: self.mae_metric.stateless_result(mae_vars)}
        return logs, (trainable_variables, non_trainable_variables, optimizer_variables,
                      loss_vars + mae_vars)

    def test_step(self, state, data):
        trainable_variables, non_trainable_variables, metrics_variables = state
        x, y = data
        loss, (y_pred, non_trainable_variables) = self.compute_loss_and_updates(
            trainable_variables, non_trainable_variables, x, y)
        of_loss = len(self.loss_tracker.variables)
        loss_vars = self.loss_tracker.stateless_update_state(metrics_variables[:of_loss], loss)
        mae_vars = self.mae_metric.stateless_update_state(metrics_variables[of_loss:], y, y_pred)
        logs = {self.loss_tracker.name: self.loss_tracker.stateless_result(loss_vars),
                self.mae_metric.name: self.mae_metric.stateless_result(mae_vars)}
        return logs, (trainable_variables, non_trainable_variables, loss_vars + mae_vars)

    @property
    def metrics(self):
        return [self.loss_tracker, self.mae_metric]


def network(kind):
    inputs = keras.Input(shape=(32,))
    x = layers.BatchNormalization()(layers.Dense(8, activation="relu")(inputs))
    return start(kind(inputs, layers.Dense(1)(x)))


x, y = data(64, 32), data(64, 1)
found = {}
model = network(CustomModel)
model.compile(optimizer="adam", loss="mse", metrics=["mae"])
history = model.fit(x, y, epochs=3, batch_size=16, shuffle=False, verbose=0).history
found["high"] = history["loss"]
lower = network(LowerLevel)
lower.compile(optimizer="adam")
history = lower.fit(x, y, epochs=3, batch_size=16, shuffle=False, verbose=0).history
found.update(low=history["loss"], mae=history["mae"],
             evaluated=lower.evaluate(x, y, batch_size=16, verbose=0),
             moving=lower.layers[2].moving_mean, first=lower.predict(x[:4], verbose=0))
report(**found)
