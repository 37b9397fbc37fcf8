"""What one clause leaves out and its neighbour says."""

from __future__ import annotations

from dataclasses import dataclass, replace

from homing.devices.lexicon.actions import Action
from homing.devices.phrases import Phrase
from homing.devices.query import SpokenValue


@dataclass
class SpokenCommand:
    """One command on the way to its QueryIRs."""

    action: Action | None
    property: str | None
    value: SpokenValue | None
    phrases: list[Phrase]
    excluded: list[Phrase]
    negated: bool
    question: bool
    english: bool


def carry_over(commands: list[SpokenCommand]) -> list[SpokenCommand]:
    """What one clause leaves out, its neighbour says: 打开空调，调到26度; 灯都关掉，别动卧室的."""
    commands = _without_small_talk(commands)
    kept: list[SpokenCommand] = []
    waiting: list[Phrase] = []
    for position, command in enumerate(commands):
        following = commands[position + 1] if position + 1 < len(commands) else None
        before = kept[-1] if kept else None
        if command.action is None and not command.phrases and command.excluded:
            if before is not None:
                before.excluded += command.excluded
            else:
                waiting += command.excluded
            continue
        if command.negated and before is not None and _takes_back(command, before):
            before.excluded += command.phrases
            continue
        if command.negated and following is not None and any(phrase.rest for phrase in following.phrases):
            waiting += command.phrases
            _inherit_types(following, command)
            continue
        if before is not None and _only_says_where(command, before):
            for phrase in before.phrases:
                phrase.places = [place for said in command.phrases for place in said.places]
            continue
        if command.action is None and command.value is None and before is not None and command.phrases:
            command.action, command.property, command.value = before.action, before.property, before.value
        elif command.action is None and before is None and following is not None and not following.phrases:
            following.phrases = command.phrases
            following.property = following.property or command.property
            following.excluded += command.excluded
            continue
        if not command.phrases and before is not None and command.action is not None:
            command.phrases = [replace(phrase) for phrase in before.phrases]
        command.excluded += waiting
        waiting = []
        kept.append(command)
    for command in kept:
        _type_of_the_rest(command)
    return kept


def _without_small_talk(commands: list[SpokenCommand]) -> list[SpokenCommand]:
    """我想看电影，打开电视: what stands before the first command and speaks of nothing in the home says nothing."""
    first = next((i for i, command in enumerate(commands) if command.action is not None), None)
    if first is None:
        return commands
    return [command for i, command in enumerate(commands) if i >= first or not _is_small_talk(command)]


def _is_small_talk(command: SpokenCommand) -> bool:
    known = command.excluded or command.value or command.property
    return not known and all(replace(phrase, unknown=None, feature=None).empty for phrase in command.phrases)


def _type_of_the_rest(command: SpokenCommand) -> None:
    """除了厨房的灯都打开: the kind that is excluded is the kind that is meant."""
    kinds = [phrase for phrase in command.excluded if phrase.type is not None]
    if kinds and not any(phrase.headed for phrase in command.phrases):
        command.phrases = command.phrases or [Phrase(quantifier="all")]
        for phrase in command.phrases:
            phrase.type, phrase.type_text = kinds[0].type, kinds[0].type_text


def _only_says_where(command: SpokenCommand, before: SpokenCommand) -> bool:
    """关灯吧，主卧的: a place behind a command that named none."""
    silent = command.action is None and command.value is None and not command.excluded and not command.negated
    where = bool(command.phrases) and all(phrase.places and not phrase.headed for phrase in command.phrases)
    return silent and where and all(phrase.headed and not phrase.places for phrase in before.phrases)


def _takes_back(command: SpokenCommand, before: SpokenCommand) -> bool:
    """Whether a "don't" narrows the command before it: 关掉所有的灯，不要关卧室的."""
    if before.negated or not command.phrases or before.action is None:
        return False
    return command.action is None or bool(command.action.concepts & before.action.concepts)


def _inherit_types(command: SpokenCommand, source: SpokenCommand) -> None:
    for phrase in command.phrases:
        if not phrase.headed and source.phrases:
            phrase.type, phrase.type_text = source.phrases[0].type, source.phrases[0].type_text
