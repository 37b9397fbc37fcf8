"""Writers that are killed at random moments, round after round, on one database; then a look at what is left.

    python -m tests.memory.killed_writers 300

A round starts a process that saves, rewrites and deletes while its worker embeds, acknowledging each call on its
standard output, and kills it with SIGKILL somewhere in between.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from homing.embedders.provider import Kind
from homing.engine import Engine
from homing.engine.worker import WorkerOptions
from homing.memory import KnowledgeStore
from homing.stores.sqlite.store import SqliteStore
from homing.testing.fake import FakeEmbedder
from homing.vectors import Matrix
from tests.forked import start_python

BATCH = 4


class Counting(FakeEmbedder):
    """Writes down what it embeds, so that what killed processes embedded is known too."""

    def __init__(self, log: Path) -> None:
        super().__init__(16)
        self._log = log

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        with self._log.open("a", encoding="utf-8") as log:
            log.write("".join(f"{text}\n" for text in texts))
        return super().embed(texts, kind=kind)


class Parts:
    """Content and engine over one file of a folder."""

    def __init__(self, folder: Path) -> None:
        self.store = SqliteStore(folder / "homing.db")
        self.engine = Engine(self.store, Counting(folder / "embedded.txt"), options=WorkerOptions(batch_size=BATCH))
        self.knowledge = KnowledgeStore(self.engine)


def write(folder: Path, round_number: int) -> None:
    """What a killed process does until it is killed: each call is announced before and acknowledged after."""
    parts = Parts(folder)
    chance = random.Random(round_number)
    for number in range(400):
        key = f"{round_number}-{number}"
        _save(parts, key, f"文字 {key}")
        if number and chance.random() < 0.3:
            earlier = f"{round_number}-{chance.randrange(number)}"
            _save(parts, earlier, None if chance.random() < 0.5 else f"改写 {key}")


def _save(parts: Parts, key: str, text: str | None) -> None:
    print(json.dumps(["asked", key, text]), flush=True)
    if text is None:
        parts.knowledge.delete("knowledge", [key])
    else:
        parts.knowledge.save(text, entry_id=key)
    print(json.dumps(["done", key, text]), flush=True)


@dataclass(frozen=True)
class Aftermath:
    """What was found when the last process was dead and nothing waited any more.

    `wrong` are entries that are not what the last acknowledged call made them; `unembedded` and `stale` those whose
    vector is missing or of another text; `orphans` records without an entry. `repeated` counts texts that were embedded
    more than once: those that a killed process had embedded but not yet stored.
    """

    rounds: int
    acknowledged: int
    entries: int
    wrong: int
    unembedded: int
    stale: int
    orphans: int
    left: int
    dead: int
    repeated: int
    damage: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether nothing is missing, nothing is too much, and no more was embedded twice than kills can explain."""
        amiss = self.wrong + self.unembedded + self.stale + self.orphans + self.left + self.dead
        return not amiss and not self.damage and self.repeated <= BATCH * self.rounds


def kill(folder: Path, rounds: int, *, seed: int = 20) -> Aftermath:
    """Start and kill that many writers, then let one more process finish the work, and look."""
    chance = random.Random(seed)
    possible: dict[str, set[str | None]] = {}
    acknowledged = 0
    for number in range(rounds):
        for said, key, text in _round(folder, number, chance):
            if said == "asked":
                possible.setdefault(key, {None}).add(text)
            else:
                possible[key] = {text}
                acknowledged += 1
    parts = Parts(folder)
    parts.engine.flush(120)
    entries = {entry.id: entry.text for entry in parts.knowledge.list("knowledge", limit=1_000_000)}
    records = {record.id: record for record in parts.store.records("knowledge")}
    vectors = FakeEmbedder(16)
    embedded = Counter((folder / "embedded.txt").read_text(encoding="utf-8").splitlines())
    found = Aftermath(
        rounds=rounds,
        acknowledged=acknowledged,
        entries=len(entries),
        wrong=sum(entries.get(key) not in allowed for key, allowed in possible.items()),
        unembedded=sum(key not in records or records[key].embedding is None for key in entries),
        stale=sum(
            record.embedding is not None
            and not np.allclose(record.embedding, vectors.embed([record.text])[0], atol=1e-6)
            for record in records.values()
        ),
        orphans=len(records.keys() - entries.keys()),
        left=parts.engine.work.waiting(),
        dead=len(parts.engine.work.dead_letters()),
        repeated=sum(count - 1 for count in embedded.values()),
        damage=tuple(parts.store.check()),
    )
    parts.engine.close()
    parts.store.close()
    return found


def drain(folder: Path, processes: int) -> Counter[str]:
    """Embed what waits with several processes at once; returns how often each text was embedded."""
    arguments = ["-m", "tests.memory.killed_writers", "--drain", str(folder)]
    running = [start_python(arguments, cwd=Path(__file__).parents[2]) for _ in range(processes)]
    for process in running:
        assert process.wait(120) == 0
    return Counter((folder / "embedded.txt").read_text(encoding="utf-8").splitlines())


def _round(folder: Path, number: int, chance: random.Random) -> list[tuple[str, str, str | None]]:
    process = start_python(
        ["-m", "tests.memory.killed_writers", "--write", str(folder), str(number)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    lines = []
    for _ in range(chance.randrange(1, 120)):
        lines.append(process.stdout.readline())
    time.sleep(chance.random() / 50)
    process.kill()
    lines += process.stdout.readlines()
    process.wait()
    process.stdout.close()
    # The last line may be cut off; without its acknowledgement it counts as not said.
    return [json.loads(line) for line in lines if line.endswith("\n")]


def main() -> None:
    """Kill as many writers as the first argument says."""
    if sys.argv[1] == "--write":
        write(Path(sys.argv[2]), int(sys.argv[3]))
        return
    if sys.argv[1] == "--drain":
        Parts(Path(sys.argv[2])).engine.flush()
        return
    with tempfile.TemporaryDirectory() as folder:
        found = kill(Path(folder), int(sys.argv[1]))
    print(json.dumps(asdict(found), indent=2))
    sys.exit(not found.whole)


if __name__ == "__main__":
    main()
