"""What the forecasts are compared with at one hour: the paper's other classifiers, and one forecast with fewer features.

Each is fitted to the label "lost within the hour", as in Tributary, section 2.4.7. What they answer goes into a file that
`npm run bench:forecast` judges beside the models, by one and the same code.
"""

import json
import time

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

import trees_model

HORIZON_S = 3600
ROWS = 150_000  # to fit at most
JUDGED = ["validation", "test", "unseen"]

# Groups of features, in the order in which the ablation adds them (lib/market/features/names.ts).
PAPER = ["priceUsd", "mean24hUsd", "changes1h", "range2mUsd", "range10mUsd", "range30mUsd", "weekday*", "timeOfDay*", "working*", "before*", "bidDeltaUsd", "bidDeltaUsdLog"]
ADDED = {
    "relative to on-demand, day and week": ["onDemandUsdLog", "priceRatioLog", "mean*RatioLog", "range1hRatioLog", "range24hRatioLog", "range7dRatioLog", "sinceChangeSLog", "changes24hLog", "changes7dLog", "knownHLog", "bidDeltaRatioLog", "bidRatioLog"],
    "neighbours": ["zones*", "family*"],
    "last crossing and calm hours": ["bidDeltaRange24hLog", "bidAbove*", "bidSinceAboveHLog", "bidCalm*"],
}


def matches(name, pattern):
    head, star, tail = pattern.partition("*")
    return name == pattern if not star else name.startswith(head) and name.endswith(tail)


def columns(features, patterns):
    return [i for i, name in enumerate(features) if any(matches(name, pattern) for pattern in patterns)]


def ablations(features):
    """What has been added, and the columns that there are then."""
    patterns = list(PAPER)
    sets = {"the paper's": columns(features, patterns)}
    for name, more in ADDED.items():
        patterns += more
        sets[f"+ {name}"] = columns(features, patterns)
    if sorted(sets[f"+ {name}"]) != list(range(len(features))):
        raise SystemExit("the groups of features in rivals.py do not cover the features of the data set")
    return sets


def classifiers(seed, kinds):
    """By name: a model, whether it is given normalised features, and which columns."""
    width = sum(kinds.values())
    found = {
        "logistic regression": (LogisticRegression(max_iter=200, random_state=seed), True, range(width)),
        "perceptron": (MLPClassifier((48, 48), early_stopping=True, max_iter=40, batch_size=1024, random_state=seed), True, range(width)),
        "boosting, 1 h label": (boosting(seed, trees_model.monotone(kinds)), False, range(width)),
    }
    return found


def boosting(seed, falls):
    shape = {**trees_model.SHAPE, "max_iter": trees_model.TREES}
    return HistGradientBoostingClassifier(monotonic_cst=falls, early_stopping=False, random_state=seed, **shape)


def answers(data, rows, normalised, opts, say):
    """Fits all and writes `rivals.npy`, [rows of the data set, names], NaN where nobody is judged, and `rivals.json`."""
    if len(rows) > ROWS:
        rows = np.sort(np.random.default_rng(opts["seed"]).choice(rows, ROWS, replace=False))
    at = data.horizons.tolist().index(HORIZON_S)
    lost, known = data.labels(rows)
    rows, y = rows[known[:, at]], lost[known[:, at], at]
    x = np.asarray(data.features[rows])
    judged = np.sort(np.concatenate([data.rows(split) for split in JUDGED]))
    asked = np.asarray(data.features[judged])
    fitted = classifiers(opts["seed"], data.kinds)
    falls = trees_model.monotone(data.kinds)
    for name, chosen in ablations(data.manifest["features"]).items():
        fitted[f"ablation: {name}"] = (boosting(opts["seed"], falls[chosen]), False, chosen)
    found = np.full((len(data.pool), len(fitted)), np.nan, np.float32)
    for i, (name, (model, scaled, chosen)) in enumerate(fitted.items()):
        began = time.process_time()
        model.fit((normalised(x) if scaled else x)[:, chosen], y)
        found[judged, i] = model.predict_proba((normalised(asked) if scaled else asked)[:, chosen])[:, 1]
        say(f"{name}: {time.process_time() - began:.0f} s of processor time")
    opts["folder"].mkdir(parents=True, exist_ok=True)
    np.save(opts["folder"] / "rivals.npy", found)
    about = {"dataset": data.manifest["sha256"]["features"], "horizonS": HORIZON_S, "names": list(fitted), "seed": opts["seed"], "rows": len(rows)}
    (opts["folder"] / "rivals.json").write_text(json.dumps(about, indent=1) + "\n")
