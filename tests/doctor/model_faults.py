"""Faults of keys, providers and models, each planted in a home."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from functools import partial

from homing.embedders.model_folder import BUNDLED, DESCRIPTION, GRAPH, TOKENIZER, WEIGHTS
from homing.testing.fake import FakeEmbedder
from homing.testing.loopback import Fault as ApiFault
from tests.doctor.planting import (
    BY_HAND,
    Asked,
    Home,
    Planting,
    planted_in,
)

CASES: dict[str, Planting] = {}
case = partial(planted_in, CASES)


@case("key missing")
def a_provider_has_no_key(home: Home) -> Generator[Asked]:
    with home.open() as app:
        app.models.config.create_provider("工作", "openai")
    yield Asked(typed="sk-typed\n")


@case("key in database")
def a_key_is_in_the_database(home: Home) -> Generator[Asked]:
    with home.open() as app:
        app.models.config.create_provider("my work", "openai")
    home.sql("UPDATE llm_providers SET api_key = 'sk-plain' WHERE name = 'my work'")
    yield Asked(typed="sk-plain\n")
    assert b"sk-plain" not in (home.data / "homing.db").read_bytes()


@case("key unreachable")
def the_variable_of_a_key_is_not_set(home: Home) -> Generator[Asked]:
    with home.open() as app:
        app.models.config.create_provider("work", "openai", api_key="${NOBODY_SET_THIS}")
        app.models.config.create_model("work", "text-embedding-3-small", is_default=True)
    yield Asked(typed="sk-typed\n")


def default_behind_api(home: Home, key: str) -> None:
    home.told.clear()
    home.tell("")
    with home.open() as app:
        config = app.models.config
        config.create_provider("work", "openai", api_key=key, base_url=home.api.url + "/v1")
        config.create_model("work", "text-embedding-3-small", model_config={"dimensions": 64}, is_default=True)


@case("key rejected")
def the_default_model_has_a_wrong_key(home: Home) -> Generator[Asked]:
    home.api.key = "right"
    default_behind_api(home, "wrong")
    yield Asked(live=True, typed="right\n")


@case("default unfit")
def the_default_model_gives_one_vector_for_everything(home: Home) -> Generator[Asked]:
    home.api.always = ApiFault(rows=lambda rows: rows[:1] * len(rows))
    default_behind_api(home, "k")
    yield Asked(live=True)


@case("provider unknown")
def no_such_provider(home: Home) -> Generator[Asked]:
    home.tell('embedding = { provider_id = "mine", model = "text-embedding-3-small" }')
    yield Asked()


@case("provider without embeddings")
def a_provider_that_only_chats(home: Home) -> Generator[Asked]:
    home.use_api('providers.claude = { type = "anthropic", api_key = "k" }\n')
    home.tell('embedding.provider_id = "claude"')
    yield Asked()
    assert home.settings.embedding.provider_id == "a"


@case("provider without key")
def a_provider_without_a_key(home: Home) -> Generator[Asked]:
    home.use_api()
    home.tell('providers.a.api_key = ""')
    yield Asked()


@case("variable unset")
def a_variable_is_not_set(home: Home) -> Generator[Asked]:
    home.patch.delenv("OPENAI_API_KEY", raising=False)
    home.use_api()
    home.tell('providers.a.api_key = "${OPENAI_API_KEY}"')
    yield Asked(words={"=KEY": "=sk-typed"})


@case("provider rejects key")
def a_provider_rejects_its_key(home: Home) -> Generator[Asked]:
    home.api.key = "right"
    home.use_api()
    yield Asked(live=True, by_hand=True)
    home.tell('providers.a.api_key = "right"')


@case("provider down")
def a_provider_does_not_answer(home: Home) -> Generator[Asked]:
    home.api.always = ApiFault(status=400, body="{}")
    home.use_api()
    yield Asked(live=True, by_hand=True)
    home.api.always = None


@case("model unnamed")
def no_model_is_named(home: Home) -> Generator[Asked]:
    home.use_api()
    home.tell('embedding.model = ""')
    yield Asked()


def pulled(home: Home, *, cut: int | None = None) -> None:
    """What `homing models pull` leaves; tests/embedders/test_pull.py pulls."""
    folder = home.folder / "models" / "all-MiniLM-L6-v2"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in (TOKENIZER, WEIGHTS):
        (folder / name).symlink_to(BUNDLED / name)
    description = (BUNDLED / DESCRIPTION).read_text(encoding="utf-8")
    (folder / DESCRIPTION).write_text(description.replace("all-MiniLM-L6-v2-zh", "all-MiniLM-L6-v2"), encoding="utf-8")
    (folder / GRAPH).write_bytes((BUNDLED / GRAPH).read_bytes()[:cut])


@case("model not pulled")
def a_model_was_not_pulled(home: Home) -> Generator[Asked]:
    home.tell(f'models = "{home.folder / "models"}"\nembedding = {{ model = "all-MiniLM-L6-v2" }}')
    yield BY_HAND
    pulled(home)


@case("model damaged")
def a_pulled_model_is_cut_off(home: Home) -> Generator[Asked]:
    home.tell(f'models = "{home.folder / "models"}"\nembedding = {{ model = "all-MiniLM-L6-v2" }}')
    pulled(home, cut=1000)
    yield BY_HAND
    pulled(home)


@case("model unknown")
def no_such_model(home: Home) -> Generator[Asked]:
    home.tell('embedding = { model = "nowhere" }')
    yield Asked()


@case("model unfit")
def a_model_gives_one_vector_for_everything(home: Home) -> Generator[Asked]:
    home.api.always = ApiFault(rows=lambda rows: rows[:1] * len(rows))
    home.use_api()
    yield Asked(live=True)


@case("model changed")
def another_model_made_the_vectors(home: Home) -> Generator[Asked]:
    home.use_api()
    with home.open(embedder=FakeEmbedder(32)) as app:
        app.memory.remember("learning", "海 sea")
        app.engine.flush()
    yield Asked()


@case("skills by words")
def the_model_of_the_skills_is_gone(home: Home) -> Generator[Asked]:
    home.use_api()
    with home.open(embedder=FakeEmbedder(32)) as app:
        app.skills.scan(home.data.parent / "skills")
        app.engine.flush()
    yield Asked(live=True)


@case("width fixed")
def a_width_that_is_ignored(home: Home) -> Generator[Asked]:
    home.tell("embedding = { dimensions = 512 }")
    yield Asked()


@case("width unknown")
def a_width_that_nobody_knows(home: Home) -> Generator[Asked]:
    home.use_api()
    home.tell('embedding = { provider_id = "a", model = "unheard-of" }')
    yield Asked(words={"WIDTH": 64})


@case("width too large")
def a_width_beyond_the_models(home: Home) -> Generator[Asked]:
    home.use_api()
    home.tell("embedding.dimensions = 9000")
    yield Asked()


@case("width wrong")
def another_width_is_answered(home: Home) -> Generator[Asked]:
    home.api.always = ApiFault(rows=lambda rows: [row[:32] for row in rows])
    home.use_api()
    yield Asked(live=True)
