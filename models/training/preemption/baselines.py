"""The rivals, for one horizon: what the paper compares with, and gradient boosting, the honest one for tables."""

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

DAY_MS = 86_400_000


class HistoricalMedian:
    """Proteus, as Tributary describes it: the median over days of the share lost, by pool and bid delta."""

    def __init__(self, delta_column):
        self.delta_column = delta_column

    def bucket(self, x):
        return np.floor(x[:, self.delta_column] / np.log(10)).astype(int)  # decades of the delta

    def fit(self, x, y, pool, at_ms):
        bucket, day = self.bucket(x), (at_ms // DAY_MS).astype(int)
        self.by_pool = self.medians(y, [pool, bucket], day)
        self.by_bucket = self.medians(y, [bucket], day)
        return self

    def medians(self, y, keys, day):
        shares = {}
        order = np.lexsort([day, *keys])
        table = np.stack([*keys, day], axis=1)[order]
        starts = np.flatnonzero(np.r_[True, np.any(np.diff(table, axis=0) != 0, axis=1)])
        means = np.add.reduceat(y[order].astype(float), starts) / np.diff(np.r_[starts, len(y)])
        for row, share in zip(table[starts], means):
            shares.setdefault(tuple(row[:-1]), []).append(share)
        return {key: float(np.median(list_)) for key, list_ in shares.items()}

    def predict(self, x, pool):
        bucket = self.bucket(x)
        return np.array(
            [self.by_pool.get((p, b), self.by_bucket.get((b,), 0.0)) for p, b in zip(pool, bucket)], np.float64
        )


def logistic(seed):
    return LogisticRegression(max_iter=200, random_state=seed)


def perceptron(seed):
    return MLPClassifier((48, 48), early_stopping=True, max_iter=40, batch_size=1024, random_state=seed)


def boosting(seed, kinds, width):
    falls = np.zeros(width, int)
    falls[-kinds["bid"] :] = -1  # lost less often as the bid rises
    return HistGradientBoostingClassifier(
        max_iter=300, learning_rate=0.06, monotonic_cst=falls, early_stopping=False, random_state=seed
    )
