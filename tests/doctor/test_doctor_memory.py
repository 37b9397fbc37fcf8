"""What the doctor says about what is remembered, what waits, and what was given up."""

from __future__ import annotations

from pathlib import Path

from homing.buffer.embedding_buffer import BufferOptions
from homing.config import Settings
from homing.doctor.memory import remembered
from homing.errors import EmbeddingError, ProviderUnavailable
from homing.rag.memory import Rag
from homing.stores.registry import open_store
from homing.testing.fake import FakeEmbedder


def told(tmp_path: Path) -> dict[str, tuple[str, str]]:
    found = remembered(Settings.model_validate({"data": tmp_path}))
    return {finding.check: (finding.status, finding.mend) for finding in found}


def remember(tmp_path: Path, embedder: FakeEmbedder | None) -> None:
    path = tmp_path / "homing.db"
    store = open_store(f"sqlite:///{path}")
    rag = Rag(store=store, embedder=embedder, database=path, buffering=BufferOptions(attempts=1))
    rag.remember("knowledge", "账单每月一号结算")
    rag.close()
    store.close()


def test_nothing_remembered_is_skipped_and_makes_no_file(tmp_path: Path) -> None:
    assert told(tmp_path) == {"memory": ("skip", "")}
    assert list(tmp_path.iterdir()) == []


def test_all_embedded_is_fine(tmp_path: Path) -> None:
    remember(tmp_path, FakeEmbedder())
    assert told(tmp_path) == {"memory knowledge": ("ok", ""), "memory queue": ("ok", "")}


def test_what_has_no_vector_is_a_warning(tmp_path: Path) -> None:
    remember(tmp_path, None)
    assert told(tmp_path)["memory knowledge"] == ("warn", "homing rag backfill")


def test_what_waits_for_a_dead_provider_is_a_warning(tmp_path: Path) -> None:
    remember(tmp_path, FakeEmbedder(fail_with=ProviderUnavailable("down")))
    assert told(tmp_path)["memory queue"] == ("warn", "homing rag backfill")


def test_what_was_given_up_is_a_warning_that_says_how_to_try_again(tmp_path: Path) -> None:
    remember(tmp_path, FakeEmbedder(fail_with=EmbeddingError("cannot")))
    assert told(tmp_path)["memory queue"] == ("warn", "homing rag queue --retry")
