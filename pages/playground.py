"""Playground: talk, and watch memories being proposed, judged and recalled."""

import json
import uuid

import streamlit as st

from memcore.models import Subject
from pages.shared import memory, messages, present, reads, session, turns

SUGGESTIONS = {
    "Tell it something": "记住：我对花生过敏，也不喝酒。以后回答都简短一点。",
    "Tell it in English": "Remember that our launch is on 12 June. I prefer tea over coffee.",
    "Ask about it": "给我推荐零食，要避开什么？",
    "Ask in English": "What should I drink while we prepare the launch?",
}

library = messages.need_library()
actor, state = session.actor(), st.session_state
state.setdefault("playground_turns", {})  # message id → what happened, as JSON


def new_session() -> str:
    return f"playground-{uuid.uuid4().hex[:8]}"


def subject() -> Subject:
    return Subject(
        library.id,
        state["playground_user"],
        state.get("playground_project") or None,
        state["playground_session"],
        state.get("playground_agent"),
    )


def say(text: str) -> None:
    with messages.attempt("Answering"), st.spinner("Answering…"):
        service = session.service().conversations
        turn = service.turn(text, subject=subject(), replier=service.replier(library.id))
        state["playground_turns"][turn.said.id] = turns.record(turn)
        state["playground_shown"] = turn.said.id
    reads.forget()


def say_typed() -> None:
    if text := (state["playground_say"] or "").strip():
        say(text)


def say_suggested() -> None:
    if choice := state["playground_suggest"]:
        state["playground_suggest"] = None
        say(SUGGESTIONS[choice])


def show(message_id: str) -> None:
    state["playground_shown"] = message_id


def go_to(talk: str) -> None:
    state["playground_session"] = talk
    state["playground_shown"] = None


def extract_now() -> None:
    with messages.attempt("Extracting"), st.spinner("Extracting…"):
        run = session.service().conversations.extract(
            state["playground_session"], actor=actor, now=True
        )
        if run is None:
            messages.done("Nothing new has been said since the last extraction.")
        else:
            kept = json.loads(state["playground_turns"].get(last_said, "{}"))
            state["playground_turns"][last_said] = json.dumps({**kept, "run_id": run.id})
            state["playground_shown"] = last_said
            messages.done(f"{messages.words(run.outcome).capitalize()}: {run.detail}")
    reads.forget()


def next_session() -> None:
    """End this session: what nobody has read yet is read, then the talk starts from nothing."""
    with messages.attempt("Ending the session"), st.spinner("Remembering…"):
        if spoken:
            session.service().conversations.extract(
                state["playground_session"], actor=actor, now=True
            )
        state["playground_session"] = new_session()
        state["playground_shown"] = None
        messages.done("A new session: nothing of the last one is in the window.")
    reads.forget()


with messages.trouble("Reading agents and people"):
    agents = {a.id: a for a in reads.agents(actor, library.id)}
    users = reads.users() if actor.operator else [actor.user_id]
    projects = reads.projects() if actor.operator else list(actor.roles)
    users = users or ["me"]
if state.get("playground_agent") not in agents:
    state["playground_agent"] = next(iter(agents), None)
if state.get("playground_user") not in users and not actor.operator:
    state["playground_user"] = users[0]

with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
    st.selectbox("Agent", list(agents), key="playground_agent", width=138,
                 format_func=lambda i: agents[i].name, placeholder="No agent is bound")  # fmt: skip
    st.selectbox("Talk as", users, key="playground_user", width=138,
                 accept_new_options=actor.operator)  # fmt: skip
    st.selectbox("Project", projects, None, key="playground_project", width=138,
                 placeholder="No project", accept_new_options=actor.operator)  # fmt: skip
    bar = st.container(horizontal=True, gap="small", width="content")

state.setdefault("playground_session", new_session())
with messages.trouble("Reading the conversations"):
    user = state["playground_user"]
    talks = {c.id: c for c in reads.conversations(actor, library.id, user)} if user else {}
with messages.trouble("Reading the conversation"):
    talk = state["playground_session"]
    spoken = reads.messages(actor, talk) if talk in talks else ()
last_said = next((m.id for m in reversed(spoken) if m.role == "user"), "")
shown = state.get("playground_shown") or last_said

with bar:
    st.button("Next session", key="playground_next", icon=":material/skip_next:", type="primary",
              on_click=next_session, disabled=not spoken,
              help="Starts another session: only memories come along.")  # fmt: skip
    st.button("Extract now", key="playground_extract", icon=":material/neurology:",
              on_click=extract_now, disabled=not spoken,
              help="Does not wait for the library's interval.")  # fmt: skip
    turns.sessions(talks, talk, go_to)

chat, beside = st.columns([2, 3], gap="medium")
with chat:
    box = st.container(height=440, border=True, autoscroll=True, key="playground_talk")
    with box:
        if not spoken:
            st.markdown("Say something worth remembering, press **Next session**, then ask about "
                        "it: only memory can know.")  # fmt: skip
            st.pills("Suggestions", list(SUGGESTIONS), key="playground_suggest",
                     label_visibility="collapsed", on_change=say_suggested)  # fmt: skip
        for message in spoken:
            with st.chat_message("user" if message.role == "user" else "assistant"):
                st.markdown(messages.plain(message.content).replace("\n", "  \n"))
                if message.id in state["playground_turns"] and message.id != shown:
                    st.button("Look inside", key=f"playground_in_{message.id}", type="tertiary",
                              icon=":material/visibility:", on_click=show,
                              args=(message.id,))  # fmt: skip
    st.chat_input("Say something", key="playground_say", on_submit=say_typed,
                  submit_mode="disable")  # fmt: skip
    settings = reads.settings(actor, library.id)
    who = settings.extraction_model or "a script that shows what it recalls, offline"
    st.caption(f":material/smart_toy: Answered by {messages.plain(who)}. Extracts after every "
               f"{present.count(settings.extraction_interval, 'message')}.")  # fmt: skip
    turns.preview(subject())
with beside:
    if opened := memory.opened():
        memory.panel(opened, key="playground_memory")
    elif shown in state["playground_turns"]:
        turns.inside(state["playground_turns"][shown], key="playground")
    else:
        st.info("Beside each turn: what was recalled and why, the prompt, the window and its "
                "summary, working memory, and what was extracted with every verdict of the gate.",
                icon=":material/science:")  # fmt: skip
