"""What the doctor says about embedding and recall: each problem with the line that mends it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from homing.config import Settings
from homing.doctor import Finding, diagnose
from homing.doctor.embedding import configured
from homing.testing.loopback import Fault, LoopbackApi

KEY = "sk-very-secret-0123456789"
OPENAI = {"type": "openai", "api_key": KEY}


def settings(tmp_path: Path, providers: dict[str, Any] | None = None, **embedding: Any) -> Settings:
    return Settings.model_validate({"data": tmp_path, "embedding": embedding, "providers": providers or {}})


def only(findings: list[Finding]) -> Finding:
    [finding] = findings
    return finding


def test_not_configured_is_skipped_with_the_reason(tmp_path: Path) -> None:
    finding = only(configured(settings(tmp_path, provider="")))
    assert finding.status == "skip"
    assert "not configured" in finding.detail


def test_the_model_in_the_package_is_fine(tmp_path: Path) -> None:
    finding = only(configured(settings(tmp_path)))
    assert (finding.status, finding.detail) == ("ok", "all-MiniLM-L6-v2-zh on this machine; recall is on")


@pytest.mark.parametrize(
    ("embedding", "providers", "detail", "mend"),
    [
        ({"provider_id": "mine"}, {}, "no such provider; known: none", "[providers.mine] type"),
        ({"provider_id": "mine"}, {"other": OPENAI}, "known: other", "[providers.mine] type"),
        (
            {"provider_id": "claude", "model": "m"},
            {"claude": {"type": "anthropic", "api_key": KEY}},
            "'anthropic', which has no embeddings",
            "provider of type dashscope, gemini, google, ollama, openai",
        ),
        (
            {"provider_id": "a", "model": "text-embedding-3-small"},
            {"a": {"type": "openai"}},
            "providers.a has no API key",
            'providers.a.api_key = "${OPENAI_API_KEY}"',
        ),
        ({"provider_id": "a"}, {"a": OPENAI}, "embedding.model is not set", '"text-embedding-3-small"'),
        ({"provider": "local"}, {}, "embedding.model is not set", '"nomic-embed-text"'),
        (
            {"provider_id": "a", "model": "text-embedding-3-small", "dimensions": 9000},
            {"a": OPENAI},
            "gives at most 1536",
            "embedding.dimensions = 1536",
        ),
        ({"provider_id": "a", "model": "unheard-of"}, {"a": OPENAI}, "is not known here", "embedding.dimensions ="),
        ({"model": "nowhere"}, {}, "no model 'nowhere' on this machine", "homing models pull nowhere"),
        (
            {"rag": {"collections": ["dreams"]}},
            {},
            "names dreams, which does not exist",
            "any of knowledge, observation, reflection, learning",
        ),
    ],
)
def test_a_setting_that_cannot_work_fails_with_the_line_to_change(
    tmp_path: Path, embedding: dict[str, Any], providers: dict[str, Any], detail: str, mend: str
) -> None:
    finding = only(configured(settings(tmp_path, providers, **embedding)))
    assert finding.status == "fail"
    assert detail in finding.detail
    assert mend in finding.mend
    assert KEY not in repr(finding)


@pytest.mark.parametrize(
    ("embedding", "detail"),
    [
        ({"dimensions": 512}, "has 384 and no choice"),
        ({"rag": {"max_results": 900}}, "more than a prompt has room for"),
        ({"rag": {"max_distance": 1.5}}, "filters nothing"),
    ],
)
def test_a_setting_that_makes_no_sense_is_a_warning(tmp_path: Path, embedding: dict[str, Any], detail: str) -> None:
    finding = only(configured(settings(tmp_path, **embedding)))
    assert finding.status == "warn"
    assert detail in finding.detail
    assert "embedding." in finding.mend


def test_a_provider_that_is_set_up_is_fine_and_its_key_is_not_shown(tmp_path: Path) -> None:
    finding = only(configured(settings(tmp_path, {"a": OPENAI}, provider_id="a", model="text-embedding-3-small")))
    assert finding.status == "ok"
    assert "key set" in finding.detail
    assert KEY not in repr(finding)


class TestLive:
    """Only `--live` asks a model behind an API."""

    def remote(self, tmp_path: Path, api: LoopbackApi, **embedding: Any) -> Settings:
        providers = {"a": {**OPENAI, "base_url": api.url + "/v1"}}
        return settings(tmp_path, providers, provider_id="a", model="text-embedding-3-small", **embedding)

    def found(self, settings: Settings, *, live: bool) -> dict[str, list[Finding]]:
        by_check: dict[str, list[Finding]] = {}
        for finding in diagnose(settings, live=live):
            by_check.setdefault(finding.check, []).append(finding)
        return by_check

    def test_without_it_nobody_is_asked(self, tmp_path: Path) -> None:
        with LoopbackApi(key=KEY) as api:
            found = self.found(self.remote(tmp_path, api), live=False)
            assert api.requests == []
        assert [(one.status, one.mend) for one in found["model"]] == [("skip", "homing doctor --live")]

    def test_with_it_a_probe_is_embedded_every_time_and_its_width_compared(self, tmp_path: Path) -> None:
        with LoopbackApi(key=KEY) as api:
            for _ in range(2):
                found = self.found(self.remote(tmp_path, api, dimensions=256), live=True)
                assert [one.status for one in found["embedding"]] == ["ok", "ok"]
                assert "256 dimensions, as expected" in found["embedding"][1].detail
            probes = [received.body["input"] for received in api.requests]
        assert sum("探针" in str(texts) for texts in probes) == 2

    def test_a_wrong_width_says_which_is_right(self, tmp_path: Path) -> None:
        with LoopbackApi(key=KEY) as api:
            api.always = Fault(rows=lambda rows: [row[:128] for row in rows])
            found = self.found(self.remote(tmp_path, api, dimensions=256), live=True)
        assert found["embedding"][1].status == "fail"
        assert found["embedding"][1].mend == "embedding.dimensions = 128"

    def test_a_rejected_key_is_a_failure_that_does_not_show_it(self, tmp_path: Path) -> None:
        with LoopbackApi(key="another") as api:
            found = self.found(self.remote(tmp_path, api), live=True)
        assert found["embedding"][1].status == "fail"
        assert "INVALID_KEY" in found["embedding"][1].detail
        assert KEY not in repr(found)
