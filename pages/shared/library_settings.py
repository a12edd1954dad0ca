"""Every setting of a library as a field: blank means default, and beside it what it does, what it
is now, and where that comes from. What was changed is shown before it is saved."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import streamlit as st

from memcore.models import Library
from memcore.services.libraries import PRESETS
from memcore.settings import SPECS, Resolved, SettingSpec
from pages.shared import library_acts, messages, reads, session

GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Recall": ("manage_search", (
        "max_recall", "similarity_threshold", "lexical", "fusion", "dense_weight", "rrf_k",
        "unrelated_similarity", "dedupe", "dedupe_threshold", "rerank", "rerank_candidates",
        "query_rewrite", "context_token_budget", "share_between_agents", "recall_log",
    )),
    "Gate": ("filter_alt", (
        "min_confidence", "duplicate_threshold", "max_extractions", "min_length", "max_length",
        "sensitive_action", "expiration_days",
    )),
    "Ranking": ("sort", (
        "similarity_weight", "confidence_weight", "scope_weight", "keyword_weight",
        "recency_weight", "recency_half_life_days", "usage_weight", "session_priority",
        "project_priority", "user_priority",
    )),
    "Extraction": ("neurology", (
        "extraction_interval", "max_memories_per_extraction", "extraction_model",
        "extraction_prompt",
    )),
}  # fmt: skip
"""Heading → icon, settings. `enabled` is switched on the card; a setting named nowhere here is
shown under Recall, so none can be forgotten."""

SOURCE = {
    "library": ":violet-badge[:material/edit: set here]",
    "environment": ":blue-badge[:material/terminal: environment]",
    "calibrated": ":green-badge[:material/straighten: calibrated]",
    "default": ":gray-badge[default]",
}


def draw(library: Library, resolved: Resolved, *, may_change: bool) -> None:
    """All fields, and the bar that saves them."""
    _follow(library)
    bar = st.container()
    placed = {name for _, names in GROUPS.values() for name in names} | {"enabled"}
    forgotten = tuple(name for name in SPECS if name not in placed)
    wanted: dict[str, Any] = {}
    for heading, (icon, names) in GROUPS.items():
        with st.expander(heading, icon=f":material/{icon}:", expanded=heading == "Recall"):
            with st.grid(3, min_column_width=300, gap="medium"):
                for name in names + (forgotten if heading == "Recall" else ()):
                    if name in SPECS:
                        with st.container(gap="xsmall"):
                            wanted[name] = _field(library, resolved, SPECS[name], may_change)
            if heading == "Ranking":
                weights = [n for n in names if n.endswith("_weight")]
                total = sum(getattr(resolved.settings.ranking, n) for n in weights)
                st.caption(
                    "A hit's score is the sum of value × weight. Weights need not sum to 1: only "
                    f"their ratios decide the order. Those that are saved sum to {total:g}."
                )
    after = {n: v for n, v in wanted.items() if v is not None and v != ""}
    if "enabled" in library.overrides:
        after["enabled"] = library.overrides["enabled"]
    if may_change:
        with bar:
            _bar(library, resolved, after)


def key_of(library: Library, name: str) -> str:
    return f"libraries_set_{library.id}_{name}"


def _base_key(library: Library) -> str:
    """Where the form keeps, as JSON, what was set by hand when it began."""
    return f"libraries_base_{library.id}"


def _follow(library: Library) -> None:
    """Take over what was saved elsewhere since the form began, and keep what is edited here."""
    state, now = st.session_state, dict(library.overrides)
    began = json.loads(state.get(_base_key(library), "null"))
    if began == now:
        return
    if began is not None:
        mine = {
            name for name in SPECS
            if key_of(library, name) in state
            and _entered(state[key_of(library, name)]) != began.get(name)
        }  # fmt: skip
        moved = {name for name in {*began, *now} if began.get(name) != now.get(name)}
        for name in set(SPECS) - mine:
            state.pop(key_of(library, name), None)
        if mine:
            state[f"libraries_moved_{library.id}"] = json.dumps(sorted(moved))
    state[_base_key(library)] = json.dumps(now)


def _entered(value: Any) -> Any:
    """A field's value as an override: blank is none."""
    return None if value == "" else value


def _field(library: Library, resolved: Resolved, spec: SettingSpec, may_change: bool) -> Any:
    """One setting. Returns what is chosen by hand; None or "" means nothing is."""
    key, name = key_of(library, spec.name), spec.name
    label = name.replace("_", " ").capitalize().replace("Rrf", "RRF")
    set_here = library.overrides.get(name)
    fallback = _fallback(library, spec)
    chosen: Any
    common = {"key": key, "disabled": not may_change}
    if spec.type is bool or spec.choices:
        words = {True: "On", False: "Off"}
        options = [None, *(spec.choices or (True, False))]
        chosen = st.selectbox(
            label, options, options.index(set_here) if set_here in options else 0,
            format_func=lambda v: f"Default: {words.get(fallback, messages.words(str(fallback)))}"
            if v is None else words.get(v, messages.words(str(v))), **common,
        )  # fmt: skip
    elif spec.type is str:
        if name == "extraction_prompt":
            chosen = st.text_area(label, set_here or "", placeholder="Built-in", **common)
        else:
            chosen = st.text_input(label, set_here or "", placeholder="Default", **common)
    else:
        whole = spec.type is int
        convert = int if whole else float
        low = convert(spec.low) if spec.low is not None else None
        high = convert(spec.high) if spec.high is not None else None
        shown = "off" if fallback is None else f"{fallback:g}"
        # Set through its key: with a value of its own the field could not be emptied again.
        if set_here is not None and key not in st.session_state:
            st.session_state[key] = convert(set_here)
        chosen = st.number_input(
            f"{label} ({spec.unit})" if spec.unit else label, low, high,
            None, step=1 if whole else 0.05,
            format="%d" if whole else None, placeholder=f"Default: {shown}", **common,
        )  # fmt: skip
    span = "" if spec.low is None or not spec.high else f" {spec.low:g}–{spec.high:,g}."
    source = SOURCE[resolved.sources[name]]
    variable = f" `{spec.env}`" if resolved.sources[name] == "environment" else ""
    st.caption(f"{messages.plain(spec.help)}{span} {source}{variable}")
    return chosen


def _fallback(library: Library, spec: SettingSpec) -> Any:
    """What holds when nothing is set by hand."""
    from memcore.embeddings import calibrated_for

    environment = session.service().runtime.environment
    calibrated = calibrated_for(library.embedder)
    for layer in (environment, calibrated):
        if spec.name in layer:
            return layer[spec.name]
    return spec.default


def _bar(library: Library, resolved: Resolved, after: dict[str, Any]) -> None:
    """Presets, and what would be saved."""
    before = dict(library.overrides)
    changed = {n for n in before | after if before.get(n) != after.get(n)}
    with st.container(horizontal=True, vertical_alignment="center"):
        preset = st.menu_button(
            "Fill in a preset", list(PRESETS), format_func=lambda p: PRESETS[p].name,
            key=f"libraries_preset_{library.id}", icon=":material/auto_fix_high:",
        )  # fmt: skip
        if preset:
            _fill(library, PRESETS[preset].overrides)
            st.rerun()
        if not changed:
            st.caption("Blank fields follow the default. Nothing is changed yet.")
    if not changed:
        st.session_state.pop(f"libraries_moved_{library.id}", None)
        return
    with st.container(border=True, key="libraries_changes"):
        _moved(library, after)
        st.markdown(f"**{len(changed)} changed, not saved yet**")
        rows = pd.DataFrame(
            {
                "Setting": [n.replace("_", " ") for n in sorted(changed)],
                "Saved": [_said(before.get(n)) for n in sorted(changed)],
                "Then": [_said(after.get(n)) for n in sorted(changed)],
            }
        )
        st.table(rows.set_index("Setting"), border="horizontal", alt="Settings that would change")
        with st.container(horizontal=True):
            st.button("Save to library", key="libraries_save", type="primary",
                      icon=":material/save:", on_click=save, args=(library, after))  # fmt: skip
            st.button("Discard", key="libraries_discard", on_click=discard,
                      args=(library,))  # fmt: skip


def _moved(library: Library, after: dict[str, Any]) -> None:
    """Say what was saved elsewhere while this form held edits."""
    moved = json.loads(st.session_state.get(f"libraries_moved_{library.id}", "[]"))
    if not moved:
        return
    lines = []
    for name in moved:
        saved, here = library.overrides.get(name), after.get(name)
        said = f"- **{name.replace('_', ' ')}** is {messages.plain(_said(saved))} now"
        if here != saved:
            said += f"; you entered {messages.plain(_said(here))}, and saving replaces it"
        lines.append(said)
    st.warning("\n".join(lines), title="Saved elsewhere since you opened this form",
               icon=":material/sync_problem:")  # fmt: skip


def _said(value: Any) -> str:
    if value is None:
        return "default"
    return (
        {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)
    )


def _fill(library: Library, overrides: Any) -> None:
    discard(library)
    for name in SPECS:
        if name != "enabled":
            empty = "" if SPECS[name].type is str and not SPECS[name].choices else None
            st.session_state[key_of(library, name)] = overrides.get(name, empty)


def discard(library: Library) -> None:
    for name in SPECS:
        st.session_state.pop(key_of(library, name), None)
    st.session_state.pop(f"libraries_moved_{library.id}", None)


def save(library: Library, after: dict[str, Any]) -> None:
    with messages.attempt("Saving the settings"):
        libraries = session.service().libraries
        before = libraries.last_change(library.id)
        libraries.set(library.id, after, seen=library.overrides, actor=session.actor())
        messages.done(f"Settings of {library.name} saved.",
                      undo=library_acts.undo_of(library.id, before), of="libraries")  # fmt: skip
        discard(library)
    reads.forget()
