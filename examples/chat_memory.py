"""A terminal chat that remembers.

    python examples/chat_memory.py                                  # offline: a scripted model that repeats its memory
    python examples/chat_memory.py --ollama qwen3:4b                # a model on this machine
    python examples/chat_memory.py --openai gpt-5-mini --key "$OPENAI_API_KEY"

What is said is remembered in the folder `--data`, so the next chat knows it; `--session` keeps two people apart.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence

import homing
from homing.chat import Message, OllamaLLM, OpenAILLM, StreamingChatModel
from homing.errors import ChatError
from homing.testing.scripted_chat import ScriptedChat

SYSTEM = Message("system", "You are a helpful companion. Answer briefly, in the language of the user.")
QUOTED = re.compile(r"^(`{3,})\n(.*?)\n\1$", re.MULTILINE | re.DOTALL)


def from_memory(messages: Sequence[Message]) -> str:
    """The scripted model's answer: what its system prompt quotes from memory."""
    quoted = [text for _, text in QUOTED.findall(messages[0].text)]
    if not quoted:
        return "记住了 / I will remember that."
    return "我记得 / I remember: " + "; ".join(quoted)


def chat_model(chosen: argparse.Namespace) -> StreamingChatModel:
    """The model that was asked for; without one, the scripted one, which needs no network."""
    if chosen.ollama:
        return OllamaLLM(chosen.ollama)
    if chosen.openai:
        return OpenAILLM(chosen.openai, api_key=chosen.key, **({"base_url": chosen.url} if chosen.url else {}))
    return ScriptedChat(from_memory)


def main() -> None:
    """Read lines until there are no more; answer each, then remember it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="data", help="the folder that holds the memory")
    parser.add_argument("--session", default="me", help="whose memory it is")
    parser.add_argument("--ollama", help="a model of a local Ollama")
    parser.add_argument("--openai", help="a model of OpenAI, or of a server that speaks its API")
    parser.add_argument("--url", help="the address of that server")
    parser.add_argument("--key", default="", help="the key for it")
    chosen = parser.parse_args()
    with homing.open(chosen.data) as app:
        model = app.memory.wrap(chat_model(chosen), session_key=chosen.session)
        spoken: list[Message] = []
        for line in prompted():
            spoken.append(Message("user", line))
            answer = ""
            try:
                for piece in model.stream([SYSTEM, *spoken]):
                    answer += piece
                    print(piece, end="", flush=True)
            except ChatError as error:
                print(error.message, file=sys.stderr)
            print(flush=True)
            spoken.append(Message("assistant", answer))
            app.memory.remember("observation", line, session_key=chosen.session)


def prompted() -> Iterator[str]:
    """What is typed, line by line, with a prompt where somebody types."""
    while True:
        try:
            line = input("> " if sys.stdin.isatty() else "")
        except EOFError:
            return
        if line.strip():
            yield line


if __name__ == "__main__":
    main()
