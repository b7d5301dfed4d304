"""Trains the LSTM: AdamW, cosine decay, stopped early on the validation range."""

import jax
import numpy as np
import optax

from lstm_model import hazards, init, loss_terms

BATCH = 2048


def first_hazards(interval, lost, known, horizons):
    """Shares lost in each interval of those that reached it: where the output begins."""
    here = [np.sum(lost & (interval == k)) for k in range(horizons)]
    there = [np.sum((known > k) | (lost & (interval == k))) for k in range(horizons)]
    return [max(1e-4, n / max(1, of)) for n, of in zip(here, there)]


def fit(train, held, kinds, opts, say):
    """`train` and `held`: normalised features, interval, lost, known (dataset.py). The weights, and the losses by epoch."""
    x, interval, lost, known = train
    p = init(jax.random.key(opts["seed"]), kinds, opts["horizons"], first_hazards(*train[1:], opts["horizons"]))
    steps = opts["epochs"] * (len(x) // BATCH + 1)
    optimiser = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(optax.cosine_decay_schedule(4e-3, steps, 0.02), weight_decay=1e-3),
    )

    @jax.jit
    def loss(p, x, interval, lost, known):
        return loss_terms(hazards(p, x, kinds), interval, lost, known).mean()

    @jax.jit
    def step(p, state, *batch):
        value, gradient = jax.value_and_grad(loss)(p, *batch)
        update, state = optimiser.update(gradient, state, p)
        return optax.apply_updates(p, update), state, value

    state = optimiser.init(p)
    random = np.random.default_rng(opts["seed"])
    best, best_p, since, log = np.inf, p, 0, []
    for epoch in range(opts["epochs"]):
        order = random.permutation(len(x))
        sums = []
        for at in range(0, len(order) - BATCH + 1, BATCH) or [0]:
            chosen = order[at : at + BATCH]
            p, state, value = step(p, state, x[chosen], interval[chosen], lost[chosen], known[chosen])
            sums.append(float(value))
        judged = float(loss(p, *held))
        log.append({"epoch": epoch + 1, "train": float(np.mean(sums)), "validation": judged})
        say(f"epoch {epoch + 1}: loss {np.mean(sums):.4f}, validation {judged:.4f}")
        if judged < best - 1e-4:
            best, best_p, since = judged, p, 0
        else:
            since += 1
            if since >= opts["patience"]:
                break
    return best_p, log
