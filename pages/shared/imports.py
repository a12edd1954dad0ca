"""The dialog that takes memories from a file: first a dry run that says what would happen, line by
line where something cannot be used, then the import, judged by the gate like anything else."""

from __future__ import annotations

import streamlit as st

from memcore.models import Subject
from memcore.services.transfer import Imported
from pages.shared import messages, present, reads, session

_SHOWN = 20


@st.dialog("Import memories", icon=":material/upload:", width="medium", on_dismiss="rerun")
def import_dialog(library_id: str) -> None:
    """Nothing is stored before the last button."""
    messages.failures()
    actor = session.actor()
    file = st.file_uploader(
        "JSON, JSON Lines or CSV", type=["json", "jsonl", "ndjson", "csv", "txt"],
        key="import_file",
    )  # fmt: skip
    # A user imports for themselves; the operator for anybody.
    users = reads.users() if actor.operator else [actor.user_id]
    projects = reads.projects() if actor.operator else list(actor.roles)
    left, right = st.columns(2)
    user = left.selectbox(
        "They become memories of", users, 0 if users else None,
        accept_new_options=actor.operator, key="import_user",
    )  # fmt: skip
    project = right.selectbox(
        "Project, for records of project scope", projects, None, placeholder="None",
        accept_new_options=actor.operator, key="import_project",
    )  # fmt: skip
    if file is None or not user:
        st.caption(
            "A record needs `content`; type, title, tags, scope, confidence and times are taken "
            "where they are given. Owner, id, status and vectors in the file are not taken over."
        )
        return
    subject = Subject(library_id, user, project)
    with messages.trouble("Reading the file"):
        tried = session.service().transfer.import_file(
            file.getvalue(), file.name, subject=subject, actor=actor, dry_run=True
        )
    st.markdown(
        f"**{present.count(tried.stored, 'record')}** of {messages.plain(file.name)} "
        f"({present.size(file.size)}) will be judged by the gate."
    )
    _refused(tried, "cannot be used")
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button("Cancel", key="import_cancel"):
            st.rerun()
        pressed = st.button(
            f"Import {present.count(tried.stored, 'record')}", key="import_store", type="primary",
            icon=":material/upload:", disabled=not tried.stored,
        )  # fmt: skip
    if not pressed:
        return
    bar = st.progress(0.0, "Embedding…")
    with messages.trouble("Importing"):
        done = session.service().transfer.import_file(
            file.getvalue(), file.name, subject=subject, actor=actor,
            progress=lambda n, total: bar.progress(
                n / total if total else 1.0, f"Embedded {n:,} of {total:,} texts"
            ),
        )  # fmt: skip
    reads.forget()
    bar.empty()
    said = f"{present.count(done.stored, 'memory')} imported from {file.name}."
    if done.batch_id:
        messages.done(said, undo=done.batch_id)
    if not done.refused:
        st.rerun()
    next_step = " Close this to see the list, with Undo above it." if done.stored else ""
    st.success(messages.plain(said) + next_step, icon=":material/check:")
    _refused(done, "not stored")


def _refused(result: Imported, why: str) -> None:
    for note in result.notes:
        st.caption(f":material/info: {messages.plain(note)}")
    if not result.refused:
        return
    lines = [f"- line {r.line}: {messages.plain(r.reason)}" for r in result.refused[:_SHOWN]]
    if len(result.refused) > _SHOWN:
        lines.append(f"- and {len(result.refused) - _SHOWN:,} more")
    st.warning(
        "\n".join(lines),
        title=f"{present.count(len(result.refused), 'line')} {why}",
        icon=":material/rule:",
    )
