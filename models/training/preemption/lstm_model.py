"""The forecast itself: a survival curve over the horizons that cannot fall in time nor rise with the bid.

Each feature comes in twice (normalisation.py): scaled, and as its rank, because most are heavy-tailed and markets differ in their scale. An LSTM
reads the ten prices; its last state and the pool's features give a context c. Per horizon k the cumulative hazard is

    H_k(c, b) = sum_{i <= k} softplus(a_i(c) - sum_j softplus(v_ij(c)) * tanh(softplus(W_j) . b + d_j))

with b the features of the bid, none of which falls when the bid rises (lib/market/features/names.ts). P(lost within h_k) =
1 - exp(-H_k): every increment is positive, so the curve never falls in the horizon; every path from b has weights of one sign,
so it never rises with the bid. Both hold for any weights, not only for trained ones.
"""

import jax
import jax.numpy as jnp
import numpy as np

UNITS = 24  # of the LSTM
WIDTH = 48  # of the context
RAMPS = 12  # monotone functions of the bid
STEPS = 10  # prices in the sequence
VIEWS = 2  # of each feature


def init(key, kinds, horizons, first_hazard):
    """Weights. `first_hazard`: hazards of each interval in the training data, where the output begins."""
    pool, bid = VIEWS * kinds["pool"], VIEWS * kinds["bid"]
    keys = jax.random.split(key, 8)

    def dense(k, n, m, scale=1.0):
        return scale * jax.random.normal(k, (n, m)) / np.sqrt(n)

    bias = jnp.zeros(4 * UNITS).at[2 * UNITS : 3 * UNITS].set(1.0)  # the forget gate begins open
    return {
        "W": dense(keys[0], 2 * VIEWS, 4 * UNITS),
        "R": dense(keys[1], UNITS, 4 * UNITS),
        "B": bias,
        "C1": dense(keys[2], UNITS + pool, WIDTH),
        "c1": jnp.zeros(WIDTH),
        "C2": dense(keys[3], WIDTH, WIDTH),
        "c2": jnp.zeros(WIDTH),
        "A": dense(keys[4], WIDTH, horizons, 0.1),
        "a": jnp.log(jnp.expm1(jnp.asarray(first_hazard))),
        "V": dense(keys[5], WIDTH, horizons * RAMPS, 0.1),
        "v": jnp.full(horizons * RAMPS, -1.5),
        "M": jax.random.normal(keys[6], (bid, RAMPS)) * 0.5 - 1.5,
        "m": jax.random.normal(keys[7], (RAMPS,)),
    }


def lstm(p, sequence):
    """The last state over [rows, STEPS, 2 * VIEWS]; gates in ONNX's order: input, output, forget, cell."""

    def step(state, x):
        h, c = state
        i, o, f, g = jnp.split(x @ p["W"] + h @ p["R"] + p["B"], 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    zero = jnp.zeros((sequence.shape[0], UNITS))
    (h, _), _ = jax.lax.scan(step, (zero, zero), jnp.swapaxes(sequence, 0, 1))
    return h


def hazards(p, x, kinds, dropped=None):
    """Hazard of each interval between horizons, [rows, horizons], from normalised features, [rows, VIEWS, features].

    `dropped(layer, values)`: leaves some of them out, in training alone.
    """
    drop = dropped or (lambda _, values: values)
    pool, sequence = kinds["pool"], kinds["sequence"]
    shared = x[:, :, :pool].reshape(len(x), -1)
    prices = x[:, :, pool : pool + sequence].reshape(-1, VIEWS, STEPS, 2)
    bid = x[:, :, pool + sequence :].reshape(len(x), -1)
    read = lstm(p, jnp.swapaxes(prices, 1, 2).reshape(-1, STEPS, 2 * VIEWS))
    context = drop("input", jnp.concatenate([read, shared], axis=1))
    context = drop("hidden", jnp.tanh(context @ p["C1"] + p["c1"]))
    context = drop("hidden", jnp.tanh(context @ p["C2"] + p["c2"]))
    ramps = jnp.tanh(bid @ jax.nn.softplus(p["M"]) + p["m"])
    level = context @ p["A"] + p["a"]
    slopes = jax.nn.softplus(context @ p["V"] + p["v"]).reshape(-1, p["a"].shape[0], RAMPS)
    return jax.nn.softplus(level - jnp.einsum("rkj,rj->rk", slopes, ramps))


def watched_terms(hazard, share, lost):
    """Negative log-likelihood per row of what was watched for a share of each interval and lost in it or not (watched_trees.py)."""
    return jnp.sum(share * hazard - jnp.where(lost, jnp.log(hazard), 0.0), axis=1)


def loss_terms(hazard, interval, lost, known):
    """Negative log-likelihood of interval-censored survival per row.

    `interval`: in which interval it was lost, where `lost`; `known`: how many intervals it is known to have survived.
    """
    k = jnp.arange(hazard.shape[1])[None, :]
    survived = jnp.sum(jnp.where(k < known[:, None], hazard, 0.0), axis=1)
    here = jnp.take_along_axis(hazard, interval[:, None], axis=1)[:, 0]
    return survived - jnp.where(lost, jnp.log(-jnp.expm1(-here) + 1e-12), 0.0)
