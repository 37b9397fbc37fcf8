"""The adapters of other frameworks without those: one sentence, with the extra to install."""

from __future__ import annotations

import subprocess
import sys

WITHOUT = """
import sys
for name in ("langchain_core", "langgraph", "llama_index", "haystack"):
    sys.modules[name] = None
from importlib import import_module
from homing.errors import MissingExtra
for name in ("langchain", "langgraph", "llamaindex", "haystack"):
    try:
        import_module(f"homing.{name}")
    except MissingExtra as error:
        print(error.details["extra"], f"pip install 'homing[{name}]'" in error.message, error.code)
"""


def test_an_absent_library_is_a_sentence_with_the_extra_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=60)
    expected = [f"{extra} True MISSING_EXTRA" for extra in ("langchain", "langgraph", "llamaindex", "haystack")]
    assert done.stdout.splitlines() == expected, done.stderr
