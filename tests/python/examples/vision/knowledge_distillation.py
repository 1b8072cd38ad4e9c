"""A student that learns from a teacher, by compute_loss of its model."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


class Distiller(keras.Model):
    def __init__(self, student, teacher):
        super().__init__()
        self.teacher, self.student = teacher, student

    def compile(self, optimizer, metrics, student_loss_fn, distillation_loss_fn, alpha=0.1,
                temperature=3):
        super().compile(optimizer=optimizer, metrics=metrics)
        self.student_loss_fn, self.distillation_loss_fn = student_loss_fn, distillation_loss_fn
        self.alpha, self.temperature = alpha, temperature

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, allow_empty=False,
                     training=True):
        teacher_pred = self.teacher(x, training=False)
        student_loss = self.student_loss_fn(y, y_pred)
        distillation_loss = self.distillation_loss_fn(
            ops.softmax(teacher_pred / self.temperature, axis=1),
            ops.softmax(y_pred / self.temperature, axis=1)) * (self.temperature ** 2)
        return self.alpha * student_loss + (1 - self.alpha) * distillation_loss

    def call(self, x):
        return self.student(x)


def network(filters, name):
    return start(keras.Sequential([
        keras.Input(shape=(12, 12, 1)),
        layers.Conv2D(filters, (3, 3), strides=(2, 2), padding="same"),
        layers.LeakyReLU(negative_slope=0.2), layers.MaxPooling2D((2, 2), (1, 1), padding="same"),
        layers.Flatten(), layers.Dense(5)], name=name))


teacher, student = network(8, "teacher"), network(4, "student")
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
x, y = data(8, 12, 12, 1), data(8, classes=5)
teacher.compile(keras.optimizers.Adam(), loss, metrics=[keras.metrics.SparseCategoricalAccuracy()])
first = fit(teacher, x, y)
distiller = Distiller(student=student, teacher=teacher)
distiller.compile(optimizer=keras.optimizers.Adam(),
                  metrics=[keras.metrics.SparseCategoricalAccuracy()], student_loss_fn=loss,
                  distillation_loss_fn=keras.losses.KLDivergence(), alpha=0.1, temperature=10)
report(teacher=first["loss"], evaluated=distiller.evaluate(x, y, verbose=0)[1:],
       **fit(distiller, x, y))
