"""Settings: files, environment, both spellings, references, and errors that name the key."""

from __future__ import annotations

from pathlib import Path

import pytest
from platformdirs import user_data_path

from homing.config import Loaded, load
from homing.errors import ConfigError
from homing.resolve import resolve_embedder


def from_toml(folder: Path, text: str, **environ: str) -> Loaded:
    file = folder / "homing.toml"
    file.write_text(text, encoding="utf-8")
    return load(file, environ=environ)


def test_without_file_and_variables_the_bundled_model_and_sqlite_hold(tmp_path: Path) -> None:
    settings = load(environ={"HOMING_CONFIG": str(empty(tmp_path)), "HOMING_DATA": ""}).settings
    assert settings.embedding.provider == "bundled"
    assert settings.data == user_data_path("homing", appauthor=False)
    assert settings.store_url == f"sqlite:///{settings.data / 'homing.db'}"


def test_the_home_directory_may_be_written_with_a_tilde(tmp_path: Path) -> None:
    assert from_toml(tmp_path, 'data = "~/notes"').settings.data == Path.home() / "notes"


def test_camel_case_and_snake_case_mean_the_same(tmp_path: Path) -> None:
    camel = from_toml(tmp_path, '[embedding]\nproviderID = "a"\n[embedding.local]\nbaseUrl = "http://x"')
    snake = from_toml(tmp_path, '[embedding]\nprovider_id = "a"\n[embedding.local]\nbase_url = "http://x"')
    assert camel.settings == snake.settings
    assert camel.settings.embedding.provider_id == "a"
    assert camel.settings.embedding.local.base_url == "http://x"


def test_names_of_providers_stay_as_people_wrote_them(tmp_path: Path) -> None:
    loaded = from_toml(tmp_path, '[providers."My.OpenAI-1"]\ntype = "openai"\napiKey = "k"')
    assert loaded.settings.providers["My.OpenAI-1"].api_key.get_secret_value() == "k"


def test_the_environment_wins_over_the_file_and_says_so(tmp_path: Path) -> None:
    loaded = from_toml(tmp_path, "[search]\nrrf_k = 10\ndeadline = 2", HOMING_SEARCH__RRF_K="30")
    assert loaded.settings.search.rrf_k == 30
    rows = {key: (value, source) for key, value, source in loaded.rows()}
    assert rows["search.rrf_k"] == ("30", "environment")
    assert rows["search.deadline"] == ("2.0", str(tmp_path / "homing.toml"))
    assert rows["search.vector_weight"] == ("0.7", "default")


def test_an_unknown_key_is_refused_with_the_nearest_known_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"embedding\.provder .*homing\.toml.*did you mean 'provider'"):
        from_toml(tmp_path, '[embedding]\nprovder = "local"')
    with pytest.raises(ConfigError, match="did you mean 'api_key'"):
        from_toml(tmp_path, '[providers.x]\ntype = "openai"\napi_keys = "k"')


def test_a_value_of_the_wrong_kind_names_its_key_and_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"search\.rrf_k \(from environment\)"):
        from_toml(tmp_path, "", HOMING_SEARCH__RRF_K="many")


def test_what_is_wrong_is_said_in_chinese_too(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        from_toml(tmp_path, 'limit = 3\n[server]\nport = "abc"\nprot = 1\n[search]\nfusion = "x"')
    told = refused.value.details["zh"]
    for part in ("server.port（来自 ", "应为整数", "是不是 port？", "应为以下之一：'evidence' 或 'rrf'"):
        assert part in told
    assert "Input" not in told


def test_a_key_may_refer_to_a_variable(tmp_path: Path) -> None:
    text = '[providers.x]\ntype = "openai"\napi_key = "${MY_KEY}"'
    loaded = from_toml(tmp_path, text, MY_KEY="sk-secret")
    assert loaded.settings.providers["x"].api_key.get_secret_value() == "sk-secret"


def test_a_variable_that_is_not_set_is_said_when_its_value_is_needed(tmp_path: Path) -> None:
    text = '[embedding]\nprovider_id = "x"\nmodel = "m"\ndimensions = 8\n[providers.x]\ntype = "openai"\n'
    without = from_toml(tmp_path, f'{text}api_key = "${{MY_KEY}}"').settings
    with pytest.raises(ConfigError, match=r"\$\{MY_KEY\}.*not set"):
        resolve_embedder(without)
    with pytest.raises(ConfigError, match=r"\$\{MY_ADDRESS\}.*not set"):
        from_toml(tmp_path, f'{text}base_url = "${{MY_ADDRESS}}"')


def test_a_key_is_never_shown(tmp_path: Path) -> None:
    loaded = from_toml(tmp_path, '[providers.x]\ntype = "openai"\napi_key = "sk-secret"')
    assert "sk-secret" not in repr(loaded) + str(list(loaded.rows()))
    with pytest.raises(ConfigError) as caught:
        from_toml(tmp_path, '[providers.x]\ntyp = "openai"\napi_key = ["sk-secret"]')
    assert "sk-secret" not in str(caught.value) + str(caught.value.details)


def test_broken_toml_and_a_missing_named_file_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not valid TOML"):
        from_toml(tmp_path, "[embedding")
    with pytest.raises(ConfigError, match="there is no configuration file"):
        load(tmp_path / "none.toml", environ={})


def test_foreign_variables_are_left_alone(tmp_path: Path) -> None:
    assert from_toml(tmp_path, "", HOMING_SOMETHING_ELSE="1").sources == {}


def test_the_usual_proxy_variable_counts_where_nothing_else_is_set(tmp_path: Path) -> None:
    assert from_toml(tmp_path, "", HTTPS_PROXY="http://p:1").settings.proxy == "http://p:1"
    assert from_toml(tmp_path, "", HTTPS_PROXY="http://p:1", HOMING_PROXY="http://q:2").settings.proxy == "http://q:2"


def empty(folder: Path) -> Path:
    file = folder / "empty.toml"
    file.touch()
    return file
