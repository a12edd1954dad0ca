"""What people do to endpoints and vector stores: callbacks that write, and the dialogs that ask."""

from __future__ import annotations

import streamlit as st

from memcore.embeddings.openai import DEFAULT_DIMENSIONS, DEFAULT_MODEL
from memcore.errors import MemcoreError
from memcore.models import ConfiguredStore, Endpoint
from memcore.services.stores import EXAMPLES, KINDS
from pages.shared import messages, present, reads, session


def _close_when_done() -> None:
    messages.failures()
    if st.session_state.pop("admin_acts_close", False):
        st.rerun()


def _done(text: str) -> None:
    messages.done(text)
    st.session_state["admin_acts_close"] = True


# ---- endpoints ----------------------------------------------------------------------------------


def test_endpoint(endpoint_id: str) -> None:
    """Callback: call it once; the card shows what came back."""
    try:
        found = session.service().endpoints.test(endpoint_id, actor=session.actor())
    except MemcoreError as error:
        st.session_state[f"admin_tested_{endpoint_id}"] = f"error:{error}"
    else:
        size = f", {found.dimensions:,} dimensions" if found.dimensions else ""
        said = f"{found.model}{size}, {found.milliseconds:,.0f} ms: {found.sample}"
        st.session_state[f"admin_tested_{endpoint_id}"] = f"good:{said}"
    reads.forget()


def outcome(endpoint_id: str) -> None:
    """What the last test of this session found."""
    said = st.session_state.get(f"admin_tested_{endpoint_id}", "")
    good, _, text = said.partition(":")
    if good == "good":
        st.success(messages.plain(text), icon=":material/check_circle:")
    elif good:
        st.error(messages.plain(text), icon=":material/error:")


def _save_endpoint(endpoint_id: str | None) -> None:
    value = st.session_state
    fields = {
        "name": value["endpoint_name"], "base_url": value["endpoint_url"],
        "model": value["endpoint_model"], "dimensions": value.get("endpoint_dimensions"),
    }  # fmt: skip
    endpoints, actor = session.service().endpoints, session.actor()
    with messages.attempt("Saving the endpoint"):
        if endpoint_id is None:
            saved = endpoints.create(
                **fields, actor=actor, kind=value["endpoint_kind"], key=value["endpoint_key"],
                shared=value.get("endpoint_shared", False),
            )  # fmt: skip
        else:
            saved = endpoints.edit(
                endpoint_id, **fields, actor=actor, key=value["endpoint_key"] or None
            )
        _done(f"Endpoint {saved.name} saved.")
    reads.forget()


@st.dialog("Model endpoint", icon=":material/api:", width="medium")
def endpoint_dialog(endpoint: Endpoint | None) -> None:
    """Create or change one."""
    _close_when_done()
    e = endpoint
    st.text_input("Name", e.name if e else "", key="endpoint_name", max_chars=100)
    kind = e.kind if e else "embedding"
    if e is None:
        kind = st.segmented_control(
            "Kind", ["embedding", "chat"], default="embedding", required=True, key="endpoint_kind",
            help="Embedding endpoints make vectors; chat endpoints extract memories.",
        )  # fmt: skip
    st.text_input("Base URL", e.base_url if e else "https://api.openai.com/v1", key="endpoint_url",
                  help="Public addresses over https. A server of your own is named in the "
                  "environment variable MEMCORE_ALLOWED_ENDPOINTS.")  # fmt: skip
    default = DEFAULT_MODEL if kind == "embedding" else "gpt-4o-mini"
    st.text_input("Model", e.model if e else default, key="endpoint_model")
    if kind == "embedding":
        st.number_input(
            "Dimensions", 1, 16_000, e.dimensions if e else DEFAULT_DIMENSIONS,
            key="endpoint_dimensions", placeholder="Learnt at the first test",
        )  # fmt: skip
    st.text_input("API key", key="endpoint_key", type="password",
                  placeholder=f"{e.key} (unchanged)" if e and e.key else "",
                  help="Encrypted at rest and never shown again.")  # fmt: skip
    if e is None and session.actor().operator:
        st.caption(":material/group: An operator's endpoints are shared by all users.")
    with st.container(horizontal=True, horizontal_alignment="right"):
        pressed = st.button("Save endpoint", key="endpoint_save", type="primary",
                            on_click=_save_endpoint, args=(e.id if e else None,))  # fmt: skip
    if pressed:
        st.rerun()


def _delete_endpoint(endpoint: Endpoint) -> None:
    with messages.attempt("Deleting the endpoint"):
        session.service().endpoints.delete(endpoint.id, actor=session.actor())
        _done(f"Endpoint {endpoint.name} deleted.")
    reads.forget()


@st.dialog("Delete endpoint", icon=":material/delete:", width="medium")
def delete_endpoint_dialog(endpoint: Endpoint) -> None:
    _close_when_done()
    st.markdown(
        f"**{messages.plain(endpoint.name)}** will be deleted with its API key. This cannot be "
        "undone."
    )
    if users := session.service().endpoints.used_by(endpoint.id):
        st.warning(f"It is the embedder of {messages.plain(', '.join(users))}; change that first.",
                   icon=":material/link:")  # fmt: skip
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button("Keep it", key="endpoint_keep"):
            st.rerun()
        pressed = st.button("Delete endpoint", key="endpoint_delete", type="primary",
                            icon=":material/delete:", disabled=bool(users),
                            on_click=_delete_endpoint, args=(endpoint,))  # fmt: skip
    if pressed:
        st.rerun()


# ---- vector stores ------------------------------------------------------------------------------


def test_store(store_id: str) -> None:
    """Callback: ask it anew."""
    reads.store_status.clear()
    st.session_state[f"admin_tested_{store_id}"] = "yes"


def status(store_id: str, *, always: bool = False) -> None:
    """What a test finds; a store that is down costs a page nothing until it is asked for."""
    if not always and f"admin_tested_{store_id}" not in st.session_state:
        return
    found = reads.store_status(session.actor(), store_id)
    counts = (
        f"{present.count(found.vectors, 'vector')} of "
        f"{present.count(found.collections, 'library')}, {found.milliseconds:,.0f} ms"
    )
    if found.reachable:
        st.success(counts, icon=":material/check_circle:")
    else:
        st.error(messages.plain(found.trouble), icon=":material/error:")


def _save_store(store_id: str | None) -> None:
    value = st.session_state
    stores, actor = session.service().stores, session.actor()
    with messages.attempt("Saving the store"):
        address, secret = value.get("store_address", ""), value.get("store_secret", "")
        if store_id is None:
            saved = stores.create(value["store_name"], kind=value["store_kind"], address=address,
                                  secret=secret, actor=actor)  # fmt: skip
        else:
            saved = stores.edit(store_id, name=value["store_name"], address=address,
                                secret=secret or None, actor=actor)  # fmt: skip
        _done(f"Store {saved.name} saved.")
    reads.forget()


@st.dialog("Vector store", icon=":material/database:", width="medium")
def store_dialog(store: ConfiguredStore | None) -> None:
    """Create or change one."""
    _close_when_done()
    st.text_input("Name", store.name if store else "", key="store_name", max_chars=100)
    kind = store.kind if store else st.selectbox(
        "Kind", list(KINDS), format_func=lambda k: KINDS[k], key="store_kind"
    )  # fmt: skip
    if kind == "memory":
        st.caption("Filled from the database when it is opened; gone when the process ends.")
    else:
        st.text_input("Address", store.address if store else "", key="store_address",
                      placeholder=EXAMPLES[kind])  # fmt: skip
        st.text_input(
            {"milvus": "Token", "elasticsearch": "API key", "pgvector": "Password"}[kind],
            key="store_secret", type="password",
            placeholder=f"{store.secret} (unchanged)" if store and store.secret else "None",
        )  # fmt: skip
    with st.container(horizontal=True, horizontal_alignment="right"):
        pressed = st.button("Save store", key="store_save", type="primary", on_click=_save_store,
                            args=(store.id if store else None,))  # fmt: skip
    if pressed:
        st.rerun()


def _delete_store(store: ConfiguredStore) -> None:
    with messages.attempt("Deleting the store"):
        session.service().stores.delete(store.id, actor=session.actor())
        _done(f"Store {store.name} deleted.")
    reads.forget()


@st.dialog("Delete vector store", icon=":material/delete:", width="medium")
def delete_store_dialog(store: ConfiguredStore) -> None:
    _close_when_done()
    st.markdown(
        f"memcore will forget **{messages.plain(store.name)}** and its secret. What it holds stays "
        "there; no memory is lost, since the database keeps every vector."
    )
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button("Keep it", key="store_keep"):
            st.rerun()
        pressed = st.button("Delete store", key="store_delete", type="primary",
                            icon=":material/delete:", on_click=_delete_store,
                            args=(store,))  # fmt: skip
    if pressed:
        st.rerun()


# ---- upkeep -------------------------------------------------------------------------------------


def sweep() -> None:
    with messages.attempt("Sweeping"):
        found = session.service().libraries.sweep()
        said = (
            f"{present.count(found.archived, 'expired memory')} archived, "
            f"{present.count(found.purged, 'library')} purged."
        )
        messages.done(said, undo=found.batch_id if found.archived else None)
    reads.forget()


def rotate() -> None:
    with messages.attempt("Rotating the secret key"):
        count = session.service().rotate_secrets()
        messages.done(f"A new secret key; {present.count(count, 'stored key')} encrypted anew.")
