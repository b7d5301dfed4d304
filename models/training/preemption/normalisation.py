"""Features as a network takes them: scaled by mean and deviation, and as ranks among the training rows."""

import numpy as np

KNOTS = 16
CLIP = 8.0
# A rank spreads as far as a uniform distribution of deviation 1.
SPREAD = 2 * np.sqrt(3)
# Of a deviation: what lies closer together is one value.
LEAST_STEP = 1e-3


class Normalisation:
    def __init__(self, x):
        std = x.std(axis=0, dtype=np.float64)
        self.mean = x.mean(axis=0, dtype=np.float64).astype(np.float32)
        self.std = np.where(std < 1e-6, 1.0, std).astype(np.float32)
        knots = np.quantile(x, np.linspace(0, 1, KNOTS + 1), axis=0).T
        self.low = knots[:, :-1].astype(np.float32)
        self.step = np.maximum(np.diff(knots, axis=1), LEAST_STEP * self.std[:, None]).astype(np.float32)

    def scaled(self, x):
        """[rows, features]."""
        return np.clip((x - self.mean) / self.std, -CLIP, CLIP)

    def rank(self, x):
        """[rows, features]: linear between KNOTS quantiles, and so rising where the feature rises."""
        share = sum(np.clip((x - self.low[:, k]) / self.step[:, k], 0, 1) for k in range(KNOTS)) / KNOTS
        return (share - np.float32(0.5)) * np.float32(SPREAD)

    def __call__(self, x):
        """[rows, 2, features]."""
        return np.stack([self.scaled(x), self.rank(x)], axis=1).astype(np.float32)

    def constants(self):
        return {"mean": self.mean, "std": self.std, "low": self.low, "step": self.step}
