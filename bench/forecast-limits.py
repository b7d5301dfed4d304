"""Could the trained forecast of prices be calibrated better, and how much more can be known at all? On the validation range alone (docs/results.md).

    PYTHON bench/forecast-limits.py DATASET LSTM TREES

with the Python that `npm run train:preemption` makes, the data set that it draws, and the folders of two versions. The first tells what came of
other links of calibration, fitted on one half of the validation range's days and judged on the other. The second compares the
accuracy within the hour that was reached with what the forecast itself expects, the mean of max(p, 1 - p), and with the bound that the error
of the nearest neighbour sets for any forecast from these features: at least (1 - sqrt(1 - 2 e)) / 2 (Cover and Hart, "Nearest neighbor
pattern classification", IEEE Transactions on Information Theory 13, 1967), which holds for neighbours as near as one likes.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "models" / "training" / "preemption"))

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
import optax
from dataset import Dataset
from lstm_model import loss_terms
from normalisation import Normalisation
from sklearn.neighbors import NearestNeighbors

DAY_MS = 86_400_000
HOUR = 2  # its place among the horizons
NEIGHBOURS_OF = 6000  # rows that are asked for their nearest neighbour, per market


def asked(folder, x):
    """P(lost within each horizon), and the hazards before calibration."""
    model = onnx.load(pathlib.Path(folder) / "model.onnx")
    model.graph.output.append(onnx.helper.make_tensor_value_info("hazard", onnx.TensorProto.FLOAT, ["rows", None]))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    parts = [session.run(["pLost", "hazard"], {"features": x[i : i + 8192]}) for i in range(0, len(x), 8192)]
    return [np.concatenate(of) for of in zip(*parts)]


def calibration_error(p, y):
    bins = np.minimum(9, (p * 10).astype(int))
    return sum(abs(p[bins == k].sum() - y[bins == k].sum()) for k in range(10)) / len(p)


def power(q, log_hazard):
    return jnp.exp(q["factor"] + jnp.exp(q["power"]) * log_hazard)


def beta(q, log_hazard):
    """Of the chance to be lost in an interval: Kull, Silva Filho, Flach, "Beta calibration", AISTATS 2017."""
    hazard = jnp.exp(log_hazard)
    log_p = jnp.log(-jnp.expm1(-hazard) + 1e-12)
    return jax.nn.softplus(q["factor"] + jnp.exp(q["power"]) * log_p + jnp.exp(q["tail"]) * hazard)


def fitted(link, hazard, seen):
    q = {name: jnp.zeros(hazard.shape[1]) for name in ["factor", "power", "tail"]}
    log_hazard = jnp.log(hazard)

    def loss(q):
        return loss_terms(link(q, log_hazard), *seen).mean() + 1e-3 * sum(jnp.sum(v**2) for v in q.values())

    optimiser = optax.adam(0.02)
    state, gradient = optimiser.init(q), jax.jit(jax.grad(loss))
    for _ in range(300):
        update, state = optimiser.update(gradient(q), state)
        q = optax.apply_updates(q, update)
    return q


def links(data, rows, hazard):
    seen, (lost, known) = data.intervals(rows), data.labels(rows)
    source, day = np.asarray(data.source)[rows], np.asarray(data.atMs)[rows] // DAY_MS
    later = np.zeros(len(rows), bool)
    for k in range(len(data.manifest["sources"])):
        later |= (source == k) & (day > np.median(day[source == k]))
    for name, link in [("none", None), ("power (shipped)", power), ("beta", beta)]:
        errors, losses = [], []
        for fit, judge in [(~later, later), (later, ~later)]:
            found = hazard[judge]
            if link is not None:
                found = np.asarray(link(fitted(link, hazard[fit], [s[fit] for s in seen]), jnp.log(found)))
            p = -np.expm1(-np.cumsum(found, axis=1))
            losses.append(float(loss_terms(jnp.asarray(found), *[s[judge] for s in seen]).mean()))
            for k in range(len(data.manifest["sources"])):
                mine = [known[judge][:, h] & (source[judge] == k) for h in range(p.shape[1])]
                errors.append([calibration_error(p[of, h], lost[judge][of, h]) for h, of in enumerate(mine)])
        print(f"  {name:16} likelihood {np.mean(losses):.4f}, calibration error mean {np.mean(errors):.4f}, worst {np.max(errors):.4f}")


def knowable(data, rows, said):
    x, (lost, known) = np.asarray(data.features[rows]), data.labels(rows)
    source, by_delta = np.asarray(data.source)[rows], np.asarray(data.bidKind)[rows] == 0
    trained = data.rows("train")
    for k, market in enumerate(data.manifest["sources"]):
        mine = np.flatnonzero((source == k) & by_delta & known[:, HOUR])
        y = lost[mine, HOUR]
        reached = {name: f"{np.mean((p[mine, HOUR] >= 0.5) == y):.3f}" for name, p in said.items()}
        expected = {name: f"{np.mean(np.maximum(p[mine, HOUR], 1 - p[mine, HOUR])):.3f}" for name, p in said.items()}
        of = trained[(np.asarray(data.source)[trained] == k) & (np.asarray(data.bidKind)[trained] == 0)]
        of = of[data.labels(of)[1][:, HOUR]]
        past = np.asarray(data.features[of])
        norm = Normalisation(past)
        some = mine[np.random.default_rng(1).permutation(len(mine))[:NEIGHBOURS_OF]]
        near = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(norm.rank(past)).kneighbors(norm.rank(x[some]), return_distance=False)
        error = np.mean(data.labels(of)[0][near[:, 0], HOUR] != lost[some, HOUR])
        most = 1 - (1 - np.sqrt(max(0, 1 - 2 * error))) / 2
        print(f"  {market['name']}: {len(mine)} bids, {y.mean():.3f} lost; reached {reached}, expected {expected}; neighbour {1 - error:.3f}, bound {most:.3f}")


def main():
    folder, lstm, trees = sys.argv[1:]
    data = Dataset(folder)
    rows = data.rows("validation")
    x = np.asarray(data.features[rows])
    (by_lstm, hazard), (by_trees, _) = asked(lstm, x), asked(trees, x)
    print("calibration of the LSTM, fitted on one half of the days and judged on the other:")
    links(data, rows, np.maximum(hazard, 1e-12))
    print("accuracy within the hour, bids as in the paper:")
    knowable(data, rows, {"lstm": by_lstm, "trees": by_trees})


main()
