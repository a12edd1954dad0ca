"""The demo's threads: some of its conversations as real LangGraph agents had them.

Each is written by a scripted agent through the saver memcore offers, with the message ids that the
demo's memories name as their source, and then moved to the day the story says. One waits for a
human, one failed, one was killed, one left a tool call without an answer, one was rewound and took
another way. Needs the `langgraph` extra.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from memcore.demo import story
from memcore.errors import MissingExtra
from memcore.models import Actor

if TYPE_CHECKING:
    from memcore.core import Core

ME = Actor("demo", operator=True)


class _Killed(BaseException):
    """Ends a run as a killed process would: nothing more is written."""


def thread_of(key: str) -> str:
    """The thread of a conversation is its session, which memories name too."""
    return story.session_of(key)


def load(core: "Core", *, today: datetime | None = None) -> int:
    """Write the demo threads; how many are new. Those that are there stay as they are. Raises
    MissingExtra, PermissionDenied on a read-only checkpoint database, DatabaseError."""
    try:
        agent = _agent(core.checkpoints.saver())
    except ImportError:
        raise MissingExtra("langgraph", "langgraph") from None
    now = today or datetime.now(UTC)
    known = _known(core)
    written = 0
    for talk in story.lines("conversations.jsonl"):
        thread_id = thread_of(talk["key"])
        if talk["key"] not in _SCENES or thread_id in known:
            continue
        _play(agent, talk)
        start = story.moment(now, talk["day"], talk["time"])
        end = story.moment(now, talk["day"], talk["messages"][-1].get("time", talk["time"]))
        if weeks := _SCENES[talk["key"]].get("weeks"):
            end = min(now, end + timedelta(minutes=3 * weeks))
        core.checkpoints.move_thread(thread_id, end, start, actor=ME)
        written += 1
    return written


def fits(core: "Core") -> bool:
    """Whether demo threads may be written unasked: LangGraph is installed, and checkpoints are kept
    in memcore's own database."""
    return find_spec("langgraph") is not None and core.checkpoints.source(actor=ME).own


def remove(core: "Core") -> int:
    """Take the demo threads out; how many went. A read-only checkpoint database keeps them."""
    source = core.checkpoints.source(actor=ME)
    if not source.ready or source.read_only:
        return 0
    there = {thread_of(key) for key in _SCENES} & _known(core)
    for thread_id in sorted(there):
        core.checkpoints.delete_thread(thread_id, actor=ME)
    return len(there)


def _known(core: "Core") -> set[str]:
    page = core.checkpoints.threads("demo-", actor=ME, match="prefix", limit=200)
    return {t.thread_id for t in page.threads}


# ---- what the agent says beyond the conversation -------------------------------------------------

_SCENES: Mapping[str, Mapping[str, Any]] = {
    "kickoff": {"todos": ["Write down the pilot shops", "Ask for the opening day"]},
    "holds": {
        "todos": ["记下浩然的预留习惯", "请米拉批准新规则"],
        "calls": [
            ("update_hold_rule", {"shop": "拾页书店", "hours": 24, "regulars_days": 7,
                                  "skip_closing_days": True}),
            ("notify_shops", {"shops": ["拾页书店"], "text": "预留规则有变化，请确认。"}),
        ],
        "approve": True,
    },
    "scanner": {
        "todos": ["问供应商发货日期", "下单三把扫码枪"],
        "calls": [("order_scanners", {"model": "handheld 2D, USB", "count": 3})],
        "fail": "the supplier's shop did not answer within 30 s",
    },
    "metrics": {
        "todos": ["Pick-up rate", "Time to shelf", "Returning readers"],
        "calls": [("read_pickups", {"shops": 3})],
        "weeks": 16,
    },
    "dryrun": {
        "todos": ["Fix phone numbers with a space", "Print the counter cards"],
        "calls": [("check_reservation", {"number": 12}), ("check_reservation", {"number": 27})],
        "subgraph": True,
        "rewind": "Hold for 48 hours and count closing days",
    },
    "pwa": {"dangling": ("search_notes", {"query": "React Native decision"})},
    "morning": {
        "todos": ["给张老师打电话", "下午三点看数据"],
        "calls": [("call_reader", {"name": "张老师", "about": "《城南旧事》"})],
        "approve": True,
        "killed": True,
    },
    "firstmeet": {},
}  # fmt: skip


def _play(agent: Any, talk: Mapping[str, Any]) -> None:
    """Have the conversation, one run per user message, as far as its scene lets it come."""
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langgraph.types import Command

    scene = _SCENES[talk["key"]]
    config: dict[str, Any] = {
        "configurable": {
            "thread_id": thread_of(talk["key"]),
            "user_id": talk["user"],
            "project_id": talk["project"],
            "agent": talk["agent"],
        }
    }
    said = list(enumerate(talk["messages"]))
    for week in range(1, scene.get("weeks", 0) + 1):
        said += [
            (-1, {"role": "user", "content": f"The three numbers for week {week}, please."}),
            (-1, {"role": "assistant", "content": _numbers(week)}),
        ]
    for place, (number, message) in enumerate(said):
        if message["role"] != "user":
            continue
        reply = None
        if place + 1 < len(said):
            after, answer = said[place + 1]
            reply = AIMessage(answer["content"], id=_id(talk, after))
        last = place >= len(said) - 2
        asked = HumanMessage(message["content"], id=_id(talk, number))
        plays = number == 2 if "dangling" in scene else last or number < 0
        script = {"reply": reply, "scene": scene if plays else {}, "turn": place}
        try:
            agent.invoke({"messages": [asked], "script": script}, config)
        except RuntimeError:
            break  # the scene in which a tool fails
    if scene.get("killed"):
        with suppress(_Killed):
            agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
    if "rewind" in scene:
        # Back to before the last tools were used, and another way from there.
        asked_last = next(s for s in agent.get_state_history(config) if s.next == ("survey",))
        calls = asked_last.values["messages"][-1].tool_calls
        skipped = [ToolMessage("skipped", tool_call_id=c["id"], name=c["name"]) for c in calls]
        other = agent.update_state(
            asked_last.config, {"note": scene["rewind"], "messages": skipped}, as_node="work"
        )
        agent.invoke(None, {"configurable": {**config["configurable"], **other["configurable"]}})


def _id(talk: Mapping[str, Any], number: int) -> str | None:
    """The id the demo's messages have; None for one that is not of the story."""
    return story.identity("message", f"{talk['key']}#{number}") if number >= 0 else None


def _numbers(week: int) -> str:
    rows = (
        f"{shop}: pick-up rate {67 + (week * 3 + i) % 17} %, {14 - (week + i) % 7} minutes to the "
        f"shelf, {4 + (week * 5 + i) % 11} readers came back"
        for i, shop in enumerate(("Old Ferry Books", "Casa das Marés", "拾页书店"))
    )
    return f"Week {week}. " + "; ".join(rows) + "."


def _agent(saver: Any) -> Any:
    """think → (ask a human) → use tools → finish."""
    from typing import Annotated, TypedDict

    from langchain_core.messages import AIMessage, ToolMessage
    from langgraph.channels import UntrackedValue
    from langgraph.graph import END, START, StateGraph, add_messages
    from langgraph.types import interrupt

    class State(TypedDict, total=False):
        messages: Annotated[list[Any], add_messages]
        todos: list[dict[str, str]]
        note: str
        script: Annotated[dict[str, Any], UntrackedValue]

    def think(s: Any) -> Any:
        script = s.get("script") or {}
        scene = script.get("scene", {})
        out: dict[str, Any] = {"messages": []}
        if todos := scene.get("todos"):
            out["todos"] = [
                {"content": t, "status": "pending" if i else "in_progress"}
                for i, t in enumerate(todos)
            ]
        calls = [scene["dangling"]] if "dangling" in scene else scene.get("calls", [])
        if calls:
            turn = script.get("turn", 0)
            out["messages"].append(
                AIMessage(
                    "",
                    tool_calls=[
                        {"id": f"call-{turn}-{i}", "name": name, "args": args}
                        for i, (name, args) in enumerate(calls)
                    ],
                )
            )
        return out

    def ask(s: Any) -> Any:
        calls = s["messages"][-1].tool_calls
        requests = [{"name": c["name"], "args": c["args"],
                     "description": "Needs a person's consent"} for c in calls]  # fmt: skip
        interrupt({"action_requests": requests, "review_configs": [
            {"action_name": c["name"], "allowed_decisions": ["approve", "edit", "reject"]}
            for c in calls]})  # fmt: skip
        raise _Killed

    def work(s: Any) -> Any:
        scene = (s.get("script") or {}).get("scene", {})
        if "fail" in scene:
            raise RuntimeError(scene["fail"])
        return {
            "messages": [
                ToolMessage(f"{c['name']}: done", tool_call_id=c["id"], name=c["name"])
                for c in s["messages"][-1].tool_calls
            ]
        }

    def finish(s: Any) -> Any:
        reply = (s.get("script") or {}).get("reply")
        done = [{**t, "status": "completed"} for t in s.get("todos", [])]
        return {"messages": [reply] if reply else [], **({"todos": done} if done else {})}

    def way(s: Any) -> str:
        scene = (s.get("script") or {}).get("scene", {})
        if "dangling" in scene or not scene.get("calls"):
            return "finish"
        if scene.get("approve"):
            return "ask"
        return "survey" if scene.get("subgraph") else "work"

    survey: Any = StateGraph(State)
    survey.add_node("look_up", work)
    survey.add_edge(START, "look_up")
    graph: Any = StateGraph(State)
    for name, node in (("think", think), ("ask", ask), ("work", work), ("finish", finish)):
        graph.add_node(name, node)
    graph.add_node("survey", survey.compile())
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", way, ["ask", "work", "survey", "finish"])
    graph.add_edge("ask", "work")
    graph.add_edge("work", "finish")
    graph.add_edge("survey", "finish")
    graph.add_edge("finish", END)
    return graph.compile(checkpointer=saver)
