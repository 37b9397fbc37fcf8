"""How far the bundled model is from what the processor could multiply: operations a second, by kernel.

    python bench/kernels.py

Counts two operations for each product of bytes in the model's matrix products (attention and all else are left out of
the count, not of the time), on one core, in CPU time, the best of ROUNDS. `of bare products` is the share of what
onnxruntime reaches with such a product alone, of the shape that the model has most; that is what rounding, attention,
gelu and norms leave. Kernels: `fast` is onnxruntime's default, `exact` the one that cannot overflow without VNNI;
`used` says which of them the product takes on this processor. Rows of other instruction sets in the result are kept.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from homing.embedders.local import open_session, products_are_exact
from homing.embedders.model_folder import BUNDLED, ModelFolder
from report import machine, show, write

RESULTS = Path(__file__).parent / "results" / "kernels.json"
ROUNDS = 15
ROWS, HIDDEN, INNER, LAYERS, FINE = 1_024, 384, 1_536, 6, 2
SHAPES = ((1, 10), (16, 64), (4, 250))
"""Texts, and tokens of each."""


def best(session: Any, given: dict[str, Any]) -> float:
    """Seconds of CPU."""
    spent = []
    for _ in range(ROUNDS):
        started = time.process_time()
        session.run(None, given)
        spent.append(time.process_time() - started)
    return min(spent)


def operations(tokens: int) -> int:
    """Of the products with weights; those of the first layers that round to two bytes are done twice."""
    layer = 4 * HIDDEN * HIDDEN + 2 * HIDDEN * INNER
    return 2 * tokens * (LAYERS * layer + FINE * 2 * HIDDEN * INNER)


def bare(*, exact: bool) -> float:
    """Operations a second of a product alone."""
    weights = numpy_helper.from_array(np.ones((HIDDEN, INNER), np.int8), "w")
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["a", "w"], ["y"])],
        "product",
        [value("a", TensorProto.UINT8, [ROWS, HIDDEN])],
        [value("y", TensorProto.INT32, [ROWS, INNER])],
        [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = open_session(model.SerializeToString(), exact=exact)
    return 2 * ROWS * HIDDEN * INNER / best(session, {"a": np.ones((ROWS, HIDDEN), np.uint8)})


def main() -> None:
    here, graph = machine(), ModelFolder.read(BUNDLED).graph()
    rows: list[dict[str, Any]] = []
    for kernel, exact in (("fast", False), ("exact", True)):
        session, limit = open_session(graph, exact=exact), bare(exact=exact)
        for texts, tokens in SHAPES:
            seconds = best(session, {"ids": np.full((texts, tokens), 1_000, np.int64)})
            reached = operations(texts * tokens) / seconds
            rows.append(
                {
                    "instructions": here["instructions"], "kernel": kernel,
                    "used": "yes" if exact is not products_are_exact() else "", "texts": texts, "tokens": tokens,
                    "texts/s": round(texts / seconds, 1), "GOP/s": round(reached / 1e9),
                    "bare product GOP/s": round(limit / 1e9), "of bare products": round(reached / limit, 2),
                }
            )  # fmt: skip
    show("The bundled model, one core", rows)
    known = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"] if RESULTS.exists() else []
    others = [row for row in known if row["instructions"] != here["instructions"]]
    write(RESULTS, {"machine": here, "rows": [*rows, *others]})


if __name__ == "__main__":
    main()
