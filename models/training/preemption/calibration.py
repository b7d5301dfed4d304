"""Per interval h -> factor * h^power, fitted to the validation range: keeps the curve rising in time and falling in the bid."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

LEAST = 1e-12


def bent(hazard, calibration):
    return calibration["factor"] * np.maximum(hazard, LEAST) ** calibration["power"]


# Held near 1: one validation range does not say more than that.
PULL = 1e-3
# By how much the logarithms of both numbers may well differ from 0, where few losses are told of by many rows.
SPREAD = 0.5


def pull_of(rows, lost, losses):
    """What holds both numbers near 1 where `losses` different losses are what `lost` of so many rows tell of: a normal prior."""
    return max(PULL, lost / rows / max(1, losses) / (2 * SPREAD**2))


def calibrate(hazard, terms, pull=PULL):
    """`terms`: hazards to the loss of each row."""
    hazard = jnp.log(jnp.maximum(jnp.asarray(hazard, jnp.float32), LEAST))

    @jax.jit
    def loss(q):
        held = pull * sum(jnp.sum(v**2) for v in q.values())
        return terms(jnp.exp(q["factor"] + jnp.exp(q["power"]) * hazard)).mean() + held

    q = {"factor": jnp.zeros(hazard.shape[1]), "power": jnp.zeros(hazard.shape[1])}
    optimiser = optax.adam(0.02)
    state = optimiser.init(q)
    gradient = jax.jit(jax.grad(loss))
    for _ in range(300):
        update, state = optimiser.update(gradient(q), state)
        q = optax.apply_updates(q, update)
    return {name: np.asarray(jnp.exp(value), np.float32) for name, value in q.items()}
