"""Trains and exports the preemption forecast: `npm run train:preemption -- --data DIR` (docs/forecast-training.md)."""

import argparse
import hashlib
import importlib.metadata
import json
import pathlib
import sys
import time

import numpy as np
import onnxruntime

import calibration
import export
import lstm_model
import lstm_training
import rivals
import trees_model
import watched_trees
from dataset import Dataset
from normalisation import Normalisation

LIBRARIES = ["jax", "numpy", "onnx", "onnxruntime", "optax", "scikit-learn"]
GOLDEN_ROWS = 24
TOLERANCE = 1e-5


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="folder that `ebb market dataset` wrote")
    parser.add_argument("--output", required=True, help="folder of the version to write; its name is the version")
    parser.add_argument("--model", choices=["trees", "lstm"], default="trees", help="boosted trees, or the paper's network")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=24, help="of the LSTM at most; ends earlier when validation no longer gains")
    parser.add_argument("--patience", type=int, default=6, help="epochs without gain")
    parser.add_argument("--rows", type=int, default=400_000, help="training rows at most, drawn by the seed")
    parser.add_argument("--rivals", type=pathlib.Path, help="folder to write what rivals answer to, for `npm run bench:forecast`")
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


def train_trees(data, train, held, norm, opts):
    """The ONNX model, what it should answer to rows by the program that fitted it, and a log."""
    of = watched_trees if data.is_censored else trees_model
    models = of.fit(train, held, data.kinds, {"seed": opts.seed, "horizons": len(data.horizons), "lengths": data.lengths()}, say)
    bends = calibration.calibrate(of.hazards(models, held[0]), *terms_of(data, held))

    def answers(x):
        return calibration.bent(of.hazards(models, x), bends)

    kept = [len(getattr(m, "_predictors", [])) for m in models]
    about = {"kind": "trees", "trees": kept, **trees_model.SHAPE}
    return export.trees(models, bends, data.kinds, "Exp" if data.is_censored else "Softplus"), answers, about


def terms_of(data, held):
    """The losses of validation rows by their hazards, and what holds their calibration."""
    if not data.is_censored:
        return lambda hazard: lstm_model.loss_terms(hazard, *held[1:]), calibration.PULL
    pull = calibration.pull_of(len(held[0]), held[2].sum(), data.losses(data.rows("validation")))
    return lambda hazard: lstm_model.watched_terms(hazard, *held[1:]), pull


def train_lstm(data, train, held, norm, opts):
    scaled = [(norm(part[0]), *part[1:]) for part in (train, held)]
    of = {"seed": opts.seed, "horizons": len(data.horizons), "epochs": opts.epochs, "patience": opts.patience}
    p, log = lstm_training.fit(*scaled, data.kinds, of, say)
    bends = calibration.calibrate(lstm_model.hazards(p, scaled[1][0], data.kinds), *terms_of(data, held))

    def answers(x):
        return calibration.bent(np.asarray(lstm_model.hazards(p, norm(x), data.kinds)), bends)

    scale = {name: np.asarray(value).tolist() for name, value in norm.constants().items()}
    about = {"kind": "lstm", "epochs": log, "normalisation": scale}
    return export.lstm(p, norm.constants(), bends, data.kinds), answers, about


def rows_of(data, rows):
    seen = data.watched_shares(rows) if data.is_censored else data.intervals(rows)
    return (np.asarray(data.features[rows]), *seen)


def golden_of(data, answers):
    """Rows of validation and what the program that trained answers: another one than the one that serves."""
    rows = data.rows("validation")
    x = np.asarray(data.features[rows[:: max(1, len(rows) // GOLDEN_ROWS)][:GOLDEN_ROWS]])
    curve = -np.expm1(-np.cumsum(answers(x), axis=1))
    return {"tolerance": TOLERANCE, "inputs": x.tolist(), "outputs": curve.tolist()}


def check_parity(model, golden):
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    answered = session.run(None, {export.INPUT: np.asarray(golden["inputs"], np.float32)})[0]
    worst = float(np.max(np.abs(answered - np.asarray(golden["outputs"]))))
    if not worst <= TOLERANCE:
        raise SystemExit(f"the exported model differs from the trained one by {worst:.2g}, more than {TOLERANCE}")


def main():
    opts = options()
    began = time.process_time()
    data = Dataset(opts.data)
    rows = training_rows(data, opts.rows, opts.seed)
    train, held = rows_of(data, rows), rows_of(data, data.rows("validation"))
    norm = Normalisation(train[0])
    say(f"{len(rows)} bids to train on, {len(held[0])} to validate")
    trained = train_trees if opts.model == "trees" else train_lstm
    model, answers, about = trained(data, train, held, norm, opts)
    golden = golden_of(data, answers)
    check_parity(model, golden)
    write(pathlib.Path(opts.output), model, golden, manifest_of(data, opts, model, {**about, "rows": len(rows)}))
    say(f"{time.process_time() - began:.0f} s of processor time, {len(model) / 1000:.0f} kB")
    if opts.rivals is not None:
        rivals.answers(data, rows, norm.scaled, {"seed": opts.seed, "folder": opts.rivals}, say)


def manifest_of(data, opts, model, about):
    of = data.manifest
    plan = {name: of["plan"][name] for name in ["seed", "instants", "bidsPerInstant", "points"] if name in of["plan"]}
    return {
        "name": of.get("risk", "preemption"),
        "version": pathlib.Path(opts.output).name,
        "sha256": hashlib.sha256(model).hexdigest(),
        "opset": export.OPSET,
        "input": {"name": export.INPUT, "width": len(of["features"]), "features": of["features"]},
        **({"pools": trained_pools(data)} if of.get("risk") == "capacity" else {}),
        "output": {"name": export.OUTPUT, "width": len(data.horizons), "horizonsS": [int(h) for h in data.horizons]},
        "training": {
            "seed": opts.seed,
            **about,
            "dataset": {**plan, "sha256": of["sha256"]},
            "sources": [{k: s[k] for k in ["name", "sha256", "from", "validationFrom", "testFrom", "to"]} for s in of["sources"]],
            "libraries": {name: importlib.metadata.version(name) for name in LIBRARIES},
        },
    }


def trained_pools(data):
    """The pools that it may be asked about: not those that were held out."""
    return sorted({data.manifest["pools"][i] for i in np.unique(np.asarray(data.pool)[data.rows("train")])})


def write(folder, model, golden, manifest):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model)
    for name, value in [("manifest", manifest), ("golden", golden)]:
        (folder / f"{name}.json").write_text(json.dumps(value, indent=1) + "\n")


main()
