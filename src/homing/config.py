"""Settings: the one place that reads `homing.toml` and the environment.

Later wins: defaults, then `homing.toml` in the current folder (or the file that `HOMING_CONFIG` names), then variables
such as `HOMING_EMBEDDING__MODEL`, where two underscores separate a section from its key. Keys may be written
`provider_id` or `providerID`. A key may refer to a variable: `api_key = "${OPENAI_API_KEY}"`.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import unquote

from platformdirs import user_data_path
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from homing.errors import ConfigError, hide_passwords
from homing.errors_zh import field_in_chinese

FILE = "homing.toml"
PREFIX = "HOMING_"


class Section(BaseModel):
    """A part of the settings. Unknown keys are errors, never ignored."""

    # Built once, as parts of the whole, when settings are read.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class ProviderSettings(Section):
    """An account with a model provider, referred to by its name in `providers`."""

    type: str = Field(description="openai, gemini, ollama, dashscope, anthropic …")
    api_key: SecretStr = Field(SecretStr(""), description="the key, or `${VARIABLE}` to read it from the environment")
    base_url: str = Field("", description="address of the API, where it is not the provider's own")


class OllamaSettings(Section):
    """Where Ollama listens, for `embedding.provider = "local"`."""

    base_url: str = Field("http://localhost:11434", description="address of the Ollama server")


class RagSettings(Section):
    """What is recalled by default."""

    enabled: bool = Field(True, description="whether context is retrieved for prompts at all")
    collections: tuple[str, ...] = Field((), description="which collections; empty means all")
    max_results: int = Field(5, ge=1, le=1000, description="how many results at most")
    max_distance: float = Field(0.0, ge=0.0, le=2.0, description="results farther than this are left out; 0 is off")


class EmbeddingSettings(Section):
    """Which model turns text into vectors."""

    provider: Literal["bundled", "local", ""] = Field(
        "bundled", description="`bundled` (a model on this machine), `local` (Ollama), or empty: keywords only"
    )
    provider_id: str = Field("", description="a name from `providers`; wins over `provider`")
    model: str = Field(
        "", description="model name; empty means the provider's own choice, for `bundled` the one in the package"
    )
    dimensions: int | None = Field(None, ge=1, le=65536, description="width of the vectors, where it can be chosen")
    query_deadline: float = Field(
        0.8, gt=0, description="seconds that a query waits for a remote model before keywords answer alone"
    )
    local: OllamaSettings = OllamaSettings()
    rag: RagSettings = RagSettings()


class SearchSettings(Section):
    """How the two legs of a search become one order."""

    fusion: Literal["evidence", "rrf"] = Field(
        "evidence", description="`evidence` ranks by what both legs measure, `rrf` by the places in their lists"
    )
    vector_weight: float = Field(0.7, ge=0, description="weight of the vector leg, for `rrf`")
    keyword_weight: float = Field(0.3, ge=0, description="weight of the keyword leg, for `rrf`")
    rrf_k: int = Field(60, ge=0, description="how little the first places of a leg stand out, for `rrf`")
    deadline: float = Field(5.0, gt=0, description="seconds that an answer waits for a leg")


class DevicesSettings(Section):
    """How sentences to the home are read."""

    chat: str = Field(
        "",
        description="a chat model that reads them first, `account/model` with a name from `providers`, or "
        "`ollama/model`; empty: the rules alone",
    )
    deadline: float = Field(1.0, gt=0, description="seconds that the chat model may take before the rules answer")


class FileSettings(Section):
    """What reading one file (pdf, docx, xlsx, epub) may take; it is read by a process of its own, which then ends."""

    seconds: float = Field(60.0, gt=0, description="seconds until the reading of a file is given up")
    cpu_seconds: float = Field(30.0, ge=1, description="seconds of processor time for one file")
    memory: int = Field(1024 * 1024 * 1024, ge=16 * 1024 * 1024, description="bytes of memory for one file")
    at_once: int = Field(4, ge=1, description="files that a server reads at the same time")
    per_user: int = Field(2, ge=1, description="files of one user among these; the others wait for their turn")


class ServerSettings(Section):
    """How `homing serve` listens, and what it takes from one caller."""

    host: str = Field("127.0.0.1", description="address to listen on; anything but loopback needs a token")
    port: int = Field(8765, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    allowed_hosts: tuple[str, ...] = Field(
        (), description="names by which the server may be called, beside those of loopback"
    )
    cors_origins: tuple[str, ...] = Field((), description="web pages of other origins that may call it")
    max_body: int = Field(16 * 1024 * 1024, ge=1024, description="bytes that one request may send")
    header_bytes: int = Field(32 * 1024, ge=1024, description="bytes that the headers of one request may have")
    header_count: int = Field(100, ge=8, description="headers that one request may have")
    header_timeout: float = Field(10.0, gt=0, description="seconds until the headers of a request must be there")
    body_timeout: float = Field(60.0, gt=0, description="seconds until its body must be there, or an answer be taken")
    connections: int = Field(1000, ge=4, description="connections at the same time; idle ones make room for new ones")
    connections_per_address: int = Field(256, ge=1, description="connections of one address among these")
    trusted_proxies: tuple[str, ...] = Field(
        (), description="addresses of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed; of no others"
    )
    cert: str = Field("", description="PEM file with a certificate: the server then speaks HTTPS")
    key: str = Field("", description="PEM file with the private key of the certificate")
    workers: int = Field(1, ge=1, le=256, description="processes that share the port, the data and these limits")
    rate: float = Field(0.0, ge=0, description="requests a second that one token or address may make; 0 is no limit")
    burst: int = Field(50, ge=1, description="requests that may come at once before `rate` counts")
    concurrent: int = Field(8, ge=1, le=1000, description="requests worked on at the same time")
    waiting: int = Field(256, ge=0, description="requests that may wait for their turn; the next is told to come back")
    patience: float = Field(10.0, gt=0, description="seconds that a request waits for its turn")
    users: int = Field(64, ge=1, description="users whose folders are kept open at the same time")
    embed: bool = Field(True, description="whether the server embeds what waits; PostgreSQL: workers may do so instead")
    log_queries: bool = Field(False, description="whether what people search for is written to the log")


class Settings(Section):
    """Everything that can be set."""

    data: Path = Field(
        default_factory=lambda: user_data_path("homing", appauthor=False),
        description="the folder that holds everything; by default the place for a user's data on this system",
    )
    models: Path = Field(Path("~/.homing/models"), description="the folder that pulled models are kept in")
    store: str = Field("", description="store URL; empty means SQLite in the data folder")
    row_security: bool = Field(False, description="PostgreSQL: the server itself keeps users apart as well")
    proxy: str = Field("", description="HTTP proxy for remote providers; `HTTPS_PROXY` counts where this is not set")
    embedding: EmbeddingSettings = EmbeddingSettings()
    search: SearchSettings = SearchSettings()
    devices: DevicesSettings = DevicesSettings()
    files: FileSettings = FileSettings()
    server: ServerSettings = ServerSettings()
    providers: dict[str, ProviderSettings] = Field({}, description="accounts with model providers, by name")

    @field_validator("data")
    @classmethod
    def _below_home(cls, folder: Path) -> Path:
        return folder.expanduser()

    @property
    def store_url(self) -> str:
        """The store to open."""
        return self.store or f"sqlite:///{self.data / 'homing.db'}"

    @property
    def database(self) -> str | Path:
        """Where rows are kept: in the server or file of a store that is a database, else in the data folder."""
        if self.store.startswith("sqlite:///"):
            return Path(unquote(self.store.removeprefix("sqlite:///")))
        if self.store.startswith(("postgresql://", "postgres://")):
            return self.store
        return Path(self.store) if self.store.endswith(".db") and "://" not in self.store else self.data / "homing.db"


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and for each dotted key that was set where the value came from."""

    settings: Settings
    sources: Mapping[str, str]

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Every effective value as (key, value, source), with secrets masked."""
        for keys, value in _flatten(self.settings.model_dump(mode="json")):
            key = ".".join(keys)
            shown = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
            yield key, hide_passwords(shown), self.sources.get(key, "default")


def load(
    path: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Loaded:
    """Read the settings. Raises ConfigError naming the key, where it stands, and what it may be."""
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for source, layer in _layers(path, environ, overrides or {}):
        for keys, value in _flatten(layer):
            sources[".".join(keys)] = source
            _put(values, keys, _refer(value, environ, later=keys[-1] == "api_key"))
    try:
        return Loaded(Settings.model_validate(values), sources)
    except ValidationError as error:
        raise _explained(error, sources) from None


def _layers(
    path: Path | None, environ: Mapping[str, str], overrides: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    file = config_file(path, environ)
    if file is not None:
        yield str(file), _snake(_read(file))
    proxy = environ.get("HTTPS_PROXY") or environ.get("https_proxy")
    yield "environment", {**({"proxy": proxy} if proxy else {}), **_snake(_variables(environ))}
    yield "argument", _snake(overrides)


def config_file(path: Path | None = None, environ: Mapping[str, str] | None = None) -> Path | None:
    """The file that is read: the one given, the one that `HOMING_CONFIG` names, or `homing.toml` where it exists.

    Raises ConfigError where a file that was named is not there.
    """
    named = path or (os.environ if environ is None else environ).get(PREFIX + "CONFIG")
    file = Path(named or FILE)
    if file.is_file():
        return file
    if named:
        raise ConfigError(f"there is no configuration file {file}; create it or correct its name")
    return None


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not valid TOML: {error}") from error
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from error


def _variables(environ: Mapping[str, str]) -> dict[str, Any]:
    # Only names that begin like a setting are ours: HOMING_CONFIG and foreign HOMING_* variables are left alone. An
    # empty HOMING_DATA names no folder, and certainly not the current one.
    layer: dict[str, Any] = {}
    for name, value in environ.items():
        parts = name.removeprefix(PREFIX).lower().split("__")
        if name.startswith(PREFIX) and parts[0] in Settings.model_fields and (value or parts != ["data"]):
            _put(layer, tuple(parts), value)
    return layer


def _put(tree: dict[str, Any], keys: tuple[str, ...], value: Any) -> None:
    for key in keys[:-1]:
        tree = tree.setdefault(key, {})
    tree[keys[-1]] = value


def _flatten(tree: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, (*above, key))
        else:
            yield (*above, key), value


def _snake(layer: Mapping[str, Any]) -> dict[str, Any]:
    # The keys under `providers` are names that people chose; they stay as written.
    def fold(tree: Mapping[str, Any], inside: str) -> dict[str, Any]:
        return {
            (key if inside == "providers" else _snake_key(key)): (
                fold(value, _snake_key(key) if inside == "" else "section") if isinstance(value, Mapping) else value
            )
            for key, value in tree.items()
        }

    return fold(layer, "")


def _snake_key(key: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", key).replace("-", "_").lower()


def speaks_chinese() -> bool:
    """Whether the language of this machine, as the environment tells it, is Chinese."""
    locales = (os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return next((one.startswith("zh") for one in locales if one), False)


def refer(value: str) -> str:
    """The value, or what the variable that it names as `${NAME}` holds. Raises ConfigError where that is not set."""
    found: str = _refer(value, os.environ)
    return found


def unset_variables(values: Iterable[str]) -> list[str]:
    """Which variables values refer to as `${NAME}` that are not set here, by name."""
    found = {match[1] for value in values if (match := re.fullmatch(r"\$\{(\w+)\}", value))}
    return sorted(found - os.environ.keys())


def _refer(value: Any, environ: Mapping[str, str], *, later: bool = False) -> Any:
    """What a value means; with `later` a variable that is not set may still be looked for when the value is used.

    A key that nobody has yet is a fault of one model, and no reason to open nothing at all.
    """
    reference = re.fullmatch(r"\$\{(\w+)\}", value) if isinstance(value, str) else None
    if reference is None or (later and reference[1] not in environ):
        return value
    if reference[1] not in environ:
        raise ConfigError(f"a setting refers to ${{{reference[1]}}}, but that variable is not set; export it first")
    return environ[reference[1]]


def _explained(error: ValidationError, sources: Mapping[str, str]) -> ConfigError:
    problems, chinese = [], []
    for one in error.errors(include_input=False, include_url=False):
        key = ".".join(str(part) for part in one["loc"])
        place = sources.get(key, next((at for name, at in sources.items() if name.startswith(key)), "defaults"))
        hint, zh = one["msg"].replace("Input should", "should"), field_in_chinese(one["type"], one.get("ctx", {}))
        if one["type"] == "extra_forbidden":
            hint, zh = _nearest(one["loc"])
        problems.append(f"{key} (from {place}): {hint}")
        chinese.append(f"{key}（来自 {place}）：{zh}")
    details = {"problems": problems, "zh": "；".join(chinese)}
    return ConfigError("invalid configuration: " + "; ".join(problems), details=details)


def _nearest(location: tuple[int | str, ...]) -> tuple[str, str]:
    section: type[BaseModel] = Settings
    for part in location[:-1]:
        field = section.model_fields.get(str(part))
        if field is None:
            continue
        if ProviderSettings in get_args(field.annotation):
            section = ProviderSettings
        elif isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            section = field.annotation
    known = list(section.model_fields)
    close = difflib.get_close_matches(str(location[-1]), known, n=1)
    if close:
        return f"unknown key; did you mean {close[0]!r}?", f"没有这一项，是不是 {close[0]}？"
    return f"unknown key; known: {', '.join(known)}", f"没有这一项；有的是：{', '.join(known)}"
