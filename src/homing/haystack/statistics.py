"""What the meta of documents holds: which fields there are, their values, the smallest and the largest."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from homing.frameworks import OpenCollection
from homing.haystack.filters import Filters, where_of

_TYPES = {"bool": "boolean", "int": "long", "float": "float", "str": "keyword"}


class MetadataStatistics:
    """Questions about the meta of all documents, or of those that pass a filter. Each reads those documents once.

    A field may be named with or without `meta.`; each value of a list counts by itself.
    """

    @cached_property
    def _texts(self) -> OpenCollection:
        raise NotImplementedError

    def count_unique_metadata_by_filter(self, filters: Filters, metadata_fields: Sequence[str]) -> dict[str, int]:
        """How many different values each field has among the documents that pass a filter."""
        return {field: len(self._different(field, filters)) for field in metadata_fields}

    def get_metadata_fields_info(self) -> dict[str, dict[str, str]]:
        """The fields that documents have, each with the type of its values."""
        found: dict[str, dict[str, str]] = {}
        for field, value in self._values(None):
            kind = _TYPES.get(type(value).__name__, "object")
            known = found.setdefault(field, {"type": kind})
            if known["type"] != kind:
                known["type"] = "float" if {known["type"], kind} == {"long", "float"} else "keyword"
        return found

    def get_metadata_field_min_max(self, metadata_field: str) -> dict[str, Any]:
        """The smallest and the largest number of a field; of texts (dates) where it has no number, else None."""
        values = self._different(metadata_field, None)
        numbers = [one for one in values if isinstance(one, int | float) and not isinstance(one, bool)]
        ordered: Sequence[Any] = numbers or [one for one in values if isinstance(one, str)]
        return {"min": min(ordered, default=None), "max": max(ordered, default=None)}

    def get_metadata_field_unique_values(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: Filters | None = None,
    ) -> tuple[list[Any], int]:
        """A page of the different values of a field that contain `search_term`, in order, and how many there are."""
        term = (search_term or "").casefold()
        found = [one for one in self._different(metadata_field, filters) if term in str(one).casefold()]
        return found[from_ : from_ + size], len(found)

    def _different(self, field: str, filters: Filters | None) -> list[Any]:
        name = field.removeprefix("meta.")
        # 1, 1.0 and True are equal in Python.
        different = {(str(one), type(one).__name__): one for of, one in self._values(filters) if of == name}
        return [different[key] for key in sorted(different)]

    def _values(self, filters: Filters | None) -> Iterator[tuple[str, Any]]:
        for record in self._texts.get(self._texts.ids(where_of(filters))):
            for path, value in record.metadata.items():
                if path.startswith("meta."):
                    for one in value if isinstance(value, list) else [value]:
                        if one is not None:
                            yield path.removeprefix("meta."), one

    # The same in a thread.

    async def count_unique_metadata_by_filter_async(
        self, filters: Filters, metadata_fields: Sequence[str]
    ) -> dict[str, int]:
        return await asyncio.to_thread(self.count_unique_metadata_by_filter, filters, metadata_fields)

    async def get_metadata_fields_info_async(self) -> dict[str, dict[str, str]]:
        return await asyncio.to_thread(self.get_metadata_fields_info)

    async def get_metadata_field_min_max_async(self, metadata_field: str) -> dict[str, Any]:
        return await asyncio.to_thread(self.get_metadata_field_min_max, metadata_field)

    async def get_metadata_field_unique_values_async(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: Filters | None = None,
    ) -> tuple[list[Any], int]:
        return await asyncio.to_thread(
            self.get_metadata_field_unique_values, metadata_field, search_term, from_, size, filters
        )
