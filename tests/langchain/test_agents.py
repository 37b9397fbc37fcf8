"""Memory and skills in the hands of an agent of LangChain, whose model says what a script says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_tests.integration_tests import RetrieversIntegrationTests

import homing
from homing.errors import InvalidArgument
from homing.langchain import SkillRetriever, agent_tools
from homing.testing.fake import FakeEmbedder

SKILLS = [
    {"name": "git-commit", "description": "写出规范的 Git 提交信息 commit messages", "body": "先看 git diff，再提交。"},
    {"name": "excel", "description": "处理 Excel 表格 spreadsheets", "body": "Use openpyxl."},
    {"name": "weather", "description": "查询天气 forecast", "body": "Ask for the city."},
]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[homing.Homing]:
    with homing.open(tmp_path_factory.mktemp("agent"), embedder=FakeEmbedder(128)) as made:
        made.skills.index_skills(SKILLS)
        yield made


class TestSkills(RetrieversIntegrationTests):
    """LangChain's suite for retrievers, over skills."""

    @pytest.fixture(autouse=True)
    def _app(self, app: homing.Homing) -> None:
        self.app = app

    @property
    def retriever_constructor(self) -> type[SkillRetriever]:
        return SkillRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"app": self.app}

    @property
    def retriever_query_example(self) -> str:
        return "git commit 提交"


async def test_a_skill_is_found_with_its_body_in_both_languages(app: homing.Homing) -> None:
    for query, name in [("提交信息", "git-commit"), ("Excel spreadsheets", "excel"), ("查询 forecast", "weather")]:
        (found,) = await SkillRetriever(app=app, k=1).ainvoke(query)
        assert found.metadata["name"] == name
        assert found.page_content == next(one["body"] for one in SKILLS if one["name"] == name)
        assert 0 <= found.metadata["score"] <= 1
    assert SkillRetriever(app=app, threshold=1.0).invoke("什么都不是 nothing") == []


class Scripted(GenericFakeChatModel):
    """A chat model that says what it was given to say, and takes tools."""

    def bind_tools(self, tools: Any, **more: Any) -> Scripted:
        return self


def calling(name: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{name}"}])


def run(app: homing.Homing, *script: AIMessage, **more: Any) -> list[ToolMessage]:
    model = Scripted(messages=iter([*script, AIMessage("好的 done")]))
    answer = create_agent(model, agent_tools(app, **more)).invoke({"messages": [HumanMessage("go")]})
    assert answer["messages"][-1].content == "好的 done"
    return [one for one in answer["messages"] if isinstance(one, ToolMessage)]


def test_an_agent_remembers_recalls_and_forgets(tmp_path: Path) -> None:
    with homing.open(tmp_path, embedder=FakeEmbedder(128)) as app:
        kept, recalled = run(
            app,
            calling("remember", text="用户不吃辣，对花生过敏 no peanuts", collection="observation"),
            calling("recall", query="花生 peanuts"),
        )
        assert kept.artifact["collection"] == "observation"
        assert recalled.artifact["hits"][0]["text"] == "用户不吃辣，对花生过敏 no peanuts"
        assert "homing-data-" in str(recalled.content), "what others wrote is fenced"
        run(app, calling("forget", id=kept.artifact["id"]))
        (nothing,) = run(app, calling("recall", query="花生 peanuts"))
        assert nothing.artifact["hits"] == []


def test_an_agent_finds_a_skill_and_reads_it(app: homing.Homing) -> None:
    found, read = run(
        app, calling("find_skills", query="提交代码 commit", limit=1), calling("get_skill", id="git-commit")
    )
    assert found.artifact["hits"][0]["metadata"]["name"] == "git-commit"
    assert "先看 git diff" in str(read.content)


def test_what_goes_wrong_is_told_to_the_model(app: homing.Homing) -> None:
    missing, wrong = run(app, calling("get_skill", id="no-such"), calling("recall", query="", limit="many"))
    assert str(missing.content).startswith("NOT_FOUND: ")
    assert str(wrong.content).startswith("INVALID_ARGUMENT: ")
    assert {missing.status, wrong.status} == {"error"}


def test_only_tools_that_exist_and_may_be_used_are_given(app: homing.Homing) -> None:
    assert [one.name for one in agent_tools(app, may_write=False)] == ["find_skills", "get_skill", "recall"]
    assert {one.name for one in agent_tools(app, ["search_documents"])} == {"search_documents"}
    json.dumps([one.args for one in agent_tools(app)])
    with pytest.raises(InvalidArgument, match="no tool burn; known: find_devices"):
        agent_tools(app, ["burn"])
