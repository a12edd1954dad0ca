"""Extraction: what an extractor makes of a conversation, and why."""

import streamlit as st

from memcore.extraction.conversation import Transcript, read_transcripts
from memcore.extraction.prompt import BUILT_IN, missing
from memcore.extraction.runs import Run
from memcore.models import Message, Subject
from memcore.text import shorten
from pages.shared import acts, memory, messages, present, reads, runs, session

EXAMPLE = """用户：我叫周岚，在苏州做园林设计。记住：我对花粉过敏。
助手：好的，记下了。需要我留意什么吗？
用户：以后方案都用表格列出来。我们决定把竹林换成梅树，预算上限是 20 万。
用户：怎么给梅树剪枝？
"""
FORMS = ("Our JSON Lines, OpenAI messages, LoCoMo, MemoryBank, ShareGPT, or lines that begin with "
         "用户： or User:")  # fmt: skip

library = messages.need_library()
actor, zone, state = session.actor(), session.zone(), st.session_state


def extract() -> None:
    with messages.attempt("Extracting"), st.spinner("Extracting…"):
        service = session.service().conversations
        subject = Subject(library.id, state["extraction_user"],
                          state.get("extraction_project") or None)  # fmt: skip
        run = service.extract_from(chosen, subject=subject, actor=actor, extractor=extractor())
        st.query_params["run"] = run.id
    reads.forget()


def extractor():
    """What is chosen in the form. Raises ConfigError."""
    prompt = state.get("extraction_prompt", "").strip()
    return session.service().conversations.extractor(
        library.id, model=state["extraction_by"], prompt="" if prompt == BUILT_IN else prompt
    )


def again(run_id: str) -> None:
    with messages.attempt("Extracting again"), st.spinner("Extracting…"):
        made = session.service().conversations.repeat(run_id, actor=actor, extractor=extractor())
        st.query_params["run"] = made.id
    reads.forget()


def accept(run_id: str, numbers: list[int]) -> None:
    with messages.attempt("Storing"):
        made = session.service().conversations.accept(run_id, numbers, actor=actor)
        done = [j for j in made.items if j.number in numbers and j.memory_id]
        messages.done(f"{present.count(len(done), 'memory')} stored.")
    reads.forget()


def tick_all(run: Run) -> None:
    for judged in run.items:
        if judged.status == "proposed":
            state[f"extraction_{run.id}_{judged.number}_tick"] = True


def open_run(run_id: str) -> None:
    st.query_params["run"] = run_id


with messages.trouble("Reading people, endpoints and runs"):
    users = (reads.users() if actor.operator else [actor.user_id]) or ["me"]
    projects = reads.projects() if actor.operator else list(actor.roles)
    models = reads.chat_models(actor, library.id)
    logged = reads.runs(actor, library.id)
    talks = {c.id: c for c in reads.conversations(actor, library.id)}

source, who = st.columns([3, 2], gap="medium")
found: tuple[Transcript, ...] = ()
with source:
    kind = st.segmented_control("Conversation", ["Paste", "File", "Stored"], default="Paste",
                                required=True, key="extraction_source")  # fmt: skip
    if kind == "Paste":
        pasted = st.text_area("Text", EXAMPLE, key="extraction_text", height=170, help=FORMS)
    elif kind == "File":
        loaded = st.file_uploader("File", ["json", "jsonl", "txt"], key="extraction_file",
                                  help=FORMS)  # fmt: skip
        pasted = loaded.getvalue().decode("utf-8", "replace") if loaded else ""
    elif talks:
        talk = st.selectbox("Stored conversation", list(talks), key="extraction_talk",
                            format_func=lambda i: shorten(talks[i].title or i, 70))  # fmt: skip
        found = (Transcript(talk, reads.messages(actor, talk)),)
    else:
        st.caption("No conversation of this library is stored yet. The playground makes some.")
    if kind != "Stored" and pasted.strip():
        with messages.trouble("Reading the conversation", stop=False):
            found = read_transcripts(pasted)
    if len(found) > 1:
        place = st.selectbox("Which of them", range(len(found)), key="extraction_which",
                             format_func=lambda n: found[n].name)  # fmt: skip
        found = (found[place],)
chosen: tuple[Message, ...] = found[0].messages if found else ()
with who:
    st.selectbox("Extractor", list(models), key="extraction_by", format_func=models.get)
    left, right = st.columns(2)
    left.selectbox("Whose memories", users, key="extraction_user",
                   accept_new_options=actor.operator)  # fmt: skip
    right.selectbox("Project", projects, None, key="extraction_project", placeholder="No project",
                    accept_new_options=actor.operator)  # fmt: skip
    lacking: tuple[str, ...] = ()
    if state["extraction_by"]:
        with st.expander("Prompt", icon=":material/edit_note:"):
            st.text_area("Prompt", BUILT_IN, key="extraction_prompt", height=220,
                         label_visibility="collapsed")  # fmt: skip
            lacking = missing(state["extraction_prompt"]) if (
                state["extraction_prompt"].strip() != BUILT_IN) else ()  # fmt: skip
            for requirement in lacking:
                st.caption(f":orange[:material/close:] It does not {requirement}.")
    st.button("Extract", key="extraction_run", type="primary", icon=":material/neurology:",
              on_click=extract, disabled=not chosen or bool(lacking), width="stretch",
              help="A dry run: nothing is stored until you accept it.")  # fmt: skip
    spoken = sum(m.role == "user" for m in chosen)
    st.caption(f"{present.count(len(chosen), 'message')}, {spoken} by people. Nothing is stored "
               "until you accept it.")  # fmt: skip

run_id = st.query_params.get("run") or (logged[0].id if logged else None)
if run_id is None:
    st.info("No extraction has run in this library yet.", icon=":material/neurology:")
    st.stop()
with messages.trouble("Reading the run"):
    run = reads.run(actor, run_id)

st.subheader("Proposals", anchor=False, divider="gray")
runs.head(run)
said, made = st.columns([2, 3], gap="medium")
with said.container(height=480, border=True, key="extraction_said"):
    proving = {j.proposal.evidence.message_id for j in run.items if j.proposal.evidence}
    for message in run.messages:
        with st.chat_message("user" if message.role == "user" else "assistant"):
            st.markdown(messages.plain(message.content).replace("\n", "  \n"))
            if message.id in proving:
                st.caption(":green[:material/format_quote: evidence]")
            if message.id in run.missed:
                st.caption(":orange[:material/priority_high:] Asked to remember; nothing came.")
                if st.button("Save by hand", key=f"extraction_hand_{message.id}",
                             type="tertiary", icon=":material/add:"):  # fmt: skip
                    state["add_content"] = message.content
                    acts.add_dialog(library.id)
with made:
    if opened := memory.opened():
        memory.panel(opened, key="extraction_memory")
    open_items = [j for j in run.items if j.status in ("proposed", "held", "rejected", "refused")]
    ticked = [j.number for j in open_items if state.get(f"extraction_{run.id}_{j.number}_tick")]
    if open_items:
        with st.container(horizontal=True, gap="small"):
            named = present.count(len(ticked), "proposal") if ticked else "what is ticked"
            st.button(f"Accept {named}", key="extraction_accept", type="primary",
                      icon=":material/check:", disabled=not ticked, on_click=accept,
                      args=(run.id, ticked))  # fmt: skip
            st.button("Tick all the gate would store", key="extraction_tick_all",
                      icon=":material/done_all:", on_click=tick_all, args=(run,))  # fmt: skip
    for judged in run.items:
        runs.item(judged, key=f"extraction_{run.id}_{judged.number}", tick=judged in open_items)
    runs.rest(run, key="extraction")

st.subheader("Run log", anchor=False, divider="gray")
runs.log(logged, run, again=again, open_run=open_run)
