"""What happened in one turn of the playground: recalled, injected, in the window, in mind."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from memcore.models import Conversation, Subject
from memcore.plain import plain
from memcore.services.conversations import Turn
from memcore.text import shorten
from pages.shared import messages, present, reads, runs, session


def record(turn: Turn) -> str:
    """`turn` as session state keeps it: JSON, without what is read again from the database."""
    context, recall = turn.context, turn.context.recall
    short = context.short_term
    kept: dict[str, Any] = {
        "hits": [
            {"id": h.memory.id, "content": h.memory.content, "type": h.memory.memory_type,
             "score": h.score, "terms": {t.name: t.contribution for t in h.terms},
             "injected": h.memory.id in context.block.included}
            for h in (recall.hits if recall else ())
        ],
        "dropped": Counter(d.reason for d in (recall.dropped if recall else ())),
        "near_misses": [
            {"content": shorten(d.memory.content, 120), "reason": d.reason, "detail": d.detail}
            for d in (recall.dropped if recall else ())[:8]
        ],
        "recall_ms": recall.timings.get("total", 0.0) if recall else 0.0,
        "notice": context.notice,
        "block": context.block,
        "messages": [{"role": m.role, "content": m.content} for m in context.messages],
        "tokens": context.tokens,
        "window": len(short.window.kept) if short else 0,
        "size": short.size if short else 0,
        "summary": short.summary if short else "",
        "summary_tokens": short.summary_tokens if short else 0,
        "summarised": short.summarised if short else 0,
        "working": turn.working,
        "run_id": turn.run.id if turn.run else None,
        "trouble": turn.trouble,
        "turns_left": turn.turns_left,
        "ms": turn.ms,
    }  # fmt: skip
    return json.dumps(plain(kept), ensure_ascii=False)


def inside(kept: str, *, key: str) -> None:
    """Tabs beside a turn."""
    turn = json.loads(kept)
    names = ["Recalled", "Prompt", "Window", "Working memory", "Extracted"]
    recalled, prompt, window, working, extracted = st.tabs(names, key=f"{key}_tabs")
    with recalled:
        _recalled(turn, key)
    with prompt:
        _prompt(turn)
    with window:
        _window(turn)
    with working:
        _working(turn)
    with extracted:
        _extracted(turn, key)


def sessions(talks: Mapping[str, Conversation], current: str, go_to: Callable[[str], None]) -> None:
    """Earlier conversations to go back to."""
    with st.popover("Sessions", icon=":material/history:", key="playground_sessions"):
        if not talks:
            st.caption("No conversation of this user yet.")
        for talk in list(talks.values())[:12]:
            when = present.ago(talk.updated_at, session.now())
            st.button(
                f"{messages.plain(shorten(talk.title, 48))} · {when}", type="tertiary",
                key=f"playground_to_{talk.id}", on_click=go_to, args=(talk.id,),
                disabled=talk.id == current,
            )  # fmt: skip


def preview(subject: Subject) -> None:
    """The prompt a message would get. Nothing counts as used, nothing is logged."""
    with st.popover("Preview a prompt", icon=":material/preview:", key="playground_preview_box"):
        text = st.text_input("Message", key="playground_preview", width=420)
        if not text.strip():
            st.caption("Shows the exact messages; nothing counts as used.")
            return
        with messages.trouble("Building the prompt", stop=False):
            seen = reads.context(session.actor(), subject, text.strip())
            left = len(seen.block.left_out)
            st.caption(
                f"About {seen.tokens:,} tokens, {seen.block.tokens:,} of {seen.block.budget:,} for "
                f"{present.count(len(seen.block.included), 'line')} of memory"
                + (f", {left} left out" if left else "")
                + (". Earlier messages are summed up." if seen.summarised else ". Nothing is "
                   "summed up.")
            )  # fmt: skip
            for message in seen.messages:
                st.caption(message.role)
                st.code(message.content, language=None, wrap_lines=True)


def _recalled(turn: dict[str, Any], key: str) -> None:
    if turn["notice"]:
        st.info(messages.plain(turn["notice"]), icon=":material/info:")
    if not turn["hits"]:
        st.caption("Nothing is remembered that this message could use.")
        return
    injected = sum(h["injected"] for h in turn["hits"])
    st.caption(
        f"{present.count(len(turn['hits']), 'memory')} recalled in {turn['recall_ms']:.0f} ms, "
        f"{injected} went into the prompt. A score is the sum of its terms."
    )
    names = list(turn["hits"][0]["terms"])
    rows = [
        {"memory": h["content"], "score": h["score"], **h["terms"], "injected": h["injected"]}
        for h in turn["hits"]
    ]
    top = max(1.0, max(h["score"] for h in turn["hits"]))
    st.dataframe(
        rows, hide_index=True, key=f"{key}_hits", height="content",
        column_order=["memory", "score", *names, *(["injected"] if injected < len(rows) else [])],
        column_config={
            "memory": st.column_config.TextColumn("Memory", width=176),
            "score": st.column_config.ProgressColumn(
                "Score", min_value=0, max_value=top, format="%.2f", width=86
            ),
            **{n: st.column_config.NumberColumn(n.capitalize(), format="%.2f",
                                                width=62 if len(n) < 8 else 82)
               for n in names},
            "injected": st.column_config.CheckboxColumn("In prompt", width=76),
        },
        alt=f"{len(rows)} recalled memories with their scores",
    )  # fmt: skip
    if turn["dropped"]:
        total = sum(turn["dropped"].values())
        reasons = ", ".join(f"{n} {messages.words(r)}" for r, n in turn["dropped"].items())
        with st.expander(f"{total} not recalled: {reasons}", icon=":material/filter_alt_off:"):
            st.table(
                [{"Memory": messages.plain(d["content"]), "Why not": messages.plain(d["detail"])}
                 for d in turn["near_misses"]],
                border="horizontal", alt="The best memories that were not recalled",
            )  # fmt: skip


def _prompt(turn: dict[str, Any]) -> None:
    block = turn["block"]
    left = len(block["left_out"])
    st.caption(
        f"{block['tokens']:,} of {block['budget']:,} tokens for memories"
        + (f", {present.count(left, 'line')} left out" if left else "")
        + f"; about {turn['tokens']:,} tokens in all."
    )
    if block["text"]:
        st.code(block["text"], language=None, wrap_lines=True, height=300)
    else:
        st.caption("No memories were injected.")
    with st.expander("All messages as sent", icon=":material/forum:"):
        for message in turn["messages"]:
            st.caption(message["role"])
            st.code(message["content"], language=None, wrap_lines=True)


def _window(turn: dict[str, Any]) -> None:
    with st.grid(3):
        st.metric("Messages in the window", f"{turn['window']} of {turn['size']}")
        st.metric("Summed up before it", turn["summarised"])
        st.metric("Tokens of the summary", turn["summary_tokens"])
    if turn["summary"]:
        st.markdown("**Running summary**")
        st.code(turn["summary"], language=None, wrap_lines=True)
    else:
        st.caption("Everything said so far is still in the window: there is no summary yet.")


def _working(turn: dict[str, Any]) -> None:
    working = turn["working"]
    st.caption("What the agent held in mind during this call. It is stored nowhere.")
    for todo in working["todo"]:
        icon = "check_box" if todo["done"] else "check_box_outline_blank"
        st.markdown(f":material/{icon}: {messages.plain(todo['what'])}")
    if working["tools"]:
        st.table(
            [
                {"Tool": f"`{t['name']}`", "Asked": messages.plain(shorten(t["arguments"], 80)),
                 "Answer": messages.plain(shorten(t["result"], 120)), "ms": f"{t['ms']:.0f}"}
                for t in working["tools"]
            ],
            border="horizontal", alt="Tool calls of this turn",
        )  # fmt: skip
    for thought in working["thoughts"]:
        st.markdown(f":material/psychology: {messages.plain(thought)}")


def _extracted(turn: dict[str, Any], key: str) -> None:
    if turn["trouble"]:
        st.warning(messages.plain(turn["trouble"]), title="Extraction did not run",
                   icon=":material/error:")  # fmt: skip
    if turn["run_id"] is None:
        left = turn["turns_left"]
        st.caption(
            f"Not yet: the library extracts again after {present.count(left, 'more message')}."
            if left
            else "Extraction is due with the next message."
        )
        return
    with messages.trouble("Reading the extraction", stop=False):
        run = reads.run(session.actor(), turn["run_id"])
        runs.head(run)
        for judged in run.items:
            runs.item(judged, key=f"{key}_item_{judged.number}")
        runs.rest(run, key=key)
