"""Threads, timelines and checkpoints written by real LangGraph agents, read without LangGraph."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import ormsgpack
import psycopg
import pytest

from memcore.core import Core, open_core
from memcore.errors import ConfigError, InvalidInput, NotFound, PermissionDenied
from memcore.models import Actor, Library, Subject
from memcore.services.checkpoints import Policy, ThreadStatus
from memcore.services.checkpoints.timeline import namespace_label

Talk = Callable[..., None]
Chain = Callable[..., Any]


def configured(thread_id: str, **more: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread_id, **more}}


# ---- threads -------------------------------------------------------------------------------------


def test_threads_are_listed_newest_first_with_their_size_and_steps(
    watched: Core, talker: Talk, operator_: Actor
) -> None:
    talker("first", 1)
    talker("second", 3, user_id="ann")
    page = watched.checkpoints.threads(actor=operator_)
    assert [t.thread_id for t in page.threads] == ["second", "first"]
    assert page.total == 2
    second = page.threads[0]
    assert second.checkpoints == 9
    assert second.namespaces == 1
    assert second.status is ThreadStatus.FINISHED
    assert second.metadata["user_id"] == "ann"
    assert second.octets == watched.checkpoints.usage("second", actor=operator_).blob_octets + (
        watched.checkpoints.usage("second", actor=operator_).write_octets
    )
    assert second.first_activity
    assert second.last_activity
    assert second.first_activity < second.last_activity


def test_an_exact_thread_id_is_told_from_one_that_only_begins_alike(
    watched: Core, talker: Talk, operator_: Actor
) -> None:
    for thread in ("s-1", "s-10", "S-100", "other_s-1", "s%1"):
        talker(thread)
    ask = watched.checkpoints.threads

    def found(search: str, match: str) -> list[str]:
        return sorted(t.thread_id for t in ask(search, actor=operator_, match=match).threads)

    assert found("s-1", "exact") == ["s-1"]
    assert found("s-1", "prefix") == ["s-1", "s-10"]
    assert found("s-1", "contains") == ["S-100", "other_s-1", "s-1", "s-10"]
    assert found("s%", "prefix") == ["s%1"]
    page = ask("s-1", actor=operator_, match="prefix")
    assert (page.match, page.exact) == ("prefix", True)
    assert ask("s-", actor=operator_, match="prefix").exact is False


def test_threads_are_found_by_their_metadata(watched: Core, talker: Talk, operator_: Actor) -> None:
    talker("t1", user_id="ann", plan="pro")
    talker("t2", user_id="bob")
    page = watched.checkpoints.threads(actor=operator_, metadata={"user_id": "ann"})
    assert [t.thread_id for t in page.threads] == ["t1"]
    assert not watched.checkpoints.threads(actor=operator_, metadata={"user_id": "a"}).threads


def test_pages_and_totals_agree(watched: Core, talker: Talk, operator_: Actor) -> None:
    for i in range(5):
        talker(f"t{i}")
    pages = [watched.checkpoints.threads(actor=operator_, limit=2, offset=o) for o in (0, 2, 4, 6)]
    assert [[t.thread_id for t in p.threads] for p in pages] == [
        ["t4", "t3"], ["t2", "t1"], ["t0"], []
    ]  # fmt: skip
    assert {p.total for p in pages} == {5}


def test_threads_sort_by_size_and_count(watched: Core, talker: Talk, operator_: Actor) -> None:
    talker("long", 4)
    talker("large", 1, size=50_000)
    by_size = watched.checkpoints.threads(actor=operator_, order="size")
    by_count = watched.checkpoints.threads(actor=operator_, order="checkpoints")
    oldest = watched.checkpoints.threads(actor=operator_, order="oldest")
    assert by_size.threads[0].thread_id == "large"
    assert by_count.threads[0].thread_id == oldest.threads[0].thread_id == "long"


def test_the_list_says_which_database_it_reads_and_not_the_password(
    database_url: str, threads_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    operator_: Actor,
) -> None:  # fmt: skip
    monkeypatch.setenv(
        "CHECKPOINT_DATABASE_URL", threads_url.replace("postgres@", "postgres:s3cret@")
    )
    with open_core(url=database_url, home=tmp_path) as core:
        source = core.checkpoints.source(actor=operator_)
    assert "threads" in source.where
    assert "s3cret" not in source.where
    assert (source.own, source.read_only) == (False, True)


def test_without_an_address_of_its_own_memcores_database_is_read(
    fresh_database_url: str, tmp_path: Path, operator_: Actor
) -> None:
    with open_core(url=fresh_database_url, home=tmp_path) as core:
        page = core.checkpoints.threads(actor=operator_)
        assert (page.source.own, page.source.read_only, page.source.ready) == (True, False, False)
        assert page.threads == ()
        with pytest.raises(NotFound, match="no LangGraph checkpoint tables"):
            core.checkpoints.timeline("t", actor=operator_)
        core.checkpoints.saver()
        assert core.checkpoints.source(actor=operator_).ready


def test_only_an_operator_looks_at_threads(watched: Core) -> None:
    someone = Actor("ann")
    with pytest.raises(PermissionDenied):
        watched.checkpoints.threads(actor=someone)
    with pytest.raises(PermissionDenied):
        watched.checkpoints.checkpoint("t", actor=someone)
    with pytest.raises(PermissionDenied):
        watched.checkpoints.archived(actor=someone)


@pytest.mark.parametrize(
    "bad", [{"match": "like"}, {"order": "x"}, {"limit": 0}, {"limit": 9999}, {"offset": -1},
            {"status": "finished"}]
)  # fmt: skip
def test_a_bad_argument_is_refused_by_name(
    watched: Core, operator_: Actor, bad: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput):
        watched.checkpoints.threads(actor=operator_, **bad)


def test_a_malformed_switch_is_refused(
    core: Core, operator_: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHECKPOINT_READ_ONLY", "perhaps")
    with pytest.raises(ConfigError, match="CHECKPOINT_READ_ONLY"):
        core.checkpoints.source(actor=operator_)


# ---- waiting, failed, unfinished -----------------------------------------------------------------


def test_a_second_question_is_shown_right_after_the_first_was_answered(
    watched: Core, chain: Chain, operator_: Actor
) -> None:
    from langgraph.types import Command, interrupt

    def ask(state: Any) -> Any:
        return {"note": interrupt({"question": "A"}) + interrupt({"question": "B"})}

    agent = chain(("ask", ask))
    agent.invoke({"messages": []}, configured("t"))
    look = watched.checkpoints.checkpoint

    def pending() -> list[Any]:
        return [i.value for i in look("t", actor=operator_).interrupts]

    def waiting() -> list[str]:
        page = watched.checkpoints.threads(actor=operator_, status="waiting")
        return [t.thread_id for t in page.threads]

    assert pending() == [{"question": "A"}]
    assert waiting() == ["t"]
    agent.invoke(Command(resume="1"), configured("t"))
    assert pending() == [{"question": "B"}]
    assert not look("t", actor=operator_).interrupts[0].answered
    assert waiting() == ["t"]
    thread = watched.checkpoints.threads(actor=operator_).threads[0]
    assert (thread.status, thread.nodes) == (ThreadStatus.WAITING, ("ask",))
    agent.invoke(Command(resume="2"), configured("t"))
    assert pending() == []
    assert waiting() == []
    assert look("t", actor=operator_).state["note"] == "12"


def test_of_two_parallel_questions_the_unanswered_one_still_waits(
    watched: Core, operator_: Actor, state_type: type
) -> None:
    from langgraph.graph import START, StateGraph
    from langgraph.types import Command, interrupt

    graph = StateGraph(state_type)
    for name in ("left", "right"):
        graph.add_node(name, lambda state, name=name: {"messages": [interrupt(name)]})
        graph.add_edge(START, name)
    agent = graph.compile(checkpointer=watched.checkpoints.saver())
    agent.invoke({"messages": []}, configured("t"))
    found = watched.checkpoints.checkpoint("t", actor=operator_).interrupts
    assert {i.node for i in found} == {"left", "right"}
    left = next(i for i in found if i.node == "left")
    agent.invoke(Command(resume={left.id: "ok"}), configured("t"))
    (rest,) = watched.checkpoints.checkpoint("t", actor=operator_).interrupts
    assert (rest.node, rest.value) == ("right", "right")


def test_an_error_shows_its_text_and_node(watched: Core, chain: Chain, operator_: Actor) -> None:
    def fail(state: Any) -> Any:
        raise ValueError("the card was declined")

    with pytest.raises(ValueError, match="declined"):
        chain(("pay", fail)).invoke({"messages": []}, configured("t"))
    thread = watched.checkpoints.threads(actor=operator_, status="failed").threads[0]
    assert (thread.status, thread.nodes) == (ThreadStatus.FAILED, ("pay",))
    found = watched.checkpoints.checkpoint("t", actor=operator_)
    assert found.errors == ("pay: ValueError('the card was declined')",)
    assert found.diagnosis[0].level == "error"
    assert "declined" in found.diagnosis[0].detail


def test_a_breakpoint_leaves_the_thread_unfinished_with_the_node_that_is_due(
    watched: Core, chain: Chain, operator_: Actor
) -> None:
    agent = chain(
        ("plan", lambda s: {"note": "x"}),
        ("act", lambda s: {"note": "y"}),
        interrupt_before=["act"],
    )
    agent.invoke({"messages": []}, configured("t"))
    found = watched.checkpoints.checkpoint("t", actor=operator_)
    assert (found.status, found.next_nodes) == (ThreadStatus.UNFINISHED, ("act",))
    assert "Due to run: act" in found.diagnosis[0].title
    assert agent.get_state(configured("t")).next == found.next_nodes


def test_two_pending_tool_calls_are_listed_with_arguments_and_age(
    watched: Core, chain: Chain, operator_: Actor
) -> None:
    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.types import interrupt

    calls = [
        {"id": "c1", "name": "refund", "args": {"order": 7}},
        {"id": "c2", "name": "mail", "args": {"to": "ann@example.test"}},
    ]
    agent = chain(
        ("think", lambda s: {"messages": [AIMessage("", tool_calls=calls, id="m")]}),
        ("wait", lambda s: {"note": interrupt("May I?")}),
    )
    agent.invoke({"messages": [HumanMessage("refund me")]}, configured("t"))
    found = watched.checkpoints.checkpoint("t", actor=operator_)
    assert [(c.name, c.args, c.status) for c in found.pending_tool_calls] == [
        ("refund", {"order": 7}, "pending"),
        ("mail", {"to": "ann@example.test"}, "pending"),
    ]
    assert all(c.since == found.created_at.replace(microsecond=c.since.microsecond)
               for c in found.pending_tool_calls if c.since and found.created_at)  # fmt: skip
    assert [m.role for m in found.messages] == ["user", "assistant"]
    assert found.messages[0].kind == "HumanMessage"


# ---- one checkpoint ------------------------------------------------------------------------------


def test_objects_and_mappings_both_render_in_one_conversation(
    watched: Core, chain: Chain, operator_: Actor
) -> None:
    from langchain_core.messages import HumanMessage

    agent = chain(("noop", lambda s: {"note": "ok"}))
    agent.invoke(
        {"messages": [HumanMessage("as object"), {"role": "user", "content": "as mapping"}]},
        configured("t"),
    )
    found = watched.checkpoints.checkpoint("t", actor=operator_)
    assert [(m.role, m.text) for m in found.messages] == [
        ("user", "as object"),
        ("user", "as mapping"),
    ]


def test_nul_in_the_state_is_saved_and_shown_by_a_visible_sign(
    watched: Core, chain: Chain, operator_: Actor
) -> None:
    agent = chain(("noop", lambda s: {"messages": ["in\0side"]}))
    agent.invoke({"messages": [], "note": "abc\0def"}, configured("t"))
    assert agent.get_state(configured("t")).values["note"] == "abc\0def"
    found = watched.checkpoints.checkpoint("t", actor=operator_)
    assert found.state["note"] == "abc␀def"
    assert found.messages[0].text == "in␀side"
    snapshot = watched.checkpoints.snapshot("t", actor=operator_)
    assert snapshot.agent_state["note"] == "abc␀def"


def test_numbers_that_are_not_finite_are_saved_too(
    watched: Core, chain: Chain, operator_: Actor
) -> None:
    agent = chain(("noop", lambda s: {"note": float("inf")}))
    agent.invoke({"messages": [], "note": "x"}, configured("t"))
    assert agent.get_state(configured("t")).values["note"] == float("inf")
    assert watched.checkpoints.checkpoint("t", actor=operator_).state["note"] == "inf"


def test_a_planted_blob_runs_nothing_and_is_named(
    watched: Core, talker: Talk, raw: psycopg.Connection[Any], operator_: Actor, tmp_path: Path
) -> None:
    talker("t")
    marker = tmp_path / "ran"
    body = ormsgpack.packb(["os", "system", f"touch {marker}"])
    for kind, blob in (
        ("msgpack", ormsgpack.packb(ormsgpack.Ext(0, body))),
        ("pickle", b"cos\nsystem\n(S'touch " + str(marker).encode() + b"'\ntR."),
        ("msgpack", ormsgpack.packb(ormsgpack.Ext(77, b"whatever"))),
        ("json", json.dumps({"lc": 2, "type": "constructor", "id": ["os", "system"],
                             "args": [f"touch {marker}"]}).encode()),
    ):  # fmt: skip
        raw.execute(
            "UPDATE checkpoint_blobs SET type = %s, blob = %s WHERE channel = 'messages'",
            (kind, blob),
        )
        found = watched.checkpoints.checkpoint("t", actor=operator_)
        channel = next(c for c in found.channels if c.name == "messages")
        assert channel.octets == len(blob)
        assert channel.types == ("os.system",) or channel.problem
        if kind == "pickle":
            assert any("pickle is refused" in f.detail.lower() for f in found.diagnosis)
        elif channel.types:
            assert any("os.system" in f.detail for f in found.diagnosis)
    assert not marker.exists()


def test_a_blob_too_large_to_decode_is_described_and_not_fetched(
    watched: Core, talker: Talk, raw: psycopg.Connection[Any], operator_: Actor
) -> None:
    talker("t")
    raw.execute(
        "UPDATE checkpoint_blobs SET blob = decode(repeat('00', 17 * 1024 * 1024), 'hex')"
        " WHERE channel = 'messages'"
    )
    found = watched.checkpoints.checkpoint("t", actor=operator_)
    channel = next(c for c in found.channels if c.name == "messages")
    assert channel.problem == "larger than 16 MB"
    assert channel.value["bytes"] == 17 * 1024 * 1024


def test_classes_of_the_agents_own_are_shown_by_name(
    watched: Core, chain: Chain, operator_: Actor
) -> None:
    from dataclasses import make_dataclass

    order = make_dataclass("Order", [("number", int)])
    order.__module__ = "shop.orders"
    agent = chain(("noop", lambda s: {"note": order(7)}))
    agent.invoke({"messages": []}, configured("t"))
    found = watched.checkpoints.checkpoint("t", actor=operator_)
    assert found.state["note"] == {"__type__": "shop.orders.Order", "value": {"number": 7}}
    assert any("shop.orders.Order" in f.detail for f in found.diagnosis)


def test_delta_channels_are_named_and_rebuilt(watched: Core, operator_: Actor) -> None:
    from typing import Annotated, TypedDict

    from langgraph.channels.delta import DeltaChannel
    from langgraph.graph import START, StateGraph

    def joined(state: list[Any], writes: list[list[Any]]) -> list[Any]:
        return [*state, *(x for w in writes for x in w)]

    often = Annotated[list[Any], DeltaChannel(joined, snapshot_frequency=4)]
    seldom = Annotated[list[Any], DeltaChannel(joined, snapshot_frequency=100)]
    graph = StateGraph(TypedDict("Long", {"messages": often, "log": seldom}))
    graph.add_node(
        "speak",
        lambda s: {
            "messages": [{"role": "assistant", "content": f"n{len(s['messages'])}",
                          "id": f"n{len(s['messages'])}"}],
            "log": [len(s["messages"])],
        },
    )  # fmt: skip
    graph.add_edge(START, "speak")
    agent = graph.compile(checkpointer=watched.checkpoints.saver())
    for i in range(7):
        user = {"role": "user", "content": f"u{i}", "id": f"u{i}"}
        agent.invoke({"messages": [user], "log": []}, configured("t"))
        found = watched.checkpoints.checkpoint("t", actor=operator_)
        channel = next(c for c in found.channels if c.name == "messages")
        assert channel.storage == "delta"
        truth = agent.get_state(configured("t")).values
        assert [m.text for m in found.messages] == [m.content for m in truth["messages"]]
    assert any("delta channel" in f.title for f in found.diagnosis)
    log = next(c for c in found.channels if c.name == "log")
    assert [x for w in log.value["writes since"] for x in w] == truth["log"]


def test_an_unknown_checkpoint_is_not_found(watched: Core, talker: Talk, operator_: Actor) -> None:
    talker("t")
    with pytest.raises(NotFound, match="no checkpoint"):
        watched.checkpoints.checkpoint("nobody", actor=operator_)
    with pytest.raises(NotFound, match="nothing-like-it"):
        watched.checkpoints.checkpoint("t", "nothing-like-it", actor=operator_)


# ---- timeline and comparison ---------------------------------------------------------------------


def test_the_timeline_shows_nodes_forks_and_what_each_step_cost(
    watched: Core, chain: Chain, operator_: Actor
) -> None:
    agent = chain(
        ("plan", lambda s: {"todos": [{"content": "x", "status": "pending"}]}),
        ("act", lambda s: {"messages": [{"role": "assistant", "content": "done"}]}),
    )
    agent.invoke({"messages": [{"role": "user", "content": "go"}]}, configured("t"))
    line = watched.checkpoints.timeline("t", actor=operator_)
    assert [s.source for s in line.steps] == ["loop", "loop", "loop", "input"]
    assert [s.nodes for s in line.steps] == [("act",), ("plan",), ("__start__",), ()]
    assert line.steps[0].status is ThreadStatus.FINISHED
    assert line.steps[1].status is ThreadStatus.PASSED
    assert line.forks == ()
    planned = line.steps[1]
    agent.update_state(
        configured("t", checkpoint_id=planned.checkpoint_id), {"note": "another way"}
    )
    line = watched.checkpoints.timeline("t", actor=operator_)
    assert line.forks == (planned.checkpoint_id,)
    assert [s.lane for s in line.steps] == [0, 1, 0, 0, 0]
    spent = sum(s.octets for s in line.steps)
    assert spent == watched.checkpoints.usage("t", actor=operator_).total


def test_subgraph_calls_have_namespaces_with_names(
    watched: Core, operator_: Actor, state_type: type
) -> None:
    from langgraph.graph import START, StateGraph
    from langgraph.types import interrupt

    inner = StateGraph(state_type)
    inner.add_node("deep", lambda s: {"note": interrupt("deep question")})
    inner.add_edge(START, "deep")
    outer = StateGraph(state_type)
    outer.add_node("research", inner.compile())
    outer.add_edge(START, "research")
    agent = outer.compile(checkpointer=watched.checkpoints.saver())
    agent.invoke({"messages": []}, configured("t"))
    line = watched.checkpoints.timeline("t", actor=operator_)
    labels = [namespace_label(ns) for ns in line.namespaces]
    assert labels == ["root graph", "research"]
    root = watched.checkpoints.checkpoint("t", actor=operator_)
    assert [i.value for i in root.interrupts] == ["deep question"]
    inside = watched.checkpoints.checkpoint("t", actor=operator_, checkpoint_ns=line.namespaces[1])
    assert [i.node for i in inside.interrupts] == ["deep"]


def test_two_checkpoints_are_compared(watched: Core, chain: Chain, operator_: Actor) -> None:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    call = {"id": "c1", "name": "pay", "args": {}}
    agent = chain(
        ("think", lambda s: {"messages": [AIMessage("", tool_calls=[call], id="m")],
                             "todos": [{"content": "pay", "status": "pending"}]}),
        ("pay", lambda s: {"messages": [ToolMessage("paid", tool_call_id="c1", id="r")],
                           "todos": [{"content": "pay", "status": "done"}]}),
    )  # fmt: skip
    agent.invoke({"messages": [HumanMessage("pay", id="h")]}, configured("t"))
    line = watched.checkpoints.timeline("t", actor=operator_)
    change = watched.checkpoints.diff("t", line.steps[1].checkpoint_id, actor=operator_)
    assert [m.text for m in change.messages_added] == ["paid"]
    assert [(c.path, c.before, c.after) for c in change.changes] == [
        ("todos[0].status", "pending", "done")
    ]
    assert [(c.name, c.status) for c in change.calls_closed] == [("pay", "done")]
    assert change.octets > 0


def test_a_message_leads_to_the_memories_extracted_from_it(watched: Core, operator_: Actor) -> None:
    library: Library = watched.libraries.create("team", embedder="hash:64")
    who = Subject(library.id, user_id="ann", session_id="t")
    added = watched.memories.add_explicit_memory(
        "Ann prefers window seats", subject=who, source_message_id="h1"
    )
    assert added.memory is not None
    found = watched.checkpoints.memories_of("t", ["h1", "h2"], actor=operator_)
    assert [m.content for m in found["h1"]] == ["Ann prefers window seats"]
    assert "h2" not in found


def test_threads_are_bounded_by_their_last_activity(
    watched: Core, talker: Talk, aged: Callable[[str, float], None], operator_: Actor
) -> None:
    for thread, days in (("new", 0.0), ("week", 6.0), ("old", 40.0)):
        talker(thread)
        aged(thread, days)
    now = datetime.now(UTC)

    def found(**bounds: datetime) -> list[str]:
        page = watched.checkpoints.threads(actor=operator_, **bounds)
        assert page.total == len(page.threads)
        return [t.thread_id for t in page.threads]

    assert found(since=now - timedelta(days=7)) == ["new", "week"]
    assert found(until=now - timedelta(days=7)) == ["old"]
    assert found(since=now - timedelta(days=7), until=now - timedelta(days=1)) == ["week"]
    with pytest.raises(InvalidInput, match="time zone"):
        found(since=now.replace(tzinfo=None))


def test_listing_and_the_timeline_read_no_blob(
    watched: Core, talker: Talk, raw: psycopg.Connection[Any], operator_: Actor
) -> None:
    """However large the states are: the server's own counters see no access to where large values
    are kept."""
    for n in range(3):
        talker(f"t{n}", 2, size=200_000)
    raw.execute("UPDATE checkpoint_blobs SET blob = blob || decode(md5(random()::text), 'hex')")

    def touched() -> int:
        raw.execute("SELECT pg_stat_force_next_flush()")
        row = raw.execute(
            "SELECT coalesce(toast_blks_read, 0) + coalesce(toast_blks_hit, 0)"
            " FROM pg_statio_user_tables WHERE relname = 'checkpoint_blobs'"
        ).fetchone()
        assert row is not None
        return int(row[0])

    store = watched.checkpoints._open()
    for look, reads in (
        (lambda: watched.checkpoints.threads(actor=operator_), False),
        (lambda: watched.checkpoints.threads(actor=operator_, order="size"), False),
        (lambda: watched.checkpoints.threads(actor=operator_, status="waiting"), False),
        (lambda: watched.checkpoints.timeline("t1", actor=operator_), False),
        (lambda: watched.checkpoints.usage(actor=operator_), False),
        (lambda: watched.checkpoints.usage("t1", actor=operator_), False),
        (lambda: watched.checkpoints.plan_prune(Policy(keep_last=1), actor=operator_), False),
        (lambda: watched.checkpoints.checkpoint("t1", actor=operator_), True),
    ):
        store.close()  # a server process reports what it read when it ends
        time.sleep(0.1)
        before = touched()
        look()
        store.close()
        deadline = time.monotonic() + (5 if reads else 0.3)
        while touched() == before and time.monotonic() < deadline:
            time.sleep(0.05)
        assert (touched() > before) is reads
