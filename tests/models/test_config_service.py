"""Providers and models in the database: what is kept, what is refused, and who sees it when."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from homing.database import Database
from homing.database.sqlite import SqliteDatabase
from homing.errors import InvalidArgument, InvalidKey, NotFound
from homing.models.config_service import LLMConfigService
from homing.models.records import ModelConfig
from tests.models.statements import counted_statements


def test_what_is_created_is_read_back_by_another_opening(
    service: LLMConfigService, open_database: Callable[[], Database]
) -> None:
    service.create_provider("主力", "openai", api_key="sk-1", base_url=" https://example.org/v1 ")
    created = service.create_model(
        "主力", "text-embedding-3-small", model_config={"apiEndpoint": "/embeddings", "dimensions": 512, "timeout": 900}
    )
    again = LLMConfigService(open_database())
    assert again.get_model(created.id) == created
    assert created.model_config == ModelConfig(api_endpoint="/embeddings", dimensions=512, timeout=900)
    provider = again.get_provider("主力")
    assert (provider.type, provider.base_url, provider.api_key.reveal()) == ("openai", "https://example.org/v1", "sk-1")


def test_the_first_model_of_a_type_is_its_default_and_a_new_default_takes_over(service: LLMConfigService) -> None:
    service.create_provider("p", "openai")
    first = service.create_model("p", "a")
    second = service.create_model("p", "b")
    chat = service.create_model("p", "c", model_type="chat")
    assert service.get_default_model("embedding") == first
    assert service.get_default_model("chat") == chat
    service.update_model(second.id, is_default=True)
    assert [one.model_key for one in service.list_models() if one.is_default] == ["b", "c"]
    assert [one.model_key for one in service.list_models("embedding")] == ["a", "b"]


def test_a_provider_in_use_cannot_be_deleted_and_the_error_says_by_whom(service: LLMConfigService) -> None:
    service.create_provider("p", "openai")
    model = service.create_model("p", "text-embedding-3-small")
    with pytest.raises(InvalidArgument, match=r"in use by text-embedding-3-small.*homing models remove"):
        service.delete_provider("p")
    service.delete_model(model.id)
    service.delete_provider("p")
    assert service.list_providers() == []


def test_the_default_cannot_be_taken_away_while_there_are_others(service: LLMConfigService) -> None:
    service.create_provider("p", "openai")
    default = service.create_model("p", "a")
    other = service.create_model("p", "b")
    with pytest.raises(InvalidArgument, match="make another the default first"):
        service.delete_model(default.id)
    with pytest.raises(InvalidArgument, match="disabled"):
        service.update_model(default.id, enabled=False)
    with pytest.raises(InvalidArgument, match="make another model the default"):
        service.update_model(default.id, is_default=False)
    service.update_model(other.id, enabled=False)
    with pytest.raises(InvalidArgument, match="disabled"):
        service.update_model(other.id, is_default=True)
    assert service.get_default_model("embedding") == default


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.create_provider("p", "openai"), InvalidArgument, "already"),
        (lambda s: s.create_provider("q", "opneai"), InvalidArgument, "known: .*ollama.*openai"),
        (lambda s: s.create_provider(" ", "openai"), InvalidArgument, "at least one character"),
        (lambda s: s.create_provider("q", "openai", api_key="sk-密"), InvalidKey, "no key has"),
        (lambda s: s.create_model("p", "m"), InvalidArgument, "already"),
        (lambda s: s.create_model("p", "n", model_type="embeding"), InvalidArgument, "known: chat, embedding"),
        (lambda s: s.create_model("p", "n", model_config={"dimension": 3}), InvalidArgument, "dimension.*dimensions"),
        (lambda s: s.create_model("p", "n", model_config={"dimensions": 0}), InvalidArgument, "dimensions"),
        (lambda s: s.create_model("nobody", "n"), NotFound, "there are: p"),
        (lambda s: s.get_model(99), NotFound, "homing models list"),
        (lambda s: s.get_default_model("voice"), InvalidArgument, "known"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(
    service: LLMConfigService, call: object, error: type[Exception], message: str
) -> None:
    service.create_provider("p", "openai")
    service.create_model("p", "m")
    with pytest.raises(error, match=message):
        call(service)  # type: ignore[operator]


def test_a_provider_can_be_changed_in_part(service: LLMConfigService) -> None:
    service.create_provider("p", "openai", api_key="sk-old", base_url="http://a")
    changed = service.update_provider("p", api_key="${NEW_KEY}")
    assert (changed.base_url, changed.api_key.reveal()) == ("http://a", "${NEW_KEY}")
    service.create_provider("q", "ollama")
    with pytest.raises(InvalidArgument, match="already"):
        service.update_provider("q", name="p")


def test_a_key_shows_in_no_repr(service: LLMConfigService) -> None:
    service.create_provider("p", "openai", api_key="sk-very-secret")
    assert "sk-very-secret" not in repr(service.list_providers()) + str(service.get_provider("p"))


def _set_defaults(path: str, models: list[int], start: object) -> None:
    service = LLMConfigService(SqliteDatabase(path))
    start.wait()  # type: ignore[attr-defined]
    for model in models:
        service.update_model(model, is_default=True)


@pytest.mark.slow
def test_many_writers_leave_exactly_one_default(service: LLMConfigService, tmp_path: Path) -> None:
    service.create_provider("p", "openai")
    models = [service.create_model("p", f"m{number}").id for number in range(8)]
    processes = multiprocessing.get_context("spawn")
    start = processes.Event()
    workers = [
        processes.Process(target=_set_defaults, args=(str(tmp_path / "homing.db"), models[at:] + models[:at], start))
        for at in range(3)
    ]
    for worker in workers:
        worker.start()
    start.set()
    while any(worker.is_alive() for worker in workers):
        assert sum(one.is_default for one in service.list_models("embedding")) == 1
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert sum(one.is_default for one in service.list_models("embedding")) == 1


def test_ensuring_a_default_at_once_from_many_threads_makes_one(database: Database) -> None:
    services = [LLMConfigService(database) for _ in range(8)]
    threads = [threading.Thread(target=one.ensure_default_embedding_model) for one in services]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(services[0].list_models()) == 1
    assert len(services[0].list_providers()) == 1


class TestCache:
    """Decision 7: five minutes, at once after a change here, at once after a change by another process."""

    def test_repeated_reads_cost_no_query(self, tmp_path: Path) -> None:
        with counted_statements() as statements:
            service = LLMConfigService(SqliteDatabase(tmp_path / "counted.db"))
            service.ensure_default_embedding_model()
            service.get_default_model("embedding")
            statements.clear()
            for _ in range(100):
                service.get_default_model("embedding")
                service.list_providers()
            assert statements == []

    def test_it_is_read_again_after_five_minutes(self, tmp_path: Path) -> None:
        now = 0.0
        with counted_statements() as statements:
            service = LLMConfigService(SqliteDatabase(tmp_path / "counted.db"), clock=lambda: now)
            service.list_models()
            statements.clear()
            now = 299.0
            service.list_models()
            assert statements == []
            now = 300.0
            service.list_models()
            assert statements
            statements.clear()
            service.list_models()
            assert statements == []

    def test_a_change_in_this_process_holds_at_once(self, service: LLMConfigService) -> None:
        assert service.list_providers() == []
        service.create_provider("p", "openai")
        assert [one.name for one in service.list_providers()] == ["p"]

    def test_a_change_by_another_opening_of_the_file_holds_at_once(
        self, service: LLMConfigService, open_database: Callable[[], Database]
    ) -> None:
        other = LLMConfigService(open_database())
        assert service.list_providers() == []
        other.create_provider("p", "openai")
        assert [one.name for one in service.list_providers()] == ["p"]
        other.update_provider("p", base_url="http://b")
        assert service.get_provider("p").base_url == "http://b"

    def test_commits_about_something_else_cost_one_small_query(self, tmp_path: Path) -> None:
        with counted_statements() as statements:
            database = SqliteDatabase(tmp_path / "counted.db")
            service = LLMConfigService(database)
            service.list_models()
            with database.writing() as connection:
                connection.execute("CREATE TABLE other(x)")
            statements.clear()
            service.list_models()
            assert [one for one in statements if one.startswith("SELECT")] == ["SELECT number FROM llm_revision"]
            statements.clear()
            service.list_models()
            assert statements == []


def test_asking_whether_there_are_models_makes_no_table(database: Database) -> None:
    assert not LLMConfigService.exists_in(database)
    assert database.applied("models") == 0
    LLMConfigService(database)
    assert LLMConfigService.exists_in(database)
