"""Another default model: the old vectors answer, for new texts too, until the new ones are complete."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from homing.embedders.provider import EmbeddingProvider
from homing.errors import EmbeddingError, ModelNotReady, ProviderUnavailable
from homing.testing.fake import FakeEmbedder
from tests.engine.parts import Parts


class TwoModels:
    """An old model, a new one, and which of them is the default."""

    embeds = True

    def __init__(self) -> None:
        self.old, self.new = FakeEmbedder(model="old"), FakeEmbedder(96, model="new")
        self.default = self.old

    def provider(self, identity: str = "") -> EmbeddingProvider:
        by_id = {"": self.default, self.old.id: self.old, self.new.id: self.new}
        if identity not in by_id:
            raise ModelNotReady(f"{identity} is not configured")
        return by_id[identity]


@pytest.fixture
def models() -> TwoModels:
    return TwoModels()


@pytest.fixture
def filled(tmp_path: Path, models: TwoModels) -> Parts:
    parts = Parts(tmp_path / "homing.db", models)
    parts.put({"a": "灯塔", "b": "花园"})
    assert parts.engine.flush()
    return parts


def test_a_collection_changes_over_in_one_step_when_nothing_is_missing(filled: Parts, models: TwoModels) -> None:
    models.default, models.new.fail_with = models.new, ProviderUnavailable("down")
    filled.put({"c": "海鸥"})
    assert not filled.engine.flush()
    assert filled.store.model_of("notes") == models.old.id
    assert set(filled.embedded()) == {"a", "b", "c"}
    found = filled.search("海鸥")
    assert (found[0].id, found.degraded) == ("c", False)
    models.new.fail_with = None
    assert filled.engine.flush()
    assert filled.store.model_of("notes") == models.new.id
    assert set(filled.embedded()) == {"a", "b", "c"}
    assert {one.model: one.embedded for one in filled.store.models("notes")} == {models.new.id: 3, models.old.id: 3}
    assert filled.engine.wanted.all() == []
    filled.close()


def test_going_back_before_it_is_done_costs_nothing(filled: Parts, models: TwoModels) -> None:
    models.default, models.new.fail_with = models.new, ProviderUnavailable("down")
    assert not filled.engine.flush()
    models.default, asked = models.old, models.old.calls
    assert filled.engine.flush()
    assert filled.store.model_of("notes") == models.old.id
    assert models.old.calls == asked
    assert filled.engine.wanted.all() == []
    filled.close()


def test_a_wish_that_was_given_up_and_made_anew_is_not_taken_for_fulfilled(filled: Parts, models: TwoModels) -> None:
    wanted = filled.engine.wanted
    wanted.want("notes", models.new.id)
    wanted.list_missing(wanted.all()[0])
    filled.engine.worker.run_batch(1)
    [listed] = wanted.all()
    wanted.want("notes", models.old.id)
    wanted.want("notes", models.new.id)
    assert not wanted.settle(listed)
    assert filled.store.model_of("notes") == models.old.id
    filled.close()


@pytest.mark.parametrize("everything", ["is deleted", "cannot be embedded"])
def test_where_the_new_model_embeds_nothing_the_old_one_stays(
    filled: Parts, models: TwoModels, caplog: pytest.LogCaptureFixture, everything: str
) -> None:
    models.default, models.new.fail_with = models.new, EmbeddingError("cannot")
    filled.engine.flush()
    with caplog.at_level(logging.WARNING):
        if everything == "is deleted":
            filled.engine.collection("notes").delete(["a", "b"])
        assert filled.engine.flush()
        assert filled.engine.flush()
    assert not [record for record in caplog.records if record.name == "homing.engine.worker"]
    models.new.fail_with = None
    filled.put({"c": "海鸥"})
    filled.engine.work.retry_dead()
    assert filled.engine.flush()
    assert filled.store.model_of("notes") == models.new.id
    filled.close()
