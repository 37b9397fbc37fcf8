"""Processes are killed while they save: nothing acknowledged is lost, nothing is doubled, nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from homing.database import Transaction
from homing.documents.layout import split
from homing.testing.fake import FakeEmbedder
from tests.documents.novel import Library
from tests.forked import start_python

ROUNDS = 8

State = dict[tuple[str, str], str]
"""What each document says."""


def after(state: State, kind: str, project: str, name: str, value: str) -> State:
    """What there is when something was done."""
    rest = {key: text for key, text in state.items() if key != (project, name)}
    match kind:
        case "save":
            return {**rest, (project, name): value}
        case "rename" if (project, name) in state:
            return {**rest, (project, value): state[project, name]}
        case "move" if (project, name) in state:
            return {**rest, (value, name): state[project, name]}
        case _:
            return rest


def write_and_be_killed(folder: Path, round_: int, state: State) -> list[State]:
    """Let a process write and kill it while it is at something; returns what there may be: without that, or with."""
    begun = Random(round_).randint(1, 40)
    arguments = ["-m", "tests.documents.killed_writer", str(folder), str(round_)]
    with start_python(arguments, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline()]
        while sum(json.loads(line)[0] == "begin" for line in lines) < begun:
            lines.append(writer.stdout.readline())
        os.kill(writer.pid, signal.SIGKILL)
        lines += writer.stdout.readlines()
    under_way: list[str] | None = None
    for line in lines:
        try:
            kind, *what = json.loads(line)
        except ValueError:
            # Killed while it spoke: of what it did not say to the end it is not known whether it is done.
            break
        if kind == "done":
            state = after(state, *what)
        under_way = what if kind == "begin" else None
    return [state] if under_way is None else [state, after(state, *under_way)]


@pytest.mark.slow
def test_what_was_acknowledged_is_there_and_nothing_else(tmp_path: Path) -> None:
    state: State = {}
    for round_ in range(ROUNDS):
        possible = write_and_be_killed(tmp_path, round_, state)
        with closing(Library(tmp_path, FakeEmbedder(16))) as library:
            documents = library.documents
            state = {
                (project.id, one.id): documents.text(project.id, one.id)
                for project in documents.projects()
                for one in documents.documents(project.id)
            }
            assert state in possible, round_
            chunks = [one for key in state for one in documents.chunks(*key)]
            assert len(chunks) == sum(len(split(text)) for text in state.values())
            assert library.store.check() == []
            assert documents.check() == []
            assert library.store.ids("paragraphs") == sorted(one.id for one in chunks)
            assert asked(library) <= {one.id for one in chunks}
            if round_ % 2:
                assert documents.flush(120)
                assert library.store.pending("paragraphs") == 0
                assert library.store.check() == []


def asked(library: Library) -> set[str]:
    """Whose vectors are asked for."""

    def work(transaction: Transaction) -> set[str]:
        return {one for (one,) in transaction.rows("SELECT id FROM work WHERE collection = 'documents'")}

    return library.engine.database.read(work)
