"""The tables of providers and models. Steps are only ever added: what was released is never edited."""

from __future__ import annotations

from homing.database.database import Step

COMPONENT = "models"

# The index is what makes "exactly one default" hold whoever writes; `revision` tells readers whether anything of this
# changed, in a file where most commits are about something else.
_FIRST = """
CREATE TABLE llm_providers(
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, type TEXT NOT NULL,
    base_url TEXT NOT NULL, api_key TEXT NOT NULL, enabled INTEGER NOT NULL
) STRICT;
CREATE TABLE llm_models(
    id INTEGER PRIMARY KEY AUTOINCREMENT, provider INTEGER NOT NULL, model_key TEXT NOT NULL, model_type TEXT NOT NULL,
    config TEXT NOT NULL, is_default INTEGER NOT NULL, enabled INTEGER NOT NULL,
    UNIQUE(provider, model_key, model_type)
) STRICT;
CREATE UNIQUE INDEX llm_one_default ON llm_models(model_type) WHERE is_default;
CREATE TABLE llm_revision(number INTEGER NOT NULL) STRICT;
INSERT INTO llm_revision VALUES (1);
CREATE TABLE model_switch(one INT64 PRIMARY KEY, previous INT64 NOT NULL);
"""

STEPS: tuple[Step, ...] = (_FIRST,)
