"""Three processes write to one folder and are killed at random points: nothing acknowledged is lost, nothing is left.

Four rounds here; `HOMING_SOAK_ROUNDS=400 pytest tests/soak` runs them all. Every other round brings another model, so
that changes of model are killed half-way too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from random import Random

import pytest

from homing.documents import DocumentService
from homing.documents.reindexing import disagreements
from homing.engine import Engine
from homing.errors import NotFound
from homing.memory import Memory
from homing.skills import SkillService
from homing.stores.sqlite import SqliteStore
from homing.testing.fake import FakeEmbedder
from tests.forked import start_python

ROUNDS = int(os.environ.get("HOMING_SOAK_ROUNDS", "4"))
WRITERS = ("a", "b", "c")

SKILL = "skills"

State = dict[tuple[str, str], str]
"""What a document, an upload, a memory or a skill says, by kind and name; nothing where it was deleted."""
KINDS = {"save": "soak", "delete": "soak", "upload": "uploads", "remove": "uploads", "index": SKILL, "unindex": SKILL}
"""The project that an operation on documents is about, or that it is about skills; all others are about memory."""


def apply(state: State, name: str, key: str, text: str) -> State:
    if key in ("shared", "shared.txt"):
        # Whoever wrote last: nobody can say who that was.
        return state
    return {**state, (KINDS.get(name, "memory"), key): text}


def run_round(path: Path, seed: int, model: str, states: dict[str, list[State]]) -> None:
    """Let the writers write and kill them; afterwards `states` holds what may be true for each of them."""
    chance = Random(seed)
    script = str(Path(__file__).with_name("writer.py"))
    writers = {
        name: start_python(
            [script, str(path), name, str(chance.randrange(10**9)), model],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in WRITERS
    }
    for process in writers.values():
        assert process.stdout is not None
        assert process.stdout.readline()
    for name in chance.sample(WRITERS, len(WRITERS)):
        # Counted in what they did and not in seconds, so that a slow machine is killed at the same points.
        process = writers[name]
        assert process.stdout is not None
        heard = [process.stdout.readline() for _ in range(chance.randrange(1, 40))]
        process.send_signal(signal.SIGKILL)
        rest, _ = process.communicate()
        states[name] = outcomes(states[name], [*heard, *rest.splitlines()])


def outcomes(before: list[State], lines: list[str]) -> list[State]:
    """The states that may hold: that of everything that returned, and with what was under way."""
    state = before[0]
    under_way: list[str] | None = None
    for line in lines:
        try:
            kind, *asked = json.loads(line)
        except ValueError:
            continue
        if kind == "begin":
            under_way = asked
        elif kind == "done":
            state = apply(state, *asked)
            under_way = None
    return [state] if under_way is None else [state, apply(state, *under_way)]


def observed(documents: DocumentService, memory: Memory, skills: SkillService, state: State) -> State:
    """What is really there of what a state speaks of."""
    found: State = {}
    for kind, key in state:
        if kind == SKILL:
            found[kind, key] = said_by(skills, key)
        elif kind != "memory":
            try:
                found[kind, key] = documents.text(kind, key)
            except NotFound:
                found[kind, key] = ""
        else:
            entry = memory.get("knowledge", [key]).get(key)
            found[kind, key] = "" if entry is None else entry.text
    return found


def skills_of(engine: Engine, folder: Path) -> SkillService:
    return SkillService(lambda: engine, folder)


def said_by(skills: SkillService, name: str) -> str:
    """What a skill says, as it was given."""
    try:
        skill = skills.get_skill(name)
    except NotFound:
        return ""
    return f"{skill.description}\n\n{skill.body}"


def check_skills(skills: SkillService) -> None:
    """Every passage belongs to a skill, and is one of those that its body has."""
    store = skills.engine.store
    heads = store.ids("skills")
    assert {one.rpartition("#")[0] for one in store.ids("skills.passages")} <= set(heads)
    for head in heads:
        parts = [one for one in store.ids("skills.passages") if one.rpartition("#")[0] == head]
        assert sorted(parts) == sorted(f"{head}#{number}" for number in range(len(parts)))


@pytest.mark.slow
def test_whoever_is_killed_nothing_is_lost_doubled_or_left_behind(tmp_path: Path) -> None:
    path = tmp_path / "homing.db"
    states: dict[str, list[State]] = {name: [{}] for name in WRITERS}
    for number in range(ROUNDS):
        model = f"m{number // 2 % 2}"
        run_round(path, number, model, states)
        engine = Engine(SqliteStore(path), FakeEmbedder(32, model=model))
        documents, memory = DocumentService(engine), Memory(engine)
        skills = skills_of(engine, tmp_path)
        for name in WRITERS:
            both = {**states[name][0], **states[name][-1]}
            seen = observed(documents, memory, skills, both)
            assert any(seen == {key: state.get(key, "") for key in both} for state in states[name]), (number, name)
            states[name] = [seen]
        assert engine.store.check() == []
        check_skills(skills)
        assert list(disagreements(engine.database, engine.store)) == []
        held = [
            (project.id, chunk)
            for project in documents.projects()
            for info in documents.documents(project.id)
            for chunk in documents.chunks(project.id, info.id)
        ]
        assert sorted(engine.store.ids("paragraphs")) == sorted(chunk.id for _, chunk in held)
        if number % 4 == 3:
            assert engine.flush(120)
            for collection in ("paragraphs", "knowledge", "skills", "skills.passages"):
                assert engine.store.pending(collection) == 0
            assert {one.model for one in engine.store.records("paragraphs")} <= {f"fake/{model}@32"}
            for project, chunk in held:
                word = chunk.text.split()[0]
                found = documents.search(project, word, mode="keyword", top_k=100)
                assert chunk.id in [hit.id for hit in found]
                assert all(word in hit.text.split() for hit in found)
            assert all(file.embedded for file in documents.uploads())
            for skill in skills.list_skills():
                assert skills.find_relevant_skills(skill.name, limit=1)[0].id == skill.id
        engine.close()
        engine.store.close()
