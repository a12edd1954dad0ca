"""What threads take, what retention would free, and what was archived."""

from __future__ import annotations

from datetime import datetime

import streamlit as st

from memcore.services.checkpoints.ledger import Policy, Usage
from memcore.services.checkpoints.values import Source
from pages.shared import messages, present, reads, session, thread_reads, thread_tables


def of_thread(thread_id: str) -> None:
    """Growth and shares of one thread, and its snapshots."""
    actor = session.actor()
    with messages.trouble("Adding up", stop=False):
        found = thread_reads.thread_usage(actor, thread_id)
        _figures(found)
        left, right = st.columns(2)
        with left:
            st.markdown("**Growth** :gray[step by step]")
            st.plotly_chart(thread_tables.growth(found), key="thread_growth", config=present.PLOTLY,
                            alt=f"{present.size(found.total)} stored for a state of "
                                f"{present.size(found.live_octets)}")  # fmt: skip
        with right:
            st.markdown("**What pruning would free** :gray[if only the newest checkpoints stay]")
            most = found.freed[0].octets if found.freed else 0
            st.plotly_chart(thread_tables.freed(found), key="thread_freed", config=present.PLOTLY,
                            alt=f"Keeping only the newest checkpoint frees {present.size(most)} of "
                                f"{present.size(found.total)}")  # fmt: skip
        st.markdown("**By channel** :gray[each change of a channel stores it whole]")
        st.plotly_chart(thread_tables.shares(found), key="thread_shares", config=present.PLOTLY,
                        alt="Bytes by channel, largest first")  # fmt: skip
    with messages.trouble("Reading the snapshots", stop=False):
        kept = thread_reads.snapshots(actor, thread_id)
    if kept:
        st.markdown("**Snapshots** :gray[outlive pruning]")
        for s in kept:
            with st.expander(
                f"{present.when(s.taken_at, session.zone())} · {s.label or 'no label'}"
            ):
                kept_state = {
                    "messages": list(s.messages),
                    "agent_state": dict(s.agent_state),
                    "pending_tool_calls": list(s.pending_tool_calls),
                }
                st.json(thread_tables.tree(kept_state), expanded=1)


def _figures(found: Usage) -> None:
    newest = "In the newest state" if found.scope else "In the newest states"
    ratio = found.total / found.live_octets if found.live_octets else 0
    with st.grid(4):
        st.metric("Stored in all", present.size(found.total), border=True,
                  help="Uncompressed: blobs, writes and checkpoint rows")  # fmt: skip
        st.metric(newest, present.size(found.live_octets), border=True,
                  help=f"What is needed to go on; {ratio:.0f} times as much is stored")  # fmt: skip
        st.metric("On disk", present.size(found.disk_octets), help="As PostgreSQL compresses it",
                  border=True)  # fmt: skip
        st.metric("Left behind", present.size(found.orphan_octets), border=True,
                  help="Blobs and writes that no stored checkpoint refers to")  # fmt: skip


def whole(source: Source) -> None:
    """The whole database: shares, then retention."""
    with messages.trouble("Adding up"):
        found = thread_reads.thread_usage(session.actor())
    _figures(found)
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        st.markdown("**By channel**")
        st.plotly_chart(thread_tables.shares(found), key="space_channels", config=present.PLOTLY,
                        alt="Bytes by channel, largest first")  # fmt: skip
    with right.container(border=True, height="stretch"):
        st.markdown("**Largest threads**")
        st.plotly_chart(thread_tables.shares(found, by="threads"), key="space_threads",
                        config=present.PLOTLY, alt="Bytes by thread, largest first")  # fmt: skip
    _retention(source)


@st.fragment
def _retention(source: Source) -> None:
    """A policy and its dry run, which changes nothing."""
    with st.container(border=True):
        st.markdown("**Retention** :gray[a dry run: nothing changes until you confirm]")
        a, b, c = st.columns(3)
        idle = a.number_input(
            "Archive threads idle for (days)", 1.0, None, 14.0, 1.0, key="space_idle",
            format="%.0f", help="By their newest checkpoint; they go whole. Empty: never.",
        )  # fmt: skip
        keep = b.number_input(
            "Keep the newest, in every other thread", 1, None, None, 1, key="space_keep",
            placeholder="All", help="Checkpoints of each namespace. Empty: all.",
        )  # fmt: skip
        age = c.number_input(
            "Remove older than (days), in every other thread", 1.0, None, None, 1.0,
            key="space_age", format="%.0f", placeholder="Never",
        )  # fmt: skip
        if not (idle or keep or age):
            st.caption("Set at least one rule.")
            return
        policy = Policy(idle, keep, age)
        minute = session.now().replace(second=0, microsecond=0)
        with messages.trouble("Planning", stop=False):
            plan = thread_reads.prune_plan(session.actor(), policy, minute)
            held = sum(len(t.kept) for t in plan.threads)
            with st.grid(4):
                st.metric("Threads touched", f"{sum(bool(t.dropped) for t in plan.threads):,}",
                          help=f"Of {plan.examined:,}")  # fmt: skip
                st.metric("Checkpoints that go", f"{plan.checkpoints:,}")
                st.metric("Frees", present.size(plan.octets))
                st.metric("Held back", f"{held:,}", help="The latest, what waits for a human, and "
                          "what a delta channel is rebuilt from always stay")  # fmt: skip
            if not plan.checkpoints:
                st.caption("Nothing goes under this policy.")
            if plan.threads:
                st.dataframe(
                    thread_tables.plan(plan, session.now()), hide_index=True, key="space_plan",
                    column_config=thread_tables.PLAN_COLUMNS,
                    height="content" if len(plan.threads) <= 10 else 390,
                    alt=f"{present.count(len(plan.threads), 'thread')} and what goes from each",
                )  # fmt: skip
            if st.button("Archive and remove…", key="space_prune", icon=":material/inventory_2:",
                         disabled=source.read_only or not plan.checkpoints,
                         help="The database is marked read-only: set CHECKPOINT_READ_ONLY=off to "
                         "change it." if source.read_only else None):  # fmt: skip
                confirm_prune(policy, minute)


@st.dialog("Archive and remove", icon=":material/inventory_2:")
def confirm_prune(policy: Policy, at: datetime | None = None) -> None:
    """Names what goes, then does it with its progress shown."""
    messages.failures()
    at = at or session.now().replace(second=0, microsecond=0)
    with messages.trouble("Planning"):
        plan = thread_reads.prune_plan(session.actor(), policy, at)
    touched = sum(bool(t.dropped) for t in plan.threads)
    st.markdown(
        f"**{present.count(plan.checkpoints, 'checkpoint')}** of "
        f"**{present.count(touched, 'thread')}** in {thread_tables.place(plan.source)} go into the "
        f"archive, compressed. That frees {present.size(plan.octets)}. Each thread can be put "
        "back; agents cannot rewind to what is archived."
    )
    if not plan.checkpoints:
        st.caption("Nothing goes under this policy.")
        return
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button("Keep them", key="prune_cancel"):
            st.rerun()
        go = st.button(f"Archive {present.count(plan.checkpoints, 'checkpoint')}", type="primary",
                       key="prune_confirm", icon=":material/inventory_2:")  # fmt: skip
    if not go:
        return
    bar = st.progress(0.0, "Archiving…")
    with messages.attempt("Archiving"):
        report = session.service().checkpoints.prune(
            plan, actor=session.actor(),
            progress=lambda n, of: bar.progress(n / max(1, of), f"{n:,} of {of:,} threads"),
        )  # fmt: skip
        messages.done(
            f"{present.count(report.checkpoints, 'checkpoint')} archived: "
            f"{present.size(report.octets)} became {present.size(report.archived_octets)}."
        )
        if report.skipped:
            messages.warn(f"{present.count(len(report.skipped), 'thread')} skipped",
                          [f"{t}: {why}" for t, why in report.skipped[:20]])  # fmt: skip
    reads.forget()
    st.rerun()


# ---- archive ------------------------------------------------------------------------------------


def _restore(archive_id: str) -> None:
    with messages.attempt("Restoring"):
        done = session.service().checkpoints.restore(archive_id, actor=session.actor())
        messages.done(
            f"{done.thread_id}: {present.count(done.checkpoints, 'checkpoint')} are back."
        )
    reads.forget()


def archive(source: Source) -> None:
    """What was archived, and putting it back."""
    zone = session.zone()
    with messages.trouble("Reading the archive"):
        rows = thread_reads.archived(session.actor())
    if not rows:
        with messages.empty("inventory_2", "Nothing archived yet",
                            "What retention removes is kept here, compressed, and can be put back. "
                            "Plan it under Space."):  # fmt: skip
            st.space("small")
        return
    event = st.dataframe(
        thread_tables.archive(rows, zone), column_config=thread_tables.archive_columns(zone),
        hide_index=True, key="archive_table", on_select="rerun", selection_mode="single-row",
        height="content", alt=f"{present.count(len(rows), 'archive entry', 'archive entries')}",
    )  # fmt: skip
    chosen = [rows[i] for i in event.selection.rows if i < len(rows)]
    if not chosen:
        st.caption("Select an entry to put it back.")
        return
    entry = chosen[0]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{messages.plain(entry.thread_id)}**: "
                    f"{present.count(entry.checkpoints, 'checkpoint')}, {entry.blobs:,} blobs, "
                    f"{entry.writes:,} writes")  # fmt: skip
        st.button(
            "Restore", key="archive_restore", icon=":material/settings_backup_restore:",
            type="primary", on_click=_restore, args=(entry.id,),
            disabled=source.read_only or entry.restored_at is not None,
            help="Restored already" if entry.restored_at else None,
        )  # fmt: skip
