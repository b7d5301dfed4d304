"""Gradient boosting as a survival curve: one ensemble of trees per interval between horizons.

Ensemble k gives the logit of being lost in interval k by who has lived until then (a discrete hazard), fitted to the bids that
were seen to reach that interval; P(lost within h_k) = 1 - prod_{i <= k} (1 - hazard_i). Each split on a feature of the bid is
constrained so that the hazard never rises with it (no such feature falls when the bid rises: lib/market/features/names.ts): the
curve never falls in the horizon and never rises with the bid, for any trees.
"""

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

SHAPE = {
    "learning_rate": 0.08,
    "max_leaf_nodes": 24,
    "min_samples_leaf": 200,
    "l2_regularization": 20.0,
    "max_features": 0.3,
}
TREES = 180  # per interval at most; how many are kept is chosen on validation
STEP = 10  # ensembles are judged each so many trees
LEAST_LOSSES = 20  # in an interval: with fewer there is nothing to tell apart, and its hazard is one number
LEAST_HAZARD = 1e-6


def monotone(kinds):
    """-1 for features of the bid, 0 for the others: what scikit-learn calls monotonic constraints."""
    falls = np.zeros(sum(kinds.values()), int)
    falls[len(falls) - kinds["bid"] :] = -1
    return falls


class Constant:
    """The hazard of an interval in which hardly anything was lost."""

    n_iter_ = 0

    def __init__(self, y):
        share = np.clip(y.mean() if len(y) else 0.0, LEAST_HAZARD, 1 - LEAST_HAZARD)
        self.base = float(np.log(share / (1 - share)))

    def decision_function(self, x):
        return np.full(len(x), self.base)


def reached(k, interval, lost, known):
    """Bids that are known to have reached interval k and what became of them there; and which of them were lost in it."""
    at = (known > k) | (lost & (interval == k))
    return at, (lost & (interval == k))[at]


def fit(train, held, kinds, opts, say):
    """`train` and `held`: features, interval, lost, known (dataset.py). The ensembles, cut where validation is best."""
    models = []
    for k in range(opts["horizons"]):
        at, y = reached(k, *train[1:])
        if min(y.sum(), (~y).sum()) < LEAST_LOSSES:
            models.append(Constant(y))
            say(f"interval {k + 1}: {y.sum()} of {len(y)} lost, too few for trees")
            continue
        model = HistGradientBoostingClassifier(
            max_iter=TREES, monotonic_cst=monotone(kinds), early_stopping=False, random_state=opts["seed"], **SHAPE
        ).fit(train[0][at], y)
        kept, loss = best_length(model, k, held)
        del model._predictors[kept:]  # a shorter ensemble is the longer one's beginning
        models.append(model)
        say(f"interval {k + 1}: {y.sum()} of {len(y)} lost, {kept} trees, validation {loss:.4f}")
    return models


def best_length(model, k, held):
    at, y = reached(k, *held[1:])
    losses = [np.inf]
    for n, logit in enumerate(model.staged_decision_function(held[0][at]), 1):
        if n % STEP == 0:
            losses.append(float(np.mean(np.logaddexp(0, logit.ravel()) - y * logit.ravel())))
    best = int(np.argmin(losses))
    return best * STEP, losses[best]


def hazards(models, x):
    """Cumulative hazard added by each interval, [rows, horizons]: -log(1 - P(lost in it))."""
    return np.logaddexp(0, np.stack([np.ravel(model.decision_function(x)) for model in models], axis=1))
