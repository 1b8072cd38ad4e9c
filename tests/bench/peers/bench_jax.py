"""Training steps and memory of the networks in JAX, float32, also on a PJRT plugin of choice.

    python tests/bench/peers/bench_jax.py --plugin LIBRARY --models mnist_cnn --batches 128

One step is a call of one function that jax.jit has compiled: forward, loss, backward, optimizer,
metrics, with dropout on. Weights, slots, states and metrics are donated; the batch is handed over
as bytes on the host; the step is waited for. Products have precision HIGHEST. These are the
conditions of our pjrt device; with --plugin, `compare` runs both on the same library, with one
device.
"""

import itertools
import os

import settings


def parse():
    options = settings.parser(__doc__.splitlines()[0], [
        "mnist_cnn", "fashion_mnist_cnn", "resnet20", "shakespeare_lstm",
        "shakespeare_lstm_quick", "char_gpt"])
    options.add_argument("--plugin", metavar="LIBRARY", help="a PJRT plugin, or the name of a "
                         "platform that JAX has one for, such as cuda; default JAX's own")
    options.add_argument("--option", action="append", default=[], metavar="NAME=VALUE",
                         help="of the plugin's client; may be repeated")
    options.add_argument("--modes", type=settings.words, metavar="LIST",
                         help="window,reshape: how max pooling is written; jit: networks without")
    options.add_argument("--hlo", action="store_true", help="print the StableHLO of each step")
    return settings.parse(options, options.get_default("models"))


ARGUMENTS = parse()
LIBRARY = ARGUMENTS.plugin if "/" in (ARGUMENTS.plugin or "") else None
if ARGUMENTS.plugin:
    os.environ["JAX_PLATFORMS"] = "measured" if LIBRARY else ARGUMENTS.plugin

import jax                                                                      # noqa: E402
import jax.numpy as jnp                                                         # noqa: E402
import numpy                                                                    # noqa: E402
from networks_jax import NETWORKS, SEQUENCE, VOCABULARY                         # noqa: E402


def register(library, options):
    from jax._src import xla_bridge
    values = {"cpu_device_count": 1} if "cpu" in os.path.basename(library) else {}
    for option in options:
        name, value = option.split("=", 1)
        values[name] = int(value) if value.lstrip("-").isdigit() else value
    xla_bridge.register_plugin("measured", library_path=library, options=values)


def invent(shape, limit):
    """Pseudo-random bytes, those of our bench."""
    numbers = numpy.arange(numpy.prod(shape)) * 7919 % 65521 % limit
    return numbers.astype(numpy.uint8).reshape(shape)


class Setting(settings.Setting):
    """A network as functions, its state on the device, and its compiled step."""

    def __init__(self, name, batch, mode):
        super().__init__(name, batch, "fp32", mode, "nhwc", len(os.sched_getaffinity(0)))
        init, forms, trained, self.optimizer, self.penalty = NETWORKS[name]
        self.logits = forms[mode]
        parameters, states = jax.jit(init)(jax.random.key(0))
        counted = sum(x.size for x in jax.tree.leaves(parameters))
        assert counted == trained, (name, counted, trained)
        if "lstm" in name or name == "char_gpt":
            self.x, self.y = (invent((batch, SEQUENCE), VOCABULARY) for _ in range(2))
        else:
            self.x, self.y = invent((batch, 28, 28, 1), 256), invent((batch,), 10)
        metrics = {"loss": jnp.zeros(()), "right": jnp.zeros(()), "rows": jnp.zeros(())}
        self.state = (parameters, states, self.optimizer.init(parameters), jnp.zeros(()), metrics,
                      jax.random.key_data(jax.random.key(1)))
        self.step = jax.jit(self.next, donate_argnums=0)

    def loss(self, parameters, states, x, y, key):
        logits, states = self.logits(parameters, states, x, key)
        y = y.astype(jnp.int32)
        log_p = jax.nn.log_softmax(logits)
        losses = -jnp.take_along_axis(log_p, y[..., None], -1)
        loss = losses.mean()
        if self.penalty:
            loss += self.penalty(parameters)
        return loss, (states, (logits.argmax(-1) == y).mean())

    def next(self, state, x, y):
        parameters, states, slots, t, metrics, key = state
        own = jax.random.fold_in(jax.random.wrap_key_data(key), t.astype(jnp.uint32))
        (loss, (states, right)), gradients = jax.value_and_grad(self.loss, has_aux=True)(
            parameters, states, x, y, own)
        parameters, slots = self.optimizer.update(parameters, gradients, slots, t)
        rows = float(x.shape[0])
        metrics = {"loss": metrics["loss"] + rows * loss, "right": metrics["right"] + rows * right,
                   "rows": metrics["rows"] + rows}
        return parameters, states, slots, t + 1.0, metrics, key

    def once(self):
        self.state = self.step(self.state, self.x, self.y)
        jax.block_until_ready(self.state)


def main():
    jax.config.update("jax_default_matmul_precision", "highest")
    if LIBRARY:
        register(LIBRARY, ARGUMENTS.option)
    device = jax.devices()[0]
    about = [f"{device.client.platform_version.splitlines()[0]}", f"{jax.device_count()} device"]
    print(f"jax {jax.__version__}; {'; '.join(about)}")
    rows = []
    for name, batch in itertools.product(ARGUMENTS.models, ARGUMENTS.batches):
        steps = [Setting(name, batch, mode) for mode in NETWORKS[name][1]
                 if not ARGUMENTS.modes or mode in ARGUMENTS.modes]
        for step in steps if ARGUMENTS.hlo else []:
            print(step.step.lower(step.state, step.x, step.y).as_text())
        rows += settings.measure(steps, ARGUMENTS.seconds)
        for step in steps:
            loss = step.state[4]["loss"] / step.state[4]["rows"]
            assert numpy.isfinite(loss), (name, step.mode, loss)
    settings.finish(ARGUMENTS, {"jax": jax.__version__, "about": about, "steps": rows})


if __name__ == "__main__":
    main()
