from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from homing.documents import DocumentService
from homing.testing.fake import FakeEmbedder
from tests.documents.novel import Library


@pytest.fixture
def embedder() -> FakeEmbedder:
    return FakeEmbedder(128)


@pytest.fixture
def library(tmp_path: Path, embedder: FakeEmbedder) -> Iterator[Library]:
    library = Library(tmp_path, embedder)
    yield library
    library.close()


@pytest.fixture
def documents(library: Library) -> DocumentService:
    return library.documents
