"""Documents in an open folder: a change of the model, the doctor, the shell."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import homing
from homing.cli.main import app as command
from homing.config import Settings
from homing.doctor import diagnose
from homing.embedders.local import LocalProvider
from homing.errors import InvalidArgument, NotFound, ProviderUnavailable
from homing.testing.fake import FakeEmbedder
from homing.testing.loopback import LoopbackApi
from tests.documents.novel import Library, novel

OLD = LocalProvider().id
NEW = "openai/text-embedding-3-small@512"
STORY = """她觉得自己被全世界遗忘了，没有一个人陪伴。

厨房里，母亲正在做红烧肉，满屋子香味。

The ship left the harbour at dawn."""


def test_a_change_of_the_model_takes_documents_along(tmp_path: Path) -> None:
    with LoopbackApi() as api, homing.open(tmp_path / "data", settings=Settings()) as app:
        app.documents.save("p", "d", STORY)
        assert app.documents.flush(120)
        config = app.models.config
        config.ensure_default_embedding_model()
        config.create_provider("openai", "openai", api_key="sk-test-key", base_url=api.url + "/v1")
        model = config.create_model("openai", "text-embedding-3-small", model_config={"dimensions": 512})
        app.switch.make_default(model)
        found = app.documents.search("p", "红烧肉", min_score=None, mode="semantic")
        assert not found.degraded
        assert app.switch.run() == 1
        [chunk] = [one for one in app.documents.chunks("p", "d", embeddings=True) if "红烧肉" in one.text]
        assert chunk.embedding is not None
        assert chunk.embedding.shape == (512,)
        found = app.documents.search("p", "红烧肉", min_score=None, mode="semantic")
        assert (found.mode, found.degraded, len(found)) == ("semantic", False, 3)
        # What is written afterwards is embedded by the new model, and nothing has to be done again.
        app.documents.save("p", "d", STORY + "\n\n新的一段，写在换了模型以后。")
        assert app.documents.flush(120)
        assert app.documents.reindex().embedded == 0
        assert app.store.check() == []
        assert app.switch.status().finished


def test_meaning_finds_a_paragraph_that_shares_no_word_with_the_query(tmp_path: Path) -> None:
    with homing.open(tmp_path / "data", settings=Settings()) as app:
        app.documents.save("novel", "ch1", STORY)
        assert app.documents.flush(120)
        hit = app.documents.search("novel", "孤独的感觉")[0]
        assert hit.text.startswith("她觉得自己")
        assert hit.score is not None
        assert hit.score >= 0.55
        assert app.documents.search("novel", "a boat sails in the morning")[0].text.startswith("The ship")


def test_the_doctor_tells_what_waits_and_what_was_given_up(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, embedding={"provider": ""})
    library = Library(tmp_path, FakeEmbedder(32, fail_with=ProviderUnavailable("the API is down")))
    library.documents.save("p", "d", novel(5))
    library.documents.flush(120)
    library.close()
    [finding] = [one for one in diagnose(settings) if one.check == "queue"]
    assert finding.status == "warn"
    assert "5 texts wait" in finding.detail
    assert "the API is down" in finding.detail
    library = Library(tmp_path, FakeEmbedder(32))
    library.documents.reindex()
    library.close()
    [finding] = [one for one in diagnose(settings) if one.check == "documents"]
    assert (finding.status, finding.detail) == ("ok", "1 documents in 1 projects, 5 paragraphs")


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.chdir(tmp_path)
    return CliRunner()


def test_documents_in_the_shell(shell: CliRunner, tmp_path: Path) -> None:
    def run(*words: str, text: str | None = None) -> str:
        done = shell.invoke(command, ["documents", *words], input=text)
        assert done.exit_code == 0, done.output
        return done.output

    assert "3 changed, 0 unchanged" in run("add", "novel", "ch1", text=STORY)
    changed = json.loads(run("add", "novel", "ch1", "--json", text=STORY.replace("红烧肉", "糖醋鱼")))
    assert len(changed["changed"]) == 1
    assert json.loads(run("list", "novel", "--json"))["documents"][0]["pending"] == 0
    found = json.loads(run("search", "novel", "孤独的感觉", "--json"))
    assert found["mode"] == "hybrid"
    assert found["hits"][0]["metadata"]["document_id"] == "ch1"
    assert "糖醋鱼" in run("search", "novel", "「糖醋鱼」", "--mode", "keyword")
    assert run("show", "novel", "ch1").strip() == STORY.replace("红烧肉", "糖醋鱼")
    assert "0-21" in run("show", "novel", "ch1", "--chunks")
    assert json.loads(run("list", "--json"))["projects"][0]["chunks"] == 3
    assert "ch1" in run("list", "novel")
    assert json.loads(run("reindex", "--json"))["embedded"] == 0
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "a.md").write_text("灯塔亮了。", encoding="utf-8")
    assert "1 saved" in run("import", "novel", str(tmp_path / "books"))
    assert "1 removed" in run("remove", "novel", "a.md")
    assert "1 removed" in run("remove", "novel", "--yes")
    assert json.loads(run("list", "--json")) == {"projects": []}
    assert shell.invoke(command, ["documents", "remove", "novel", "nothing"]).exit_code != 0
    assert shell.invoke(command, ["documents", "search", "novel", "x", "--mode", "magic"]).exit_code != 0


def test_a_slip_of_the_hand_in_the_shell_empties_no_document(shell: CliRunner) -> None:
    assert shell.invoke(command, ["documents", "add", "小说", "第一章"], input=STORY).exit_code == 0
    slip = shell.invoke(command, ["documents", "add", "小说", "第一章"], input="")
    assert isinstance(slip.exception, InvalidArgument)
    assert "name a file" in str(slip.exception)
    assert shell.invoke(command, ["documents", "show", "小说", "第一章"]).output.strip() == STORY


@pytest.mark.parametrize(
    "words", [["search", "大说", "灯塔"], ["list", "nove1"], ["reindex", "大说"], ["remove", "nove1"]]
)
def test_a_project_that_is_not_there_is_told(shell: CliRunner, words: list[str]) -> None:
    done = shell.invoke(command, ["documents", *words])
    assert isinstance(done.exception, NotFound)
    assert "there is no project" in str(done.exception)
    assert any(hint in str(done.exception) for hint in ("homing documents list", "there are: "))


def test_the_doctor_sees_what_disagrees_and_a_reindex_mends_it(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, embedding={"provider": ""})

    def told() -> tuple[str, str]:
        [finding] = [one for one in diagnose(settings) if one.check == "documents"]
        return finding.status, finding.detail

    library = Library(tmp_path, FakeEmbedder(32))
    library.documents.save("p", "d", novel(6))
    assert library.documents.flush(120)
    first, second, third, *_ = records = list(library.store.records("paragraphs"))
    assert told()[0] == "ok"
    library.store.write([replace(first, text="索引里的另一段话", embedding=None, model="")])
    library.store.delete("paragraphs", [second.id])
    library.store.write([replace(third, metadata={"project": "q", "document": "d"}, embedding=None, model="")])
    library.store.write([replace(first, id="000000000000.7", embedding=None, model="")])
    status, detail = told()
    assert status == "fail"
    assert f"the index has another text for chunk {first.id!r}" in detail
    assert f"chunk {second.id!r} of document 'd' of project 'p' is not in the index" in detail
    assert len(library.documents.check()) == 4
    report = library.documents.reindex()
    assert (report.embedded, report.removed, report.waiting) == (2, 1, 0)
    assert library.documents.check() == library.store.check() == []
    assert told() == ("ok", "1 documents in 1 projects, 6 paragraphs")
    assert [one.id for one in library.store.records("paragraphs")] == [one.id for one in records]
    library.close()


@pytest.mark.slow
def test_documents_on_a_store_that_is_no_database_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("lancedb")
    settings = Settings(store=f"lance://{tmp_path / 'lance'}")
    with homing.open(tmp_path / "data", settings=settings) as app, pytest.raises(InvalidArgument, match="store copy"):
        app.documents.save("p", "d", "灯塔")
