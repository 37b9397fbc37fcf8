"""What the doctor says about what is remembered, what waits, and what was given up."""

from __future__ import annotations

from pathlib import Path

from homing.config import Settings
from homing.doctor.contents import remembered
from homing.engine import Engine
from homing.engine.batch import Retries
from homing.engine.worker import WorkerOptions
from homing.errors import EmbeddingError, ProviderUnavailable
from homing.memory import Memory
from homing.stores.registry import open_store
from homing.testing.fake import FakeEmbedder


def told(tmp_path: Path) -> dict[str, tuple[str, str]]:
    found = remembered(Settings.model_validate({"data": tmp_path}))
    return {finding.check: (finding.status, finding.mend) for finding in found}


def remember(tmp_path: Path, embedder: FakeEmbedder | None) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'homing.db'}")
    engine = Engine(store, embedder, options=WorkerOptions(retries=Retries(attempts=1)))
    Memory(engine).remember("knowledge", "账单每月一号结算")
    engine.close()
    store.close()


def test_nothing_remembered_is_skipped_and_makes_no_file(tmp_path: Path) -> None:
    assert told(tmp_path) == {"memory": ("skip", "")}
    assert list(tmp_path.iterdir()) == []


def test_all_embedded_is_fine(tmp_path: Path) -> None:
    remember(tmp_path, FakeEmbedder())
    assert told(tmp_path) == {"memory knowledge": ("ok", ""), "memory queue": ("ok", "")}


def test_what_has_no_vector_is_a_warning(tmp_path: Path) -> None:
    remember(tmp_path, None)
    assert told(tmp_path)["memory knowledge"] == ("warn", "homing memory reindex")


def test_what_waits_for_a_dead_provider_is_a_warning(tmp_path: Path) -> None:
    remember(tmp_path, FakeEmbedder(fail_with=ProviderUnavailable("down")))
    assert told(tmp_path)["memory queue"] == ("warn", "homing memory reindex")


def test_what_was_given_up_is_a_warning_that_says_how_to_try_again(tmp_path: Path) -> None:
    remember(tmp_path, FakeEmbedder(fail_with=EmbeddingError("cannot")))
    assert told(tmp_path)["memory queue"] == ("warn", "homing memory queue --retry")
