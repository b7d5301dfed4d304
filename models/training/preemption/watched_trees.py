"""Gradient boosting where rows stop being watched at any time: one ensemble of trees per interval between horizons, fitted to rates.

Within interval k the hazard is constant, exp(f_k(x)) for the whole of it. A row that was watched there for a share s of the interval, and lost
at its end or not (y), has the log-likelihood y f_k - s exp(f_k): that of a Poisson count y with exposure s (Friedman, "Piecewise
exponential models for survival data with covariates", Annals of Statistics 10, 1982). So a row that stopped being watched counts as far as it was.
"""

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from trees_model import LEAST_HAZARD, LEAST_LOSSES, SHAPE, STEP, TREES, monotone

LEAST_SHARE = 1e-6  # of an interval: what was lost at once was there


class Constant:
    """The hazard of an interval in which hardly anything was lost: drawn to `usual`, as by so many losses as would do for trees."""

    n_iter_ = 0

    def __init__(self, share, lost, usual):
        self.base = float(np.log((lost.sum() + LEAST_LOSSES) / (share.sum() + LEAST_LOSSES / usual)))

    def predict(self, x):
        return np.full(len(x), np.exp(self.base))


def there(k, share, lost):
    """Rows that were watched in interval k, for which share of it, and which were lost there."""
    at = (share[:, k] > 0) | lost[:, k]
    return at, np.maximum(share[at, k], LEAST_SHARE), lost[at, k].astype(float)


def fit(train, held, kinds, opts, say):
    """`train` and `held`: features, share watched and lost, [rows, intervals] (dataset.py). The ensembles, cut where validation is best."""
    models = []
    lengths = opts["lengths"]
    perS = max(LEAST_HAZARD, train[2].sum()) / (train[1] @ lengths).sum()
    for k in range(len(lengths)):
        at, share, lost = there(k, *train[1:])
        if lost.sum() < LEAST_LOSSES:
            models.append(Constant(share, lost, perS * lengths[k]))
            say(f"interval {k + 1}: {int(lost.sum())} of {len(lost)} lost, too few for trees")
            continue
        model = HistGradientBoostingRegressor(
            loss="poisson", max_iter=TREES, monotonic_cst=monotone(kinds), early_stopping=False, random_state=opts["seed"], **SHAPE
        ).fit(train[0][at], lost / share, sample_weight=share)
        kept, loss = best_length(model, k, held)
        del model._predictors[kept:]  # a shorter ensemble is the longer one's beginning
        models.append(model)
        perS = lost.sum() / share.sum() / lengths[k]
        say(f"interval {k + 1}: {int(lost.sum())} of {len(lost)} lost, {kept} trees, validation {loss:.4f}")
    return models


def best_length(model, k, held):
    """None at all where that is best: then the hazard is one number."""
    at, share, lost = there(k, *held[1:])
    if share.sum() == 0:
        return 0, np.nan

    def loss(rate):
        return float((share * rate - lost * np.log(rate)).sum() / share.sum())

    losses = [loss(np.exp(np.ravel(model._baseline_prediction)[0]) * np.ones(len(lost)))]
    for n, rate in enumerate(model.staged_predict(held[0][at]), 1):
        if n % STEP == 0:
            losses.append(loss(rate))
    best = int(np.argmin(losses))
    return best * STEP, losses[best]


def hazards(models, x):
    """Cumulative hazard added by each interval, [rows, horizons]."""
    return np.stack([np.ravel(model.predict(x)) for model in models], axis=1)
