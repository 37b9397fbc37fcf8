"""What the doctor says about embedding and recall: each problem with the line that mends it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from homing.config import Settings
from homing.doctor import Finding, diagnose
from homing.doctor.embedding import configured
from homing.testing.loopback import LoopbackApi

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

    def test_a_rejected_key_is_a_failure_that_does_not_show_it(self, tmp_path: Path) -> None:
        with LoopbackApi(key="another") as api:
            found = self.found(self.remote(tmp_path, api), live=True)
        assert found["embedding"][1].status == "fail"
        assert "INVALID_KEY" in found["embedding"][1].detail
        assert KEY not in repr(found)
