"""A query asked of the words of a collection; one that no text holds is read as the nearest spelling that some do.

Terms are numbers here, so nobody can list spellings. Those at one edit from a word are made from the word, some
hundred, and looked up: a spelling that only removed texts had is not found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from string import ascii_lowercase

import numpy as np

from homing.stores.postings.index import ReadLists, View
from homing.stores.postings.question import Question
from homing.text.terms import Terms, numbers_of
from homing.text.tokens import is_stop_word, query_terms

MISSPELT = re.compile(r"[a-z]{4,30}")
"""Words that are read as another one where no text holds them: shorter ones are one edit away from too many."""


REMEMBERED = 1000
"""Spellings that are remembered at most."""


def put(view: View, query: str, read: ReadLists) -> tuple[Question, Mapping[str, str]]:
    """The question that a query puts to a view, and which of its words were read as others."""
    terms = query_terms(query)
    question = Question(view, terms, read)
    unknown = [term for term, count in zip(terms, question.holders, strict=True) if not count]
    found = {term: spelling for term in unknown if (spelling := _known(view, term, read))}
    if not found:
        return question, found
    return Question(view, list(dict.fromkeys(found.get(term, term) for term in terms)), read), found


def one_edit(word: str) -> set[str]:
    """What a word becomes by leaving out, exchanging, replacing or adding a letter."""
    cuts = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    made = {before + after[1:] for before, after in cuts if after}
    made |= {before + after[1] + after[0] + after[2:] for before, after in cuts if len(after) > 1}
    made |= {before + letter + after[1:] for before, after in cuts if after for letter in ascii_lowercase}
    made |= {before + letter + after for before, after in cuts for letter in ascii_lowercase}
    return made - {word}


def _known(view: View, word: str, read: ReadLists) -> str:
    """The nearest spelling, looked up once while the words of the collection are the same."""
    if (found := view.spellings.get(word)) is None:
        if len(view.spellings) >= REMEMBERED:
            view.spellings.clear()
        found = view.spellings[word] = _nearest(view, word, read)
    return found


def _nearest(view: View, word: str, read: ReadLists) -> str:
    """The spelling at one edit that most texts hold, of several the first by alphabet; empty where there is none."""
    if not MISSPELT.fullmatch(word):
        return ""
    spellings, numbers, whose = _spellings(word)
    holders = [0] * len(spellings)
    for part in view.parts:
        found = part.header.find(numbers)
        for (at, _), held in zip(found, part.holders([one for _, one in found], read), strict=True):
            holders[whose[at]] += held
    return spellings[holders.index(max(holders))] if any(holders) else ""


@lru_cache(maxsize=64)
def _spellings(word: str) -> tuple[Sequence[str], Terms, Sequence[int]]:
    """The spellings at one edit by alphabet, their numbers in order, and whose number each is.

    The collections that a query is put to are all asked for the same ones.
    """
    found = sorted(one for one in one_edit(word) if not is_stop_word(one))
    numbers = numbers_of(found)
    order = np.argsort(numbers)
    return found, numbers[order], order.tolist()
