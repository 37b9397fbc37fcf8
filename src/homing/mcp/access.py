"""Whose data a call reaches, and whether it may change it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from homing.on_search import OnSearch, ignore_search

if TYPE_CHECKING:
    from homing.app import Homing


@dataclass(frozen=True, slots=True)
class Access:
    """An open data folder as one caller may use it; `on_search` is told of every search that was answered."""

    app: Homing
    may_write: bool = True
    on_search: OnSearch = ignore_search


AccessOf = Callable[[Any], Access]
"""From what a transport says about a request (its HTTP request; None over stdio) to what its caller may reach.

Called in a worker thread for every call, so that one connection never answers with the data of another.
"""
