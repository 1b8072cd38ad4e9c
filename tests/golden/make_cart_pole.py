"""A cart and its pole, by Gymnasium's CartPole-v1. Writes cart_pole/states.safetensors: episodes
that begin with given states, their actions, and all states after each of them."""

import common
import gymnasium
import numpy as np

CASES = {   # the beginning, and how actions are chosen
    "left": ((0.0, 0.0, 0.0, 0.0), lambda i, s: 0),
    "right": ((0.03125, -0.015625, 0.046875, 0.0), lambda i, s: 1),
    "turns": ((-0.03125, 0.046875, -0.015625, 0.03125), lambda i, s: i % 2),
    "upright": ((0.015625, 0.0, 0.03125, -0.046875), lambda i, s: int(s[2] + 0.3 * s[3] > 0.0)),
    "balanced": ((0.046875, -0.03125, 0.0, 0.015625),
                 lambda i, s: int(0.02 * s[0] + 0.1 * s[1] + s[2] + 0.5 * s[3] > 0.0)),
    "out": ((2.375, 0.5, 0.0, 0.0), lambda i, s: 1),
}


def main():
    arrays, cases = {}, {}
    for name, (start, choose) in CASES.items():
        env = gymnasium.make("CartPole-v1")
        env.reset(seed=0)
        env.unwrapped.state = np.array(start)
        states, actions, ended, state = [], [], False, start
        while not ended:
            actions.append(choose(len(actions), state))
            _, reward, fallen, cut, _ = env.step(actions[-1])
            assert reward == 1.0
            state = env.unwrapped.state
            states.append(np.array(state))
            ended = fallen or cut
        arrays |= {f"{name}/start": np.array(start), f"{name}/states": np.array(states),
                   f"{name}/actions": np.array(actions, np.uint8)}
        cases[name] = {"fallen": bool(fallen), "steps": len(actions)}
        print(name, cases[name])
    out = common.folder("cart_pole")
    with (out / "VERSIONS").open("a") as versions:
        versions.write(f"gymnasium {gymnasium.__version__}\n")
    common.write_arrays(out / "states.safetensors", arrays, cases)


main()
