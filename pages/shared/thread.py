"""One LangGraph thread: what is wrong with it, its timeline, and one checkpoint of it in full. The
URL names both (`thread`, `checkpoint`, `ns`).
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import streamlit as st

from memcore.services.checkpoints.decode import readable
from memcore.services.checkpoints.ledger import Policy
from memcore.services.checkpoints.timeline import namespace_label
from memcore.services.checkpoints.values import (
    ChatMessage,
    Checkpoint,
    Finding,
    Source,
    Step,
    ThreadStatus,
    Timeline,
    ToolCall,
)
from memcore.text import shorten
from pages.shared import (
    messages,
    present,
    reads,
    session,
    thread_reads,
    thread_space,
    thread_tables,
)

BADGE = {
    ThreadStatus.WAITING: ("orange", "front_hand"),
    ThreadStatus.FAILED: ("red", "error"),
    ThreadStatus.UNFINISHED: ("blue", "hourglass_top"),
    ThreadStatus.FINISHED: ("green", "check_circle"),
    ThreadStatus.PASSED: ("gray", "arrow_forward"),
}
STUCK = (ThreadStatus.WAITING, ThreadStatus.FAILED, ThreadStatus.UNFINISHED)
CALL = {"done": "green", "error": "red", "pending": "orange", "dangling": "red"}
AVATAR = {
    "user": ":material/person:",
    "assistant": ":material/smart_toy:",
    "tool": ":material/construction:",
    "system": ":material/settings:",
}
TODO = {"completed": "check_box", "done": "check_box", "in_progress": "indeterminate_check_box"}
LONG_TEXT = 4000
CHAT_SHOWN = 30


def open_thread(thread_id: str) -> None:
    """Callback: show this thread. Its id stands in the URL."""
    close()
    st.query_params["thread"] = thread_id


def close() -> None:
    for name in ("thread", "checkpoint", "ns"):
        st.query_params.pop(name, None)


def _open_step(checkpoint_id: str, ns: str) -> None:
    st.query_params["checkpoint"] = checkpoint_id
    if ns:
        st.query_params["ns"] = ns
    else:
        st.query_params.pop("ns", None)
    st.session_state.pop("thread_compare", None)


def _picked() -> None:
    """A click on a point of the graph."""
    points = st.session_state["thread_graph"].selection.points
    if points and points[0].get("customdata"):
        _open_step(*points[0]["customdata"][:2])


def badge(status: ThreadStatus) -> str:
    color, icon = BADGE[status]
    return f":{color}-badge[:material/{icon}: {status}]"


def panel(thread_id: str, source: Source) -> None:
    """Draw the thread the URL names."""
    actor, zone = session.actor(), session.zone()
    with messages.trouble("Opening the thread"):
        line = thread_reads.timeline(actor, thread_id)
        step = _chosen(line)
        found = thread_reads.checkpoint(actor, thread_id, step.checkpoint_id, step.checkpoint_ns)
    head, more = st.columns([6, 1], vertical_alignment="center", wrap=False)
    newest = next((s for s in line.steps if not s.checkpoint_ns), line.steps[0])
    head.subheader(messages.plain(thread_id), anchor=False)
    who = thread_tables.about(newest.metadata)
    head.markdown(
        f"{badge(newest.status)} :gray[{present.count(line.total, 'checkpoint')} · last activity "
        f"{present.ago(newest.created_at, session.now())}, {present.when(newest.created_at, zone)}"
        f"{' · ' + messages.plain(who) if who else ''}]"
    )
    with more:
        _menu(found, source)
    for finding in found.diagnosis:
        draw = {"error": st.error, "warning": st.warning}.get(finding.level, st.info)
        draw(messages.plain(finding.detail), title=messages.plain(finding.title),
             icon=f":material/{_icon(finding)}:")  # fmt: skip
    _timeline(line, step)
    _body(found, line, step)


def _icon(finding: Finding) -> str:
    if finding.title.startswith("Waiting"):
        return BADGE[ThreadStatus.WAITING][1]
    return {"error": "error", "warning": "warning"}.get(finding.level, "info")


def _chosen(line: Timeline) -> Step:
    """The step the URL names; the newest of the root graph where it names none."""
    wanted, ns = st.query_params.get("checkpoint"), st.query_params.get("ns", "")
    for s in line.steps:
        if s.checkpoint_id == wanted and s.checkpoint_ns == ns:
            return s
    if wanted:
        st.warning("The checkpoint this address names is not stored any more; the newest is shown.",
                   icon=":material/history:")  # fmt: skip
    return next((s for s in line.steps if not s.checkpoint_ns), line.steps[0])


def _timeline(line: Timeline, step: Step) -> None:
    zone = session.zone()
    with st.container(border=True):
        st.plotly_chart(
            thread_tables.graph(line, step.checkpoint_id, zone), key="thread_graph",
            on_select=_picked, selection_mode="points", config=present.PLOTLY,
            alt=f"{present.count(len(line.steps), 'checkpoint')} in order, "
                f"{present.count(len(line.forks), 'fork')}; a click opens one",
        )  # fmt: skip
        if line.truncated:
            st.caption(f"The newest {len(line.steps):,} of {line.total:,} checkpoints.")
        order = list(line.steps)
        place = order.index(step)
        older = order[place + 1] if place + 1 < len(order) else None
        newer = order[place - 1] if place else None
        with st.container(horizontal=True, vertical_alignment="center"):
            for target, label, icon in ((older, "Older", "chevron_left"),
                                        (newer, "Newer", "chevron_right")):  # fmt: skip
                st.button(
                    label, key=f"thread_{label.lower()}", icon=f":material/{icon}:",
                    disabled=target is None, on_click=_open_step,
                    args=(target.checkpoint_id, target.checkpoint_ns) if target else None,
                )  # fmt: skip
            st.markdown(
                f"**Step {step.step}** {badge(step.status)} :gray[{messages.plain(_by(step))}, "
                f"{present.when(step.created_at, zone)}, stored {present.size(step.octets)}, "
                f"state {present.size(step.state_octets)}]"
            )


def _by(step: Step) -> str:
    where = f" in {namespace_label(step.checkpoint_ns)}" if step.checkpoint_ns else ""
    return (", ".join(step.nodes) or step.source) + where


def _body(found: Checkpoint, line: Timeline, step: Step) -> None:
    names = ["Chat", "State", "Pending", "Changes", "Growth"]
    stuck = found.status in STUCK or found.pending_tool_calls
    chat, state, pending, changes, growth = st.tabs(
        names, key="thread_tab", bind="query-params",
        default="Pending" if stuck and found.newest else "Chat",
    )  # fmt: skip
    if chat.open:
        with chat:
            _chat(found)
    if state.open:
        with state:
            _state(found)
    if pending.open:
        with pending:
            _pending(found)
    if changes.open:
        with changes:
            _changes(found, line, step)
    if growth.open:
        with growth:
            thread_space.of_thread(found.thread_id)


# ---- chat ---------------------------------------------------------------------------------------


def _chat(found: Checkpoint) -> None:
    if not found.messages:
        st.caption("No messages at this checkpoint.")
        return
    ids = tuple(m.id for m in found.messages if m.id)
    with messages.trouble("Reading the memories", stop=False):
        memories = thread_reads.memories_of(session.actor(), found.thread_id, ids)
        if others := memories.get(""):
            session.link(
                "memories", f"{present.count(len(others), 'more memory', 'more memories')} of this "
                "session",
                icon=":material/library_books:", memories_session=found.thread_id,
            )  # fmt: skip
    shown = found.messages
    if len(shown) > CHAT_SHOWN and not st.toggle(
        f"Show all {len(shown):,} messages", key="thread_all"
    ):
        shown = shown[-CHAT_SHOWN:]
    for message in shown:
        _message(message, memories.get(message.id, ()) if message.id else ())


def _message(message: ChatMessage, memories: Any) -> None:
    with st.chat_message(message.role or "unknown", avatar=AVATAR.get(message.role)):
        text = message.text
        if len(text) > LONG_TEXT:
            text = f"{text[:LONG_TEXT]}… ({len(text):,} characters)"
        if text:
            st.markdown(messages.plain(text).replace("\n", "  \n"))
        for call in message.tool_calls:
            st.markdown(_call_line(call))
        notes = [f"tool {message.name}"] if message.role == "tool" and message.name else []
        notes += [shorten(a, 200) for a in message.attachments]
        notes += [message.status] if message.status == "error" else []
        if notes:
            st.caption(messages.plain(" · ".join(notes)))
        for memory in memories:
            session.link("memories", shorten(memory.content, 80), icon=":material/neurology:",
                         memory=memory.id)  # fmt: skip


def _call_line(call: ToolCall) -> str:
    args = shorten(json.dumps(readable(call.args), ensure_ascii=False), 160) if call.args else ""
    if call.since:
        args = f"for {present.ago(call.since, session.now()).removesuffix(' ago')} {args}"
    return (f":material/build: **{messages.plain(call.name)}** "
            f":{CALL.get(call.status, 'gray')}-badge[{call.status}] "
            f":gray[{messages.plain(args)}]")  # fmt: skip


# ---- state, pending, changes --------------------------------------------------------------------


def _state(found: Checkpoint) -> None:
    if found.todos:
        st.markdown("**Todo list**")
        st.markdown("  \n".join(
            f":material/{TODO.get(t.status, 'check_box_outline_blank')}: "
            f"{messages.plain(t.content)} :gray[{messages.plain(t.status)}]" for t in found.todos
        ))  # fmt: skip
    state = {k: v for k, v in found.state.items() if not (k == "todos" and found.todos)}
    if state:
        st.markdown("**Agent state**")
        st.json(thread_tables.tree(state), expanded=2)
    elif not found.todos:
        st.caption("The state holds nothing but messages here.")
    st.markdown("**Channels**")
    st.dataframe(
        thread_tables.channels(found.channels), column_config=thread_tables.CHANNEL_COLUMNS,
        hide_index=True, key="thread_channels", height="content",
        alt=f"{present.count(len(found.channels), 'channel')} and how they are stored",
    )  # fmt: skip
    with st.expander("Metadata of the checkpoint", icon=":material/data_object:"):
        st.json(thread_tables.tree(dict(found.metadata)), expanded=1)


def _pending(found: Checkpoint) -> None:
    now = session.now()
    due = found.next_nodes if found.status in STUCK and not found.interrupts else ()
    if not (due or found.interrupts or found.pending_tool_calls or found.pending_writes):
        st.caption("Nothing waits at this checkpoint, and nothing was written after it.")
        return
    if due:
        with st.container(border=True):
            st.markdown(f"{badge(found.status)} due to run: **{messages.plain(', '.join(due))}**")
            if found.newest and not found.checkpoint_ns:
                st.code(f"core.checkpoints.resume(graph, {found.thread_id!r})", "python")
    for interrupt in found.interrupts:
        with st.container(border=True):
            said = "answered, not passed" if interrupt.answered else "waits for a human"
            if found.status is ThreadStatus.PASSED:
                said = "asked; the thread went on without an answer"
            st.markdown(f":orange-badge[:material/front_hand: {said}] at "
                        f"**{messages.plain(interrupt.node)}** :gray[asked "
                        f"{present.ago(interrupt.since, now)}]")  # fmt: skip
            for action in interrupt.actions:
                st.markdown(_call_line(replace(action, args={})))
                st.json(thread_tables.tree(action.args), expanded=2)
            if interrupt.actions:
                with st.expander("The question as it is stored", icon=":material/data_object:"):
                    st.json(thread_tables.tree(interrupt.value), expanded=2)
            else:
                st.json(thread_tables.tree(interrupt.value), expanded=3)
            answer = "" if interrupt.answered else ", answer"
            if len(found.interrupts) > 1 and not interrupt.answered:
                answer = f', answers={{"{interrupt.id}": answer}}'
            if found.newest and not found.checkpoint_ns:
                st.code(f"core.checkpoints.resume(graph, {found.thread_id!r}{answer})", "python")
    asked = {a.id for i in found.interrupts for a in i.actions if a.id}
    rest = [c for c in found.pending_tool_calls if c.id not in asked]
    if rest:
        st.markdown("**Tool calls without an answer**")
    for call in rest:
        with st.container(border=True):
            since = f"opened {present.ago(call.since, now)}" if call.since else ""
            st.markdown(f":{CALL[call.status]}-badge[{call.status}] "
                        f"**{messages.plain(call.name)}** "
                        f":gray[{since} · id {messages.plain(call.id or 'none')}]")  # fmt: skip
            st.json(thread_tables.tree(call.args), expanded=3)
    if found.pending_writes:
        st.markdown("**Writes recorded after this checkpoint**")
        st.dataframe(
            thread_tables.writes(found.pending_writes), column_config=thread_tables.WRITE_COLUMNS,
            hide_index=True, key="thread_writes", height="content",
            alt=f"{present.count(len(found.pending_writes), 'write')} by node and channel",
        )  # fmt: skip


def _changes(found: Checkpoint, line: Timeline, step: Step) -> None:
    others = [s for s in line.steps if s.checkpoint_ns == step.checkpoint_ns and s is not step]
    if not others:
        st.caption("There is no other checkpoint to compare with.")
        return
    ids = [s.checkpoint_id for s in others]
    zone = session.zone()
    names = {s.checkpoint_id: f"step {s.step} · {_by(s)} · {present.when(s.created_at, zone)}"
             for s in others}  # fmt: skip
    parent = step.parent_checkpoint_id
    base = st.selectbox(
        "Compare with", ids, ids.index(parent) if parent in ids else 0, key="thread_compare",
        format_func=lambda i: names[i] + (" (its parent)" if i == parent else ""),
    )  # fmt: skip
    with messages.trouble("Comparing"):
        change = thread_reads.checkpoint_diff(
            session.actor(), found.thread_id, base, step.checkpoint_id, step.checkpoint_ns
        )
    sign = "+" if change.octets >= 0 else "−"
    st.caption(f"State {sign}{present.size(abs(change.octets))} against the chosen checkpoint.")
    for title, color, rows in (("added", "green", change.messages_added),
                               ("removed", "red", change.messages_removed)):  # fmt: skip
        for message in rows:
            calls = ", ".join(c.name for c in message.tool_calls)
            said = message.text or (f"calls {calls}" if calls else "no text")
            st.markdown(f":{color}-badge[{title}] **{messages.plain(message.role)}** "
                        f"{messages.plain(shorten(said, 400))}")  # fmt: skip
    for before, after in change.messages_edited:
        st.markdown(f":blue-badge[edited] **{messages.plain(after.role)}** "
                    f"{messages.plain(shorten(before.text, 200))} → "
                    f"{messages.plain(shorten(after.text, 200))}")  # fmt: skip
    for title, color, calls in (("opened", "orange", change.calls_opened),
                                ("closed", "green", change.calls_closed)):  # fmt: skip
        for call in calls:
            st.markdown(f":{color}-badge[call {title}] {_call_line(call)}")
    if change.changes:
        st.dataframe(
            thread_tables.changes(change.changes), column_config=thread_tables.CHANGE_COLUMNS,
            hide_index=True, key="thread_changes", height="content",
            alt=f"{present.count(len(change.changes), 'change')} of the state by place",
        )  # fmt: skip
    elif not (change.messages_added or change.messages_removed or change.messages_edited):
        st.caption("Nothing differs.")


# ---- what may be done ---------------------------------------------------------------------------


def _menu(found: Checkpoint, source: Source) -> None:
    keep, prune, forget = "Keep a snapshot", "Remove older checkpoints…", "Forget this thread…"
    act = st.menu_button(
        "More", [keep] if source.read_only else [keep, prune, forget], key="thread_menu",
        icon=":material/more_vert:", width="stretch",
    )  # fmt: skip
    if act == keep:
        with messages.attempt("Keeping a snapshot"):
            session.service().checkpoints.snapshot(
                found.thread_id, found.checkpoint_id, actor=session.actor(),
                checkpoint_ns=found.checkpoint_ns,
            )  # fmt: skip
            messages.done("Snapshot kept: it outlives pruning.")
        reads.forget()
        st.rerun()
    elif act == prune:
        thread_space.confirm_prune(Policy(keep_last=1, thread_ids=(found.thread_id,)))
    elif act == forget:
        _forget_dialog(found.thread_id)


def _forget(thread_id: str) -> None:
    with messages.attempt("Forgetting the thread"):
        gone = session.service().checkpoints.delete_thread(thread_id, actor=session.actor())
        messages.done(f"{thread_id} is forgotten: {gone.checkpoints} checkpoints, {gone.archived} "
                      f"archive entries, {gone.snapshots} snapshots.")  # fmt: skip
        close()
    reads.forget()


@st.dialog("Forget this thread", icon=":material/delete_forever:")
def _forget_dialog(thread_id: str) -> None:
    st.markdown(f"**{messages.plain(thread_id)}** is removed from every checkpoint table, from the "
                "archive and from the snapshots. **This cannot be undone.** Memories that were "
                "extracted from it stay.")  # fmt: skip
    typed = st.text_input("Type the thread's id to confirm", key="forget_typed", live=True)
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button("Keep it", key="forget_cancel"):
            st.rerun()
        if st.button("Forget", key="forget_confirm", type="primary", disabled=typed != thread_id,
                     icon=":material/delete_forever:", on_click=_forget,
                     args=(thread_id,)):  # fmt: skip
            st.rerun()
