"""Ranking settings to try: sliders that start where the library stands, and saving what they say.

Call `controls` inside a fragment over a cached recall: moving a slider then ranks again and reads
nothing. Nothing changes until "Save to library", which shows the difference first.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import streamlit as st

from memcore.models import Library
from memcore.settings import SPECS, RankingSettings
from pages.shared import library_acts, messages, present, reads, recall, session

_WEIGHTS = ("similarity_weight", "confidence_weight", "scope_weight", "keyword_weight",
            "recency_weight", "usage_weight")  # fmt: skip
_PRIORITIES = ("session_priority", "project_priority", "user_priority")


def controls(library: Library, saved: RankingSettings, *, page: str) -> RankingSettings:
    """Draw the sliders; returns the settings they say. `page` sets two pages' sliders apart."""
    nonce = st.session_state.get(f"{page}_tuning_nonce", 0)

    def key(name: str) -> str:
        return f"{page}_{name}_{library.id}_{nonce}"

    def slide(name: str, **given: Any) -> Any:
        spec, value = SPECS[name], getattr(saved, name)
        given = {"min_value": 0.0, "max_value": max(1.0, float(value)), "step": 0.01} | given
        label = given.pop("label", name.removesuffix("_weight").replace("_", " ").capitalize())
        return st.slider(label, value=value, help=spec.help, key=key(name), **given)

    tried: dict[str, Any] = asdict(saved)
    st.markdown("**Weights**")
    for name in _WEIGHTS:
        tried[name] = slide(name)
    if tried["recency_weight"]:
        tried["recency_half_life_days"] = slide(
            "recency_half_life_days", min_value=1.0, max_value=365.0, step=1.0,
            label="Half-life of recency (days)",
        )  # fmt: skip
    st.markdown("**Cut**")
    tried["max_recall"] = slide("max_recall", min_value=1, max_value=100, step=1,
                                label="Most hits")  # fmt: skip
    floor = st.toggle("Similarity threshold", saved.similarity_threshold is not None,
                      help=SPECS["similarity_threshold"].help, key=key("floor"))  # fmt: skip
    tried["similarity_threshold"] = None
    if floor:
        tried["similarity_threshold"] = st.slider(
            "Lowest similarity", 0.0, 1.0, saved.similarity_threshold or 0.3, 0.01,
            key=key("similarity_threshold"), label_visibility="collapsed",
        )  # fmt: skip
    tried["dedupe"] = st.selectbox(
        "Near-duplicates", SPECS["dedupe"].choices, SPECS["dedupe"].choices.index(saved.dedupe),
        format_func=messages.words, help=SPECS["dedupe"].help, key=key("dedupe"),
    )  # fmt: skip
    if tried["dedupe"] == "near_duplicate":
        tried["dedupe_threshold"] = slide("dedupe_threshold", label="Same from text similarity")
    if saved.lexical:
        st.markdown("**Channels**")
        tried["fusion"] = st.selectbox(
            "Fusion", SPECS["fusion"].choices, SPECS["fusion"].choices.index(saved.fusion),
            format_func=messages.words, help=SPECS["fusion"].help, key=key("fusion"),
        )  # fmt: skip
        if tried["fusion"] == "weighted_sum":
            tried["dense_weight"] = slide("dense_weight", label="Share of vectors")
        else:
            tried["rrf_k"] = slide("rrf_k", min_value=1, max_value=200, step=1, label="RRF k")
    with st.expander("Scope values", key=key("scopes")):
        for name in _PRIORITIES:
            tried[name] = slide(name, label=name.removesuffix("_priority").capitalize())
    return RankingSettings(**tried)


def offer(library: Library, saved: RankingSettings, tried: RankingSettings, *, page: str) -> None:
    """The buttons under the sliders: save what differs, or go back."""
    changed = differences(saved, tried)
    with st.container(horizontal=True):
        if st.button("Save to library", key=f"{page}_save", type="primary",
                     icon=":material/save:", disabled=not changed):  # fmt: skip
            _confirm(library.id, library.name, changed, page)
        st.button("Reset", key=f"{page}_reset", icon=":material/restart_alt:",
                  disabled=not changed, on_click=reset, args=(page,))  # fmt: skip


def differences(saved: RankingSettings, tried: RankingSettings) -> dict[str, tuple[Any, Any]]:
    """Setting → (saved, tried), where they differ."""
    then, now = asdict(saved), asdict(tried)
    return {name: (then[name], now[name]) for name in then if then[name] != now[name]}


def reset(page: str) -> None:
    """Callback: the sliders go back to where the library stands."""
    nonce = f"{page}_tuning_nonce"
    st.session_state[nonce] = st.session_state.get(nonce, 0) + 1


@st.dialog("Save to library")
def _confirm(library_id: str, name: str, changed: dict[str, tuple[Any, Any]], page: str) -> None:
    st.markdown(f"Every recall of **{messages.plain(name)}** will use:")
    for setting, (before, after) in changed.items():
        st.markdown(f"- {recall.change(setting, before, after)}")
    if st.button("Save", key=f"{page}_save_confirmed", type="primary", icon=":material/save:",
                 on_click=save, args=(library_id, changed, page)):  # fmt: skip
        st.rerun()


def save(library_id: str, changed: dict[str, tuple[Any, Any]], page: str) -> None:
    """Callback: write what differs over what the library has set by hand."""
    with messages.attempt("Saving the settings"):
        libraries = session.service().libraries
        before = libraries.last_change(library_id)
        values = {name: after for name, (_, after) in changed.items()}
        library = libraries.adjust(library_id, values, actor=session.actor())
        reset(page)
        messages.done(f"{present.count(len(changed), 'setting')} of “{library.name}” saved.",
                      undo=library_acts.undo_of(library_id, before), of="libraries")  # fmt: skip
    reads.forget()
