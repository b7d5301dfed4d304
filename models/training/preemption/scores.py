"""How good probabilities are. Intervals are bootstraps over days, because bids of one day share its spikes."""

import numpy as np
from sklearn.metrics import average_precision_score


def scores(p, y):
    said = p >= 0.5
    hit = np.sum(said & y)
    f1 = 2 * hit / max(1, 2 * hit + np.sum(said & ~y) + np.sum(~said & y))
    return {
        "accuracy": float(np.mean(said == y)),
        "f1": float(f1),
        "aucPr": float(average_precision_score(y, p)) if y.any() else None,
        "brier": float(np.mean((p - y) ** 2)),
        "ece": calibration_error(p, y),
        "said": float(p.mean()),
        "was": float(y.mean()),
    }


def calibration_error(p, y, bins=10):
    """Expected calibration error over bins of equal width."""
    at = np.minimum((p * bins).astype(int), bins - 1)
    count = np.bincount(at, minlength=bins)
    gap = np.abs(np.bincount(at, p, bins) - np.bincount(at, y.astype(float), bins))
    return float(gap.sum() / max(1, count.sum()))


def with_intervals(p, y, days, names=("accuracy", "f1", "brier", "ece"), draws=200, seed=1):
    found = scores(p, y)
    random = np.random.default_rng(seed)
    unique, at = np.unique(days, return_inverse=True)
    of_day = [np.flatnonzero(at == d) for d in range(len(unique))]
    seen = {name: [] for name in names}
    for _ in range(draws):
        rows = np.concatenate([of_day[d] for d in random.integers(0, len(unique), len(unique))])
        again = scores_quick(p[rows], y[rows])
        for name in names:
            seen[name].append(again[name])
    low_high = {name: [float(q) for q in np.quantile(values, [0.025, 0.975])] for name, values in seen.items()}
    return {**found, "intervals": low_high, "rows": int(len(p)), "days": int(len(unique))}


def scores_quick(p, y):
    said = p >= 0.5
    hit = np.sum(said & y)
    return {
        "accuracy": np.mean(said == y),
        "f1": 2 * hit / max(1, 2 * hit + np.sum(said & ~y) + np.sum(~said & y)),
        "brier": np.mean((p - y) ** 2),
        "ece": calibration_error(p, y),
    }
