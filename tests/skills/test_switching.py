"""A change of the default model brings the skills along: begun by the command, waited for, with its progress shown."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import homing
from homing.app import Homing
from homing.config import Settings
from homing.embedders.local import LocalProvider
from homing.errors import HomingError
from homing.models import switch
from homing.models.records import LLMModel
from homing.skills import Skill
from homing.testing.loopback import Fault, LoopbackApi
from tests.forked import run, start
from tests.models.remote import add_remote_model

pytestmark = pytest.mark.slow

OLD = LocalProvider().id
NEW = "openai/text-embedding-3-small@512"
SKILLS = [
    Skill("git-commit", "生成Git提交信息", body="正文第一段。\n\n" + "正文。" * 200),
    Skill("file-read", "Read files from disk"),
    *(Skill(f"skill-{number}", f"第{number}号技能，number {number}") for number in range(150)),
]
KEY = "sk-loopback-4711"


@pytest.fixture
def api() -> Iterator[LoopbackApi]:
    with LoopbackApi(key=KEY) as api:
        yield api


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Homing]:
    with homing.open(tmp_path / "data", settings=Settings()) as app:
        app.skills.index_skills(SKILLS)
        yield app


@pytest.fixture
def remote(app: Homing, api: LoopbackApi) -> LLMModel:
    return add_remote_model(app, api, KEY)


def model_of_skills(app: Homing) -> str:
    (held,) = [one for one in app.switch.status().collections if one.collection == "skills"]
    return held.models[0].model


def test_skills_change_over_with_everything_else_and_progress_counts_them(app: Homing, remote: LLMModel) -> None:
    app.add({"n1": "一则笔记"}, "notes")
    app.close()
    # Nothing is written after this opening: no worker in the background takes part and nothing is left uncounted.
    with homing.open(app.settings.data, settings=Settings()) as again:
        again.switch.make_default(remote)
        assert not again.switch.status().finished
        assert model_of_skills(again) == OLD
        seen: list[tuple[int, int]] = []
        assert again.switch.run(lambda done, total: seen.append((done, total))) == 3
        status = again.switch.status()
        assert status.finished
        assert model_of_skills(again) == NEW
        held = {one.collection: one.models[0].embedded for one in status.collections}
        assert held["skills"] == len(SKILLS)
        assert held["skills.passages"] > 0
        done, total = seen[-1]
        assert done == total == sum(held.values())
        assert len(seen) >= 2
        found = again.skills.find_relevant_skills("git-commit")
        assert (found[0].name, found.degraded) == ("git-commit", False)
        assert again.switch.run() == 0


def test_skills_alone_are_brought_over(app: Homing, remote: LLMModel) -> None:
    app.switch.make_default(remote)
    assert app.switch.run() == 2
    assert model_of_skills(app) == NEW


def test_the_old_vectors_answer_until_the_new_ones_are_all_there(
    app: Homing, remote: LLMModel, api: LoopbackApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switch, "PATIENCE", ())
    app.switch.make_default(remote)
    api.always = Fault(status=500)
    with pytest.raises(HomingError):
        app.switch.run()
    assert model_of_skills(app) == OLD
    assert not app.switch.status().finished
    assert app.switch.status().state is not None
    api.always = None
    app.models.close()
    # The worker of the next one may be at it already, with the failure still on record.
    monkeypatch.undo()
    with homing.open(app.settings.data, settings=Settings()) as again:
        assert again.skills.find_relevant_skills("read a file")[0].name == "file-read"
        again.switch.run()
        assert model_of_skills(again) == NEW


def test_going_back_brings_the_skills_back(app: Homing, remote: LLMModel) -> None:
    app.switch.make_default(remote)
    app.switch.run()
    app.switch.rollback()
    app.switch.run()
    assert model_of_skills(app) == OLD
    assert app.switch.status().finished
    assert app.skills.find_relevant_skills("帮我提交代码")[0].name == "git-commit"


def test_a_folder_without_skills_never_opens_them(tmp_path: Path) -> None:
    code = (
        "import sys, homing\n"
        "from homing.config import Settings\n"
        f"with homing.open({str(tmp_path / 'data')!r}, settings=Settings()) as app:\n"
        "    app.add({'n': '笔记'}); app.switch.status(); app.switch.run()\n"
        "print('lancedb' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_the_command_waits_for_the_skills_and_killed_it_goes_on(
    app: Homing, remote: LLMModel, api: LoopbackApi
) -> None:
    command, data = ["models", "default"], ["--data", str(app.settings.data), "--json"]
    api.always = Fault(delay=0.2)
    running = start([*command, "text-embedding-3-small", *data], stdout=subprocess.DEVNULL)
    before = len(api.requests)
    while len(api.requests) < before + 2:
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    assert model_of_skills(app) == OLD
    api.always = None
    done = run([*command, *data])
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["finished"]
    (skills,) = [one for one in told["collections"] if one["collection"] == "skills"]
    assert skills["models"][0]["model"] == NEW
