"""Servers and workers as processes of their own, each with an empty folder, on one PostgreSQL; and who uses them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx2

from tests.forked import Process, start
from tests.server.process import told

ATTEMPTS = 20_000


@dataclass
class Member:
    """One process, and where it answers if it is a server."""

    process: Process
    address: str


@dataclass
class Cluster:
    """Members by name; one whose name begins with `s` is a server, the others are workers."""

    folder: Path
    environ: Mapping[str, str]
    members: dict[str, Member] = field(default_factory=dict)
    starts: int = 0

    def start(self, name: str) -> None:
        """Start a member in a folder that nobody had before."""
        self.starts += 1
        data = self.folder / f"{name}-{self.starts}"
        log = self.folder / f"{name}-{self.starts}.log"
        command = ["serve", "--port", "0", "--no-embed"] if name.startswith("s") else ["worker", "--concurrency", "2"]
        with log.open("w", encoding="utf-8") as stderr:
            process = start(
                [*command, "--json", "--data", str(data)],
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                cwd=self.folder,
                env={**os.environ, **self.environ},
            )
        address = str(told(process, log).get("address", "")).rstrip("/")
        self.members[name] = Member(process, address)

    def kill(self, name: str) -> None:
        """End a member at once, whatever it is at."""
        process = self.members[name].process
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()

    def servers(self) -> list[str]:
        """Where the servers answer."""
        return [one.address for one in list(self.members.values()) if one.address]

    def close(self) -> None:
        """End all of them."""
        for name in self.members:
            self.kill(name)


@dataclass
class Person:
    """A user who writes through any server, and remembers what was acknowledged."""

    name: str
    headers: Mapping[str, str]
    cluster: Cluster
    chance: Random
    documents: dict[str, str] = field(default_factory=dict)
    memories: dict[str, str] = field(default_factory=dict)
    jobs: list[str] = field(default_factory=list)
    written: int = 0

    def ask(self, method: str, path: str, body: object = None, *, server: str = "") -> Any:
        """What a server answers; where it does not, another is asked until one does."""
        for _ in range(ATTEMPTS):
            address = server or self.chance.choice(self.cluster.servers())
            try:
                answer = httpx2.request(method, address + path, json=body, headers=self.headers, timeout=60)
            except httpx2.TransportError:
                # It was killed, before or after it did what it was asked for.
                time.sleep(0.02)
                continue
            if answer.status_code in (429, 503):
                time.sleep(0.05)
                continue
            if answer.status_code == 409:
                return {"id": answer.json()["error"]["details"]["job"]}
            assert answer.status_code in (200, 201, 202, 404), (method, path, answer.text)
            return answer.json()
        raise AssertionError(f"no server answers: {method} {path}")

    def save(self, key: str) -> None:
        """Save a document; when this returns it was acknowledged."""
        self.written += 1
        text = f"{self.name}的灯塔 lighthouse number {self.written}\n\n{self.name} 第二段 {self.written}"
        self.ask("PUT", f"/documents/island/{key}", {"text": text})
        self.documents[key] = text

    def write(self) -> None:
        """Save, remember or delete something; when this returns it was acknowledged."""
        self.written += 1
        key, text = f"k{self.chance.randrange(6)}", f"{self.name}的灯塔 lighthouse number {self.written}"
        match self.chance.randrange(6):
            case 0:
                self.ask("DELETE", f"/documents/island/{key}")
                self.documents.pop(key, None)
            case 1:
                self.ask("DELETE", f"/memory/{key}")
                self.memories.pop(key, None)
            case 2 | 3:
                self.save(key)
            case _:
                self.ask("POST", "/memory/remember", {"text": text, "id": key})
                self.memories[key] = text

    def search(self, server: str = "") -> Any:
        """What is found, without how long it took."""
        found = self.ask("POST", "/search", {"query": "灯塔 lighthouse", "limit": 100}, server=server)
        return [
            (group["source"], [(hit["id"], hit["text"], round(hit["score"] or 0, 4)) for hit in group["hits"]])
            for group in found["groups"]
        ]


def wait_for(done: Callable[[], bool]) -> None:
    """Until something is true, which it becomes unless something is broken."""
    deadline = time.monotonic() + 120
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)
