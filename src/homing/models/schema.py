"""The tables of providers and models. Steps are only ever added: what was released is never edited."""

from __future__ import annotations

from homing.database.database import Step

COMPONENT = "models"

# The index is what makes "exactly one default" hold whoever writes; `revision` tells readers whether anything of this
# changed, in a database where most commits are about something else.
_FIRST = """
CREATE TABLE llm_providers(
    id IDENTITY, name TEXT NOT NULL UNIQUE, type TEXT NOT NULL, base_url TEXT NOT NULL, api_key TEXT NOT NULL,
    enabled INT64 NOT NULL
);
CREATE TABLE llm_models(
    id IDENTITY, provider INT64 NOT NULL, model_key TEXT NOT NULL, model_type TEXT NOT NULL, config TEXT NOT NULL,
    is_default INT64 NOT NULL, enabled INT64 NOT NULL,
    UNIQUE(provider, model_key, model_type)
);
CREATE UNIQUE INDEX llm_one_default ON llm_models(model_type) WHERE is_default = 1;
CREATE TABLE llm_revision(number INT64 NOT NULL);
INSERT INTO llm_revision VALUES (1);
CREATE TABLE model_switch(one INT64 PRIMARY KEY, previous INT64 NOT NULL);
"""

STEPS: tuple[Step, ...] = (_FIRST,)
