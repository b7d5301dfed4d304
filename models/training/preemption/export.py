"""The trained forecast as ONNX: normalisation, the standard LSTM operator, the monotone head and the calibration in one graph."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from survival_model import RAMPS, STEPS, UNITS

OPSET = 17
IR_VERSION = 8
INPUT, OUTPUT = "features", "pLost"


def softplus(x):
    return np.logaddexp(0.0, np.asarray(x, np.float64)).astype(np.float32)


def onnx_model(p, norm, calibration, kinds):
    p = {name: np.asarray(value, np.float32) for name, value in p.items()}
    pool, sequence, bid = kinds["pool"], kinds["sequence"], kinds["bid"]
    horizons = p["a"].shape[0]
    constants, nodes = [], []

    def constant(name, value, dtype=np.float32):
        constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def node(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output] if isinstance(output, str) else output, **attributes))
        return output if isinstance(output, str) else output[-1]

    x = node("Sub", [INPUT, constant("mean", norm["mean"])], "centred")
    x = node("Div", [x, constant("std", norm["std"])], "scaled")
    x = node("Clip", [x, constant("low", -norm["clip"]), constant("high", norm["clip"])], "normalised")
    parts = constant("widths", [pool, sequence, bid], np.int64)
    node("Split", [x, parts], ["shared", "flat", "bid"], axis=1)
    node("Reshape", ["flat", constant("shape", [-1, STEPS, 2], np.int64)], "prices")
    node("Transpose", ["prices"], "steps", perm=[1, 0, 2])
    lstm = [
        constant("lstmW", p["W"].T[None]),
        constant("lstmR", p["R"].T[None]),
        constant("lstmB", np.concatenate([p["B"], np.zeros(4 * UNITS, np.float32)])[None]),
    ]
    node("LSTM", ["steps", *lstm], ["", "last"], hidden_size=UNITS)
    node("Squeeze", ["last", constant("axis0", [0], np.int64)], "read")
    x = node("Concat", ["read", "shared"], "joined", axis=1)
    for layer, (w, b) in enumerate([("C1", "c1"), ("C2", "c2")]):
        x = node("Gemm", [x, constant(w, p[w]), constant(b, p[b])], f"sum{layer}")
        x = node("Tanh", [x], f"context{layer}")
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
    node("Softplus", ["logit"], "hazard")
    node("Pow", ["hazard", constant("power", calibration["power"])], "bent")
    node("Mul", ["bent", constant("factor", calibration["factor"])], "calibrated")
    node("CumSum", ["calibrated", constant("axis", 1, np.int64)], "cumulative")
    node("Neg", ["cumulative"], "negative")
    node("Exp", ["negative"], "survival")
    node("Sub", [constant("one", 1.0), "survival"], OUTPUT)

    def ends(name, width):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", width])

    graph = helper.make_graph(
        nodes, "preemption", [ends(INPUT, pool + sequence + bid)], [ends(OUTPUT, horizons)], constants
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="ebbtide")
    model.ir_version = IR_VERSION
    onnx.checker.check_model(model)
    return model.SerializeToString(deterministic=True)
