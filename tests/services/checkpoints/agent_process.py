"""An agent in a process of its own, to be killed: `agent_process.py DATABASE HOME MODE`.

Its four nodes leave a line in HOME/log each time they run. MODE `run` answers nothing and lives on
in the slow node; `ask` stops at the question."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from memcore.core import open_core


class State(TypedDict, total=False):
    done: list[str]
    answer: str


def build(saver: Any, home: Path, *, slow: bool) -> Any:
    def note(name: str) -> None:
        with (home / "log").open("a") as log:
            log.write(name + "\n")

    def prepare(state: State) -> Any:
        note("prepare")
        return {"done": ["prepare"]}

    def ask(state: State) -> Any:
        note("ask")
        return {"answer": interrupt({"question": "Pay 20?"})}

    def pay(state: State) -> Any:
        note("pay")
        if slow:
            time.sleep(60)
        return {"done": [*state["done"], "pay:" + state["answer"]]}

    graph = StateGraph(State)
    for node in (prepare, ask, pay):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "prepare")
    graph.add_edge("prepare", "ask")
    graph.add_edge("ask", "pay")
    graph.add_edge("pay", END)
    return graph.compile(checkpointer=saver)


if __name__ == "__main__":
    url, folder, mode = sys.argv[1:]
    with open_core(url=url, home=folder) as core:
        agent = build(core.checkpoints.saver(), Path(folder), slow=mode == "pay")
        if mode == "ask":
            agent.invoke({}, {"configurable": {"thread_id": "t"}})
            (Path(folder) / "asked").touch()
            time.sleep(60)
        else:
            core.checkpoints.resume(agent, "t", "yes")
