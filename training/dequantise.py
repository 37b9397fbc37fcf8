"""Float weights back from an int8 model folder, for whoever wants to train on from what ships.

    python dequantise.py ../src/homing/embedders/bundled --out WEIGHTS_FOLDER

Every weight is its int8 number times its scale, so what comes back is what the int8 graph computes with: its vectors
lie at a cosine of about .9995 to those of the weights that were exported.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper

from encoder import HIDDEN, Encoder, save
from homing.embedders.model_folder import GRAPH, TOKENIZER


def weights_in(path: Path) -> dict[str, np.ndarray]:
    """The tensors of an int8 graph under BertModel names."""
    graph = onnx.load(path).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    made_by = {output: node for node in graph.node for output in node.output}
    weights = {name: value for name, value in stored.items() if "LayerNorm" in name}
    weights["embeddings.word_embeddings.weight"] = stored["words"].astype(np.float32) * stored["words.scale"]
    weights["embeddings.position_embeddings.weight"] = stored["places"]
    # What the places hold already, every text having one type.
    weights["embeddings.token_type_embeddings.weight"] = np.zeros((2, HIDDEN), np.float32)
    for node in graph.node:
        if node.op_type != "QGemm" or not node.input[3].endswith(".weight") or len(node.input) < 7 or not node.input[6]:
            continue
        name = node.input[3].removesuffix(".weight")
        weight = stored[node.input[3]].astype(np.float32) * stored[f"{name}.scale"]
        before = made_by.get(made_by[node.input[0]].input[0])
        if before is not None and before.op_type == "Mul":
            # A loud channel was divided before the product, and its row multiplied.
            factors = [stored[other] for other in before.input if other.endswith(".factors")]
            weight = weight * factors[0][:, None] if factors else weight
        weights[f"{name}.weight"] = np.ascontiguousarray(weight.T)
        step = stored[f"{name}.scale"] * stored[node.input[1]]
        weights[f"{name}.bias"] = stored[f"{name}.bias"].astype(np.float32) * step
    return weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    weights = weights_in(args.model / GRAPH)
    encoder = Encoder(len(weights["embeddings.word_embeddings.weight"]))
    encoder.load_state_dict({name: torch.from_numpy(value.astype(np.float32)) for name, value in weights.items()})
    save(encoder, args.out)
    shutil.copy(args.model / TOKENIZER, args.out / TOKENIZER)


if __name__ == "__main__":
    main()
