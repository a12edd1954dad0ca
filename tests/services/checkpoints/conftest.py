"""A checkpoint database beside memcore's own, and small LangGraph agents that write to it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, TypedDict

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import create_engine, text

from memcore.core import Core, open_core
from memcore.models import Actor
from memcore.services.checkpoints import Policy

TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


@pytest.fixture(scope="session")
def threads_database(server: Callable[[str], str]) -> str:
    admin = create_engine(server("postgres"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text("CREATE DATABASE threads"))
    admin.dispose()
    return server("threads").replace("postgresql+psycopg://", "postgresql://")


@pytest.fixture
def threads_url(threads_database: str) -> Iterator[str]:
    """The checkpoint database, its tables emptied after the test."""
    yield threads_database
    with psycopg.connect(threads_database, autocommit=True) as connection:
        for table in TABLES:
            if _has(connection, table):
                connection.execute(sql.SQL("TRUNCATE {}").format(sql.Identifier(table)))


def _has(connection: psycopg.Connection[Any], table: str) -> bool:
    row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (table,)).fetchone()
    return bool(row and row[0])


@pytest.fixture
def raw(threads_url: str) -> Iterator[psycopg.Connection[Any]]:
    """A plain connection to the checkpoint database."""
    with psycopg.connect(threads_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def watched(
    database_url: str, threads_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Core]:
    """A core that looks at the checkpoint database and may write to it; tables are there."""
    monkeypatch.setenv("CHECKPOINT_DATABASE_URL", threads_url)
    monkeypatch.setenv("CHECKPOINT_READ_ONLY", "off")
    with open_core(url=database_url, home=tmp_path) as core:
        core.checkpoints.saver()
        yield core


@pytest.fixture
def operator_() -> Actor:
    return Actor("operator", operator=True)


class State(TypedDict, total=False):
    messages: Annotated[list[Any], operator.add]
    todos: list[dict[str, str]]
    note: str


@pytest.fixture
def state_type() -> type:
    return State


def compiled(saver: Any, *nodes: tuple[str, Callable[[State], Any]], **options: Any) -> Any:
    """Nodes one after the other."""
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(State)
    names = [name for name, _ in nodes]
    for name, act in nodes:
        graph.add_node(name, act)
    for before, after in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(before, after)
    return graph.compile(checkpointer=saver, **options)


@pytest.fixture
def chain(watched: Core) -> Callable[..., Any]:
    """`chain(("a", node), ("b", node))` → an agent on the checkpoint database."""
    saver = watched.checkpoints.saver()
    return lambda *nodes, **options: compiled(saver, *nodes, **options)


@pytest.fixture
def talker(chain: Callable[..., Any]) -> Callable[[str, int], None]:
    """`talker(thread, turns)` lets an agent talk, one superstep a turn."""
    agent = chain(("speak", lambda state: {"messages": [_said(len(state["messages"]))]}))

    def talk(thread_id: str, turns: int = 1, size: int = 20, **metadata: Any) -> None:
        config = {"configurable": {"thread_id": thread_id, **metadata}}
        for turn in range(turns):
            message = {"role": "user", "content": f"turn {turn} ".ljust(size, "x")}
            agent.invoke({"messages": [message]}, config)

    return talk


def _said(number: int) -> dict[str, Any]:
    return {"role": "assistant", "content": f"answer {number}", "id": f"a{number}"}


@pytest.fixture
def aged(watched: Core, operator_: Actor) -> Callable[[str, float], None]:
    """`aged(thread, days)` moves a thread into the past."""

    def move(thread_id: str, days: float) -> None:
        newest = watched.checkpoints.timeline(thread_id, actor=operator_).steps[0].created_at
        assert newest is not None
        end = newest - timedelta(days=days)
        watched.checkpoints.move_thread(thread_id, end, actor=operator_)

    return move


@pytest.fixture
def counts(raw: psycopg.Connection[Any]) -> Callable[[str], tuple[int, ...]]:
    """`counts(thread)` → rows in the three tables."""

    def count(thread_id: str) -> tuple[int, ...]:
        query = "SELECT count(*) FROM {} WHERE thread_id = %s"
        found = []
        for table in TABLES:
            row = raw.execute(sql.SQL(query).format(sql.Identifier(table)), (thread_id,)).fetchone()
            found.append(row[0] if row else 0)
        return tuple(found)

    return count


@pytest.fixture
def prune(watched: Core, operator_: Actor) -> Callable[..., Any]:
    """`prune(keep_last=1)` plans and carries out."""

    def act(**rules: Any) -> Any:
        plan = watched.checkpoints.plan_prune(Policy(**rules), actor=operator_)
        return watched.checkpoints.prune(plan, actor=operator_)

    return act
