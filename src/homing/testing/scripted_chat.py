"""A chat model for tests and examples: it says what it was told to, and remembers what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from homing.chat import Message
from homing.errors import ChatError

Answer = str | Callable[[Sequence[Message]], str]


class ScriptedChat:
    """Answers with the next of `answers`, a text or a function of the conversation; the last one again and again.

    `asked` lists the conversations it was given. Set `fail_with` to have every call raise it.
    """

    def __init__(self, *answers: Answer, fail_with: ChatError | None = None) -> None:
        self.id = "scripted/chat"
        self.asked: list[list[Message]] = []
        self.fail_with = fail_with
        self._answers = list(answers) or [""]
        self._lock = threading.Lock()

    def complete(
        self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None, deadline: float | None = None
    ) -> str:
        """The next answer."""
        with self._lock:
            self.asked.append(list(messages))
            answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if self.fail_with is not None:
            raise self.fail_with
        return answer if isinstance(answer, str) else answer(messages)

    def stream(self, messages: Sequence[Message], *, deadline: float | None = None) -> Iterator[str]:
        """The next answer, character by character."""
        yield from self.complete(messages, deadline=deadline)
