"""Admin: model endpoints, vector stores, and what is due from time to time."""

import streamlit as st

from memcore.models import ConfiguredStore, Endpoint
from memcore.services.stores import KINDS
from pages.shared import admin_acts, messages, present, reads, session

actor, zone = session.actor(), session.zone()


def endpoint_card(endpoint: Endpoint) -> None:
    key = f"admin_endpoint_{endpoint.id}"
    mine = actor.operator or endpoint.owner_user_id == actor.user_id
    with st.container(border=True, height="stretch", gap="small", key=key):
        whose = (
            ":blue-badge[:material/group: shared]" if endpoint.owner_user_id is None
            else f":gray-badge[:material/person: {messages.plain(endpoint.owner_user_id)}]"
        )  # fmt: skip
        kind = ":gray-badge[:material/scatter_plot: embedding]"
        if endpoint.kind == "chat":
            kind = ":gray-badge[:material/chat: chat]"
        st.markdown(f"**{messages.plain(endpoint.name)}**  \n{kind} {whose}")
        size = f", {endpoint.dimensions:,} dimensions" if endpoint.dimensions else ""
        st.markdown(
            f":small[:material/model_training: {messages.plain(endpoint.model)}{size}  \n"
            f":material/link: {messages.plain(endpoint.base_url)}  \n"
            f":material/key: {messages.plain(endpoint.key) or 'no key'}]"
        )
        admin_acts.outcome(endpoint.id)
        with st.container(horizontal=True, vertical_alignment="bottom", height="stretch"):
            st.button("Test", key=f"{key}_test", icon=":material/bolt:",
                      on_click=admin_acts.test_endpoint, args=(endpoint.id,))  # fmt: skip
            if mine and st.button("Edit", key=f"{key}_edit", icon=":material/edit:"):
                admin_acts.endpoint_dialog(endpoint)
            if mine and st.button("", key=f"{key}_delete", icon=":material/delete:",
                                  help="Delete", type="tertiary"):  # fmt: skip
                admin_acts.delete_endpoint_dialog(endpoint)


def store_card(store: ConfiguredStore) -> None:
    key = f"admin_store_{store.id}"
    with st.container(border=True, height="stretch", gap="small", key=key):
        st.markdown(f"**{messages.plain(store.name)}**  \n"
                    f":gray-badge[:material/database: {KINDS[store.kind]}]")  # fmt: skip
        address = messages.plain(store.address) or "in this process"
        secret = f"  \n:material/key: {messages.plain(store.secret)}" if store.secret else ""
        st.markdown(f":small[:material/link: {address}{secret}]")
        admin_acts.status(store.id)
        with st.container(horizontal=True, vertical_alignment="bottom", height="stretch"):
            st.button("Test", key=f"{key}_test", icon=":material/bolt:",
                      on_click=admin_acts.test_store, args=(store.id,))  # fmt: skip
            if st.button("Edit", key=f"{key}_edit", icon=":material/edit:"):
                admin_acts.store_dialog(store)
            if st.button("", key=f"{key}_delete", icon=":material/delete:", help="Delete",
                         type="tertiary"):  # fmt: skip
                admin_acts.delete_store_dialog(store)


tabs = st.tabs(
    [":material/api: Endpoints", ":material/database: Vector stores",
     ":material/cleaning_services: Upkeep"], key="admin_tabs",
)  # fmt: skip
with tabs[0], messages.trouble("Reading the endpoints", stop=False):
    endpoints = reads.endpoints(actor)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            f"{present.count(len(endpoints), 'endpoint')}. Servers that speak OpenAI's interface; "
            "keys are encrypted and never shown again."
        )
        st.space("stretch")
        if st.button("New endpoint", key="admin_endpoint_new", type="primary",
                     icon=":material/add:"):  # fmt: skip
            admin_acts.endpoint_dialog(None)
    if not endpoints:
        st.info(
            "Without one, the offline models of this machine make the vectors and rules extract "
            "memories; nothing leaves the machine.", icon=":material/cloud_off:",
        )  # fmt: skip
    with st.grid(3, min_column_width=320):
        for endpoint in endpoints:
            endpoint_card(endpoint)

with tabs[1], messages.trouble("Reading the stores", stop=False):
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("The database keeps every vector; other stores are indexes of them.")
        st.space("stretch")
        if actor.operator and st.button(
            "New store", key="admin_store_new", type="primary", icon=":material/add:"
        ):
            admin_acts.store_dialog(None)
    with st.grid(3, min_column_width=320):
        with st.container(border=True, height="stretch", gap="small", key="admin_store_pgvector"):
            st.markdown("**pgvector**  \n:green-badge[:material/check_circle: main database]")
            st.caption("Row and vector commit together. Scoped searches are exact.")
            admin_acts.status("pgvector", always=True)
        if actor.operator:
            for store in reads.stores(actor):
                store_card(store)

with tabs[2]:
    st.markdown("**Sweep**")
    st.caption(
        "Archives memories past their expiry (they are not recalled any more in any case), purges "
        "libraries deleted 30 days ago, and drops vectors nobody reads."
    )
    st.button("Sweep now", key="admin_sweep", icon=":material/cleaning_services:",
              disabled=not actor.operator, on_click=admin_acts.sweep)  # fmt: skip
    st.markdown("**Secret key**")
    st.caption(
        "Encrypts the API keys and passwords stored here. Rotating makes a new secret key and "
        "encrypts all of them with it; nobody has to enter a key again."
    )
    st.button("Rotate the secret key", key="admin_rotate", icon=":material/autorenew:",
              disabled=not actor.operator, on_click=admin_acts.rotate)  # fmt: skip
