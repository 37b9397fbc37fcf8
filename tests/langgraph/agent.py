"""An agent with a scripted model, in a process that a test kills: `python agent.py remember|recall FOLDER`."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import BaseStore

from homing.langgraph import HomingStore
from homing.testing.fake import FakeEmbedder

NAMESPACE = ("memories", "ann")


def remember(state: MessagesState, store: BaseStore) -> dict[str, Any]:
    said = str(state["messages"][0].content)
    store.put(NAMESPACE, str(len(store.search(NAMESPACE))), {"text": said})
    return {}


def answer(state: MessagesState, store: BaseStore) -> dict[str, Any]:
    found = store.search(NAMESPACE, query=str(state["messages"][-1].content), limit=1)
    known = found[0].value["text"] if found else "nothing"
    model = GenericFakeChatModel(messages=iter([AIMessage(f"I know: {known}")]))
    return {"messages": [model.invoke(state["messages"])]}


def graph(store: BaseStore) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_node("remember", remember)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", "remember")
    return builder.compile(store=store)


if __name__ == "__main__":
    what, folder = sys.argv[1:]
    store = HomingStore(folder, FakeEmbedder(64))
    agent = graph(store)
    if what == "remember":
        for said in ("我对花生过敏，不吃辣。", "My cat is called Mimi.", "我住在杭州 near the lake."):
            print(agent.invoke({"messages": [HumanMessage(said)]})["messages"][-1].content, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    for question in ("花生", "cat", "lake 杭州"):
        print(agent.invoke({"messages": [HumanMessage(question)]})["messages"][-1].content, flush=True)
