"""Trains the LSTM: AdamW, cosine decay, dropout, stopped early on the validation range."""

import jax
import numpy as np
import optax

from lstm_model import hazards, init, loss_terms

BATCH = 2048
RATE = 3e-3
DECAY = 1e-2
# Shares left out of a layer's values.
DROPPED = {"input": 0.1, "hidden": 0.15}


def first_hazards(interval, lost, known, horizons):
    """Shares lost in each interval of those that reached it: where the output begins."""
    here = [np.sum(lost & (interval == k)) for k in range(horizons)]
    there = [np.sum((known > k) | (lost & (interval == k))) for k in range(horizons)]
    return [max(1e-4, n / max(1, of)) for n, of in zip(here, there)]


def dropout(key):
    """A new draw at each call."""
    keys = iter(jax.random.split(key, 8))

    def dropped(layer, values):
        kept = 1 - DROPPED[layer]
        return values * jax.random.bernoulli(next(keys), kept, values.shape) / kept

    return dropped


def fit(train, held, kinds, opts, say):
    """`train` and `held`: normalised features, interval, lost, known (dataset.py). The weights, and the losses by epoch."""
    x, interval, lost, known = train
    p = init(jax.random.key(opts["seed"]), kinds, opts["horizons"], first_hazards(*train[1:], opts["horizons"]))
    steps = opts["epochs"] * (len(x) // BATCH + 1)
    optimiser = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(optax.cosine_decay_schedule(RATE, steps, 0.02), weight_decay=DECAY),
    )

    def loss(p, key, x, *seen):
        return loss_terms(hazards(p, x, kinds, dropout(key)), *seen).mean()

    @jax.jit
    def judge(p, x, *seen):
        return loss_terms(hazards(p, x, kinds), *seen).mean()

    @jax.jit
    def step(p, state, key, *batch):
        value, gradient = jax.value_and_grad(loss)(p, key, *batch)
        update, state = optimiser.update(gradient, state, p)
        return optax.apply_updates(p, update), state, value

    state = optimiser.init(p)
    random, key = np.random.default_rng(opts["seed"]), jax.random.key(opts["seed"] + 1)
    best, best_p, since, log = np.inf, p, 0, []
    for epoch in range(opts["epochs"]):
        order = random.permutation(len(x))
        sums = []
        for at in range(0, len(order) - BATCH + 1, BATCH) or [0]:
            chosen = order[at : at + BATCH]
            key, drawn = jax.random.split(key)
            p, state, value = step(p, state, drawn, x[chosen], interval[chosen], lost[chosen], known[chosen])
            sums.append(float(value))
        judged = float(judge(p, *held))
        log.append({"epoch": epoch + 1, "train": float(np.mean(sums)), "validation": judged})
        say(f"epoch {epoch + 1}: loss {np.mean(sums):.4f}, validation {judged:.4f}")
        if judged < best - 1e-4:
            best, best_p, since = judged, p, 0
        else:
            since += 1
            if since >= opts["patience"]:
                break
    return best_p, log
