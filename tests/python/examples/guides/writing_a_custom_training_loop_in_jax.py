"""guides/writing_a_custom_training_loop_in_jax: a step as a function of the state, with metrics,
and with what layers add to the loss."""

from harness import data, jit, keras, report, start, value_and_grad

layers, ops = keras.layers, keras.ops


class ActivityRegularizationLayer(layers.Layer):
    def call(self, inputs):
        self.add_loss(1e-2 * ops.sum(inputs))
        return inputs


def get_model(regularized=False):
    inputs = keras.Input(shape=(20,), name="digits")
    x = layers.Dense(16, activation="relu")(inputs)
    if regularized:
        x = ActivityRegularizationLayer()(x)
    x = layers.BatchNormalization()(layers.Dense(16, use_bias=False)(x))
    return start(keras.Model(inputs, layers.Dense(5, name="predictions")(x)))


batches = [(data(16, 20, seed=i), keras.utils.to_categorical(data(16, classes=5, seed=i), 5))
           for i in range(3)]
loss_fn = keras.losses.CategoricalCrossentropy(from_logits=True)
optimizer = keras.optimizers.Adam(learning_rate=1e-2)
metric = keras.metrics.CategoricalAccuracy()
model = get_model()


def compute_loss_and_updates(trainable_variables, non_trainable_variables, metric_variables, x, y):
    y_pred, non_trainable_variables = model.stateless_call(
        trainable_variables, non_trainable_variables, x, training=True)
    loss = loss_fn(y, y_pred)
    metric_variables = metric.stateless_update_state(metric_variables, y, y_pred)
    return loss, (non_trainable_variables, metric_variables)


grad_fn = value_and_grad(compute_loss_and_updates, has_aux=True)


@jit
def train_step(state, data):
    trainable_variables, non_trainable_variables, optimizer_variables, metric_variables = state
    x, y = data
    (loss, (non_trainable_variables, metric_variables)), grads = grad_fn(
        trainable_variables, non_trainable_variables, metric_variables, x, y)
    trainable_variables, optimizer_variables = optimizer.stateless_apply(
        optimizer_variables, grads, trainable_variables)
    return loss, (trainable_variables, non_trainable_variables, optimizer_variables,
                  metric_variables)


@jit
def eval_step(state, data):
    trainable_variables, non_trainable_variables = state
    x, y = data
    y_pred, _ = model.stateless_call(trainable_variables, non_trainable_variables, x)
    return loss_fn(y, y_pred)


def values(variables):
    return [v.value for v in variables]


optimizer.build(model.trainable_variables)
state = (values(model.trainable_variables), values(model.non_trainable_variables),
         values(optimizer.variables), values(metric.variables))
losses, before = [], model.get_weights()[0]
for _ in range(2):
    for batch in batches:
        loss, state = train_step(state, batch)
        losses.append(float(loss))
unchanged = float(abs(model.get_weights()[0] - before).max())
accuracy = float(metric.stateless_result(state[3]))
evaluated = float(eval_step(state[:2], batches[0]))
for variable, value in zip(model.trainable_variables, state[0]):
    variable.assign(value)
for variable, value in zip(model.non_trainable_variables, state[1]):
    variable.assign(value)
predicted = model.predict(batches[0][0], verbose=0)

# What layers add to the loss.
regularized = get_model(True)


def with_losses(trainable_variables, non_trainable_variables, x, y):
    y_pred, non_trainable_variables, added = regularized.stateless_call(
        trainable_variables, non_trainable_variables, x, return_losses=True)
    loss = loss_fn(y, y_pred)
    if added:
        loss += ops.sum(added)
    return loss, non_trainable_variables


(loss, _), grads = value_and_grad(with_losses, has_aux=True)(
    values(regularized.trainable_variables), values(regularized.non_trainable_variables),
    *batches[0])
report(losses=losses, unchanged=unchanged, accuracy=accuracy, evaluated=evaluated,
       predicted=predicted, added=float(loss), norms=[float(ops.sum(g * g)) for g in grads])
