"""Profiles: what is known of a user or a project, and which memories say so."""

import json

import streamlit as st

from memcore.models import Actor
from memcore.plain import plain
from memcore.rules.aggregation import Profile, field_text, field_value
from pages.shared import messages, present, reads, session

library = messages.need_library()
actor = session.actor()
zone = session.zone()


def save(profile: Profile, actor: Actor) -> None:
    """Write what was changed in the table of fields, field by field."""
    edits = st.session_state["profiles_fields"]
    names = list(profile.fields)
    patch, removed = {}, [names[i] for i in edits["deleted_rows"]]
    for row, change in edits["edited_rows"].items():
        old = names[int(row)]
        name = (change.get("field") or old).strip()
        value = change["value"] if "value" in change else field_text(profile.fields[old])
        patch[name] = field_value(value or "")
        if name != old:
            removed.append(old)
    for row in edits["added_rows"]:
        if (row.get("field") or "").strip():
            patch[row["field"].strip()] = field_value(row.get("value") or "")
    with messages.attempt("Saving the profile"):
        session.service().profiles.write(
            profile.kind, profile.subject_id, patch, library_id=profile.library_id,
            actor=actor, version=profile.version, removed=removed,
        )  # fmt: skip
        del st.session_state["profiles_fields"]
        messages.done(f"Profile of {profile.subject_id} saved.")
    reads.forget()


with messages.trouble("Reading the profiles"):
    subjects = reads.profile_subjects(actor, library.id)
if not subjects:
    messages.no_memories()
    st.stop()

options = [f"{kind}:{subject_id}" for kind, subject_id, _ in subjects]
if st.session_state.get("profiles_subject") not in (None, *options):
    del st.session_state["profiles_subject"]
chosen = st.selectbox(
    "User or project",
    options,
    format_func=lambda o: " · ".join(reversed(o.split(":", 1))),
    key="profiles_subject",
    bind="query-params",
)
kind, _, subject_id = chosen.partition(":")
with messages.trouble("Reading the profile"):
    profile = reads.profile(actor, library.id, kind, subject_id)

behind = sum(profile.counts.values())
with st.container(horizontal=True):
    st.metric("Statements", len(profile.statements), border=True)
    st.metric(
        "Memories behind them", behind, border=True,
        help="Active ones you may see. Memories that say the same make one statement.",
    )  # fmt: skip
    st.metric(
        "Replaced", sum(len(s.replaced) for s in profile.statements), border=True,
        help="Older memories that a newer one updates or contradicts.",
    )  # fmt: skip

st.subheader("From memories", anchor=False)
if profile.statements:
    picked = st.dataframe(
        present.statements(profile.statements, zone),
        key="profiles_statements",
        hide_index=True,
        height="content" if len(profile.statements) <= 12 else 460,
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "type": st.column_config.TextColumn("Type", width="small"),
            "statement": st.column_config.TextColumn("Statement", width="large"),
            "confidence": st.column_config.ProgressColumn(
                "Confidence", min_value=0, max_value=1, format="%.2f", width="small"
            ),
            "said": st.column_config.NumberColumn(
                "Said", help="How many memories say this", width="small"
            ),
            "replaces": st.column_config.NumberColumn(
                "Replaces", help="Older memories it updates or contradicts", width="small"
            ),
            "updated": st.column_config.DatetimeColumn(
                f"Updated ({present.zone_label(zone)})", format="YYYY-MM-DD HH:mm", width="medium"
            ),
        },
        alt=f"{len(profile.statements)} statements about {subject_id}, what must be minded first",
    )
    for row in picked.selection.rows:
        if row >= len(profile.statements):  # a selection made before the data changed
            continue
        statement = profile.statements[row]
        with st.container(border=True):
            st.markdown(
                f"{messages.type_badge(statement.memory_type)} "
                f"{messages.scope_badge(statement.scope, subject_id)}"
            )
            st.text(statement.content)
            with st.container(horizontal=True):
                session.link("memories", "Open the memory", icon=":material/open_in_new:",
                             memories_id=statement.memory_id)  # fmt: skip
                for n, other in enumerate((*statement.also, *statement.replaced), 1):
                    word = "Says the same" if other in statement.also else "Replaced"
                    session.link("memories", f"{word} ({n})", memories_id=other)
else:
    st.caption("No active memory of this scope that you may see.")

st.subheader("Written by hand", anchor=False)
st.caption(
    "Kept as written and never overwritten by memories. A value may be text or JSON; "
    "`language` takes a tag such as zh-CN or a language's name."
)
st.data_editor(
    present.fields(profile.fields),
    key="profiles_fields",
    num_rows="dynamic",
    hide_index=True,
    column_config={
        "field": st.column_config.TextColumn("Field", required=True, max_chars=100),
        "value": st.column_config.TextColumn("Value", width="large"),
    },
)
with st.container(horizontal=True):
    st.button(
        "Save fields", key="profiles_save", type="primary", icon=":material/save:",
        on_click=save, args=(profile, actor),
    )  # fmt: skip
    st.download_button(
        "Export", key="profiles_export", icon=":material/download:",
        data=lambda: json.dumps(plain(profile), ensure_ascii=False, indent=2),
        file_name=f"profile-{kind}-{subject_id}.json", mime="application/json",
    )  # fmt: skip
if profile.edited_by:
    st.caption(
        f"Version {profile.version}, last saved by {messages.plain(profile.edited_by)} "
        f"{present.when(profile.edited_at, zone)}"
    )
