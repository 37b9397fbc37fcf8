"""How many files and calls of ours a request passes: `python bench/traces.py [--files]`, which also lists the files.

Counts calls of functions in `src/homing` and the files they are in, in all threads, with everything warm.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import homing
from homing.config import Settings
from homing.langchain import HybridRetriever
from homing.records import VectorRecord

SOURCE = str(Path(homing.__file__).parent)


class Trace:
    """What was called."""

    def __init__(self) -> None:
        self.calls = 0
        self.files: Counter[str] = Counter()

    def hear(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SOURCE):
            self.calls += 1
            self.files[frame.f_code.co_filename.removeprefix(f"{SOURCE}/")] += 1

    @contextmanager
    def on(self) -> Iterator[None]:
        threading.setprofile_all_threads(self.hear) if hasattr(threading, "setprofile_all_threads") else None
        threading.setprofile(self.hear)
        sys.setprofile(self.hear)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


def traced(name: str, work: Callable[[], object]) -> None:
    """Run something twice and tell what the second time took. Idle threads are made anew, so that they are heard."""
    from homing import legs

    work()
    legs._POOL = legs.ThreadPool("homing-leg", 512)
    trace = Trace()
    with trace.on():
        work()
    print(f"{name:28} {len(trace.files):4} files {trace.calls:6} calls")
    if "--files" in sys.argv:
        print("".join(f"{calls:8} {file}\n" for file, calls in sorted(trace.files.items())))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, homing.open(Path(folder) / "data", settings=Settings()) as app:
        notes = Path(folder) / "notes"
        notes.mkdir()
        for number in range(20):
            (notes / f"{number}.md").write_text(
                f"# 第{number}章\n\n灯塔 {number} lighthouse keeper.\n", encoding="utf-8"
            )
        index = app.folder(notes)
        index.refresh()
        traced("homing search", lambda: (index.refresh(), index.search("灯塔")))
        app.documents.save("novel", "ch1", "\n\n".join(f"第{number}段，灯塔 {number}。" for number in range(200)))
        app.documents.flush()
        traced("a document search", lambda: app.documents.search("novel", "灯塔 42", mode="hybrid", min_score=None))
        texts = iter(range(1000))

        def save() -> None:
            app.documents.save("novel", "ch2", f"新的一段 {next(texts)}，写在灯塔旁边。")
            app.documents.flush()

        traced("a save until its vector", save)
        for name in ("git-commit", "spreadsheet", "translate"):
            (Path(folder) / "skills" / name).mkdir(parents=True)
            head = f"---\nname: {name}\ndescription: 提交代码 {name} for a request\n---\n"
            (Path(folder) / "skills" / name / "SKILL.md").write_text(f"{head}\n# {name}\n\nHow to {name}.\n", "utf-8")
        app.skills.scan(Path(folder) / "skills")
        app.engine.flush()
        traced("find_skills", lambda: app.skills.find_relevant_skills("帮我提交代码", limit=5))
        app.memory.remember("knowledge", "Invoices go out on the first working day.")
        app.engine.flush()
        traced("a recall", lambda: app.memory.recall("when do invoices go out?"))
        app.engine.collection("plain").write([VectorRecord("a", "plain", None, {}, "灯塔")])
        app.engine.flush()
        traced("a plain search", lambda: app.search("灯塔", "plain"))
        texts_of_one = {str(number): f"灯塔 {number} lighthouse" for number in range(20)}
        app.add(texts_of_one, "documents", metadata={key: {"userId": 1} for key in texts_of_one})
        retriever = HybridRetriever(app.store, 1, embeddings=app.embedder)
        traced("HybridRetriever.invoke", lambda: retriever.invoke("灯塔 lighthouse"))


if __name__ == "__main__":
    main()
