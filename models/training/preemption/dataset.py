"""What `ebb market dataset` wrote, mapped into memory."""

import datetime
import json
import pathlib

import numpy as np


COLUMNS = ["features", "lossS", "watchedS", "atMs", "pool", "source", "split", "bidKind"]


class Dataset:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        try:
            self.manifest = json.loads((self.folder / "manifest.json").read_text())
            for name in COLUMNS:
                setattr(self, name, np.load(self.folder / f"{name}.npy", mmap_mode="r"))
        except (OSError, ValueError) as error:
            raise SystemExit(f"{folder} holds no whole data set ({error}): draw one with `ebb market dataset`") from None
        if self.manifest["version"] != 1:
            raise SystemExit(f"{folder}: a data set of version {self.manifest['version']}, not 1")
        self.horizons = np.asarray(self.manifest["horizonsS"], np.float32)
        self.kinds = self.manifest["kinds"]
        # Rows are watched as far as something was held, not up to a horizon: what is not known of them is no random part.
        self.is_censored = self.manifest.get("censored", False)

    def lengths(self):
        """Of the intervals between horizons, seconds."""
        return np.diff(self.horizons, prepend=0)

    def rows(self, split, source=None):
        chosen = np.asarray(self.split) == self.manifest["splits"].index(split)
        if source is not None:
            chosen &= np.asarray(self.source) == source
        return np.flatnonzero(chosen)

    def labels(self, rows):
        """Lost within each horizon, and whether that is known: both [rows, horizons].

        Known is what could be watched whatever came of it: to count losses near the end of a trace, where lives cannot be
        told, would make bids look worse than they were.
        """
        loss, watched = np.asarray(self.lossS)[rows], np.asarray(self.watchedS)[rows]
        lost = loss[:, None] <= self.horizons[None, :]
        left = (self.end_ms()[np.asarray(self.source)[rows]] - np.asarray(self.atMs)[rows]) / 1000
        return lost, (left[:, None] >= self.horizons[None, :]) & (lost | (watched[:, None] >= self.horizons[None, :]))

    def end_ms(self):
        ends = [datetime.datetime.fromisoformat(s["to"].replace("Z", "+00:00")) for s in self.manifest["sources"]]
        return np.array([end.timestamp() * 1000 for end in ends])

    def watched_shares(self, rows):
        """Of each interval, the share for which a row was watched, and whether it was lost there: both [rows, horizons]."""
        loss, watched = np.asarray(self.lossS)[rows], np.asarray(self.watchedS)[rows]
        begins = self.horizons - self.lengths()
        until = np.minimum(loss, watched)[:, None]
        share = np.clip((until - begins) / self.lengths(), 0, 1)
        return share, ((begins < loss[:, None]) | (begins == 0)) & (loss[:, None] <= self.horizons)

    def losses(self, rows):
        """How many different losses these rows tell of: rows of one time that something was held share their end."""
        loss = np.asarray(self.lossS)[rows]
        ends = np.asarray(self.atMs)[rows] + 1000 * loss
        return len(set(zip(np.asarray(self.pool)[rows][np.isfinite(loss)], np.round(ends[np.isfinite(loss)], -4))))

    def intervals(self, rows):
        """In which interval a bid was lost, whether it was, and how many intervals it is known to have survived."""
        loss, watched = np.asarray(self.lossS)[rows], np.asarray(self.watchedS)[rows]
        lost = loss[:, None] <= self.horizons[None, :]
        interval = np.minimum(np.sum(~lost, axis=1), len(self.horizons) - 1)
        is_lost = lost.any(axis=1)
        survived = np.where(is_lost, interval, np.sum(watched[:, None] >= self.horizons[None, :], axis=1))
        return interval.astype(np.int32), is_lost, survived.astype(np.int32)
