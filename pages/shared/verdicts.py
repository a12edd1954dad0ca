"""The parts of the gate page: thresholds to try, a verdict with its numbers, the log, and what the
log would have been. Each draws one thing; judging is pure, so a slider costs no read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import pandas as pd
import streamlit as st

from memcore.models import Check, Facts, Library, Neighbour, Verdict
from memcore.rules import gate
from memcore.services.history import LoggedDecision
from memcore.settings import SPECS, GateSettings
from memcore.text import shorten
from pages.shared import library_acts, memory, messages, present, reads, session

OUTCOME = {
    "stored": ("green", "check_circle", "stored"),
    "update": ("violet", "update", "update: supersedes the old one"),
    "conflict": ("violet", "compare_arrows", "conflict: supersedes the old one"),
    "review": ("orange", "rate_review", "for review"),
    "duplicate": ("gray", "content_copy", "duplicate"),
    "rejected": ("red", "block", "rejected"),
    "unchecked": ("orange", "help", "not checked: held"),
}
"""Outcome → colour, icon, words."""


def outcome_badge(outcome: str) -> str:
    color, icon, words = OUTCOME.get(outcome, ("gray", "circle", outcome))
    return f":{color}-badge[:material/{icon}: {words}]"


# ---- thresholds ----------------------------------------------------------------------------------


def sliders(library: Library, saved: GateSettings) -> GateSettings:
    """Every threshold of the gate, starting where the library stands; returns what they say."""
    key = f"{library.id}_{st.session_state.get('gate_nonce', 0)}"
    said = dict(SPECS)
    tried = GateSettings(
        min_confidence=st.slider(
            "Lowest confidence", 0.0, 1.0, saved.min_confidence, 0.01,
            key=f"gate_confidence_{key}", help=said["min_confidence"].help,
        ),
        duplicate_threshold=st.slider(
            "Duplicate from similarity", 0.0, 1.0, saved.duplicate_threshold, 0.005,
            format="%.3f", key=f"gate_threshold_{key}", help=said["duplicate_threshold"].help,
        ),
        min_length=st.slider(
            "Shortest text", 0, max(50, saved.min_length), saved.min_length,
            key=f"gate_min_{key}", help=said["min_length"].help,
        ),
        max_length=st.slider(
            "Longest text", 50, max(5000, saved.max_length), max(50, saved.max_length), 50,
            key=f"gate_max_{key}", help=said["max_length"].help,
        ),
        max_extractions=st.slider(
            "Extractions per session and day", 0, max(20, saved.max_extractions),
            saved.max_extractions, key=f"gate_rate_{key}", help=said["max_extractions"].help,
        ),
        sensitive_action=st.segmented_control(
            "A draft with a secret", ["reject", "redact"], default=saved.sensitive_action,
            required=True, key=f"gate_sensitive_{key}", help=said["sensitive_action"].help,
        ),
    )  # fmt: skip
    # A slider has steps; what was not moved stays exactly as it is.
    for name, value in asdict(saved).items():
        now = getattr(tried, name)
        if isinstance(value, float) and abs(now - value) < 0.0026:
            tried = replace(tried, **{name: value})
    changed = differences(saved, tried)
    with st.container(horizontal=True):
        if st.button("Save to library", key="gate_save", type="primary", icon=":material/save:",
                     disabled=not changed):  # fmt: skip
            _confirm(library.id, library.name, changed)
        st.button("Reset", key="gate_reset", icon=":material/restart_alt:",
                  disabled=not changed, on_click=_reset)  # fmt: skip
    return tried


def differences(saved: GateSettings, tried: GateSettings) -> dict[str, tuple[Any, Any]]:
    """Setting → (saved, tried), where they differ."""
    then, now = asdict(saved), asdict(tried)
    return {name: (then[name], now[name]) for name in then if then[name] != now[name]}


def _reset() -> None:
    st.session_state["gate_nonce"] = st.session_state.get("gate_nonce", 0) + 1


@st.dialog("Save to library")
def _confirm(library_id: str, name: str, changed: dict[str, tuple[Any, Any]]) -> None:
    st.markdown(f"Every draft for **{messages.plain(name)}** will be judged with:")
    for setting, (before, after) in changed.items():
        st.markdown(f"- {messages.words(setting)}: {before} → **{after}**")
    st.caption("Drafts judged before keep their verdicts; Replay shows what would have changed.")
    if st.button("Save", key="gate_save_confirmed", type="primary", icon=":material/save:",
                 on_click=save, args=(library_id, changed)):  # fmt: skip
        st.rerun()


def save(library_id: str, changed: dict[str, tuple[Any, Any]]) -> None:
    """Callback: write what differs over what the library has set by hand."""
    with messages.attempt("Saving the settings"):
        libraries = session.service().libraries
        before = libraries.last_change(library_id)
        values = {name: after for name, (_, after) in changed.items()}
        library = libraries.adjust(library_id, values, actor=session.actor())
        _reset()
        said = present.count(len(changed), "setting")
        messages.done(f"{said} of “{library.name}” saved.",
                      undo=library_acts.undo_of(library_id, before), of="libraries")  # fmt: skip
    reads.forget()


# ---- one verdict ---------------------------------------------------------------------------------


def checks(rows: Sequence[Check]) -> None:
    """Every check with its number beside its limit, and its sentence."""
    for check in rows:
        with st.container(gap=None):
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.markdown(messages.verdict_badge(check.passed), width=80)
                st.markdown(f"**{check.name}**", width=90)
                st.markdown(
                    f"{messages.plain(_number(check.observed))} :gray[/ "
                    f"{messages.plain(_number(check.limit))}]", width="stretch",
                )  # fmt: skip
            st.caption(messages.plain(check.note))


def _number(value: float | int | str | None) -> str:
    """Enough digits to tell 0.8499 from 0.85."""
    if value is None:
        return "unknown"
    if isinstance(value, float):
        return f"{value:.4f}".rstrip("0").rstrip(".") if value else "0"
    return str(value)


def verdict(facts: Facts, judged: Verdict, before: Verdict | None, *, key: str) -> None:
    """The outcome, what the saved settings say where that differs, the checks, what is near."""
    line = outcome_badge(judged.outcome)
    if judged.blocked_by:
        line += f" :gray[blocked by] **{judged.blocked_by}**"
    if before is not None and before.outcome != judged.outcome:
        line += f" :gray[· with the library's settings:] {outcome_badge(before.outcome)}"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(line, width="content")
        if judged.matched_id:
            _chip("Open the memory it is about", judged.matched_id, f"{key}_matched")
    if any(f.kind != "instruction" for f in facts.sensitive):
        st.caption(f"As it would be kept: {messages.plain(shorten(facts.text, 300))}")
    checks(judged.checks)
    neighbours(facts.neighbours, key=key)


def _chip(label: str, memory_id: str, key: str) -> None:
    st.button(
        label, key=key, type="tertiary", icon=":material/arrow_outward:",
        on_click=memory.open_memory, args=(memory_id,),
    )  # fmt: skip


def neighbours(rows: Sequence[Neighbour] | None, *, key: str) -> None:
    """What is stored near the draft: similarity, what the guards say of the pair, and why."""
    if rows is None:
        st.info("What is near is not known: the similarity query failed.",
                icon=":material/help:")  # fmt: skip
        return
    if not rows:
        return
    st.markdown("**Nearest memories**")
    for n in rows:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"`{n.similarity:.4f}`", width=76)
            st.markdown(
                f":blue-badge[{n.relation or ('exact' if n.exact else 'far off')}]", width=104
            )
            with st.container(width="stretch", gap=None):
                st.markdown(messages.plain(shorten(n.content, 160)) or ":gray[gone or not visible]")
                if n.reason:
                    st.caption(messages.plain(n.reason[:1].upper() + n.reason[1:]))
            _chip("", n.memory_id, f"{key}_near_{n.memory_id}")


# ---- the log -------------------------------------------------------------------------------------


def log_table(decisions: Sequence[LoggedDecision]) -> pd.DataFrame:
    """One line per decision, newest first."""
    zone = session.zone()
    return pd.DataFrame(
        {
            "at": present.local_times([d.at for d in decisions], zone),
            "outcome": [d.verdict.outcome for d in decisions],
            "blocked by": [d.verdict.blocked_by or "" for d in decisions],
            "text": [shorten(d.facts.text, 200) for d in decisions],
            "confidence": [d.facts.confidence for d in decisions],
            "nearest": [
                max((n.similarity for n in d.facts.neighbours or ()), default=None)
                for d in decisions
            ],
            "source": [d.draft.source for d in decisions],
            "user": [d.subject.user_id for d in decisions],
            "agent": [d.agent or "" for d in decisions],
        }
    )


def log_columns() -> dict[str, Any]:
    column = st.column_config
    return {
        "at": column.DatetimeColumn(f"At ({present.zone_label(session.zone())})",
                                    format="YYYY-MM-DD HH:mm", width=130),
        "outcome": column.TextColumn("Outcome", width=90),
        "blocked by": column.TextColumn("Blocked by", width=90),
        "text": column.TextColumn("Draft, masked", width="large"),
        "confidence": column.NumberColumn("Confidence", format="%.2f", width=84),
        "nearest": column.NumberColumn("Nearest", format="%.4f", width=80),
        "source": column.TextColumn("Source", width=84),
        "user": column.TextColumn("User", width=84),
        "agent": column.TextColumn("Agent", width=84),
    }  # fmt: skip


def decision(found: LoggedDecision, tried: GateSettings) -> None:
    """One decision of the log: as it was, and what the sliders would make of it."""
    now = gate.judge(found.draft, found.facts, tried)
    with st.container(border=True, key="gate_decision"):
        st.markdown(messages.plain(found.facts.text))
        who = f"{messages.plain(found.subject.user_id)}" + (
            f" · {messages.plain(found.agent)}" if found.agent else ""
        )
        st.caption(f"{present.when(found.at, session.zone())} · {who} · {found.draft.source}")
        line = outcome_badge(found.verdict.outcome)
        if (now.outcome, now.accepted) != (found.verdict.outcome, found.verdict.accepted):
            line += f" :gray[→ with the sliders] {outcome_badge(now.outcome)}"
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(line, width="content")
            if found.memory_id:
                _chip("Open the memory", found.memory_id, f"gate_made_{found.id}")
            held = found.verdict.outcome in ("review", "unchecked") and not found.verdict.accepted
            if held and found.memory_id is None:
                st.button("Approve" if found.verdict.outcome == "review" else "Check again",
                          key=f"gate_approve_{found.id}", icon=":material/done_all:",
                          on_click=approve, args=(found.id,))  # fmt: skip
        checks(found.verdict.checks)
        neighbours(found.facts.neighbours, key=f"gate_log_{found.id}")


def approve(decision_id: int) -> None:
    """Callback: let a held draft in, or check it again."""
    with messages.attempt("Approving"):
        added = session.service().memories.approve(decision_id, actor=session.actor())
        if added.memory is not None:
            messages.done(f"Stored: {messages.plain(shorten(added.memory.content, 60))}")
        else:
            failed = next(c for c in added.verdict.checks if not c.passed)
            messages.warn("Still not stored", [f"{failed.name}: {failed.note}"])
    reads.forget()


# ---- replay --------------------------------------------------------------------------------------


def replay(decisions: Sequence[LoggedDecision], tried: GateSettings) -> None:
    """The latest decisions under the sliders: counts before and after, and every flip."""
    again = gate.replay([(d.draft, d.facts, d.verdict) for d in decisions], tried)
    with st.container(horizontal=True):
        accepted = sum(d.verdict.accepted for d in decisions)
        after = sum(v.accepted for v in again.verdicts)
        st.metric("Replayed", len(decisions), border=True)
        st.metric("Let in", after, after - accepted or None, border=True, delta_color="off",
                  help=f"{accepted} were let in when they were judged.")  # fmt: skip
        st.metric("Newly let in", again.newly_accepted, border=True)
        st.metric("Newly refused", again.newly_refused, border=True)
    counts = [o for o in OUTCOME if again.counts_before.get(o) or again.counts_after.get(o)]
    st.table(
        [
            {"Outcome": o, "As judged": again.counts_before.get(o, 0),
             "With the sliders": again.counts_after.get(o, 0)}
            for o in counts
        ],
        border="horizontal", alt="Outcomes as judged and with the sliders",
    )  # fmt: skip
    if not again.flips:
        st.info("No decision would come out otherwise.", icon=":material/drag_handle:")
        return
    st.markdown(f"**{present.count(len(again.flips), 'decision')} would flip**")
    for flip in again.flips[:50]:
        found = decisions[flip.index]
        label = f"{flip.before.outcome} → {flip.after.outcome}: {shorten(found.facts.text, 90)}"
        with st.expander(messages.plain(label), key=f"gate_flip_{found.id}",
                         icon=":material/add_circle:" if flip.after.accepted
                         else ":material/remove_circle:"):  # fmt: skip
            verdict(found.facts, flip.after, None, key=f"gate_flip_in_{found.id}")
    if len(again.flips) > 50:
        st.caption(f"and {len(again.flips) - 50} more")
