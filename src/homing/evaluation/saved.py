"""Evaluations that are kept in a data folder, one JSON file each."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

from pydantic import ValidationError

from homing.errors import InvalidArgument, NotFound, StoreCorrupt, StoreReadOnly
from homing.evaluation.result import Evaluation, Summary

log = logging.getLogger(__name__)

FOLDER = "evaluations"
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,99}")


def save_result(data: Path, result: Evaluation) -> Path:
    """Keep a result; returns its file. A process that is killed meanwhile leaves no half of one."""
    file = _file(data, result.id)
    draft = file.with_suffix(f".{os.getpid()}.tmp")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(result.model_dump_json(indent=1), encoding="utf-8")
        draft.replace(file)
    except OSError as error:
        raise StoreReadOnly(f"{file} cannot be written: {error.strerror}; choose another --data folder") from error
    return file


def list_results(data: Path) -> list[Summary]:
    """What is kept, the latest first. A file that cannot be read is left out, with a warning."""
    found = []
    for file in sorted((data / FOLDER).glob("*.json"), reverse=True):
        try:
            found.append(summary_of(read_result(data, file.stem)))
        except (StoreCorrupt, NotFound, InvalidArgument) as error:
            log.warning("passed over: %s", error)
    return found


def read_result(data: Path, result_id: str) -> Evaluation:
    """A kept result. Raises NotFound; StoreCorrupt where the file is damaged."""
    file = _file(data, result_id)
    try:
        return Evaluation.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        raise NotFound(f"there is no evaluation {result_id!r}; `homing eval … --save` keeps one") from None
    except (ValidationError, OSError) as error:
        raise StoreCorrupt(f"{file} is damaged; delete it and evaluate again") from error


def summary_of(result: Evaluation) -> Summary:
    """What a list shows of a result."""
    return Summary(
        id=result.id,
        created=result.created,
        sets=tuple(one.name for one in result.sets),
        models=result.models,
        configurations=len({row.configuration for row in result.rows}),
        best=result.best,
        passed=result.passed,
    )


def _file(data: Path, result_id: str) -> Path:
    # An id comes from a URL: it names a file of this folder and nothing else.
    if not _ID.fullmatch(result_id):
        raise InvalidArgument(f"an evaluation id consists of letters, digits and hyphens; got {result_id!r}")
    return data / FOLDER / f"{result_id}.json"
