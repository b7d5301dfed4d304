"""Trains, judges and exports the pre-emption forecast: `npm run train:preemption -- --data DIR` (docs/forecast.md)."""

import argparse
import hashlib
import importlib.metadata
import json
import pathlib
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
import optax

import baselines
import export
from dataset import Dataset
from scores import scores, with_intervals
from survival_model import curve, hazards, init, loss_terms

BATCH = 2048
DAY_MS = 86_400_000
JUDGED = 2  # the horizon that rivals are compared at: 1 h, the paper's
LIBRARIES = ["jax", "numpy", "onnx", "onnxruntime", "optax", "scikit-learn"]


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="folder that `ebb market dataset` wrote")
    parser.add_argument("--output", required=True, help="folder of the version to write; its name is the version")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=40, help="at most; ends earlier when validation no longer gains")
    parser.add_argument("--patience", type=int, default=6, help="epochs without gain")
    parser.add_argument("--rows", type=int, default=400_000, help="training rows at most, drawn by the seed")
    parser.add_argument("--no-baselines", action="store_true", help="train and export only")
    return parser.parse_args()


def say(text):
    print(text, file=sys.stderr, flush=True)


def training_rows(data, limit, seed):
    rows = data.rows("train")
    if len(rows) > limit:
        rows = np.sort(np.random.default_rng(seed).choice(rows, limit, replace=False))
    if len(rows) == 0 or len(data.rows("validation")) == 0:
        raise SystemExit("the data set has no rows to train or to validate on: give `ebb market dataset` longer histories")
    return rows


def normalisation(x):
    std = x.std(axis=0, dtype=np.float64)
    return {
        "mean": x.mean(axis=0, dtype=np.float64).astype(np.float32),
        "std": np.where(std < 1e-6, 1.0, std).astype(np.float32),
        "clip": np.float32(8.0),
    }


def normalised(x, norm):
    return np.clip((x - norm["mean"]) / norm["std"], -norm["clip"], norm["clip"])


def split_arrays(data, rows, norm):
    return (normalised(np.asarray(data.features[rows]), norm), *data.intervals(rows))


def train(data, opts, rows, norm):
    kinds = data.kinds
    x, interval, lost, known = split_arrays(data, rows, norm)
    held = split_arrays(data, data.rows("validation"), norm)
    first = [
        max(1e-4, np.sum(lost & (interval == k)) / max(1, np.sum((known > k) | (lost & (interval == k)))))
        for k in range(len(data.horizons))
    ]
    p = init(jax.random.key(opts.seed), kinds, len(data.horizons), first)
    steps = opts.epochs * (len(rows) // BATCH + 1)
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
    random = np.random.default_rng(opts.seed)
    best, best_p, since, log = np.inf, p, 0, []
    for epoch in range(opts.epochs):
        order = random.permutation(len(rows))
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
            if since >= opts.patience:
                break
    return best_p, log


def calibrate(data, p, norm):
    """Per interval h -> factor * h^power, fitted on validation: keeps the curve rising in time and falling in the bid."""
    x, interval, lost, known = split_arrays(data, data.rows("validation"), norm)
    hazard = jnp.maximum(hazards(p, x, data.kinds), 1e-12)

    @jax.jit
    def loss(q):
        bent = jnp.exp(q["factor"] + jnp.exp(q["power"]) * jnp.log(hazard))
        # Held near 1: one validation range does not say more than that.
        pull = 1e-3 * sum(jnp.sum(v**2) for v in q.values())
        return loss_terms(bent, interval, lost, known).mean() + pull

    q = {"factor": jnp.zeros(len(data.horizons)), "power": jnp.zeros(len(data.horizons))}
    optimiser = optax.adam(0.02)
    state = optimiser.init(q)
    for _ in range(300):
        update, state = optimiser.update(jax.grad(loss)(q), state)
        q = optax.apply_updates(q, update)
    return {name: np.asarray(jnp.exp(value), np.float32) for name, value in q.items()}


def asked(session, x):
    parts = [session.run(None, {export.INPUT: x[at : at + 8192]})[0] for at in range(0, len(x), 8192)]
    return np.concatenate(parts)


def rivals(data, opts, rows, norm):
    """Chances of being lost within the hour, by rival, as functions of rows."""
    rows = rows if len(rows) <= 120_000 else np.sort(np.random.default_rng(opts.seed).choice(rows, 120_000, replace=False))
    lost, known = data.labels(rows)
    rows, y = rows[known[:, JUDGED]], lost[known[:, JUDGED], JUDGED]
    x = np.asarray(data.features[rows])
    column = data.manifest["features"].index("bidDeltaUsdLog")
    median = baselines.HistoricalMedian(column).fit(x, y, np.asarray(data.pool)[rows], np.asarray(data.atMs)[rows])
    found = {"historical median": lambda r: median.predict(np.asarray(data.features[r]), np.asarray(data.pool)[r])}
    models = {
        "logistic regression": (baselines.logistic(opts.seed), lambda x: normalised(x, norm)),
        "perceptron": (baselines.perceptron(opts.seed), lambda x: normalised(x, norm)),
        "gradient boosting": (baselines.boosting(opts.seed, data.kinds, x.shape[1]), lambda x: x),
    }
    for name, (model, prepare) in models.items():
        began = time.process_time()
        model.fit(prepare(x), y)
        say(f"{name}: {time.process_time() - began:.0f} s of processor time")
        found[name] = lambda r, m=model, f=prepare: m.predict_proba(f(np.asarray(data.features[r])))[:, 1]
    return found


def judge(data, forecasts):
    """Per source and split, at one hour: every bid, and the paper's deltas alone."""
    table = []
    for s, source in enumerate(data.manifest["sources"]):
        for split in ["validation", "test", "unseen"]:
            rows = data.rows(split, s)
            if len(rows) == 0:
                continue
            lost, known = data.labels(rows)
            rows, y = rows[known[:, JUDGED]], lost[known[:, JUDGED], JUDGED]
            days = np.asarray(data.atMs)[rows] // DAY_MS
            paper = np.asarray(data.bidKind)[rows] == 0
            for name, forecast in forecasts.items():
                p = np.asarray(forecast(rows), np.float64)
                for protocol, of in [("all bids", np.ones(len(rows), bool)), ("paper", paper)]:
                    result = with_intervals(p[of], y[of], days[of])
                    table.append({"source": source["name"], "split": split, "bids": protocol, "forecast": name, **result})
    return table


def horizons_table(data, of_model):
    """Calibration of every point of the curve."""
    table = []
    for s, source in enumerate(data.manifest["sources"]):
        for split in ["test", "unseen"]:
            rows = data.rows(split, s)
            if len(rows) == 0:
                continue
            lost, known = data.labels(rows)
            p = of_model(rows).astype(np.float64)
            for k, horizon in enumerate(data.horizons):
                of = known[:, k]
                if of.any():
                    table.append({"source": source["name"], "split": split, "horizonS": int(horizon), "rows": int(of.sum()), **scores(p[of, k], lost[of, k])})
    return table


def main():
    opts = options()
    began = time.process_time()
    data = Dataset(opts.data)
    rows = training_rows(data, opts.rows, opts.seed)
    norm = normalisation(np.asarray(data.features[rows]))
    say(f"{len(rows)} bids to train on, {len(data.rows('validation'))} to validate")
    p, log = train(data, opts, rows, norm)
    calibration = calibrate(data, p, norm)
    model = export.onnx_model(p, norm, calibration, data.kinds)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])

    def of_model(r):
        return asked(session, np.asarray(data.features[r]))

    golden = golden_rows(data, p, norm, calibration)
    forecasts = {} if opts.no_baselines else rivals(data, opts, rows, norm)
    forecasts["LSTM"] = lambda r: of_model(r)[:, JUDGED]
    figures = {"atOneHour": judge(data, forecasts), "curve": horizons_table(data, of_model)}
    write(pathlib.Path(opts.output), data, {"model": model, "golden": golden, "figures": figures, "norm": norm, "log": log, "opts": opts, "rows": len(rows)})
    say(f"{time.process_time() - began:.0f} s of processor time")


def golden_rows(data, p, norm, calibration):
    """Rows of validation and what the weights answer in JAX: another program than the one that serves."""
    rows = data.rows("validation")
    rows = rows[:: max(1, len(rows) // 24)][:24]
    x = np.asarray(data.features[rows])
    hazard = hazards(p, normalised(x, norm), data.kinds)
    bent = calibration["factor"] * hazard ** calibration["power"]
    answers = np.asarray(-jnp.expm1(-jnp.cumsum(bent, axis=1)))
    return {"tolerance": 1e-5, "inputs": x.tolist(), "outputs": answers.tolist()}


def write(folder, data, of):
    opts, manifest = of["opts"], data.manifest
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(of["model"])
    described = {
        "name": "preemption",
        "version": folder.name,
        "sha256": hashlib.sha256(of["model"]).hexdigest(),
        "opset": export.OPSET,
        "input": {"name": export.INPUT, "width": len(manifest["features"]), "features": manifest["features"]},
        "output": {"name": export.OUTPUT, "width": len(data.horizons), "horizonsS": [int(h) for h in data.horizons]},
        "training": {
            "seed": opts.seed,
            "rows": of["rows"],
            "epochs": len(of["log"]),
            "dataset": {"seed": manifest["plan"]["seed"], "instants": manifest["plan"]["instants"], "bidsPerInstant": manifest["plan"]["bidsPerInstant"], "sha256": manifest["sha256"]["features"]},
            "sources": [{k: s[k] for k in ["name", "sha256", "from", "validationFrom", "testFrom", "to"]} for s in manifest["sources"]],
            "libraries": {name: importlib.metadata.version(name) for name in LIBRARIES},
            "normalisation": {"mean": of["norm"]["mean"].tolist(), "std": of["norm"]["std"].tolist(), "clip": float(of["norm"]["clip"])},
        },
    }
    for name, value in [("manifest", described), ("golden", of["golden"]), ("figures", {**of["figures"], "epochs": of["log"]})]:
        (folder / f"{name}.json").write_text(json.dumps(value, indent=1) + "\n")


main()
