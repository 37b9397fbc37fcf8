"""The door that servers beside ours have in common: one question in, some texts out, on a port of its own."""

from __future__ import annotations

import socket

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel


class Asked(BaseModel):
    query: str
    limit: int = 5


class Found(BaseModel):
    id: str
    text: str
    score: float


class Answer(BaseModel):
    hits: list[Found]


def serve(app: FastAPI) -> None:
    """Print the port, and answer until the process ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, access_log=False, log_level="error")).run([listener])
