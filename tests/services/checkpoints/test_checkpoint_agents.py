"""The write side: agents killed and resumed, a strict saver, poolers and dead connections."""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ormsgpack
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from memcore.core import Core
from memcore.errors import Conflict, DatabaseError, InvalidInput
from memcore.models import Actor
from memcore.services.checkpoints import ThreadStatus
from memcore.services.checkpoints.store import CheckpointStore

Chain = Callable[..., Any]


def configured(thread_id: str, **more: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread_id, **more}}


# ---- killed and resumed --------------------------------------------------------------------------


def test_an_agent_killed_at_a_question_and_again_at_work_is_resumed_without_repeating(
    watched: Core, database_url: str, tmp_path: Path, operator_: Actor
) -> None:
    from agent_process import build

    def run(mode: str, until: Callable[[], bool]) -> None:
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("agent_process.py")), database_url,
             str(tmp_path), mode],
            env=os.environ | {"PYTHONPATH": os.getcwd()},
        )  # fmt: skip
        try:
            deadline = time.monotonic() + 40
            while not until():
                assert process.poll() is None, "the agent ended by itself"
                assert time.monotonic() < deadline, "the agent did not get there"
                time.sleep(0.05)
        finally:
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL

    def log() -> list[str]:
        path = tmp_path / "log"
        return path.read_text().split() if path.exists() else []

    run("ask", lambda: (tmp_path / "asked").exists())
    found = watched.checkpoints.checkpoint("t", actor=operator_)
    assert found.status is ThreadStatus.WAITING
    assert [(i.node, i.value) for i in found.interrupts] == [("ask", {"question": "Pay 20?"})]
    assert log() == ["prepare", "ask"]

    def at_work() -> bool:
        # A step begins while the checkpoint before it is still being saved.
        saved = watched.checkpoints.checkpoint("t", actor=operator_)
        return "pay" in log() and saved.next_nodes == ("pay",)

    run("pay", at_work)
    found = watched.checkpoints.checkpoint("t", actor=operator_)
    assert (found.status, found.next_nodes) == (ThreadStatus.UNFINISHED, ("pay",))
    assert found.state["answer"] == "yes"

    agent = build(watched.checkpoints.saver(), tmp_path, slow=False)
    assert watched.checkpoints.resume(agent, "t")["done"] == ["prepare", "pay:yes"]
    assert log() == ["prepare", "ask", "ask", "pay", "pay"]
    assert watched.checkpoints.checkpoint("t", actor=operator_).status is ThreadStatus.FINISHED


def test_an_answer_that_was_stored_but_not_used_is_named_and_used_on_resume(
    watched: Core, chain: Chain, operator_: Actor
) -> None:
    from langgraph.types import Command, interrupt

    broken = [True]

    def ask(state: Any) -> Any:
        answer = interrupt("May I?")
        if broken[0]:
            raise KeyboardInterrupt  # as a process that ends here would
        return {"note": answer}

    agent = chain(("ask", ask))
    agent.invoke({"messages": []}, configured("t"))
    with pytest.raises(KeyboardInterrupt):
        agent.invoke(Command(resume="yes"), configured("t"))
    (pending,) = watched.checkpoints.checkpoint("t", actor=operator_).interrupts
    assert pending.answered
    (listed,) = watched.checkpoints.threads(actor=operator_).threads
    assert (listed.status, listed.nodes) == (ThreadStatus.UNFINISHED, ("ask",))
    assert not watched.checkpoints.threads(actor=operator_, status="waiting").threads
    assert any(
        "has not got past" in f.title
        for f in watched.checkpoints.checkpoint("t", actor=operator_).diagnosis
    )
    broken[0] = False
    assert watched.checkpoints.resume(agent, "t")["note"] == "yes"


def test_resuming_tells_what_is_missing_instead_of_guessing(
    watched: Core, chain: Chain, state_type: type
) -> None:
    from langgraph.graph import START, StateGraph
    from langgraph.types import interrupt

    resume = watched.checkpoints.resume
    single = chain(("ask", lambda s: {"note": interrupt("May I?")}))
    single.invoke({"messages": []}, configured("one"))
    with pytest.raises(Conflict, match="May I"):
        resume(single, "one")
    with pytest.raises(InvalidInput, match="does not wait"):
        resume(single, "one", answers={"0" * 32: "x"})
    assert resume(single, "one", "yes")["note"] == "yes"
    with pytest.raises(Conflict, match="finished"):
        resume(single, "one")
    with pytest.raises(Conflict, match="waits for no answer"):
        resume(single, "one", "again")

    graph = StateGraph(state_type)
    for name in ("left", "right"):
        graph.add_node(name, lambda s, name=name: {"messages": [interrupt(name)]})
        graph.add_edge(START, name)
    double = graph.compile(checkpointer=watched.checkpoints.saver())
    double.invoke({"messages": []}, configured("two"))
    with pytest.raises(InvalidInput, match="waits for 2 answers") as caught:
        resume(double, "two", "yes")
    ids = [i.id for t in double.get_state(configured("two")).tasks for i in t.interrupts]
    assert all(key in str(caught.value) for key in ids)
    resume(double, "two", answers={ids[0]: "l"})
    with pytest.raises(InvalidInput, match="does not wait"):
        resume(double, "two", answers={ids[0]: "again"})
    done = resume(double, "two", "r")  # one question is left, so that it is clear which
    assert sorted(done["messages"]) == ["l", "r"]
    double.invoke({"messages": []}, configured("three"))
    ids = [i.id for t in double.get_state(configured("three")).tasks for i in t.interrupts]
    done = resume(double, "three", answers=dict(zip(ids, ["l", "r"], strict=True)))
    assert sorted(done["messages"]) == ["l", "r"]


# ---- the strict saver ----------------------------------------------------------------------------


@dataclass
class Order:
    number: int


def test_the_saver_rebuilds_only_what_it_was_told(watched: Core, state_type: type) -> None:
    from langgraph.graph import START, StateGraph

    def agent(**allow: Any) -> Any:
        graph = StateGraph(state_type)
        graph.add_node("noop", lambda s: {"note": Order(7)})
        graph.add_edge(START, "noop")
        return graph.compile(checkpointer=watched.checkpoints.saver(**allow))

    agent().invoke({"messages": []}, configured("t"))
    assert agent().get_state(configured("t")).values["note"] == {"number": 7}
    assert agent(allow=[Order]).get_state(configured("t")).values["note"] == Order(7)
    named = [(Order.__module__, "Order")]
    assert agent(allow=named).get_state(configured("t")).values["note"] == Order(7)


def test_a_planted_blob_is_not_run_by_the_saver_either(
    watched: Core, chain: Chain, raw: psycopg.Connection[Any], tmp_path: Path
) -> None:
    agent = chain(("noop", lambda s: {"todos": []}))
    agent.invoke({"messages": []}, configured("t"))
    marker = tmp_path / "ran"
    body = ormsgpack.packb(["os", "system", f"touch {marker}"])
    raw.execute(
        "UPDATE checkpoint_blobs SET blob = %s WHERE channel = 'todos'",
        (ormsgpack.packb(ormsgpack.Ext(0, body)),),
    )
    assert agent.get_state(configured("t")).values["todos"] == f"touch {marker}"
    raw.execute("UPDATE checkpoint_blobs SET type = 'pickle' WHERE channel = 'todos'")
    with pytest.raises(NotImplementedError):
        agent.get_state(configured("t"))
    assert not marker.exists()


# ---- connections ---------------------------------------------------------------------------------


def test_a_connection_that_died_while_idle_is_replaced(
    watched: Core, chain: Chain, raw: psycopg.Connection[Any], operator_: Actor
) -> None:
    agent = chain(("noop", lambda s: {"note": "x"}))
    agent.invoke({"messages": []}, configured("t"))
    watched.checkpoints.timeline("t", actor=operator_)
    for _ in range(3):
        killed = raw.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = 'threads' AND pid <> pg_backend_pid()"
        ).fetchone()
        assert killed is not None
        assert killed[0] > 0
        assert watched.checkpoints.timeline("t", actor=operator_).steps
        agent.invoke({"messages": []}, configured("t"))


def test_an_unreachable_database_says_which_and_not_its_password(operator_: Actor) -> None:
    store = CheckpointStore("postgresql://me:s3cret@127.0.0.1:1/threads")
    try:
        with pytest.raises(DatabaseError) as caught:
            store.source()
    finally:
        store.close()
    said = str(caught.value)
    assert "127.0.0.1:1/threads" in said
    assert "CHECKPOINT_DATABASE_URL" in said
    assert "s3cret" not in said


def test_reading_works_behind_a_pooler_that_changes_the_connection_at_every_transaction(
    watched: Core, chain: Chain, threads_url: str, operator_: Actor
) -> None:
    agent = chain(("noop", lambda s: {"note": "x"}))
    agent.invoke({"messages": []}, configured("t"))
    with _Pooler(threads_url) as address:
        store = CheckpointStore(address, read_only=False)
        try:
            from memcore.services.checkpoints import index, reading, saver, timeline

            for _ in range(30):
                assert index.threads(store).total == 1
                assert timeline.timeline(store, "t").steps
                assert reading.checkpoint(store, "t").state["note"] == "x"
            pooled = saver.open_saver(store)
            for _ in range(10):
                assert pooled.get_tuple(configured("t"))
        finally:
            store.close()
        prepared = CheckpointStore(address, prepare=True)
        try:
            with pytest.raises(DatabaseError, match="CHECKPOINT_PREPARE"):
                list(map(index.threads, [prepared] * 30))
        finally:
            prepared.close()


class _Pooler:
    """A pooler in transaction mode, speaking PostgreSQL's protocol: each time the server is ready
    outside a transaction, the client goes on with another server connection."""

    def __init__(self, url: str) -> None:
        parts = conninfo_to_dict(url)
        self._target = f"{parts['host']}/.s.PGSQL.{parts.get('port') or 5432}"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._database = parts["dbname"]
        self._user = parts.get("user") or "postgres"
        self._stop = threading.Event()

    def __enter__(self) -> str:
        threading.Thread(target=self._accept, daemon=True).start()
        port = self._listener.getsockname()[1]
        return f"postgresql://{self._user}@127.0.0.1:{port}/{self._database}?sslmode=disable"

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._listener.close()

    def _accept(self) -> None:
        while not self._stop.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _server(self, hello: bytes) -> tuple[socket.socket, bytes]:
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.connect(self._target)
        server.sendall(hello)
        greeting = b""
        while True:
            kind, body = _message(server)
            greeting += kind + struct.pack("!I", len(body) + 4) + body
            if kind == b"Z":
                return server, greeting

    def _serve(self, client: socket.socket) -> None:
        servers: list[socket.socket] = []
        try:
            (size,) = struct.unpack("!I", _exactly(client, 4))
            body = _exactly(client, size - 4)
            hello = struct.pack("!I", size) + body
            pairs = [self._server(hello) for _ in range(3)]
            servers = [s for s, _ in pairs]
            client.sendall(pairs[0][1])
            turn, idle = 0, True
            while not self._stop.is_set():
                ready, _, _ = select.select([client, servers[turn]], [], [], 0.2)
                if servers[turn] in ready:
                    kind, body = _message(servers[turn])
                    client.sendall(kind + struct.pack("!I", len(body) + 4) + body)
                    idle = kind == b"Z" and body == b"I"
                elif client in ready:
                    if idle:
                        turn = (turn + 1) % len(servers)
                        idle = False
                    kind, body = _message(client)
                    servers[turn].sendall(kind + struct.pack("!I", len(body) + 4) + body)
        except (OSError, EOFError, struct.error):
            pass
        finally:
            for s in (client, *servers):
                s.close()


def _exactly(source: socket.socket, count: int) -> bytes:
    out = b""
    while len(out) < count:
        piece = source.recv(count - len(out))
        if not piece:
            raise EOFError
        out += piece
    return out


def _message(source: socket.socket) -> tuple[bytes, bytes]:
    kind = _exactly(source, 1)
    (size,) = struct.unpack("!I", _exactly(source, 4))
    return kind, _exactly(source, size - 4)


@pytest.fixture(autouse=True)
def quiet_pools() -> Iterator[None]:
    """Lost connections are the point here; the driver's pool logs each of them."""
    logger = logging.getLogger("psycopg.pool")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)
