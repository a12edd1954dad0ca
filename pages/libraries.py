"""Libraries: what there is, and a new one."""

import streamlit as st

from memcore import demo
from pages.shared import messages, present, reads, session

state = st.session_state


def create() -> None:
    with messages.attempt("Creating the library"):
        made = session.service().libraries.create(
            state["libraries_name"],
            description=state["libraries_description"],
            embedder=state["libraries_embedder"],
        )
        state["frame_library"] = made.id
        state["libraries_name"] = state["libraries_description"] = ""
        messages.done(f"Library “{made.name}” created.")
    reads.forget()


def remove_demo() -> None:
    with messages.attempt("Removing the demo"):
        gone = demo.remove(session.service())
        messages.done(f"The demo and its {present.count(gone, 'memory')} are gone.")
    reads.forget()


def open_library(library_id: str) -> None:
    state["frame_library"] = library_id


with messages.trouble("Reading the libraries"):
    actor = session.actor()
    libraries = reads.libraries(actor)
    minute = session.now().replace(second=0, microsecond=0)
    figures = {x.id: reads.figures(actor, x.id, str(session.zone()), minute) for x in libraries}
    agents = {x.id: reads.agents(actor, x.id) for x in libraries}

if not libraries:
    messages.no_library()

with st.grid(3):
    for library in libraries:
        with st.container(border=True, height="stretch", key=f"libraries_{library.id}"):
            st.markdown(f"**{messages.plain(library.name)}**")
            if library.description:
                st.caption(messages.plain(library.description))
            held = figures[library.id]
            st.markdown(
                f"{present.count(sum(held.statuses.values()), 'memory')}, "
                f"{present.count(len(agents[library.id]), 'agent')}  \n"
                f":gray[{messages.plain(library.embedder)} · {library.dimensions} dimensions · "
                f"{messages.plain(library.vector_store)}]"
            )
            st.space("stretch")
            chosen = state.get("frame_library") == library.id
            st.button(
                "Chosen" if chosen else "Choose", key=f"libraries_open_{library.id}",
                icon=":material/check:" if chosen else None, disabled=chosen,
                on_click=open_library, args=(library.id,),
            )  # fmt: skip

with (
    st.expander("Create a library", icon=":material/add:", expanded=not libraries),
    st.form("libraries_form", border=False),
):
    st.text_input("Name", key="libraries_name", max_chars=100)
    st.text_input("Description", key="libraries_description")
    st.selectbox(
        "Embedder", ["local", "local:use"], key="libraries_embedder", accept_new_options=True,
        help="local runs on this machine. An endpoint is written endpoint:<id>.",
    )  # fmt: skip
    st.form_submit_button("Create", type="primary", icon=":material/add:", on_click=create)

if any(library.id == demo.LIBRARY for library in libraries):
    st.button("Remove the demo", key="libraries_remove_demo", icon=":material/delete:",
              on_click=remove_demo, type="tertiary")  # fmt: skip
