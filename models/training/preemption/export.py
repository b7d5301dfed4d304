"""Trained forecasts as ONNX: what they read, their hazards, the calibration and the curve in one graph."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import normalisation
from lstm_model import RAMPS, STEPS, UNITS

OPSET = 17
OPSET_OF_TREES = 3  # of ai.onnx.ml
IR_VERSION = 8
INPUT, OUTPUT = "features", "pLost"


def softplus(x):
    return np.logaddexp(0.0, np.asarray(x, np.float64)).astype(np.float32)


class Graph:
    def __init__(self):
        self.constants, self.nodes = [], []

    def constant(self, name, value, dtype=np.float32):
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def node(self, op, inputs, output, **attributes):
        outputs = [output] if isinstance(output, str) else output
        self.nodes.append(helper.make_node(op, inputs, outputs, **attributes))
        return outputs[-1]

    def curve(self, raw, calibration, link="Softplus"):
        """From logits of hazards, or what goes into softplus for them, or (Exp) their logarithms: the calibrated curve."""
        self.node(link, [raw], "hazard")
        self.node("Pow", ["hazard", self.constant("power", calibration["power"])], "bent")
        self.node("Mul", ["bent", self.constant("factor", calibration["factor"])], "calibrated")
        self.node("CumSum", ["calibrated", self.constant("axis", 1, np.int64)], "cumulative")
        self.node("Neg", ["cumulative"], "negative")
        self.node("Exp", ["negative"], "survival")
        self.node("Sub", [self.constant("one", 1.0), "survival"], OUTPUT)

    def bytes(self, width, horizons):
        def ends(name, n):
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", n])

        graph = helper.make_graph(self.nodes, "preemption", [ends(INPUT, width)], [ends(OUTPUT, horizons)], self.constants)
        domains = sorted({node.domain for node in self.nodes})
        imports = [helper.make_opsetid(d, OPSET_OF_TREES if d else OPSET) for d in domains]
        model = helper.make_model(graph, opset_imports=imports, producer_name="ebbtide")
        model.ir_version = IR_VERSION
        onnx.checker.check_model(model)
        return model.SerializeToString(deterministic=True)


def scaled(g, norm):
    g.node("Sub", [INPUT, g.constant("mean", norm["mean"])], "centred")
    g.node("Div", ["centred", g.constant("std", norm["std"])], "deviations")
    return g.node("Clip", ["deviations", g.constant("least", -normalisation.CLIP), g.constant("most", normalisation.CLIP)], "scaled")


def ranked(g, norm):
    g.node("Unsqueeze", [INPUT, g.constant("knotAxis", [2], np.int64)], "byKnot")
    g.node("Sub", ["byKnot", g.constant("low", norm["low"])], "aboveKnot")
    g.node("Div", ["aboveKnot", g.constant("step", norm["step"])], "steps01")
    g.node("Clip", ["steps01", g.constant("zero", 0.0), g.constant("whole", 1.0)], "share")
    g.node("ReduceMean", ["share"], "meanShare", axes=[2], keepdims=0)
    g.node("Sub", ["meanShare", g.constant("half", 0.5)], "centredShare")
    return g.node("Mul", ["centredShare", g.constant("spread", normalisation.SPREAD)], "rank")


def lstm(p, norm, calibration, kinds):
    """The standard LSTM operator and the monotone head of lstm_model.py."""
    p = {name: np.asarray(value, np.float32) for name, value in p.items()}
    horizons, g = p["a"].shape[0], Graph()
    node, constant = g.node, g.constant
    parts = constant("widths", [kinds["pool"], kinds["sequence"], kinds["bid"]], np.int64)
    shape = constant("shape", [-1, STEPS, 2], np.int64)
    views = {}
    for view, values in [("scaled", scaled(g, norm)), ("rank", ranked(g, norm))]:
        views[view] = [f"{view}{part}" for part in ["Shared", "Flat", "Bid"]]
        node("Split", [values, parts], views[view], axis=1)
        node("Reshape", [views[view][1], shape], f"{view}Prices")
    node("Concat", [f"{view}Prices" for view in views], "prices", axis=2)
    node("Concat", [view[0] for view in views.values()], "shared", axis=1)
    node("Concat", [view[2] for view in views.values()], "bid", axis=1)
    node("Transpose", ["prices"], "steps", perm=[1, 0, 2])
    weights = [
        constant("lstmW", p["W"].T[None]),
        constant("lstmR", p["R"].T[None]),
        constant("lstmB", np.concatenate([p["B"], np.zeros(4 * UNITS, np.float32)])[None]),
    ]
    node("LSTM", ["steps", *weights], ["", "last"], hidden_size=UNITS)
    node("Squeeze", ["last", constant("axis0", [0], np.int64)], "read")
    x = node("Concat", ["read", "shared"], "joined", axis=1)
    for w, b in [("C1", "c1"), ("C2", "c2")]:
        x = node("Gemm", [x, constant(w, p[w]), constant(b, p[b])], f"sum{w}")
        x = node("Tanh", [x], f"context{w}")
    node("Gemm", ["bid", constant("M", softplus(p["M"])), constant("m", p["m"])], "bidSum")
    node("Tanh", ["bidSum"], "ramps")
    node("Unsqueeze", ["ramps", constant("axis1", [1], np.int64)], "rampsByHorizon")
    node("Gemm", [x, constant("A", p["A"]), constant("a", p["a"])], "level")
    node("Gemm", [x, constant("V", p["V"]), constant("v", p["v"])], "slopeSum")
    node("Softplus", ["slopeSum"], "slopesFlat")
    node("Reshape", ["slopesFlat", constant("slopeShape", [-1, horizons, RAMPS], np.int64)], "slopes")
    node("Mul", ["slopes", "rampsByHorizon"], "products")
    node("ReduceSum", ["products", constant("axis2", [2], np.int64)], "safety", keepdims=0)
    node("Sub", ["level", "safety"], "logit")
    g.curve("logit", calibration)
    return g.bytes(sum(kinds.values()), horizons)


def trees(models, calibration, kinds, link="Softplus"):
    """All ensembles of trees_model.py, or (Exp) of watched_trees.py, in one TreeEnsembleRegressor, each adding to its interval's number."""
    g = Graph()
    flat = {name: [] for name in ["treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids"]}
    leaf = {name: [] for name in ["treeids", "nodeids", "ids", "weights"]}
    tree = 0
    for k, model in enumerate(models):
        ensemble = [predictors[0].nodes for predictors in getattr(model, "_predictors", [])]
        for nodes in ensemble or [NO_SPLIT]:
            add_tree(nodes, tree, k, flat, leaf)
            tree += 1
    if not any(hasattr(model, "_predictors") for model in models):
        raise SystemExit("too few losses in the data set for any tree: give longer histories")
    attributes = {f"nodes_{name}": values for name, values in flat.items()}
    attributes |= {f"target_{name}": values for name, values in leaf.items()}
    bases = [float(np.ravel(m._baseline_prediction)[0]) if hasattr(m, "_predictors") else m.base for m in models]
    domain = "ai.onnx.ml"
    g.node("TreeEnsembleRegressor", [INPUT], "logit", domain=domain, n_targets=len(models), base_values=bases, **attributes)
    g.curve("logit", calibration, link)
    return g.bytes(sum(kinds.values()), len(models))


# Of an interval whose hazard is one number: ONNX Runtime leaves the base out where an output has no tree.
NO_SPLIT = [{"is_leaf": True, "value": 0.0}]


def add_tree(nodes, tree, interval, flat, leaf):
    for i, n in enumerate(nodes):
        is_leaf = bool(n["is_leaf"])
        flat["treeids"].append(tree)
        flat["nodeids"].append(i)
        flat["featureids"].append(0 if is_leaf else int(n["feature_idx"]))
        flat["values"].append(0.0 if is_leaf else at_most(n["num_threshold"]))
        flat["modes"].append("LEAF" if is_leaf else "BRANCH_LEQ")
        flat["truenodeids"].append(0 if is_leaf else int(n["left"]))
        flat["falsenodeids"].append(0 if is_leaf else int(n["right"]))
        if is_leaf:
            leaf["treeids"].append(tree)
            leaf["nodeids"].append(i)
            leaf["ids"].append(interval)
            leaf["weights"].append(float(n["value"]))


def at_most(threshold):
    """The largest 32-bit number that is not above a threshold: a row's 32-bit numbers then go the same way."""
    near = np.float32(threshold)
    return float(near if float(near) <= threshold else np.nextafter(near, np.float32(-np.inf)))
