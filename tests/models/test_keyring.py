"""Keys in the keyring of the system, asked through the library's own interface."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import homing
from homing.config import Settings
from homing.doctor import diagnose
from homing.errors import ConfigError
from homing.models.keys import Keys
from homing.testing.loopback import LoopbackApi

keyring = pytest.importorskip("keyring")
backend = pytest.importorskip("keyring.backend")
fail = pytest.importorskip("keyring.backends.fail")
PLANTED = "planted-5ecret"


class InMemory(backend.KeyringBackend):  # type: ignore[misc, name-defined]
    """A keyring of the library's own kind, which needs no desktop."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password


@pytest.fixture
def keyring_of_the_system() -> Iterator[InMemory]:
    before, own = keyring.get_keyring(), InMemory()
    keyring.set_keyring(own)
    yield own
    keyring.set_keyring(before)


def test_a_key_in_the_keyring_is_asked_for_when_it_is_needed_and_written_nowhere(
    tmp_path: Path, keyring_of_the_system: InMemory
) -> None:
    with LoopbackApi(key=f"sk-{PLANTED}") as api, homing.open(tmp_path / "data", settings=Settings()) as app:
        config = app.models.config
        config.create_provider("work", "openai", api_key="${keyring:work}", base_url=api.url + "/v1")
        config.create_model("work", "text-embedding-3-small", model_config={"dimensions": 64}, is_default=True)
        [told] = [one for one in diagnose(app.settings) if one.check == "provider work"]
        assert (told.status, told.mend) == ("fail", "homing providers key work")
        keyring.set_password("homing", "work", f"sk-{PLANTED}")
        [told] = [one for one in diagnose(app.settings) if one.check == "provider work"]
        assert told.status == "ok"
        assert app.embedder is not None
        assert app.embedder.embed(["灯塔"]).shape == (1, 64)
        assert api.requests
    for file in (tmp_path / "data").rglob("*"):
        assert not file.is_file() or PLANTED.encode() not in file.read_bytes(), file


def test_a_machine_without_a_keyring_says_so(keyring_of_the_system: InMemory) -> None:
    keyring.set_keyring(fail.Keyring())
    with pytest.raises(ConfigError, match="keyring"):
        Keys(None, str).refer("${keyring:work}")
