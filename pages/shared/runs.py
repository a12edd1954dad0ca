"""Extraction runs and their proposals, as the Playground and Extraction pages draw them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from memcore.extraction.runs import Judged, Run, compare
from memcore.models import Check
from memcore.text import shorten
from pages.shared import memory, messages, present, session

STATUS = {
    "proposed": ("green", "check", "the gate would store it"),
    "added": ("green", "add_circle", "stored"),
    "updated": ("violet", "update", "stored, replaces an older one"),
    "deleted": ("red", "delete", "deleted"),
    "rejected": ("orange", "block", "rejected by the gate"),
    "held": ("yellow", "front_hand", "waits for a person"),
    "repeat": ("gray", "content_copy", "this message yielded it before"),
    "refused": ("red", "error", "could not be stored"),
}
OUTCOME = {
    "ok": ("green", "check_circle"),
    "nothing": ("gray", "do_not_disturb_on"),
    "degraded": ("yellow", "healing"),
    "truncated": ("orange", "content_cut"),
    "refused": ("red", "block"),
    "unparsable": ("red", "error"),
    "failed": ("red", "cloud_off"),
    "rate_limited": ("orange", "speed"),
    "running": ("blue", "pending"),
}
COUNTED = ("extracted", "kept", "held", "skipped", "collapsed", "added", "updated", "deleted",
           "rejected", "repeat")  # fmt: skip


def outcome_badge(run: Run) -> str:
    color, icon = OUTCOME.get(run.outcome, ("gray", "help"))
    return f":{color}-badge[:material/{icon}: {messages.words(run.outcome)}]"


def status_badge(item: Judged) -> str:
    color, icon, said = STATUS[item.status]
    return f":{color}-badge[:material/{icon}: {said}]"


def head(run: Run) -> None:
    """How it ended, by whom, in numbers."""
    dry = " :gray-badge[:material/visibility: dry run]" if run.dry_run else ""
    st.markdown(f"{outcome_badge(run)}{dry} {messages.plain(run.detail)}")
    numbers = " · ".join(f"{run.counts[n]} {n}" for n in COUNTED if run.counts.get(n))
    how = " · ".join(
        part
        for part in (
            messages.plain(run.extractor),
            f"asked by {run.mode}" if run.mode else "",
            f"read by {run.read_by}" if run.read_by not in ("", "rules") else "",
            f"{run.ms:.0f} ms",
            f"{run.tokens:,} tokens" if run.tokens else "",
        )
        if part
    )
    st.caption(" — ".join(part for part in (numbers, how) if part))


def item(judged: Judged, *, key: str, tick: bool = False) -> None:
    """One proposal in a card: what, from where, judged how. `tick` offers it for acceptance."""
    proposal = judged.proposal
    draft = proposal.draft
    with st.container(border=True, gap="xsmall", key=f"{key}_card"):
        if tick:
            st.checkbox(messages.plain(draft.content), key=f"{key}_tick")
        else:
            st.markdown(messages.plain(draft.content))
        badges = [
            status_badge(judged),
            messages.type_badge(draft.memory_type),
            messages.scope_badge(draft.scope),
        ]
        badges += [f":gray-badge[{messages.plain(tag)}]" for tag in draft.tags[:4]]
        st.markdown(" ".join(badges))
        if proposal.evidence:
            rule = f" :gray[rule {messages.plain(proposal.evidence.rule)}]" if (
                proposal.evidence.rule) else ""  # fmt: skip
            quote = messages.plain(shorten(proposal.evidence.quote, 200))
            st.caption(f":material/format_quote: {quote}{rule}")
        for flag in proposal.flags:
            kind = f":orange[:material/flag: {messages.words(flag.kind)}]"
            st.caption(f"{kind} {messages.plain(flag.detail)}")
        for note in (*proposal.notes, judged.note):
            if note:
                st.caption(f":material/info: {messages.plain(note)}")
        if judged.verdict:
            st.markdown(" ".join(check_badge(c) for c in judged.verdict.checks))
            for check in judged.verdict.checks:
                if not check.passed:
                    st.caption(f":material/close: {messages.plain(check.note)}")
        if judged.memory_id and judged.status in ("added", "updated"):
            st.button("Open memory", key=f"{key}_open", type="tertiary",
                      icon=":material/arrow_outward:", on_click=memory.open_memory,
                      args=(judged.memory_id,))  # fmt: skip


def check_badge(check: Check) -> str:
    """A check with what was observed beside its limit."""
    color, icon = ("green", "check") if check.passed else ("red", "close")
    observed = _number(check.observed)
    # A word needs no limit beside it; a number does.
    limit = f" / {_number(check.limit)}" if isinstance(check.observed, int | float) else ""
    said = f"{check.name} {observed}{limit}"
    return f":{color}-badge[:material/{icon}: {messages.plain(said)}]"


def _number(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.2f}" if isinstance(value, float) else shorten(str(value), 24)


def rest(run: Run, *, key: str) -> None:
    """What was skipped, what was missed, and the reply as it came."""
    if run.skipped:
        with st.expander(f"{len(run.skipped)} skipped", icon=":material/filter_alt_off:"):
            st.table(
                [
                    {"Why": messages.words(s.reason), "Detail": messages.plain(s.detail),
                     "Item": messages.plain(shorten(s.item, 120))}
                    for s in run.skipped
                ],
                border="horizontal", alt=f"{len(run.skipped)} skipped items with reasons",
            )  # fmt: skip
    if run.raw_reply:
        with st.expander("Reply as it came", icon=":material/raw_on:", key=f"{key}_raw"):
            st.code(run.raw_reply, language=None, wrap_lines=True, height=240)


def said(run: Run) -> str:
    """One line for a log or a choice."""
    stored = run.counts.get("added", 0) + run.counts.get("updated", 0)
    return (
        f"{run.extractor}: {messages.words(run.outcome)}, "
        f"{present.count(run.counts.get('extracted', 0), 'proposal')}, {stored} stored"
    )


def log(
    logged: Sequence[Run],
    shown: Run,
    *,
    again: Callable[[str], None],
    open_run: Callable[[str], None],
) -> None:
    """Runs of the library, the one shown set beside another one. A click on a row opens it."""
    zone = session.zone()
    st.dataframe(
        {
            f"Started ({present.zone_label(zone)})": present.local_times(
                (r.at for r in logged), zone
            ),
            "Extractor": [r.extractor for r in logged],
            "Outcome": [messages.words(r.outcome) for r in logged],
            "Extracted": [r.counts.get("extracted", 0) for r in logged],
            "Stored": [r.counts.get("added", 0) + r.counts.get("updated", 0) for r in logged],
            "Held": [r.counts.get("held", 0) for r in logged],
            "Skipped": [r.counts.get("skipped", 0) for r in logged],
            "ms": [round(r.ms) for r in logged],
            "Dry run": [r.dry_run for r in logged],
            "User": [r.user_id for r in logged],
            "Detail": [r.detail for r in logged],
        },
        hide_index=True, key="extraction_log", placeholder="–",
        height="content" if len(logged) < 8 else 290,
        selection_mode="single-cell",
        on_select=lambda: _opened([r.id for r in logged], open_run),
        alt=f"{len(logged)} extraction runs, the latest first",
    )  # fmt: skip
    by_id = {r.id: r for r in logged}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        other = st.selectbox(
            "Set beside the shown run", [i for i in by_id if i != shown.id], None,
            key="extraction_other", width=420, placeholder="Choose one of the log",
            format_func=lambda i: f"{present.when(by_id[i].at, zone)} · {said(by_id[i])}",
        )  # fmt: skip
        st.button("Repeat the shown run", key="extraction_again", on_click=again,
                  args=(shown.id,), icon=":material/replay:",
                  help="The same turns, by the extractor and prompt chosen above.")  # fmt: skip
    beside = other or shown.repeats
    if beside in by_id and beside != shown.id:
        _compare(by_id[beside], shown)


def _opened(ids: Sequence[str], open_run: Callable[[str], None]) -> None:
    """A click on a row of the log shows that run."""
    if cells := st.session_state["extraction_log"].selection.cells:
        open_run(ids[cells[-1][0]])


def _compare(left: Run, right: Run) -> None:
    """Two runs' statements side by side."""
    pairs = compare(left, right)
    both = sum(p.left is not None and p.right is not None for p in pairs)
    st.markdown(f"**Side by side** :gray[{both} in both, {len(pairs) - both} in one]")

    def cell(item: Judged | None) -> str:
        if item is None:
            return "–"
        draft = item.proposal.draft
        kind = f"{messages.words(draft.memory_type)}, {draft.confidence:.2f}"
        return f"{messages.plain(draft.content)} :gray[{kind}]"

    def column(run: Run) -> str:
        return messages.plain(f"{run.extractor} · {present.when(run.at, session.zone())}")

    st.table(
        [
            {column(left): cell(p.left), f"{column(right)} ": cell(p.right),
             "Words in common": f"{p.agreement:.0%}" if p.agreement else "–"}
            for p in pairs
        ] or [{column(left): "–", f"{column(right)} ": "–", "Words in common": "–"}],
        border="horizontal", alt=f"{both} statements in both runs, {len(pairs) - both} in one",
    )  # fmt: skip
