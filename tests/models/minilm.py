"""A model folder of the name that the seed uses."""

from __future__ import annotations

from pathlib import Path

from homing.embedders.model_folder import BUNDLED, TOKENIZER, WEIGHTS, ModelFolder, write_model_folder


def minilm_folder(data: Path) -> Path:
    """`all-MiniLM-L6-v2` where the seed has it under a data folder; inside is the bundled model."""
    bundled, folder = ModelFolder.read(BUNDLED), data / "models" / "embedding" / "all-MiniLM-L6-v2"
    folder.mkdir(parents=True)
    write_model_folder(
        folder,
        graph=bundled.graph().read_bytes(),
        weights=bundled.file(WEIGHTS).read_bytes(),
        tokenizer=bundled.file(TOKENIZER).read_bytes(),
        name="all-MiniLM-L6-v2",
        version="1",
        dimensions=384,
        max_tokens=bundled.max_tokens,
        scale=None,
    )
    return folder
