"""Rays through a network, composed by products along them; a step that renders, with its loss and
optimizer in a compile of its own."""

import numpy as np
from harness import GradientTape, data, keras, report, start

layers, ops = keras.layers, keras.ops
BATCH_SIZE, H, W, NUM_SAMPLES, POS_ENCODE_DIMS = 2, 4, 4, 6, 3


def encode_position(x):
    positions = [x]
    for i in range(POS_ENCODE_DIMS):
        for fn in [ops.sin, ops.cos]:
            positions.append(fn(2.0 ** i * x))
    return ops.concatenate(positions, axis=-1)


def get_rays(height, width, focal, pose):
    i, j = ops.meshgrid(ops.arange(width, dtype="float32"), ops.arange(height, dtype="float32"),
                        indexing="xy")
    transformed_i = (i - width * 0.5) / focal
    transformed_j = (j - height * 0.5) / focal
    directions = ops.stack([transformed_i, -transformed_j, -ops.ones_like(i)], axis=-1)
    camera_matrix = pose[:3, :3]
    transformed_dirs = directions[..., None, :]
    ray_directions = ops.sum(transformed_dirs * camera_matrix, axis=-1)
    return ops.broadcast_to(pose[:3, -1], ops.shape(ray_directions)), ray_directions


def render_flat_rays(ray_origins, ray_directions, near, far, num_samples):
    t_vals = ops.linspace(near, far, num_samples)
    rays = ray_origins[..., None, :] + (ray_directions[..., None, :] * t_vals[..., None])
    rays_flat = encode_position(ops.reshape(rays, [-1, 3]))
    return rays_flat, ops.broadcast_to(t_vals, (H, W, num_samples))


def get_nerf_model(num_layers, num_pos):
    inputs = keras.Input(shape=(num_pos, 2 * 3 * POS_ENCODE_DIMS + 3))
    x = inputs
    for i in range(num_layers):
        x = layers.Dense(units=8, activation="relu")(x)
        if i % 4 == 0 and i > 0:
            x = layers.concatenate([x, inputs], axis=-1)
    return keras.Model(inputs=inputs, outputs=layers.Dense(units=4)(x))


def render_rgb_depth(model, rays_flat, t_vals, rand=True, train=True):
    predictions = model(rays_flat) if train else model.predict(rays_flat, verbose=0)
    predictions = ops.reshape(predictions, (BATCH_SIZE, H, W, NUM_SAMPLES, 4))
    rgb = ops.sigmoid(predictions[..., :-1])
    sigma_a = ops.relu(predictions[..., -1])
    delta = t_vals[..., 1:] - t_vals[..., :-1]
    delta = ops.concatenate(
        [delta, ops.broadcast_to(np.float32([1e10]), (BATCH_SIZE, H, W, 1))], axis=-1)
    alpha = 1.0 - ops.exp(-sigma_a * delta)
    transmittance = ops.cumprod(1.0 - alpha + 1e-10, axis=-1)
    transmittance = ops.roll(transmittance, 1, axis=-1)
    weights = alpha * transmittance
    rgb = ops.sum(weights[..., None] * rgb, axis=-2)
    return rgb, ops.sum(weights * t_vals, axis=-1)


class NeRF(keras.Model):
    def __init__(self, nerf_model):
        super().__init__()
        self.nerf_model = nerf_model

    def compile(self, optimizer, loss_fn):
        super().compile()
        self.optimizer, self.loss_fn = optimizer, loss_fn
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.psnr_metric = keras.metrics.Mean(name="psnr")

    def train_step(self, inputs):
        (images, rays) = inputs
        (rays_flat, t_vals) = rays
        with GradientTape() as tape:
            rgb, _ = render_rgb_depth(self.nerf_model, rays_flat, t_vals, rand=True)
            loss = self.loss_fn(images, rgb)
        trainable_variables = self.nerf_model.trainable_variables
        gradients = tape.gradient(loss, trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, trainable_variables))
        psnr = -10.0 * ops.log(ops.mean(ops.square(images - rgb), axis=(1, 2, 3))) / np.log(10.0)
        self.loss_tracker.update_state(loss)
        self.psnr_metric.update_state(psnr)
        return {"loss": self.loss_tracker.result(), "psnr": self.psnr_metric.result()}

    @property
    def metrics(self):
        return [self.loss_tracker, self.psnr_metric]


poses = data(BATCH_SIZE, 4, 4)
made = [render_flat_rays(*get_rays(H, W, 3.0, pose), 2.0, 6.0, NUM_SAMPLES) for pose in poses]
rays_flat, t_vals = [np.stack([ops.convert_to_numpy(m[i]) for m in made]) for i in (0, 1)]
images = abs(data(BATCH_SIZE, H, W, 3)) % 1


class Rays(keras.utils.PyDataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        return images, (rays_flat, t_vals)


nerf_model = start(get_nerf_model(6, H * W * NUM_SAMPLES))
model = NeRF(nerf_model)
model.compile(optimizer=keras.optimizers.Adam(), loss_fn=keras.losses.MeanSquaredError())
logs = model.fit(Rays(), epochs=3, verbose=0).history
rgb, depth = render_rgb_depth(nerf_model, rays_flat, t_vals, train=False)
report(depth=depth, rgb=rgb, rays=rays_flat, **logs)
