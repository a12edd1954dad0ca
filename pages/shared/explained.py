"""The parts of the search page: hits with their terms, settings tried on them, what was dropped,
absence explained, the prompt, the agents' recalls replayed. Each draws one thing."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from memcore.explanations import Comparison, Replayed
from memcore.models import Actor, Hit, Library, Ranking, SearchResult, Subject
from memcore.rules import ranking
from memcore.services.memories import Filter, Mode
from memcore.text import shorten
from pages.shared import memory, messages, present, reads, recall, session, tuning

_LOGGED = 30
"""Recalls of agents shown and replayed."""


def hits(result: SearchResult, subject: Subject, actor: Actor, *, wide: bool) -> None:
    """Bars and stages on one side, each hit with its sum, its channels and its judgement on the
    other; below each other where there is little room."""
    if not result.hits:
        st.info(
            "No hit. The tab Dropped says what was near, and Why not? explains any memory.",
            icon=":material/search_off:",
        )
        return
    left, right = st.columns([3, 2]) if wide else (st.container(), st.container())
    with left:
        st.markdown("**Score by term**")
        st.plotly_chart(
            recall.score_bars(result.hits), config=present.PLOTLY, key="search_bars",
            alt="What each term adds to the score of each hit, best hit on top",
        )  # fmt: skip
    with right:
        st.markdown("**Left after each stage**")
        st.plotly_chart(
            recall.funnel(result.stages), config=present.PLOTLY, key="search_funnel",
            alt=", ".join(f"{recall.STAGES.get(n, n)} {c}" for n, c in result.stages.items()),
        )  # fmt: skip
    with messages.trouble("Reading the judgements", stop=False):
        judged = reads.judgements(actor, subject.library_id, result.query)
    for place, hit in enumerate(result.hits, 1):
        _hit(place, hit, result, subject, judged.get(hit.memory.id))


def _hit(place: int, hit: Hit, result: SearchResult, subject: Subject, judged: bool | None) -> None:
    found = hit.memory
    candidate = next((c for c in result.candidates if c.memory.id == found.id), None)
    with st.container(border=True, key=f"search_hit_{found.id}", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{place}.** {messages.plain(found.content)}", width="stretch")
            if result.query:
                key = f"search_judge_{found.id}"
                if key not in st.session_state and judged is not None:
                    st.session_state[key] = int(judged)
                st.feedback(
                    "thumbs", key=key, on_change=_judge, args=(result.query, found.id, subject)
                )
            st.button(
                "Open", key=f"search_open_{found.id}", type="tertiary",
                icon=":material/open_in_new:", on_click=memory.open_memory, args=(found.id,),
            )  # fmt: skip
        st.caption(
            f"{messages.type_badge(found.memory_type)} "
            f"{messages.scope_badge(found.scope, found.scope_id)} {recall.sums(hit)} · "
            f"{messages.plain(recall.channels(candidate))}"
        )
        for note in hit.notes:
            st.caption(f":orange[:material/warning: {messages.plain(note)}]")


def _judge(query: str, memory_id: str, subject: Subject) -> None:
    """Callback: the hit is right or wrong for this query, or neither any more."""
    said = {0: False, 1: True}.get(st.session_state[f"search_judge_{memory_id}"])
    with messages.attempt("Saving the judgement"):
        session.service().recalls.judge(
            query, memory_id, said, subject=subject, actor=session.actor()
        )
        word = "taken back" if said is None else "right" if said else "wrong"
        messages.done(f"Judgement saved: {word}. It counts as an evaluation case.")
    reads.judgements.clear()


@st.fragment
def tune(library: Library, result: SearchResult) -> None:
    """Sliders over this recall: A as the library stands, B as the sliders say. Ranks, reads
    nothing."""
    if result.mode == "recent":
        st.info("Settings are tried on a query: the newest memories are not ranked.")
        return
    left, right = st.columns([1, 3], gap="large")
    with left:
        tried = tuning.controls(library, result.ranking, page="search")
        tuning.offer(library, result.ranking, tried, page="search")
    before = ranking.rank(result.candidates, result.ranking, now=result.at)
    after = ranking.rank(result.candidates, tried, now=result.at)
    comparison = ranking.compare(_ids(before), _ids(after))
    with right:
        if comparison.same:
            st.markdown("The hits and their order are **the same** under both.")
        else:
            moved = sum(m.before != m.after for m in comparison.moves)
            st.markdown(
                f"**{moved} change**: {len(comparison.gained)} gained, {len(comparison.lost)} lost."
            )
        widest = max((h.score for r in (before, after) for h in r.hits), default=1)
        for column, name, ranked in zip(
            st.columns(2), ("A: the library now", "B: these settings"), (before, after), strict=True
        ):
            with column:
                st.markdown(f"**{name}**")
                st.plotly_chart(
                    recall.score_bars(ranked.hits, widest=widest, columns=0),
                    config=present.PLOTLY, key=f"search_bars_{name[0]}",
                    alt=f"{name}: {present.count(len(ranked.hits), 'hit')}",
                )  # fmt: skip
        texts = {c.memory.id: c.memory.content for c in result.candidates}
        st.dataframe(
            recall.compared(comparison, before, after, texts),
            column_config=recall.compared_columns(), hide_index=True, height="content",
            key="search_compared", alt=f"{len(comparison.moves)} memories, place by place",
        )  # fmt: skip


def dropped(result: SearchResult) -> None:
    """What was near and did not become a hit."""
    if not result.dropped:
        st.info("Every candidate is a hit.", icon=":material/check:")
        return
    st.dataframe(
        recall.dropped(result), column_config=recall.dropped_columns(), hide_index=True,
        height="content" if len(result.dropped) <= 15 else 560, key="search_dropped",
        alt=f"{len(result.dropped)} memories that were ranked and dropped, each with its reason",
    )  # fmt: skip


def why(result: SearchResult, subject: Subject, actor: Actor, mode: Mode) -> None:
    """Any memory of the library: the first reason it is absent, every step, and what would
    bring it in."""
    if not result.query:
        st.info("Ask something first: absence is explained for a query.")
        return
    words = st.text_input(
        "Find the memory you miss", key="search_why_text", type="search",
        placeholder="Some of its words, or its id; blank offers what was dropped",
    )  # fmt: skip
    with messages.trouble("Looking for the memory"):
        options = _offered(result, words.strip(), subject.library_id, actor)
    if not options:
        st.info("No memory you may see has these words.", icon=":material/search_off:")
        return
    chosen = st.selectbox("Memory", list(options), format_func=options.get, key="search_why_memory")
    with messages.trouble("Explaining the absence"):
        said = reads.why_not(actor, subject, result.query, mode, chosen)
    texts = {c.memory.id: c.memory.content for c in result.candidates}
    if said.present:
        st.success(
            said.detail, title=f"It is there, at place {said.place}", icon=":material/check:"
        )
    else:
        st.warning(
            messages.plain(recall.named(said.detail, texts)), icon=":material/help:",
            title=messages.words(said.reason).capitalize(),
        )  # fmt: skip
    if said.change:
        change = said.change
        st.markdown(
            ":material/build: Smallest single change: "
            f"**{messages.plain(recall.change(change.setting, change.before, change.after))}**"
        )
        others = said.changes[1:]
        if others:
            st.caption(
                "Or: "
                + "; ".join(
                    messages.plain(recall.change(c.setting, c.before, c.after)) for c in others
                )
            )
    elif not said.present:
        st.markdown("No single change would bring it in: more than one thing stands in the way.")
    if said.hit:
        st.caption(recall.sums(said.hit))
    st.dataframe(
        recall.checks(said, texts), column_config=recall.check_columns(), hide_index=True,
        height="content", key="search_why_checks",
        alt=f"Steps on the way to a hit; reason: {said.reason}",
    )  # fmt: skip


def _offered(result: SearchResult, words: str, library_id: str, actor: Actor) -> dict[str, str]:
    if not words:
        rows = [d.memory for d in result.dropped] or [h.memory for h in result.hits]
    else:
        by_id = Filter(ids=(words,))
        rows = list(reads.page(actor, by_id, "newest", 1, 0).memories)
        by_text = Filter(library_id=library_id, text=words)
        rows += reads.page(actor, by_text, "newest", 50, 0).memories
    return {m.id: shorten(m.content, 120) for m in rows}


def prompt(result: SearchResult, budget: int) -> None:
    """The block an agent's prompt gets, and what did not fit."""
    block = session.service().memories.format_memories_for_prompt(
        [hit.memory for hit in result.hits], token_budget=budget
    )
    with st.container(horizontal=True):
        st.metric("Tokens (estimated)", f"{block.tokens:,} of {budget:,}", border=True)
        st.metric("Memories in it", f"{len(block.included)} of {len(result.hits)}", border=True)
    if block.text:
        st.caption("Exactly what an agent's prompt gets; the number in the tag is new each time.")
        st.code(block.text, language=None, wrap_lines=True)
    else:
        st.info("Nothing fits, so nothing is put into the prompt.", icon=":material/block:")
    for left in block.left_out:
        st.caption(f"Left out: {left.id}, {left.tokens} tokens.")


@st.fragment
def log(library: Library, actor: Actor, agents: Mapping[str, str]) -> None:
    """The agents' latest recalls, replayed under the sliders' settings."""
    zone = session.zone()
    with messages.trouble("Reading the recall log"):
        logged = reads.logged_recalls(actor, library.id, _LOGGED)
        saved = reads.settings(actor, library.id).ranking
    if not logged:
        st.info(
            "No agent has recalled anything yet, or the library keeps no recall log.",
            icon=":material/history:",
        )
        return
    left, right = st.columns([1, 3], gap="large")
    with left:
        tried = tuning.controls(library, saved, page="search_log")
        tuning.offer(library, saved, tried, page="search_log")
    rows = ranking.replay(logged, tried)
    changed = sum(not r.comparison.same for r in rows)
    with right:
        st.markdown(
            f"**{changed} of {present.count(len(rows), 'recall')}** would give other hits or "
            "another order under these settings than the agent got."
        )
        table = st.dataframe(
            recall.replays(rows, agents, zone), column_config=recall.replay_columns(zone),
            hide_index=True, height=420, key="search_log_table", on_select="rerun",
            selection_mode="single-row",
            alt=f"{len(rows)} recalls of agents, newest first; {changed} would change",
        )  # fmt: skip
        picked = [r for r in table.selection.rows if r < len(rows)]
        replayed = rows[picked[0] if picked else 0]
        _replayed(replayed.recall.query, replayed.comparison, replayed)


def _replayed(query: str, comparison: Comparison, replayed: Replayed) -> None:
    st.markdown(f"**{messages.plain(query)}**")
    texts = {c.memory.id: c.memory.content for c in replayed.recall.candidates}
    gone = dict.fromkeys(replayed.recall.gone, "(gone, or not yours to see)")
    before = ranking.rank(
        replayed.recall.candidates, replayed.recall.ranking, now=replayed.recall.at
    )
    st.dataframe(
        recall.compared(comparison, before, replayed.ranking, {**texts, **gone}),
        column_config=recall.compared_columns(), hide_index=True, height="content",
        key="search_log_compared", alt="Places then (A) and under these settings (B)",
    )  # fmt: skip


def _ids(ranked: Ranking) -> list[str]:
    return [hit.memory.id for hit in ranked.hits]
